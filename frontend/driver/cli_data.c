/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Between a model's inputs and a data set. */
#include "frontend/driver/cli_fields.h"
#include "frontend/driver/cli_finite.h"
#include "frontend/driver/cli_resume.h"
#include "frontend/driver/cli_signals.h"

#include "ir/support/strbuf.h"
#include "runtime/checkpoint.h"
#include "runtime/file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_label(const Graph *g, ValueId input)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_cross_entropy && field_root(g, n->in[1]) == input)
            return true;
    }
    return false;
}

/* Which label the loss leaves out, when it is not the usual one. */
static void ignored_label(const Graph *g, DataSpec *spec)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op != OP_cross_entropy)
            continue;
        const Node *input = value_node(g, field_root(g, n->in[1]));
        int64_t ignored = node_int(n, ATTR_ignore_index, DATA_IGNORE);
        if (!field_is_input(input) || ignored == DATA_IGNORE || ignored != (int32_t)ignored)
            continue;
        snprintf(spec->ignored_field, sizeof spec->ignored_field, "%s", field_name(input));
        spec->ignored = ignored;
        return;
    }
}

static void synthetic_fields(const Graph *g, DataSpec *spec)
{
    int skip = field_batch_dims(g);
    for (size_t i = 0; i < g->order.len && spec->n_fields < DATA_MAX_FIELDS; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!field_is_input(n))
            continue;
        const Type *t = value_type(g, n->out[0]);
        DataField *f = &spec->field[spec->n_fields++];
        snprintf(f->name, sizeof f->name, "%s", field_name(n));
        f->dtype = (RtDType)t->dtype;
        for (int k = skip; k < t->rank; k++)
            f->dim[f->rank++] = t->dim[k];
        f->label = is_label(g, n->out[0]);
        f->max_id = field_limit(g, n->out[0]) - 1;
        if (t->dtype == DTYPE_U8 && f->max_id < 0)
            f->max_id = 255;
        spec->batch = t->rank >= skip ? t->dim[skip - 1] : 1;
    }
}

/* npy(["x.npy", "y.npy"]) names fields by its files: --data DIR is where they lie, and other files
 * there are none of the model's. */
static const char *data_path(Cli *cli, const TrainSpec *t)
{
    const char *suffix = data_traits(t->data_kind)->field_suffix;
    if (!cli->run.data || !suffix || !folder_exists(cli->run.data))
        return cli->run.data ? cli->run.data : t->data_path;
    StrBuf text = strbuf_new(cli->pool);
    for (const char *path = t->data_path; path && *path;) {
        size_t n = strcspn(path, "\n"), name = n;
        while (name > 0 && path[name - 1] != '/')
            name--;
        size_t end = strlen(suffix);
        if (n - name < end || strncmp(path + n - end, suffix, end) != 0)
            return cli->run.data; /* the model names a folder, too */
        strbuf_printf(&text, "%s%s/%.*s", text.len ? "\n" : "", cli->run.data, (int)(n - name),
                      path + name);
        path += n + (path[n] == '\n');
    }
    return text.len ? text.text : cli->run.data;
}

/* The sources of a zip. */
static void put_parts(Cli *cli, const TrainSpec *t, DataSpec *spec)
{
    DataSpec *part = POOL_ARRAY(cli->pool, (size_t)t->n_data_parts + 1, DataSpec);
    for (int k = 0; k < t->n_data_parts; k++) {
        const DataPart *p = &t->data_part[k];
        part[k] = (DataSpec){.kind = p->kind,
                             .path = p->path,
                             .columns = p->columns,
                             .separator = p->separator,
                             .no_header = p->no_header,
                             .in_order = p->in_order};
    }
    spec->part = part;
    spec->n_parts = t->n_data_parts;
}

/* Made-up numbers in the place of the model's data, for who only trains on them: what is held out
 * there, other files or more examples than are made up, says nothing of these. */
