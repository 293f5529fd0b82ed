/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pass: a forward graph becomes the whole training step.  docs/autodiff.md describes the
 * result.
 *
 * The step is built as a new graph: the persistent tensors and inputs, then for every micro-batch
 * the forward nodes and their gradients, then the averaged outputs and the optimizer. */
#include "passes/autodiff/autodiff.h"
#include "passes/autodiff/names.h"
#include "passes/autodiff/optim.h"
#include "passes/pass.h"

#include "ir/support/bug.h"

#include <string.h>

typedef struct Builder {
    PassContext *ctx;
    const Graph *from;
    Graph *to;
    Pool *scratch;
    int64_t micro;       /* micro-batches in a step */
    ValueId *map;        /* value of `from` -> its value in the micro-batch being built */
    ValueId *home;       /* persistent value of `from` -> the same in `to`, whatever map says */
    ValueId *results;    /* [output of from][micro-batch] */
    VEC(ValueId) params; /* in `to`: all of float type that are not frozen, in order */
    VEC(ValueId) batch;  /* pairs: an input of `from`, all micro-batches of it in `to` */
    ValueId *grads;      /* by parameter, added up over the micro-batches */
} Builder;

static const Loc nowhere = {0};

static bool check_unfused(PassContext *ctx)
{
    const Graph *g = ctx->graph;
    for (size_t i = 0; i < g->order.len; i++)
        if (graph_node(g, g->order.data[i])->op == OP_fused)
            return pass_fail(ctx, "E613", "autodiff does not differentiate fused operations",
                             "run `autodiff` before `fuse`");
    return true;
}

static bool check_loss(PassContext *ctx)
{
    const Graph *g = ctx->graph;
    ValueId loss = graph_output(g, "loss");
    if (!g->train.present)
        return pass_fail(ctx, "E610", "there is nothing to train: the file has no train section",
                         "add `train { ... }` with a loss and an optimizer");
    if (loss == VALUE_NONE)
        return pass_fail(ctx, "E611", "there is nothing to train: no output is called 'loss'",
                         "give the train section a `loss`");
    const Type *t = value_type(g, loss);
    if (t->rank != 0 || t->dtype != DTYPE_F32)
        return pass_fail(
            ctx, "E612",
            pool_printf(ctx->pool, "the loss is %s, not one number", type_text(ctx->pool, t)),
            "take the mean: `|> mean()`");
    return true;
}

/* A step is unrolled: more operations than any model needs are a mistake in `accumulate`. */
enum { MAX_FORWARD_NODES = 1 << 20 };

/* A value [..] that the step holds as [k, ..]. */
static bool fits_stacked(const Graph *g, ValueId v)
{
    const Type *t = value_type(g, v);
    int64_t bytes;
    return t->rank < TYPE_MAX_RANK &&
           size_mul(type_bytes(t), train_micro_batches(&g->train), &bytes);
}

/* Inputs that the data source fills hold all micro-batches of a step. */
static bool is_batch(const Node *n)
{
    return n->op == OP_input && strncmp(node_string(n, ATTR_role, ""), "batch.", 6) == 0;
}

static bool check_accumulate(PassContext *ctx)
{
    const Graph *g = ctx->graph;
    int64_t k = train_micro_batches(&g->train);
    bool fits = k <= MAX_FORWARD_NODES / (int64_t)(g->order.len + 1);
    for (size_t i = 0; i < g->order.len && fits; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        fits = !is_batch(n) || fits_stacked(g, n->out[0]);
    }
    for (size_t i = 0; i < g->outputs.len && fits; i++)
        fits = fits_stacked(g, g->outputs.data[i].value);
    if (k == 1 || fits)
        return true;
    return pass_fail(
        ctx, "E615",
        pool_printf(ctx->pool, "accumulate = %lld makes the step too large", (long long)k),
        "accumulate fewer micro-batches, or make them larger");
}

