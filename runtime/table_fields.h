/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the columns of a table become: the fields that a model declares with columns(...), and what
 * is learned of them from the data.  Called by the data source csv. */
#ifndef SCRIMP_RUNTIME_TABLE_FIELDS_H
#define SCRIMP_RUNTIME_TABLE_FIELDS_H

#include "runtime/categories.h"
#include "runtime/data.h"

typedef enum ColumnKind {
    COLUMN_NUMBER,
    COLUMN_INTEGER,
    COLUMN_CATEGORY,
    COLUMN_ONE_HOT,
    COLUMN_KIND_COUNT
} ColumnKind;

typedef enum MissingRule {
    MISSING_ERROR,
    MISSING_MEAN,
    MISSING_OWN, /* a category of its own, behind the others */
    MISSING_DROP,
    MISSING_RULE_COUNT
} MissingRule;

typedef struct TableColumn {
    char *name;
    int at;          /* in a record */
    int64_t classes; /* COLUMN_ONE_HOT: places */
    double mean, std;
    Categories values;
} TableColumn;

typedef struct TableField {
    char name[64];
    ColumnKind kind;
    MissingRule missing;
    bool standardize;
    int width;             /* columns; 0: one, and no dimension for it */
    char *classes, *names; /* as declared, in TableFields.text */
    TableColumn *column;
    int n; /* columns found */
    /* of all rows, n in each: the number (NaN = missing), or the integer or category */
    double *number;
    int32_t *code;
} TableField;

typedef struct TableFields {
    char *text;
    TableField field[DATA_MAX_FIELDS];
    int n;
    bool learned; /* values, mean and std are those of a checkpoint */
} TableFields;

/* From DataSpec.columns; false with a message when that is damaged. */
bool table_fields_parse(TableFields *t, const char *columns, RtError *err);
void table_fields_free(TableFields *t);
/* Finds the columns in a table's header; a name with * stands for all that fit. */
bool table_fields_find(TableFields *t, char *const *header, int n_header, RtError *err);
bool table_is_category(const TableField *f);
/* Places of an example's value: columns, or the sum of the classes. */
int64_t table_field_elements(const TableField *f);
/* Categories of a column: the values, and one for missing ones where that is the rule. */
int64_t table_column_codes(const TableField *f, const TableColumn *c);

/* What was learned, for the checkpoint: for each field a list of its columns with `mean` and `std`,
 * or `values`.  NULL when out of memory. */
struct json_t *table_fields_json(const TableFields *t);
/* The same from a checkpoint, after table_fields_find; refuses that of other columns. */
bool table_fields_read(TableFields *t, const struct json_t *learned, RtError *err);

#endif
