/* SPDX-License-Identifier: GPL-3.0-or-later */
/* attention and attention_grad (ir/attention.h) as kernels have them.
 *
 * Every number is the one that the operations which they stand for would give, bit for bit: scores
 * and results are sums in the order of product.h, the sum of a row's exponentials and that of its
 * gradients times probabilities are sums of a line, and dropout counts elements of the scores as if
 * these were a tensor.  Keys that the mask leaves out are not computed.  They would add products
 * of 0, which change nothing but the sign of a zero, as long as no infinity or NaN is masked:
 * causal results get + 0, which makes that sign the same everywhere.
 *
 * Where heads share keys, dk and dv are those of the heads, added in order: as the sum that the
 * gradient of copies is adds them up to three, in another order where there are more. */
#ifndef SCRIMP_CODEGEN_FORMS_ATTENTION_H
#define SCRIMP_CODEGEN_FORMS_ATTENTION_H

#include "codegen/forms/pod.h"
#include "ir/attention.h"

enum { ATTENTION_TENSORS = 8 }; /* letters of ir/attention.h */

KERNEL_DESC_BEGIN
typedef struct AttentionDesc {
    int64_t heads, group, rows, keys, width, value_width;
    int64_t n_batch, batch[TYPE_MAX_RANK], bias_batch[TYPE_MAX_RANK];
    int64_t grad, causal, biased, drops; /* flags */
    double scale, p;
    AttentionBlocks blocks;
    AttentionStrides at[ATTENTION_TENSORS]; /* attention_at */
} AttentionDesc;
KERNEL_DESC(AttentionDesc)

/* Buffers of a call: the inputs and results of the node, where it drops a number, the product of
 * its key that is added to the seed, and last the workspace, if there is any. */
typedef struct AttentionBuffers {
    int q, k, v, bias, rng, dout; /* those that are there */
    int result;                   /* out, or dq, dk, dv */
    int max, sum, key, workspace;
} AttentionBuffers;

AttentionDesc attention_describe(const Lowering *l, const Node *n);
/* Of a tensor that the node has. */
const AttentionStrides *attention_at(const AttentionDesc *d, char tensor);
AttentionBuffers attention_buffers(const AttentionDesc *d);
/* They themselves, room for CALL_MAX_BUFS; their number. */
int attention_bufs(const Lowering *l, const Node *n, CallBuf *bufs);

#endif
