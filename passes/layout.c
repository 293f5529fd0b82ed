/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Images become NHWC inside: convolutions, pooling and batch norms run with channels last, as the
 * kernels want them, and element-wise operations follow their operands.  Users see NCHW at the
 * edges only: where an operation needs the logical order, a transposition is inserted.  Runs on the
 * forward graph, so that gradients inherit the layout.
 *
 * Nodes are changed in place: a value keeps its name and is marked as NHWC. */
#include "ir/support/bitset.h"
#include "ir/support/bug.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

static const int64_t TO_NHWC[4] = {0, 2, 3, 1};
static const int64_t TO_NCHW[4] = {0, 3, 1, 2};
static const int64_t OIHW_TO_HWIO[4] = {2, 3, 1, 0};
/* Where logical axis i of an image went. */
static const int64_t AXIS[4] = {0, 3, 1, 2};

typedef struct Layout {
    Graph *g;
    Rewrite r;
    Pool *scratch;
    bool *nhwc;      /* by value: stored with channels last */
    ValueId *twin;   /* by value: the same value in the other layout, VALUE_NONE until made */
    size_t n_values; /* room of the two */
    ValueId *weight; /* by value of the graph as it was: the parameter that it is a version of (see
                        minimize), or itself */
    size_t n_weights;
    Bitset shared; /* parameters that not only convolutions read */
} Layout;

static void layout_grow(Layout *l, size_t n)
{
    if (n <= l->n_values)
        return;
    size_t room = 2 * n;
    l->nhwc = pool_grow(l->scratch, l->nhwc, l->n_values * sizeof *l->nhwc, room * sizeof *l->nhwc);
    l->twin = pool_grow(l->scratch, l->twin, l->n_values * sizeof *l->twin, room * sizeof *l->twin);
    for (size_t i = l->n_values; i < room; i++)
        l->twin[i] = VALUE_NONE;
    l->n_values = room;
}

static ValueId transposed(Layout *l, ValueId v, const int64_t *perm, Loc loc)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_perm, perm, value_type(l->g, v)->rank);
    ValueId t = graph_add(l->g, OP_transpose, &v, 1, &attrs, NULL, loc);
    layout_grow(l, l->g->values.len);
    return t;
}

/* v (rank 4) in the wanted layout. */
static ValueId in_layout(Layout *l, ValueId v, bool nhwc, Loc loc)
{
    if (l->nhwc[v] == nhwc)
        return v;
    if (l->twin[v] == VALUE_NONE) {
        ValueId t = transposed(l, v, nhwc ? TO_NHWC : TO_NCHW, loc);
        l->nhwc[t] = nhwc;
        l->twin[v] = t;
        l->twin[t] = v;
    }
    return l->twin[v];
}

/* An operand that broadcasts against NHWC images: padded with leading axes of size 1, then
 * transposed (which folds to a view for per-channel vectors). */
static ValueId broadcast_operand(Layout *l, ValueId v, Loc loc)
{
    const Type *t = value_type(l->g, v);
    if (t->rank == 4)
        return in_layout(l, v, true, loc);
    if (type_elements(t) == 1)
        return v;
    int64_t shape[4] = {1, 1, 1, 1};
    for (int i = 0; i < t->rank; i++)
        shape[4 - t->rank + i] = t->dim[i];
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, shape, 4);
    ValueId r = graph_add(l->g, OP_reshape, &v, 1, &attrs, NULL, loc);
    layout_grow(l, l->g->values.len);
    return transposed(l, r, TO_NHWC, loc);
}

static void set_flag(Layout *l, NodeId id, AttrKey key, int64_t value)
{
    node_set_attr(l->g, graph_node(l->g, id), (Attr){.key = key, .u.i = value});
}

static void permute_ints(Layout *l, NodeId id, AttrKey key)
{
    int n;
    const int64_t *old = node_ints(graph_node(l->g, id), key, &n);
    if (!old)
        return;
    int64_t *ints = POOL_ARRAY(l->g->pool, 4, int64_t);
    for (int i = 0; i < 4; i++)
        ints[i] = old[TO_NHWC[i]];
    node_set_attr(l->g, graph_node(l->g, id), (Attr){.key = key, .n = 4, .u.ints = ints});
}

static void mark(Layout *l, NodeId id)
{
    node_retype(l->g, id);
    const Node *n = graph_node(l->g, id);
    for (int i = 0; i < n->n_out; i++)
        l->nhwc[n->out[i]] = value_type(l->g, n->out[i])->rank == 4;
}

static void set_input(Layout *l, NodeId id, int i, ValueId v)
{
    graph_node(l->g, id)->in[i] = v;
}

/* The weight of a convolution as [R,S,C,K]: a parameter is stored that way from the start (its
 * `perm` tells the checkpoint), anything else is transposed. */
