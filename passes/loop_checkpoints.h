/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loops that keep fewer of their carries. */
#ifndef SCRIMP_PASSES_LOOP_CHECKPOINTS_H
#define SCRIMP_PASSES_LOOP_CHECKPOINTS_H

#include "ir/graph.h"

/* How many loops of a step keep the carry of every step for their gradient, and could keep fewer.
 */
int loops_with_states(const Graph *g);
/* What all of them keep together. */
double loops_bytes_of_states(const Graph *g);
/* Rewrites the first n of them, those with the most bytes: they keep the carry of every k-th step,
 * and their gradients run k steps again at a time.  levels = 2: of these k steps, too, not every
 * carry is kept, which runs steps twice more.  k follows from the number of steps: it divides it,
 * and makes the bytes the fewest.  The loops' arenas are planned anew.  Returns what was done in
 * words, on g->pool. */
const char *loops_checkpoint(Graph *g, int n, int levels);

#endif
