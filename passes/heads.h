/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention without copies around it: called by library.c when all nodes are marked, and by
 * pass_heads. */
#ifndef SCRIMP_PASSES_HEADS_H
#define SCRIMP_PASSES_HEADS_H

#include "ir/graph.h"

/* For nodes that a library computes, or for those that none does.  Leaves nodes behind that nothing
 * reads. */
void heads_by_rows(Graph *g, Pool *scratch, bool library);

#endif
