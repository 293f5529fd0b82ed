/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step minimizes: the gradients of each loss, and the updates of its parameters. */
#include "passes/autodiff/autodiff.h"
#include "passes/autodiff/names.h"
#include "passes/autodiff/optim.h"
#include "passes/autodiff/step_builder.h"

#include "ir/support/bitset.h"

#include <string.h>

static const Loc nowhere = {0};

/* --- what there is --- */

static bool check_scalar(PassContext *ctx, ValueId loss)
{
    const Type *t = value_type(ctx->graph, loss);
    return (t->rank == 0 && t->dtype == DTYPE_F32) ||
           pass_fail(
               ctx, "E612",
               pool_printf(ctx->pool, "the loss is %s, not one number", type_text(ctx->pool, t)),
               "take the mean: `|> mean()`");
}

/* A graph that was read from a file may say anything. */
static bool check_moves(PassContext *ctx)
{
    const Graph *g = ctx->graph;
    const TrainSpec *t = &g->train;
    int64_t *times = POOL_ARRAY(ctx->pool, (size_t)t->n_goals + 1, int64_t);
    bool ok = t->n_groups >= t->n_goals - 1;
    for (size_t i = 0; i < g->order.len && ok; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        int64_t goal = n->op == OP_minimize ? node_int(n, ATTR_goal, 0) : -1;
        ok = n->op != OP_minimize || (goal >= 0 && goal < t->n_goals);
        for (int k = 0; k < n->n_out && ok && goal >= 0; k++)
            ok = graph_value(g, n->out[k])->writes == value_storage(g, n->in[k + 1]);
        if (ok && goal >= 0)
            times[goal]++;
    }
    for (int i = 0; i < t->n_goals && ok; i++)
        ok = times[i] == t->goal[i].per_step && times[i] > 0 &&
             graph_output(g, t->goal[i].loss) != VALUE_NONE;
    return ok || pass_fail(ctx, "E611", "`minimize` and the goals of the train section disagree",
                           "each goal has an output and as many nodes as it says");
}

bool goals_check(PassContext *ctx)
{
    const Graph *g = ctx->graph;
    ValueId loss = graph_output(g, "loss");
    if (!g->train.present)
        return pass_fail(ctx, "E610", "there is nothing to train: the file has no train section",
                         "add `train { ... }` with a loss and an optimizer");
    if (!check_moves(ctx))
        return false;
    if (g->train.n_goals == 0 && loss == VALUE_NONE)
        return pass_fail(ctx, "E611", "there is nothing to train: no output is called 'loss'",
                         "give the train section a `loss`");
    return g->train.n_goals > 0 || check_scalar(ctx, loss);
}

static void add_params(Builder *b, Move *m, const Bitset *trained)
{
    for (int k = 0; k < m->node->n_out; k++) {
        ValueId home = b->home[graph_value(b->from, m->node->out[k])->writes];
        if (bitset_has(trained, home))
            vec_push(b->scratch, &m->params, home);
    }
}

/* part_of: by value of `from`, the part of the step that makes it. */
static void add_move(Builder *b, const Node *n, const size_t *part_of, const Bitset *trained)
{
    int64_t goal = node_int(n, ATTR_goal, 0);
    Move m = {.node = n,
              .name = b->from->train.goal[goal].loss,
              .loss = n->in[0],
              .ready = part_of[n->in[0]],
              .times = b->from->train.goal[goal].per_step};
    for (size_t i = 0; i < b->moves.len; i++)
        m.time += node_int(b->moves.data[i].node, ATTR_goal, 0) == goal;
    add_params(b, &m, trained);
    vec_push(b->scratch, &b->moves, m);
}

void goals_find(Builder *b)
{
    const Graph *g = b->from;
    Bitset trained = bitset_new(b->scratch, b->to->values.len);
    size_t *part_of = POOL_ARRAY(b->scratch, g->values.len, size_t), part = 0;
    for (size_t i = 0; i < b->params.len; i++)
        bitset_add(&trained, b->params.data[i]);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        bool source = node_is_source(n); /* there from the start */
        for (int k = 0; k < n->n_out; k++)
            part_of[n->out[k]] = source ? 0 : part;
        if (n->op != OP_minimize)
            continue;
        add_move(b, n, part_of, &trained);
        part++;
    }
    if (b->moves.len)
        return;
    Move only = {.loss = graph_output(g, "loss"), .times = 1};
    for (size_t i = 0; i < b->params.len; i++)
        vec_push(b->scratch, &only.params, b->params.data[i]);
    vec_push(b->scratch, &b->moves, only);
}

/* --- gradients --- */

static ValueId add_seed(Builder *b, ValueId loss)
{
    AttrList attrs = {0};
    double share = b->from->train.accumulate_sum ? 1 : 1 / (double)b->micro;
    attrs_float(&attrs, ATTR_value, share);
    const char *name = pool_printf(b->to->pool, "%%d.%s", graph_value(b->to, loss)->name + 1);
    return graph_add_source(b->to, OP_const, type_scalar(DTYPE_F32), &attrs, name, nowhere);
}

static void want(Builder *b, Move *m, size_t param, ValueId contents)
{
    vec_push(b->scratch, &m->of, param);
    vec_push(b->scratch, &m->wrt, contents);
    vec_push(b->scratch, &m->grad, VALUE_NONE);
}

