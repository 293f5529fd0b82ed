/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/predict_inputs.h"

#include "frontend/driver/cli_fields.h"
#include "frontend/driver/predict_table.h"
#include "ir/support/strbuf.h"
#include "runtime/checkpoint.h"

#include <stdio.h>
#include <string.h>

/* ---- which inputs there are ---- */

/* By node: whether an output depends on it. */
static bool *nodes_needed(Pool *pool, const Graph *g)
{
    bool *needed = POOL_ARRAY(pool, g->nodes.len + 1, bool);
    for (size_t i = 0; i < g->outputs.len; i++)
        needed[graph_value(g, g->outputs.data[i].value)->def] = true;
    for (size_t i = g->order.len; i-- > 0;) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; needed[g->order.data[i]] && k < n->n_in; k++)
            needed[graph_value(g, n->in[k])->def] = true;
    }
    return needed;
}

/* "image" of the roles batch.image and input.image; NULL for what is no data. */
static const char *data_name(const Node *n)
{
    const char *role = n->op == OP_input ? node_string(n, ATTR_role, "") : "";
    static const char *const kinds[] = {"batch.", "input."};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(role, kinds[i], strlen(kinds[i])))
            return role + strlen(kinds[i]);
    return NULL;
}

static PredictInputs inputs_of(Pool *pool, const Graph *g)
{
    const bool *needed = nodes_needed(pool, g);
    PredictInputs out = {.input = POOL_ARRAY(pool, g->order.len + 1, PredictInput)};
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        const char *name = needed[g->order.data[i]] ? data_name(n) : NULL;
        if (name)
            out.input[out.n++] = (PredictInput){.name = name, .value = n->out[0]};
    }
    return out;
}

static int find_input(const PredictInputs *inputs, const char *name, size_t length)
{
    for (int i = 0; i < inputs->n; i++)
        if (strlen(inputs->input[i].name) == length && !memcmp(inputs->input[i].name, name, length))
            return i;
    return -1;
}

/* ---- --input NAME=PATH, or PATH alone ---- */

static bool is_name(const char *text, size_t length)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return length > 0 && n >= length;
}

static bool ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), k = strlen(suffix);
    return n > k && !strcmp(path + n - k, suffix);
}

/* A file of arrays, whatever the train section reads. */
static bool holds_arrays(const char *path)
{
    return ends_in(path, ".npy") || ends_in(path, ".npz") || ends_in(path, ".safetensors");
}

enum { MOST_INPUTS = 32 }; /* of a graph, as bits */

static uint32_t bit_of(int i)
{
    return i >= 0 && i < MOST_INPUTS ? 1U << i : 0;
}

/* All that a table gives. */
static uint32_t of_tables(const Graph *g, const PredictInputs *inputs)
{
    uint32_t which = 0;
    for (int i = 0; i < inputs->n; i++)
        if (predict_table_has(g, &inputs->input[i]))
            which |= bit_of(i);
    return which;
}

/* The inputs that an --input is for, as bits; 0 when there is none.  *path is where their examples
 * are.  Without a name these are those that the section has of tables, unless the file holds
 * arrays, or the input that the file is called like; else, with `only`, the only one. */
static uint32_t inputs_for(const Graph *g, const PredictInputs *inputs, const char *text, bool only,
                           const char **path)
{
    const char *equals = strchr(text, '='), *slash = strrchr(text, '/');
    *path = text;
    if (equals && is_name(text, (size_t)(equals - text))) {
        *path = equals + 1;
        return bit_of(find_input(inputs, text, (size_t)(equals - text)));
    }
    uint32_t tables = holds_arrays(text) ? 0 : of_tables(g, inputs);
    if (tables)
        return tables;
    const char *base = slash ? slash + 1 : text;
    int i = find_input(inputs, base, strcspn(base, "."));
    return i < 0 && only && inputs->n == 1 ? 1 : bit_of(i);
}

