/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products with the CPU's order of every sum. */
#include "codegen/cuda/library/library.h"
#include "codegen/cuda/matrix.h"
#include "codegen/cuda/point.h"
#include "codegen/cuda/text.h"

#include "ir/support/bug.h"
#include "ir/support/divide.h"

KERNEL_DESC_BEGIN
typedef struct ProductDesc {
    Product p;
    int a_buf, b_buf, n_args;
    TileShape tile;
    Epilogue epilogue;
} ProductDesc;
KERNEL_DESC(ProductDesc)

/* Four neighbours are there or none, and begin where 16 bytes do if the operand does. */
static bool is_wide(int64_t row, int64_t step, int64_t rows, int64_t steps)
{
    return step == 1 ? row % 4 == 0 && steps % 4 == 0 : row == 1 && step % 4 == 0 && rows % 4 == 0;
}

static int64_t chains(const Product *p)
{
    return p->k ? divide_up(p->k, product_k_block(p->k)) : 0;
}

static void write_product(StrBuf *out, const char *symbol, const void *desc)
{
    const ProductDesc *d = desc;
    const Product *p = &d->p;
    text_begin(out, d->n_args, (const char *const[]){"common", "math", "random", NULL});
    text_define(out, "M", p->m);
    text_define(out, "N", p->n);
    text_define(out, "K", p->k);
    text_define(out, "K_BLOCK", product_k_block(p->k ? p->k : 1));
    text_define(out, "A_ROW", p->a_row);
    text_define(out, "A_K", p->a_k);
    text_define(out, "B_K", p->b_k);
    text_define(out, "B_N", p->b_n);
    text_define(out, "CHAINS", chains(p));
    text_define(out, "A_WIDE", is_wide(p->a_row, p->a_k, p->m, p->k));
    text_define(out, "B_WIDE", is_wide(p->b_n, p->b_k, p->n, p->k));
    text_define(out, "A_BUF", d->a_buf);
    text_define(out, "B_BUF", d->b_buf);
    text_batch(out, "a_batch", p->n_batch, p->batch, p->a_batch);
    text_batch(out, "b_batch", p->n_batch, p->batch, p->b_batch);
    cuda_epilogue(out, &d->epilogue, 0);
    text_tile(out, &d->tile);
    text_include(out, "product");
    text_tile_kernel(out, symbol, &d->tile, "product");
}

void cuda_product(const MatrixNode *m, const Product *p, const char *what)
{
    ProductDesc *d = POOL_NEW(m->l->pool, ProductDesc);
    int64_t batches = 1;
    if (p->chain) /* pass sums makes none for a device */
        BUG("a device's product has no chains of its own");
    for (int i = 0; i < p->n_batch; i++)
        batches *= p->batch[i];
    *d = (ProductDesc){.p = *p, .tile = cuda_tile_shape(batches, p->m, p->n, chains(p))};
    CallDraft call = matrix_call(m);
    d->a_buf = matrix_add_operand(m, &call, 0);
    d->b_buf = matrix_add_operand(m, &call, 1);
    d->epilogue = matrix_epilogue(m, &call, p->bias);
    d->n_args = call.n_bufs;
    call.label = pool_printf(m->l->pool, "%s %lldx%lldx%lld", what, (long long)(batches * p->m),
                             (long long)p->n, (long long)p->k);
    call.flops = 2 * (double)batches * (double)p->m * (double)p->n * (double)p->k;
    call.bytes = matrix_bytes(m);
    call.key = MATRIX_KEY(m->l->pool, "product", ProductDesc, d);
    call.desc = d;
    call.n_tasks = cuda_tiles(&d->tile, batches, p->m, p->n);
    cuda_call(m->l, &call, write_product, cuda_tile_threads(&d->tile));
}

static void lower_product(const MatrixNode *m)
{
    const char *what = op_name(m->node->op);
    Product p = product_of(m);
    if (!cuda_library_lowers(m, what))
        cuda_product(m, &p, what);
}

void cuda_lower_matmul(const MatrixNode *m)
{
    lower_product(m);
}

void cuda_lower_linear(const MatrixNode *m)
{
    lower_product(m);
}