static void make_up(DataSpec *spec)
{
    spec->kind = "synthetic";
    spec->held_path = NULL;
    spec->held_out = 0;
}

static DataSpec data_spec(Cli *cli, const Graph *g, bool synthetic, uint64_t seed)
{
    const TrainSpec *t = &g->train;
    DataSpec spec = {.kind = t->data_kind,
                     .path = data_path(cli, t),
                     .batch = t->data_batch,
                     .length = t->data_length,
                     .chars = t->data_chars,
                     .held_out = t->held_out,
                     .held_path = t->data_held_path,
                     .held_out_is_part = t->held_out_is_part,
                     .seed = seed,
                     .size = t->data_size,
                     .resize = t->data_resize,
                     .augment = t->data_augment,
                     .rate = t->data_rate,
                     .columns = t->data_columns,
                     .separator = t->data_separator,
                     .no_header = t->data_no_header,
                     .in_order = t->data_in_order};
    memcpy(spec.mean, t->data_mean, sizeof spec.mean);
    memcpy(spec.std, t->data_std, sizeof spec.std);
    put_parts(cli, t, &spec);
    spec.left_out = resume_left_out(cli, &spec.n_left_out);
    ignored_label(g, &spec);
    if (synthetic)
        make_up(&spec);
    if (data_traits(spec.kind)->made_up)
        synthetic_fields(g, &spec);
    return spec;
}

DataSpec session_data_spec(Cli *cli, const Graph *g)
{
    DataSpec spec = data_spec(cli, g, false, 0);
    if (spec.kind && !spec.n_fields)
        synthetic_fields(g, &spec);
    return spec;
}

/* Training on made-up numbers while the user believes it is their data would be worse than an
 * error. */
static bool data_has_a_place(Cli *cli, const DataSpec *spec)
{
    const DataTraits *traits = data_traits(spec->kind);
    if (!cli->run.data || !(traits->made_up || traits->several))
        return true;
    if (traits->several) {
        cli_error(cli, EXIT_USER, "E508", "write the paths in the model's sources",
                  "--data %s: the model's batch is zip(...), which reads several sources",
                  cli->run.data);
        return false;
    }
    cli_error(cli, EXIT_USER, "E508",
              "write a source that reads files in the place of synthetic(...), such as "
              "imagefolder(\"data\", batch = N, size = 224) (docs/data.md)",
              "--data %s: the model's batch is synthetic(...), which makes up its data",
              cli->run.data);
    return false;
}

/* Each once.  Nobody reads a thousand lines, but they say which files to look at. */
static void tell_left_out(const Dataset *ds)
{
    int64_t i;
    const char *why;
    while (dataset_tell_left_out(ds, &i, &why))
        fprintf(stderr, "warning: left out: %s: %s\n", dataset_left_out_name(ds, i), why);
}

static void tell_known(const Cli *cli, const DataSpec *spec)
{
    if (spec->n_left_out)
        fprintf(stderr,
                "note: as before, the run in %s leaves out %lld file%s that could not be read, "
                "the first of them %s\n",
                cli->output.out, (long long)spec->n_left_out, spec->n_left_out == 1 ? "" : "s",
                spec->left_out[0]);
}

/* What writes made-up data in the place of those that are not there. */
static const char *standin_hint(Cli *cli, const DataSpec *spec)
{
    size_t n = strcspn(spec->path ? spec->path : "", "\n*?[");
    const char *first = n ? pool_strndup(cli->pool, spec->path, n) : NULL;
    if (!first || access(first, F_OK) == 0)
        return "";
    return pool_printf(cli->pool, "; `scrimp data %s%s%s` writes a small stand-in", cli->file,
                       cli->run.data ? " --data " : "", cli->run.data ? cli->run.data : "");
}

/* What is wrong is then in the files. */
static bool all_there(const DataSpec *spec)
{
    bool there = data_paths_exist(spec->path) && data_paths_exist(spec->held_path);
    for (int k = 0; k < spec->n_parts; k++)
        there = there && data_paths_exist(spec->part[k].path);
    return there;
}

