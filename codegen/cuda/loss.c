/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cross_entropy, its gradient and accuracy: device/loss.cuh and what follows it. */
#include "codegen/forms/loss.h"
#include "codegen/cuda/lines.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

/* Lines of a block: of those that take a chunk each, which are few; across lines, where every block
 * of the gradient counts all labels. */
enum { MOST_BLOCK_LINES = 16, ACROSS_BLOCK_LINES = 8 };

static AxisShape shape_of(const LossDesc *d)
{
    return (AxisShape){d->outer, d->classes, d->inner};
}

static void begin(StrBuf *out, const LossDesc *d, int n_args, int weight_buf, int block_lines)
{
    double e = d->smoothing, classes = (double)d->classes;
    text_define(out, "BLOCK_LINES", block_lines);
    text_begin(out, n_args, (const char *const[]){"common", "math", "line", NULL});
    text_lines(out, shape_of(d));
    text_define(out, "IGNORE", d->ignore);
    text_define(out, "CHUNKS", d->chunks);
    text_define(out, "PARTIAL_BYTES", d->partial_bytes);
    text_define(out, "WEIGHTED", d->weighted);
    text_define(out, "WEIGHT_BUF", weight_buf);
    text_define(out, "SMOOTHED", e > 0);
    strbuf_printf(out, "#define LABEL %s\n", text_type((DType)d->label_type));
    strbuf_printf(out, "#define COUNT %s\n", d->weighted ? "double" : "i64");
    text_define_float(out, "SMOOTHING", e);
    text_define_float(out, "ONE_MINUS_SMOOTHING", 1 - e);
    text_define_float(out, "SMOOTHING_SHARE", e / classes);
    text_define_float(out, "ONE_OVER_CLASSES", 1 / classes);
    text_define_float(out, "OWN_TARGET", 1 - e + e / classes);
    text_include(out, "loss");
    text_define(out, "MEAN", d->reduction == LOSS_MEAN);
    text_define(out, "EACH", d->reduction == LOSS_NONE);
}

static void kernel(StrBuf *out, const char *symbol, const char *body, int threads)
{
    text_include(out, body);
    text_kernel(out, symbol, threads, body);
}

/* As many lines at a time as a chunk has. */
static int chunk_lines(const LossDesc *d)
{
    int lines = 1;
    if (d->inner > 1)
        return ACROSS_BLOCK_LINES;
    while (2 * lines <= MOST_BLOCK_LINES && 2 * lines * d->chunks <= d->outer)
        lines *= 2;
    return lines;
}

static void write_loss_chunk(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    begin(out, d, d->weighted ? 4 : 3, 2, chunk_lines(d));
    text_define(out, "OUT_BUF", d->weighted ? 3 : 2);
    kernel(out, symbol, d->inner == 1 ? "loss_chunk" : "loss_chunk_across",
           chunk_lines(d) * LINE_THREADS);
}

static void write_loss_each(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    begin(out, d, d->weighted ? 4 : 3, 2, 1);
    text_define(out, "OUT_BUF", d->weighted ? 3 : 2);
    kernel(out, symbol, "loss_each", LINE_THREADS);
}

static void write_join(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0, 1);
    strbuf_put(out, "#define SUM double\n");
    kernel(out, symbol, "loss_join", LINE_THREADS);
}

static int grad_lines(const LossDesc *d)
{
    return d->inner == 1 ? 1 : ACROSS_BLOCK_LINES;
}

static void write_grad(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    begin(out, d, d->weighted ? 5 : 4, 3, grad_lines(d));
    text_define(out, "OUT_BUF", d->weighted ? 4 : 3);
    text_define(out, "WEIGHT_SUMS", LOSS_WEIGHT_SUMS);
    kernel(out, symbol, "loss_grad", grad_lines(d) * LINE_THREADS);
}

static void write_accuracy(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 3, 0, chunk_lines(desc));
    text_include(out, "best");
    kernel(out, symbol, "accuracy_chunk", chunk_lines(desc) * LINE_THREADS);
}

static void write_accuracy_join(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0, 1);
    strbuf_put(out, "#define SUM i64\n");
    kernel(out, symbol, "loss_join", LINE_THREADS);
}

/* A block for each chunk of the lines, then one that joins what they left. */
static void lower_chunked(Lowering *l, const Node *n, const LossDesc *d, KernelText *text,
                          KernelText *join)
{
    CallBuf in[4] = {{n->in[0], 0}, {n->in[1], 0}, {VALUE_NONE, 0}, {VALUE_NONE, 0}};
    const CallBuf out[] = {{VALUE_NONE, 0}, {n->out[0], 0}};
    if (d->weighted)
        in[2].value = n->in[2];
    CallDraft call =
        pod_call(l, op_name(n->op), d, DESC_BYTES(LossDesc), d->chunks, in, d->weighted ? 4 : 3);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, chunk_lines(d) * LINE_THREADS);
    call = pod_call(l, pool_printf(l->pool, "%s_join", op_name(n->op)), d, DESC_BYTES(LossDesc), 1,
                    out, 2);
    pod_count_join(l, &call);
    cuda_call(l, &call, join, LINE_THREADS);
}

static void lower_lines(Lowering *l, const Node *n, const LossDesc *d, const char *name,
                        KernelText *text, int block_lines)
{
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    CallDraft call = pod_call(l, name, d, DESC_BYTES(LossDesc),
                              lines_blocks(shape_of(d), block_lines), bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, block_lines * LINE_THREADS);
}

void cuda_cross_entropy(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    if (d.reduction == LOSS_NONE)
        lower_lines(l, n, &d, "cross_entropy_each", write_loss_each, 1);
    else
        lower_chunked(l, n, &d, write_loss_chunk, write_join);
}

void cuda_cross_entropy_grad(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    lower_lines(l, n, &d, "cross_entropy_grad", write_grad, grad_lines(&d));
}

void cuda_accuracy(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    lower_chunked(l, n, &d, write_accuracy, write_accuracy_join);
}
