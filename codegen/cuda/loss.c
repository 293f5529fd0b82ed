/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cross_entropy, its gradient and accuracy: device/loss.cuh and what follows it. */
#include "codegen/forms/loss.h"
#include "codegen/cuda/lines.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"
#include "ir/workspace.h"

/* Lines that lie densely are read by runs (device/runs.cuh), by RUN_THREADS threads each, AHEAD
 * runs at a time.  A block has the lines of a chunk, at most MOST_CHUNK_LINES of them at once, or
 * in turn SOME_LINES of all: MOST_BLOCKS blocks, BLOCKS of a multiprocessor, run at the same time,
 * as each one of the gradient counts all labels.  Across lines a block has ACROSS_LINES times
 * LINE_THREADS. */
enum { AHEAD = 2, MOST_CHUNK_LINES = 64, SOME_LINES = 32, MOST_BLOCKS = 512, BLOCKS = 4 };
enum { MOST_ANSWERS = 16, ACROSS_LINES = 8, SUM_THREADS = 256 };

static AxisShape shape_of(const LossDesc *d)
{
    return (AxisShape){d->outer, d->classes, d->inner};
}

static bool by_runs(const LossDesc *d)
{
    return d->inner == 1;
}

static void begin(StrBuf *out, const LossDesc *d, int n_args, int weight_buf, const char *lines,
                  int block_lines)
{
    double e = d->smoothing, classes = (double)d->classes;
    text_define(out, "BLOCK_LINES", block_lines);
    text_define(out, "AHEAD", AHEAD);
    text_define(out, "ALIGN", LINE_THREADS); /* lines are long */
    text_begin(out, n_args, (const char *const[]){"common", "math", NULL});
    text_lines(out, shape_of(d), lines);
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

/* With the lines scanned. */
static void begin_scan(StrBuf *out, const LossDesc *d, int out_buf, int weight_buf, int block_lines)
{
    begin(out, d, out_buf + 1, weight_buf, by_runs(d) ? "runs" : "line", block_lines);
    text_include(out, by_runs(d) ? "loss_scan_runs" : "loss_scan");
    text_define(out, "OUT_BUF", out_buf);
}

static int threads_of(const LossDesc *d, int block_lines)
{
    return block_lines * (by_runs(d) ? RUN_THREADS : LINE_THREADS);
}

static int block_lines(const LossDesc *d)
{
    return by_runs(d) ? SOME_LINES : ACROSS_LINES;
}

static void kernel(StrBuf *out, const char *symbol, const char *body, int threads)
{
    text_include(out, body);
    text_kernel(out, symbol, threads, body);
}

/* Of lines in turn. */
static void lines_kernel(StrBuf *out, const char *symbol, const char *body, const LossDesc *d)
{
    int threads = threads_of(d, block_lines(d));
    text_include(out, body);
    if (by_runs(d))
        text_kernel_blocks(out, symbol, threads, BLOCKS, body);
    else
        text_kernel(out, symbol, threads, body);
}

/* As many lines at a time as a chunk has. */
static int chunk_lines(const LossDesc *d, int most)
{
    int lines = 1;
    if (d->inner > 1)
        return ACROSS_LINES;
    while (2 * lines <= most && 2 * lines * d->chunks <= d->outer)
        lines *= 2;
    return lines;
}

static void write_loss_chunk(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    int lines = chunk_lines(d, MOST_CHUNK_LINES);
    begin_scan(out, d, d->weighted ? 3 : 2, 2, lines);
    kernel(out, symbol, by_runs(d) ? "loss_chunk" : "loss_chunk_across", threads_of(d, lines));
}

static void write_loss_each(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    begin_scan(out, d, d->weighted ? 3 : 2, 2, block_lines(d));
    lines_kernel(out, symbol, "loss_each", d);
}

/* The losses of lines are there: a thread a line. */
static void write_loss_sums(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    begin(out, d, d->weighted ? 4 : 3, 2, "line", SUM_THREADS / LINE_THREADS);
    text_define(out, "OUT_BUF", d->weighted ? 3 : 2);
    kernel(out, symbol, "loss_sums", SUM_THREADS);
}

static void write_join(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0, "line", 1);
    strbuf_put(out, "#define SUM double\n");
    kernel(out, symbol, "loss_join", LINE_THREADS);
}

