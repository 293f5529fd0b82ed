/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The replay against hand-made figures and broken schedules, the peak bound against exhaustive
 * search, budgets as text, and the pass: reports, errors, hints.
 * SCRIMP_PROBLEMS: how many random problems. */
#include "check.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/budget.h"
#include "passes/remat/solvers.h"
#include "tests/support/plan_request.h"
#include "tests/support/problem_text.h"
#include "tests/support/random_problem.h"
#include "tests/support/sample.h"

#include <string.h>

static const char small[] = "x 64\n"
                            "w 256 persistent\n"
                            "a 128 <- x : time 1, forward\n"
                            "b 128 <- a : time 2, forward, over a\n"
                            "c 64 <- b : time 3, forward, loss, workspace 192\n"
                            "d 64 <- a c : time 4\n"
                            "e 64 keep <- w d : time 5\n"
                            "w2 0 <- w d : time 6, once, overwrites w\n";

enum { MAKE_A, MAKE_B, MAKE_C, MAKE_D, MAKE_E, UPDATE };

static RematFigures replay(Pool *pool, const RematProblem *p, int len, const int *nodes)
{
    RematSchedule s = {len, POOL_ARRAY(pool, (size_t)len + 1, int)};
    memcpy(s.node, nodes, (size_t)len * sizeof *nodes);
    return remat_check(pool, p, &s);
}

#define REPLAY(...)                                                                                \
    replay(pool, p, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})

static void check_figures(Pool *pool)
{
    RematProblem *p = problem_text(pool, small);
    /* at c: a 128, b 128, c 64, workspace 192 beside 256 persistent */
    RematFigures f = REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_D, MAKE_E, UPDATE);
    CHECK_MSG(f.ok, "%s", f.fault);
    CHECK(f.peak_bytes == 256 + 512 && f.peak_at == 2 && f.time == 21 && f.time_once == 21);
    /* a again before d: b takes a's place; x lives on; at c: x 64, b 128, c 64, workspace 192 */
    f = REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_A, MAKE_D, MAKE_E, UPDATE);
    CHECK(f.ok && f.peak_bytes == 256 + 448 && f.recomputed == 1 && f.time == 22);
    /* a result that another run makes again: the first version dies at once */
    f = REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_D, MAKE_E, MAKE_E, UPDATE);
    CHECK(f.ok && f.recomputed == 1 && f.peak_bytes == 256 + 512);
}

static void check_faults(Pool *pool)
{
    RematProblem *p = problem_text(pool, small);
    CHECK(!REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_D, MAKE_E).ok);                 /* never ran */
    CHECK(!REPLAY(MAKE_B, MAKE_A, MAKE_C, MAKE_D, MAKE_E, UPDATE).ok);         /* undefined */
    CHECK(!REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_D, MAKE_E, UPDATE, UPDATE).ok); /* not twice */
    CHECK(!REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_D, UPDATE, MAKE_E).ok);         /* old version */
    CHECK(!REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_D, MAKE_E, UPDATE, MAKE_E).ok); /* old version */
    CHECK(!REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_D, MAKE_E, UPDATE, 6).ok);      /* no node */
    CHECK(!REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_D, MAKE_E, UPDATE, -1).ok);
    p->node[MAKE_A].rerun = false;
    CHECK(!REPLAY(MAKE_A, MAKE_B, MAKE_C, MAKE_A, MAKE_D, MAKE_E, UPDATE).ok);
}

/* The same peak by brute force: for every run and tensor version, is it alive? */
static int64_t naive_peak(Pool *pool, const RematProblem *p, const RematSchedule *s)
{
    int64_t peak = 0;
    int *maker = POOL_ARRAY(pool, (size_t)s->len * 2 + 1, int); /* run that made it */
    for (int i = 0; i < s->len; i++) {
        int64_t alive = p->persistent_bytes + p->node[s->node[i]].workspace;
        for (int t = 0; t < p->n_tensors; t++) {
            if (p->tensor[t].persistent)
                continue;
            int n_made = 0;
            if (p->tensor[t].producer < 0)
                maker[n_made++] = -1;
            for (int j = 0; j < s->len; j++)
                if (s->node[j] == p->tensor[t].producer)
                    maker[n_made++] = j;
            for (int v = 0; v < n_made; v++) {
                int end = v + 1 < n_made ? maker[v + 1] : s->len,
                    last = maker[v] < 0 ? 0 : maker[v];
                for (int j = maker[v] + 1; j < end + (end < s->len); j++)
                    for (int k = 0; k < p->node[s->node[j]].n_in; k++)
                        if (p->node[s->node[j]].in[k] == t)
                            last = j;
                if (p->tensor[t].keep && v + 1 == n_made)
                    last = s->len;
                if (maker[v] <= i && i <= last)
                    alive += p->tensor[t].bytes;
            }
        }
        peak = alive > peak ? alive : peak;
    }
    return peak;
}

