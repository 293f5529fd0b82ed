/* SPDX-License-Identifier: GPL-3.0-or-later */
/* matmul and linear as matrix products. */
#include "codegen/cpu/gemm/gemm.h"
#include "codegen/cpu/gemm/matrix_lower.h"

#include <string.h>

void gemm_lower_product(const MatrixNode *m, const Product *p, const char *what)
{
    Gemm *g = POOL_NEW(m->l->pool, Gemm);
    *g = (Gemm){.m = p->m,
                .n = p->n,
                .k = p->k,
                .chain = p->chain,
                .pairs = p->pairs,
                .a_row = p->a_row,
                .a_k = p->a_k,
                .b_k = p->b_k,
                .b_n = p->b_n,
                .n_batch = p->n_batch};
    memcpy(g->batch, p->batch, sizeof g->batch);
    memcpy(g->a_batch, p->a_batch, sizeof g->a_batch);
    memcpy(g->b_batch, p->b_batch, sizeof g->b_batch);
    g->a_bf16 = matrix_operand_type(m, 0)->dtype == DTYPE_BF16;
    g->b_bf16 = matrix_operand_type(m, 1)->dtype == DTYPE_BF16;
    CallDraft call = matrix_call(m);
    g->a_buf = matrix_add_operand(m, &call, 0);
    g->b_buf = matrix_add_operand(m, &call, 1);
    g->a_made = call.made == g->a_buf + 1;
    if (g->a_made && g->a_k != 1)
        g->steps = call_add_numbers(&call);
    g->epilogue = matrix_epilogue(m, &call, p->bias);
    call.bytes = matrix_bytes(m);
    gemm_lower(m->l, g, &call, what);
}

static void lower_product(const MatrixNode *m, const char *what)
{
    Product p = product_of(m);
    gemm_lower_product(m, &p, what);
}

void matrix_lower_matmul(const MatrixNode *m)
{
    lower_product(m, "matmul");
}

void matrix_lower_linear(const MatrixNode *m)
{
    lower_product(m, "linear");
}
