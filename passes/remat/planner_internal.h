/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the planner share: planner.c finds a plan of a form, planner_forms.c chooses
 * between forms, planner_report.c says what a plan is and what is proven of it. */
#ifndef SCRIMP_PASSES_REMAT_PLANNER_INTERNAL_H
#define SCRIMP_PASSES_REMAT_PLANNER_INTERNAL_H

#include "passes/remat/planner.h"

/* An answer and what its plan takes of the budget: of an arena, or the peak. */
typedef struct Planned {
    RematAnswer answer;
    RematNotes notes;
    int64_t bytes;
} Planned;

/* A step, and what was found about it. */
typedef struct Solve {
    const PlanRequest *request;
    RematOptions options; /* without the budget */
    const PlanStep *step;
    const RematProblem *p;
    const RematProblem *ordered; /* p in an order with a smaller peak, or p */
    const int *order;            /* node of ordered -> node of p; NULL when they are the same */
    Pool *scratch;
    RematFigures keep_all;
    int64_t budget_bytes;
    VEC(Planned) tried;
    Planned *least; /* the smallest plan; NULL = not looked for yet */
} Solve;

/* What was chosen, of which form. */
typedef struct Chosen {
    Solve *of;
    Solve *const *all; /* forms, of which it is one */
    int n;
    Planned plan;
} Chosen;

/* The step as it is fits the budget, and no search is needed. */
bool planner_fits_as_it_is(Solve *s, Planned *out);

/* The plan of one form.  Sets the budget of `min`. */
Planned planner_plan(Solve *s);

/* The best plan of all n forms. */
Chosen planner_choose(Pool *scratch, Solve *const *all, int n);

/* False: no plan of s within the budget takes less time. */
bool planner_may_be_faster(Solve *s, int64_t budget, double than);

/* Names are on pool.  base: what figures are compared with. */
RematReport planner_report(Pool *pool, const Chosen *c, const Solve *base);

#endif
