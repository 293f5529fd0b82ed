/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The metrics of a step, and what becomes of them over the batches of an evaluation. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_METRICS_H
#define SCRIMP_FRONTEND_DRIVER_CLI_METRICS_H

#include "ir/eval.h"

#include <jansson.h>
#include <stdio.h>

typedef struct Metric {
    const char *name;
    const Type *type;     /* f32 of rank 0, a table: 1 or 2 */
    double *value;        /* of the last evaluation, row-major */
    const Graph *formula; /* NULL: the mean of an output over the examples */
    EvalState *state;     /* of the formula */
} Metric;

/* An output that is summed up over the batches. */
typedef struct SummedOutput {
    ValueId output;
    bool average; /* each batch counts by its examples, and the sum is divided by all */
    double *sum;
    const Metric *metric; /* whose value or, with a formula, whose input it is; NULL: the loss */
    ValueId input;        /* of the formula */
} SummedOutput;

typedef struct Metrics {
    const char *loss;  /* the output that is the only loss, or the first; others are metrics */
    const char **norm; /* "grad_norm", or "grad_norm.LOSS" of every loss; none: not computed */
    int n_norms;
    Metric *number; /* metrics that are one number */
    int n_numbers;
    Metric *table; /* others; only evaluations have them */
    int n_tables;
    SummedOutput *summed; /* in an evaluation; the first is the loss */
    int n_summed;
    double weight;
} Metrics;

/* The metrics of a graph: outputs of one number beside the loss and gradients' norms, and
 * formulas of totals. */
void metrics_describe(Pool *pool, const Graph *g, Metrics *out);
/* An evaluation: begin; of every batch add summed[i] for all i, whose elements are data, of a batch
 * of so many examples, which the caller adds to weight; end, which sets all values and returns the
 * mean loss, NaN when there was no example. */
void metrics_begin(Metrics *m, const Graph *g);
void metrics_add(Metrics *m, const Graph *g, int i, const void *data, double counted);
double metrics_end(Metrics *m, const Graph *g);

/* A table as JSON numbers in lists, or as lines of text. */
json_t *metric_table_json(const Metric *table);
void metric_table_print(FILE *out, const Metric *table);

#endif
