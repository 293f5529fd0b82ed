/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of text: records of cells as RFC 4180 has them, with any separator.  Called by the data
 * source csv. */
#ifndef SCRIMP_RUNTIME_CSV_H
#define SCRIMP_RUNTIME_CSV_H

#include "runtime/status.h"

/* Records of more cells are refused. */
enum { CSV_MAX_CELLS = 1 << 16 };

/* A part of the file: without its quotes, and without the spaces around it where it had none. */
typedef struct CsvCell {
    const char *text;
    size_t n;
    bool doubled; /* "" in it stands for " */
} CsvCell;

typedef struct CsvReader {
    const char *at, *end;
    char separator;
    int64_t line; /* of `at`, from 1 */
    /* the record that was read last */
    CsvCell *cell;
    int n_cells, room;
    int64_t record_line; /* where it starts */
} CsvReader;

/* Over bytes that outlive the reader; skips a byte order mark.  False with a message for UTF-16.
 * Either way csv_close frees what it holds. */
bool csv_open(CsvReader *r, const unsigned char *bytes, int64_t n, char separator, RtError *err);
void csv_close(CsvReader *r);
/* The next record that is not an empty line.  False at the end, with err->message empty, and on
 * damage, with a message that names the line. */
bool csv_next(CsvReader *r, RtError *err);

/* The text, without doubled quotes, into out, which has room for cell.n; its length. */
size_t csv_text(CsvCell cell, char *out);
/* What people write where a value is missing: nothing, NA, NaN, null, None, ?, ... as pandas. */
bool csv_is_missing(CsvCell cell);
/* A finite decimal number, or true or false as 1 and 0. */
bool csv_number(CsvCell cell, double *out);

#endif
