/* The problem that lower bounds are computed on, where pieces of concatenations and slices may lie
 * inside one another (views.c).  Called by pass_remat. */
#ifndef SCRIMP_PASSES_REMAT_RELAX_PIECES_H
#define SCRIMP_PASSES_REMAT_RELAX_PIECES_H

#include "passes/remat/remat.h"

/* A problem such that every schedule of p, with pieces of any concatenations and slices lying where
 * pass_views can put them, is a schedule of it that takes no more extra time and has no more bytes
 * alive: its bounds are bounds of arenas and overheads of the step.  NULL when nothing can lie
 * inside of anything.  g, mapping: what p was made of.  For bounds only: its workspaces may be
 * negative.  O(pieces and atoms read), on pool. */
const RematProblem *relax_pieces(Pool *pool, const Graph *g, const RematProblem *p,
                                 const RematMapping *mapping);

#endif
