/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer norm and its gradients: device/layernorm.cuh, layernorm_grad.cuh, layernorm_sums.cuh. */
#include "codegen/forms/layernorm.h"
#include "codegen/cuda/lines.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"
#include "ir/workspace.h"

enum { SUMS_THREADS = 256 };

/* --- rows --- */

static void write_rows(StrBuf *out, const char *symbol, const LayernormDesc *d, int out_buf,
                       int n_args, const char *body)
{
    text_begin(out, n_args, (const char *const[]){"common", "math", NULL});
    text_define(out, "HAS_GAMMA", d->gamma);
    text_define(out, "HAS_BETA", d->beta);
    text_define(out, "IS_RMS", d->rms);
    text_define(out, "OUT_BUF", out_buf);
    text_define_float(out, "ONE_OVER_LENGTH", 1 / (double)d->length);
    text_define_float(out, "EPS", d->eps);
    text_lines(out, (AxisShape){d->rows, d->length, 1}, "line");
    text_include(out, body);
    text_kernel(out, symbol, LINE_THREADS, body);
}

static void write_layernorm(StrBuf *out, const char *symbol, const void *desc)
{
    const LayernormDesc *d = desc;
    int out_buf = 1 + (int)d->gamma + (int)d->beta;
    write_rows(out, symbol, d, out_buf, out_buf + 3, "layernorm");
}

static void write_layernorm_grad(StrBuf *out, const char *symbol, const void *desc)
{
    const LayernormDesc *d = desc;
    int out_buf = d->gamma ? 5 : 4;
    write_rows(out, symbol, d, out_buf, out_buf + 1, "layernorm_grad");
}

static void lower_rows(Lowering *l, const Node *n, KernelText *text)
{
    LayernormDesc d = layernorm_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    CallDraft call = pod_call(l, op_name(n->op), &d, DESC_BYTES(LayernormDesc),
                              lines_blocks((AxisShape){d.rows, d.length, 1}, 1), bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, LINE_THREADS);
}

void cuda_layernorm(Lowering *l, const Node *n)
{
    lower_rows(l, n, write_layernorm);
}

void cuda_layernorm_grad(Lowering *l, const Node *n)
{
    lower_rows(l, n, write_layernorm_grad);
}

/* --- sums over rows --- */

KERNEL_DESC_BEGIN
typedef struct SumsDesc {
    int64_t rows, length, chunks, partial_bytes;
} SumsDesc;
KERNEL_DESC(SumsDesc)

static void write_columns(StrBuf *out, const char *symbol, const SumsDesc *d, int n_args,
                          const char *body)
{
    text_begin(out, n_args, (const char *const[]){"common", "math", "join", NULL});
    text_define(out, "THREADS", SUMS_THREADS);
    text_define(out, "ROWS", d->rows);
    text_define(out, "LENGTH", d->length);
    text_define(out, "CHUNKS", d->chunks);
    text_define(out, "PARTIAL_FLOATS", d->partial_bytes / 4);
    text_include(out, "layernorm_sums");
    text_kernel(out, symbol, SUMS_THREADS, body);
}

static void write_sums(StrBuf *out, const char *symbol, const void *desc)
{
    write_columns(out, symbol, desc, 5, "layernorm_sums");
}

static void write_total(StrBuf *out, const char *symbol, const void *desc)
{
    write_columns(out, symbol, desc, 3, "layernorm_total");
}

void cuda_layernorm_grad_sums(Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), -1);
    SumsDesc d = {a.outer, a.length, reduce_chunks(l->graph, n), reduce_partial_bytes(l->graph, n)};
    const CallBuf in[] = {
        {n->in[0], 0}, {n->in[1], 0}, {n->in[2], 0}, {n->in[3], 0}, {VALUE_NONE, 0}};
    const CallBuf out[] = {{VALUE_NONE, 0}, {n->out[0], 0}, {n->out[1], 0}};
    CallDraft call = pod_call(l, op_name(n->op), &d, DESC_BYTES(SumsDesc),
                              divide_up(d.length * d.chunks, SUMS_THREADS), in, 5);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_sums, SUMS_THREADS);
    call = pod_call(l, "layernorm_grad_sums_join", &d, DESC_BYTES(SumsDesc),
                    divide_up(d.length, SUMS_THREADS), out, 3);
    pod_count_join(l, &call);
    cuda_call(l, &call, write_total, SUMS_THREADS);
}
