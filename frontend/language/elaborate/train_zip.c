/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The section's data source: its fields, several sources in step, and what the TrainSpec says. */
#include "frontend/language/elaborate/train_internal.h"

#include "ir/support/strbuf.h"

#include <inttypes.h>
#include <string.h>

/* ---- zip ---- */

/* Why example i of one source may be no counterpart of example i of another; NULL: it is. */
static const char *no_part(const DataSource *s)
{
    if (s->length > 0 && strcmp(s->kind, "audiofolder") != 0)
        return "it has windows, no examples";
    if (strcmp(s->kind, "imagefolder") == 0 || strcmp(s->kind, "audiofolder") == 0)
        return "the order of its files is its own, and damaged ones are left out";
    if (strcmp(s->kind, "csv") == 0 && !s->in_order)
        return "its rows are mixed: add shuffle = false";
    if (strcmp(s->kind, "csv") == 0 && s->columns && strstr(s->columns, "\tdrop\t"))
        return "rows with missing values are left out";
    if (strcmp(s->kind, "synthetic") == 0)
        return "it makes up its data";
    return s->part ? "it is a zip itself" : NULL;
}

static const SourceField *find_field(const DataSource *s, const char *name)
{
    for (int i = 0; i < s->n_fields; i++)
        if (strcmp(s->fields[i].name, name) == 0)
            return &s->fields[i];
    return NULL;
}

/* That part k of n goes with those before it. */
static bool check_part(BuiltinCall *c, DataSource *const *part, int k, int *n_fields)
{
    const char *why = no_part(part[k]);
    if (why) {
        elab_error(c->l, c->rest_span[k], "E205", "%s cannot be zipped: %s", part[k]->kind, why);
        return false;
    }
    if (part[k]->batch != part[0]->batch) {
        elab_error(c->l, c->rest_span[k], "E101",
                   "zip wants sources of equal batches, got %" PRId64 " and %" PRId64,
                   part[0]->batch, part[k]->batch);
        return false;
    }
    for (int i = 0; i < part[k]->n_fields; i++)
        for (int j = 0; j < k; j++)
            if (find_field(part[j], part[k]->fields[i].name)) {
                if (elab_error(c->l, c->rest_span[k], "E205", "two sources have a field `%s`",
                               part[k]->fields[i].name))
                    diag_note(c->l->diag, part[j]->span, "the first one");
                return false;
            }
    *n_fields += part[k]->n_fields;
    if (*n_fields > SOURCE_MAX_FIELDS)
        elab_error(c->l, c->rest_span[k], "E205", "a batch has at most 8 fields");
    return *n_fields <= SOURCE_MAX_FIELDS;
}

/* Which arrays are the source's, of those that the batch has. */
static const char *field_list(Pool *pool, const DataSource *s)
{
    StrBuf text = strbuf_new(pool);
    for (int i = 0; i < s->n_fields; i++)
        strbuf_printf(&text, "%s%s\t%s", i ? "\n" : "", s->fields[i].name, s->fields[i].name);
    return text.text;
}

Val source_zip(BuiltinCall *c)
{
    int n_fields = 0, n = c->n_rest;
    DataSource **part = POOL_ARRAY(c->l->pool, (size_t)n, DataSource *);
    for (int k = 0; k < n; k++) {
        if (c->rest[k].kind == VAL_POISON)
            return val_poison();
        if (c->rest[k].kind != VAL_SOURCE) {
            elab_error(c->l, c->rest_span[k], "E205", "zip wants data sources only, got %s",
                       val_kind_name(c->rest[k].kind));
            return val_poison();
        }
        part[k] = c->rest[k].source;
        if (!check_part(c, part, k, &n_fields))
            return val_poison();
    }
    DataSource *s = source_new(c, "zip", part[0]->batch);
    if (!s)
        return val_poison();
    for (int k = 0; k < n; k++) {
        part[k]->zipped = true;
        if (strcmp(part[k]->kind, "npy") == 0)
            part[k]->columns = field_list(c->l->pool, part[k]);
    }
    s->part = part;
    s->n_parts = n;
    return source_value(s);
}

/* ---- the section's source ---- */

const DataSource *source_of_section(Elab *l)
{
    const DataSource *found = NULL;
    for (size_t i = 0; i < l->train->sources.len; i++) {
        const DataSource *s = l->train->sources.data[i];
        if (s->zipped)
            continue;
        if (found) {
            if (elab_error(l, s->span, "E211", "a train section has one data source")) {
                diag_note(l->diag, found->span, "the first one");
                diag_help(l->diag, "batch = zip(a, b) reads two in step");
            }
            return found;
        }
        found = s;
    }
    return found;
}

static void describe_parts(Elab *l, const DataSource *s, TrainSpec *t)
{
    StrBuf paths = strbuf_new(l->pool);
    DataPart *part = POOL_ARRAY(l->pool, (size_t)s->n_parts, DataPart);
    for (int k = 0; k < s->n_parts; k++) {
        const DataSource *p = s->part[k];
        part[k] = (DataPart){.kind = p->kind,
                             .path = p->path,
                             .columns = p->columns,
                             .separator = p->separator,
                             .no_header = p->no_header,
                             .in_order = p->in_order};
        strbuf_printf(&paths, "%s%s", k ? "\n" : "", p->path);
    }
    t->data_part = part;
    t->n_data_parts = s->n_parts;
    t->data_path = paths.text;
}

void source_describe(Elab *l, const DataSource *s, TrainSpec *t)
{
    t->data_kind = s->kind;
    t->data_path = s->path;
    t->data_batch = s->batch;
    t->data_length = s->length;
    t->data_chars = s->chars;
    t->data_size = s->size;
    t->data_resize = s->resize;
    t->data_augment = s->augment;
    t->data_rate = s->rate;
    t->data_columns = s->columns;
    t->data_separator = s->separator;
    t->data_no_header = s->no_header;
    t->data_in_order = s->in_order;
    memcpy(t->data_mean, s->mean, sizeof t->data_mean);
    memcpy(t->data_std, s->std, sizeof t->data_std);
    if (s->part)
        describe_parts(l, s, t);
}

/* ---- fields ---- */

static Val input_of(Elab *l, SourceField *f, Span span)
{
    if (f->value == VALUE_NONE) {
        AttrList attrs = {.n = 0};
        attrs_string(&attrs, ATTR_role, pool_printf(l->pool, "batch.%s", f->name));
        f->value = elab_source(l, OP_input, f->type, &attrs,
                               pool_printf(l->pool, "%%batch.%s", f->name), span);
    }
    return val_tensor(f->value);
}

Val source_field(Elab *l, DataSource *s, Name field, Span span)
{
    const char *names[SOURCE_MAX_FIELDS];
    size_t n = 0;
    for (int k = 0; k < (s->part ? s->n_parts : 1); k++) {
        DataSource *p = s->part ? s->part[k] : s;
        for (int i = 0; i < p->n_fields; i++) {
            if (strcmp(p->fields[i].name, field.text) == 0)
                return input_of(l, &p->fields[i], span);
            names[n++] = p->fields[i].name;
        }
    }
    if (!elab_error(l, field.span, "E203", "a batch of '%s' has no field '%s'", s->kind,
                    field.text))
        return val_poison();
    const char *near = nearest_word(field.text, names, n);
    if (near)
        diag_help(l->diag, "did you mean `.%s`?", near);
    return val_poison();
}
