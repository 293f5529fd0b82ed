/* SPDX-License-Identifier: GPL-3.0-or-later */
/* matmul and linear as one form: out[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], with any
 * element strides of A and B; out is dense. */
#ifndef SCRIMP_CODEGEN_FORMS_PRODUCT_H
#define SCRIMP_CODEGEN_FORMS_PRODUCT_H

#include "codegen/forms/matrix.h"

typedef struct Product {
    int64_t m, n, k;
    int64_t chain;                /* steps of a chain where the node says so; else 0 */
    int64_t pairs;                /* PRODUCT_PAIRS_STEPS where the node has the attribute; else 0 */
    int64_t a_row, a_k, b_k, b_n; /* strides in elements */
    int64_t batch[TYPE_MAX_RANK], a_batch[TYPE_MAX_RANK], b_batch[TYPE_MAX_RANK];
    int n_batch; /* outermost first */
    int bias;    /* operand, -1: none */
} Product;

/* Of a matmul or linear node. */
Product product_of(const MatrixNode *m);

/* The order of a sum over k: chains of product_k_block(k) multiply-adds, each from zero, whose
 * results are added in order.  Every backend that promises the same bits keeps to it.  Where the
 * node has chains of its own, what they give is added just so; by pairs: ir/product.h. */
int64_t product_k_block(int64_t k);

#endif
