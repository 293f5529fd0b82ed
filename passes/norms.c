/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batch normalization, with the activation behind it, is applied where its result is read, if only
 * convolutions, their weight gradients and element-wise operations read it: the first two make the
 * image piece by piece (ir/prologue.h), the others are one pass over it anyway.  The normalized
 * image is no tensor then, neither in the forward pass nor for the backward pass, and costs a few
 * operations on numbers that are read in its place.
 *
 * y = (x - mean) * factor + bias, with factor = weight / sqrt(var + eps) as a tensor of one number
 * a channel: the same operations in the same order as bn_apply, so that no bit changes. */
#include "ir/prologue.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

enum { CHAIN_MOST = 4 };

/* A normalization and the activations behind it. */
typedef struct Norm {
    NodeId apply;
    NodeId chain[CHAIN_MOST];
    int n_chain;
    ValueId factor;
} Norm;

typedef struct Norms {
    Graph *g;
    UseList *uses;
    bool *is_output;
    Places places;
    Norm **norm_of; /* by value: whose result it is */
    Norm **inside;  /* by node: the norm that it is of */
} Norms;

static ValueId result_of(const Graph *g, const Norm *m)
{
    return graph_node(g, m->n_chain ? m->chain[m->n_chain - 1] : m->apply)->out[0];
}

/* --- which ones --- */

static bool is_norm(const Graph *g, const Node *n)
{
    if (n->op != OP_bn_apply || n->hint != REMAT_AUTO)
        return false;
    const Type *x = value_type(g, n->in[0]);
    return x->rank == 4 && x->dtype == DTYPE_F32 && node_int(n, ATTR_axis, 1) == 3;
}

static bool is_activation(const Node *n)
{
    return (n->op == OP_relu || n->op == OP_clamp) && n->hint == REMAT_AUTO;
}

static void follow(const Norms *s, Norm *m)
{
    for (;;) {
        ValueId v = result_of(s->g, m);
        if (m->n_chain == CHAIN_MOST || s->is_output[v] || s->uses[v].len != 1 ||
            !is_activation(graph_node(s->g, s->uses[v].data[0].node)))
            return;
        m->chain[m->n_chain++] = s->uses[v].data[0].node;
    }
}

/* Fusion would take what reads the result into the convolution, which is no longer open to that. */
static bool has_epilogue(const Norms *s, const Node *conv)
{
    const UseList *uses = &s->uses[conv->out[0]];
    if (uses->len != 1 || s->is_output[conv->out[0]])
        return false;
    const Node *reader = graph_node(s->g, uses->data[0].node);
    return op_table[reader->op].op_class == OP_CLASS_POINT &&
           type_same_shape(value_type(s->g, reader->out[0]), value_type(s->g, conv->out[0]));
}

static bool may_apply(const Norms *s, ValueId v, Use use)
{
    const Node *n = graph_node(s->g, use.node);
    if (n->op == OP_conv2d || n->op == OP_conv2d_wgrad)
        return use.input == 0 && n->hint == REMAT_AUTO && conv_takes_prologue(s->g, n) &&
               (n->op == OP_conv2d_wgrad || !has_epilogue(s, n));
    return op_table[n->op].op_class == OP_CLASS_POINT && n->op != OP_bn_apply &&
           n->op != OP_bn_grad_x && n->n_out == 1 &&
           type_same_shape(value_type(s->g, n->out[0]), value_type(s->g, v));
}

/* What the normalization reads is still what it was in the forward pass. */
static bool is_early(const Norms *s, const Norm *m, Use use)
{
    const Node *n = graph_node(s->g, m->apply);
    bool early = true;
    for (int i = 0; i < n->n_in; i++)
        early = early && read_survives(s->g, &s->places, n->in[i], s->places.position[use.node]);
    return early;
}

static bool is_applied_by_readers(const Norms *s, const Norm *m)
{
    ValueId v = result_of(s->g, m);
    bool all = !s->is_output[v], convolutions = false;
    for (size_t i = 0; i < s->uses[v].len; i++) {
        Use use = s->uses[v].data[i];
        all = all && may_apply(s, v, use) && is_early(s, m, use);
        convolutions |= op_table[graph_node(s->g, use.node)->op].op_class == OP_CLASS_MATRIX;
    }
    return all && convolutions;
}

/* Whether there are any. */
static bool find_norms(Norms *s, Pool *scratch)
{
    bool any = false;
    for (size_t i = 0; i < s->g->order.len; i++) {
        Norm m = {.apply = s->g->order.data[i], .factor = VALUE_NONE};
        if (!is_norm(s->g, graph_node(s->g, m.apply)))
            continue;
        follow(s, &m);
        if (!is_applied_by_readers(s, &m))
            continue;
        Norm *kept = POOL_NEW(scratch, Norm);
        *kept = m;
        s->norm_of[result_of(s->g, &m)] = kept;
        s->inside[m.apply] = kept;
        for (int k = 0; k < m.n_chain; k++)
            s->inside[m.chain[k]] = kept;
        any = true;
    }
    return any;
}

/* --- how --- */

static ValueId add_point(Graph *to, OpKind op, ValueId a, ValueId b, const char *name, Loc loc,
                         RematHint hint)
{
    const AttrList none = {0};
    const ValueId in[] = {a, b};
    ValueId v = graph_add(to, op, in, b == VALUE_NONE ? 1 : 2, &none, name, loc);
    value_node(to, v)->hint = hint;
    return v;
}