typedef struct Exhaust {
    Pool *pool;
    const RematProblem *p;
    RematSchedule s;
    int max_len;
    int64_t best;
    long visited;
} Exhaust;

static void exhaust(Exhaust *x)
{
    Pool *pool = pool_new_child(x->pool);
    RematFigures f = remat_check(pool, x->p, &x->s);
    pool_free(pool);
    x->visited++;
    if (f.ok && f.peak_bytes < x->best)
        x->best = f.peak_bytes;
    for (int n = 0; n < x->p->n_nodes && x->s.len < x->max_len; n++) {
        x->s.node[x->s.len++] = n;
        exhaust(x);
        x->s.len--;
    }
}

/* Without in-place pairs the naive count must agree; no schedule goes below the bound; no solver
 * below the best. */
static void check_against_search(void)
{
    Random r = {4711};
    int problems = sample_number("SCRIMP_PROBLEMS", 10);
    printf("seed 4711, %d problems\n", problems);
    for (int k = 0; k < problems; k++) {
        Pool *pool = pool_new();
        RematProblem *p = random_problem(pool, &r, 3 + random_below(&r, 2));
        Exhaust x = {.pool = pool, .p = p, .max_len = p->n_nodes + 2, .best = INT64_MAX};
        x.s.node = POOL_ARRAY(pool, (size_t)x.max_len, int);
        exhaust(&x);
        int node;
        int64_t bound = remat_peak_lower_bound(p, pool, 0, &node);
        CHECK_MSG(bound <= x.best && node >= 0, "case %d: bound %lld, best %lld", k,
                  (long long)bound, (long long)x.best);
        for (int n = 0; n < p->n_nodes; n++)
            p->node[n].n_in_place = 0;
        for (const RematSolver *solver = remat_solvers; solver->name; solver++) {
            RematOptions o = {
                .budget_bytes = x.best, .objective = REMAT_MIN_MEMORY, .max_steps = 1000000};
            RematSchedule s;
            solver->solve(p, &o, pool, &s);
            RematFigures f = remat_check(pool, p, &s);
            CHECK_MSG(f.ok && f.peak_bytes == naive_peak(pool, p, &s), "case %d: %lld, naive %lld",
                      k, (long long)f.peak_bytes, (long long)naive_peak(pool, p, &s));
        }
        pool_free(pool);
    }
}

static int64_t bytes_of(const char *text)
{
    Budget b;
    return budget_parse(text, &b) ? budget_bytes(b, 1000, 2000) : -1;
}

