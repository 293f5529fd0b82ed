/* SPDX-License-Identifier: GPL-3.0-or-later */
/* More classes than there are, so that every row of logits begins where a library can read fast.
 *
 * Products of bf16 and of TF32 want rows of a multiple of 16 bytes.  With 50,257 classes they are
 * none, and the three products of a language model's head - logits, and both gradients - are done
 * at a fifth of the speed.  Here such a head gets a few classes more: rows of zeros in the weights,
 * and a bias so low that e^x is 0, so that the loss and its gradient are what they were.  Only
 * where logits go nowhere but into the loss, and the loss's gradient only into these products. */
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

enum {
    ROW_ELEMENTS = 8, /* 16 bytes of bf16 */
    LEAST = 1024 /* classes; with fewer, the products are no part of a step's time that shows */
};
static const double NEVER = -3e38; /* a bf16, too */

typedef struct Classes {
    PassContext *ctx;
    Rewrite r;
    UseList *uses; /* by value that was there */
    bool *is_output;
    ValueId *wide;   /* by weights: with more classes, or VALUE_NONE */
    bool *is_wide;   /* by value: logits and their gradients with more classes */
    size_t n_values; /* that were there */
} Classes;

static int64_t last_dim(const Graph *g, ValueId v)
{
    const Type *t = value_type(g, v);
    return t->dim[t->rank - 1];
}

static int64_t added(int64_t classes)
{
    return (ROW_ELEMENTS - classes % ROW_ELEMENTS) % ROW_ELEMENTS;
}

/* --- which --- */

static bool along_last(const Graph *g, const Node *n)
{
    return node_int(n, ATTR_axis, 1) == value_type(g, n->in[0])->rank - 1 &&
           node_float(n, ATTR_smoothing, 0) == 0;
}

static bool users_fit(const Classes *c, ValueId v);

static bool user_fits(const Classes *c, ValueId v, Use use)
{
    const Graph *g = c->ctx->graph;
    const Node *n = graph_node(g, use.node);
    switch ((int)n->op) {
    case OP_cross_entropy:
    case OP_accuracy:
        return use.input == 0 && n->n_in == 2 && along_last(g, n);
    case OP_cross_entropy_grad:
        return use.input == 0 && n->n_in == 3 && along_last(g, n) && users_fit(c, n->out[0]);
    case OP_reshape:
        return last_dim(g, n->out[0]) == last_dim(g, v) && users_fit(c, n->out[0]);
    case OP_linear: /* its weights get as many classes */
        return use.input == 0 && n->in[1] != v;
    case OP_matmul: /* a gradient of weights, cut to what it was */
        return n->in[0] != n->in[1] &&
               (use.input == 0 ? node_flag(n, ATTR_ta) : !node_flag(n, ATTR_tb));
    default:
        return false;
    }
}

static bool users_fit(const Classes *c, ValueId v)
{
    bool fit = !c->is_output[v];
    for (size_t i = 0; fit && i < c->uses[v].len; i++)
        fit = user_fits(c, v, c->uses[v].data[i]);
    return fit;
}

static bool by_tensor_cores(const Graph *g, DType type)
{
    const char *precision = g->train.precision;
    return type == DTYPE_BF16 || (precision && strcmp(precision, "tf32") == 0);
}

/* Whether n makes logits that get more classes, of weights in *use's type. */
static bool is_head(const Classes *c, const Node *n, LibraryUse *use)
{
    const Graph *g = c->ctx->graph;
    const LibraryQuery ask = {.archs = c->ctx->archs, .result = VALUE_NONE};
    if (n->op != OP_linear || last_dim(g, n->out[0]) < LEAST ||
        added(last_dim(g, n->out[0])) == 0 ||
        !by_tensor_cores(g, value_type(g, n->out[0])->dtype) || !users_fit(c, n->out[0]))
        return false;
    return c->ctx->library(g, n, &ask, use) && !use->missing;
}

/* --- more classes --- */

static ValueId pad_end(Graph *g, ValueId v, int dim, double value, RematHint hint)
{
    AttrList attrs = {0};
    int64_t lo[TYPE_MAX_RANK] = {0}, hi[TYPE_MAX_RANK] = {0};
    const Type *t = value_type(g, v);
    hi[dim] = added(t->dim[dim]);
    attrs_ints(&attrs, ATTR_lo, lo, t->rank);
    attrs_ints(&attrs, ATTR_hi, hi, t->rank);
    if (value != 0)
        attrs_float(&attrs, ATTR_value, value);
    const char *name = pool_printf(g->pool, "%%%s.padded", graph_value(g, v)->name + 1);
    ValueId padded = graph_add(g, OP_pad, &v, 1, &attrs, name, value_node(g, v)->loc);
    value_node(g, padded)->hint = hint;
    return padded;
}

/* Both directions of a head read the same. */
static ValueId wide_weights(Classes *c, ValueId w, int dim, DType type, RematHint hint)
{
    Graph *g = c->ctx->graph;
    bool known = w < c->n_values;
    if (known && c->wide[w] != VALUE_NONE)
        return c->wide[w];
    ValueId v = value_type(g, w)->dtype == type ? w : graph_add_cast(g, w, type, hint);
    v = pad_end(g, v, dim, 0, hint);
    if (known)
        c->wide[w] = v;
    return v;
}

