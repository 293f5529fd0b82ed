/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/run/model_run.h"

#include "check.h"
#include "codegen/build/supports.h"
#include "runtime/rng.h"
#include "tests/support/plan_request.h"
#include "tests/support/random_model.h"
#include "tests/support/sample.h"
#include "tests/support/solutions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Graph *model_lower(Pool *pool, const char *text, const BuildOptions *o)
{
    Diag *diag = diag_new(pool);
    Ast *ast = frontend_parse_text(pool, diag, "random.scrimp", text, strlen(text));
    FrontendOptions options = {.defs = o->defs, .n_defs = o->n_defs, .mode = FRONTEND_TRAIN};
    Graph *g = ast ? frontend_lower(pool, diag, ast, &options) : NULL;
    if (!g)
        diag_print(diag, stderr, false);
    CHECK_MSG(g, "does not compile:\n%s", text);
    return g;
}

bool model_plan(Pool *pool, const char *text, const BuildOptions *o, Built *out)
{
    *out = (Built){.pool = pool};
    PassContext ctx = {.pool = pool,
                       .graph = model_lower(pool, text, o),
                       .checksums = o->checksums,
                       .for_device = o->for_device,
                       .supports = codegen_supports,
                       .solution_cache = solutions_kept(pool)};
    if (!ctx.graph)
        return false;
    ctx.request = request_of(pool, ctx.graph,
                             (PlanSettings){.budget = o->budget,
                                            .solver = o->solver,
                                            .no_norms = o->no_norms,
                                            .effort = o->effort > 0 ? o->effort : sample_effort()});
    bool ok = passes_run(&ctx, o->pipeline ? o->pipeline : pipeline_train, NULL, NULL);
    CHECK_MSG(ok || ctx.report.status == REMAT_INFEASIBLE, "%s", ctx.error.message);
    out->graph = ctx.graph;
    out->plan = ctx.plan;
    out->report = ctx.report;
    return ok;
}

bool model_build(Pool *pool, const char *text, const BuildOptions *o, Built *out)
{
    if (!model_plan(pool, text, o, out))
        return false;
    const char *build = getenv("SCRIMP_BUILD"), *error = NULL;
    const char *cache = pool_printf(pool, "%s/test-cache", build ? build : "/tmp");
    CodegenOptions options = {
        .march = o->march, .cache_dir = cache, .jobs = 2, .strip_cache = o->strip_cache};
    out->step = codegen_compile(pool, out->graph, out->plan, &options, &error);
    CHECK_MSG(out->step, "%s\n%s", error, text);
    return out->step != NULL;
}

/* --- names and layouts --- */

int64_t *model_layout(Pool *pool, const Node *n, const Type *t)
{
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    int64_t dims[TYPE_MAX_RANK], stride[TYPE_MAX_RANK], step = 1, count = type_elements(t);
    for (int i = 0; i < t->rank; i++)
        dims[perm ? perm[i] : i] = t->dim[i];
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= dims[i];
    }
    int64_t *map = POOL_ARRAY(pool, (size_t)count + 1, int64_t);
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = k;
        for (int i = t->rank - 1; i >= 0; i--) {
            map[k] += rest % t->dim[i] * stride[perm ? perm[i] : i];
            rest /= t->dim[i];
        }
    }
    return map;
}

bool is_batch(const Node *n)
{
    return n->op == OP_input && strncmp(node_string(n, ATTR_role, ""), "batch.", 6) == 0;
}

/* --- the compiled side --- */

void *run_at(const Running *r, ValueId v)
{
    return r->arena.base + r->built->plan->offset[v];
}

bool run_open(Running *r, const Built *built, int n_threads)
{
    RtError err = {{0}};
    *r = (Running){.built = built, .threads = threads_new(n_threads, &err)};
    bool ok = r->threads && arena_map(&r->arena, built->plan->arena_bytes, &err);
    CHECK_MSG(ok, "%s", err.message);
    if (ok)
        r->context = threads_context(r->threads, r->arena.base, NULL);
    return ok;
}

void run_close(Running *r)
{
    threads_free(r->threads);
    if (r->arena.base)
        arena_unmap(&r->arena);
}

void run_initialize(Running *r, uint64_t seed)
{
    const Graph *g = r->built->graph;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!node_is_persistent(n))
            continue;
        const Type *t = value_type(g, n->out[0]);
        const char *name = graph_value(g, n->out[0])->name;
        int64_t count = type_elements(t), *map = model_layout(r->built->pool, n, t);
        float *user = POOL_ARRAY(r->built->pool, (size_t)count, float);
        float *stored = run_at(r, n->out[0]);
        CHECK(rt_init_fill(user, count, node_string(n, ATTR_init, "zeros"), seed, name, NULL));
        for (int64_t k = 0; k < count; k++) {
            double u = (double)rt_rng_bits(seed, 1, rt_name_key(name), (uint64_t)map[k]) * 0x1p-32;
            stored[k] = user[map[k]] + (n->op == OP_param ? (float)(0.1 * u - 0.05) : 0.0f);
        }
    }
}