static void check_budgets(Pool *pool)
{
    CHECK(bytes_of("") == INT64_MAX && bytes_of(NULL) == INT64_MAX && bytes_of("min") == 0);
    CHECK(bytes_of("512MiB") == 512 << 20 && bytes_of("8GiB") == (int64_t)8 << 30);
    CHECK(bytes_of("1.5GB") == 1500000000 && bytes_of("4096") == 4096 &&
          bytes_of("1.5KiB") == 1536);
    CHECK(bytes_of("4G") == (int64_t)4 << 30 && bytes_of("1.5K") == 1536 &&
          bytes_of("2M") == 2 << 20 && bytes_of("1T") == (int64_t)1 << 40);
    CHECK(bytes_of("40%") == 1400 && bytes_of("100%") == 2000 && bytes_of("0%") == 1000);
    static const char *const bad[] = {
        "-1",   "40% of 3K", "0.5", "4g", "8Gib", "x",    "40%%", "1e9",
        "0x10", "inf",       "nan", ".",  "%",    "1..5", " 1",   "99999999999999TiB"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        CHECK_MSG(bytes_of(bad[k]) == -1, "%s", bad[k]);
    CHECK(strcmp(bytes_text(pool, 100), "100B") == 0 &&
          strcmp(bytes_text(pool, 1 << 20), "1MiB") == 0);
    for (int64_t n = 1; n < (int64_t)1 << 50; n += n / 3 + 7)
        CHECK(bytes_of(bytes_text(pool, n)) >= n);
}

/* One search for all budgets of one graph, as in a sweep; NULL = a search each. */
static struct SolutionCache *shared_cache;

static bool run_pass(Pool *pool, Graph *g, const char *budget, const char *solver, PassContext *ctx)
{
    PlanSettings settings = {
        .budget = budget, .solver = solver, .no_views = true, .effort = sample_effort()};
    *ctx = (PassContext){.graph = g,
                         .pool = pool,
                         .request = request_of(pool, g, settings),
                         .solution_cache = shared_cache};
    const char *fault = "";
    bool ok = pass_remat(ctx);
    CHECK_MSG(graph_verify(ctx->graph, &fault), "%s", fault);
    CHECK(ok == (ctx->error.message == NULL));
    return ok && pass_plan(ctx);
}

static void check_report(Pool *pool, uint64_t seed)
{
    Graph *g = random_step(pool, seed, 60);
    shared_cache = solution_cache_new(pool, NULL);
    PassContext order = {.graph = g, .pool = pool}, none, least, c;
    pass_order(&order);
    CHECK(run_pass(pool, graph_copy(pool, g), "", NULL, &none));
    CHECK(none.report.recomputed_ops == 0 &&
          none.report.peak_bytes == none.report.keep_all_peak_bytes);
    CHECK(run_pass(pool, graph_copy(pool, g), "min", NULL, &least));
    CHECK(least.plan->arena_bytes <= least.report.min_feasible_bytes);
    static const char *const budgets[] = {"100%", "90%", "80%", "70%", "60%",
                                          "50%",  "40%", "20%", "0%"};
    double overhead = 0;
    for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++) {
        bool ok = run_pass(pool, graph_copy(pool, g), budgets[k], NULL, &c);
        CHECK(ok == (c.report.status != REMAT_INFEASIBLE));
        CHECK(ok == (c.report.budget_bytes >= least.report.min_feasible_bytes));
        if (!ok) {
            CHECK(strcmp(c.error.code, "E401") == 0 && strstr(c.error.message, "infeasible: ") &&
                  strstr(c.error.help, "("));
            CHECK(c.report.min_feasible_bytes == least.report.min_feasible_bytes);
            continue;
        }
        CHECK(c.plan->arena_bytes <= c.report.budget_bytes);
        CHECK(c.plan->peak_bytes == c.report.peak_bytes);
        CHECK_MSG(c.report.overhead_percent >= overhead - 1e-9, "%s: %.3f after %.3f", budgets[k],
                  c.report.overhead_percent, overhead);
        overhead = c.report.overhead_percent;
    }
    const char *exact = pool_printf(pool, "%lld", (long long)least.report.min_feasible_bytes);
    CHECK(run_pass(pool, graph_copy(pool, g), exact, NULL, &c));
    exact = pool_printf(pool, "%lld", (long long)least.report.min_feasible_bytes - 64);
    CHECK(!run_pass(pool, graph_copy(pool, g), exact, NULL, &c));
    shared_cache = NULL;
}

/* The upper layer wins, also with "", and a mistake below it is not looked at. */
static void check_layers(Pool *pool)
{
    const PlanSettings file = {.budget = "60%", .solver = "nosuch", .cost = "unit", .seed = 7},
                       line = {.budget = "", .solver = "chen", .effort = 2, .no_views = true},
                       none = {0};
    PlanSettings s = plan_settings_merge(&line, &file);
    PlanRequest r;
    RematError e;
    CHECK(plan_request_read(pool, &s, &r, &e) && r.budget.kind == BUDGET_NONE);
    CHECK(strcmp(r.solver->name, "chen") == 0 && strcmp(r.costs.model->name, "unit") == 0);
    CHECK(r.seed == 7 && r.effort == 2 && r.no_views && r.masks == MASKS_BY_BUDGET);
    s = plan_settings_merge(&none, &file);
    CHECK(!plan_request_read(pool, &s, &r, &e) && strcmp(e.code, "E404") == 0);
    CHECK(plan_request_read(pool, &none, &r, &e) && r.objective == REMAT_MIN_TIME);
    CHECK(strcmp(r.solver->name, "scrimp") == 0 && r.costs.model == cost_models);
}

