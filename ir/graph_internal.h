/* What graph.c shares with the verifier and the reader. */
#ifndef SCRIMP_IR_GRAPH_INTERNAL_H
#define SCRIMP_IR_GRAPH_INTERNAL_H

#include "ir/graph.h"

/* Runs the shape rule of a node that is not a SOURCE: number of inputs, rule, and what holds for
 * every result (no empty dimension, bytes within int64).  *types gets an array on scratch, *n_out
 * its length. */
bool node_infer(Pool *scratch, const Graph *g, const Node *node, Type **types, int *n_out,
                ShapeError *err);

/* Appends node (copied; in, attr, out are taken over and must live on g->pool) with results of
 * these types and exactly these names, which must be free. */
NodeId graph_append(Graph *g, const Node *node, const Type *types, const char *const *names,
                    int n_out);

/* Attributes from a list, copied to pool, sorted by key. */
Attr *attrs_copy(Pool *pool, const Attr *items, int n);

#endif
