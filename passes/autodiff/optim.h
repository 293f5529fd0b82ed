/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a training step: gradient norm, clipping, optimizer updates. */
#ifndef SCRIMP_PASSES_AUTODIFF_OPTIM_H
#define SCRIMP_PASSES_AUTODIFF_OPTIM_H

#include "ir/graph.h"

/* A parameter and its gradient, averaged over the micro-batches and not yet clipped. */
typedef struct ParamGrad {
    ValueId param, grad;
} ParamGrad;

/* Appends the norm of all gradients as an output "grad_norm" (not with gradient_free) and the
 * update of every parameter as g->train says: learning rates, which are inputs, the optimizer's
 * state, and steps that overwrite parameters and state. */
void optim_add_updates(Graph *g, const ParamGrad *pairs, size_t n);
/* Whether no step changes the parameter. */
bool optim_is_frozen(const Graph *g, ValueId param);

#endif
