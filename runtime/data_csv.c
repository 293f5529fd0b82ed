/* SPDX-License-Identifier: GPL-3.0-or-later */
/* csv(FILES): tables with a header line; fields are made of columns (table_fields.h).  Files are
 * read twice: to count the rows, and for their values. */
#include "runtime/csv.h"
#include "runtime/data_internal.h"
#include "runtime/rng.h"
#include "runtime/table_fields.h"
#include "runtime/table_header.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Table {
    TableFields fields;
    TableHeader header;
    int64_t counted; /* rows of the files */
    bool every_row;  /* as the spec says */
    char *scratch;   /* for one value */
    size_t scratch_room;
} Table;

/* Counts a row, or reads it. */
typedef bool RowFn(Dataset *ds, const CsvReader *r, RtError *err);

static bool is_label(const TableField *f)
{
    bool integer = f->kind == COLUMN_INTEGER || f->kind == COLUMN_CATEGORY;
    return integer && (strcmp(f->name, "label") == 0 || strcmp(f->name, "y") == 0);
}

/* ---- messages ---- */

/* A cell's beginning, fit to be shown. */
static const char *shown(CsvCell cell, char out[44])
{
    size_t n = cell.n < 40 ? cell.n : 40;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)cell.text[i] < ' ' || cell.text[i] == 127 ? ' ' : cell.text[i];
    strcpy(out + n, cell.n > n ? "..." : "");
    return out;
}

static bool bad_cell(const CsvReader *r, const TableColumn *c, const char *what, RtError *err)
{
    char text[44];
    return rt_error(err, "line %lld, column %s: '%s' %s", (long long)r->record_line, c->name,
                    shown(r->cell[c->at], text), what);
}

/* A category of its own, for missing values, is no way for a label or once categories are known: it
 * would be one more class. */
static const char *way_of_missing(const Table *t, const TableField *f)
{
    bool category = table_is_category(f);
    if (t->every_row)
        return "the model was trained on rows without missing ones, so fill it in, or leave the "
               "row "
               "out here";
    if (category && (t->fields.learned || is_label(f)))
        return "say columns(..., missing = drop), which leaves such rows out";
    return category
               ? "say columns(..., missing = own), which makes it a category, or missing = "
                 "drop, which leaves such rows out"
               : "say columns(..., missing = mean) for the mean or missing = drop, which leaves "
                 "such rows out";
}

static bool missing_cell(const Table *t, const CsvReader *r, const TableField *f,
                         const TableColumn *c, RtError *err)
{
    return rt_error(err, "line %lld, column %s: the value is missing; %s",
                    (long long)r->record_line, c->name, way_of_missing(t, f));
}

/* A row that `missing = drop` is about. */
static bool leave_out(const Table *t, const CsvReader *r, const TableColumn *c, bool *drop,
                      RtError *err)
{
    char text[44];
    *drop = true;
    if (!t->every_row)
        return true;
    bool missing = csv_is_missing(r->cell[c->at]);
    return rt_error(err,
                    "line %lld, column %s: %s%s%s; rows like this were left out in training "
                    "(missing = drop), so leave it out here",
                    (long long)r->record_line, c->name, missing ? "the value is missing" : "'",
                    missing ? "" : shown(r->cell[c->at], text),
                    missing ? "" : "' is no value that the model was trained on");
}

/* ---- files ---- */

static char separator_of(const Dataset *ds, const char *path)
{
    const char *s = ds->spec.separator, *dot = strrchr(path_base(path), '.');
    if (s && *s)
        return *s;
    return dot && (strcmp(dot, ".tsv") == 0 || strcmp(dot, ".tab") == 0) ? '\t' : ',';
}

static bool read_rows(Dataset *ds, CsvReader *r, RowFn *row, RtError *err)
{
    Table *t = ds->state;
    CsvReader start = *r;
    if (!csv_next(r, err))
        return err->message[0] ? false : rt_error(err, "it is empty: there is no header line");
    bool first = !t->header.name;
    if (!(first ? table_header_read(&t->header, r, ds->spec.no_header, err) &&
                      table_fields_find(&t->fields, t->header.name, t->header.n, err)
                : table_header_same(&t->header, r, ds->spec.no_header, err)))
        return false;
    if (ds->spec.no_header) { /* the first row is data */
        r->at = start.at;
        r->line = start.line;
    }
    while (csv_next(r, err)) {
        if (r->n_cells != t->header.n)
            return rt_error(err, "line %lld: %d cell%s, but there are %d columns",
                            (long long)r->record_line, r->n_cells, r->n_cells == 1 ? "" : "s",
                            t->header.n);
        if (!row(ds, r, err))
            return false;
    }
    return !err->message[0];
}

