/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fusion: trees of element-wise operations become one kernel, and may follow a matrix product or
 * convolution as its epilogue.  Decided before, and independently of, any memory budget.
 *
 * A group is a tree: every value inside it is used once, inside it.  It runs where its last
 * operation ran, which is legal unless a persistent tensor that it reads is overwritten in between.
 *
 * Random numbers depend on nothing but their key and place: where several operations read them,
 * each draws them itself, and they are no tensor. */
#include "ir/product.h"
#include "ir/support/bitset.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

enum { GROUP_MAX_INPUTS = 24, GROUP_MAX_NODES = 48 };

typedef struct Fuser {
    Graph *g;
    Pool *scratch;
    const int *uses;
    Places places;
    int *group_of; /* by node: index of its group, -1 */
    ValueId
        *inner;  /* by value: its copy in the body under construction; VALUE_NONE between bodies */
    Bitset made; /* values computed in that body; empty between bodies */
} Fuser;

typedef struct Group {
    VEC(NodeId) nodes; /* in order; the last one is the root */
    bool has_matrix, merged;
} Group;

static OpClass class_of(const Graph *g, NodeId n)
{
    return op_table[graph_node(g, n)->op].op_class;
}

/* Weight gradients of other convolutions gather their sums in the result: what follows them must
 * not write a tensor that it reads.  Libraries take nothing in. */
static bool may_start_group(const Graph *g, NodeId id)
{
    const Node *n = graph_node(g, id);
    if (node_attr(n, ATTR_library))
        return false;
    return class_of(g, id) == OP_CLASS_POINT ||
           (class_of(g, id) == OP_CLASS_MATRIX &&
            (n->op != OP_conv2d_wgrad || (g->train.rule.gradient_free && conv_is_pointwise(g, n))));
}

/* Moving the reads of group b to the place of node `to` must not pass an overwrite. */
static bool reads_survive(const Fuser *f, const Group *b, NodeId to)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        const Node *n = graph_node(f->g, b->nodes.data[i]);
        for (int k = 0; k < n->n_in; k++)
            if (!read_survives(f->g, &f->places, n->in[k], f->places.position[to]))
                return false;
    }
    return true;
}

static int group_inputs(const Fuser *f, const Group *a, const Group *b)
{
    int n = 0;
    for (size_t i = 0; i < a->nodes.len; i++)
        n += graph_node(f->g, a->nodes.data[i])->n_in;
    for (size_t i = 0; i < b->nodes.len; i++)
        n += graph_node(f->g, b->nodes.data[i])->n_in;
    return n - (int)(a->nodes.len + b->nodes.len) + 2; /* every inner edge joins two */
}

static bool group_has_index_op(const Fuser *f, const Group *a)
{
    for (size_t i = 0; i < a->nodes.len; i++)
        if (op_table[graph_node(f->g, a->nodes.data[i])->op].access->needs_index)
            return true;
    return false;
}

static bool may_merge(const Fuser *f, const Group *a, const Group *b, NodeId root, ValueId v)
{
    const Node *producer = value_node(f->g, v), *consumer = graph_node(f->g, root);
    if (f->uses[v] != 1 || graph_value(f->g, v)->writes != VALUE_NONE ||
        producer->hint != consumer->hint || producer->n_out != 1 ||
        !type_same_shape(value_type(f->g, v), value_type(f->g, consumer->out[0])))
        return false;
    if (a->has_matrix && b->has_matrix)
        return false;
    if ((a->has_matrix || b->has_matrix) && (group_has_index_op(f, a) || group_has_index_op(f, b)))
        return false;
    return a->nodes.len + b->nodes.len <= GROUP_MAX_NODES &&
           group_inputs(f, a, b) <= GROUP_MAX_INPUTS && reads_survive(f, b, root);
}

/* Nodes of b come before those of a: b feeds a's root only, and a's earlier nodes do not depend on
 * its place. */
static void merge(Fuser *f, Group *groups, int a, int b)
{
    Group joined = {.has_matrix = groups[a].has_matrix || groups[b].has_matrix};
    size_t i = 0, k = 0;
    while (i < groups[a].nodes.len || k < groups[b].nodes.len) {
        bool from_b = k < groups[b].nodes.len &&
                      (i == groups[a].nodes.len || f->places.position[groups[b].nodes.data[k]] <
                                                       f->places.position[groups[a].nodes.data[i]]);
        vec_push(f->scratch, &joined.nodes,
                 from_b ? groups[b].nodes.data[k++] : groups[a].nodes.data[i++]);
    }
    for (k = 0; k < groups[b].nodes.len; k++)
        f->group_of[groups[b].nodes.data[k]] = a;
    groups[b].merged = true;
    groups[a] = joined;
}

static bool is_random(const Graph *g, ValueId v)
{
    return value_node(g, v)->op == OP_random;
}

