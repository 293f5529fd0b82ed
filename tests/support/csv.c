/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/csv.h"

#include "check.h"
#include "ir/support/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CsvRow csv_split(Pool *pool, const char *line)
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

Csv csv_read(Pool *pool, const char *name)
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

const char *csv_get(const Csv *csv, const CsvRow *row, const char *column)
{
    for (int i = 0; i < csv->columns.n; i++)
        if (strcmp(csv->columns.field[i], column) == 0)
            return row->field[i];
    CHECK_MSG(false, "no column %s", column);
    return "";
}

long long csv_int(const Csv *csv, const CsvRow *row, const char *column)
{
    return strtoll(csv_get(csv, row, column), NULL, 10);
}
