/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text form of the IR (docs/ir.md): print.c writes it, read.c reads it back byte for byte. */
#ifndef SCRIMP_IR_PRINT_H
#define SCRIMP_IR_PRINT_H

#include "ir/graph.h"
#include "ir/support/diag.h"
#include "ir/support/strbuf.h"

typedef struct PrintOptions {
    bool no_loc;
} PrintOptions;

void graph_print(const Graph *g, PrintOptions options, StrBuf *out);
typedef struct PlanText {
    const int64_t *offset; /* by value; -1: not in the plan */
    int64_t persistent_bytes, arena_bytes, peak_bytes;
    NodeId peak_node; /* where the peak is, or NODE_NONE */
} PlanText;

/* The memory plan, a section of its own keyed by name (docs/ir.md): what the nodes of the order
 * make, with its offset, its size and its life, in places of the order. */
void graph_print_plan(const Graph *g, const PlanText *plan, StrBuf *out);
/* Graphviz. */
void graph_print_dot(const Graph *g, StrBuf *out);
/* NULL after diag_error when the text is not a well-formed graph.  Never trusts the text: shapes
 * are checked, names resolved, nesting bounded. */
Graph *graph_read(Pool *pool, const char *file_name, const char *text, size_t length, Diag *diag);

#endif
