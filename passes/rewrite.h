/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What passes share: replacing values, rebuilding the order. */
#ifndef SCRIMP_PASSES_REWRITE_H
#define SCRIMP_PASSES_REWRITE_H

#include "ir/graph.h"

/* Walks the old order while a new one is built: graph_add and rewrite_keep append to the new order.
 * A value that was replaced is replaced in the inputs of every node kept later, and in the graph's
 * outputs. */
typedef struct Rewrite {
    Graph *graph;
    Pool *scratch;
    NodeId *old_order;
    size_t n_old;
    ValueId *replacement; /* by value; itself when not replaced */
    size_t n_replacement;
} Rewrite;

Rewrite rewrite_begin(Graph *g, Pool *scratch);
void rewrite_replace(Rewrite *r, ValueId from, ValueId to);
/* Points the inputs of a node at the replacements. */
void rewrite_inputs(Rewrite *r, NodeId n);
/* Appends an old node to the new order, with its inputs replaced. */
void rewrite_keep(Rewrite *r, NodeId n);
/* Replaces the graph's outputs. */
void rewrite_end(Rewrite *r);

/* Uses of every value by the nodes of the order; outputs of the graph count as one use each.  Array
 * by ValueId. */
int *count_uses(const Graph *g, Pool *scratch);
/* A value as input `input` of a node. */
typedef struct Use {
    NodeId node;
    int input;
} Use;
typedef VEC(Use) UseList;
/* Those of every value by the nodes of the order, by ValueId; with empty lists for `more` values
 * that are to come. */
UseList *list_uses(const Graph *g, Pool *scratch, size_t more);
/* Whether a value is an output of the graph, by ValueId. */
bool *mark_outputs(const Graph *g, Pool *scratch);
/* When things happen in the order. */
typedef struct Places {
    size_t *position;       /* by node */
    size_t *overwritten_at; /* by value in persistent storage: of the node that overwrites it */
} Places;
Places note_places(const Graph *g, Pool *scratch);
/* A read of v, or of what it is a view of, by a node at this place passes no overwrite. */
bool read_survives(const Graph *g, const Places *p, ValueId v, size_t at);
/* A node becomes a fused group with this body, which reads these values; its result stays. */
void become_group(Graph *g, Node *n, Graph *body, const ValueId *in, int n_in);
/* Which input of a fused group is `inner` in its body; -1: that is made there. */
int group_input(const Node *group, ValueId inner);
/* One result more of a fused group, which its body gives last. */
ValueId group_add_result(Graph *g, NodeId group);
/* Whether v is a scalar constant, and which. */
bool const_value(const Graph *g, ValueId v, double *out);
/* A rank-0 f32 constant. */
ValueId graph_add_const(Graph *g, double value, DType dtype);
/* v as elements of another type, made where a node of this hint reads it. */
ValueId graph_add_cast(Graph *g, ValueId v, DType to, RematHint hint);
/* Sets or adds one attribute of an existing node. */
void node_set_attr(Graph *g, Node *n, Attr attr);
/* Takes an attribute away, if there. */
void node_drop_attr(Node *n, AttrKey key);
/* Recomputes the output types after inputs or attributes changed; BUG when they do not fit. */
void node_retype(Graph *g, NodeId n);

#endif
