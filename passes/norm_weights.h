/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weights of layers that have a batch normalization in them, for an inference whose weights are
 * known.  Called by whoever ran the pass fold_norms. */
#ifndef SCRIMP_PASSES_NORM_WEIGHTS_H
#define SCRIMP_PASSES_NORM_WEIGHTS_H

#include "ir/graph.h"

/* Names of tensors, without their sigil: of the graph behind the pass, and what they are made of.
 */
typedef struct FoldedNorm {
    const char *folded_weight, *folded_bias;
    const char *weight, *bias; /* bias: NULL when the layer has none */
    const char *mean, *variance, *scale, *shift;
    double eps;
    int axis; /* of the output channels in the weight */
} FoldedNorm;

/* Their elements, row-major in the order of the language. */
typedef struct NormTensors {
    const float *weight, *bias, *mean, *variance, *scale, *shift;
} NormTensors;

/* weight: the type of both weights.  Computed in double, rounded once. */
void folded_norm_weight(const FoldedNorm *n, const NormTensors *t, const Type *weight, float *out);
void folded_norm_bias(const FoldedNorm *n, const NormTensors *t, int64_t channels, float *out);

#endif
