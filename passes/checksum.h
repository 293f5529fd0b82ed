/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SCRIMP_PASSES_CHECKSUM_H
#define SCRIMP_PASSES_CHECKSUM_H

#include "passes/memplan/memplan.h"

/* Adds an output "checksum:$d.P" for every gradient $d.P that has storage of its own.  The plan of
 * the graph stays as it is, but for what they take behind its arena (plan->appended_bytes). */
void plan_add_checksums(Pool *pool, Graph *g, MemPlan *plan);

#endif
