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
/* The memory plan, a section of its own keyed by name (docs/ir.md).  offset, size (bytes),
 * live_begin, live_end (places in the order) are by value; offset -1: not in the plan.  persistent,
 * arena, peak: bytes; extra_flops: of recomputation, 0 when there is none. */
void graph_print_plan(const Graph *g, const int64_t *offset, const int64_t *size,
                      const int *live_begin, const int *live_end, int64_t persistent, int64_t arena,
                      int64_t peak, const char *peak_name, double extra_flops, StrBuf *out);
/* Graphviz. */
void graph_print_dot(const Graph *g, StrBuf *out);
/* NULL after diag_error when the text is not a well-formed graph.  Never trusts the text: shapes
 * are checked, names resolved, nesting bounded. */
Graph *graph_read(Pool *pool, const char *file_name, const char *text, size_t length, Diag *diag);

#endif
