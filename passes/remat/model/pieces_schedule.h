/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Schedules of a step whose pieces may lie inside one another, and of the problem that counts
 * contents instead of copies (relax_pieces.h).  With views a schedule needs what its runs need
 * there: far less than the step's own problem says where concatenations are nested. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_PIECES_SCHEDULE_H
#define SCRIMP_PASSES_REMAT_MODEL_PIECES_SCHEDULE_H

#include "passes/remat/model/problem.h"

typedef struct AliasedProblem {
    RematProblem problem;
    int *node_of;  /* by node of it: the node of the step */
    int *index_of; /* by node of the step: its node; -1: it has none */
    bool *follows; /* by node of the step: a concat or slice, of whose result something may lie in
                      what it is made of */
} AliasedProblem;

/* The same runs there, without those that make nothing there and are not the first of their node.
 * O(runs), on pool. */
RematSchedule pieces_runs(Pool *pool, const AliasedProblem *x, const RematSchedule *s);

/* A schedule of p with these runs of its pieces: whoever reads a result that follows reads the
 * latest contents, so what makes it runs again in between.  remat_check may refuse it where that
 * must not be.  O(reads of all runs, with those of what follows), on pool. */
RematSchedule pieces_complete(Pool *pool, const RematProblem *p, const AliasedProblem *x,
                              const RematSchedule *runs);

/* The runs of a schedule of the step on its pieces, and their figures.  O(reads). */
RematFigures pieces_check(Pool *pool, const AliasedProblem *x, const RematSchedule *s,
                          RematSchedule *runs);

/* What a plan is likely to have in memory: the peak with copies, given, or that on pieces,
 * whichever is less. */
int64_t pieces_likely_peak(int64_t peak_bytes, const RematFigures *on_pieces);

/* The same of a schedule of the step, which may have no pieces (NULL).  O(reads). */
int64_t pieces_peak(Pool *scratch, const AliasedProblem *x, const RematSchedule *s,
                    int64_t peak_bytes);

#endif
