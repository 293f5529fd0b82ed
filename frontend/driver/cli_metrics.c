/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_metrics.h"

#include "frontend/driver/cli.h"

#include <math.h>
#include <string.h>

/* --- what is measured --- */

static bool is_norm(const Output *o)
{
    static const char name[] = "grad_norm";
    size_t n = sizeof name - 1;
    return strncmp(o->name, name, n) == 0 && (!o->name[n] || o->name[n] == '.');
}

static bool is_metric(const Graph *g, const Output *o)
{
    const Type *t = value_type(g, o->value);
    return t->dtype == DTYPE_F32 && t->rank == 0 && strcmp(o->name, train_loss(&g->train)) != 0 &&
           !is_norm(o);
}

/* The value called like an output of the step. */
static ValueId formula_input(const Graph *formula, const char *output)
{
    for (size_t i = 0; i < formula->order.len; i++) {
        const Node *n = graph_node(formula, formula->order.data[i]);
        if (n->op == OP_input && strcmp(graph_value(formula, n->out[0])->name + 1, output) == 0)
            return n->out[0];
    }
    return VALUE_NONE;
}

static bool is_summed(const Graph *g, const char *output)
{
    for (size_t i = 0; i < g->total_metrics.len; i++)
        if (formula_input(g->total_metrics.data[i].formula, output) != VALUE_NONE)
            return true;
    return false;
}

static int64_t metric_size(const Metric *m)
{
    return type_elements(m->type);
}

static Metric *add_metric(Pool *pool, Metrics *m, const char *name, const Type *type)
{
    Metric *new = type->rank ? &m->table[m->n_tables++] : &m->number[m->n_numbers++];
    *new = (Metric){.name = name, .type = type};
    new->value = POOL_ARRAY(pool, (size_t)metric_size(new) + 1, double);
    return new;
}

static void add_summed(Pool *pool, Metrics *m, const Graph *g, SummedOutput s)
{
    s.sum = POOL_ARRAY(pool, (size_t)type_elements(value_type(g, s.output)) + 1, double);
    m->summed[m->n_summed++] = s;
}

static void add_output(Pool *pool, Metrics *m, const Graph *g, const Output *o)
{
    const Metric *metric = add_metric(pool, m, o->name, value_type(g, o->value));
    add_summed(pool, m, g, (SummedOutput){o->value, true, .metric = metric});
}

static void add_formula(Pool *pool, Metrics *m, const Graph *g, const TotalMetric *t)
{
    const Graph *f = t->formula;
    Metric *metric = add_metric(pool, m, t->name, value_type(f, f->outputs.data[0].value));
    metric->formula = f;
    metric->state = eval_new(pool, f);
    for (size_t i = 0; i < g->outputs.len; i++) {
        ValueId input = formula_input(f, g->outputs.data[i].name);
        if (input == VALUE_NONE)
            continue;
        const char *role = node_string(value_node(f, input), ATTR_role, "");
        add_summed(pool, m, g,
                   (SummedOutput){g->outputs.data[i].value, strcmp(role, "average") == 0,
                                  .metric = metric, .input = input});
    }
}

void metrics_describe(Pool *pool, const Graph *g, Metrics *out)
{
    size_t most = g->outputs.len + g->total_metrics.len, pairs = most;
    for (size_t i = 0; i < g->total_metrics.len; i++)
        pairs += g->total_metrics.data[i].formula->order.len;
    *out = (Metrics){.loss = train_loss(&g->train),
                     .norm = POOL_ARRAY(pool, most + 1, const char *),
                     .number = POOL_ARRAY(pool, most + 1, Metric),
                     .table = POOL_ARRAY(pool, most + 1, Metric),
                     .summed = POOL_ARRAY(pool, pairs + 1, SummedOutput)};
    ValueId loss = graph_output(g, out->loss);
    if (loss != VALUE_NONE)
        add_summed(pool, out, g, (SummedOutput){loss, true, .metric = NULL});
    for (size_t i = 0; i < g->outputs.len; i++) {
        const Output *o = &g->outputs.data[i];
        if (is_norm(o))
            out->norm[out->n_norms++] = o->name;
        else if (is_metric(g, o) && !is_summed(g, o->name))
            add_output(pool, out, g, o);
    }
    for (size_t i = 0; i < g->total_metrics.len; i++)
        add_formula(pool, out, g, &g->total_metrics.data[i]);
}

/* --- an evaluation --- */

void metrics_begin(Metrics *m, const Graph *g)
{
    m->weight = 0;
    for (int i = 0; i < m->n_summed; i++) {
        int64_t n = type_elements(value_type(g, m->summed[i].output));
        memset(m->summed[i].sum, 0, (size_t)n * sizeof(double));
    }
}

static double element(DType dtype, const void *data, int64_t i)
{
    return dtype == DTYPE_I32 ? (double)((const int32_t *)data)[i]
                              : (double)((const float *)data)[i];
}

void metrics_add(Metrics *m, const Graph *g, int i, const void *data, double counted)
{
    SummedOutput *s = &m->summed[i];
    const Type *t = value_type(g, s->output);
    double factor = s->average ? counted : 1;
    for (int64_t k = 0; k < type_elements(t); k++)
        s->sum[k] += factor * element(t->dtype, data, k);
}

static void divide(SummedOutput *s, const Graph *g, double weight)
{
    for (int64_t k = 0; k < type_elements(value_type(g, s->output)); k++)
        s->sum[k] = weight > 0 ? s->sum[k] / weight : (double)NAN;
}

static void end_metric(Metric *m)
{
    if (!m->formula)
        return;
    eval_run(m->state, false);
    memcpy(m->value, eval_get(m->state, m->formula->outputs.data[0].value),
           (size_t)metric_size(m) * sizeof(double));
}

double metrics_end(Metrics *m, const Graph *g)
{
    for (int i = 0; i < m->n_summed; i++) {
        SummedOutput *s = &m->summed[i];
        if (s->average || m->weight == 0)
            divide(s, g, m->weight);
        if (s->metric && s->metric->formula)
            eval_set(s->metric->state, s->input, s->sum);
        else if (s->metric)
            s->metric->value[0] = s->sum[0];
    }
    for (int i = 0; i < m->n_numbers; i++)
        end_metric(&m->number[i]);
    for (int i = 0; i < m->n_tables; i++)
        end_metric(&m->table[i]);
    return m->summed[0].sum[0];
}

/* --- tables --- */

static int64_t table_rows(const Metric *t)
{
    return t->type->rank == 2 ? t->type->dim[0] : 1;
}

static const double *table_row(const Metric *t, int64_t row, int64_t *n)
{
    *n = t->type->dim[t->type->rank - 1];
    return t->value + row * *n;
}

static json_t *row_json(const Metric *t, int64_t row)
{
    int64_t n;
    const double *x = table_row(t, row, &n);
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, cli_json_number(x[i]));
    return list;
}

json_t *metric_table_json(const Metric *t)
{
    if (t->type->rank == 1)
        return row_json(t, 0);
    json_t *rows = json_array();
    for (int64_t r = 0; r < table_rows(t); r++)
        json_array_append_new(rows, row_json(t, r));
    return rows;
}

void metric_table_print(FILE *out, const Metric *t)
{
    fprintf(out, "%s\n", t->name);
    for (int64_t r = 0; r < table_rows(t); r++) {
        int64_t n;
        const double *x = table_row(t, r, &n);
        for (int64_t i = 0; i < n; i++)
            fprintf(out, "%s%8.*f", i ? " " : "  ", x[i] == floor(x[i]) ? 0 : 4, x[i]);
        fputc('\n', out);
    }
}