static AttrList copy_attrs(const Node *n)
{
    AttrList list = {0};
    if ((size_t)n->n_attr > sizeof list.items / sizeof *list.items)
        BUG("%s has %d attributes", op_name(n->op), n->n_attr);
    if (n->n_attr)
        memcpy(list.items, n->attr, (size_t)n->n_attr * sizeof *n->attr);
    list.n = n->n_attr;
    return list;
}

static void copy_source(Builder *b, const Node *n)
{
    const Value *old = graph_value(b->from, n->out[0]);
    Type type = old->type;
    AttrList attrs = copy_attrs(n);
    if (b->micro > 1 && is_batch(n)) {
        memmove(type.dim + 1, type.dim, (size_t)type.rank * sizeof *type.dim);
        type.dim[0] = b->micro;
        type.rank++;
    }
    ValueId v = graph_add_source(b->to, n->op, type, &attrs, old->name, n->loc);
    b->map[n->out[0]] = b->home[n->out[0]] = v;
    if (b->micro > 1 && is_batch(n)) {
        vec_push(b->scratch, &b->batch, n->out[0]);
        vec_push(b->scratch, &b->batch, v);
    }
    if (n->op == OP_param && dtype_is_float(type.dtype) && !optim_is_frozen(b->to, v))
        vec_push(b->scratch, &b->params, v);
}

/* "%fc1", or "%mb2.fc1" when a step has several micro-batches. */
static const char *micro_name(const Builder *b, const char *name, int64_t j)
{
    if (b->micro == 1)
        return name;
    return pool_printf(b->to->pool,
                       "%c"
                       "mb%lld.%s",
                       name[0], (long long)j, name + 1);
}

/* Micro-batch j of an input: [k, ..] -> [..] */
static ValueId take_micro(Builder *b, ValueId whole, const char *name, int64_t j, Loc loc)
{
    Type t = *value_type(b->to, whole), part = t;
    int64_t start[TYPE_MAX_RANK] = {j}, limit[TYPE_MAX_RANK];
    memcpy(limit, t.dim, sizeof limit);
    limit[0] = j + 1;
    AttrList attrs = {0}, shape = {0};
    attrs_ints(&attrs, ATTR_start, start, t.rank);
    attrs_ints(&attrs, ATTR_limit, limit, t.rank);
    part.rank--;
    memcpy(part.dim, t.dim + 1, (size_t)part.rank * sizeof *part.dim);
    attrs_ints(&shape, ATTR_shape, part.dim, part.rank);
    const char *sliced = pool_printf(b->to->pool, "%s.slice", micro_name(b, name, j));
    ValueId v = graph_add(b->to, OP_slice, &whole, 1, &attrs, sliced, loc);
    return graph_add(b->to, OP_reshape, &v, 1, &shape, micro_name(b, name, j), loc);
}

/* Every micro-batch draws random numbers of its own. */
static AttrList micro_attrs(const Node *n, int64_t j)
{
    AttrList attrs = copy_attrs(n);
    for (int i = 0; i < attrs.n; i++)
        if (attrs.items[i].key == ATTR_key)
            attrs.items[i].u.i =
                (int64_t)((uint64_t)attrs.items[i].u.i + (uint64_t)j * 0xD1B54A32D192ED03u);
    return attrs;
}

static void shift_body_keys(Graph *body, int64_t j)
{
    for (size_t i = 0; i < body->order.len; i++) {
        Node *n = graph_node(body, body->order.data[i]);
        AttrList attrs = micro_attrs(n, j);
        if (n->n_attr)
            memcpy(n->attr, attrs.items, (size_t)n->n_attr * sizeof *n->attr);
        if (n->body)
            shift_body_keys(n->body, j);
    }
}

static ValueId scaled(Builder *b, ValueId v, double factor, const char *name, Loc loc)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, factor);
    ValueId c = graph_add_source(b->to, OP_const, type_scalar(DTYPE_F32), &attrs,
                                 pool_printf(b->to->pool, "%s.factor", name), loc);
    return graph_add(b->to, OP_mul, (const ValueId[]){v, c}, 2, NULL,
                     pool_printf(b->to->pool, "%s.part", name), loc);
}

