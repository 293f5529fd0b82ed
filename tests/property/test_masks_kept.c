/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Masks are made only where the planned arena falls, and kept under a budget only where the plan is
 * better than one without; the figures of both are the replay's.  SCRIMP_MODELS: how
 * many random models. */
#include "check.h"
#include "ir/eval.h"
#include "ir/support/strbuf.h"
#include "passes/pass.h"
#include "tests/support/elaborate_text.h"
#include "tests/support/plan_request.h"
#include "tests/support/sample.h"
#include "tests/support/solutions.h"

#include <math.h>
#include <string.h>

static const char BEFORE[] = "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,fuse,order";

static int count_masks(const Graph *g)
{
    int n = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        OpKind op = graph_node(g, g->order.data[k])->op;
        n += op == OP_relu_mask || op == OP_maxpool_index;
    }
    return n;
}

/* Gradients of pooling and relu that read the whole value take three times as long as all else:
 * masks save time. */
static double dear_wholes(void *user, const Graph *g, NodeId node)
{
    OpKind op = graph_node(g, node)->op;
    (void)user;
    return op == OP_maxpool_grad || op == OP_relu_grad ? 3 : 1;
}

static MeasuredCost *measured; /* NULL: the default estimate */

typedef struct Plans {
    PassContext of[3]; /* by MaskUse */
    bool fits[3];
} Plans;

/* One model, planned in the three ways. */
static bool plan_all(const Elaborated *r, const char *budget, const char *objective, Plans *out)
{
    PassContext before = {.graph = r->graph, .pool = r->pool};
    if (!r->graph || !passes_run(&before, BEFORE, NULL, NULL))
        return false;
    for (int use = 0; use < 3; use++) {
        PassContext *c = &out->of[use];
        *c = (PassContext){.graph = graph_copy(r->pool, before.graph),
                           .pool = r->pool,
                           .solution_cache = solutions_kept(r->pool)};
        c->request = request_of(r->pool, c->graph,
                                (PlanSettings){.budget = budget,
                                               .objective = objective,
                                               .effort = sample_effort(),
                                               .cost = measured ? "profile" : NULL});
        c->request.costs.measured = measured;
        c->request.masks = (MaskUse)use;
        out->fits[use] = passes_run(&out->of[use], "masks,remat,views,plan", NULL, NULL);
    }
    return true;
}

static void check_figures(const PassContext *c, const PassContext *never)
{
    const RematReport *r = &c->report;
    CHECK((c->masks.tensors > 0) == (count_masks(c->graph) > 0));
    CHECK(c->plan->peak_bytes <= r->peak_bytes && r->lower_bound_bytes <= r->peak_bytes &&
          r->overhead_lower_bound_percent <= r->overhead_percent + 1e-9 &&
          c->plan->arena_bytes <= r->budget_bytes);
    CHECK(r->base_cost == never->report.base_cost &&
          r->keep_all_peak_bytes == never->report.keep_all_peak_bytes);
    CHECK(fabs(100 * (r->step_cost / r->base_cost - 1) - r->overhead_percent) < 1e-9);
    if (r->recomputed_ops == 0)
        CHECK(fabs(r->overhead_percent - c->masks.overhead_percent) < 1e-9);
}

static bool is_better(const PassContext *a, const PassContext *b, bool bytes_first)
{
    int64_t x = a->plan->arena_bytes, y = b->plan->arena_bytes;
    if (bytes_first && x != y)
        return x < y;
    return a->report.step_cost < b->report.step_cost;
}

typedef struct Wins {
    int with, without;
} Wins;

/* The plan is the better of that with masks and that without, to the byte and the second, and all
 * it says holds for both.  Without a budget masks stay. */
