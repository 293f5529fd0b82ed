/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_finite.h"

#include "frontend/driver/cli_fields.h"
#include "runtime/undo.h"

#include <math.h>
#include <string.h>

bool finite_policy(Cli *cli, NanPolicy *out)
{
    static const char *const words[] = {"stop", "warn", "skip"};
    *out = NAN_STOP;
    if (!cli->run.on_nan)
        return true;
    for (int i = 0; i < 3; i++)
        if (strcmp(cli->run.on_nan, words[i]) == 0) {
            *out = (NanPolicy)i;
            return true;
        }
    cli_error(cli, EXIT_USER, "E521", "write stop (the default), warn or skip",
              "--on-nan %s: there is no such way on", cli->run.on_nan);
    return false;
}

static const char *number_text(double x)
{
    return isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

const char *finite_outputs(const Session *s)
{
    const TrainSpec *t = &s->graph->train;
    for (int i = 0; i == 0 || i < t->n_goals; i++) {
        const char *name = i ? t->goal[i].loss : s->metrics.loss;
        double x = session_scalar(s, name);
        if (!isfinite(x) && graph_output(s->graph, name) != VALUE_NONE)
            return t->n_goals ? pool_printf(s->cli->pool, "the loss %s is %s", name, number_text(x))
                              : pool_printf(s->cli->pool, "the loss is %s", number_text(x));
    }
    for (int k = 0; k < s->metrics.n_norms; k++) {
        double x = session_scalar(s, s->metrics.norm[k]);
        const char *of = strchr(s->metrics.norm[k], '.');
        if (!isfinite(x))
            return pool_printf(s->cli->pool, "the gradient norm%s%s is %s", of ? " of " : "",
                               of ? of + 1 : "", number_text(x));
    }
    return NULL;
}

static double float_of(RtDType dtype, const void *data, int64_t i)
{
    float x = 0;
    if (dtype == RT_F32)
        memcpy(&x, (const char *)data + 4 * i, sizeof x);
    return (double)x;
}

const char *finite_tensors(const Session *s, bool weights_only)
{
    static const struct {
        OpKind op;
        const char *text;
    } kinds[] = {{OP_param, "weight"}, {OP_buffer, "statistic"}, {OP_state, "optimizer state"}};
    for (int k = 0; k < (weights_only ? 2 : 3); k++)
        for (int i = 0; i < s->n_tensors; i++) {
            const CheckpointTensor *t = &s->tensor[i];
            if (value_node(s->graph, s->tensor_value[i])->op != kinds[k].op)
                continue;
            int64_t at = rt_first_not_finite(t->dtype, t->data, rt_tensor_elements(t));
            if (at >= 0)
                return pool_printf(s->cli->pool, "the %s %s has %s", kinds[k].text, t->name,
                                   number_text(float_of(t->dtype, t->data, at)));
        }
    return NULL;
}

/* --- the batch --- */

/* Where element `at` of an input is: the micro-batch, the place in it and the element of the
 * example. */
typedef struct Place {
    int64_t part, example, element;
} Place;

static Place place_of(const Session *s, const Type *t, int64_t at)
{
    int64_t per_part = type_elements(t) / field_micro_batches(s->graph);
    int64_t batch = t->dim[field_batch_dims(s->graph) - 1];
    int64_t in_part = at % per_part, per_example = per_part / batch;
    return (Place){at / per_part, in_part / per_example, in_part % per_example};
}

static bool fill(const Session *s, const Dataset *data, bool training, int64_t number, bool overfit)
{
    int64_t counted;
    return training ? session_fill(s, data, number, overfit)
                    : session_fill_held_out(s, data, number, &counted);
}

/* The first field with a number that is not finite, and which: NULL when there is none. */
static const DataField *find_field(const Session *s, const Dataset *data, const Type **type,
                                   const void **values, int64_t *at)
{
    for (int f = 0; f < dataset_n_fields(data); f++) {
        const DataField *field = dataset_field(data, f);
        ValueId v = session_input(s, pool_printf(s->cli->pool, "batch.%s", field->name));
        if (v == VALUE_NONE || value_type(s->graph, v)->rank == 0)
            continue;
        *type = value_type(s->graph, v);
        *values = session_at(s, v);
        *at = rt_first_not_finite((RtDType)(*type)->dtype, *values, type_elements(*type));
        if (*at >= 0)
            return field;
    }
    return NULL;
}

const char *finite_batch(const Session *s, const Dataset *data, bool training, int64_t number,
                         bool overfit)
{
    const TrainSpec *spec = &s->graph->train;
    const Type *type;
    const void *values;
    int64_t at, parts = train_micro_batches(spec);
    if (!fill(s, data, training, number, overfit))
        return NULL;
    const DataField *field = find_field(s, data, &type, &values, &at);
    if (!field)
        return NULL;
    Place p = place_of(s, type, at);
    int64_t batch = !training ? number : overfit ? p.part : number * parts + p.part;
    const char *suffix = data_traits(spec->data_kind)->field_suffix;
    return pool_printf(s->cli->pool, "example %lld of %s%s (counted from 0) has %s in element %lld",
                       (long long)dataset_example(data, training, batch, p.example), field->name,
                       suffix ? suffix : "",
                       number_text(float_of((RtDType)type->dtype, values, at)),
                       (long long)p.element);
}