/* Running statistics pass through the micro-batches in turn, and only the last may write them: the
 * ones before are ordinary values, (1-m) * running + m * scale * statistic. */
static void pass_on_running(Builder *b, const Node *n, int64_t j)
{
    const char *name = micro_name(b, graph_value(b->from, n->out[0])->name, j);
    double m = node_float(n, ATTR_momentum, 0.1), scale = node_float(n, ATTR_scale, 1);
    const ValueId in[2] = {scaled(b, b->map[n->in[0]], 1 - m, name, n->loc),
                           scaled(b, b->map[n->in[1]], m * scale, name, n->loc)};
    b->map[n->out[0]] = graph_add(b->to, OP_add, in, 2, NULL, name, n->loc);
}

static void copy_node(Builder *b, const Node *n, int64_t j)
{
    if (n->op == OP_bn_running && j + 1 < b->micro) {
        pass_on_running(b, n, j);
        return;
    }
    ValueId *in = POOL_ARRAY(b->scratch, (size_t)n->n_in, ValueId);
    for (int i = 0; i < n->n_in; i++)
        in[i] = b->map[n->in[i]];
    AttrList attrs = micro_attrs(n, j);
    const char *name = micro_name(b, graph_value(b->from, n->out[0])->name, j);
    ValueId first = graph_add_like(b->to, n, in, &attrs, name);
    Node *copy = value_node(b->to, first);
    copy->hint = n->hint;
    if (copy->body)
        shift_body_keys(copy->body, j);
    for (int i = 0; i < n->n_out; i++) {
        const Value *old = graph_value(b->from, n->out[i]);
        const char *wanted = micro_name(b, old->name, j);
        ValueId v = copy->out[i];
        if (strcmp(graph_value(b->to, v)->name, wanted) != 0)
            autodiff_rename(b->to, v, wanted);
        if (old->writes != VALUE_NONE)
            graph_value(b->to, v)->writes = b->home[old->writes];
        b->map[n->out[i]] = v;
    }
}

/* What comes after reads the running statistics as this micro-batch left them. */
static void advance_persistent(Builder *b, const Node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        ValueId target = graph_value(b->from, n->out[i])->writes;
        if (target != VALUE_NONE)
            b->map[target] = b->map[n->out[i]];
    }
}

static ValueId add_seed(Builder *b, ValueId loss)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, 1 / (double)b->micro);
    const char *name = pool_printf(b->to->pool, "%%d.%s", graph_value(b->to, loss)->name + 1);
    return graph_add_source(b->to, OP_const, type_scalar(DTYPE_F32), &attrs, name, nowhere);
}

/* The gradient is seeded with 1/k and added to that of the micro-batches before, so that the mean
 * of all needs no operation of its own. */
static bool add_micro_batch(Builder *b, int64_t j)
{
    for (size_t i = 0; i < b->batch.len; i += 2) {
        ValueId input = b->batch.data[i];
        b->map[input] = take_micro(b, b->batch.data[i + 1], graph_value(b->from, input)->name, j,
                                   value_node(b->from, input)->loc);
    }
    for (size_t i = 0; i < b->from->order.len; i++) {
        const Node *n = graph_node(b->from, b->from->order.data[i]);
        if (!node_is_source(n))
            copy_node(b, n, j);
    }
    for (size_t i = 0; i < b->from->outputs.len; i++)
        b->results[i * (size_t)b->micro + (size_t)j] = b->map[b->from->outputs.data[i].value];
    ValueId loss = b->map[graph_output(b->from, "loss")];
    const char *refused = autodiff_gradients(b->to, loss, add_seed(b, loss), b->params.data,
                                             (int)b->params.len, b->grads);
    if (refused)
        return pass_fail(b->ctx, "E617", refused,
                         "write the products and the softmax that it stands for");
    for (size_t i = 0; i < b->from->order.len; i++)
        advance_persistent(b, graph_node(b->from, b->from->order.data[i]));
    return true;
}