bool predict_inputs_fit(Cli *cli, const Graph *g, bool only, PredictInputs *out)
{
    *out = inputs_of(cli->pool, g);
    uint32_t given = 0;
    for (int k = 0; k < cli->predict.n_inputs; k++) {
        const char *path;
        uint32_t which = inputs_for(g, out, cli->predict.input[k], only, &path);
        if (!which || given & which)
            return false;
        given |= which;
    }
    return out->n <= MOST_INPUTS && given == (uint32_t)((UINT64_C(1) << out->n) - 1);
}

static const char *names_text(Cli *cli, const Graph *g)
{
    StrBuf text = strbuf_new(cli->pool);
    PredictInputs inputs = inputs_of(cli->pool, g);
    uint32_t tables = of_tables(g, &inputs);
    strbuf_put(&text, tables ? "--input TABLE.csv" : "");
    for (int i = 0; i < inputs.n; i++)
        if (!(tables & bit_of(i)))
            strbuf_printf(&text, "%s--input %s=FILE (%s)", text.len ? " " : "",
                          inputs.input[i].name,
                          type_text(cli->pool, value_type(g, inputs.input[i].value)));
    return inputs.n ? text.text : "nothing";
}

/* Whether every input of the model is called like one of the section, which comes first. */
static bool hidden_by(Pool *pool, const Graph *model, const Graph *section)
{
    PredictInputs inner = inputs_of(pool, model), outer = inputs_of(pool, section);
    for (int i = 0; i < inner.n; i++)
        if (find_input(&outer, inner.input[i].name, strlen(inner.input[i].name)) < 0)
            return false;
    return inner.n == outer.n;
}

ExitCode predict_inputs_refuse(Cli *cli, const Graph *section, const Graph *model)
{
    if (section && model && hidden_by(cli->pool, model, section))
        model = NULL;
    const char *both = section && model ? " for what the train section is given, or " : "";
    const char *help =
        pool_printf(cli->pool, "give %s%s%s%s", section ? names_text(cli, section) : "", both,
                    model ? names_text(cli, model) : "", *both ? " for the model alone" : "");
    return cli_error(cli, EXIT_USER, "E524", help,
                     cli->predict.n_inputs ? "--input: not what the model reads"
                                           : "predict needs examples, as --input");
}

/* ---- what is in the files ---- */

static Examples *open_pictures(const TrainSpec *t, const char *path, RtError *err)
{
    PictureForm form = {.size = t->data_size, .resize = t->data_resize};
    memcpy(form.mean, t->data_mean, sizeof form.mean);
    memcpy(form.std, t->data_std, sizeof form.std);
    return examples_of_pictures(path, &form, err);
}

/* What a source has pictures of, when `predict` reads some for the field. */
static Examples *open_for_source(const TrainSpec *t, const Type *type, const char *path,
                                 RtError *err)
{
    if (strcmp(t->data_kind, "imagefolder") == 0)
        return open_pictures(t, path, err);
    return examples_of_byte_pictures(path, type->dim[type->rank - 1],
                                     strcmp(t->data_kind, "mnist") == 0, err);
}

static bool has_pictures(const char *source)
{
    return !strcmp(source, "imagefolder") || !strcmp(source, "mnist") || !strcmp(source, "cifar10");
}

static Examples *open_sounds(const TrainSpec *t, const char *path, RtError *err)
{
    SoundForm form = {.rate = t->data_rate, .length = t->data_length};
    return examples_of_sounds(path, &form, err);
}

/* Where nothing says what the run's tokens are, they are bytes, unless its text has characters. */
static Examples *open_text(Cli *cli, const TrainSpec *t, const char *path, int64_t length,
                           RtError *err)
{
    Vocab vocab;
    bool known = checkpoint_read_vocab(cli->run.checkpoint, &vocab, err);
    if (!known && t->present && t->data_chars) {
        rt_error(
            err,
            "%s has no vocabulary, and the tokens of %s would be characters: give --checkpoint "
            "the folder that `train` wrote",
            cli->run.checkpoint, path);
        return NULL;
    }
    if (!known)
        vocab = vocab_bytes();
    Examples *x = examples_of_text(path, &vocab, length, err);
    vocab_free(&vocab);
    return x;
}