static void check_better(const char *text, const char *budget, const char *objective, Wins *wins)
{
    Plans x;
    Elaborated r = elaborate_text(text, FRONTEND_TRAIN);
    bool ok = plan_all(&r, budget, objective, &x);
    CHECK_MSG(ok, "%s", text);
    const PassContext *by = &x.of[MASKS_BY_BUDGET], *with = &x.of[MASKS_ALWAYS],
                      *without = &x.of[MASKS_NEVER];
    bool either = x.fits[MASKS_ALWAYS] || x.fits[MASKS_NEVER];
    CHECK_MSG(ok && x.fits[MASKS_BY_BUDGET] == either, "%s\n%s", budget, text);
    if (ok && x.fits[MASKS_BY_BUDGET] && either) {
        bool bytes_first = strcmp(budget, "min") == 0 || *objective;
        bool take = x.fits[MASKS_NEVER] && *budget &&
                    (!x.fits[MASKS_ALWAYS] || is_better(without, with, bytes_first));
        const PassContext *best = take ? without : with;
        CHECK_MSG(by->plan->arena_bytes == best->plan->arena_bytes &&
                      by->report.step_cost == best->report.step_cost &&
                      by->masks.tensors == best->masks.tensors,
                  "%s %s: %lld bytes, %g; with %lld, %g; without %lld, %g\n%s", budget, objective,
                  (long long)by->plan->arena_bytes, by->report.step_cost,
                  (long long)(x.fits[MASKS_ALWAYS] ? with->plan->arena_bytes : -1),
                  with->report.step_cost,
                  (long long)(x.fits[MASKS_NEVER] ? without->plan->arena_bytes : -1),
                  without->report.step_cost, text);
        check_figures(by, without);
        wins->with += !take && with->masks.tensors > 0;
        wins->without += take && with->masks.tensors > 0;
    } else if (ok && !x.fits[MASKS_BY_BUDGET]) {
        int64_t a = with->report.min_feasible_bytes, b = without->report.min_feasible_bytes;
        CHECK(by->report.min_feasible_bytes == (a < b ? a : b));
        CHECK(!by->report.infeasible_proven ||
              by->report.lower_bound_bytes <= by->report.min_feasible_bytes);
    }
    elaborated_free(&r);
}

/* Returns how many tensors have masks without a budget, where they make the arena smaller. */
static int check_keep_all(const char *text)
{
    Plans x;
    Elaborated r = elaborate_text(text, FRONTEND_TRAIN);
    bool ok = plan_all(&r, "", "", &x);
    const PassContext *by = &x.of[MASKS_BY_BUDGET], *without = &x.of[MASKS_NEVER];
    CHECK_MSG(ok && x.fits[MASKS_BY_BUDGET] && x.fits[MASKS_NEVER], "%s", text);
    int tensors = ok ? by->masks.tensors : 0;
    if (ok) {
        CHECK(count_masks(without->graph) == 0 && without->masks.tensors == 0);
        check_figures(by, without);
        int64_t a = by->plan->arena_bytes, b = without->plan->arena_bytes;
        CHECK_MSG(tensors ? a < b : a == b, "%lld, without %lld\n%s", (long long)a, (long long)b,
                  text);
    }
    elaborated_free(&r);
    return tensors;
}

#define MODEL(layers)                                                                              \
    "model m(x: f32[4, 3, 32, 32]) {\n" layers                                                     \
    "  return x |> global_avgpool() |> flatten() |> fc: linear(10)\n}\n"                           \
    "train {\n  batch = synthetic(x = f32[4, 3, 32, 32], label = i32[4])\n"                        \
    "  loss = cross_entropy(m(batch.x), batch.label)\n  optim = sgd(lr = 0.1)\n  steps = 1\n}\n"

static void test_kept(void)
{
    /* The largest tensor is read by max pooling and the two gradients. */
    CHECK(check_keep_all(MODEL("  x = x |> c1: conv(16, 3, pad = 1) |> relu() |> maxpool(2)\n"
                               "  x = x |> c2: conv(16, 3, pad = 1) |> relu() |> maxpool(2)\n")) >=
          1);
    /* What a convolution reads is saved for its weight gradient anyway. */
    CHECK(check_keep_all(MODEL("  x = x |> c1: conv(16, 3, pad = 1) |> relu()\n"
                               "  x = x |> c2: conv(16, 3, pad = 1) |> tanh()\n")) == 0);
    /* Branches of a concatenation, which is what the next convolution reads. */
    CHECK(check_keep_all(MODEL("  a = x |> c1: conv(16, 3, pad = 1) |> relu()\n"
                               "  b = x |> c2: conv(16, 3, pad = 1) |> relu()\n"
                               "  x = concat([a, b], axis = 1) |> c3: conv(4, 3, pad = 1)\n")) >=
          1);
}

static uint32_t draws;

static bool coin(uint64_t seed)
{
    return rng_bits(seed, 0, 2, draws++) & 1;
}

