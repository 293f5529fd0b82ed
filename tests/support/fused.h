/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fused nodes by hand: the compiler makes them of nodes that the graph has already. */
#ifndef SCRIMP_TESTS_FUSED_H
#define SCRIMP_TESTS_FUSED_H

#include "ir/graph.h"

/* A fused node around body (see Node.body), which must fit.  name: of the first result, made
 * unique; NULL = "%fused".  The others are called NAME#1, NAME#2. */
NodeId graph_add_fused(Graph *g, Graph *body, const ValueId *in, int n_in, const char *name,
                       Loc loc);

#endif
