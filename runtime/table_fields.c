/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/table_fields.h"

#include <fnmatch.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[COLUMN_KIND_COUNT] = {"number", "integer", "category",
                                                          "one_hot"};
static const char *const missing_names[MISSING_RULE_COUNT] = {"error", "mean", "own", "drop"};

static int index_of(const char *word, const char *const *words, int n)
{
    for (int i = 0; word && i < n; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    return -1;
}

/* ---- what is declared ---- */

/* Cuts the text up to the separator off; NULL at the end. */
static char *cut(char **at, char separator)
{
    char *from = *at, *to = from ? strchr(from, separator) : NULL;
    if (to)
        *to++ = 0;
    *at = to;
    return from;
}

static bool parse_field(TableField *f, char *line)
{
    char *name = cut(&line, '\t'), *kind = cut(&line, '\t'), *missing = cut(&line, '\t'),
         *standardize = cut(&line, '\t'), *width = cut(&line, '\t');
    int k = index_of(kind, kind_names, COLUMN_KIND_COUNT),
        m = index_of(missing, missing_names, MISSING_RULE_COUNT);
    f->classes = cut(&line, '\t');
    f->names = line;
    if (!line || k < 0 || m < 0 || strlen(name) >= sizeof f->name)
        return false;
    strcpy(f->name, name);
    f->kind = (ColumnKind)k;
    f->missing = (MissingRule)m;
    f->standardize = standardize[0] == '1';
    f->width = atoi(width);
    return f->width >= 0;
}

bool table_fields_parse(TableFields *t, const char *columns, RtError *err)
{
    size_t bytes = columns ? strlen(columns) : 0;
    t->text = rt_alloc((int64_t)bytes + 1, 1, err);
    if (!t->text)
        return false;
    if (bytes)
        memcpy(t->text, columns, bytes);
    for (char *at = bytes ? t->text : NULL; at; t->n++)
        if (t->n == DATA_MAX_FIELDS || !parse_field(&t->field[t->n], cut(&at, '\n')))
            return rt_error(err, "the description of the fields is damaged");
    return t->n > 0 || rt_error(err, "no field is declared: x = columns([\"a\", \"b\"])");
}

static void free_columns(TableField *f)
{
    for (int i = 0; f->column && i < f->n; i++) {
        free(f->column[i].name);
        categories_free(&f->column[i].values);
    }
    free(f->column);
}

void table_fields_free(TableFields *t)
{
    for (int i = 0; i < t->n; i++) {
        free_columns(&t->field[i]);
        free(t->field[i].number);
        free(t->field[i].code);
    }
    free(t->text);
    *t = (TableFields){0};
}

/* ---- columns of a file ---- */

static bool no_column(const char *name, char *const *header, int n_header, RtError *err)
{
    char list[200] = "";
    size_t at = 0;
    int shown = 0;
    for (; shown < n_header && at + strlen(header[shown]) + 3 < sizeof list; shown++) {
        const char *comma = shown ? ", " : "";
        strcpy(list + at, comma);
        strcpy(list + at + strlen(comma), header[shown]);
        at += strlen(comma) + strlen(header[shown]);
    }
    return rt_error(err, "there is no column '%s'; there %s %d: %s%s%s", name,
                    n_header == 1 ? "is" : "are", n_header, list, shown < n_header ? ", ..." : "",
                    n_header == 1 ? "; another separator is given as in separator = \";\"" : "");
}

static bool add_column(TableField *f, int want, char *const *header, int at, RtError *err)
{
    if (f->n == want)
        return rt_error(err, "field %s: more than the %d column%s that are declared", f->name, want,
                        want == 1 ? "" : "s");
    TableColumn *c = &f->column[f->n];
    size_t n = strlen(header[at]);
    c->name = rt_alloc((int64_t)n + 1, 1, err);
    if (!c->name)
        return false;
    memcpy(c->name, header[at], n);
    c->at = at;
    c->std = 1;
    f->n++;
    return true;
}

/* The column of that name or, where there is none, all that fit the pattern. */
static bool find_name(TableField *f, int want, const char *name, char *const *header, int n_header,
                      RtError *err)
{
    bool found = false;
    for (int i = 0; i < n_header; i++)
        if (strcmp(header[i], name) == 0)
            return add_column(f, want, header, i, err);
    for (int i = 0; i < n_header && strchr(name, '*'); i++) {
        if (fnmatch(name, header[i], FNM_NOESCAPE) != 0)
            continue;
        found = true;
        if (!add_column(f, want, header, i, err))
            return false;
    }
    return found || no_column(name, header, n_header, err);
}

static bool find_columns(TableField *f, char *const *header, int n_header, RtError *err)
{
    int want = f->width ? f->width : 1;
    f->column = rt_alloc(want, sizeof *f->column, err);
    if (!f->column)
        return false;
    for (char *at = f->names, *name; (name = cut(&at, '\t'));)
        if (!find_name(f, want, name, header, n_header, err))
            return false;
    if (f->n < want)
        return rt_error(err, "field %s: %d columns are declared, and the table has %d of them",
                        f->name, want, f->n);
    char *at = f->classes, *classes = cut(&at, ',');
    for (int i = 0; i < f->n; i++) { /* one number is for all columns */
        f->column[i].classes = classes ? atoll(classes) : 0;
        classes = at ? cut(&at, ',') : classes;
    }
    return true;
}

bool table_fields_find(TableFields *t, char *const *header, int n_header, RtError *err)
{
    for (int i = 0; i < t->n; i++)
        if (!find_columns(&t->field[i], header, n_header, err))
            return false;
    return true;
}

bool table_is_category(const TableField *f)
{
    return f->kind == COLUMN_CATEGORY || f->kind == COLUMN_ONE_HOT;
}

int64_t table_field_elements(const TableField *f)
{
    int64_t n = 0;
    for (int i = 0; i < f->n; i++)
        n += f->kind == COLUMN_ONE_HOT ? f->column[i].classes : 1;
    return n;
}

int64_t table_column_codes(const TableField *f, const TableColumn *c)
{
    return c->values.n + (f->missing == MISSING_OWN);
}

/* ---- what is learned ---- */

static json_t *values_json(const Categories *values)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < values->n; i++) {
        size_t n;
        const char *text = category_text(values, i, &n);
        json_array_append_new(list, json_stringn(text, n));
    }
    return list;
}

