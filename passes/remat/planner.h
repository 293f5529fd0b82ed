/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a request to a plan: the schedule that meets a budget best, and what is reported of it.  The
 * same for the steps of models (pass_remat) and for graphs from elsewhere (external_plan); they
 * differ in what of a plan has to fit. */
#ifndef SCRIMP_PASSES_REMAT_PLANNER_H
#define SCRIMP_PASSES_REMAT_PLANNER_H

#include "passes/remat/report.h"

/* What a plan takes of the budget where that is not the peak of its schedule: the arena in which
 * its tensors are placed. */
typedef struct PlanArena {
    /* No plan of the schedule takes less; quick. */
    int64_t (*least)(void *user, const RematSchedule *s);
    /* What the plan takes: on trial, or placed as the plan that is kept will be. */
    int64_t (*bytes)(void *user, const RematSchedule *s, bool is_final);
    int64_t align; /* sizes are multiples of it */
} PlanArena;

/* A step, in the form in which it is planned. */
typedef struct PlanStep {
    const RematProblem *p;
    SolveContext context;      /* without times, which follow from the request */
    const PlanArena *arena;    /* NULL: the peak has to fit, and the order of p is as good as any */
    void *user;                /* of the arena's functions */
    const RematProblem *every; /* p with every second run that may be, which bounds and proofs are
                                  about; NULL: p */
    const CostModel *cost;     /* of p's costs, for the report; NULL: they are the user's own */
    bool runs_again;       /* operations of this form run parts of others again: no order of it is
                              without recomputation */
    bool is_finer;         /* it has tensors that other forms have not, which makes its peak larger,
                              but plans with the fewest bytes may be smaller */
    const char *way_out;   /* what else helps where no plan fits, after a comma; or "" */
    RematFigures keep_all; /* filled: each node once, in the order of p */
} PlanStep;

typedef struct RematPlan {
    const PlanStep *step; /* the form that was chosen */
    RematSchedule schedule;
    RematFigures figures;      /* remat_check's */
    const RematSolver *solver; /* that made the schedule */
    RematReport report;        /* compares with keep_all of the form that is the base */
} RematPlan;

/* Forms of a step, which compute the same bits (masks, checkpoints of loops). */
typedef struct PlanForms {
    PlanStep *const *form; /* without a budget, the first is taken as it is */
    int n;
    const PlanStep *base; /* one of them: what the user wrote, which figures are compared with, and
                             of whose peak percentages of a budget are */
} PlanForms;

/* The best plan of all forms: the least time within the budget, or with the objective `memory` the
 * fewest bytes; bounds hold for all of them.  False with E401 when no plan fits: *out is then the
 * smallest that was found.  begin: seconds of the monotonic clock, from which a time limit counts.
 */
bool remat_plan(Pool *pool, const PlanRequest *request, double begin, const PlanForms *forms,
                RematPlan *out, RematError *error);

#endif
