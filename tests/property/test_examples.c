/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The examples' training steps in double.  First, the step's gradient norm is the slope of the
 * forward graph's loss along that gradient (central differences).  Second, every pass up to the
 * order leaves the step's meaning alone: the same loss, norm, parameters, statistics and optimizer
 * state after two steps. */
#include "check.h"

#include "frontend/language/frontend.h"
#include "ir/eval.h"
#include "passes/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const pipeline = "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,fuse,order";

typedef struct Example {
    const char *file;
    OptionDef defs[5];
    int n_defs;
    int64_t accumulate;
} Example;

static const Example examples[] = {
    {"mlp", {{"N", "4"}, {"hidden", "32"}}, 2, 1},
    {"mlp", {{"N", "2"}, {"hidden", "16"}}, 2, 3},
    {"convnet", {{"N", "2"}, {"width", "4"}}, 2, 1},
    {"convnet", {{"N", "2"}, {"width", "4"}}, 2, 2},
    {"chargpt", {{"N", "2"}, {"L", "2"}, {"C", "32"}, {"T", "16"}, {"p", "0.2"}}, 5, 1},
    {"resnet", {{"N", "1"}, {"depth", "18"}, {"size", "48"}}, 3, 1},
};

static uint64_t rng_state = 1;

static double uniform(void)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(rng_state >> 11) * 0x1p-53;
}

/* What a source holds, in the order that users see (a parameter's `perm` undone). */
static double draw(const Node *n, const Type *t, const char *name)
{
    const char *role = node_string(n, ATTR_role, ""), *init = node_string(n, ATTR_init, "");
    if (n->op == OP_state)
        return 0;
    if (strcmp(role, "lr") == 0 || strcmp(role, "step") == 0)
        return t->dtype == DTYPE_I32 ? 1 : 0.01;
    if (t->dtype != DTYPE_F32)
        return floor(uniform() * (t->dtype == DTYPE_U8 ? 256 : 10));
    if (strcmp(init, "ones") == 0 || strstr(name, "var"))
        return 1;
    return 0.2 * uniform() - 0.1;
}

/* Moves between storage order and user order; storage dim i is user dim perm[i]. */
static void permute(const Node *n, const Type *stored, const double *from, double *to, bool store)
{
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    int64_t dims[TYPE_MAX_RANK], stride[TYPE_MAX_RANK], index[TYPE_MAX_RANK] = {0}, step = 1;
    for (int i = 0; i < stored->rank; i++)
        dims[perm ? perm[i] : i] = stored->dim[i];
    for (int i = stored->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= dims[i];
    }
    for (int64_t k = 0; k < type_elements(stored); k++) {
        int64_t user = 0;
        for (int i = 0; i < stored->rank; i++)
            user += index[i] * stride[perm ? perm[i] : i];
        to[store ? k : user] = from[store ? user : k];
        for (int i = stored->rank - 1; i >= 0; i--) {
            if (++index[i] < stored->dim[i])
                break;
            index[i] = 0;
        }
    }
}

static void put(Pool *pool, EvalState *s, const char *name, const double *data)
{
    ValueId v = graph_find(s->graph, name);
    if (v == VALUE_NONE)
        return;
    const Type *t = value_type(s->graph, v);
    double *stored = POOL_ARRAY(pool, (size_t)type_elements(t), double);
    permute(value_node(s->graph, v), t, data, stored, true);
    eval_set(s, v, stored);
}

static const double *take(Pool *pool, const EvalState *s, ValueId v)
{
    const Type *t = value_type(s->graph, v);
    double *data = POOL_ARRAY(pool, (size_t)type_elements(t), double);
    permute(value_node(s->graph, v), t, eval_get(s, v), data, false);
    return data;
}

/* Draws every source of `from`, for all the states. */
static void fill(Pool *pool, const Graph *from, EvalState *const *states, int n_states)
{
    for (size_t i = 0; i < from->order.len; i++) {
        const Node *n = graph_node(from, from->order.data[i]);
        if (!node_is_source(n) || n->op == OP_const)
            continue;
        const Value *v = graph_value(from, n->out[0]);
        int64_t count = type_elements(&v->type);
        double *data = POOL_ARRAY(pool, (size_t)count, double);
        for (int64_t k = 0; k < count; k++)
            data[k] = draw(n, &v->type, v->name);
        for (int k = 0; k < n_states; k++)
            put(pool, states[k], v->name, data);
    }
}

static double loss_of(EvalState *s)
{
    eval_run(s, false);
    return eval_get(s, graph_output(s->graph, "loss"))[0];
}