static bool read_file(Dataset *ds, const char *path, RowFn *row, RtError *err)
{
    FileBytes file = {0};
    CsvReader r = {0};
    bool ok = file_map(path, &file, err) &&
              csv_open(&r, file.data, file.bytes, separator_of(ds, path), err) &&
              read_rows(ds, &r, row, err);
    csv_close(&r);
    file_release(&file);
    return ok || rt_error_prefix(err, "%s", path);
}

static bool read_files(Dataset *ds, const PathList *paths, RowFn *row, RtError *err)
{
    bool ok = true;
    for (int64_t i = 0; ok && i < paths->n; i++)
        ok = read_file(ds, paths->path[i], row, err);
    return ok;
}

/* ---- rows ---- */

static bool count_row(Dataset *ds, const CsvReader *r, RtError *err)
{
    (void)r;
    (void)err;
    ((Table *)ds->state)->counted++;
    return true;
}

static bool make_room(Dataset *ds, RtError *err)
{
    Table *t = ds->state;
    for (int i = 0; i < t->fields.n; i++) {
        TableField *f = &t->fields.field[i];
        bool number = f->kind == COLUMN_NUMBER;
        int64_t n, size = number ? sizeof *f->number : sizeof *f->code;
        if (!rt_mul(t->counted, f->n, &n) || n > DATA_MAX_BYTES / size)
            return rt_error(err, "field %s is too large", f->name);
        void *room = rt_alloc(n + 1, (size_t)size, err);
        if (!room)
            return false;
        if (number)
            f->number = room;
        else
            f->code = room;
        ds->loaded_bytes += n * size;
    }
    return true;
}

/* The cell's value as text in scratch; NULL with a message. */
static const char *value_text(Table *t, CsvCell cell, size_t *n, RtError *err)
{
    if (cell.n > t->scratch_room) {
        free(t->scratch);
        t->scratch_room = 0;
        t->scratch = rt_alloc((int64_t)cell.n, 1, err);
        if (!t->scratch)
            return NULL;
        t->scratch_room = cell.n;
    }
    if (!t->scratch)
        return *n = 0, "";
    *n = csv_text(cell, t->scratch);
    return t->scratch;
}

/* -1: it is missing, or none that the run was trained on; -2: a message. */
static int32_t category(Table *t, const CsvReader *r, TableField *f, TableColumn *c, RtError *err)
{
    CsvCell cell = r->cell[c->at];
    size_t n;
    bool missing = csv_is_missing(cell);
    if (missing && f->missing == MISSING_ERROR)
        return missing_cell(t, r, f, c, err), -2;
    if (missing)
        return -1;
    const char *text = value_text(t, cell, &n, err);
    if (!text)
        return -2;
    int32_t k = categories_find(&c->values, text, n);
    if (k < 0 && t->fields.learned && f->missing == MISSING_ERROR)
        return bad_cell(r, c, "is no value that the model was trained on", err), -2;
    if (k >= 0 || t->fields.learned)
        return k;
    if (!utf8_is_valid(text, n))
        return bad_cell(r, c, "is not UTF-8", err), -2;
    k = categories_add(&c->values, text, n, err);
    return k < 0 ? (rt_error_prefix(err, "column %s", c->name), -2) : k;
}

/* One cell into the place of its row; *drop: the row is left out. */
static bool read_category(Table *t, const CsvReader *r, TableField *f, int k, int64_t at,
                          bool *drop, RtError *err)
{
    int32_t code = category(t, r, f, &f->column[k], err);
    if (code == -2)
        return false;
    f->code[at] = code;
    return code >= 0 || f->missing != MISSING_DROP || leave_out(t, r, &f->column[k], drop, err);
}

