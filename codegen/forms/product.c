/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/product.h"

#include "ir/attention.h"
#include "ir/product.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"

enum { K_BLOCK_UNIT = 16 }; /* the widest vectors: the same blocks for all widths */

/* Attention's products are those of matrices: scores are one chain. */
_Static_assert((int)PRODUCT_CHAIN == (int)ATTENTION_CHAIN &&
                   (int)ATTENTION_WIDTH_MOST <= (int)PRODUCT_CHAIN,
               "attention sums in other chains than products");

int64_t product_k_block(int64_t k)
{
    int64_t blocks = k > PRODUCT_CHAIN ? divide_up(k, PRODUCT_CHAIN) : 1;
    return divide_up(divide_up(k, blocks), K_BLOCK_UNIT) * K_BLOCK_UNIT;
}

/* Batch dims of a matmul operand over those of the result; 0 where it is broadcast. */
static void batch_strides(const Type *t, const Type *out, int64_t *stride)
{
    int64_t dense = t->dim[t->rank - 1] * t->dim[t->rank - 2];
    for (int d = out->rank - 3, i = t->rank - 3; d >= 0; d--, i--) {
        stride[d] = i >= 0 && t->dim[i] != 1 ? dense : 0;
        dense *= i >= 0 ? t->dim[i] : 1;
    }
}

static Product product_of_matmul(const MatrixNode *m)
{
    const Type *a = matrix_operand_type(m, 0), *b = matrix_operand_type(m, 1);
    const Type *out = matrix_result_type(m);
    bool ta = node_flag(m->node, ATTR_ta), tb = node_flag(m->node, ATTR_tb);
    int64_t a_width = a->dim[a->rank - 1], b_width = b->dim[b->rank - 1];
    Product p = {.m = out->dim[out->rank - 2],
                 .n = out->dim[out->rank - 1],
                 .k = ta ? a->dim[a->rank - 2] : a_width,
                 .a_row = ta ? 1 : a_width,
                 .a_k = ta ? a_width : 1,
                 .b_k = tb ? 1 : b_width,
                 .b_n = tb ? b_width : 1,
                 .chain = node_int(m->node, ATTR_chain, 0),
                 .n_batch = out->rank - 2,
                 .bias = -1};
    for (int d = 0; d < p.n_batch; d++)
        p.batch[d] = out->dim[d];
    batch_strides(a, out, p.a_batch);
    batch_strides(b, out, p.b_batch);
    return p;
}

static Product product_of_linear(const MatrixNode *m)
{
    const Type *x = matrix_operand_type(m, 0), *out = matrix_result_type(m);
    bool in_out = node_flag(m->node, ATTR_in_out);
    int64_t k = x->dim[x->rank - 1], n = out->dim[out->rank - 1], rows = 1;
    for (int d = 0; d < out->rank - 1; d++)
        rows *= out->dim[d];
    return (Product){.m = rows,
                     .n = n,
                     .k = k,
                     .a_row = k,
                     .a_k = 1,
                     .b_k = in_out ? n : 1,
                     .b_n = in_out ? 1 : k,
                     .bias = 2};
}

Product product_of(const MatrixNode *m)
{
    if (m->node->op != OP_matmul && m->node->op != OP_linear)
        BUG("%s is no matrix product", op_name(m->node->op));
    Product p = m->node->op == OP_matmul ? product_of_matmul(m) : product_of_linear(m);
    p.pairs = node_flag(m->node, ATTR_pairs) ? PRODUCT_PAIRS_STEPS : 0;
    return p;
}
