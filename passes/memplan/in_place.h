/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SCRIMP_PASSES_MEMPLAN_IN_PLACE_H
#define SCRIMP_PASSES_MEMPLAN_IN_PLACE_H

#include "passes/memplan/memplan.h"

/* Moves outputs of a plan to where an input of their operation dies and nothing else lies until
 * they die: its buffers become one.  The arena stays as it is. */
void memplan_write_in_place(Pool *scratch, const Graph *g, MemPlan *plan);

#endif
