/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a training step: gradient norm, clipping, optimizer updates. */
#ifndef SCRIMP_PASSES_AUTODIFF_OPTIM_H
#define SCRIMP_PASSES_AUTODIFF_OPTIM_H

#include "ir/graph.h"

/* A parameter and its gradient, averaged over the micro-batches and not yet clipped. */
typedef struct ParamGrad {
    ValueId param, grad;
} ParamGrad;

/* Appends sqrt(sum of the squares of every gradient), and names it as an output "grad_norm". */
ValueId optim_add_norm(Graph *g, const ParamGrad *pairs, size_t n);
/* Appends the update of every parameter as g->train says: its learning rate input, the optimizer's
 * state and steps that overwrite parameters and state.  norm is what clipping compares (VALUE_NONE:
 * nothing does). */
void optim_add_updates(Graph *g, const ParamGrad *pairs, size_t n, ValueId norm);

#endif
