/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds and rewrites tensors of which the backward part needs only one bit an element, or one byte
 * a window: their last readers are gradients of ReLU and of max pooling.  Used by passes/masks.c.
 */
#ifndef SCRIMP_PASSES_MASK_REWRITE_H
#define SCRIMP_PASSES_MASK_REWRITE_H

#include "ir/graph.h"

typedef enum MaskKind { MASK_NONE, MASK_RELU, MASK_POOL } MaskKind;

/* What input `in` of a node is read for: MASK_RELU when relu_grad is all that reads it (y of a node
 * of that operation, or of those in a fused body), MASK_POOL when it is x of a maxpool_grad whose
 * windows a byte can number, MASK_NONE when its elements are needed. */
MaskKind mask_kind(const Graph *g, const Node *n, int in);

typedef struct MaskReader {
    NodeId node;
    int in;
    MaskKind kind;
} MaskReader;

/* Places are indices into g->order. */
typedef struct MaskTensor {
    ValueId value;
    int64_t bytes;
    size_t made;             /* its masks are made before the node of this place */
    size_t from, last;       /* and then it need not be alive at these places */
    VEC(MaskReader) readers; /* at these places, in order */
} MaskTensor;

typedef VEC(MaskTensor) MaskTensors;

/* The tensors that a mask would let die sooner.  A mask is made right before the last node that
 * needs the elements (which may then write over them), else right after the tensor.  Tensors that
 * are persistent, results of the step, or no larger than their masks are left out.  O(graph). */
MaskTensors mask_find(Pool *pool, const Graph *g);
/* Makes the masks of tensors that mask_find found in g, and lets their readers read them.  Names
 * are "X.mask" and "X.index". */
void mask_apply(Graph *g, const MaskTensors *tensors);

#endif
