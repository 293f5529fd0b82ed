/* What the two files of pass_remat share: remat_pass.c plans a step within its budget,
 * remat_choose.c decides between the step with masks and the one without. */
#ifndef SCRIMP_PASSES_REMAT_PASS_INTERNAL_H
#define SCRIMP_PASSES_REMAT_PASS_INTERNAL_H

#include "passes/pass.h"
#include "passes/remat/model/step_problem.h"
#include "passes/remat/solve.h"

/* An answer and what its plan takes. */
typedef struct Planned {
    RematAnswer answer;
    RematNotes notes;
    int64_t arena_bytes;
} Planned;

/* A step, and what was found about it. */
typedef struct Solve {
    PassContext *ctx;
    Pool *scratch;
    Graph *graph;
    RematProblem *p;
    RematMapping mapping;
    PlanRequest request;
    RematOptions options; /* without the budget */
    RematFigures keep_all;
    int64_t budget_bytes;
    VEC(Planned) tried;
    Planned *least; /* the answer with the smallest arena; NULL = not looked for yet */
} Solve;

/* The solver asked for has one search for all budgets. */
static inline bool solve_has_front(const Solve *s)
{
    return s->request.solver && s->request.solver->has_front;
}

/* No search is needed: the step fits the budget with each node once in the order there is, and time
 * is asked for of a solver that would find that. */
bool solve_fits_as_it_is(Solve *s, Planned *out);

/* What the request asks for, of this step.  Sets the budget of `min`. */
Planned solve_request(Solve *s);

/* What was chosen, of which step. */
typedef struct Chosen {
    Solve *of, *other; /* other: NULL when there is but one step */
    Solve *base;       /* the step without masks: what is reported is compared with it */
    Planned plan;
} Chosen;

/* The better plan of a step with masks and the whole one (NULL: there are none).  Without a budget
 * masks stay.  What fits comes first, then the time; for `min`, the objective `memory` and where
 * nothing fits the arena, then the time; then masks. */
Chosen choose_step(Solve *s, Solve *whole);

/* No plan of the other step takes less time within the budget, or none was looked for. */
bool chosen_is_fastest(const Chosen *c);

#endif
