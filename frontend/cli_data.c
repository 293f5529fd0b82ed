/* Between a model's inputs and a data set. */
#include "frontend/cli_session.h"
#include "frontend/cli_signals.h"

#include "runtime/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char BATCH[] = "batch.";

static bool is_batch_input(const Node *n)
{
    return n->op == OP_input &&
           strncmp(node_string(n, ATTR_role, ""), BATCH, sizeof BATCH - 1) == 0;
}

/* The input a value comes from through views and slices. */
static ValueId root_of(const Graph *g, ValueId v)
{
    for (;;) {
        const Node *n = value_node(g, v);
        if (n->op != OP_reshape && n->op != OP_slice && n->op != OP_cast &&
            n->op != OP_stop_gradient)
            return v;
        v = n->in[0];
    }
}

/* How many classes or rows the model has for an integer input; 0 when it is not an index. */
static int64_t index_limit(const Graph *g, ValueId input)
{
    int64_t limit = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        int64_t here = 0;
        if (n->op == OP_embedding && root_of(g, n->in[0]) == input) {
            here = value_type(g, n->in[1])->dim[0];
        } else if (n->op == OP_cross_entropy && root_of(g, n->in[1]) == input) {
            const Type *logits = value_type(g, n->in[0]);
            here = logits->dim[node_int(n, ATTR_axis, logits->rank - 1)];
        }
        if (here && (!limit || here < limit))
            limit = here;
    }
    return limit;
}

static bool is_label(const Graph *g, ValueId input)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_cross_entropy && root_of(g, n->in[1]) == input)
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
        const Node *input = value_node(g, root_of(g, n->in[1]));
        int64_t ignored = node_int(n, ATTR_ignore_index, DATA_IGNORE);
        if (!is_batch_input(input) || ignored == DATA_IGNORE || ignored != (int32_t)ignored)
            continue;
        snprintf(spec->ignored_field, sizeof spec->ignored_field, "%s",
                 node_string(input, ATTR_role, "") + sizeof BATCH - 1);
        spec->ignored = ignored;
        return;
    }
}

static void synthetic_fields(const Graph *g, DataSpec *spec)
{
    int skip = g->train.accumulate > 1 && strcmp(g->kind, "step") == 0 ? 2 : 1;
    for (size_t i = 0; i < g->order.len && spec->n_fields < DATA_MAX_FIELDS; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!is_batch_input(n))
            continue;
        const Type *t = value_type(g, n->out[0]);
        DataField *f = &spec->field[spec->n_fields++];
        snprintf(f->name, sizeof f->name, "%s", node_string(n, ATTR_role, "") + sizeof BATCH - 1);
        f->dtype = (RtDType)t->dtype;
        for (int k = skip; k < t->rank; k++)
            f->dim[f->rank++] = t->dim[k];
        f->label = is_label(g, n->out[0]);
        f->max_id = index_limit(g, n->out[0]) - 1;
        if (t->dtype == DTYPE_U8 && f->max_id < 0)
            f->max_id = 255;
        spec->batch = t->rank >= skip ? t->dim[skip - 1] : 1;
    }
}

static DataSpec data_spec(const Cli *cli, const Graph *g, bool synthetic, uint64_t seed)
{
    const TrainSpec *t = &g->train;
    DataSpec spec = {.kind = t->data_kind,
                     .path = cli->data ? cli->data : t->data_path,
                     .batch = t->data_batch,
                     .length = t->data_length,
                     .chars = t->data_chars,
                     .held_out = t->held_out,
                     .held_out_is_part = t->held_out_is_part,
                     .seed = seed,
                     .size = t->data_size,
                     .resize = t->data_resize,
                     .augment = t->data_augment};
    memcpy(spec.mean, t->data_mean, sizeof spec.mean);
    memcpy(spec.std, t->data_std, sizeof spec.std);
    ignored_label(g, &spec);
    if (synthetic)
        spec.kind = "synthetic";
    if (spec.kind && strcmp(spec.kind, "synthetic") == 0)
        synthetic_fields(g, &spec);
    return spec;
}

static void no_field(Cli *cli, const char *name, const Dataset *ds)
{
    char fields[DATA_MAX_FIELDS * sizeof(((DataField *)0)->name)] = "";
    size_t at = 0;
    for (int i = 0; i < dataset_n_fields(ds); i++)
        at += (size_t)snprintf(fields + at, sizeof fields - at, "%s%s", i ? ", " : "",
                               dataset_field(ds, i)->name);
    cli_error(cli, EXIT_USER, "E504", NULL, "the data has no field '%s', but %s", name, fields);
}

/* An example has the input's shape without the batch, and without the micro-batches before it. */
static void wrong_example(Cli *cli, const Graph *g, const Node *n, const DataField *f)
{
    char have[128], want[128];
    const Type *t = value_type(g, n->out[0]);
    int skip = g->train.accumulate > 1 && strcmp(g->kind, "step") == 0 ? 2 : 1;
    skip = skip < t->rank ? skip : t->rank;
    rt_shape_text(f->rank, f->dim, have, sizeof have);
    rt_shape_text(t->rank - skip, t->dim + skip, want, sizeof want);
    cli_error(cli, EXIT_USER, "E506", NULL,
              "one example of the data's %s is %s%s, one of the model's is %s%s", f->name,
              rt_dtype_name(f->dtype), have, rt_dtype_name((RtDType)t->dtype), want);
}

