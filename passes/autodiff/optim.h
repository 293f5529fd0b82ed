/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The end of a training step: gradient norm, clipping, optimizer updates. */
#ifndef SCRIMP_PASSES_AUTODIFF_OPTIM_H
#define SCRIMP_PASSES_AUTODIFF_OPTIM_H

#include "ir/graph.h"

/* A parameter, or what it is after the updates before, and its gradient, averaged over the
 * micro-batches and not yet clipped. */
typedef struct ParamGrad {
    ValueId param, grad;
} ParamGrad;

/* Which update of a step it is. */
typedef struct UpdateTime {
    const char *loss;    /* of several with optimizers of their own; NULL: the only one */
    int64_t time, times; /* how many updates for it were before, and how many there are */
} UpdateTime;

/* Appends the norm of all gradients, after the last update of a loss as an output "grad_norm" or
 * "grad_norm.LOSS" (not with gradient_free), and the update of every parameter as g->train says:
 * learning rates, which are inputs, the optimizer's state, and steps that overwrite parameters and
 * state. */
void optim_add_updates(Graph *g, const ParamGrad *pairs, size_t n, UpdateTime when);
/* The newest contents of a persistent tensor. */
ValueId optim_newest(const Graph *g, ValueId persistent);
/* Whether no step changes the parameter. */
bool optim_is_frozen(const Graph *g, ValueId param);

#endif
