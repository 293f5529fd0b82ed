/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of the tests: lines of fields without quotes, '#' begins a comment line, the first other
 * line names the columns. */
#ifndef SCRIMP_TESTS_CSV_H
#define SCRIMP_TESTS_CSV_H

#include "check.h"
#include "ir/support/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static inline CsvRow csv_split(Pool *pool, const char *line)
{
    CsvRow row = {.n = 0};
    for (const char *at = line; at && row.n < CSV_MAX_FIELDS;) {
        const char *comma = strchr(at, ',');
        row.field[row.n++] =
            comma ? pool_strndup(pool, at, (size_t)(comma - at)) : pool_strdup(pool, at);
        at = comma ? comma + 1 : NULL;
    }
    return row;
}

/* name: under tests/.  A failed check when it cannot be read or rows differ in length. */
static inline Csv csv_read(Pool *pool, const char *name)
{
    Csv csv = {.n = 0};
    VEC(CsvRow) rows = {0};
    const char *root = getenv("SCRIMP_SOURCE");
    FILE *in = fopen(pool_printf(pool, "%s/tests/%s", root ? root : ".", name), "r");
    char line[1024];
    while (in && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line == '#' || !*line)
            continue;
        CsvRow row = csv_split(pool, line);
        if (!csv.columns.n)
            csv.columns = row;
        else
            vec_push(pool, &rows, row);
        CHECK_MSG(row.n == csv.columns.n, "%s: %d fields in: %s", name, row.n, line);
    }
    CHECK_MSG(in && rows.len > 0, "%s cannot be read", name);
    if (in)
        fclose(in);
    csv.row = rows.data;
    csv.n = (int)rows.len;
    return csv;
}

/* A row's field of that column; "" when there is no such column. */
static inline const char *csv_get(const Csv *csv, const CsvRow *row, const char *column)
{
    for (int i = 0; i < csv->columns.n; i++)
        if (strcmp(csv->columns.field[i], column) == 0)
            return row->field[i];
    CHECK_MSG(false, "no column %s", column);
    return "";
}

static inline long long csv_int(const Csv *csv, const CsvRow *row, const char *column)
{
    return strtoll(csv_get(csv, row, column), NULL, 10);
}

#endif
