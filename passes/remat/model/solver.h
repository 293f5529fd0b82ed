/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What every solver is: a function from a problem and options to a schedule.  The table is in
 * solvers.def. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_SOLVER_H
#define SCRIMP_PASSES_REMAT_MODEL_SOLVER_H

#include "passes/remat/model/problem.h"

typedef enum RematObjective { REMAT_MIN_TIME, REMAT_MIN_MEMORY } RematObjective;
typedef enum RematStatus {
    REMAT_OPTIMAL,
    REMAT_FEASIBLE,
    REMAT_LIMIT, /* stopped at a limit of its own: what it found may fit the budget or not */
    REMAT_INFEASIBLE
} RematStatus;

typedef struct RematNotes {
    int treewidth; /* twremat: the width of its tree decomposition */
    bool proven;   /* checkmate_ilp: nothing is faster in the base order, each node once a stage */
    bool exact;    /* scrimp: nothing is faster within the budget, or nothing is within it at all */
} RematNotes;

/* What stands beside a problem while it is solved: other forms of it, what was found out before,
 * and how long bounds and orders are looked for, in seconds of the monotonic clock: they are then
 * as good as they are, never wrong; 0 = no limit. */
typedef struct SolveContext {
    const RematProblem *relaxed; /* what bounds are of, where plans can have less in memory than
                                    their schedules (relax_pieces.h); NULL: the problem itself */
    const struct AliasedProblem *pieces;  /* what plans of schedules are likely to have in memory
                                          (pieces_schedule.h); NULL: what the problem says */
    struct SolutionCache *solution_cache; /* room for what a solver finds out; NULL: none */
    double bounds_until, orders_until;
} SolveContext;

typedef struct RematOptions {
    int64_t budget_bytes; /* for the peak; INT64_MAX = none */
    RematObjective objective;
    uint64_t seed;
    double deadline_seconds; /* of the monotonic clock, for remat_out_of_time; 0 = none.  The only
                                thing that may make an answer depend on the clock */
    int twremat_leaf_bags;   /* twremat: schedule parts of fewer bags at once; 0 = try several */
    double effort;           /* scrimp: how much to search, 1 = as much as usual; 0 = 1 */
    bool with_copies;        /* scrimp: the smallest schedule by its peak with copies; without
                                pieces (SolveContext) no other than that asked for */
    int64_t max_steps;       /* when a search that could be too long stops; 0: its own limit */
    int n_threads; /* scrimp: on how many to search; 0 = all cores.  What it finds does not depend
                      on it */
    SolveContext context;
    RematNotes *notes; /* what the solver found on the way goes there; NULL = not wanted */
    /* Told of every schedule that is scored on the way, or NULL. */
    void (*seen)(void *user, const RematSchedule *s, const RematFigures *f);
    void *user;
} RematOptions;

/* The deadline has passed: answer with the best found so far (REMAT_LIMIT). */
bool remat_out_of_time(const RematOptions *o);
/* Of two schedules by their bytes, as the solver counts, and their times: what is within the budget
 * comes first, then the objective, then the other one. */
bool remat_is_better(const RematOptions *o, int64_t a_bytes, double a_time, int64_t b_bytes,
                     double b_time);

/* A solver writes the best schedule it finds (base order and keep-everything is always one) and
 * says how it ended: FEASIBLE when remat_check puts it within the budget (OPTIMAL when it has
 * proven that no schedule within the budget is faster), INFEASIBLE with the smallest-peak schedule
 * it found otherwise, LIMIT when it might have found another answer without one of its limits. */
typedef RematStatus RematSolve(const RematProblem *p, const RematOptions *o, Pool *pool,
                               RematSchedule *out);

typedef struct RematSolver {
    const char *name; /* as in `remat { solver = ... }` and --solver */
    RematSolve *solve;
    const char *doc;   /* one line, with its source */
    bool in_portfolio; /* one of those that `best` runs; the others are for comparison, or slow */
    bool has_front; /* all budgets are answered from the front of SolveContext.solution_cache, whose
                       peaks are pieces_peak's (pieces_schedule.h) */
    bool needs_milp;    /* a library that may not be installed (milp.h) */
    bool obeys_only;    /* it recomputes what @recompute asks for, and nothing else */
    bool has_leaf_bags; /* RematOptions.twremat_leaf_bags is for it */
    int most_nodes;     /* of the largest graph that it looks at; 0: any */
} RematSolver;

typedef struct RematAnswer {
    const RematSolver *solver; /* that made it */
    RematSchedule schedule;
    RematFigures figures; /* remat_check's */
    int64_t peak_bytes;   /* as the solver counts, which is what budgets are compared with */
    bool limited;         /* the solver stopped at a limit */
} RematAnswer;

#endif
