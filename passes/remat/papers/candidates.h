/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Candidates for an answer: schedules that solvers make on the way, of which the best is kept. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_CANDIDATES_H
#define SCRIMP_PASSES_REMAT_PAPERS_CANDIDATES_H

#include "passes/remat/model/solver.h"
#include "passes/remat/papers/forward_view.h"

/* Scores choices of kept nodes with remat_check and remembers the best.  Which choices are looked
 * at must not depend on the budget: then a larger budget never costs more time. */
typedef struct Candidates {
    const ForwardView *view;
    RematOptions options;
    Pool *pool;
    RematSchedule best;
    RematFigures figures;
    int tried;
    bool limited; /* by the deadline */
} Candidates;

/* Starts with everything kept (but what @recompute forbids). */
Candidates *candidates_new(Pool *pool, const ForwardView *v, const RematOptions *o);
void candidates_try(Candidates *c, const bool *keep);
/* The same for a whole schedule; one that does not obey @keep and @recompute is passed over. */
void candidates_try_schedule(Candidates *c, const RematSchedule *s);
/* Tries keep, and then with nodes given back, those that save most time per byte first, in a few
 * steps up to keeping everything.  Changes keep. */
void candidates_try_restoring(Candidates *c, bool *keep);
/* The boundaries of an increasing sequence of lower sets and the whole last block are kept
 * (executing the last block needs no recomputation); tried as above.  set_of: by view node, the
 * number (from 0) of the first set of the sequence that holds it; n_sets includes V. */
void candidates_try_sets(Candidates *c, const int *set_of, int n_sets);
/* The best, in the candidates' own pool or a copy of it in the pool given. */
RematStatus candidates_finish(const Candidates *c, RematSchedule *out);
RematStatus candidates_answer(const Candidates *c, Pool *pool, RematSchedule *out);

/* Scores a whole schedule, then what pruning makes of it at `steps` limits from its own peak up to
 * the base order's (candidates_try for schedules). */
void candidates_try_runs(Candidates *c, const bool *late, const int *runs, int n_runs, int steps);

#endif