/* The inputs of a node, latest producer first.  A group runs where its last operation ran: the sum
 * of two matrix products should take in the later one, for the earlier one would keep its operands
 * alive until then.  Random numbers come last: a product that they keep out of the group is a
 * tensor more, and they are not. */
static int latest_first(const Fuser *f, const Node *n, ValueId *in)
{
    int count = 0;
    for (int i = 0; i < n->n_in; i++) {
        bool waits = is_random(f->g, n->in[i]);
        size_t at = waits ? 0 : f->places.position[graph_value(f->g, n->in[i])->def];
        int k = count++;
        while (k > 0 && f->places.position[graph_value(f->g, in[k - 1])->def] < at) {
            in[k] = in[k - 1];
            k--;
        }
        in[k] = n->in[i];
    }
    return count;
}

static void grow_group(Fuser *f, Group *groups, int a)
{
    ValueId in[GROUP_MAX_INPUTS];
    NodeId root = groups[a].nodes.data[0];
    const Node *n = graph_node(f->g, root);
    int n_in = latest_first(f, n, in);
    for (int i = 0; i < n_in; i++) {
        int b = f->group_of[graph_value(f->g, in[i])->def];
        if (b >= 0 && b != a && may_merge(f, &groups[a], &groups[b], root, in[i]))
            merge(f, groups, a, b);
    }
}

/* The body under construction and the outer values it reads. */
typedef struct BodyBuilder {
    Fuser *f;
    Graph *body;
    VEC(ValueId) inputs, copied; /* copied: all that have an entry in f->inner */
} BodyBuilder;

static ValueId note_inner(BodyBuilder *b, ValueId outer, ValueId inner)
{
    vec_push(b->f->scratch, &b->copied, outer);
    return b->f->inner[outer] = inner;
}

static ValueId body_input(BodyBuilder *b, ValueId outer)
{
    if (b->f->inner[outer] != VALUE_NONE)
        return b->f->inner[outer];
    const Graph *g = b->f->g;
    const Node *def = value_node(g, outer);
    double c;
    if (const_value(g, outer, &c))
        return note_inner(b, outer, graph_add_const(b->body, c, value_type(g, outer)->dtype));
    AttrList none = {0};
    vec_push(b->f->scratch, &b->inputs, outer);
    return note_inner(b, outer,
                      graph_add_source(b->body, OP_input, *value_type(g, outer), &none,
                                       graph_value(g, outer)->name, def->loc));
}

static void body_node(BodyBuilder *b, const Node *n)
{
    ValueId in[GROUP_MAX_INPUTS];
    for (int i = 0; i < n->n_in; i++)
        in[i] = body_input(b, n->in[i]);
    AttrList attrs = {.n = n->n_attr};
    if (n->n_attr)
        memcpy(attrs.items, n->attr, (size_t)n->n_attr * sizeof(Attr));
    note_inner(b, n->out[0],
               graph_add(b->body, n->op, in, n->n_in, &attrs, graph_value(b->f->g, n->out[0])->name,
                         n->loc));
}

static void forget_body(Fuser *f, const Group *group, const BodyBuilder *b)
{
    for (size_t i = 0; i < b->copied.len; i++)
        f->inner[b->copied.data[i]] = VALUE_NONE;
    for (size_t i = 0; i < group->nodes.len; i++)
        bitset_remove(&f->made, graph_node(f->g, group->nodes.data[i])->out[0]);
}

/* Where a group is: where its root is, or, of one outside of any part of the model, as a ReLU may
 * be behind a layer, where the first operation is that is inside of one. */
static Loc group_loc(const Graph *g, const Group *group, Loc root)
{
    for (size_t i = 0; !root.path && i < group->nodes.len; i++)
        if (graph_node(g, group->nodes.data[i])->loc.path)
            root = graph_node(g, group->nodes.data[i])->loc;
    return root;
}

/* The root node becomes the fused node: its value keeps its identity and name. */
static void fuse_group(Fuser *f, const Group *group)
{
    Graph *g = f->g;
    BodyBuilder b = {.f = f, .body = graph_new(g->pool, "fused")};
    Node *root = graph_node(g, group->nodes.data[group->nodes.len - 1]);
    /* Inputs first, in order of use; then the operations. */
    for (size_t i = 0; i < group->nodes.len; i++)
        bitset_add(&f->made, graph_node(g, group->nodes.data[i])->out[0]);
    for (size_t i = 0; i < group->nodes.len; i++) {
        const Node *n = graph_node(g, group->nodes.data[i]);
        for (int k = 0; k < n->n_in; k++)
            if (!bitset_has(&f->made, n->in[k]))
                body_input(&b, n->in[k]);
    }
    for (size_t i = 0; i < group->nodes.len; i++)
        body_node(&b, graph_node(g, group->nodes.data[i]));
    graph_add_output(b.body, "out", f->inner[root->out[0]]);
    root->loc = group_loc(g, group, root->loc);
    become_group(g, root, b.body, b.inputs.data, (int)b.inputs.len);
    forget_body(f, group, &b);
}