static const char *refusal(Pool *pool, PlanSettings s, const char *help)
{
    PlanRequest r;
    RematError e = {.code = "none"};
    bool ok = plan_request_read(pool, &s, &r, &e);
    CHECK(ok == (strcmp(e.code, "none") == 0) && (!help || strstr(e.help, help)));
    return e.code;
}

static void see_pass(void *user, const Pass *pass, const Graph *g, double seconds)
{
    (void)pass, (void)g, (void)seconds;
    ++*(int *)user;
}

static void check_errors(Pool *pool)
{
    int n_run = 0;
    PassContext c = {.graph = random_step(pool, 2, 10), .pool = pool};
    CHECK(strcmp(refusal(pool, (PlanSettings){.budget = "lots"}, "40%"), "E403") == 0);
    CHECK(strcmp(refusal(pool, (PlanSettings){.solver = "chenn"}, "`chen`"), "E404") == 0);
    CHECK(strcmp(refusal(pool, (PlanSettings){.solver = "gurobi"}, "dtr, "), "E404") == 0);
    CHECK(strcmp(refusal(pool, (PlanSettings){.solver = "gurobi"}, "plan --compare"), "E404") == 0);
    CHECK(strcmp(refusal(pool, (PlanSettings){.objective = "speed"}, "time"), "E405") == 0);
    CHECK(strcmp(refusal(pool, (PlanSettings){.cost = "profiel"}, "`profile`"), "E412") == 0);
    CHECK(!passes_run(&c, "fold,remat(budget=lots)", see_pass, &n_run));
    CHECK(strcmp(c.error.code, "E403") == 0 && n_run == 0);
    CHECK(!passes_run(&c, "fold,remat(cost=profile)", see_pass, &n_run));
    CHECK(strcmp(c.error.code, "E412") == 0 && n_run == 0);
}

/* Tensors of 2^59 bytes each. */
static void check_too_large(Pool *pool)
{
    Graph *g = graph_new(pool, "large");
    int64_t dims[2] = {1 << 28, 1 << 29};
    ValueId x = graph_add_source(g, OP_input, type_make(DTYPE_F32, 2, dims), NULL, "%x", (Loc){0});
    for (int k = 0; k < 20; k++)
        x = graph_add(g, OP_relu, &x, 1, NULL, NULL, (Loc){0});
    graph_add_output(g, "loss", x);
    PassContext c = {.graph = g, .pool = pool};
    CHECK(!pass_order(&c) && strcmp(c.error.code, "E406") == 0);
    CHECK(!pass_remat(&c) && !pass_plan(&c));
}

static Node *node_named(const Graph *g, const char *name)
{
    return value_node(g, graph_find(g, name));
}

static int count_clones(const Graph *g, const Node *of)
{
    int n = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *x = graph_node(g, g->order.data[k]);
        n += x->remat_of != NODE_NONE && graph_node(g, x->remat_of) == of;
    }
    return n;
}

/* Every forward element-wise operation in turn is kept, and recomputed. */
static void check_hints(Pool *pool)
{
    int obeyed = 0;
    for (size_t k = 0; k < 40; k++) {
        Graph *g = random_step(pool, 11, 30);
        const char *name = pool_printf(pool, "%%relu.%zu", k);
        PassContext c;
        if (graph_find(g, name) == VALUE_NONE)
            break;
        node_named(g, name)->hint = REMAT_KEEP;
        CHECK(run_pass(pool, g, "min", NULL, &c) && count_clones(g, node_named(g, name)) == 0);
        g = random_step(pool, 11, 30);
        node_named(g, name)->hint = REMAT_RECOMPUTE;
        CHECK(run_pass(pool, g, "", NULL, &c));
        obeyed += count_clones(g, node_named(g, name));
    }
    CHECK(obeyed > 0);
    Graph *g = random_step(pool, 11, 30);
    PassContext c;
    value_node(g, graph_output(g, "loss"))->hint = REMAT_RECOMPUTE;
    CHECK(!run_pass(pool, g, "", NULL, &c) && strcmp(c.error.code, "E402") == 0);
    CHECK(strstr(c.error.message, graph_value(g, graph_output(g, "loss"))->name));
}

int main(void)
{
    Pool *pool = pool_new();
    check_figures(pool);
    check_faults(pool);
    check_against_search();
    check_budgets(pool);
    for (uint64_t seed = 20; seed < 23; seed++)
        check_report(pool, seed);
    check_layers(pool);
    check_errors(pool);
    check_too_large(pool);
    check_hints(pool);
    pool_free(pool);
    return test_result();
}
