/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A schedule under construction: a base order, and any set of recomputations.
 *
 * Position s of the base order is slot s.  In slot s first the recomputations placed there run, in
 * base order, then base node s itself.  Every read takes the latest run before it; whatever set of
 * recomputations (node, slot > node) is chosen, the result is a valid schedule, because the first
 * run of every node is there.  This is Checkmate's matrix R with the frees left to liveness (Jain
 * et al. 2020, section 4), so it can express any number of recomputations at any place.
 *
 * Adding or removing one recomputation updates only the lifetimes it touches: O(operands * log n).
 * Memory through a slot is kept in a segment tree, what happens inside a slot is recounted when
 * asked for.  The peak equals remat_check's of the same schedule (tested).  Used by the scrimp
 * solver. */
#ifndef SCRIMP_PASSES_REMAT_SEARCH_INCREMENTAL_SCHEDULE_H
#define SCRIMP_PASSES_REMAT_SEARCH_INCREMENTAL_SCHEDULE_H

#include "passes/remat/model/problem.h"

typedef struct IncrementalSchedule IncrementalSchedule;

/* Everything kept.  O(nodes + reads). */
IncrementalSchedule *incremental_new(Pool *pool, const RematProblem *p);

/* A second run of this node in this slot would be valid: it may run again, and what it reads has
 * not been overwritten. */
bool incremental_allowed(const IncrementalSchedule *s, int node, int slot);
bool incremental_has(const IncrementalSchedule *s, int node, int slot);
/* The pair must be allowed and absent / present. */
void incremental_add(IncrementalSchedule *s, int node, int slot);
void incremental_remove(IncrementalSchedule *s, int node, int slot);

/* Back to everything kept.  Cannot be undone. */
void incremental_clear(IncrementalSchedule *s);

/* Changes since the mark are undone by incremental_rollback. */
int incremental_mark(const IncrementalSchedule *s);
void incremental_rollback(IncrementalSchedule *s, int mark);
/* Forgets how to undo. */
void incremental_commit(IncrementalSchedule *s);

int64_t incremental_peak(IncrementalSchedule *s,
                         int *slot); /* with persistent tensors; slot: the first that has it */
int64_t incremental_peak_within(IncrementalSchedule *s, int first,
                                int last); /* slots [first, last] */
/* next[k]: the first slot >= k with more bytes than `limit`; incremental_count when there is none.
 */
void incremental_above(IncrementalSchedule *s, int64_t limit, int *next);
double incremental_time(const IncrementalSchedule *s);
int incremental_recomputed(const IncrementalSchedule *s);
/* Elementary updates so far: what an effort limit counts. */
int64_t incremental_work(const IncrementalSchedule *s);

/* Base nodes, and slots. */
int incremental_count(const IncrementalSchedule *s);
/* Which output of its producer a tensor is. */
int incremental_output(const IncrementalSchedule *s, int tensor);
/* Runs of a node in ascending order; run 0 is the first one, in slot `node`. */
int incremental_runs(const IncrementalSchedule *s, int node);
int incremental_run_slot(const IncrementalSchedule *s, int node, int run);
/* The slot of the last read of output k of a run; the run's own slot when nothing reads it; n_nodes
 * when it lives to the end. */
int incremental_life_end(const IncrementalSchedule *s, int node, int run, int k);
/* The run of a node that a read in this slot (by a node behind it in the base order) takes. */
int incremental_run_before(const IncrementalSchedule *s, int node, int slot);
/* The first slot after `after` in which something reads output k of this run; -1 when none does. */
int incremental_next_read(const IncrementalSchedule *s, int node, int run, int k, int after);
/* Recomputations in a slot, ascending. */
const int *incremental_in_slot(const IncrementalSchedule *s, int slot, int *n);

RematSchedule incremental_schedule(Pool *pool, const IncrementalSchedule *s);

#endif
