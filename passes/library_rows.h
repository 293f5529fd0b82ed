/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention by a library, without copies around it: called by library.c when all nodes are marked.
 */
#ifndef SCRIMP_PASSES_LIBRARY_ROWS_H
#define SCRIMP_PASSES_LIBRARY_ROWS_H

#include "ir/graph.h"

/* Leaves nodes behind that nothing reads. */
void library_by_rows(Graph *g, Pool *scratch);

#endif
