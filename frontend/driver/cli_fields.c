/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_fields.h"

#include "ir/support/strbuf.h"

#include <stdio.h>
#include <string.h>

static const char BATCH[] = "batch.";

bool field_is_input(const Node *n)
{
    return n->op == OP_input &&
           strncmp(node_string(n, ATTR_role, ""), BATCH, sizeof BATCH - 1) == 0;
}

const char *field_name(const Node *input)
{
    return node_string(input, ATTR_role, "") + sizeof BATCH - 1;
}

int64_t field_micro_batches(const Graph *g)
{
    return strcmp(g->kind, "step") == 0 ? train_micro_batches(&g->train) : 1;
}

int field_batch_dims(const Graph *g)
{
    return field_micro_batches(g) > 1 ? 2 : 1;
}

ValueId field_root(const Graph *g, ValueId v)
{
    for (;;) {
        const Node *n = value_node(g, v);
        if (n->op != OP_reshape && n->op != OP_slice && n->op != OP_cast &&
            n->op != OP_stop_gradient)
            return v;
        v = n->in[0];
    }
}

int64_t field_limit(const Graph *g, ValueId input)
{
    int64_t limit = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        int64_t here = 0;
        if (n->op == OP_embedding && field_root(g, n->in[0]) == input) {
            here = value_type(g, n->in[1])->dim[0];
        } else if (n->op == OP_cross_entropy && field_root(g, n->in[1]) == input) {
            const Type *logits = value_type(g, n->in[0]);
            here = logits->dim[node_int(n, ATTR_axis, logits->rank - 1)];
        }
        if (here && (!limit || here < limit))
            limit = here;
    }
    return limit;
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

/* Of one example, as declared; the dimensions of the batch are left out. */
typedef struct Declared {
    RtDType dtype;
    int rank;
    const int64_t *dim;
} Declared;

static Declared declared(const Graph *g, const Node *input)
{
    const Type *t = value_type(g, input->out[0]);
    int skip = field_batch_dims(g);
    skip = skip < t->rank ? skip : t->rank;
    return (Declared){(RtDType)t->dtype, t->rank - skip, t->dim + skip};
}

static bool same_dims(const Declared *d, const DataField *f)
{
    return d->rank == f->rank && memcmp(d->dim, f->dim, (size_t)d->rank * sizeof *d->dim) == 0;
}

/* ", 3, 1, 2": where the declared dimensions stand in the data, after the examples; NULL when the
 * data's are no order of them. */
static const char *axes_text(Pool *pool, const Declared *d, const DataField *f)
{
    bool used[RT_MAX_RANK] = {false};
    const char *text = "";
    for (int i = 0; i < d->rank; i++) {
        int k = 0;
        while (k < f->rank && (used[k] || f->dim[k] != d->dim[i]))
            k++;
        if (k == f->rank)
            return NULL;
        used[k] = true;
        text = pool_printf(pool, "%s, %d", text, k + 1);
    }
    return d->rank == f->rank ? text : NULL;
}

static const char *dims_text(Pool *pool, int64_t first, int rank, const int64_t *dim)
{
    StrBuf text = strbuf_new(pool);
    strbuf_printf(&text, "[%lld", (long long)first);
    for (int i = 0; i < rank; i++)
        strbuf_printf(&text, ",%lld", (long long)dim[i]);
    strbuf_put(&text, "]");
    return text.text;
}