static json_t *column_json(const TableField *f, const TableColumn *c)
{
    json_t *o = json_object();
    json_object_set_new(o, "column", json_string(c->name));
    if (f->kind == COLUMN_NUMBER) {
        json_object_set_new(o, "mean", json_real(c->mean));
        json_object_set_new(o, "std", json_real(c->std));
    } else if (table_is_category(f)) {
        json_object_set_new(o, "values", values_json(&c->values));
    }
    return o;
}

json_t *table_fields_json(const TableFields *t)
{
    json_t *root = json_object();
    for (int i = 0; i < t->n; i++) {
        const TableField *f = &t->field[i];
        json_t *list = json_array();
        for (int k = 0; k < f->n; k++)
            json_array_append_new(list, column_json(f, &f->column[k]));
        json_object_set_new(root, f->name, list);
    }
    return root;
}

static bool read_values(TableColumn *c, const json_t *values, RtError *err)
{
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *v = json_array_get(values, i);
        if (!json_is_string(v) || categories_add(&c->values, json_string_value(v),
                                                 json_string_length(v), err) != (int32_t)i)
            return rt_error(err, "the checkpoint's values of column %s are damaged", c->name);
    }
    return json_is_array(values) ||
           rt_error(err, "the checkpoint has no values of column %s", c->name);
}

static bool read_column(const TableField *f, TableColumn *c, const json_t *o, RtError *err)
{
    const char *name = json_string_value(json_object_get(o, "column"));
    if (!name || strcmp(name, c->name) != 0)
        return rt_error(err,
                        "field %s was trained with column %s where the model now has %s: the "
                        "checkpoint is of another table",
                        f->name, name ? name : "(none)", c->name);
    if (table_is_category(f))
        return read_values(c, json_object_get(o, "values"), err);
    if (f->kind != COLUMN_NUMBER)
        return true;
    c->mean = json_number_value(json_object_get(o, "mean"));
    c->std = json_number_value(json_object_get(o, "std"));
    return (c->std > 0 && isfinite(c->std) && isfinite(c->mean)) ||
           rt_error(err, "the checkpoint has no mean and std of column %s", c->name);
}

bool table_fields_read(TableFields *t, const json_t *learned, RtError *err)
{
    for (int i = 0; i < t->n; i++) {
        TableField *f = &t->field[i];
        const json_t *list = json_object_get(learned, f->name);
        if (json_array_size(list) != (size_t)f->n)
            return rt_error(err,
                            "the checkpoint knows %zu columns of field %s, the model declares %d",
                            json_array_size(list), f->name, f->n);
        for (int k = 0; k < f->n; k++)
            if (!read_column(f, &f->column[k], json_array_get(list, (size_t)k), err))
                return false;
    }
    t->learned = true;
    return true;
}
