/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The SSA tensor graph: one forward function, or one whole training step.
 *
 * Nodes are stored in g->nodes and run in the order of g->order.  Values are defined once.
 * Names carry their sigil and are unique: "%layer1.0.conv1", "$fc1.weight" (persistent),
 * "%d.X" / "$d.P" gradients, "X~n" the n-th recomputation of X.
 *
 * Persistent tensors (param, buffer, state) are SOURCE nodes.  A node output with `writes` set
 * overwrites that persistent tensor in place: every reader of what it held, the source node's value
 * or that of the write before, comes before it; whoever reads the new contents reads the output. */
#ifndef SCRIMP_IR_GRAPH_H
#define SCRIMP_IR_GRAPH_H

#include "ir/op.h"
#include "ir/support/map.h"
#include "ir/support/vec.h"
#include "ir/train_spec.h"

typedef uint32_t ValueId; /* index into g->values; VALUE_NONE = no value */
typedef uint32_t NodeId;  /* index into g->nodes */
#define VALUE_NONE UINT32_MAX
#define NODE_NONE  UINT32_MAX

/* Where an operation comes from: a place in the source, 1-based, 0:0 = none; and the part of the
 * model, "h.3.attn" (the labels of the calls around it), NULL = the model itself. */
typedef struct Loc {
    uint32_t line, column;
    const char *path; /* nodes have copies of their own, as of */
    const char *file; /* that was imported, without folders; NULL = the model's own */
} Loc;
/* 0: it has none in the model's own file. */
static inline uint32_t loc_line(const Loc *loc)
{
    return loc->file ? 0 : loc->line;
}

typedef struct Value {
    Type type;
    NodeId def;    /* the node that makes it */
    int out_index; /* which output of it */
    const char *name;
    ValueId writes; /* the persistent tensor (value of a param/buffer/state node) it overwrites, or
                       VALUE_NONE */
    ValueId
        part_of; /* the concatenation in whose storage it lies (ir/strided_view.h), or VALUE_NONE */
} Value;

typedef enum RematHint { REMAT_AUTO, REMAT_KEEP, REMAT_RECOMPUTE } RematHint;

typedef struct Node {
    OpKind op;
    int n_in, n_out, n_attr;
    ValueId *in;
    ValueId *out;
    Attr *attr; /* sorted by key */
    struct Graph
        *body; /* fused: its inputs are `input` nodes in order, its results are body->outputs */
    Loc loc;
    RematHint hint;       /* @keep, @recompute */
    NodeId remat_of;      /* the node this one recomputes, or NODE_NONE */
    const char *remat_by; /* solver that asked for it */
} Node;

/* A named result of the graph ("loss", "logits", "accuracy", "grad_norm"): lives to the end. */
typedef struct Output {
    const char *name;
    ValueId value;
} Output;

/* A metric of an evaluation that is a formula of totals over its batches.  An `input` of the
 * formula has the name of an output of the graph and the role "total", the sum over the batches, or
 * "average", the mean over the examples; the formula's only output is the metric.  It is evaluated
 * in double at the end, and is no part of the graph's text. */
typedef struct TotalMetric {
    const char *name;
    struct Graph *formula;
} TotalMetric;

typedef struct Graph {
    Pool *pool;
    const char *name;    /* of the model */
    const char *kind;    /* "forward" or "step" */
    const char *source;  /* file name, without folders */
    const char *options; /* "N=128 hidden=256" */
    uint64_t source_hash;
    VEC(Node) nodes;
    VEC(Value) values;
    VEC(NodeId) order;
    VEC(Output) outputs;
    VEC(TotalMetric) total_metrics;
    Map names;       /* value name -> ValueId */
    Map ordinals;    /* base name -> next suffix graph_unique_name tries */
    TrainSpec train; /* optimizer and so on; train.present is false for pure inference */
} Graph;

Graph *graph_new(Pool *pool, const char *name);

static inline Node *graph_node(const Graph *g, NodeId n)
{
    return &g->nodes.data[n];
}
static inline Value *graph_value(const Graph *g, ValueId v)
{
    return &g->values.data[v];
}
static inline Node *value_node(const Graph *g, ValueId v)
{
    return &g->nodes.data[g->values.data[v].def];
}
static inline const Type *value_type(const Graph *g, ValueId v)
{
    return &g->values.data[v].type;
}