/* The loss when every parameter is moved by `by` along its gradient in `step`. */
static double moved_loss(Pool *pool, EvalState *forward, const EvalState *step, double by)
{
    const Graph *g = forward->graph;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        const char *name = graph_value(g, n->out[0])->name;
        ValueId grad = n->op == OP_param
                           ? graph_find(step->graph, pool_printf(pool, "$d.%s", name + 1))
                           : VALUE_NONE;
        if (grad == VALUE_NONE)
            continue;
        int64_t count = type_elements(value_type(g, n->out[0]));
        double *moved = POOL_ARRAY(pool, (size_t)count, double);
        const double *at = eval_get(step, graph_find(step->graph, name));
        for (int64_t k = 0; k < count; k++)
            moved[k] = at[k] + by * eval_get(step, grad)[k];
        eval_set(forward, n->out[0], moved);
    }
    return loss_of(forward);
}

static void check_slope(Pool *pool, const Example *e, EvalState *forward, EvalState *step)
{
    eval_run(step, false);
    double norm = eval_get(step, graph_output(step->graph, "grad_norm"))[0], h = 1e-6 / norm;
    double up = moved_loss(pool, forward, step, h), down = moved_loss(pool, forward, step, -h);
    double slope = (up - down) / (2 * h * norm);
    CHECK_MSG(fabs(slope - norm) <= 1e-4 * norm, "%s: the loss falls by %g, the norm is %g",
              e->file, slope, norm);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-7 * (1 + fabs(b));
}

static void check_equal(Pool *pool, const Example *e, const EvalState *a, const EvalState *b)
{
    static const char *const numbers[] = {"loss", "grad_norm"};
    for (int i = 0; i < 2; i++) {
        double x = eval_get(a, graph_output(a->graph, numbers[i]))[0];
        double y = eval_get(b, graph_output(b->graph, numbers[i]))[0];
        CHECK_MSG(near(x, y), "%s: %s is %.12g, after the passes %.12g", e->file, numbers[i], x, y);
    }
    for (size_t i = 0; i < a->graph->order.len; i++) {
        const Node *n = graph_node(a->graph, a->graph->order.data[i]);
        if (!node_is_persistent(n))
            continue;
        const char *name = graph_value(a->graph, n->out[0])->name;
        const double *x = take(pool, a, n->out[0]);
        const double *y = take(pool, b, graph_find(b->graph, name));
        int64_t k = 0, count = type_elements(value_type(a->graph, n->out[0]));
        while (k < count && near(x[k], y[k]))
            k++;
        CHECK_MSG(k == count, "%s: %s[%lld] differs after the passes", e->file, name, (long long)k);
    }
}

static Graph *lowered(Pool *pool, const Example *e)
{
    const char *root = getenv("SCRIMP_SOURCE");
    const char *path = pool_printf(pool, "%s/examples/%s.scrimp", root ? root : ".", e->file);
    FrontendOptions options = {.defs = e->defs, .n_defs = e->n_defs, .mode = FRONTEND_TRAIN};
    Diag *diag = diag_new(pool);
    Ast *ast = frontend_parse(pool, diag, path);
    Graph *g = ast ? frontend_lower(pool, diag, ast, &options) : NULL;
    if (!g)
        diag_print(diag, stderr, false);
    CHECK_MSG(g, "%s does not compile", e->file);
    if (g)
        g->train.accumulate = e->accumulate;
    return g;
}

static bool run_passes(const Example *e, PassContext *ctx, const char *passes)
{
    bool ok = passes_run(ctx, passes, NULL, NULL);
    CHECK_MSG(ok, "%s: %s", e->file, ctx->error.message);
    return ok;
}

static void check_example(const Example *e)
{
    Pool *pool = pool_new();
    Graph *forward = lowered(pool, e);
    PassContext plain = {.pool = pool}, full = {.pool = pool};
    if (forward) {
        plain.graph = graph_copy(pool, forward);
        full.graph = graph_copy(pool, forward);
        if (run_passes(e, &plain, "autodiff") && run_passes(e, &full, pipeline)) {
            EvalState *states[3] = {eval_new(pool, plain.graph), eval_new(pool, full.graph),
                                    eval_new(pool, forward)};
            fill(pool, plain.graph, states, e->accumulate == 1 ? 3 : 2);
            if (e->accumulate == 1)
                check_slope(pool, e, states[2], states[0]);
            for (int step = 0; step < 2; step++) {
                for (int k = 0; k < 2; k++) {
                    eval_run(states[k], false);
                    eval_commit(states[k]);
                }
                check_equal(pool, e, states[0], states[1]);
            }
        }
    }
    pool_free(pool);
}

int main(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check_example(&examples[i]);
    return test_result();
}
