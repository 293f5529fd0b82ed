/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers of solvers, kept for later questions about an equal problem: in memory for the builds of
 * one model, and in a store for later runs of the program.  Used by solve.c and scrimp.c.
 *
 * A key is a hash of all that an answer depends on: every number of the problem, costs included,
 * the solver with its options, and the solvers' source code.  Names and time limits are no part of
 * it; with a time limit nothing is kept.  What comes from a store is replayed by remat_check. */
#ifndef SCRIMP_PASSES_REMAT_CACHE_SOLUTION_CACHE_H
#define SCRIMP_PASSES_REMAT_CACHE_SOLUTION_CACHE_H

#include "passes/remat/model/pareto_front.h"
#include "passes/remat/model/solver.h"

/* Where what solvers found out outlives the program; entries may vanish or be damaged. */
typedef struct SolutionStore {
    /* What was put under the key, on the pool; NULL: nothing. */
    const char *(*get)(void *user, Pool *pool, const char *key, size_t *bytes);
    void (*put)(void *user, const char *key, const char *data, size_t bytes);
    void *user;
} SolutionStore;

typedef struct SolutionCache {
    Pool *pool;
    const SolutionStore *store; /* NULL: none */
    ParetoFront front;          /* in a child of the pool */
    ParetoFront with_copies; /* the same pool; where there are pieces: the schedule whose peak with
                          copies is the smallest, which may have the smallest arena */
    char key[33];            /* of the question that it answers; "": none */
    bool complete;           /* the search came to its end */
    bool exact;              /* the front is that of all schedules */
    struct SolutionCache *second;
} SolutionCache;

/* Room for what is found out.  The scrimp solver's one search answers all budgets: with this
 * in its context it is made once.  Problems that are equal may share one (several builds of one
 * model); it holds what was found for the last problem that was new, in the pool given.  With a
 * store, slow answers are also kept there, for later runs; NULL = no store. */
SolutionCache *solution_cache_new(Pool *pool, const SolutionStore *store);
/* Beside it, with the same store: room for a problem that is solved in turn with the first. */
SolutionCache *solution_cache_second(SolutionCache *cache);

/* How much the scrimp solver searches; 1 = as much as usual. */
double remat_effort(const RematOptions *o);

/* True: cache->front is all that scrimp's search finds, or found until time was up.  False: it is
 * empty, and about this question.  O(size of the problem), and the replays of what is read. */
bool solution_cache_recall_front(SolutionCache *cache, const RematProblem *p,
                                 const RematOptions *o);
/* The search has filled it, or ran out of time. */
void solution_cache_keep_front(SolutionCache *cache, const RematOptions *o);

/* The same for one answer of one solver, in the store of o->context.solution_cache, with its notes.
 * Solvers that are in_portfolio have none: they are as quick as reading a file, or scrimp, which
 * has its front. */
bool solution_cache_recall_answer(const RematProblem *p, const RematSolver *only,
                                  const RematOptions *o, Pool *pool, RematAnswer *out);
void solution_cache_keep_answer(const RematProblem *p, const RematSolver *only,
                                const RematOptions *o, const RematAnswer *a);

#endif