static ValueId wide_bias(Classes *c, ValueId bias, int64_t classes, RematHint hint)
{
    Graph *g = c->ctx->graph;
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, &classes, 1);
    if (bias == VALUE_NONE)
        bias = graph_add(g, OP_full, NULL, 0, &attrs, NULL, (Loc){0});
    return pad_end(g, bias, 0, NEVER, hint);
}

/* Where the classes are in the weights of a linear. */
static int class_dim(const Node *linear, bool of_result)
{
    return node_flag(linear, ATTR_in_out) == of_result;
}

static void widen_head(Classes *c, NodeId id, const LibraryUse *use)
{
    Graph *g = c->ctx->graph;
    const Node n = *graph_node(g, id);
    ValueId *in = POOL_ARRAY(g->pool, 3, ValueId);
    in[0] = n.in[0];
    in[1] = wide_weights(c, n.in[1], class_dim(&n, true), use->factors, n.hint);
    in[2] = wide_bias(c, n.n_in == 3 ? n.in[2] : VALUE_NONE, last_dim(g, n.out[0]), n.hint);
    graph_node(g, id)->in = in;
    graph_node(g, id)->n_in = 3;
    node_retype(g, id);
    c->is_wide[n.out[0]] = true;
    rewrite_keep(&c->r, id);
}

/* The gradient of weights, without those that are not there. */
static void cut_gradient(Classes *c, NodeId id)
{
    Graph *g = c->ctx->graph;
    const ValueId v = graph_node(g, id)->out[0];
    const Type old = *value_type(g, v);
    const int64_t start[TYPE_MAX_RANK] = {0};
    AttrList attrs = {0};
    rewrite_keep(&c->r, id);
    node_retype(g, id);
    attrs_ints(&attrs, ATTR_start, start, old.rank);
    attrs_ints(&attrs, ATTR_limit, old.dim, old.rank);
    const char *name = pool_printf(g->pool, "%%%s.cut", graph_value(g, v)->name + 1);
    rewrite_replace(&c->r, v, graph_add(g, OP_slice, &v, 1, &attrs, name, graph_node(g, id)->loc));
}

static void widen_shape(Graph *g, Node *n)
{
    int rank;
    const int64_t *old = node_ints(n, ATTR_shape, &rank);
    int64_t *shape = POOL_ARRAY(g->pool, (size_t)rank, int64_t);
    memcpy(shape, old, (size_t)rank * sizeof *shape);
    shape[rank - 1] += added(shape[rank - 1]);
    node_set_attr(g, n, (Attr){.key = ATTR_shape, .n = rank, .u.ints = shape});
}

/* A reader of what has more classes: it has them, too, or copes. */
static void follow(Classes *c, NodeId id)
{
    Graph *g = c->ctx->graph;
    Node *n = graph_node(g, id);
    if (n->op == OP_matmul) {
        cut_gradient(c, id);
        return;
    }
    if (n->op == OP_linear) {
        DType type = value_type(g, n->in[0])->dtype;
        ValueId w = wide_weights(c, n->in[1], class_dim(n, false), type, n->hint);
        graph_node(g, id)->in[1] = w;
    }
    if (n->op == OP_reshape)
        widen_shape(g, n);
    if (n->op == OP_reshape || n->op == OP_cross_entropy_grad) {
        node_retype(g, id);
        c->is_wide[n->out[0]] = true;
    }
    rewrite_keep(&c->r, id);
}

static void visit(Classes *c, NodeId id)
{
    LibraryUse use;
    rewrite_inputs(&c->r, id);
    const Node *n = graph_node(c->ctx->graph, id);
    bool reads_wide = false;
    for (int i = 0; i < n->n_in; i++)
        reads_wide |= n->in[i] < c->n_values && c->is_wide[n->in[i]];
    if (reads_wide)
        follow(c, id);
    else if (is_head(c, n, &use))
        widen_head(c, id, &use);
    else
        rewrite_keep(&c->r, id);
}

bool pass_classes(PassContext *ctx)
{
    if (!ctx->library)
        return true;
    Pool *scratch = pool_new_child(ctx->pool);
    Classes c = {.ctx = ctx, .n_values = ctx->graph->values.len};
    c.uses = list_uses(ctx->graph, scratch, 0);
    c.is_output = mark_outputs(ctx->graph, scratch);
    c.is_wide = POOL_ARRAY(scratch, c.n_values + 1, bool);
    c.wide = POOL_ARRAY(scratch, c.n_values + 1, ValueId);
    memset(c.wide, 0xff, c.n_values * sizeof *c.wide);
    c.r = rewrite_begin(ctx->graph, scratch);
    for (size_t i = 0; i < c.r.n_old; i++)
        visit(&c, c.r.old_order[i]);
    rewrite_end(&c.r);
    pool_free(scratch);
    return true;
}