/* Layers with and without what reads their results late. */
static const char *random_layers(Pool *pool, uint64_t seed)
{
    StrBuf b = strbuf_new(pool);
    for (int i = 0; i < 4; i++) {
        int c = 4 + (int)(rng_bits(seed, 0, 2, draws++) % 12);
        if (coin(seed))
            strbuf_printf(&b, "  x = x |> c[%d]: conv(%d, 3, pad = 1) |> relu()%s\n", i, c,
                          coin(seed) ? " |> maxpool(2)" : "");
        else
            strbuf_printf(&b,
                          "  a = x |> a[%d]: conv(%d, 1) |> relu()\n"
                          "  b = x |> b[%d]: conv(%d, 3, pad = 1)%s |> relu()\n"
                          "  x = concat([a, b], axis = 1)%s\n",
                          i, c, i, c, coin(seed) ? " |> tanh()" : "",
                          coin(seed) ? " |> maxpool(3, stride = 2, pad = 1)" : "");
    }
    return b.text;
}

static void test_random_models(void)
{
    static const char *const budgets[] = {"min", "30%", "60%", "90%"};
    Wins wins = {0}, bytes = {0};
    int tensors = 0;
    int n = sample_number("SCRIMP_MODELS", 3);
    for (uint64_t seed = 1; seed <= (uint64_t)n; seed++) {
        Pool *pool = pool_new();
        const char *text = pool_printf(pool, MODEL("%s"), random_layers(pool, seed));
        tensors += check_keep_all(text);
        for (int b = 0; b < 4; b++)
            check_better(text, budgets[b], "", b == 0 ? &bytes : &wins);
        check_better(text, "60%", "memory", &bytes);
        pool_free(pool);
    }
    printf("seeds 1 to %d: %d tensors; for time masks in %d plans, none in %d; for bytes %d, %d\n",
           n, tensors, wins.with, wins.without, bytes.with, bytes.without);
    CHECK(tensors > 6 && wins.with > 1 && wins.without > 0 && bytes.with > 1);
    CHECK(n < 8 || bytes.without > 0);
}

/* A budget that everything fits into: what is faster as it is, unless @recompute cannot stay. */
static void test_all_fits(void)
{
    static const char *const hints[] = {"", "@recompute "};
    Wins wins = {0};
    for (int k = 0; k < 4; k++) {
        Pool *pool = pool_new();
        measured = k / 2 ? dear_wholes : NULL;
        const char *text =
            pool_printf(pool,
                        MODEL("  x = x |> c1: conv(16, 3, pad = 1) |> %srelu() |> maxpool(2)\n"
                              "  x = x |> c2: conv(16, 3, pad = 1) |> relu() |> maxpool(2)\n"),
                        hints[k % 2]);
        check_better(text, "100%", "", &wins);
        check_better(text, "95%", "", &wins);
        pool_free(pool);
    }
    measured = NULL;
    printf("all fits: masks in %d plans, none in %d\n", wins.with, wins.without);
    CHECK(wins.with > 3 && wins.without > 0);
}

/* More bytes never take more time, whichever step they are spent on. */
static void test_monotone(void)
{
    enum { STEPS = 8 };
    int changes = 0;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        Pool *pool = pool_new();
        const char *text = pool_printf(pool, MODEL("%s"), random_layers(pool, seed));
        double last = (double)INFINITY;
        int64_t low = 0, high = 0;
        bool had_masks = false;
        for (int k = 0; k <= STEPS; k++) {
            Elaborated r = elaborate_text(text, FRONTEND_TRAIN);
            int64_t bytes = low + (high - low) * k / STEPS;
            PassContext c = {
                .graph = r.graph, .pool = r.pool, .solution_cache = solutions_kept(r.pool)};
            c.request = request_of(r.pool, r.graph,
                                   (PlanSettings){.budget = "min", .effort = sample_effort()});
            if (k > 0)
                c.request.budget = (Budget){.kind = BUDGET_BYTES, .amount = (double)bytes};
            CHECK(passes_run(&c, pipeline_train, NULL, NULL));
            if (k == 0) {
                low = c.plan->arena_bytes;
                high = c.report.keep_all_peak_bytes;
            }
            CHECK_MSG(c.report.step_cost <= last, "%d of %d: %g after %g\n%s", k, STEPS,
                      c.report.step_cost, last, text);
            last = c.report.step_cost;
            changes += k > 0 && had_masks != (c.masks.tensors > 0);
            had_masks = c.masks.tensors > 0;
            elaborated_free(&r);
        }
        CHECK(!had_masks && last > 0); /* all that there is: nothing is faster */
        pool_free(pool);
    }
    printf("%d changes between masks and none\n", changes);
    CHECK(changes > 1);
}

int main(void)
{
    test_kept();
    test_all_fits();
    test_random_models();
    test_monotone();
    return test_result();
}
