/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Pieces of concatenations and slices where the whole lies (views.c).  Called by pass_views, and by
 * pass_remat, which compares the arena with the budget. */
#ifndef SCRIMP_PASSES_VIEWS_H
#define SCRIMP_PASSES_VIEWS_H

#include "passes/memplan/memplan.h"
#include "passes/pass.h"

/* Without persistent tensors: no plan on trial of g, or of what views_of makes of it, has less. */
int64_t views_load(Pool *pool, const Graph *g);
/* A copy of g, on pool, in which pieces lie inside of the whole; NULL when none is worth it, or, on
 * trial, when not all of them are.  *arena_bytes: what its plan on trial takes, which is no more
 * than any plan of g takes. */
Graph *views_of(Pool *pool, const Graph *g, MemEffort effort, PlacementCache *cache,
                int64_t *arena_bytes);
/* Behind remat: the graph of the pass becomes what `make` does with it where a plan of what
 * views_of makes of that needs no more than the least that a trial one of the graph could, which
 * keeps to its budget.  Not for a device, and not without views. */
typedef Graph *GraphChange(Pool *pool, Pool *scratch, const Graph *old); /* a copy, or NULL */
void change_no_larger(PassContext *ctx, GraphChange *make, MemEffort effort);

#endif