static ValueId conv_weight(Layout *l, ValueId w, Loc loc)
{
    Node *def = value_node(l->g, l->weight[w]);
    if (def->op != OP_param || bitset_has(&l->shared, l->weight[w]))
        return transposed(l, w, OIHW_TO_HWIO, loc);
    if (node_attr(def, ATTR_perm))
        return w;
    const Type old = *value_type(l->g, w);
    int64_t *perm = POOL_ARRAY(l->g->pool, 4, int64_t);
    memcpy(perm, OIHW_TO_HWIO, sizeof OIHW_TO_HWIO);
    for (size_t v = 0; v < l->n_weights; v++)
        for (int i = 0; i < 4 && l->weight[v] == l->weight[w]; i++)
            graph_value(l->g, (ValueId)v)->type.dim[i] = old.dim[perm[i]];
    node_set_attr(l->g, def, (Attr){.key = ATTR_perm, .n = 4, .u.ints = perm});
    return w;
}

/* The weights of both lie as [R,S,C,K]. */
static bool is_conv(const Node *n)
{
    return n->op == OP_conv2d || n->op == OP_deconv2d;
}

static void find_versions(Layout *l)
{
    const Graph *g = l->g;
    l->n_weights = g->values.len;
    l->weight = POOL_ARRAY(l->scratch, l->n_weights, ValueId);
    for (size_t v = 0; v < l->n_weights; v++)
        l->weight[v] = (ValueId)v;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; n->op == OP_minimize && k < n->n_out; k++)
            l->weight[n->out[k]] = l->weight[n->in[k + 1]];
    }
}

/* Parameters that anything but a convolution's weight operand reads keep their logical layout. */
static void find_shared(Layout *l)
{
    const Graph *g = l->g;
    l->shared = bitset_new(l->scratch, g->values.len);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; k < n->n_in && n->op != OP_minimize; k++)
            if (!is_conv(n) || k != 1)
                bitset_add(&l->shared, l->weight[n->in[k]]);
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        bitset_add(&l->shared, g->outputs.data[i].value);
}

static void convert_conv(Layout *l, NodeId id)
{
    const Node n = *graph_node(l->g, id);
    ValueId x = in_layout(l, n.in[0], true, n.loc);
    ValueId w = conv_weight(l, n.in[1], n.loc);
    set_input(l, id, 0, x);
    set_input(l, id, 1, w);
    set_flag(l, id, ATTR_nhwc, 1);
    mark(l, id);
}

static void convert_pool(Layout *l, NodeId id)
{
    const Node n = *graph_node(l->g, id);
    set_input(l, id, 0, in_layout(l, n.in[0], true, n.loc));
    set_flag(l, id, ATTR_nhwc, 1);
    mark(l, id);
}

/* What names its channels by `axis`: batch norm, lrn, and losses and softmax, which keep the
 * classes where the convolution left them.  Labels have no class axis and are the same in both
 * layouts. */
static void convert_along_axis(Layout *l, NodeId id)
{
    const Node n = *graph_node(l->g, id);
    set_input(l, id, 0, in_layout(l, n.in[0], true, n.loc));
    set_flag(l, id, ATTR_axis, 3);
    mark(l, id);
}

static void convert_point(Layout *l, NodeId id)
{
    const Node n = *graph_node(l->g, id);
    for (int i = 0; i < n.n_in; i++)
        if (op_table[n.op].access->in_step(l->g, &n, i)) /* not a generator's state */
            set_input(l, id, i, broadcast_operand(l, n.in[i], n.loc));
    mark(l, id);
}

static void convert_moving(Layout *l, NodeId id)
{
    const Node n = *graph_node(l->g, id);
    for (int i = 0; i < n.n_in; i++)
        set_input(l, id, i, in_layout(l, n.in[i], true, n.loc));
    if (n.op == OP_concat)
        set_flag(l, id, ATTR_axis, AXIS[node_int(&n, ATTR_axis, 0)]);
    static const AttrKey per_axis[] = {ATTR_start, ATTR_limit, ATTR_step, ATTR_lo, ATTR_hi};
    for (size_t k = 0; k < sizeof per_axis / sizeof *per_axis; k++)
        permute_ints(l, id, per_axis[k]);
    mark(l, id);
}

static void convert_reduction(Layout *l, NodeId id)
{
    const Node n = *graph_node(l->g, id);
    int count;
    const int64_t *axes = node_ints(&n, ATTR_axes, &count);
    int64_t *moved = POOL_ARRAY(l->g->pool, (size_t)count, int64_t);
    int k = 0;
    for (int64_t a = 0; a < 4; a++) /* sorted in the new order */
        for (int i = 0; i < count; i++)
            if (AXIS[axes[i]] == a)
                moved[k++] = a;
    set_input(l, id, 0, in_layout(l, n.in[0], true, n.loc));
    node_set_attr(l->g, graph_node(l->g, id),
                  (Attr){.key = ATTR_axes, .n = count, .u.ints = moved});
    mark(l, id);
}