/* (v0 + v1 + ..) / k */
static ValueId mean_of(Builder *b, const char *name, const ValueId *v)
{
    ValueId sum = v[0];
    for (int64_t j = 1; j < b->micro; j++)
        sum = graph_add(b->to, OP_add, (const ValueId[]){sum, v[j]}, 2, NULL,
                        pool_printf(b->to->pool, "%%%s.sum", name), nowhere);
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, 1 / (double)b->micro);
    ValueId factor = graph_add_source(b->to, OP_const, type_scalar(DTYPE_F32), &attrs,
                                      pool_printf(b->to->pool, "%%%s.part", name), nowhere);
    return graph_add(b->to, OP_mul, (const ValueId[]){sum, factor}, 2, NULL,
                     pool_printf(b->to->pool, "%%%s.mean", name), nowhere);
}

/* [k, ..] of k values [..] */
static ValueId stack_of(Builder *b, const char *name, const ValueId *v)
{
    ValueId *rows = POOL_ARRAY(b->scratch, (size_t)b->micro, ValueId);
    AttrList axis = {0};
    for (int64_t j = 0; j < b->micro; j++) {
        AttrList attrs = {0};
        Type t = *value_type(b->to, v[j]);
        memmove(t.dim + 1, t.dim, (size_t)t.rank * sizeof *t.dim);
        t.dim[0] = 1;
        attrs_ints(&attrs, ATTR_shape, t.dim, t.rank + 1);
        rows[j] = graph_add(b->to, OP_reshape, &v[j], 1, &attrs,
                            pool_printf(b->to->pool, "%%%s.row", name), nowhere);
    }
    attrs_int(&axis, ATTR_axis, 0);
    return graph_add(b->to, OP_concat, rows, (int)b->micro, &axis,
                     pool_printf(b->to->pool, "%%%s.all", name), nowhere);
}

/* Numbers (loss, accuracy) are averaged over the micro-batches; anything else is stacked. */
static void add_outputs(Builder *b)
{
    for (size_t i = 0; i < b->from->outputs.len; i++) {
        const char *name = b->from->outputs.data[i].name;
        const ValueId *v = b->results + i * (size_t)b->micro;
        const Type *t = value_type(b->to, v[0]);
        ValueId all = v[0];
        if (b->micro > 1)
            all =
                t->rank == 0 && t->dtype == DTYPE_F32 ? mean_of(b, name, v) : stack_of(b, name, v);
        graph_add_output(b->to, name, all);
    }
}

/* The value has the name of a gradient already: "%d.X" of some %X, or "$d.P". */
static bool has_gradient_name(const Graph *g, ValueId v)
{
    const char *name = graph_value(g, v)->name;
    if (name[0] == '$')
        return true;
    return strncmp(name, "%d.", 3) == 0 &&
           graph_find(g, pool_printf(g->pool, "%%%s", name + 3)) != VALUE_NONE;
}

/* Gives a parameter's gradient its name "$d.P".  When it is the gradient of something else too
 * (y = x + P), that keeps its name and the parameter's is a view of it. */
static ValueId name_grad(Builder *b, ValueId param, ValueId grad)
{
    const char *name = pool_printf(b->to->pool, "$d.%s", graph_value(b->to, param)->name + 1);
    if (!has_gradient_name(b->to, grad)) {
        autodiff_rename(b->to, grad, name);
        return grad;
    }
    AttrList attrs = {0};
    const Type t = *value_type(b->to, param);
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    return graph_add(b->to, OP_reshape, &grad, 1, &attrs, name, value_node(b->to, param)->loc);
}

static void note_untrained(Builder *b, ValueId param)
{
    const char *so_far = b->ctx->untrained, *name = graph_value(b->to, param)->name;
    b->ctx->untrained = so_far ? pool_printf(b->ctx->pool, "%s %s", so_far, name) : name;
}