static void rebuild_order(Fuser *f, const Group *groups)
{
    Graph *g = f->g;
    size_t kept = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        NodeId n = g->order.data[i];
        int group = f->group_of[n];
        bool inner = group >= 0 && groups[group].nodes.data[groups[group].nodes.len - 1] != n;
        if (!inner)
            g->order.data[kept++] = n;
    }
    g->order.len = kept;
}

/* --- random numbers, drawn by each of their readers --- */

static int reads_of(const Node *n, ValueId v)
{
    int reads = 0;
    for (int i = 0; i < n->n_in; i++)
        reads += n->in[i] == v;
    return reads;
}

/* By value: how many readers could draw it, that is element-wise ones of its shape. */
static int *count_drawers(const Graph *g, Pool *scratch)
{
    int *drawers = POOL_ARRAY(scratch, g->values.len, int);
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        for (int i = 0; i < n->n_in; i++)
            if (op_table[n->op].op_class == OP_CLASS_POINT &&
                type_same_shape(value_type(g, n->in[i]), value_type(g, n->out[0])))
                drawers[n->in[i]]++;
    }
    return drawers;
}

/* Random numbers v once more, for a reader with this hint. */
static ValueId draw_again(Graph *g, ValueId v, RematHint hint)
{
    const Node *n = value_node(g, v);
    ValueId again = graph_add_like(g, n, n->in, NULL, NULL);
    value_node(g, again)->hint = hint;
    return again;
}

/* left: by value, readers that are yet to come; 0 for what is to stay as it is. */
static void draw_for(Graph *g, NodeId reader, int *left, ValueId n_values)
{
    for (int i = 0; i < graph_node(g, reader)->n_in; i++) {
        ValueId v = graph_node(g, reader)->in[i];
        int reads = reads_of(graph_node(g, reader), v);
        if (v >= n_values || left[v] <= reads)
            continue;
        left[v] -= reads;
        ValueId again = draw_again(g, v, graph_node(g, reader)->hint);
        for (int k = 0; k < graph_node(g, reader)->n_in; k++)
            if (graph_node(g, reader)->in[k] == v)
                graph_node(g, reader)->in[k] = again;
    }
}

/* Each reader but the last draws again, unless one of them needs a tensor. */
static void draw_where_read(Graph *g, Pool *scratch)
{
    int *left = count_drawers(g, scratch), *uses = count_uses(g, scratch);
    ValueId n_values = (ValueId)g->values.len;
    for (ValueId v = 0; v < n_values; v++)
        if (!is_random(g, v) || value_node(g, v)->hint != REMAT_AUTO || left[v] != uses[v])
            left[v] = 0;
    Rewrite r = rewrite_begin(g, scratch);
    for (size_t i = 0; i < r.n_old; i++) {
        draw_for(g, r.old_order[i], left, n_values);
        rewrite_keep(&r, r.old_order[i]);
    }
    rewrite_end(&r);
}

bool pass_fuse(PassContext *ctx)
{
    Graph *g = ctx->graph;
    Pool *scratch = pool_new_child(ctx->pool);
    draw_where_read(g, scratch);
    Fuser f = {.g = g, .scratch = scratch, .uses = count_uses(g, scratch)};
    f.places = note_places(g, scratch);
    f.group_of = POOL_ARRAY(scratch, g->nodes.len, int);
    memset(f.group_of, 0xff, g->nodes.len * sizeof(int));
    f.inner = POOL_ARRAY(scratch, g->values.len, ValueId);
    memset(f.inner, 0xff, g->values.len * sizeof(ValueId));
    f.made = bitset_new(scratch, g->values.len);
    Group *groups = POOL_ARRAY(scratch, g->order.len, Group);
    int n_groups = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        NodeId n = g->order.data[i];
        if (!may_start_group(g, n))
            continue;
        f.group_of[n] = n_groups;
        groups[n_groups].has_matrix = class_of(g, n) == OP_CLASS_MATRIX;
        vec_push(scratch, &groups[n_groups].nodes, n);
        if (!groups[n_groups].has_matrix)
            grow_group(&f, groups, n_groups);
        n_groups++;
    }
    for (int k = 0; k < n_groups; k++)
        if (!groups[k].merged && groups[k].nodes.len > 1)
            fuse_group(&f, &groups[k]);
    rebuild_order(&f, groups);
    bool ok = pass_dce(ctx); /* constants that moved into bodies */
    pool_free(scratch);
    return ok;
}