static bool read_number(const Table *t, const CsvReader *r, TableField *f, int k, int64_t at,
                        bool *drop, RtError *err)
{
    const TableColumn *c = &f->column[k];
    double v = (double)NAN;
    if (csv_is_missing(r->cell[c->at])) {
        if (f->missing == MISSING_ERROR)
            return missing_cell(t, r, f, c, err);
        if (f->missing == MISSING_DROP && !leave_out(t, r, c, drop, err))
            return false;
    } else if (!csv_number(r->cell[c->at], &v)) {
        return bad_cell(r, c, "is no number; texts are read with as = category", err);
    } else if (fabs(v) > (double)FLT_MAX) {
        return bad_cell(r, c, "is too large for f32", err);
    }
    if (f->kind == COLUMN_NUMBER) {
        f->number[at] = v;
        return true;
    }
    if (isnan(v)) /* the row is left out */
        return true;
    if (v != floor(v) || fabs(v) > (double)INT32_MAX)
        return bad_cell(r, c, "is no whole number of 32 bits", err);
    f->code[at] = (int32_t)v;
    return true;
}

static bool read_row(Dataset *ds, const CsvReader *r, RtError *err)
{
    Table *t = ds->state;
    bool drop = false;
    if (ds->total == t->counted)
        return rt_error(err, "it grows while it is read");
    for (int i = 0; i < t->fields.n; i++) {
        TableField *f = &t->fields.field[i];
        for (int k = 0; k < f->n; k++) {
            int64_t at = ds->total * f->n + k;
            if (!(table_is_category(f) ? read_category(t, r, f, k, at, &drop, err)
                                       : read_number(t, r, f, k, at, &drop, err)))
                return false;
        }
    }
    ds->total += !drop;
    return true;
}

/* ---- fields ---- */

/* Categories in order; missing ones behind them. */
static bool order_categories(Dataset *ds, TableField *f, int k, RtError *err)
{
    const Table *t = ds->state;
    TableColumn *c = &f->column[k];
    int32_t *number = rt_alloc(c->values.n + 1, sizeof *number, err);
    if (!number)
        return false;
    for (int32_t i = 0; i < c->values.n; i++)
        number[i] = i;
    bool ok = t->fields.learned || categories_sort(&c->values, number, err);
    for (int64_t row = 0; ok && row < ds->total; row++) {
        int32_t *code = &f->code[row * f->n + k];
        *code = *code < 0 ? c->values.n : number[*code];
    }
    free(number);
    int64_t codes = table_column_codes(f, c);
    if (ok && f->kind == COLUMN_ONE_HOT && codes > c->classes)
        ok = rt_error(err, "column %s has %lld values, the model declares classes = %lld", c->name,
                      (long long)codes, (long long)c->classes);
    return ok;
}

static bool measure_integers(const Dataset *ds, const TableField *tf, DataField *f, RtError *err)
{
    f->min_id = INT64_MAX;
    f->max_id = INT64_MIN;
    for (int64_t i = 0; i < ds->total * tf->n; i++) {
        int32_t v = tf->code[i];
        if ((f->label || f->ignored != DATA_IGNORE) && v == f->ignored)
            continue;
        f->min_id = v < f->min_id ? v : f->min_id;
        f->max_id = v > f->max_id ? v : f->max_id;
    }
    if (f->label && f->min_id < 0)
        return rt_error(err, "label %lld: labels are 0, 1, ... or %d (ignored)",
                        (long long)f->min_id, f->ignored);
    if (f->max_id == INT64_MIN)
        f->min_id = f->max_id = -1;
    return true;
}

static bool add_field(Dataset *ds, TableField *tf, RtError *err)
{
    int64_t elements = table_field_elements(tf);
    bool real = tf->kind == COLUMN_NUMBER || tf->kind == COLUMN_ONE_HOT;
    int rank = tf->width > 0 || tf->kind == COLUMN_ONE_HOT;
    DataField *f = data_add_field(ds, tf->name, real ? RT_F32 : RT_I32, rank, &elements);
    f->label = is_label(tf);
    for (int k = 0; table_is_category(tf) && k < tf->n; k++) {
        if (!order_categories(ds, tf, k, err))
            return false;
        int64_t last = table_column_codes(tf, &tf->column[k]) - 1;
        f->max_id = !real && last > f->max_id ? last : f->max_id;
        f->min_id = real ? -1 : 0;
    }
    return tf->kind != COLUMN_INTEGER || measure_integers(ds, tf, f, err);
}

