/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reverse-mode differentiation: walks the nodes that the loss depends on backwards and lets each
 * one's rule append its gradient. */
#include "ir/support/bug.h"
#include "passes/autodiff/autodiff.h"
#include "passes/autodiff/grad.h"
#include "passes/autodiff/names.h"
#include "passes/autodiff/slice_gradients.h"

#include <string.h>

#define grad_none NULL
static GradRule *const grad_table[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, ...)                   \
    [OP_##name] = grad_##grad,
#include "ir/ops.def"
#undef OP
};

/* Gradients of the slices of a value, put off until all of them are known. */
typedef VEC(SlicePart) SliceParts;

/* One backward walk.  The arrays are by the values that exist when it starts. */
typedef struct Backward {
    Graph *g;
    size_t n_values;
    ValueId *grad;       /* what has been added up so far, or VALUE_NONE */
    bool *depends;       /* on one of wrt, through operations that have a rule */
    SliceParts *parts;   /* by value: of its slices, not yet in grad */
    VEC(bool) named;     /* by value - n_values: has its final name */
    const char *refused; /* what a rule could not do, or NULL */
    Pool *scratch;
} Backward;

static const char *gradient_name(const Backward *b, ValueId v)
{
    return pool_printf(b->g->pool, "%%d.%s", graph_value(b->g, v)->name + 1);
}

static bool node_depends(const Backward *b, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (b->depends[n->in[i]])
            return true;
    return false;
}

/* The contents of a parameter: what makes them, an update, has no gradient. */
static bool makes_weights(const Graph *g, const Node *n)
{
    return n->op == OP_param || node_writes(g, n);
}

static void mark_dependent(Backward *b, const ValueId *wrt, int n_wrt)
{
    for (int i = 0; i < n_wrt; i++)
        b->depends[wrt[i]] = true;
    for (size_t i = 0; i < b->g->order.len; i++) {
        const Node *n = graph_node(b->g, b->g->order.data[i]);
        if (!grad_table[n->op] || !node_depends(b, n) || makes_weights(b->g, n))
            continue;
        for (int j = 0; j < n->n_out; j++)
            if (dtype_is_float(value_type(b->g, n->out[j])->dtype))
                b->depends[n->out[j]] = true;
    }
}

static void accumulate(Backward *b, ValueId of, ValueId part)
{
    ValueId *sum = &b->grad[of];
    if (*sum == VALUE_NONE) {
        *sum = part;
        return;
    }
    const ValueId in[2] = {*sum, part};
    const char *name = pool_printf(b->g->pool, "%s.sum", gradient_name(b, of));
    *sum = graph_add(b->g, OP_add, in, 2, NULL, name, value_node(b->g, of)->loc);
}

static void call_rule(Backward *b, NodeId id, const ValueId *dout)
{
    Node node = *graph_node(b->g, id);
    ValueId *din = POOL_ARRAY(b->scratch, (size_t)node.n_in, ValueId);
    bool *wanted = POOL_ARRAY(b->scratch, (size_t)node.n_in, bool);
    bool *has_so_far = POOL_ARRAY(b->scratch, (size_t)node.n_in, bool);
    ValueId *so_far = POOL_ARRAY(b->scratch, (size_t)node.n_in, ValueId);
    for (int i = 0; i < node.n_in; i++) {
        din[i] = VALUE_NONE;
        wanted[i] = b->depends[node.in[i]];
        so_far[i] = b->grad[node.in[i]];
    }
    GradContext c = {.graph = b->g,
                     .node = &node,
                     .dout = dout,
                     .wanted = wanted,
                     .din = din,
                     .so_far = so_far,
                     .has_so_far = has_so_far,
                     .prefix = gradient_name(b, node.out[0])};
    grad_table[node.op](&c);
    if (c.refused)
        b->refused = c.refused;
    for (int i = 0; i < node.n_in; i++)
        if (has_so_far[i])
            b->grad[node.in[i]] = din[i];
        else if (wanted[i] && din[i] != VALUE_NONE)
            accumulate(b, node.in[i],
                       grad_cast_to(&c, din[i], value_type(b->g, node.in[i])->dtype));
}