/* With respect to the parameters, and to all that moves before have made of them. */
static void want_gradients(Builder *b, Move *m)
{
    for (size_t i = 0; i < m->params.len; i++) {
        want(b, m, i, m->params.data[i]);
        for (size_t k = 0; k < b->newest.len; k += 2)
            if (b->newest.data[k] == m->params.data[i])
                want(b, m, i, b->newest.data[k + 1]);
    }
}

bool goals_add_gradients(Builder *b, size_t part, int64_t j)
{
    for (size_t i = 0; i < b->moves.len; i++) {
        Move *m = &b->moves.data[i];
        if (m->ready != part)
            continue;
        if (j == 0)
            want_gradients(b, m);
        ValueId loss = micro_map(b, j)[m->loss];
        const char *refused = autodiff_gradients(b->to, loss, add_seed(b, loss), m->wrt.data,
                                                 (int)m->wrt.len, m->grad.data);
        if (refused)
            return pass_fail(b->ctx, "E617", pool_strdup(b->ctx->pool, refused),
                             "write the products and the softmax that it stands for");
    }
    return true;
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
    b->ctx->untrained =
        pool_printf(b->ctx->pool, "%s%s%s", so_far ? so_far : "", so_far ? " " : "", name);
}

/* --- updates --- */

/* The sum of the gradients with respect to all contents of a parameter that the loss has read. */
static ValueId whole_gradient(Builder *b, const Move *m, size_t param)
{
    ValueId sum = VALUE_NONE;
    for (size_t i = 0; i < m->of.len; i++) {
        if (m->of.data[i] != param || m->grad.data[i] == VALUE_NONE)
            continue;
        const ValueId in[2] = {sum, m->grad.data[i]};
        sum = sum == VALUE_NONE ? in[1] : graph_add(b->to, OP_add, in, 2, NULL, "%d.sum", nowhere);
    }
    return sum;
}

/* What stands behind the move reads what it has made. */
static void pass_on_weights(Builder *b, const Move *m)
{
    for (int k = 0; k < m->node->n_out; k++) {
        ValueId home = b->home[graph_value(b->from, m->node->out[k])->writes];
        ValueId newest = optim_newest(b->to, home);
        for (int64_t j = 0; j < b->micro; j++)
            micro_map(b, j)[m->node->out[k]] = newest;
        if (newest == home)
            continue;
        vec_push(b->scratch, &b->newest, home);
        vec_push(b->scratch, &b->newest, newest);
    }
}

bool goals_add_updates(Builder *b, size_t move)
{
    Move *m = &b->moves.data[move];
    ParamGrad *pairs = POOL_ARRAY(b->scratch, m->params.len, ParamGrad);
    size_t n = 0;
    for (size_t i = 0; i < m->params.len; i++) {
        ValueId param = m->params.data[i], grad = whole_gradient(b, m, i);
        if (grad != VALUE_NONE)
            pairs[n++] = (ParamGrad){optim_newest(b->to, param), name_grad(b, param, grad)};
        else if (m->time == 0)
            note_untrained(b, param);
    }
    if (n == 0)
        return pass_fail(
            b->ctx, "E614",
            m->name ? pool_printf(b->ctx->pool, "`%s` depends on none of its parameters", m->name)
                    : "there is nothing to train: the loss depends on no parameter",
            b->to->train.n_groups ? "compute the loss from parameters that are not frozen"
                                  : "compute the loss from the model's output");
    optim_add_updates(b->to, pairs, n, (UpdateTime){m->name, m->time, m->times});
    if (m->node)
        pass_on_weights(b, m);
    return true;
}

/* --- order --- */

static bool fail_read(const Builder *b, const Node *reader, ValueId old)
{
    const char *param = graph_value(b->to, value_storage(b->to, old))->name + 1;
    const char *place =
        reader->loc.line ? pool_printf(b->ctx->pool, " (line %u)", (unsigned)reader->loc.line) : "";
    return pass_fail(
        b->ctx, "E618",
        pool_printf(b->ctx->pool, "a gradient%s needs %s as it was before `minimize` changed it",
                    place, param),
        "compute the loss before that `minimize`, or everything that it is computed from after it");
}

bool goals_check_reads(const Builder *b)
{
    const Graph *g = b->to;
    Bitset gone = bitset_new(b->scratch, g->values.len);
    ValueId *root = POOL_ARRAY(b->scratch, g->values.len, ValueId);
    ValueId *newest = POOL_ARRAY(b->scratch, g->values.len, ValueId); /* by persistent value, + 1 */
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; k < n->n_in; k++)
            if (bitset_has(&gone, root[n->in[k]]))
                return fail_read(b, n, root[n->in[k]]);
        for (int k = 0; k < n->n_out; k++) {
            ValueId target = graph_value(g, n->out[k])->writes;
            root[n->out[k]] = node_is_view(n) ? root[n->in[0]] : n->out[k];
            if (target == VALUE_NONE)
                continue;
            bitset_add(&gone, newest[target] ? newest[target] - 1 : target);
            newest[target] = n->out[k] + 1;
        }
    }
    return true;
}
