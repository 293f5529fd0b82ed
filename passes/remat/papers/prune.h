/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recomputations that are not worth their time, taken out of a schedule. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_PRUNE_H
#define SCRIMP_PASSES_REMAT_PAPERS_PRUNE_H

#include "passes/remat/model/problem.h"

/* Takes recomputations out of a schedule, those first that save most time per byte and run, where
 * the value can live through the gap below limit_bytes instead, until none is left to take.  Bytes
 * are counted without in-place pairs, which can only lower the peak.  O(runs log runs) a round. */
RematSchedule prune_schedule(Pool *pool, const RematProblem *p, const RematSchedule *s,
                             int64_t limit_bytes);

/* The peak as prune_schedule counts it. */
int64_t peak_without_in_place(Pool *scratch, const RematProblem *p, const RematSchedule *s);

#endif