/* Elements of a `literal`: more belong into a data file. */
enum { LITERAL_MAX_VALUES = 1 << 16 };

/* Attributes of a node under construction, on the stack. */
typedef struct AttrList {
    Attr items[16];
    int n;
} AttrList;
void attrs_int(AttrList *a, AttrKey key, int64_t value); /* INT and BOOL */
void attrs_float(AttrList *a, AttrKey key, double value);
void attrs_string(AttrList *a, AttrKey key, const char *value);
void attrs_ints(AttrList *a, AttrKey key, const int64_t *values,
                int n); /* not copied until graph_add */
void attrs_floats(AttrList *a, AttrKey key, const double *values, int n); /* likewise */

/* Reading attributes, with a default when absent. */
const Attr *node_attr(const Node *n, AttrKey key);
int64_t node_int(const Node *n, AttrKey key, int64_t otherwise);
bool node_flag(const Node *n, AttrKey key);
double node_float(const Node *n, AttrKey key, double otherwise);
const char *node_string(const Node *n, AttrKey key, const char *otherwise);
const int64_t *node_ints(const Node *n, AttrKey key, int *count);  /* NULL, count 0 when absent */
const double *node_floats(const Node *n, AttrKey key, int *count); /* likewise */
/* Element i of an INTS attribute, `otherwise` when absent. */
int64_t node_ints_at(const Node *n, AttrKey key, int i, int64_t otherwise);

/* Appends a node at the end of the order after running its shape rule.  NODE_NONE and *err filled
 * when the inputs do not fit.  name: of the first output, with sigil, made unique by ".1", ".2",
 * ...; NULL = "%OP.n". Further outputs are called NAME#1, NAME#2.  Attributes are copied. */
NodeId graph_try_add(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                     const char *name, Loc loc, ShapeError *err);
/* The same for callers whose inputs are known to fit (passes): BUG otherwise.  Returns output 0. */
ValueId graph_add(Graph *g, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                  const char *name, Loc loc);
/* A SOURCE node with a declared type (input, param, buffer, state, const). */
ValueId graph_add_source(Graph *g, OpKind op, Type type, const AttrList *attrs, const char *name,
                         Loc loc);
/* A node like n, of this or another graph, with these inputs; attrs: NULL = n's own.  A body is
 * copied.  Returns output 0. */
ValueId graph_add_like(Graph *g, const Node *n, const ValueId *in, const AttrList *attrs,
                       const char *name);
void graph_add_output(Graph *g, const char *name, ValueId value);
/* VALUE_NONE when there is none of that name. */
ValueId graph_find(const Graph *g, const char *name);
ValueId graph_output(const Graph *g, const char *name);
/* base when free, else base.1, base.2, ... */
const char *graph_unique_name(Graph *g, const char *base);

/* Deep copy into another pool. */
Graph *graph_copy(Pool *pool, const Graph *g);

bool node_is_source(const Node *n);     /* class SOURCE */
bool node_is_view(const Node *n);       /* class VIEW: costs nothing */
bool node_runs(const Node *n);          /* takes time: views and sources do not, constants do */
bool graph_has_matrix(const Graph *g);  /* an operation of class MATRIX */
bool node_is_persistent(const Node *n); /* param, buffer, state */
/* Whether a result overwrites a persistent tensor. */
bool node_writes(const Graph *g, const Node *n);
/* The persistent tensor behind a value, following `writes`; VALUE_NONE for ordinary values. */
ValueId value_storage(const Graph *g, ValueId v);

/* Sums over the graph as it stands. */
double graph_flops(const Graph *g);
double node_flops(const Graph *g, const Node *n);
int64_t node_bytes_moved(const Graph *g, const Node *n); /* inputs read + outputs written */
/* Bytes a node needs only while it runs (packed weights, partial sums); ir/workspace.c.  An upper
 * bound for every target, so that a plan does not depend on the machine. */
int64_t node_workspace_bytes(const Graph *g, const Node *n);
/* Output `out` may be written over input `in` as it is computed, element by element (same bytes).
 */
bool node_may_overwrite(const Graph *g, const Node *n, int out, int in);

#endif
