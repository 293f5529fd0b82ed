/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step is without one of its recomputations (passes/rerun.h): the step without it is built,
 * verified, planned and computes the same; its peak, and what is free meanwhile, are those of a
 * simulation that shares no code with the planner.  SCRIMP_STEPS: how many random steps;
 * SCRIMP_ALL=1: all examples. */
#include "check.h"
#include "ir/print.h"
#include "ir/strided_view.h"
#include "ir/support/clock.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "passes/rerun.h"
#include "tests/support/elaborate_text.h"
#include "tests/support/graph_text.h"
#include "tests/support/plan_request.h"
#include "tests/support/random_step.h"
#include "tests/support/sample.h"
#include "tests/support/simulated_peak.h"

#include <string.h>

/* --- the same results --- */

/* What a value is, whoever computes it and how often: the operation and its inputs.  Where it lies
 * does not count: a piece of a concatenation is the input that it is a copy of. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    return (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
}

static uint64_t text_hash(const char *text)
{
    uint64_t h = 1469598103934665603u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* Recomputations have the attributes and the body of what they recompute. */
static NodeId original(const Graph *g, NodeId id)
{
    while (graph_node(g, id)->remat_of != NODE_NONE)
        id = graph_node(g, id)->remat_of;
    return id;
}

/* The input of a concatenation that n names a piece of; VALUE_NONE: n names something else. */
static ValueId piece_named(const Graph *g, const Node *n)
{
    if (n->op != OP_subview && n->op != OP_slice)
        return VALUE_NONE;
    const Node *concat = value_node(g, n->in[0]);
    int axis = concat->op == OP_concat ? concat_axis(g, concat) : 0;
    int64_t start = node_ints_at(n, ATTR_start, axis, 0), at = 0;
    for (int i = 0; concat->op == OP_concat && i < concat->n_in; i++) {
        if (at == start && type_equal(value_type(g, n->out[0]), value_type(g, concat->in[i])))
            return concat->in[i];
        at += value_type(g, concat->in[i])->dim[axis];
    }
    return VALUE_NONE;
}

static uint64_t *meanings(Pool *pool, const Graph *g)
{
    uint64_t *of = POOL_ARRAY(pool, g->values.len + 1, uint64_t);
    for (size_t k = 0; k < g->order.len; k++) {
        NodeId id = g->order.data[k];
        const Node *n = graph_node(g, id);
        uint64_t h = text_hash(graph_value(g, graph_node(g, original(g, id))->out[0])->name);
        for (int i = 0; i < n->n_in; i++) {
            CHECK_MSG(of[n->in[i]], "%s is read before it is made", graph_value(g, n->in[i])->name);
            h = mix(h, of[n->in[i]]);
        }
        ValueId piece = piece_named(g, n);
        for (int o = 0; o < n->n_out; o++)
            of[n->out[o]] = piece != VALUE_NONE ? of[piece] : mix(h, (uint64_t)o + 1);
    }
    return of;
}

static void check_results(Pool *pool, const char *name, const Graph *g, const Graph *c)
{
    const uint64_t *a = meanings(pool, g), *b = meanings(pool, c);
    bool same = true;
    for (size_t i = 0; i < g->outputs.len; i++)
        same = same && a[g->outputs.data[i].value] == b[c->outputs.data[i].value];
    for (size_t v = 0; v < g->values.len; v++)
        same = same && (graph_value(g, (ValueId)v)->writes == VALUE_NONE || a[v] == b[v]);
    CHECK_MSG(same, "%s: something else is computed", name);
}

/* --- one recomputation --- */

static bool has_node(const Graph *g, NodeId id)
{
    for (size_t k = 0; k < g->order.len; k++)
        if (g->order.data[k] == id)
            return true;
    return false;
}

static const char *text_of(Pool *pool, const Graph *g)
{
    StrBuf b = strbuf_new(pool);
    graph_print(g, (PrintOptions){.no_loc = true}, &b);
    return b.text;
}

