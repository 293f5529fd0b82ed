/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products, convolutions and attention that a library of the device's vendor computes, where the
 * user wants that: they are marked, get the library's workspace, and read operands of the types
 * that it takes. Casts are operations of the step like others: those of weights serve both
 * directions, and may be computed again. */
#include "passes/heads.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct Marker {
    PassContext *ctx;
    Rewrite r;
    ValueId *cast;   /* by value: the same in another type, or VALUE_NONE */
    size_t n_values; /* that were there */
} Marker;

static ValueId cast_to(Marker *m, ValueId v, DType to, RematHint hint)
{
    Graph *g = m->ctx->graph;
    bool known = v < m->n_values && m->cast[v] != VALUE_NONE;
    if (known && value_type(g, m->cast[v])->dtype == to)
        return m->cast[v];
    ValueId cast = graph_add_cast(g, v, to, hint);
    if (v < m->n_values)
        m->cast[v] = cast;
    return cast;
}

static void read_result(Graph *g, Node *n, const LibraryQuery *ask)
{
    ValueId *in = POOL_ARRAY(g->pool, (size_t)n->n_in + 1, ValueId);
    memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
    in[n->n_in++] = ask->result;
    n->in = in;
}

static void mark(Marker *m, NodeId id, const LibraryQuery *ask, const LibraryUse *use)
{
    Graph *g = m->ctx->graph;
    for (int i = 0; i < graph_node(g, id)->n_in && !use->as_they_are; i++) {
        ValueId v = graph_node(g, id)->in[i];
        DType wanted = i < 2 ? use->factors : use->bias;
        if (value_type(g, v)->dtype != wanted)
            v = cast_to(m, v, wanted, graph_node(g, id)->hint);
        graph_node(g, id)->in[i] = v;
    }
    Node *n = graph_node(g, id);
    if (use->reads_result)
        read_result(g, n, ask);
    node_set_attr(g, n, (Attr){.key = ATTR_library, .u.s = use->library});
    node_set_attr(g, n, (Attr){.key = ATTR_workspace, .u.i = use->workspace});
}

/* Keeps a node with a bias as one without, and an addition, which what follows may take in.  What
 * is to be kept in memory is the sum alone. */
static void keep_without_bias(Marker *m, NodeId id)
{
    Graph *g = m->ctx->graph;
    Node *n = graph_node(g, id);
    const ValueId out = n->out[0], operands[] = {out, n->in[2]};
    const char *name = pool_printf(g->pool, "%s.biased", graph_value(g, out)->name);
    RematHint hint = n->hint;
    n->n_in = 2;
    n->hint = hint == REMAT_KEEP ? REMAT_AUTO : hint;
    rewrite_keep(&m->r, id);
    ValueId sum = graph_add(g, OP_add, operands, 2, NULL, name, value_node(g, out)->loc);
    value_node(g, sum)->hint = hint;
    rewrite_replace(&m->r, out, sum);
}

/* Each library once. */
static void note_missing(PassContext *ctx, const char *what)
{
    if (!ctx->library_missing)
        ctx->library_missing = what;
    else if (!strstr(ctx->library_missing, what))
        ctx->library_missing = pool_printf(ctx->pool, "%s; %s", ctx->library_missing, what);
}

/* The result of the forward operation that left a gradient's statistics of rows. */
static ValueId forward_result(const Graph *g, const Node *grad)
{
    const Node *n = value_node(g, grad->in[4]);
    return n->op == OP_attention && grad->in[4] == n->out[1] ? n->out[0] : VALUE_NONE;
}

static bool may_take(OpKind op)
{
    const OpAttr *a = op_table[op].attrs;
    while (a->key != ATTR_COUNT && a->key != ATTR_library)
        a++;
    return a->key == ATTR_library;
}

static void visit(Marker *m, NodeId id)
{
    PassContext *ctx = m->ctx;
    Graph *g = ctx->graph;
    LibraryQuery ask = {.archs = ctx->archs, .result = VALUE_NONE};
    LibraryUse use;
    rewrite_inputs(&m->r, id);
    const Node *n = graph_node(g, id);
    if (n->op == OP_attention_grad)
        ask.result = forward_result(g, n);
    bool takes = may_take(n->op) && ctx->library(g, n, &ask, &use);
    if (takes && use.missing)
        note_missing(ctx, use.missing);
    if (takes && !use.missing)
        mark(m, id, &ask, &use);
    if (takes && !use.missing && use.bias_apart && graph_node(g, id)->n_in == 3)
        keep_without_bias(m, id);
    else
        rewrite_keep(&m->r, id);
}

bool pass_library(PassContext *ctx)
{
    if (!ctx->library)
        return true;
    Pool *scratch = pool_new_child(ctx->pool);
    Marker m = {.ctx = ctx, .n_values = ctx->graph->values.len};
    m.cast = POOL_ARRAY(scratch, m.n_values + 1, ValueId);
    memset(m.cast, 0xff, m.n_values * sizeof *m.cast);
    m.r = rewrite_begin(ctx->graph, scratch);
    for (size_t i = 0; i < m.r.n_old; i++)
        visit(&m, m.r.old_order[i]);
    rewrite_end(&m.r);
    heads_by_rows(ctx->graph, scratch, true);
    pool_free(scratch);
    return pass_dce(ctx);
}
