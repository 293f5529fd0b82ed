/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A forward graph at the granularity of a paper: which operations are vertices, which run inside
 * another's vertex, and how many elements a vertex holds.  Plain data, for `summary --count`, the
 * tests, and memory models that a paper defines on its own graph.
 *
 * Made from the forward graph before any pass, as frontend_lower builds it with
 * FrontendOptions.count: its outputs are the loss and what the model returns. */
#ifndef SCRIMP_PASSES_PAPER_GRAPH_PAPER_GRAPH_H
#define SCRIMP_PASSES_PAPER_GRAPH_PAPER_GRAPH_H

#include "ir/graph.h"

typedef enum PaperClass {
    COUNT_INPUT,      /* a batch input that the model's result depends on */
    COUNT_ACTIVATION, /* computed by the model */
    COUNT_DROPOUT,
    COUNT_VIEW, /* the same elements, or some of them, in another shape */
    COUNT_LOSS  /* computed from what the model returns: losses and their sums */
} PaperClass;

typedef struct PaperVertex {
    const char *name; /* of its value, without sigil */
    const char *op;   /* "conv"; "bn+relu" when a second operation runs in place */
    PaperClass kind;
    bool conv;           /* convolution or transposed one: costs 10 where others cost 1 */
    bool source, target; /* an input; what the graph is there to compute */
    int64_t elements, bytes;
    ValueId value; /* the last value that is in it */
    int *from;     /* the vertices it reads, ascending, each once: its edges */
    int n_from;
} PaperVertex;

/* All vertices with the same op. */
typedef struct PaperOp {
    const char *name;
    int count;
    int64_t elements;
} PaperOp;

typedef struct CountingRule {
    const char *name; /* as in --count */
    const char *doc;  /* what it counts and where the rule is from, in lines of help text */
} CountingRule;

typedef struct PaperGraph {
    const CountingRule *rule;
    PaperVertex *vertex; /* in order of execution */
    PaperOp *op;         /* in alphabetical order */
    int n_vertices, n_edges, n_ops;
    int64_t elements;            /* of all vertices */
    int64_t activation_elements; /* of those of class COUNT_ACTIVATION */
} PaperGraph;

extern const CountingRule counting_rules[]; /* ends with name == NULL */
const CountingRule *counting_rule_find(const char *name);

/* The vertices among the operations that the loss depends on (without a loss: the outputs), for
 * rules without losses those that the model's results depend on.  What depends on no parameter
 * (positions, masks, tables of constants) is no vertex.  O(nodes + edges). */
PaperGraph paper_graph(Pool *pool, const Graph *g, const CountingRule *rule);

#endif
