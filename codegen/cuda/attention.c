/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention and its gradient: device/attention.cuh and the files that begin with that name. */
#include "codegen/forms/attention.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/point.h"

#include "codegen/forms/product.h"
#include "ir/support/divide.h"

#include <string.h>

/* As device/tile.cuh and device/attention.cuh have them. */
enum { TILE = 64, THREADS = 256, PART_MOST = 128 };

/* Of the kernels of one node: its call, and what a kernel of dk and dv makes. */
KERNEL_DESC_BEGIN
typedef struct AttentionKernel {
    AttentionDesc d;
    int64_t n_args, dk, dv; /* flags */
} AttentionKernel;
KERNEL_DESC(AttentionKernel)

/* Where the biases of a head begin. */
static void write_bias(StrBuf *out, const AttentionDesc *d)
{
    strbuf_put(out, "DEVICE i64 bias_batch(i64 head)\n{\n    i64 at = 0;\n    (void)head;\n");
    for (int64_t i = d->n_batch - 1; i >= 0; i--) {
        strbuf_printf(out, "    at += head %% %lld * %lld;\n", (long long)d->batch[i],
                      (long long)d->bias_batch[i]);
        strbuf_printf(out, "    head /= %lld;\n", (long long)d->batch[i]);
    }
    strbuf_put(out, "    return at;\n}\n");
}

static void write_buffers(StrBuf *out, const AttentionDesc *d)
{
    AttentionBuffers b = attention_buffers(d);
    text_define(out, "Q_BUF", b.q);
    text_define(out, "K_BUF", b.k);
    text_define(out, "V_BUF", b.v);
    text_define(out, "BIAS_BUF", b.bias);
    text_define(out, "RNG_BUF", b.rng);
    text_define(out, "DOUT_BUF", b.dout);
    if (!d->grad)
        text_define(out, "OUT_BUF", b.result);
    for (int i = 0; d->grad && i < 3; i++)
        text_define(out, (const char *const[]){"DQ_BUF", "DK_BUF", "DV_BUF"}[i], b.result + i);
    text_define(out, "MAX_BUF", b.max);
    text_define(out, "SUM_BUF", b.sum);
    text_define(out, "KEY_NUMBER", b.key);
    text_define(out, "WORKSPACE", b.workspace);
}

static void write_options(StrBuf *out, const AttentionDesc *d)
{
    text_define(out, "CAUSAL", d->causal);
    text_define(out, "SCALED", d->scaled);
    text_define_float(out, "SCALE", d->scale);
    text_define(out, "BIASED", d->biased);
    text_define(out, "DROPS", d->drops);
    strbuf_printf(out, "#define THRESHOLD %uu\n", (unsigned)dropout_threshold(d->p));
    text_define_float(out, "KEPT_SCALE", 1 / (1 - d->p));
}

static void write_kernel(StrBuf *out, const char *symbol, const void *desc, const char *body)
{
    const AttentionKernel *k = desc;
    const AttentionDesc *d = &k->d;
    text_begin(out, (int)k->n_args, (const char *const[]){"common", "math", "random", NULL});
    text_define(out, "ROWS", d->rows);
    text_define(out, "KEYS", d->keys);
    text_define(out, "WIDTH", d->width);
    text_define(out, "VALUE_WIDTH", d->value_width);
    text_define(out, "ROW_BLOCK", product_k_block(d->rows));
    text_define(out, "KEY_BLOCK", product_k_block(d->keys));
    text_define(out, "MAKES_DK", k->dk);
    text_define(out, "MAKES_DV", k->dv);
    write_options(out, d);
    write_buffers(out, d);
    write_bias(out, d);
    text_include(out, "tile");
    text_include(out, "attention");
    if (d->grad)
        text_include(out, "attention_grad");
    text_include(out, strcmp(body, "attention") == 0 ? "attention_forward" : body);
    text_kernel(out, symbol, THREADS, body);
}

static void write_attention(StrBuf *out, const char *symbol, const void *desc)
{
    write_kernel(out, symbol, desc, "attention");
}

static void write_grad_rows(StrBuf *out, const char *symbol, const void *desc)
{
    write_kernel(out, symbol, desc, "attention_grad_rows");
}

static void write_grad_keys(StrBuf *out, const char *symbol, const void *desc)
{
    write_kernel(out, symbol, desc, "attention_grad_keys");
}

static void add_kernel(Lowering *l, const Node *n, const AttentionKernel *kernel, const char *name,
                       int64_t rows, int64_t width, KernelText *text)
{
    AttentionKernel k = *kernel;
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = attention_bufs(l, n, bufs);
    k.n_args = n_bufs;
    CallDraft call =
        pod_call(l, name, &k, DESC_BYTES(AttentionKernel),
                 k.d.heads * divide_up(rows, TILE) * divide_up(width, PART_MOST), bufs, n_bufs);
    if (k.dk || k.dv)
        pod_count_join(l, &call);
    else
        pod_count_work(l, &call);
    cuda_call(l, &call, text, THREADS);
}

void cuda_attention(Lowering *l, const Node *n)
{
    AttentionKernel k = {.d = attention_describe(l, n)};
    add_kernel(l, n, &k, "attention", k.d.rows, k.d.value_width, write_attention);
}

/* dk needs what the kernel of dq leaves in the workspace.  One kernel makes dk and dv where a block
 * makes whole rows of them. */
void cuda_attention_grad(Lowering *l, const Node *n)
{
    AttentionKernel k = {.d = attention_describe(l, n)};
    bool together = k.d.width <= PART_MOST && k.d.value_width <= PART_MOST;
    add_kernel(l, n, &k, "attention_grad_rows", k.d.rows, k.d.width, write_grad_rows);
    k.dk = 1, k.dv = together;
    add_kernel(l, n, &k, "attention_grad_keys", k.d.keys, k.d.width, write_grad_keys);
    k.dk = 0, k.dv = 1;
    if (!together)
        add_kernel(l, n, &k, "attention_grad_values", k.d.keys, k.d.value_width, write_grad_keys);
}