/* Largest first; each in memory longer than with the run, or in storage of its own. */
static void check_instead(const char *name, const Graph *g, const Graph *c, const RerunEffect *e,
                          const Simulated *with, const Simulated *without)
{
    for (int k = 0; k < e->n_instead; k++) {
        ValueId v = e->instead[k];
        CHECK_MSG(value_root(c, v) == v && has_node(c, graph_value(c, v)->def), "%s: %s", name,
                  graph_value(g, v)->name);
        CHECK_MSG(k == 0 || memplan_value_bytes(g, e->instead[k - 1]) >= memplan_value_bytes(g, v),
                  "%s: %s is not in order", name, graph_value(g, v)->name);
        CHECK_MSG(value_root(g, v) != v || without->freed[v] > with->freed[v] - 1, "%s: %s", name,
                  graph_value(g, v)->name);
    }
}

/* What `before` has made is freed at `from` and not before, all of `bytes`. */
static void check_free(const char *name, const Graph *g, const Graph *c, const RerunEffect *e,
                       const Simulated *with)
{
    int64_t bytes = 0;
    int from = -1;
    for (int k = 0; k < e->n_instead; k++) {
        int freed = -1;
        for (int o = 0; o < graph_node(g, e->before)->n_out; o++) {
            ValueId v = graph_node(g, e->before)->out[o];
            if (value_root(c, v) == e->instead[k] && with->freed[value_root(g, v)] > freed)
                freed = with->freed[value_root(g, v)];
        }
        CHECK_MSG(freed > e->before_slot, "%s: %s", name, graph_value(g, e->instead[k])->name);
        if (freed > e->slot)
            continue;
        bytes += memplan_value_bytes(g, e->instead[k]);
        from = freed > from ? freed : from;
    }
    CHECK_MSG(bytes == e->bytes && (bytes ? from : e->slot) == e->from && e->to == e->slot,
              "%s: %lld bytes from %d, not %lld from %d", name, (long long)e->bytes, e->from,
              (long long)bytes, from);
    CHECK_MSG(e->spans_peak == (e->from <= with->peak_slot && with->peak_slot < e->to), "%s", name);
}

static bool check_effect(Pool *parent, const char *where, const Graph *g, const RerunEffect *e,
                         const Simulated *with)
{
    Pool *pool = pool_new_child(parent);
    int failures = check_failures;
    const char *fault = "",
               *name = pool_printf(pool, "%s: %s", where,
                                   graph_value(g, graph_node(g, e->node)->out[0])->name);
    CHECK_MSG(rerun_before(g, e->node) == e->before, "%s", name);
    RerunEffect alone = rerun_effect(pool, g, e->node);
    CHECK_MSG(alone.without_peak_bytes == e->without_peak_bytes && alone.bytes == e->bytes &&
                  alone.from == e->from && alone.n_instead == e->n_instead,
              "%s: alone it is another", name);
    Graph *c = rerun_without(pool, g, e->node);
    CHECK_MSG(graph_verify(c, &fault), "%s: %s", name, fault);
    CHECK_MSG(!has_node(c, e->node) && has_node(c, e->before), "%s", name);
    Simulated without = simulate_step(pool, c);
    CHECK_MSG(without.peak_bytes == e->without_peak_bytes, "%s: peak %lld, simulated %lld", name,
              (long long)e->without_peak_bytes, (long long)without.peak_bytes);
    check_results(pool, name, g, c);
    const MemPlan *plan = memplan_graph(pool, c, MEMPLAN_TRIAL, NULL);
    CHECK_MSG(memplan_graph_check(pool, c, plan, &fault), "%s: %s", name, fault);
    check_instead(name, g, c, e, with, &without);
    check_free(name, g, c, e, with);
    if (check_failures > failures)
        fprintf(stderr, "with:\n%s\nwithout:\n%s\n", text_of(pool, g), text_of(pool, c));
    pool_free(pool);
    return check_failures == failures;
}

/* Of a step; evenly spread. */
enum { MOST_CHECKED = 60 };

