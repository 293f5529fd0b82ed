/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batch normalization by running statistics behind a convolution or a linear layer is a scale and a
 * shift of each output channel, which weight and bias can have in them (Jacob et al. 2018, section
 * 3.2).  The graph gets a new weight and a new bias; what they are made of is for
 * folded_norm_weight and folded_norm_bias, when the weights are known. */
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct Folder {
    PassContext *ctx;
    Rewrite rewrite;
    int *uses;      /* by value */
    NodeId *reader; /* by value: of one that is read once */
    bool *done;     /* by node: a normalization that is folded */
} Folder;

/* The dimension of the output channels of a layer's weight; -1 for other operations. */
static int channel_axis(const Node *n)
{
    switch ((int)n->op) {
    case OP_conv2d:
        return 0;
    case OP_deconv2d:
        return node_int(n, ATTR_groups, 1) == 1 ? 1 : -1;
    case OP_linear:
        return node_flag(n, ATTR_in_out) ? 1 : 0;
    default:
        return -1;
    }
}

static bool are_persistent(const Graph *g, const ValueId *in, int n)
{
    for (int i = 0; i < n; i++)
        if (!node_is_persistent(value_node(g, in[i])))
            return false;
    return true;
}

/* The normalization that alone reads a layer's result, when it can go into the layer; NULL: none.
 */
static const Node *norm_behind(const Folder *f, const Node *layer)
{
    const Graph *g = f->ctx->graph;
    if (channel_axis(layer) < 0 || f->uses[layer->out[0]] != 1 ||
        f->reader[layer->out[0]] == NODE_NONE)
        return NULL;
    const Node *norm = graph_node(g, f->reader[layer->out[0]]);
    bool folds = norm->op == OP_bn_apply && norm->in[0] == layer->out[0] &&
                 are_persistent(g, norm->in + 1, 4) &&
                 are_persistent(g, layer->in + 1, layer->n_in - 1);
    /* channels are dimension 1, of a linear layer of sequences the steps */
    return folds && (layer->op != OP_linear || value_type(g, layer->out[0])->rank == 2) ? norm
                                                                                        : NULL;
}

/* Outlives the graph. */
static const char *name_of(const Folder *f, ValueId v)
{
    return pool_strdup(f->ctx->pool, graph_value(f->ctx->graph, v)->name + 1);
}

static ValueId new_param(Graph *g, const char *like, const char *what, Type type, Loc loc)
{
    AttrList attrs = {.n = 0};
    attrs_string(&attrs, ATTR_init, "zeros");
    size_t dot = strlen(like) - (strrchr(like, '.') ? strlen(strrchr(like, '.')) : 0);
    return graph_add_source(g, OP_param, type, &attrs,
                            pool_printf(g->pool, "$%.*s.folded_%s", (int)dot, like, what), loc);
}

/* Adds the layer with the normalization in it; the new order has it in the place of both. */
static void fold(Folder *f, NodeId layer_id, const Node *norm)
{
    Graph *g = f->ctx->graph;
    const Node layer = *graph_node(g, layer_id),
               behind = *norm; /* nodes move when some are added */
    FoldedNorm n = {.weight = name_of(f, layer.in[1]),
                    .bias = layer.n_in > 2 ? name_of(f, layer.in[2]) : NULL,
                    .mean = name_of(f, behind.in[1]),
                    .variance = name_of(f, behind.in[2]),
                    .scale = name_of(f, behind.in[3]),
                    .shift = name_of(f, behind.in[4]),
                    .eps = node_float(&behind, ATTR_eps, 1e-5),
                    .axis = channel_axis(&layer)};
    ValueId in[] = {layer.in[0],
                    new_param(g, n.weight, "weight", *value_type(g, layer.in[1]), layer.loc),
                    new_param(g, n.weight, "bias", *value_type(g, behind.in[3]), layer.loc)};
    n.folded_weight = name_of(f, in[1]);
    n.folded_bias = name_of(f, in[2]);
    AttrList attrs = {.n = layer.n_attr};
    for (int i = 0; i < layer.n_attr; i++)
        attrs.items[i] = layer.attr[i];
    ValueId y = graph_add(g, layer.op, in, 3, &attrs, NULL, layer.loc);
    rewrite_inputs(&f->rewrite, graph_value(g, y)->def);
    rewrite_replace(&f->rewrite, behind.out[0], y);
    f->done[graph_value(g, behind.out[0])->def] = true;
    vec_push(f->ctx->pool, &f->ctx->folded, n);
}

/* Persistent tensors that nothing reads any more: an inference has no use for them. */
static void drop_unread(Graph *g, Pool *scratch)
{
    const int *uses = count_uses(g, scratch);
    size_t n = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *node = graph_node(g, g->order.data[i]);
        if (!node_is_persistent(node) || uses[node->out[0]] > 0)
            g->order.data[n++] = g->order.data[i];
    }
    g->order.len = n;
}

static void find_readers(Folder *f, Pool *scratch)
{
    const Graph *g = f->ctx->graph;
    f->uses = count_uses(g, scratch);
    f->reader = POOL_ARRAY(scratch, g->values.len + 1, NodeId);
    for (size_t v = 0; v < g->values.len; v++)
        f->reader[v] = NODE_NONE;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; k < n->n_in; k++)
            f->reader[n->in[k]] = g->order.data[i];
    }
}

bool pass_fold_norms(PassContext *ctx)
{
    Graph *g = ctx->graph;
    Pool *scratch = pool_new_child(ctx->pool);
    Folder f = {.ctx = ctx, .done = POOL_ARRAY(scratch, g->nodes.len + 1, bool)};
    find_readers(&f, scratch);
    f.rewrite = rewrite_begin(g, scratch);
    for (size_t i = 0; i < f.rewrite.n_old; i++) {
        NodeId id = f.rewrite.old_order[i];
        const Node *norm = norm_behind(&f, graph_node(g, id));
        if (norm)
            fold(&f, id, norm);
        else if (!f.done[id])
            rewrite_keep(&f.rewrite, id);
    }
    rewrite_end(&f.rewrite);
    drop_unread(g, scratch);
    pool_free(scratch);
    return true;
}