static void write_grad(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    begin_scan(out, d, d->weighted ? 4 : 3, 3, block_lines(d));
    text_define(out, "WEIGHT_SUMS", LOSS_WEIGHT_SUMS);
    lines_kernel(out, symbol, "loss_grad", d);
}

static int answer_lines(const LossDesc *d)
{
    return chunk_lines(d, MOST_ANSWERS);
}

static void write_accuracy(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 3, 0, "line", answer_lines(desc));
    text_include(out, "best");
    kernel(out, symbol, "accuracy_chunk", answer_lines(desc) * LINE_THREADS);
}

static void write_accuracy_join(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0, "line", 1);
    strbuf_put(out, "#define SUM i64\n");
    kernel(out, symbol, "loss_join", LINE_THREADS);
}

static void lower_join(Lowering *l, const Node *n, const LossDesc *d, KernelText *join)
{
    const CallBuf out[] = {{VALUE_NONE, 0}, {n->out[0], 0}};
    CallDraft call = pod_call(l, pool_printf(l->pool, "%s_join", op_name(n->op)), d,
                              DESC_BYTES(LossDesc), 1, out, 2);
    pod_count_join(l, &call);
    cuda_call(l, &call, join, LINE_THREADS);
}

/* A block for each chunk of the lines, then one that joins what they left. */
static void lower_chunked(Lowering *l, const Node *n, const LossDesc *d, KernelText *text,
                          KernelText *join, int threads)
{
    CallBuf in[4] = {{n->in[0], 0}, {n->in[1], 0}, {VALUE_NONE, 0}, {VALUE_NONE, 0}};
    if (d->weighted)
        in[2].value = n->in[2];
    CallDraft call =
        pod_call(l, op_name(n->op), d, DESC_BYTES(LossDesc), d->chunks, in, d->weighted ? 4 : 3);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, threads);
    lower_join(l, n, d, join);
}

static void lower_lines(Lowering *l, const LossDesc *d, const char *name, KernelText *text,
                        const CallBuf *bufs, int n_bufs)
{
    int64_t blocks =
        divide_up(d->outer * d->inner, by_runs(d) ? SOME_LINES : ACROSS_LINES * LINE_THREADS);
    CallDraft call = pod_call(l, name, d, DESC_BYTES(LossDesc),
                              blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, threads_of(d, block_lines(d)));
}

/* All losses of lines, the sums of each chunk, and what they sum to. */
static void lower_kept(Lowering *l, const Node *n, const LossDesc *d)
{
    CallBuf bufs[CALL_MAX_BUFS];
    int last = node_bufs(n, bufs) - 1;
    bufs[last] = (CallBuf){VALUE_NONE, kept_losses_offset(l->graph, n)};
    lower_lines(l, d, "cross_entropy_each", write_loss_each, bufs, last + 1);
    bufs[0] = bufs[last];
    bufs[last] = (CallBuf){VALUE_NONE, 0};
    CallDraft call =
        pod_call(l, "cross_entropy_sums", d, DESC_BYTES(LossDesc), d->chunks, bufs, last + 1);
    pod_count_join(l, &call);
    cuda_call(l, &call, write_loss_sums, SUM_THREADS);
    lower_join(l, n, d, write_join);
}

void cuda_cross_entropy(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    if (d.reduction == LOSS_NONE)
        lower_lines(l, &d, "cross_entropy_each", write_loss_each, bufs, n_bufs);
    else if (kept_losses_offset(l->graph, n))
        lower_kept(l, n, &d);
    else
        lower_chunked(l, n, &d, write_loss_chunk, write_join,
                      threads_of(&d, chunk_lines(&d, MOST_CHUNK_LINES)));
}

void cuda_cross_entropy_grad(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    lower_lines(l, &d, "cross_entropy_grad", write_grad, bufs, n_bufs);
}

void cuda_accuracy(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    lower_chunked(l, n, &d, write_accuracy, write_accuracy_join, answer_lines(&d) * LINE_THREADS);
}