static bool check_field(Cli *cli, const Graph *g, const Node *n, const Dataset *ds)
{
    const char *name = node_string(n, ATTR_role, "") + sizeof BATCH - 1;
    int i = dataset_find_field(ds, name);
    if (i < 0) {
        no_field(cli, name, ds);
        return false;
    }
    const DataField *f = dataset_field(ds, i);
    int64_t limit = index_limit(g, n->out[0]), elements;
    if (limit && f->max_id >= limit) {
        char help[96];
        snprintf(help, sizeof help, "give the model %lld classes or rows (an option, with -D)",
                 (long long)f->max_id + 1);
        cli_error(cli, EXIT_USER, "E505", help, "the data's %s goes up to %lld, the model has %lld",
                  name, (long long)f->max_id, (long long)limit);
        return false;
    }
    if (limit && f->min_id < 0 && !f->label) {
        cli_error(cli, EXIT_USER, "E505", NULL,
                  "the data's %s has negative values, which are no indices", name);
        return false;
    }
    int64_t batch_bytes = g->train.accumulate > 1 && strcmp(g->kind, "step") == 0
                              ? type_bytes(value_type(g, n->out[0])) / g->train.accumulate
                              : type_bytes(value_type(g, n->out[0]));
    if ((DType)f->dtype == value_type(g, n->out[0])->dtype &&
        rt_elements(f->rank, f->dim, &elements) &&
        elements * rt_dtype_bytes(f->dtype) * g->train.data_batch == batch_bytes)
        return true;
    wrong_example(cli, g, n, f);
    return false;
}

/* Training on made-up numbers while the user believes it is their data would be worse than an
 * error. */
static bool data_has_a_place(Cli *cli, const DataSpec *spec)
{
    if (!cli->data || strcmp(spec->kind, "synthetic") != 0)
        return true;
    cli_error(cli, EXIT_USER, "E508",
              "write a source that reads files in the place of synthetic(...), such as "
              "imagefolder(\"data\", batch = N, size = 224) (docs/data.md)",
              "--data %s: the model's batch is synthetic(...), which makes up its data", cli->data);
    return false;
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
    Dataset *ds = dataset_open(&spec, &err);
    if (!ds) {
        cli_error(cli, EXIT_USER, "E508", cli->data ? NULL : "--data PATH says where it is", "%s",
                  err.message);
        return NULL;
    }
    if (*dataset_warning(ds))
        fprintf(stderr, "warning: %s\n", dataset_warning(ds));
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (is_batch_input(n) && !synthetic && !check_field(cli, g, n, ds)) {
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

/* Where a data set's fields go for micro-batch k of a step. */
static void field_places(const Session *s, const Dataset *ds, int64_t k, void **dst)
{
    const Graph *g = s->graph;
    int64_t parts =
        strcmp(g->kind, "step") == 0 && g->train.accumulate > 1 ? g->train.accumulate : 1;
    for (int i = 0; i < DATA_MAX_FIELDS; i++)
        dst[i] = NULL;
    for (int i = 0; i < dataset_n_fields(ds); i++) {
        char role[96];
        snprintf(role, sizeof role, "%s%s", BATCH, dataset_field(ds, i)->name);
        ValueId v = session_input(s, role);
        if (v != VALUE_NONE)
            dst[i] = (char *)session_at(s, v) + k * (type_bytes(value_type(g, v)) / parts);
    }
}

bool session_fill(const Session *s, const Dataset *ds, int64_t update, bool overfit)
{
    int64_t parts = s->graph->train.accumulate > 1 ? s->graph->train.accumulate : 1;
    for (int64_t k = 0; k < parts; k++) {
        void *dst[DATA_MAX_FIELDS];
        RtError err;
        field_places(s, ds, k, dst);
        if (!dataset_train_batch(ds, overfit ? k : update * parts + k, dst, &err)) {
            cli_error(s->cli, EXIT_USER, "E509", NULL, "%s", err.message);
            return false;
        }
    }
    return true;
}

bool session_evaluate(Session *s, const Dataset *ds, uint64_t seed, double *loss)
{
    double total = 0, weight = 0;
    for (int m = 0; m < s->n_metrics; m++)
        s->metric_mean[m] = 0;
    for (int64_t i = 0; i < dataset_eval_batches(ds); i++) {
        void *dst[DATA_MAX_FIELDS];
        RtError err;
        int64_t counted;
        if (signals_caught())
            return false;
        field_places(s, ds, 0, dst);
        if (!dataset_eval_batch(ds, i, dst, &counted, &err)) {
            cli_error(s->cli, EXIT_USER, "E509", NULL, "%s", err.message);
            return false;
        }
        session_run(s, 0.0, 0, 0, seed);
        total += session_scalar(s, "loss") * (double)counted;
        for (int m = 0; m < s->n_metrics; m++)
            s->metric_mean[m] += session_scalar(s, s->metric[m]) * (double)counted;
        weight += (double)counted;
    }
    *loss = weight > 0 ? total / weight : (double)NAN;
    for (int m = 0; m < s->n_metrics; m++)
        s->metric_mean[m] = weight > 0 ? s->metric_mean[m] / weight : (double)NAN;
    return true;
}