/* weight / sqrt(var + eps) */
static void add_factor(const Norms *s, Norm *m)
{
    Graph *g = s->g;
    const Node *n = graph_node(g, m->apply);
    ValueId var = n->in[2], weight = n->in[3];
    Loc loc = n->loc;
    ValueId eps = graph_add_const(g, node_float(n, ATTR_eps, 0), DTYPE_F32);
    ValueId sum = add_point(g, OP_add, var, eps, NULL, loc, REMAT_AUTO);
    ValueId rstd = add_point(g, OP_rsqrt, sum, VALUE_NONE, NULL, loc, REMAT_AUTO);
    m->factor = add_point(g, OP_mul, rstd, weight, NULL, loc, REMAT_AUTO);
}

/* What the normalization reads: image, mean, factor, bias. */
enum { NORM_INPUTS = 4 };
static void inputs_of(const Norms *s, const Norm *m, ValueId *in)
{
    const Node *n = graph_node(s->g, m->apply);
    const ValueId all[NORM_INPUTS] = {n->in[0], n->in[1], m->factor, n->in[4]};
    memcpy(in, all, sizeof all);
}

static const char *name_of(const Norms *s, NodeId n)
{
    return graph_value(s->g, graph_node(s->g, n)->out[0])->name;
}

/* The normalization of these inputs in a graph: the step, or the body of a group. */
static ValueId add_norm(const Norms *s, const Norm *m, Graph *to, const ValueId *in, Loc loc,
                        RematHint hint)
{
    ValueId v = add_point(to, OP_sub, in[0], in[1], NULL, loc, hint);
    v = add_point(to, OP_mul, v, in[2], NULL, loc, hint);
    v = add_point(to, OP_add, v, in[3], name_of(s, m->apply), loc, hint);
    for (int i = 0; i < m->n_chain; i++) {
        const Node *n = graph_node(s->g, m->chain[i]);
        v = graph_add_like(to, n, &v, NULL, name_of(s, m->chain[i]));
        value_node(to, v)->hint = hint;
        value_node(to, v)->loc = loc;
    }
    return v;
}

static ValueId add_body_input(const Graph *g, Graph *body, ValueId outer)
{
    const AttrList none = {0};
    return graph_add_source(body, OP_input, *value_type(g, outer), &none,
                            graph_value(g, outer)->name, value_node(g, outer)->loc);
}

/* The convolution becomes a group with the normalization in front of it. */
static void fuse_norm(const Norms *s, const Norm *m, NodeId id)
{
    Graph *g = s->g, *body = graph_new(g->pool, "fused");
    ValueId outer[NORM_INPUTS + 2], inner[NORM_INPUTS + 2], in[3];
    int n_outer = NORM_INPUTS, n_in = graph_node(g, id)->n_in;
    inputs_of(s, m, outer);
    for (int i = 1; i < n_in; i++)
        outer[n_outer++] = graph_node(g, id)->in[i];
    for (int i = 0; i < n_outer; i++)
        inner[i] = add_body_input(g, body, outer[i]);
    Node *n = graph_node(g, id);
    in[0] = add_norm(s, m, body, inner, n->loc, REMAT_AUTO);
    for (int i = 1; i < n_in; i++)
        in[i] = inner[NORM_INPUTS + i - 1];
    ValueId out = graph_add_like(body, n, in, NULL, graph_value(g, n->out[0])->name);
    graph_add_output(body, "out", out);
    become_group(g, n, body, outer, n_outer);
}

static void apply_for(const Norms *s, NodeId id)
{
    for (int i = 0; i < graph_node(s->g, id)->n_in; i++) {
        const Node *n = graph_node(s->g, id);
        const Norm *m = s->norm_of[n->in[i]];
        if (!m)
            continue;
        if (op_table[n->op].op_class == OP_CLASS_MATRIX) {
            fuse_norm(s, m, id);
            return;
        }
        ValueId in[NORM_INPUTS];
        inputs_of(s, m, in);
        ValueId v = add_norm(s, m, s->g, in, n->loc, n->hint);
        graph_node(s->g, id)->in[i] = v;
    }
}

/* The step as it is goes on beside the other. */
static void keep_plain(PassContext *ctx)
{
    PassContext *plain = POOL_NEW(ctx->pool, PassContext);
    *plain = *ctx;
    plain->request.no_norms = true;
    plain->graph = graph_copy(ctx->graph->pool, ctx->graph);
    ctx->plain = plain;
}

static void apply_norms(Norms *s, Pool *scratch)
{
    Rewrite r = rewrite_begin(s->g, scratch);
    for (size_t i = 0; i < r.n_old; i++) {
        NodeId id = r.old_order[i];
        if (s->inside[id] && s->inside[id]->apply == id)
            add_factor(s, s->inside[id]);
        if (s->inside[id])
            continue;
        apply_for(s, id);
        rewrite_keep(&r, id);
    }
    rewrite_end(&r);
}

bool pass_norms(PassContext *ctx)
{
    Graph *g = ctx->graph;
    if (ctx->for_device || ctx->request.no_norms || g->train.rule.gradient_free)
        return true; /* weight gradients take the update in */
    Pool *scratch = pool_new_child(ctx->pool);
    Norms s = {.g = g,
               .uses = list_uses(g, scratch, 0),
               .is_output = mark_outputs(g, scratch),
               .places = note_places(g, scratch),
               .norm_of = POOL_ARRAY(scratch, g->values.len, Norm *),
               .inside = POOL_ARRAY(scratch, g->nodes.len, Norm *)};
    if (find_norms(&s, scratch)) {
        if (!ctx->again && !ctx->request.no_plain)
            keep_plain(ctx);
        apply_norms(&s, scratch);
    }
    pool_free(scratch);
    return true;
}