/* Where a path that is not found was looked up; NULL when all were found. */
static const char *place_of_data(Cli *cli, const DataSpec *spec)
{
    char here[PATH_MAX];
    const char *path = spec->path ? spec->path : "";
    if (all_there(spec))
        return NULL;
    bool one = !cli->run.data && !data_traits(spec->kind)->several;
    const char *option = !one ? "" : "; --data PATH says where it is";
    if (*path && *path != '/' && getcwd(here, sizeof here))
        return pool_printf(cli->pool, "paths of data are looked up from the current folder, %s%s%s",
                           here, option, standin_hint(cli, spec));
    return *option ? option + 2 : NULL;
}

Dataset *session_open_data(Cli *cli, const Graph *g, bool synthetic, uint64_t seed)
{
    RtError err;
    DataSpec spec = data_spec(cli, g, synthetic, seed);
    if (!spec.kind) {
        cli_error(cli, EXIT_USER, "E507", "write `batch = mnist(\"data/mnist\", batch = N)`",
                  "the train section names no data source");
        return NULL;
    }
    if (!synthetic && !data_has_a_place(cli, &spec))
        return NULL;
    const char *run = cli->run.resume ? cli->output.out : cli->run.checkpoint;
    json_t *learned = run ? checkpoint_read_learned(run) : NULL;
    spec.learned = learned;
    Dataset *ds = dataset_open(&spec, &err);
    json_decref(learned);
    if (!ds) {
        cli_error(cli, EXIT_USER, "E508", place_of_data(cli, &spec), "%s", err.message);
        return NULL;
    }
    tell_known(cli, &spec);
    tell_left_out(ds);
    if (*dataset_warning(ds))
        fprintf(stderr, "warning: %s\n", dataset_warning(ds));
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (field_is_input(n) && !synthetic && !field_check(cli, g, n, ds)) {
            dataset_close(ds);
            return NULL;
        }
    }
    return ds;
}

bool session_same_vocab(Cli *cli, const Dataset *ds, const char *dir)
{
    Vocab trained = {0};
    RtError err;
    const Vocab *here = dataset_vocab(ds);
    if (!dir || !here || !checkpoint_read_vocab(dir, &trained, &err))
        return true;
    bool same = here->chars == trained.chars && here->size == trained.size &&
                (!here->chars ||
                 memcmp(here->code, trained.code, (size_t)here->size * sizeof *here->code) == 0);
    if (!same)
        cli_error(cli, EXIT_USER, "E517",
                  "add the text that it was trained on to the data, held out or not, so that every "
                  "character keeps its token",
                  "the text has %d different characters, %s was trained on %d: their tokens differ",
                  here->size, dir, trained.size);
    vocab_free(&trained);
    return same;
}

#define WHOLE_BATCHES                                                                              \
    "without integer labels (a field `label` or `y`) evaluations read whole batches only"

static void no_evaluation(Cli *cli, const Dataset *ds, const char *needs)
{
    long long held = dataset_held_out_size(ds), batch = dataset_batch_size(ds);
    if (!held && needs)
        cli_error(cli, EXIT_USER, "E513", "write `held_out = 10%` in the train section",
                  "%snothing is held out to evaluate on", needs);
    if (!held)
        return;
    const char *help =
        pool_printf(cli->pool, "hold out %lld examples or more, or make the batch smaller", batch);
    const char *why = pool_printf(
        cli->pool, "%lld example%s held out, fewer than a batch of %lld, and " WHOLE_BATCHES, held,
        held == 1 ? " is" : "s are", batch);
    if (needs)
        cli_error(cli, EXIT_USER, "E513", help, "%s%s", needs, why);
    else
        fprintf(stderr, "warning: nothing is evaluated: %s; %s\n", why, help);
}

