/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Updates of single parameters, as ordinary operations whose results overwrite the parameter and
 * the optimizer's state. */
#ifndef SCRIMP_PASSES_AUTODIFF_OPTIM_RULES_H
#define SCRIMP_PASSES_AUTODIFF_OPTIM_RULES_H

#include "ir/graph.h"

/* What an update reads.  Its gradient is still to be multiplied by `clip`. */
typedef struct Update {
    Graph *g;
    const UpdateRule *rule;
    ValueId param, grad, lr, clip;
    ValueId step; /* i32, 1 at the first update; VALUE_NONE unless train_counts_steps */
    bool again;   /* not the first update of the parameter in this step: its state is there */
} Update;

/* "$m.fc1.weight": PREFIX and the parameter's path. */
const char *optim_name(const Update *u, const char *prefix);
/* A tensor like the parameter, in the same storage order, that starts as `init` says; or what an
 * update before has left in it. */
ValueId optim_add_state(const Update *u, const char *prefix, const char *role, const char *init);
/* Whether weight decay is for this parameter. */
bool optim_decays(const Update *u);
/* factor * a + b; without the product when the factor is 0. */
ValueId optim_add_scaled(Graph *g, double factor, ValueId a, ValueId b, const char *name);

void optim_add_rmsprop(const Update *u);
void optim_add_adagrad(const Update *u);
void optim_add_lion(const Update *u);
void optim_add_lamb(const Update *u);
void optim_add_adafactor(const Update *u);
void optim_add_muon(const Update *u);
/* The running mean of a parameter, of its value `next` after the update: "$ema.fc1.weight".  weight
 * is how much of that it takes in. */
void optim_add_average(const Update *u, ValueId next, ValueId weight);

#endif