static bool csv_read(Dataset *ds, const PathList *paths, RtError *err)
{
    Table *t = ds->state;
    if (!read_files(ds, paths, count_row, err) ||
        (ds->spec.learned && !table_fields_read(&t->fields, ds->spec.learned, err)) ||
        !make_room(ds, err) || !read_files(ds, paths, read_row, err))
        return false;
    for (int i = 0; i < t->fields.n; i++)
        if (!add_field(ds, &t->fields.field[i], err))
            return false;
    return true;
}

static bool csv_data_open(Dataset *ds, RtError *err)
{
    PathList paths;
    RtError none;
    err = err ? err : &none; /* its message says whether a file has ended */
    Table *t = ds->state = rt_alloc(1, sizeof *t, err);
    if (!t || !table_fields_parse(&t->fields, ds->spec.columns, err) ||
        !paths_expand(ds->spec.path, NULL, &paths, err))
        return false;
    t->every_row = ds->spec.every_row;
    bool ok = csv_read(ds, &paths, err);
    paths_free(&paths);
    return ok;
}

static void csv_data_close(Dataset *ds)
{
    Table *t = ds->state;
    if (!t)
        return;
    table_fields_free(&t->fields);
    table_header_free(&t->header);
    free(t->scratch);
    free(t);
}

/* ---- examples ---- */

/* Tables are often sorted, so rows are put in another order, the same for every seed, before the
 * last of them are held out. */
static int64_t row_of(const Dataset *ds, int64_t example)
{
    if (ds->spec.in_order)
        return example;
    return (int64_t)rt_permute((uint64_t)example, (uint64_t)ds->total, 0, rt_name_key("csv.rows"));
}

static double train_sum(const Dataset *ds, const TableField *f, int k, double mean, int power,
                        int64_t *n)
{
    double sum = 0;
    *n = 0;
    for (int64_t i = 0; i < ds->n_train; i++) {
        double v = f->number[row_of(ds, i) * f->n + k];
        if (isnan(v))
            continue;
        sum += power == 1 ? v : (v - mean) * (v - mean);
        ++*n;
    }
    return sum;
}

/* Mean and standard deviation of the training part, as scikit-learn's StandardScaler: over n, and 1
 * for a column that is constant. */
static bool standardize(const Dataset *ds, const TableField *f, int k, RtError *err)
{
    TableColumn *c = &f->column[k];
    int64_t n;
    c->mean = train_sum(ds, f, k, 0, 1, &n);
    if (n == 0)
        return rt_error(err, "column %s has no value in the training part", c->name);
    c->mean /= (double)n;
    if (!f->standardize)
        return true;
    c->std = sqrt(train_sum(ds, f, k, c->mean, 2, &n) / (double)n);
    if (!(c->std > 1e-12 * fabs(c->mean))) /* rounding is all there is */
        c->std = 1;
    return true;
}

static bool csv_prepare(Dataset *ds, RtError *err)
{
    Table *t = ds->state;
    for (int i = 0; i < t->fields.n && !t->fields.learned; i++) {
        TableField *f = &t->fields.field[i];
        bool measured = f->kind == COLUMN_NUMBER && (f->standardize || f->missing == MISSING_MEAN);
        for (int k = 0; measured && k < f->n; k++)
            if (!standardize(ds, f, k, err))
                return false;
    }
    ds->learned = table_fields_json(&t->fields);
    return ds->learned || rt_error(err, "out of memory");
}

static float number_at(const TableField *f, int k, double v)
{
    const TableColumn *c = &f->column[k];
    v = isnan(v) ? c->mean : v;
    return (float)(f->standardize ? (v - c->mean) / c->std : v);
}

static void csv_example(const Dataset *ds, int64_t i, int field, void *dst)
{
    const TableField *f = &((const Table *)ds->state)->fields.field[field];
    int64_t at = row_of(ds, i) * f->n;
    float *real = dst;
    int32_t *integer = dst;
    if (f->kind == COLUMN_ONE_HOT)
        memset(dst, 0, (size_t)ds->field_bytes[field]);
    for (int k = 0; k < f->n; k++) {
        if (f->kind == COLUMN_NUMBER) {
            real[k] = number_at(f, k, f->number[at + k]);
        } else if (f->kind == COLUMN_ONE_HOT) {
            real[f->code[at + k]] = 1;
            real += f->column[k].classes;
        } else {
            integer[k] = f->code[at + k];
        }
    }
}

const DataKind data_csv = {.name = "csv",
                           .open = csv_data_open,
                           .prepare = csv_prepare,
                           .close = csv_data_close,
                           .example = csv_example};
