/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SCRIMP_PASSES_LOOPS_H
#define SCRIMP_PASSES_LOOPS_H

#include "ir/graph.h"

/* Says of every loop how many bytes the values of its body take. */
void plan_loops(Pool *scratch, Graph *g);

#endif
