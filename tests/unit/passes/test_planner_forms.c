/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Of several forms of a step, which are planned, and which plan is taken.  A form is planned where
 * its arena has been asked for. */
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

/* A chain whose gradients read all that it made, `bytes` each. */
static const RematProblem *chain(Pool *pool, int bytes, int time)
{
    return problem_text(pool, pool_printf(pool,
                                          "x 64\n"
                                          "a %d <- x : time %d, forward\n"
                                          "b %d <- a : time %d, forward\n"
                                          "c %d <- b : time %d, forward\n"
                                          "l 64 <- c : loss\n"
                                          "gc 64 <- l c : time 1\n"
                                          "gb 64 <- gc b : time 1\n"
                                          "ga 64 keep <- gb a : time 1\n",
                                          bytes, time, bytes, time, bytes, time));
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
        form[i].step = (PlanStep){
            .p = chain(pool, bytes[i], time[i]), .arena = &peaks, .user = &form[i], .way_out = ""};
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
    return test_result();
}
