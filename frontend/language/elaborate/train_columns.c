/* SPDX-License-Identifier: GPL-3.0-or-later */
/* csv(...): fields made of a table's columns. */
#include "frontend/language/elaborate/train_internal.h"

#include "ir/support/strbuf.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_CLASS_LISTS = 64, MAX_COLUMNS = 1 << 16, MAX_CLASSES = 1 << 20 };

/* What columns(...) says; the texts are as in runtime/data.h. */
struct ColumnSet {
    const char *text; /* the field's line, without its name */
    DType dtype;
    int rank; /* of one example: 0 or 1 */
    int64_t elements;
};

/* Parameters of columns(...) */
enum { NAMES, AS, COUNT, CLASSES, STANDARDIZE, MISSING };

/* Names with tabs between them; *n: how many, or as many as `count` says when one is a pattern. */
static bool column_names(BuiltinCall *c, StrBuf *names, int64_t *n)
{
    const Val single = c->arg[NAMES];
    ValList list = single.kind == VAL_LIST ? single.list : (ValList){&single, 1};
    bool pattern = false;
    for (int i = 0; i < list.len; i++) {
        const char *name = list.data[i].kind == VAL_STRING ? list.data[i].s : "";
        if (!*name || strpbrk(name, "\t\n")) {
            elab_error(c->l, c->arg_span[NAMES], "E205", "a column is given by its name, got %s",
                       val_kind_name(list.data[i].kind));
            return false;
        }
        pattern = pattern || strchr(name, '*');
        strbuf_printf(names, "%s%s", i ? "\t" : "", name);
    }
    *n = arg_given(c, COUNT) ? arg_int(c, COUNT) : list.len;
    if (*n < 1 || *n > MAX_COLUMNS) {
        elab_error(c->l, c->arg_span[arg_given(c, COUNT) ? COUNT : NAMES], "E105",
                   "a field has 1 to %d columns, got %" PRId64, MAX_COLUMNS, *n);
        return false;
    }
    if (!pattern || arg_given(c, COUNT))
        return true;
    if (elab_error(c->l, c->arg_span[NAMES], "E206", "how many columns fit the name with `*`?"))
        diag_help(c->l->diag, "columns(\"pixel*\", count = 784)");
    return false;
}

/* The classes of one_hot: one number for all columns, or one for each. */
static bool one_hot_classes(BuiltinCall *c, StrBuf *text, int64_t columns, int64_t *elements)
{
    int64_t classes[MAX_CLASS_LISTS];
    int n = arg_given(c, CLASSES) ? call_ints(c, CLASSES, classes, MAX_CLASS_LISTS) : 0;
    if (n != 1 && n != columns) {
        if (elab_error(c->l, n ? c->arg_span[CLASSES] : c->span, "E206",
                       "one_hot wants the number of classes of %s",
                       columns == 1 ? "its column" : "each column"))
            diag_help(c->l->diag, "columns([\"job\", \"town\"], as = one_hot, classes = [12, 30])");
        return false;
    }
    *elements = 0;
    for (int i = 0; i < n; i++) {
        if (classes[i] < 1 || classes[i] > MAX_CLASSES) {
            elab_error(c->l, c->arg_span[CLASSES], "E105", "a column has 1 to %d classes",
                       MAX_CLASSES);
            return false;
        }
        strbuf_printf(text, "%s%" PRId64, i ? "," : "", classes[i]);
        *elements += n == 1 ? columns * classes[i] : classes[i];
    }
    return true;
}

/* Which rules for missing values make sense of which kind. */
static bool check_missing(BuiltinCall *c, bool number, bool category)
{
    const char *rule = c->arg[MISSING].s;
    if ((strcmp(rule, "mean") != 0 || number) && (strcmp(rule, "own") != 0 || category))
        return true;
    elab_error(c->l, c->arg_span[MISSING], "E205",
               "missing = mean is for numbers, missing = own for category and one_hot");
    return false;
}

Val builtin_columns(BuiltinCall *c)
{
    Pool *pool = c->l->pool;
    StrBuf names = strbuf_new(pool), classes = strbuf_new(pool);
    bool number = call_word_is(c, AS, "number"), one_hot = call_word_is(c, AS, "one_hot"),
         category = one_hot || call_word_is(c, AS, "category");
    int64_t n, elements;
    if (!column_names(c, &names, &n) || !check_missing(c, number, category))
        return val_poison();
    elements = n;
    if (one_hot && !one_hot_classes(c, &classes, n, &elements))
        return val_poison();
    bool list = c->arg[NAMES].kind == VAL_LIST || arg_given(c, COUNT);
    ColumnSet *set = POOL_NEW(pool, ColumnSet);
    *set = (ColumnSet){.dtype = number || one_hot ? DTYPE_F32 : DTYPE_I32,
                       .rank = list || one_hot,
                       .elements = elements};
    set->text = pool_printf(pool, "%s\t%s\t%d\t%" PRId64 "\t%s\t%s", c->arg[AS].s,
                            c->arg[MISSING].s, number && arg_bool(c, STANDARDIZE), list ? n : 0,
                            classes.text ? classes.text : "", names.text);
    return (Val){.kind = VAL_COLUMNS, .columns = set};
}

/* Named arguments x = columns(...). */
static bool column_fields(BuiltinCall *c, DataSource *s)
{
    StrBuf text = strbuf_new(c->l->pool);
    for (int i = 0; i < c->n_named; i++) {
        const NamedArg *a = &c->named[i];
        if (a->value.kind != VAL_COLUMNS || i == SOURCE_MAX_FIELDS) {
            if (elab_error(c->l, a->span, "E205",
                           i == SOURCE_MAX_FIELDS ? "a batch has at most 8 fields"
                                                  : "a field of a table is made of its columns"))
                diag_help(c->l->diag, "%s = columns([\"age\", \"height\"])", a->name);
            return false;
        }
        const ColumnSet *set = a->value.columns;
        strbuf_printf(&text, "%s%s\t%s", i ? "\n" : "", a->name, set->text);
        source_add_field(s, a->name, set->dtype, 1 + set->rank,
                         (const int64_t[]){s->batch, set->elements});
    }
    if (!c->n_named && elab_error(c->l, c->span, "E206", "'csv' wants the fields of a batch"))
        diag_help(c->l->diag, "x = columns([\"age\", \"height\"]), y = columns(\"job\", "
                              "as = category)");
    s->columns = text.text;
    return c->n_named > 0;
}

Val builtin_csv(BuiltinCall *c)
{
    const char *paths = source_paths(c, 0), *separator = arg_given(c, 2) ? c->arg[2].s : "";
    DataSource *s = paths ? source_new(c, "csv", arg_int(c, 1)) : NULL;
    if (!s)
        return val_poison();
    if (strlen(separator) > 1 || (arg_given(c, 2) && strspn(separator, "\"\n\r"))) {
        elab_error(c->l, c->arg_span[2], "E205", "a separator is one character, such as \";\"");
        return val_poison();
    }
    s->path = paths;
    s->separator = separator;
    s->no_header = !arg_bool(c, 3);
    s->in_order = !arg_bool(c, 4);
    return column_fields(c, s) ? source_value(s) : val_poison();
}
