/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The problems in which pieces of concatenations and slices may lie inside one another (views.c).
 * Called by pass_remat. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_RELAX_PIECES_H
#define SCRIMP_PASSES_REMAT_MODEL_RELAX_PIECES_H

#include "passes/remat/model/pieces_schedule.h"
#include "passes/remat/model/step_problem.h"

typedef enum PiecesKind {
    /* A problem such that every schedule of p, with pieces of any concatenations and slices lying
     * where pass_views can put them, is a schedule of it that takes no more extra time and has no
     * more bytes alive: its bounds are bounds of arenas and overheads of the step. */
    RELAX_PROVEN,
    /* The same with copies of all that pass_views cannot avoid for certain: searched for schedules
     * whose plans are small. */
    RELAX_HEURISTIC
} PiecesKind;

/* NULL when nothing can lie inside of anything.  g, mapping: what p was made of.  Its workspaces
 * may be negative.  O(pieces and atoms read), on pool. */
const AliasedProblem *relax_pieces(Pool *pool, const Graph *g, const RematProblem *p,
                                   const RematMapping *mapping, PiecesKind kind);

#endif
