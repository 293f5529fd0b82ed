/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables.  Every row has a hidden class, from which numbers differ by noise and categories mostly
 * follow. */
#include "runtime/file.h"
#include "runtime/standin_internal.h"
#include "runtime/table_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2000, MOST_CATEGORIES = 8 };

/* A column of the file. */
typedef struct Made {
    char name[80];
    const TableField *field;
    int64_t values; /* of a category */
    bool label;
} Made;

typedef struct MadeTable {
    TableFields fields;
    Made *column;
    int n, room;
} MadeTable;

static bool add_column(MadeTable *t, const TableField *f, const char *name, int64_t values,
                       RtError *err)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->column[i].name, name) == 0)
            return true;
    if (t->n == t->room) {
        int room = 2 * t->room + 16;
        Made *grown = realloc(t->column, (size_t)room * sizeof *grown);
        if (!grown)
            return rt_error(err, "out of memory");
        t->column = grown;
        t->room = room;
    }
    Made *m = &t->column[t->n++];
    *m = (Made){.field = f, .values = values};
    m->label = strcmp(f->name, "label") == 0 || strcmp(f->name, "y") == 0;
    if (strlen(name) >= sizeof m->name)
        return rt_error(err, "column %s: its name is too long to make one up", name);
    strcpy(m->name, name);
    return true;
}

/* "pixel*" stands for pixel1, pixel2, ... */
static bool add_pattern(MadeTable *t, const TableField *f, const char *name, int64_t n,
                        int64_t values, RtError *err)
{
    char one[80];
    size_t star = strcspn(name, "*");
    for (int64_t i = 0; i < n; i++) {
        snprintf(one, sizeof one, "%.*s%lld%s", (int)star, name, (long long)i + 1, name + star + 1);
        if (!add_column(t, f, one, values, err))
            return false;
    }
    return true;
}

static bool add_field(MadeTable *t, const DataSpec *spec, const TableField *f, RtError *err)
{
    int64_t limit = standin_limit(spec, f->name, 2), left = f->width;
    const char *classes = f->classes;
    for (const char *name = f->names; *name;) {
        char one[200];
        size_t n = strcspn(name, "\t");
        int64_t values = f->kind == COLUMN_ONE_HOT ? atoll(classes) : limit + 1;
        values -= f->missing == MISSING_OWN && values > 1;
        values = values > MOST_CATEGORIES && !(*f->classes) && f->kind != COLUMN_INTEGER
                     ? MOST_CATEGORIES
                     : values;
        snprintf(one, sizeof one, "%.*s", (int)n, name);
        if (!(strchr(one, '*') ? add_pattern(t, f, one, left, values, err)
                               : add_column(t, f, one, values, err)))
            return false;
        left--;
        classes = strchr(classes, ',') ? strchr(classes, ',') + 1 : classes;
        name += n + (name[n] == '\t');
    }
    return true;
}

/* A text in quotes where it has to be. */
static void put_text(MadeBytes *b, const char *text, char separator)
{
    if (!strpbrk(text, "\"\n\r") && !strchr(text, separator)) {
        made_add(b, text, (int64_t)strlen(text));
        return;
    }
    made_add(b, "\"", 1);
    for (; *text; text++)
        made_add(b, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    made_add(b, "\"", 1);
}

/* What a column has of a class: the same for all rows. */
static int64_t of_class(const char *column, int64_t class, int64_t n)
{
    Dice d = dice_of(column, 1 + class);
    return dice_roll(&d, n);
}

static void put_value(MadeBytes *b, const Made *m, int64_t class, Dice *d)
{
    if (m->field->missing != MISSING_ERROR && dice_roll(d, 50) == 0)
        return;
    if (m->field->kind == COLUMN_NUMBER) {
        double centre = (double)of_class(m->name, class, 100);
        made_text(b, "%.3f", centre + (m->label ? 1 : 15) * dice_normal(d));
        return;
    }
    int64_t v = m->label              ? class % m->values
                : dice_roll(d, 3) > 0 ? of_class(m->name, class, m->values)
                                      : dice_roll(d, m->values);
    if (m->field->kind == COLUMN_INTEGER)
        made_text(b, "%lld", (long long)v);
    else
        made_text(b, "%s_%03lld", m->label ? "class" : "value", (long long)v);
}

/* Columns without names are in the order of their numbers. */
static const Made *numbered(const MadeTable *t, int number)
{
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->column[i].name, name) == 0)
            return &t->column[i];
    return NULL;
}

static int64_t hidden_classes(const MadeTable *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->column[i].label && t->column[i].field->kind != COLUMN_NUMBER)
            return t->column[i].values;
    return MOST_CATEGORIES;
}

/* header = false: the columns that are named, and what is missing between them. */
static int file_columns(const MadeTable *t, bool no_header)
{
    int most = 0;
    for (int i = 0; no_header && i < t->n; i++)
        most = atoi(t->column[i].name) > most ? atoi(t->column[i].name) : most;
    return no_header ? most : t->n;
}

static bool write_rows(const MadeTable *t, const DataSpec *spec, RtError *err)
{
    MadeBytes b = {0};
    const char *dot = strrchr(spec->path, '.');
    char separator = spec->separator && *spec->separator ? *spec->separator
                     : dot && strcmp(dot, ".tsv") == 0   ? '\t'
                     : dot && strcmp(dot, ".tab") == 0   ? '\t'
                                                         : ',';
    int columns = file_columns(t, spec->no_header);
    if (columns > 1 << 12)
        return rt_error(err, "more than %d columns", 1 << 12);
    for (int i = 0; !spec->no_header && i < columns; i++) {
        put_text(&b, t->column[i].name, separator);
        made_add(&b, i + 1 < columns ? &separator : "\n", 1);
    }
    for (int64_t row = 0; row < ROWS && !b.failed; row++) {
        Dice d = dice_of("table", row);
        int64_t class = dice_roll(&d, hidden_classes(t));
        for (int i = 0; i < columns; i++) {
            const Made *m = spec->no_header ? numbered(t, i + 1) : &t->column[i];
            if (m)
                put_value(&b, m, class, &d);
            made_add(&b, i + 1 < columns ? &separator : "\n", 1);
        }
    }
    return made_write(&b, spec->path, err);
}

bool standin_csv(const DataSpec *spec, StandIn *out, RtError *err)
{
    MadeTable t = {0};
    bool ok = table_fields_parse(&t.fields, spec->columns, err);
    for (int i = 0; ok && i < t.fields.n; i++)
        ok = add_field(&t, spec, &t.fields.field[i], err);
    ok = ok && write_rows(&t, spec, err);
    snprintf(out->said, sizeof out->said, "%d made-up rows of %d columns", ROWS, t.n);
    free(t.column);
    table_fields_free(&t.fields);
    return ok;
}
