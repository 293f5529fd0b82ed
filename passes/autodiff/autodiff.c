/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pass: a forward graph becomes the whole training step.  docs/autodiff.md describes the
 * result.
 *
 * The step is built as a new graph: the persistent tensors and inputs, then for every micro-batch
 * the forward nodes and their gradients, then the averaged outputs and the optimizer.  Where there
 * are several losses with optimizers of their own, each `minimize` ends a part of the forward graph
 * that is treated so; the part behind it reads the weights that it has moved. */
#include "passes/autodiff/names.h"
#include "passes/autodiff/optim.h"
#include "passes/autodiff/step_builder.h"
#include "passes/rewrite.h"

#include "ir/loop.h"
#include "ir/support/bug.h"

#include <string.h>

static bool check_unfused(PassContext *ctx)
{
    const Graph *g = ctx->graph;
    for (size_t i = 0; i < g->order.len; i++)
        if (graph_node(g, g->order.data[i])->op == OP_fused)
            return pass_fail(ctx, "E613", "autodiff does not differentiate fused operations",
                             "run `autodiff` before `fuse`");
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
    b->home[n->out[0]] = v;
    for (int64_t j = 0; j < b->micro; j++)
        micro_map(b, j)[n->out[0]] = v;
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
    ValueId *map = micro_map(b, j);
    const ValueId in[2] = {scaled(b, map[n->in[0]], 1 - m, name, n->loc),
                           scaled(b, map[n->in[1]], m * scale, name, n->loc)};
    map[n->out[0]] = graph_add(b->to, OP_add, in, 2, NULL, name, n->loc);
}

static void copy_node(Builder *b, const Node *n, int64_t j)
{
    if (n->op == OP_bn_running && j + 1 < b->micro) {
        pass_on_running(b, n, j);
        return;
    }
    ValueId *in = POOL_ARRAY(b->scratch, (size_t)n->n_in, ValueId), *map = micro_map(b, j);
    for (int i = 0; i < n->n_in; i++)
        in[i] = map[n->in[i]];
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
        map[n->out[i]] = v;
    }
}

/* What comes after reads the running statistics as this micro-batch left them. */
static void advance_persistent(Builder *b, const Node *n, int64_t j)
{
    for (int i = 0; i < n->n_out; i++) {
        ValueId target = graph_value(b->from, n->out[i])->writes;
        for (int64_t k = j + 1; target != VALUE_NONE && k < b->micro; k++)
            micro_map(b, k)[target] = micro_map(b, j)[n->out[i]];
    }
}

static void take_micro_batch(Builder *b, int64_t j)
{
    for (size_t i = 0; i < b->batch.len; i += 2) {
        ValueId input = b->batch.data[i];
        micro_map(b, j)[input] =
            take_micro(b, b->batch.data[i + 1], graph_value(b->from, input)->name, j,
                       value_node(b->from, input)->loc);
    }
}

/* Forward nodes from..to of every micro-batch, each with its gradients. */
static bool add_part(Builder *b, size_t part, size_t from, size_t to)
{
    const NodeId *order = b->from->order.data;
    for (int64_t j = 0; j < b->micro; j++) {
        if (part == 0)
            take_micro_batch(b, j);
        for (size_t i = from; i < to; i++)
            if (!node_is_source(graph_node(b->from, order[i])))
                copy_node(b, graph_node(b->from, order[i]), j);
        if (!goals_add_gradients(b, part, j))
            return false;
        for (size_t i = from; i < to; i++)
            advance_persistent(b, graph_node(b->from, order[i]), j);
    }
    return true;
}

static void add_outputs(Builder *b)
{
    for (size_t i = 0; i < b->from->outputs.len; i++)
        for (int64_t j = 0; j < b->micro; j++)
            b->results[i * (size_t)b->micro + (size_t)j] =
                micro_map(b, j)[b->from->outputs.data[i].value];
    step_add_outputs(b);
}

/* Each `minimize` stands behind its part; the only loss of a section without one behind all. */
static bool add_parts(Builder *b)
{
    size_t from = 0, end = b->from->order.len, part = 0;
    for (size_t i = 0; i < end; i++) {
        if (graph_node(b->from, b->from->order.data[i])->op != OP_minimize)
            continue;
        if (!add_part(b, part, from, i) || !goals_add_updates(b, part))
            return false;
        from = i + 1;
        part++;
    }
    if (!add_part(b, part, from, end))
        return false;
    add_outputs(b);
    return part > 0 || goals_add_updates(b, part);
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
    b->map = POOL_ARRAY(b->scratch, g->values.len * (size_t)b->micro, ValueId);
    for (size_t i = 0; i < g->values.len * (size_t)b->micro; i++)
        b->map[i] = VALUE_NONE;
    b->home = POOL_ARRAY(b->scratch, g->values.len, ValueId);
    b->results = POOL_ARRAY(b->scratch, n_outputs * (size_t)b->micro, ValueId);
    for (size_t i = 0; i < g->order.len; i++)
        if (node_is_source(graph_node(g, g->order.data[i])))
            copy_source(b, graph_node(g, g->order.data[i]));
}

static bool make_step(PassContext *ctx)
{
    Pool *scratch = pool_new_child(ctx->pool);
    Builder b = {.ctx = ctx, .from = ctx->graph, .scratch = scratch};
    bool ok = goals_check(ctx) && check_unfused(ctx) && check_accumulate(ctx);
    if (ok) {
        begin_step(&b);
        goals_find(&b);
        ok = add_parts(&b) && goals_check_reads(&b);
    }
    if (ok) {
        step_settle_order(&b);
        autodiff_names_rebuild(b.to);
        ctx->graph = b.to;
    }
    pool_free(scratch);
    return ok;
}

/* Says of all loops, also those in bodies, that their gradients compute their steps again; whether
 * there are any. */
static bool mark_loops(Graph *g)
{
    bool any = false;
    for (size_t k = 0; k < g->order.len; k++) {
        Node *n = graph_node(g, g->order.data[k]);
        if (!node_is_loop(n))
            continue;
        any = true;
        mark_loops(n->body);
        node_set_attr(g, n, (Attr){.key = ATTR_again, .u.i = 1});
    }
    return any;
}

bool pass_autodiff(PassContext *ctx)
{
    PassContext again = *ctx;
    again.graph = graph_copy(ctx->graph->pool, ctx->graph);
    if (!make_step(ctx))
        return false;
    if (!mark_loops(again.graph))
        return true;
    if (!make_step(&again))
        BUG("a loop has one gradient and not the other: %s", again.error.message);
    ctx->again = POOL_NEW(ctx->pool, PassContext);
    *ctx->again = again;
    ctx->again->request.no_plain = true;
    return true;
}
