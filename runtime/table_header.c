/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/table_header.h"

#include "runtime/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 16 };

/* Allocated; NULL with a message. */
static char *column_name(CsvCell cell, int i, bool numbered, RtError *err)
{
    char *name = rt_alloc(numbered ? NUMBER_BYTES : (int64_t)cell.n + 1, 1, err);
    if (!name)
        return NULL;
    if (numbered)
        snprintf(name, NUMBER_BYTES, "%d", i + 1);
    else
        csv_text(cell, name);
    if (utf8_is_valid(name, strlen(name)))
        return name;
    rt_error(err, "the header is not UTF-8");
    free(name);
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two columns of one name cannot be told apart. */
static bool distinct(const TableHeader *h, RtError *err)
{
    char **name = rt_alloc(h->n, sizeof *name, err);
    if (!name)
        return false;
    memcpy(name, h->name, (size_t)h->n * sizeof *name);
    qsort(name, (size_t)h->n, sizeof *name, by_name);
    bool ok = true;
    for (int i = 1; ok && i < h->n; i++)
        if (strcmp(name[i - 1], name[i]) == 0)
            ok = rt_error(err, "two columns are called '%s'", name[i]);
    free(name);
    return ok;
}

bool table_header_read(TableHeader *h, const CsvReader *r, bool numbered, RtError *err)
{
    h->name = rt_alloc(r->n_cells, sizeof *h->name, err);
    if (!h->name)
        return false;
    for (int i = 0; i < r->n_cells; i++, h->n++) {
        h->name[i] = column_name(r->cell[i], i, numbered, err);
        if (!h->name[i])
            return false;
    }
    return distinct(h, err);
}

bool table_header_same(const TableHeader *h, const CsvReader *r, bool numbered, RtError *err)
{
    bool same = r->n_cells == h->n;
    for (int i = 0; same && i < r->n_cells; i++) {
        char *name = column_name(r->cell[i], i, numbered, err);
        if (!name)
            return false;
        same = strcmp(name, h->name[i]) == 0;
        free(name);
    }
    return same || rt_error(err, "its columns are not those of the first file");
}

void table_header_free(TableHeader *h)
{
    for (int i = 0; i < h->n; i++)
        free(h->name[i]);
    free(h->name);
    *h = (TableHeader){0};
}