static bool is_image(const Layout *l, ValueId v)
{
    return value_type(l->g, v)->rank == 4 && l->nhwc[v];
}

static bool any_image_input(const Layout *l, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (is_image(l, n->in[i]))
            return true;
    return false;
}

/* Reductions that leave [N,C] or [N,C,1,1]: the only ones whose result is the same in both layouts,
 * or an image. */
static bool reduces_pixels(const Node *n)
{
    int count;
    const int64_t *axes = node_ints(n, ATTR_axes, &count);
    return axes && ((count == 2 && axes[0] == 2 && axes[1] == 3) || node_flag(n, ATTR_keepdims));
}

/* The rules of the column `layout`: take the node's images channels-last, or return false and see
 * logical order. */
typedef bool LayoutRule(Layout *l, NodeId id);

static bool layout_logical(Layout *l, NodeId id)
{
    (void)l, (void)id;
    return false;
}

/* A weight as a loss has moved it lies as it did before. */
static bool layout_weights(Layout *l, NodeId id)
{
    (void)l, (void)id;
    return true;
}

static bool layout_conv(Layout *l, NodeId id)
{
    bool takes = !node_flag(graph_node(l->g, id), ATTR_nhwc);
    if (takes)
        convert_conv(l, id);
    return takes;
}

static bool layout_pool(Layout *l, NodeId id)
{
    bool takes = !node_flag(graph_node(l->g, id), ATTR_nhwc);
    if (takes)
        convert_pool(l, id);
    return takes;
}

static bool layout_channels(Layout *l, NodeId id)
{
    const Node *n = graph_node(l->g, id);
    bool takes = value_type(l->g, n->in[0])->rank == 4 && node_int(n, ATTR_axis, 1) == 1;
    if (takes)
        convert_along_axis(l, id);
    return takes;
}

static bool layout_point(Layout *l, NodeId id)
{
    const Node *n = graph_node(l->g, id);
    bool takes = value_type(l->g, n->out[0])->rank == 4 && any_image_input(l, n);
    if (takes)
        convert_point(l, id);
    return takes;
}

static bool layout_moving(Layout *l, NodeId id)
{
    bool takes = any_image_input(l, graph_node(l->g, id));
    if (takes)
        convert_moving(l, id);
    return takes;
}

static bool layout_pixels(Layout *l, NodeId id)
{
    const Node *n = graph_node(l->g, id);
    bool takes = any_image_input(l, n) && reduces_pixels(n);
    if (takes)
        convert_reduction(l, id);
    return takes;
}

static bool layout_along(Layout *l, NodeId id)
{
    const Node *n = graph_node(l->g, id);
    bool takes = is_image(l, n->in[0]) && node_int(n, ATTR_axis, 3) == 1;
    if (takes)
        convert_along_axis(l, id);
    return takes;
}

static LayoutRule *const layout_rules[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           layout, ...)                                                                            \
    [OP_##name] = layout_##layout,
#include "ir/ops.def"
#undef OP
};

static void keep_logical(Layout *l, NodeId id)
{
    const Node n = *graph_node(l->g, id);
    for (int i = 0; i < n.n_in; i++)
        if (is_image(l, n.in[i]))
            set_input(l, id, i, in_layout(l, n.in[i], false, n.loc));
}

static void convert(Layout *l, NodeId id)
{
    if (!layout_rules[graph_node(l->g, id)->op](l, id))
        keep_logical(l, id);
}

/* Results leave the graph in logical order. */
static void restore_outputs(Layout *l)
{
    for (size_t i = 0; i < l->g->outputs.len; i++) {
        ValueId v = l->g->outputs.data[i].value;
        if (is_image(l, v))
            l->g->outputs.data[i].value = in_layout(l, v, false, (Loc){0});
    }
}

bool pass_layout(PassContext *ctx)
{
    Pool *scratch = pool_new_child(ctx->pool);
    Layout l = {.g = ctx->graph, .scratch = scratch};
    find_versions(&l);
    find_shared(&l);
    layout_grow(&l, ctx->graph->values.len);
    l.r = rewrite_begin(ctx->graph, scratch);
    for (size_t i = 0; i < l.r.n_old; i++) {
        NodeId id = l.r.old_order[i];
        convert(&l, id);
        rewrite_keep(&l.r, id);
    }
    restore_outputs(&l);
    rewrite_end(&l.r);
    pool_free(scratch);
    return true;
}
