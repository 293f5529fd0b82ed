/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Of several forms of a step, which are planned, and which plan is taken; of several answers, which
 * arena is the smallest.  A form is planned where its arena has been asked for. */
#include "check.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/planner.h"
#include "passes/remat/solvers.h"
#include "tests/support/problem_text.h"

#include <string.h>

enum { FORMS = 3 };

typedef struct Form {
    Pool *pool;
    PlanStep step;
    int asked;
} Form;

static int64_t peak_of(Form *f, const RematSchedule *s)
{
    f->asked++;
    return remat_check(f->pool, f->step.p, s).peak_bytes;
}

static int64_t least_of(void *user, const RematSchedule *s)
{
    return peak_of(user, s);
}

static int64_t bytes_of(void *user, const RematSchedule *s, bool is_final)
{
    (void)is_final;
    return peak_of(user, s);
}

static const PlanArena peaks = {least_of, bytes_of, 64};

/* A chain of so many operations whose gradients read all that they made, `bytes` each. */
static const RematProblem *chain(Pool *pool, int length, int bytes, int time)
{
    const char *text = "v0 64\n", *behind = "";
    for (int k = 1; k <= length; k++) {
        text =
            pool_printf(pool, "%sv%d %d <- v%d : time %d, forward\n", text, k, bytes, k - 1, time);
        behind = pool_printf(pool, "g%d 64%s <- g%d v%d : time 1\n%s", k, k == 1 ? " keep" : "",
                             k + 1, k, behind);
    }
    return problem_text(
        pool, pool_printf(pool, "%sg%d 64 <- v%d : loss\n%s", text, length + 1, length, behind));
}

typedef struct Case {
    Budget budget;
    RematObjective objective;
    int best;
    bool planned[FORMS];
} Case;

/* The first form is fast and large, the last one slow and small, as those of loops. */
static void check_case(const Case *c)
{
    static const int bytes[FORMS] = {64000, 6400, 640}, time[FORMS] = {10, 20, 30};
    Pool *pool = pool_new();
    Form form[FORMS];
    PlanStep *steps[FORMS];
    for (int i = 0; i < FORMS; i++) {
        form[i] = (Form){.pool = pool};
        form[i].step = (PlanStep){.p = chain(pool, 3, bytes[i], time[i]),
                                  .arena = &peaks,
                                  .user = &form[i],
                                  .way_out = ""};
        steps[i] = &form[i].step;
    }
    PlanRequest request = {.budget = c->budget,
                           .objective = c->objective,
                           .solver = remat_solver_find("scrimp"),
                           .n_threads = 1};
    PlanForms forms = {steps, FORMS, steps[0]};
    RematPlan plan;
    RematError error;
    remat_plan(pool, &request, 0, &forms, &plan, &error);
    CHECK_MSG(plan.step == steps[c->best], "%d is the best", c->best);
    for (int i = 0; i < FORMS; i++)
        CHECK_MSG((form[i].asked > 0) == c->planned[i], "best %d: form %d was asked %d times",
                  c->best, i, form[i].asked);
    pool_free(pool);
}

/* ---- trial placements ---- */

/* The answer with the smallest peak misses it for good, all others on trial only. */
typedef struct Misses {
    Form form;
    int64_t smallest_peak;
} Misses;

enum { MISSED_FOR_GOOD = 100000, MISSED_ON_TRIAL = 200000 };

static int64_t missing_least_of(void *user, const RematSchedule *s)
{
    Misses *x = user;
    int64_t peak = peak_of(&x->form, s);
    return peak == x->smallest_peak ? peak + MISSED_FOR_GOOD : peak;
}

static int64_t missing_bytes_of(void *user, const RematSchedule *s, bool is_final)
{
    Misses *x = user;
    int64_t peak = peak_of(&x->form, s);
    return peak + (peak == x->smallest_peak ? MISSED_FOR_GOOD : is_final ? 0 : MISSED_ON_TRIAL);
}

static const PlanArena missing = {missing_least_of, missing_bytes_of, 64};

static RematPlan smallest_plan(Pool *pool, PlanStep *step)
{
    PlanRequest request = {.budget = {.kind = BUDGET_MIN},
                           .objective = REMAT_MIN_TIME,
                           .solver = remat_solver_find("scrimp"),
                           .n_threads = 1};
    PlanForms forms = {&step, 1, step};
    RematPlan plan;
    RematError error;
    CHECK(remat_plan(pool, &request, 0, &forms, &plan, &error));
    return plan;
}

/* The smallest arena is that of an answer whose trial was larger than another's. */
static void check_trials(void)
{
    Pool *pool = pool_new();
    Misses x = {.form.pool = pool};
    x.form.step =
        (PlanStep){.p = chain(pool, 6, 64000, 10), .arena = &peaks, .user = &x, .way_out = ""};
    x.smallest_peak = smallest_plan(pool, &x.form.step).figures.peak_bytes;
    x.form.step.arena = &missing;
    int64_t peak = smallest_plan(pool, &x.form.step).figures.peak_bytes;
    CHECK_MSG(peak > x.smallest_peak && peak < x.smallest_peak + MISSED_FOR_GOOD,
              "a peak of %lld, the smallest is %lld", (long long)peak, (long long)x.smallest_peak);
    pool_free(pool);
}

int main(void)
{
    static const Case cases[] = {
        /* the bytes of the last are out of reach of the others */
        {{.kind = BUDGET_MIN}, REMAT_MIN_TIME, 2, {false, false, true}},
        {{.kind = BUDGET_BYTES, .amount = 1 << 30}, REMAT_MIN_MEMORY, 2, {false, false, true}},
        /* nothing fits */
        {{.kind = BUDGET_BYTES, .amount = 1}, REMAT_MIN_TIME, 2, {false, false, true}},
        /* the second and the last may fit, and the second is faster */
        {{.kind = BUDGET_BYTES, .amount = 40000}, REMAT_MIN_TIME, 1, {false, true, false}},
        /* all fit */
        {{.kind = BUDGET_BYTES, .amount = 1 << 30}, REMAT_MIN_TIME, 0, {true, false, false}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    check_trials();
    return test_result();
}
