/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What graph.c shares with the verifier and the reader. */
#ifndef SCRIMP_IR_GRAPH_INTERNAL_H
#define SCRIMP_IR_GRAPH_INTERNAL_H

#include "ir/graph.h"

enum { FEW_RESULTS = 4 };
/* Results node_infer may fill: FEW_RESULTS or more. */
int node_max_results(const Node *node);
/* Runs the shape rule of a node that is not a SOURCE: number of inputs, rule, and what holds for
 * every result (no empty dimension, bytes within int64).  types has room for node_max_results. */
bool node_infer(const Graph *g, const Node *node, Type *types, int *n_out, ShapeError *err);

/* Appends node (copied; in, attr, out are taken over and must live on g->pool) with results of
 * these types and exactly these names, which must be free. */
NodeId graph_append(Graph *g, const Node *node, const Type *types, const char *const *names,
                    int n_out);

/* graph_try_add for an operation with a body, which the node takes over. */
NodeId graph_try_add_region(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                            Graph *body, const char *name, Loc loc, ShapeError *err);

/* Attributes from a list, copied to pool, sorted by key. */
Attr *attrs_copy(Pool *pool, const Attr *items, int n);

#endif