/* What a source of named arrays calls the field's, if it is the field's source. */
static void name_in_list(const char *kind, const char *list, const char *field, char *name)
{
    ArrayName item;
    if (data_traits(kind)->named_arrays)
        for (const char *at = list; array_name_next(&at, &item);)
            if (strcmp(item.field, field) == 0)
                memcpy(name, item.array, sizeof item.array);
}

/* The array of the input's name, or the one that the train section names for the field. */
static Examples *open_named(const Graph *g, const PredictInput *in, const char *path,
                            ArrayFormat format, RtError *err)
{
    char name[ARRAY_MAX_NAME + 1];
    const TrainSpec *t = &g->train;
    array_name_of(NULL, in->name, name);
    if (field_is_input(value_node(g, in->value))) {
        name_in_list(t->data_kind, t->data_columns, in->name, name);
        for (int k = 0; k < t->n_data_parts; k++)
            name_in_list(t->data_part[k].kind, t->data_part[k].columns, in->name, name);
    }
    return examples_of_named(path, format, name, err);
}

/* By the file's name and what the input is. */
static Examples *open_examples(Cli *cli, const Graph *g, const PredictInput *in, const char *path)
{
    RtError err;
    const Node *node = value_node(g, in->value);
    const Type *t = value_type(g, in->value);
    const char *source = g->train.present && g->train.data_kind ? g->train.data_kind : "";
    Examples *x = NULL;
    if (ends_in(path, ".npy"))
        x = examples_of_array(path, &err);
    else if (ends_in(path, ".npz"))
        x = open_named(g, in, path, ARRAYS_NPZ, &err);
    else if (ends_in(path, ".safetensors"))
        x = open_named(g, in, path, ARRAYS_SAFETENSORS, &err);
    else if (has_pictures(source) && field_is_input(node) && !strcmp(in->name, "image"))
        x = open_for_source(&g->train, t, path, &err);
    else if (!strcmp(source, "audiofolder") && field_is_input(node) && !strcmp(in->name, "audio"))
        x = open_sounds(&g->train, path, &err);
    else if (t->dtype == DTYPE_I32 && t->rank == 2 && strcmp(source, "tokens") != 0)
        x = open_text(cli, &g->train, path, t->dim[1], &err);
    else
        rt_error(&err,
                 "%s: %s is read from .npy, .npz and .safetensors files (and pictures, sounds or "
                 "tables, "
                 "where the train section reads an imagefolder, audiofolder or csv)",
                 path, type_text(cli->pool, t));
    if (!x)
        cli_error(cli, EXIT_USER, "E524", NULL, "--input: %s", err.message);
    return x;
}

/* Indices that the model has no row for would be read from elsewhere. */
static bool check_indices(Cli *cli, const Graph *g, const PredictInput *in, const char *path)
{
    const DataField *f = examples_field(in->examples);
    int64_t limit = field_limit(g, in->value);
    if (!limit || f->min_id > f->max_id || (f->min_id >= 0 && f->max_id < limit))
        return true;
    cli_error(cli, EXIT_USER, "E505", NULL,
              "%s has numbers from %lld to %lld, the model's are below %lld", path,
              (long long)f->min_id, (long long)f->max_id, (long long)limit);
    return false;
}

