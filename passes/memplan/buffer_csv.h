/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Buffers with known lives as CSV, in MiniMalloc's format: a heading with the columns id, lower,
 * upper and size in any order, then one row a buffer.  Called by `scrimp arena`; see
 * docs/graphs.md. */
#ifndef SCRIMP_PASSES_MEMPLAN_BUFFER_CSV_H
#define SCRIMP_PASSES_MEMPLAN_BUFFER_CSV_H

#include "ir/support/strbuf.h"
#include "passes/memplan/memplan.h"

#include <stdio.h>

typedef struct BufferCsv {
    int n;
    MemBuffer *buffer;   /* lower, upper >= 0; size >= 0; all sizes together at most 2^60 */
    const char *heading; /* as it was read */
    const char **row;    /* by buffer, as it was read */
} BufferCsv;

/* False with a message that names the line: not text, a column missing, given twice or not
 * understood (alignment other than 1, gaps, a column `offset`), not a number, a number past 2^63,
 * negative, upper <= lower, an id given twice.  Empty lines are skipped.  O(length). */
bool buffer_csv_read(Pool *pool, const char *text, size_t length, BufferCsv *out,
                     const char **fault);

/* The rows as they were read, with the column offset added. */
void buffer_csv_write(const BufferCsv *csv, const int64_t *offset, FILE *out);

/* The buffers of a plan that was made with MEMPLAN_FINAL, for `scrimp plan --arena-csv`: as
 * buffer_csv_read takes them, with the offset in the arena as planned_offset.  The id is the value
 * that was made first, or "workspace of" the operation's. */
void buffer_csv_write_plan(const Graph *g, const MemPlan *plan, StrBuf *out);

#endif