/* How many recomputations g has. */
static int check_step(Pool *pool, const char *name, const Graph *g)
{
    double begin = clock_seconds();
    RerunEffects all = rerun_effects(pool, g);
    double seconds = clock_seconds() - begin;
    Simulated with = simulate_step(pool, g);
    int reruns = 0, pieces = 0;
    for (size_t k = 0; k < g->order.len; k++)
        reruns += rerun_before(g, g->order.data[k]) != NODE_NONE;
    for (size_t v = 0; v < g->values.len; v++)
        pieces += !value_is_dense(g, (ValueId)v);
    CHECK_MSG(reruns == all.n, "%s: %d effects of %d", name, all.n, reruns);
    for (int k = 0; k < all.n; k += 1 + all.n / MOST_CHECKED)
        if (!check_effect(pool, name, g, &all.effect[k], &with))
            break;
    if (all.n > 50)
        printf("%s: %d recomputations, %d pieces, %.3f s\n", name, all.n, pieces, seconds);
    return all.n;
}

/* --- steps --- */

static Graph *planned(Pool *pool, const Graph *g, const char *pipeline, const char *budget,
                      const char *solver)
{
    PassContext ctx = {.pool = pool, .graph = graph_copy(pool, g)};
    ctx.request = request_of(
        pool, g, (PlanSettings){.budget = budget, .solver = solver, .effort = sample_effort()});
    bool ok = passes_run(&ctx, pipeline, NULL, NULL);
    CHECK_MSG(ok || ctx.report.status == REMAT_INFEASIBLE, "%s", ctx.error.message);
    return ok ? ctx.graph : NULL;
}

static int check_random(uint64_t seed)
{
    static const char *const solvers[] = {"scrimp", "chen", "dtr", "random"};
    Pool *pool = pool_new();
    Graph *g = random_step(pool, seed, 8 + (int)(seed % 50));
    const char *solver = solvers[seed % 4];
    int reruns = 0;
    for (int k = 0; k < 2; k++) {
        const char *budget = k ? "min" : "40%",
                   *name = pool_printf(pool, "seed %llu, %s, %s", (unsigned long long)seed, solver,
                                       budget);
        Graph *step = planned(pool, g, "fuse,order,remat,views", budget, solver);
        reruns += step ? check_step(pool, name, step) : 0;
    }
    pool_free(pool);
    return reruns;
}

typedef struct Example {
    const char *name, *budget, *defs[6];
    bool quick;
} Example;

static const Example examples[] = {
    {"chargpt", "40%", {NULL}, true},
    {"chargpt", "min", {NULL}, false},
    {"convnet", "min", {NULL}, true},
    {"densenet", "30%", {"depth=121", "size=64", "N=2"}, true},
    {"densenet", "min", {"depth=121", "size=64", "N=2"}, false},
    {"googlenet", "min", {"N=2", "size=96"}, false},
    {"unet", "min", {NULL}, true},
    {"lstm_ptb", "min", {"N=40"}, false},
    {"nascell", "40%", {NULL}, false},
};

static void check_example(const Example *e)
{
    Elaborated model = elaborate_example(e->name, FRONTEND_TRAIN, e->defs);
    if (model.graph) {
        const char *name = pool_printf(model.pool, "%s at %s", e->name, e->budget),
                   *pipeline = pipeline_before(model.pool, "plan");
        Graph *step = planned(model.pool, model.graph, pipeline, e->budget, NULL);
        CHECK_MSG(step && check_step(model.pool, name, step) > 0, "%s: nothing runs again", name);
    }
    elaborated_free(&model);
}

int main(void)
{
    int steps = sample_number("SCRIMP_STEPS", 24), reruns = 0;
    printf("seeds 1 to %d\n", steps);
    for (int seed = 1; seed <= steps; seed++)
        reruns += check_random((uint64_t)seed);
    CHECK_MSG(reruns > steps, "%d recomputations in %d steps", reruns, steps);
    for (size_t k = 0; k < sizeof examples / sizeof *examples; k++)
        if (examples[k].quick || sample_all())
            check_example(&examples[k]);
    return test_result();
}
