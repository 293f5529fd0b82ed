/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What one run of an operation costs a solver. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_COST_H
#define SCRIMP_PASSES_REMAT_MODEL_COST_H

#include "ir/graph.h"

/* Seconds of one run of the node's kernels on this machine, measured; called by the compiler's
 * driver, because passes know nothing of kernels. */
typedef double MeasuredCost(void *user, const Graph *g, NodeId node);

typedef struct CostModel {
    const char *name;                              /* as in `remat { cost = ... }` and --cost */
    const char *doc;                               /* one line, with its source */
    bool in_seconds;                               /* of a real machine: sums are predictions */
    double (*cost)(const Graph *g, const Node *n); /* NULL: measured */
} CostModel;

/* A model and, where it needs that, what measured. */
typedef struct NodeCosts {
    const CostModel *model;
    MeasuredCost *measured;
    void *user;
} NodeCosts;

extern const CostModel cost_models[]; /* ends with name == NULL; the first is the default */
const CostModel *cost_model_find(const char *name);

double node_cost(const NodeCosts *c, const Graph *g, NodeId node);

#endif