/* The optimizer, for the parameters that the loss reaches. */
static bool add_training(Builder *b)
{
    ParamGrad *pairs = POOL_ARRAY(b->scratch, b->params.len, ParamGrad);
    size_t n = 0;
    for (size_t i = 0; i < b->params.len; i++) {
        if (b->grads[i] == VALUE_NONE) {
            note_untrained(b, b->params.data[i]);
            continue;
        }
        ValueId grad = name_grad(b, b->params.data[i], b->grads[i]);
        pairs[n++] = (ParamGrad){b->params.data[i], grad};
    }
    if (n == 0)
        return pass_fail(
            b->ctx, "E614", "there is nothing to train: the loss depends on no parameter",
            b->to->train.n_groups ? "compute the loss from parameters that are not frozen"
                                  : "compute the loss from the model's output");
    optim_add_updates(b->to, pairs, n);
    return true;
}

static bool follows_gradient(const Node *n)
{
    return n->op == OP_sumsq;
}

/* Sources first; what only looks at a gradient right behind it, so that the gradient need not wait
 * for the end. */
static void settle_order(Builder *b)
{
    Graph *g = b->to;
    VEC(NodeId) order = {0};
    NodeId *first = POOL_ARRAY(b->scratch, g->nodes.len, NodeId); /* follower of a node, +1 */
    NodeId *next = POOL_ARRAY(b->scratch, g->nodes.len, NodeId);  /* follower after that, +1 */
    for (size_t i = g->order.len; i-- > 0;) {
        NodeId id = g->order.data[i];
        const Node *n = graph_node(g, id);
        if (!follows_gradient(n))
            continue;
        NodeId of = graph_value(g, n->in[0])->def;
        next[id] = first[of];
        first[of] = id + 1;
    }
    for (size_t i = 0; i < g->order.len; i++)
        if (node_is_source(graph_node(g, g->order.data[i])))
            vec_push(b->scratch, &order, g->order.data[i]);
    for (size_t i = 0; i < g->order.len; i++) {
        NodeId id = g->order.data[i];
        if (follows_gradient(graph_node(g, id)))
            continue;
        if (!node_is_source(graph_node(g, id)))
            vec_push(b->scratch, &order, id);
        for (NodeId f = first[id]; f; f = next[f - 1])
            vec_push(b->scratch, &order, f - 1);
    }
    if (order.len != g->order.len)
        BUG("autodiff: lost a node of the step");
    memcpy(g->order.data, order.data, order.len * sizeof *order.data);
}

static void begin_step(Builder *b)
{
    const Graph *g = b->from;
    size_t n_outputs = g->outputs.len;
    b->micro = train_micro_batches(&g->train);
    b->to = graph_new(g->pool, g->name);
    b->to->kind = "step";
    b->to->source = g->source;
    b->to->options = g->options;
    b->to->source_hash = g->source_hash;
    b->to->train = g->train;
    b->map = POOL_ARRAY(b->scratch, g->values.len, ValueId);
    for (size_t i = 0; i < g->values.len; i++)
        b->map[i] = VALUE_NONE;
    b->home = POOL_ARRAY(b->scratch, g->values.len, ValueId);
    b->results = POOL_ARRAY(b->scratch, n_outputs * (size_t)b->micro, ValueId);
    for (size_t i = 0; i < g->order.len; i++)
        if (node_is_source(graph_node(g, g->order.data[i])))
            copy_source(b, graph_node(g, g->order.data[i]));
    b->grads = POOL_ARRAY(b->scratch, b->params.len, ValueId);
    for (size_t i = 0; i < b->params.len; i++)
        b->grads[i] = VALUE_NONE;
}

bool pass_autodiff(PassContext *ctx)
{
    if (!check_loss(ctx) || !check_unfused(ctx) || !check_accumulate(ctx))
        return false;
    Pool *scratch = pool_new_child(ctx->pool);
    Builder b = {.ctx = ctx, .from = ctx->graph, .scratch = scratch};
    begin_step(&b);
    bool ok = true;
    for (int64_t j = 0; j < b.micro && ok; j++)
        ok = add_micro_batch(&b, j);
    if (ok)
        add_outputs(&b);
    ok = ok && add_training(&b);
    if (ok) {
        settle_order(&b);
        autodiff_names_rebuild(b.to);
        ctx->graph = b.to;
    }
    pool_free(scratch);
    return ok;
}
