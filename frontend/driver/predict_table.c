/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/predict_table.h"

#include "frontend/driver/cli_fields.h"
#include "ir/support/strbuf.h"
#include "runtime/checkpoint.h"

#include <string.h>

static const char CSV[] = "csv";

/* ---- where a field stands ---- */

/* The line of a field in a csv source's columns, without its end; NULL when it has none. */
static const char *column_line(const char *columns, const char *field, size_t *length)
{
    size_t n = strlen(field);
    for (const char *at = columns; at && *at; at += *length + (at[*length] == '\n')) {
        *length = strcspn(at, "\n");
        if (strncmp(at, field, n) == 0 && at[n] == '\t')
            return at;
    }
    return NULL;
}

/* A source of the section: that of a zip, or the only one. */
static int n_sources(const TrainSpec *t)
{
    return t->n_data_parts ? t->n_data_parts : 1;
}

static DataPart source_at(const TrainSpec *t, int k)
{
    if (t->n_data_parts)
        return t->data_part[k];
    return (DataPart){.kind = t->data_kind,
                      .columns = t->data_columns,
                      .separator = t->data_separator,
                      .no_header = t->data_no_header};
}

/* The source that has a field as columns of a table, or -1. */
static int source_of(const TrainSpec *t, const char *field)
{
    size_t length;
    for (int k = 0; t->present && t->data_kind && k < n_sources(t); k++) {
        DataPart s = source_at(t, k);
        if (strcmp(s.kind, CSV) == 0 && column_line(s.columns, field, &length))
            return k;
    }
    return -1;
}

bool predict_table_has(const Graph *g, const PredictInput *in)
{
    return field_is_input(value_node(g, in->value)) && source_of(&g->train, in->name) >= 0;
}

/* ---- what was learned of it ---- */

/* Of source k, json_decref'd by the caller. */
static json_t *learned_of(Cli *cli, const TrainSpec *t, int k)
{
    json_t *all = checkpoint_read_learned(cli->run.checkpoint), *own = all;
    if (t->n_data_parts) {
        own = json_incref(json_array_get(all, (size_t)k));
        json_decref(all);
    }
    if (json_is_object(own))
        return own;
    json_decref(own);
    return NULL;
}

json_t *predict_table_values(Cli *cli, const Graph *g, const char *field)
{
    const TrainSpec *t = &g->train;
    bool of_folder = data_traits(t->data_kind)->file_per_example && !strcmp(field, "label");
    int k = of_folder ? 0 : source_of(t, field);
    json_t *learned = k < 0 ? NULL : learned_of(cli, t, k);
    json_t *columns = json_object_get(learned, field);
    json_t *values = json_object_get(json_array_get(columns, 0), "values");
    json_t *out = json_array_size(columns) == 1 ? json_incref(values) : NULL;
    json_decref(learned);
    return out;
}

/* ---- opening ---- */

static bool is_of_source(const Graph *g, const PredictInput *in, int k)
{
    return predict_table_has(g, in) && source_of(&g->train, in->name) == k;
}

/* The lines of these inputs, so that other columns, as that of the label, need not be there. */
static const char *columns_of(Cli *cli, const Graph *g, const PredictInputs *inputs, uint32_t which,
                              int k)
{
    StrBuf text = strbuf_new(cli->pool);
    DataPart s = source_at(&g->train, k);
    for (int i = 0; i < inputs->n; i++) {
        size_t length = 0;
        if (!(which >> i & 1) || !is_of_source(g, &inputs->input[i], k))
            continue;
        const char *line = column_line(s.columns, inputs->input[i].name, &length);
        strbuf_put(&text, text.len ? "\n" : "");
        strbuf_putn(&text, line, length);
    }
    return text.len ? text.text : NULL;
}

static void give(PredictInputs *inputs, Examples *const *field, int n)
{
    for (int f = 0; f < n; f++)
        for (int i = 0; i < inputs->n; i++)
            if (strcmp(inputs->input[i].name, examples_field(field[f])->name) == 0)
                inputs->input[i].examples = field[f];
}

static bool open_source(Cli *cli, const Graph *g, PredictInputs *inputs, const char *columns, int k,
                        const char *path)
{
    RtError err;
    Examples *field[DATA_MAX_FIELDS];
    DataPart s = source_at(&g->train, k);
    json_t *learned = learned_of(cli, &g->train, k);
    if (!learned) {
        cli_error(cli, EXIT_USER, "E524", "give --checkpoint the folder that `train` wrote",
                  "%s does not say what was learned of the columns", cli->run.checkpoint);
        return false;
    }
    DataSpec spec = {.path = path,
                     .columns = columns,
                     .separator = s.separator,
                     .no_header = s.no_header,
                     .learned = learned};
    int n = examples_of_table(&spec, field, &err);
    json_decref(learned);
    if (!n)
        cli_error(cli, EXIT_USER, "E524", NULL, "--input: %s", err.message);
    give(inputs, field, n);
    return n > 0;
}

bool predict_table_open(Cli *cli, const Graph *g, PredictInputs *inputs, uint32_t which,
                        const char *path)
{
    for (int k = 0; k < n_sources(&g->train); k++) {
        const char *columns = columns_of(cli, g, inputs, which, k);
        if (columns && !open_source(cli, g, inputs, columns, k, path))
            return false;
    }
    return true;
}
