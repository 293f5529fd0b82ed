/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention and its gradient: device/attention.cuh and the files that begin with that name. */
#include "codegen/forms/attention.h"
#include "codegen/cuda/library/library.h"
#include "codegen/cuda/matrix.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/point.h"
#include "codegen/forms/product.h"

#include "ir/support/bug.h"
#include "ir/support/divide.h"

/* A block's tile of scores, and as many columns of results.  The fewer of a gradient's sums a
 * thread keeps, the more blocks a multiprocessor has. */
enum { TILE = 64, THREADS = 128 };
static const TileShape tile_of_rows = {8, 16, 2, 1, 1, 3, 0}, tile_of_keys = {8, 16, 2, 1, 1, 2, 0};

/* Of the kernels of one node: its call, and what a kernel of dk and dv makes. */
KERNEL_DESC_BEGIN
typedef struct AttentionKernel {
    AttentionDesc d;
    int64_t n_args, dk, dv; /* flags */
} AttentionKernel;
KERNEL_DESC(AttentionKernel)

static void write_sizes(StrBuf *out, const AttentionKernel *k)
{
    const AttentionDesc *d = &k->d;
    text_define(out, "GROUP", d->group);
    text_define(out, "ROWS", d->rows);
    text_define(out, "KEYS", d->keys);
    text_define(out, "WIDTH", d->width);
    text_define(out, "VALUE_WIDTH", d->value_width);
    text_define(out, "ROW_BLOCK", product_k_block(d->rows));
    text_define(out, "KEY_BLOCK", product_k_block(d->keys));
    text_define(out, "MAKES_DK", k->dk);
    text_define(out, "MAKES_DV", k->dv);
}

static void write_options(StrBuf *out, const AttentionDesc *d)
{
    text_define(out, "CAUSAL", d->causal);
    text_define_float(out, "SCALE", d->scale);
    text_define(out, "BIASED", d->biased);
    text_define(out, "DROPS", d->drops);
    strbuf_printf(out, "#define THRESHOLD %uu\n", (unsigned)dropout_threshold(d->p));
    text_define_float(out, "KEPT_SCALE", 1 / (1 - d->p));
}

/* OUT_BUF is the result of the one, DQ_BUF and so on are those of the gradient. */
static void write_buffers(StrBuf *out, const AttentionDesc *d)
{
    AttentionBuffers b = attention_buffers(d);
    const struct {
        const char *name;
        int buf;
    } named[] = {{"Q_BUF", b.q},           {"K_BUF", b.k},
                 {"V_BUF", b.v},           {"BIAS_BUF", b.bias},
                 {"RNG_BUF", b.rng},       {"DOUT_BUF", b.dout},
                 {"OUT_BUF", b.result},    {"DQ_BUF", b.result},
                 {"DK_BUF", b.result + 1}, {"DV_BUF", b.result + 2},
                 {"MAX_BUF", b.max},       {"SUM_BUF", b.sum},
                 {"KEY_NUMBER", b.key},    {"WORKSPACE", b.workspace}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        text_define(out, named[i].name, named[i].buf);
}

static void write_attention(StrBuf *out, const char *symbol, const void *desc)
{
    const AttentionKernel *k = desc;
    const TileShape *tile = k->dk && k->dv ? &tile_of_keys : &tile_of_rows;
    const char *body = !k->d.grad       ? "attention_forward"
                       : k->dk || k->dv ? "attention_grad_keys"
                                        : "attention_grad_rows";
    text_begin(out, (int)k->n_args, (const char *const[]){"common", "math", "random", NULL});
    write_sizes(out, k);
    write_options(out, &k->d);
    write_buffers(out, &k->d);
    text_batch(out, "bias_batch", k->d.n_batch, k->d.batch, k->d.bias_batch);
    text_tile(out, tile);
    text_include(out, "attention");
    if (k->d.grad)
        text_include(out, "attention_grad");
    text_include(out, body);
    text_tile_kernel(out, symbol, tile, body);
}

static void add_kernel(Lowering *l, const Node *n, const AttentionKernel *kernel, const char *name,
                       int64_t rows, int64_t width)
{
    AttentionKernel k = *kernel;
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = attention_bufs(l, n, bufs);
    bool of_keys = k.dk || k.dv;
    int64_t heads = of_keys ? k.d.heads / k.d.group : k.d.heads;
    k.n_args = n_bufs;
    CallDraft call = pod_call(l, name, &k, DESC_BYTES(AttentionKernel),
                              heads * divide_up(rows, TILE) * divide_up(width, TILE), bufs, n_bufs);
    if (of_keys)
        pod_count_join(l, &call);
    else
        pod_count_work(l, &call);
    cuda_call(l, &call, write_attention, THREADS);
}

static bool by_library(Lowering *l, const Node *n)
{
    const MatrixNode m = {.l = l, .graph = l->graph, .node = n};
    return cuda_library_lowers(&m, op_name(n->op));
}

static AttentionKernel describe(const Lowering *l, const Node *n)
{
    if (node_attr(n, ATTR_by_rows)) /* pass heads makes none for a device */
        BUG("attention by rows without a library");
    return (AttentionKernel){.d = attention_describe(l, n)};
}

void cuda_attention(Lowering *l, const Node *n)
{
    if (by_library(l, n))
        return;
    AttentionKernel k = describe(l, n);
    add_kernel(l, n, &k, "attention", k.d.rows, k.d.value_width);
}

/* dk needs what the kernel of dq leaves in the workspace.  One kernel makes dk and dv where a block
 * makes whole rows of them, of one head. */
void cuda_attention_grad(Lowering *l, const Node *n)
{
    if (by_library(l, n))
        return;
    AttentionKernel k = describe(l, n);
    bool together = k.d.width <= TILE && k.d.value_width <= TILE && k.d.group == 1;
    add_kernel(l, n, &k, "attention_grad_rows", k.d.rows, k.d.width);
    k.dk = 1, k.dv = together;
    add_kernel(l, n, &k, "attention_grad_keys", k.d.keys, k.d.width);
    k.dk = 0, k.dv = 1;
    if (!together)
        add_kernel(l, n, &k, "attention_grad_values", k.d.keys, k.d.value_width);
}
