/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks that a graph is well formed; run after every pass. */
#ifndef SCRIMP_IR_VERIFY_H
#define SCRIMP_IR_VERIFY_H

#include "ir/graph.h"

/* Every value defined once and before use in the order, shapes as the rules say, names unique,
 * persistent tensors not read in their old version after they were overwritten, update nodes not
 * repeated, bodies of fused nodes well formed.  false and a message (on the graph's pool) at the
 * first fault. */
bool graph_verify(const Graph *g, const char **message);

#endif
