/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The inputs of a model for `predict`. */
#ifndef SCRIMP_FRONTEND_DRIVER_PREDICT_INPUT_H
#define SCRIMP_FRONTEND_DRIVER_PREDICT_INPUT_H

#include "ir/graph.h"
#include "runtime/examples.h"

/* An input that the results depend on, by its name: a field of the batch, or a parameter of the
 * model.  examples: NULL before predict_inputs_open. */
typedef struct PredictInput {
    const char *name;
    ValueId value;
    Examples *examples;
} PredictInput;

typedef struct PredictInputs {
    PredictInput *input;
    int n;
    int64_t batch;    /* examples at once: the first dimension of every input */
    int64_t examples; /* in all */
} PredictInputs;

#endif