bool session_tell_held_out(Cli *cli, const Dataset *ds, const char *needs)
{
    long long unread = dataset_eval_unread(ds), batch = dataset_batch_size(ds);
    bool any = dataset_eval_batches(ds) > 0;
    if (!any)
        no_evaluation(cli, ds, needs);
    else if (unread && !cli->output.quiet)
        fprintf(
            stderr,
            "note: evaluations leave out the last %lld of %lld held-out examples: " WHOLE_BATCHES
            ", here of %lld\n",
            unread, (long long)dataset_held_out_size(ds), batch);
    return any;
}

/* Where a data set's fields go for micro-batch k of a step. */
static void field_places(const Session *s, const Dataset *ds, int64_t k, void **dst)
{
    const Graph *g = s->graph;
    int64_t parts = field_micro_batches(g);
    for (int i = 0; i < DATA_MAX_FIELDS; i++)
        dst[i] = NULL;
    for (int i = 0; i < dataset_n_fields(ds); i++) {
        char role[96];
        snprintf(role, sizeof role, "batch.%s", dataset_field(ds, i)->name);
        ValueId v = session_input(s, role);
        if (v != VALUE_NONE)
            dst[i] = (char *)session_at(s, v) + k * (type_bytes(value_type(g, v)) / parts);
    }
}

bool session_fill(const Session *s, const Dataset *ds, int64_t update, bool overfit)
{
    int64_t parts = train_micro_batches(&s->graph->train);
    for (int64_t k = 0; k < parts; k++) {
        void *dst[DATA_MAX_FIELDS];
        RtError err;
        field_places(s, ds, k, dst);
        bool ok = dataset_train_batch(ds, overfit ? k : update * parts + k, dst, &err);
        tell_left_out(ds);
        if (!ok) {
            cli_error(s->cli, EXIT_USER, "E509", NULL, "%s", err.message);
            return false;
        }
    }
    return true;
}

bool session_fill_held_out(const Session *s, const Dataset *ds, int64_t batch, int64_t *counted)
{
    void *dst[DATA_MAX_FIELDS];
    RtError err;
    field_places(s, ds, 0, dst);
    bool ok = dataset_eval_batch(ds, batch, dst, counted, &err);
    tell_left_out(ds);
    if (ok)
        return true;
    cli_error(s->cli, EXIT_USER, "E509", NULL, "%s", err.message);
    return false;
}

/* Why the loss of an evaluation batch is not finite, when it is the data.  True: it has been looked
 * for. */
static bool tell_batch(const Session *s, const Dataset *ds, int64_t batch)
{
    const char *cause = finite_batch(s, ds, false, batch, false);
    if (cause)
        fprintf(stderr, "warning: the held-out loss is not finite: %s\n", cause);
    return true;
}

/* Random numbers of an evaluation: the same whatever the run's seed and whenever it is, so that
 * losses may be compared; each batch's own, and no training step's. */
static StepNumbers evaluation_numbers(int64_t batch)
{
    return (StepNumbers){.micro = INT64_MIN + batch};
}

/* Adds a batch that has been computed. */
static void add_batch(Session *s, double counted)
{
    Metrics *m = &s->metrics;
    for (int i = 0; i < m->n_summed; i++)
        metrics_add(m, s->graph, i, session_at(s, m->summed[i].output), counted);
    m->weight += counted;
}

bool session_evaluate(Session *s, const Dataset *ds, double *loss)
{
    bool told = false;
    metrics_begin(&s->metrics, s->graph);
    for (int64_t i = 0; i < dataset_eval_batches(ds); i++) {
        int64_t counted;
        if (signals_caught() || !session_fill_held_out(s, ds, i, &counted))
            return false;
        if (!session_run(s, evaluation_numbers(i)))
            return false;
        add_batch(s, (double)counted);
        if (!told && !isfinite(session_scalar(s, s->metrics.loss)))
            told = tell_batch(s, ds, i);
    }
    *loss = metrics_end(&s->metrics, s->graph);
    return true;
}
