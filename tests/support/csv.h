/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of the tests: lines of fields without quotes, '#' begins a comment line, the first other
 * line names the columns. */
#ifndef SCRIMP_TESTS_CSV_H
#define SCRIMP_TESTS_CSV_H

#include "ir/support/pool.h"

enum { CSV_MAX_FIELDS = 16 };

typedef struct CsvRow {
    const char *field[CSV_MAX_FIELDS];
    int n;
} CsvRow;

typedef struct Csv {
    CsvRow *row;
    int n;
    CsvRow columns;
} Csv;

/* name: under tests/.  A failed check when it cannot be read or rows differ in length. */
Csv csv_read(Pool *pool, const char *name);
/* A row's field of that column; "" when there is no such column. */
const char *csv_get(const Csv *csv, const CsvRow *row, const char *column);
long long csv_int(const Csv *csv, const CsvRow *row, const char *column);

#endif
