/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/norm_weights.h"

#include <math.h>

/* What channel c is multiplied by. */
static double factor(const NormTensors *t, double eps, int64_t c)
{
    return (double)t->scale[c] / sqrt((double)t->variance[c] + eps);
}

void folded_norm_weight(const FoldedNorm *n, const NormTensors *t, const Type *weight, float *out)
{
    int64_t inner = 1, channels = weight->dim[n->axis], all = type_elements(weight);
    for (int i = n->axis + 1; i < weight->rank; i++)
        inner *= weight->dim[i];
    for (int64_t i = 0; i < all; i++)
        out[i] = (float)((double)t->weight[i] * factor(t, n->eps, i / inner % channels));
}

void folded_norm_bias(const FoldedNorm *n, const NormTensors *t, int64_t channels, float *out)
{
    for (int64_t c = 0; c < channels; c++) {
        double before = t->bias ? (double)t->bias[c] : 0;
        out[c] =
            (float)((before - (double)t->mean[c]) * factor(t, n->eps, c) + (double)t->shift[c]);
    }
}
