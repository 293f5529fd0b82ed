/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cross_entropy, its gradient and accuracy, for classes that lie side by side. */
#include "codegen/forms/loss.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/bug.h"

enum { PARTIALS = 64, MOST_BLOCKS = 4096 };

static void define_float(StrBuf *out, const char *name, double value)
{
    strbuf_printf(out, "#define %s ", name);
    text_float(out, value);
    strbuf_put(out, "\n");
}

static const char *label_type(const LossDesc *d)
{
    return d->label_type == DTYPE_I32 ? "int" : d->label_type == DTYPE_I64 ? "i64" : "u8";
}

static void begin(StrBuf *out, const LossDesc *d, int n_args, int weight_buf)
{
    double e = d->smoothing, classes = (double)d->classes;
    text_begin(out, n_args, (const char *const[]){"common", "math", "line", NULL});
    text_define(out, "LINES", d->outer);
    text_define(out, "CLASSES", d->classes);
    text_define(out, "IGNORE", d->ignore);
    text_define(out, "CHUNKS", d->chunks);
    text_define(out, "PARTIAL_BYTES", d->partial_bytes);
    text_define(out, "WEIGHTED", d->weighted);
    text_define(out, "WEIGHT_BUF", weight_buf);
    text_define(out, "SMOOTHED", e > 0);
    strbuf_printf(out, "#define LABEL %s\n", label_type(d));
    strbuf_printf(out, "#define COUNT %s\n", d->weighted ? "double" : "i64");
    define_float(out, "SMOOTHING", e);
    define_float(out, "ONE_MINUS_SMOOTHING", 1 - e);
    define_float(out, "SMOOTHING_SHARE", e / classes);
    define_float(out, "ONE_OVER_CLASSES", 1 / classes);
    define_float(out, "OWN_TARGET", 1 - e + e / classes);
    strbuf_put(out, device_text("loss"));
    text_define(out, "MEAN", d->reduction == LOSS_MEAN);
    text_define(out, "EACH", d->reduction == LOSS_NONE);
}

static void kernel(StrBuf *out, const char *symbol, const char *body)
{
    strbuf_put(out, device_text(body));
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n    %s(a);\n}\n", symbol, PARTIALS, body);
}

static void write_loss(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    begin(out, d, d->weighted ? 4 : 3, 2);
    text_define(out, "OUT_BUF", d->weighted ? 3 : 2);
    kernel(out, symbol, d->reduction == LOSS_NONE ? "loss_each" : "loss_chunk");
}

static void write_join(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0);
    strbuf_put(out, "#define SUM double\n");
    kernel(out, symbol, "loss_join");
}

static void write_grad(StrBuf *out, const char *symbol, const void *desc)
{
    const LossDesc *d = desc;
    begin(out, d, d->weighted ? 5 : 4, 3);
    text_define(out, "OUT_BUF", d->weighted ? 4 : 3);
    kernel(out, symbol, "loss_grad");
}

static void write_accuracy(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 3, 0);
    kernel(out, symbol, "accuracy_chunk");
}

static void write_accuracy_join(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0);
    strbuf_put(out, "#define SUM i64\n");
    kernel(out, symbol, "loss_join");
}

bool cuda_has_loss(const Graph *g, const Node *n)
{
    return axis_shape(value_type(g, n->in[0]), node_int(n, ATTR_axis, -1)).inner == 1;
}

static LossDesc describe(const Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    if (d.inner != 1)
        BUG("a loss across lines");
    return d;
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
    cuda_call(l, &call, text, PARTIALS);
    call = pod_call(l, pool_printf(l->pool, "%s_join", op_name(n->op)), d, DESC_BYTES(LossDesc), 1,
                    out, 2);
    pod_count_join(l, &call);
    cuda_call(l, &call, join, PARTIALS);
}

/* Blocks that take the lines in turn. */
static void lower_lines(Lowering *l, const Node *n, const LossDesc *d, const char *name,
                        KernelText *text)
{
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    int64_t blocks = d->outer < MOST_BLOCKS ? d->outer : MOST_BLOCKS;
    CallDraft call =
        pod_call(l, name, d, DESC_BYTES(LossDesc), d->classes ? blocks : 0, bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, PARTIALS);
}

void cuda_cross_entropy(Lowering *l, const Node *n)
{
    LossDesc d = describe(l, n);
    if (d.reduction == LOSS_NONE)
        lower_lines(l, n, &d, "cross_entropy_each", write_loss);
    else
        lower_chunked(l, n, &d, write_loss, write_join);
}

void cuda_cross_entropy_grad(Lowering *l, const Node *n)
{
    LossDesc d = describe(l, n);
    lower_lines(l, n, &d, "cross_entropy_grad", write_grad);
}

void cuda_accuracy(Lowering *l, const Node *n)
{
    LossDesc d = describe(l, n);
    lower_chunked(l, n, &d, write_accuracy, write_accuracy_join);
}