static bool check_examples(Cli *cli, const Graph *g, const PredictInput *in, const char *path)
{
    const DataField *f = examples_field(in->examples);
    const Type *t = value_type(g, in->value);
    const char *way;
    if (field_fits(cli->pool, t, f, &way))
        return check_indices(cli, g, in, path);
    const char *help = way ? pool_printf(cli->pool,
                                         "in Python: a = numpy.load(\"%s\"); numpy.save(\"%s\", "
                                         "numpy.ascontiguousarray(a%s))",
                                         path, path, way)
                           : NULL;
    char have[128];
    rt_shape_text(f->rank, f->dim, have, sizeof have);
    cli_error(cli, EXIT_USER, "E524", ends_in(path, ".npy") ? help : NULL,
              "an example of %s is %s%s, the model's %s is %s with %lld of them", path,
              rt_dtype_name(f->dtype), have, in->name, type_text(cli->pool, t),
              (long long)t->dim[0]);
    return false;
}

static bool one_batch(Cli *cli, const Graph *g, PredictInputs *inputs)
{
    for (int i = 0; i < inputs->n; i++) {
        const Type *t = value_type(g, inputs->input[i].value);
        int64_t batch = t->rank ? t->dim[0] : 0;
        if (t->rank && (i == 0 || batch == inputs->batch)) {
            inputs->batch = batch;
            continue;
        }
        cli_error(cli, EXIT_USER, "E524", NULL,
                  "%s is %s: the first dimension of every input has to count examples",
                  inputs->input[i].name, type_text(cli->pool, t));
        return false;
    }
    return true;
}

static bool open_files(Cli *cli, const Graph *g, PredictInputs *inputs, uint32_t which,
                       const char *path)
{
    if (!holds_arrays(path) && !(which & ~of_tables(g, inputs)))
        return predict_table_open(cli, g, inputs, which, path);
    for (int i = 0; i < inputs->n; i++)
        if (which & bit_of(i))
            inputs->input[i].examples = open_examples(cli, g, &inputs->input[i], path);
    return true;
}

static bool open_input(Cli *cli, const Graph *g, PredictInputs *inputs, const char *text)
{
    const char *path;
    uint32_t which = inputs_for(g, inputs, text, true, &path);
    if (!open_files(cli, g, inputs, which, path))
        return false;
    for (int i = 0; i < inputs->n; i++) {
        const PredictInput *in = &inputs->input[i];
        if (!(which & bit_of(i)))
            continue;
        if (!in->examples || !check_examples(cli, g, in, path))
            return false;
        int64_t n = examples_count(in->examples);
        if (inputs->examples >= 0 && n != inputs->examples) {
            cli_error(cli, EXIT_USER, "E524", NULL, "%s has %lld examples, others have %lld", path,
                      (long long)n, (long long)inputs->examples);
            return false;
        }
        inputs->examples = n;
    }
    return true;
}

bool predict_inputs_open(Cli *cli, const Graph *g, PredictInputs *inputs)
{
    inputs->examples = -1;
    if (!one_batch(cli, g, inputs))
        return false;
    for (int k = 0; k < cli->predict.n_inputs; k++)
        if (!open_input(cli, g, inputs, cli->predict.input[k]))
            return false;
    return true;
}

void predict_inputs_close(PredictInputs *inputs)
{
    for (int i = 0; i < inputs->n; i++)
        examples_close(inputs->input[i].examples);
    inputs->n = 0;
}

bool predict_inputs_fill(const Session *s, const PredictInputs *inputs, int64_t first)
{
    for (int i = 0; i < inputs->n; i++) {
        const PredictInput *in = &inputs->input[i];
        int64_t bytes = type_bytes(value_type(s->graph, in->value)) / inputs->batch;
        char *dst = session_at(s, in->value);
        for (int64_t b = 0; b < inputs->batch; b++, dst += bytes) {
            RtError err;
            if (first + b >= inputs->examples) {
                memset(dst, 0, (size_t)bytes);
            } else if (!examples_read(in->examples, first + b, dst, &err)) {
                cli_error(s->cli, EXIT_USER, "E524", NULL, "%s", err.message);
                return false;
            }
        }
    }
    return true;
}
