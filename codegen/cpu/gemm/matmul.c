/* SPDX-License-Identifier: GPL-3.0-or-later */
/* matmul and linear as matrix products. */
#include "codegen/cpu/gemm/gemm.h"
#include "codegen/cpu/gemm/matrix.h"

/* Batch dims of a matmul operand over those of the result; 0 where it is broadcast. */
static void batch_strides(const Type *t, const Type *out, int64_t *stride)
{
    int64_t dense = t->dim[t->rank - 1] * t->dim[t->rank - 2];
    for (int d = out->rank - 3, i = t->rank - 3; d >= 0; d--, i--) {
        stride[d] = i >= 0 && t->dim[i] != 1 ? dense : 0;
        dense *= i >= 0 ? t->dim[i] : 1;
    }
}

void matrix_lower_matmul(const MatrixNode *m)
{
    const Type *a = matrix_operand_type(m, 0), *b = matrix_operand_type(m, 1);
    const Type *out = matrix_result_type(m);
    bool ta = node_flag(m->node, ATTR_ta), tb = node_flag(m->node, ATTR_tb);
    int64_t a_width = a->dim[a->rank - 1], b_width = b->dim[b->rank - 1];
    Gemm *g = POOL_NEW(m->l->pool, Gemm);
    *g = (Gemm){.m = out->dim[out->rank - 2],
                .n = out->dim[out->rank - 1],
                .k = ta ? a->dim[a->rank - 2] : a_width,
                .a_row = ta ? 1 : a_width,
                .a_k = ta ? a_width : 1,
                .b_k = tb ? 1 : b_width,
                .b_n = tb ? b_width : 1,
                .n_batch = out->rank - 2};
    for (int d = 0; d < g->n_batch; d++)
        g->batch[d] = out->dim[d];
    batch_strides(a, out, g->a_batch);
    batch_strides(b, out, g->b_batch);
    CallDraft call = matrix_call(m);
    g->a_buf = matrix_add_operand(m, &call, 0);
    g->b_buf = matrix_add_operand(m, &call, 1);
    g->epilogue = matrix_epilogue(m, &call, -1);
    gemm_lower(m->l, g, &call, "matmul");
}

void matrix_lower_linear(const MatrixNode *m)
{
    const Type *x = matrix_operand_type(m, 0), *out = matrix_result_type(m);
    bool in_out = node_flag(m->node, ATTR_in_out);
    int64_t k = x->dim[x->rank - 1], n = out->dim[out->rank - 1], rows = 1;
    for (int d = 0; d < out->rank - 1; d++)
        rows *= out->dim[d];
    Gemm *g = POOL_NEW(m->l->pool, Gemm);
    *g = (Gemm){.m = rows,
                .n = n,
                .k = k,
                .a_row = k,
                .a_k = 1,
                .b_k = in_out ? n : 1,
                .b_n = in_out ? 1 : k};
    CallDraft call = matrix_call(m);
    g->a_buf = matrix_add_operand(m, &call, 0);
    g->b_buf = matrix_add_operand(m, &call, 1);
    g->epilogue = matrix_epilogue(m, &call, 2);
    gemm_lower(m->l, g, &call, "linear");
}