/* What to call on the array in numpy. */
static const char *numpy_call(Pool *pool, const Declared *d, const DataField *f)
{
    static const char *const numpy[RT_DTYPE_COUNT] = {
        [RT_F32] = "float32", [RT_I32] = "int32", [RT_U8] = "uint8", [RT_BOOL] = "bool"};
    int64_t have, want;
    const char *axes = axes_text(pool, d, f), *text = "";
    if (same_dims(d, f))
        axes = "";
    if (axes && *axes)
        text = pool_printf(pool, ".transpose(0%s)", axes);
    else if (!axes && rt_elements(f->rank, f->dim, &have) && rt_elements(d->rank, d->dim, &want) &&
             have == want) {
        text = ".reshape(len(a)";
        for (int i = 0; i < d->rank; i++)
            text = pool_printf(pool, "%s, %lld", text, (long long)d->dim[i]);
        text = pool_printf(pool, "%s)", text);
    } else if (!axes)
        return NULL;
    if (d->dtype == f->dtype)
        return text;
    return numpy[d->dtype] && !f->label
               ? pool_printf(pool, "%s.astype(\"%s\")", text, numpy[d->dtype])
               : NULL;
}

bool field_fits(Pool *pool, const Type *input, const DataField *examples, const char **numpy)
{
    const Declared d = {(RtDType)input->dtype, input->rank - 1, input->dim + 1};
    *numpy = NULL;
    if (d.dtype == examples->dtype && same_dims(&d, examples))
        return true;
    *numpy = numpy_call(pool, &d, examples);
    return false;
}

static const char *way_out(Cli *cli, const Graph *g, const Declared *d, const DataField *f)
{
    const DataTraits *traits = data_traits(g->train.data_kind);
    const char *as_is = pool_printf(cli->pool, "declare %s = %s%s in the model's batch", f->name,
                                    rt_dtype_name(f->dtype),
                                    dims_text(cli->pool, g->train.data_batch, f->rank, f->dim));
    if (!traits->field_suffix)
        return traits->other_dims ? traits->other_dims : as_is;
    const char *call = numpy_call(cli->pool, d, f);
    if (!call)
        return as_is;
    return pool_printf(cli->pool,
                       "in Python: a = numpy.load(\"%s%s\"); numpy.save(\"%s%s\", "
                       "numpy.ascontiguousarray(a%s)); or %s",
                       f->name, traits->field_suffix, f->name, traits->field_suffix, call, as_is);
}

static void wrong_example(Cli *cli, const Graph *g, const Declared *d, const DataField *f,
                          const Dataset *ds)
{
    int64_t examples = dataset_train_size(ds) + dataset_held_out_size(ds);
    cli_error(cli, EXIT_USER, "E506", way_out(cli, g, d, f),
              "the data's %s is %s%s (%lld examples), the model's batch declares %s%s", f->name,
              rt_dtype_name(f->dtype), dims_text(cli->pool, examples, f->rank, f->dim),
              (long long)examples, rt_dtype_name(d->dtype),
              dims_text(cli->pool, g->train.data_batch, d->rank, d->dim));
}

static bool check_range(Cli *cli, const Graph *g, const Node *input, const DataField *f)
{
    int64_t limit = field_limit(g, input->out[0]);
    if (limit && f->max_id >= limit) {
        const char *help =
            pool_printf(cli->pool, "give the model %lld classes or rows (an option, with -D)",
                        (long long)f->max_id + 1);
        cli_error(cli, EXIT_USER, "E505", help, "the data's %s goes up to %lld, the model has %lld",
                  f->name, (long long)f->max_id, (long long)limit);
        return false;
    }
    if (limit && f->min_id < 0 && !f->label) {
        cli_error(cli, EXIT_USER, "E505", NULL,
                  "the data's %s has negative values, which are no indices", f->name);
        return false;
    }
    return true;
}

bool field_check(Cli *cli, const Graph *g, const Node *input, const Dataset *ds)
{
    int i = dataset_find_field(ds, field_name(input));
    if (i < 0) {
        no_field(cli, field_name(input), ds);
        return false;
    }
    const DataField *f = dataset_field(ds, i);
    const Declared d = declared(g, input);
    if (d.dtype != f->dtype || !same_dims(&d, f)) {
        wrong_example(cli, g, &d, f, ds);
        return false;
    }
    return check_range(cli, g, input, f);
}
