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
#ifndef SCRIMP_PASSES_REMAT_SEARCH_SLOTS_H
#define SCRIMP_PASSES_REMAT_SEARCH_SLOTS_H

#include "passes/remat/model/problem.h"

typedef struct Slots Slots;

/* Everything kept.  O(nodes + reads). */
Slots *slots_new(Pool *pool, const RematProblem *p);

/* A second run of this node in this slot would be valid: it may run again, and what it reads has
 * not been overwritten. */
bool slots_allowed(const Slots *s, int node, int slot);
bool slots_has(const Slots *s, int node, int slot);
/* The pair must be allowed and absent / present. */
void slots_add(Slots *s, int node, int slot);
void slots_remove(Slots *s, int node, int slot);

/* Back to everything kept.  Cannot be undone. */
void slots_clear(Slots *s);

/* Changes since the mark are undone by slots_rollback. */
int slots_mark(const Slots *s);
void slots_rollback(Slots *s, int mark);
/* Forgets how to undo. */
void slots_commit(Slots *s);

int64_t slots_peak(Slots *s, int *slot); /* with persistent tensors; slot: the first that has it */
int64_t slots_peak_within(Slots *s, int first, int last); /* slots [first, last] */
/* next[k]: the first slot >= k with more bytes than `limit`; slots_count when there is none. */
void slots_above(Slots *s, int64_t limit, int *next);
double slots_time(const Slots *s);
int slots_recomputed(const Slots *s);
/* Elementary updates so far: what an effort limit counts. */
int64_t slots_work(const Slots *s);

/* Base nodes, and slots. */
int slots_count(const Slots *s);
/* Which output of its producer a tensor is. */
int slots_output(const Slots *s, int tensor);
/* Runs of a node in ascending order; run 0 is the first one, in slot `node`. */
int slots_runs(const Slots *s, int node);
int slots_run_slot(const Slots *s, int node, int run);
/* The slot of the last read of output k of a run; the run's own slot when nothing reads it; n_nodes
 * when it lives to the end. */
int slots_life_end(const Slots *s, int node, int run, int k);
/* The run of a node that a read in this slot (by a node behind it in the base order) takes. */
int slots_run_before(const Slots *s, int node, int slot);
/* The first slot after `after` in which something reads output k of this run; -1 when none does. */
int slots_next_read(const Slots *s, int node, int run, int k, int after);
/* Recomputations in a slot, ascending. */
const int *slots_in_slot(const Slots *s, int slot, int *n);

RematSchedule slots_schedule(Pool *pool, const Slots *s);

#endif