static void put_off_slice(Backward *b, NodeId id, ValueId dout)
{
    SlicePart part;
    const Node *n = graph_node(b->g, id);
    if (slice_part(b->g, n, dout, &part))
        vec_push(b->scratch, &b->parts[n->in[0]], part);
    else
        call_rule(b, id, &dout);
}

static void add_slices(Backward *b, ValueId x)
{
    SliceParts *parts = &b->parts[x];
    if (parts->len == 0)
        return;
    Type t = *value_type(b->g, x);
    Loc loc = value_node(b->g, x)->loc;
    accumulate(b, x,
               slices_gradient(b->g, b->scratch, &t, parts->data, (int)parts->len,
                               gradient_name(b, x), loc));
    parts->len = 0;
}

/* The last of the parts that make up a gradient gets its name.  A gradient that is another value's
 * as well (those of x in y = x + c) keeps the name it has; so does what was there before. */
static void name_gradient(Backward *b, ValueId of)
{
    ValueId v = b->grad[of];
    if (v < b->n_values)
        return;
    while (b->named.len + b->n_values <= v)
        vec_push(b->scratch, &b->named, false);
    bool *named = &b->named.data[v - b->n_values];
    if (!*named)
        autodiff_rename(b->g, v, gradient_name(b, of));
    *named = true;
}

/* By now every use of the node's outputs has been visited. */
static void visit(Backward *b, NodeId id)
{
    const Node n = *graph_node(b->g, id);
    ValueId *dout = POOL_ARRAY(b->scratch, (size_t)n.n_out, ValueId);
    bool any = false;
    for (int i = 0; i < n.n_out; i++) {
        add_slices(b, n.out[i]);
        dout[i] = b->grad[n.out[i]];
        if (dout[i] == VALUE_NONE)
            continue;
        any = true;
        if (!makes_weights(b->g, &n)) /* the pass names those: they may not be complete yet */
            name_gradient(b, n.out[i]);
    }
    if (!any || !node_depends(b, &n) || makes_weights(b->g, &n))
        return;
    if (n.op == OP_fused)
        BUG("autodiff runs before fuse");
    if (n.op == OP_slice)
        put_off_slice(b, id, dout[0]);
    else if (grad_table[n.op])
        call_rule(b, id, dout);
}

const char *autodiff_gradients(Graph *g, ValueId loss, ValueId seed, const ValueId *wrt, int n_wrt,
                               ValueId *grad)
{
    return autodiff_products(g, &loss, &seed, 1, wrt, n_wrt, grad);
}

const char *autodiff_products(Graph *g, const ValueId *results, const ValueId *seeds, int n,
                              const ValueId *wrt, int n_wrt, ValueId *grad)
{
    Pool *scratch = pool_new_child(g->pool);
    Backward b = {.g = g, .n_values = g->values.len, .scratch = scratch};
    b.grad = POOL_ARRAY(scratch, b.n_values, ValueId);
    b.depends = POOL_ARRAY(scratch, b.n_values, bool);
    b.parts = POOL_ARRAY(scratch, b.n_values, SliceParts);
    for (size_t i = 0; i < b.n_values; i++)
        b.grad[i] = VALUE_NONE;
    for (int i = 0; i < n_wrt; i++)
        b.grad[wrt[i]] = grad[i];
    mark_dependent(&b, wrt, n_wrt);
    size_t n_order = g->order.len; /* two seeds of one value are added up */
    for (int i = 0; i < n; i++)
        if (seeds[i] != VALUE_NONE && b.depends[results[i]])
            accumulate(&b, results[i], seeds[i]);
    for (size_t i = n_order; i-- > 0;)
        visit(&b, g->order.data[i]);
    for (int i = 0; i < n_wrt; i++)
        grad[i] = b.grad[wrt[i]];
    pool_free(scratch);
    autodiff_names_rebuild(g);
    return b.refused;
}
