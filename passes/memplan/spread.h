/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SCRIMP_PASSES_MEMPLAN_SPREAD_H
#define SCRIMP_PASSES_MEMPLAN_SPREAD_H

#include "passes/memplan/memplan.h"

/* Moves small workspaces of a plan to where nothing lies some operations before their lives.  The
 * arena stays as it is. */
void memplan_spread(Pool *scratch, MemPlan *plan);

#endif