/* Element k of field `name` in batch `step`; shuffling moves whole examples. */
static double batch_element(const Node *n, const Type *t, const char *name, uint64_t seed,
                            int64_t step, int64_t k, bool shuffled)
{
    int64_t each = type_elements(t) / t->dim[0], example = k / each;
    if (shuffled)
        k += (t->dim[0] - 1 - 2 * example) * each;
    uint32_t bits = rt_rng_bits(seed, (uint64_t)step + 7, rt_name_key(name), (uint64_t)k);
    (void)n;
    return t->dtype == DTYPE_F32 ? (double)(float)((double)bits * 0x1p-31 - 1.0)
                                 : (double)(bits % MODEL_CLASSES);
}

void put_element(const Type *t, void *data, int64_t k, double x)
{
    if (t->dtype == DTYPE_F32)
        ((float *)data)[k] = (float)x;
    else if (t->dtype == DTYPE_I32)
        ((int32_t *)data)[k] = (int32_t)x;
    else
        ((uint8_t *)data)[k] = (uint8_t)x;
}

/* lr, step and rng of update `step`. */
static double control_element(const Graph *g, const char *role, uint64_t seed, int64_t step,
                              int64_t k)
{
    int64_t parts = train_micro_batches(&g->train), micro = step * parts;
    if (train_is_rate(role)) {
        int group = train_rate_group(role);
        const UpdateRule *rule = group < 0 ? &g->train.rule : &g->train.group[group].rule;
        return (double)(float)lr_at(&rule->lr, step, 10, 5);
    }
    if (strcmp(role, "step") == 0)
        return (double)(step + 1);
    return k == 0 ? (double)(int32_t)seed : k == 2 ? (double)(int32_t)micro : 0;
}

static double input_element(const Graph *g, const Node *n, uint64_t seed, int64_t step, int64_t k,
                            bool shuffled)
{
    const char *role = node_string(n, ATTR_role, "");
    const Type *t = value_type(g, n->out[0]);
    return is_batch(n) ? batch_element(n, t, role, seed, step, k, shuffled)
                       : control_element(g, role, seed, step, k);
}

void run_fill(Running *r, uint64_t seed, int64_t step)
{
    const Graph *g = r->built->graph;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op != OP_input || r->built->plan->offset[n->out[0]] < 0)
            continue;
        const Type *t = value_type(g, n->out[0]);
        for (int64_t k = 0; k < type_elements(t); k++)
            put_element(t, run_at(r, n->out[0]), k,
                        input_element(g, n, seed, step, k, r->shuffled));
    }
}

void run_step(Running *r, uint64_t seed, int64_t step)
{
    run_fill(r, seed, step);
    r->built->step->run(&r->context);
}

double run_output(const Running *r, const char *name)
{
    ValueId v = graph_output(r->built->graph, name);
    float x;
    memcpy(&x, run_at(r, v), sizeof x);
    return (double)x;
}

const char *run_difference(const Running *a, const Running *b)
{
    const Graph *g = a->built->graph, *h = b->built->graph;
    for (size_t i = 0; i < g->outputs.len; i++) {
        const Output *o = &g->outputs.data[i];
        bool is_there = graph_output(h, o->name) != VALUE_NONE; /* gradients may have no storage */
        if (is_there && memcmp(run_at(a, o->value), run_at(b, graph_output(h, o->name)),
                               (size_t)type_bytes(value_type(g, o->value))) != 0)
            return o->name;
    }
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        const char *name = graph_value(g, n->out[0])->name;
        if (node_is_persistent(n) && memcmp(run_at(a, n->out[0]), run_at(b, graph_find(h, name)),
                                            (size_t)type_bytes(value_type(g, n->out[0]))) != 0)
            return name;
    }
    return NULL;
}

/* --- the evaluator's side --- */

void eval_from_run(EvalState *s, const Running *r, uint64_t seed, int64_t step)
{
    const Graph *g = s->graph, *h = r->built->graph;
    Pool *pool = r->built->pool;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        const Type *t = value_type(g, n->out[0]);
        if (!node_is_persistent(n) && n->op != OP_input)
            continue;
        int64_t count = type_elements(t);
        double *data = POOL_ARRAY(pool, (size_t)count, double);
        if (n->op == OP_input)
            for (int64_t k = 0; k < count; k++)
                data[k] = input_element(g, n, seed, step, k, r->shuffled);
        else {
            ValueId v = graph_find(h, graph_value(g, n->out[0])->name);
            int64_t *mine = model_layout(pool, n, t);
            int64_t *theirs = model_layout(pool, value_node(h, v), value_type(h, v));
            double *user = POOL_ARRAY(pool, (size_t)count, double);
            for (int64_t k = 0; k < count; k++)
                user[theirs[k]] = (double)((const float *)run_at(r, v))[k];
            for (int64_t k = 0; k < count; k++)
                data[k] = user[mine[k]];
        }
        eval_set(s, n->out[0], data);
    }
}
