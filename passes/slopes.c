/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The slope of an activation is made with it, where both are made of the same value.
 *
 * The gradient of gelu(x) is dy times a slope that takes as long as the activation, and most of its
 * steps are the same.  A kernel that makes both costs little more than one of them; the slope takes
 * the place of x, which nobody else reads, and the gradient is a product, with the same bits.  It
 * is behind remat, which counts on x, and is kept where no plan of the step as it was needs less
 * memory. */
#include "ir/strided_view.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/views.h"

/* Activations whose gradient is (dy, x) -> dy * slope(x). */
static const struct Pair {
    OpKind make, grad;
} pairs[] = {{OP_gelu, OP_gelu_grad}, {OP_silu, OP_silu_grad}, {OP_mish, OP_mish_grad}};

/* What reads a value of the step: a node of it, or one in its body. */
typedef struct Reader {
    Graph *body;      /* NULL: the node itself */
    const Node *node; /* NULL: no activation and no gradient of one */
    OpKind grad;      /* of the pair */
} Reader;

typedef struct Slopes {
    Graph *g;
    UseList *uses;    /* by value */
    size_t *position; /* by node: in the order */
    bool *repeated;   /* by node: one of several runs of an operation */
} Slopes;

static OpKind gradient_of(OpKind op)
{
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        if (pairs[k].make == op || pairs[k].grad == op)
            return pairs[k].grad;
    return OP_COUNT;
}

/* NULL: there are several. */
static const Node *only_reader(const Graph *body, ValueId v)
{
    const Node *reader = NULL;
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        for (int i = 0; i < n->n_in; i++) {
            if (n->in[i] != v)
                continue;
            if (reader)
                return NULL;
            reader = n;
        }
    }
    return reader;
}

static Reader reader_of(const Graph *g, Use use)
{
    const Node *n = graph_node(g, use.node), *reader = n;
    ValueId v = n->in[use.input];
    if (n->op == OP_fused) {
        v = body_input(n->body, use.input);
        reader = only_reader(n->body, v);
    }
    OpKind grad = reader ? gradient_of(reader->op) : OP_COUNT;
    if (grad == OP_COUNT || reader->in[reader->n_in - 1] != v ||
        (reader->op == grad && reader->in[0] == v))
        return (Reader){0};
    return (Reader){n->body, reader, grad};
}

static bool is_gradient(const Reader *r)
{
    return r->node->op == r->grad;
}

static bool same_kind(const Reader *a, const Reader *b)
{
    return a->grad == b->grad && node_flag(a->node, ATTR_approx) == node_flag(b->node, ATTR_approx);
}

/* A kernel has results of one shape, and that of a product one result. */
static bool may_make(const Graph *g, Use use)
{
    const Node *n = graph_node(g, use.node);
    if (n->op == OP_fused && graph_has_matrix(n->body))
        return false;
    const Type *x = value_type(g, n->in[use.input]);
    return x->dtype == DTYPE_F32 && type_equal(x, value_type(g, n->out[0]));
}

/* All that reads v is one activation and its gradient, and each of them runs once: a recomputation
 * stays what it repeats (passes/rerun.h). */
static bool read_by_one_kind(const Slopes *s, ValueId v)
{
    Reader last = {0};
    for (size_t k = 0; k < s->uses[v].len; k++) {
        Reader r = reader_of(s->g, s->uses[v].data[k]);
        if (!r.node || (last.node && !same_kind(&r, &last)) || s->repeated[s->uses[v].data[k].node])
            return false;
        last = r;
    }
    return true;
}

/* The last activation of v, if all its gradients come later; node NODE_NONE: no. */
static Use maker_of(const Slopes *s, ValueId v)
{
    Use none = {NODE_NONE, 0}, maker = none;
    size_t last = 0, first = SIZE_MAX; /* activation and gradient */
    for (size_t k = 0; read_by_one_kind(s, v) && k < s->uses[v].len; k++) {
        Use use = s->uses[v].data[k];
        size_t at = s->position[use.node];
        Reader r = reader_of(s->g, use);
        if (is_gradient(&r)) {
            first = at < first ? at : first;
        } else if (maker.node == NODE_NONE || at > last) {
            maker = use;
            last = at;
        }
    }
    bool found = maker.node != NODE_NONE && first != SIZE_MAX && last < first;
    return found && may_make(s->g, maker) ? maker : none;
}

/* A node that stands alone becomes a group. */
static void make_group(Graph *g, NodeId id)
{
    Node *n = graph_node(g, id);
    if (n->op == OP_fused)
        return;
    Graph *body = graph_new(g->pool, "fused");
    const Value *v = graph_value(g, n->in[0]);
    ValueId x =
        graph_add_source(body, OP_input, v->type, NULL, v->name, graph_node(g, v->def)->loc);
    graph_add_output(body, "out",
                     graph_add_like(body, n, &x, NULL, graph_value(g, n->out[0])->name));
    become_group(g, n, body, n->in, n->n_in);
}

/* The gradient of 1 is one result more. */
static ValueId make_slope(Graph *g, Use use)
{
    OpKind grad = reader_of(g, use).grad;
    ValueId v = graph_node(g, use.node)->in[use.input];
    make_group(g, use.node);
    Graph *body = graph_node(g, use.node)->body;
    ValueId x = body_input(body, use.input);
    Node n = *only_reader(body, x);
    n.op = grad;
    n.n_in = 2;
    const ValueId in[] = {graph_add_const(body, 1, DTYPE_F32), x};
    const char *name = pool_printf(g->pool, "%s.slope", graph_value(g, v)->name);
    graph_add_output(body, "slope", graph_add_like(body, &n, in, NULL, name));
    return group_add_result(g, use.node);
}

static void read_slope(Graph *g, Use use, ValueId slope)
{
    Reader r = reader_of(g, use);
    Node *n = graph_node(g, use.node), *grad = r.body ? value_node(r.body, r.node->out[0]) : n;
    grad->op = OP_mul;
    grad->n_attr = 0;
    n->in[use.input] = slope;
}

static bool keep_slope(const Slopes *s, ValueId v)
{
    Use maker = maker_of(s, v);
    if (maker.node == NODE_NONE)
        return false;
    ValueId slope = make_slope(s->g, maker);
    for (size_t k = 0; k < s->uses[v].len; k++) {
        Use use = s->uses[v].data[k];
        Reader r = use.node == maker.node ? (Reader){0} : reader_of(s->g, use);
        if (r.node && is_gradient(&r))
            read_slope(s->g, use, slope);
    }
    return true;
}

/* A copy of the graph whose slopes are made with activations; NULL: there are none. */
static Graph *with_slopes(Pool *pool, Pool *scratch, const Graph *old)
{
    Graph *g = graph_copy(pool, old);
    Slopes s = {g, list_uses(g, scratch, 0), POOL_ARRAY(scratch, g->nodes.len + 1, size_t),
                POOL_ARRAY(scratch, g->nodes.len + 1, bool)};
    for (size_t k = 0; k < g->order.len; k++) {
        s.position[g->order.data[k]] = k;
        NodeId first = graph_node(g, g->order.data[k])->remat_of;
        if (first != NODE_NONE)
            s.repeated[first] = s.repeated[g->order.data[k]] = true;
    }
    bool changed = false;
    size_t n = g->values.len;
    for (size_t v = 0; v < n; v++)
        changed |= keep_slope(&s, (ValueId)v);
    return changed ? g : NULL;
}

bool pass_slopes(PassContext *ctx)
{
    change_no_larger(ctx, with_slopes, MEMPLAN_TRIAL);
    return true;
}
