/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `predict` gives a model: which of its inputs, and the examples of each. */
#ifndef SCRIMP_FRONTEND_DRIVER_PREDICT_INPUTS_H
#define SCRIMP_FRONTEND_DRIVER_PREDICT_INPUTS_H

#include "frontend/driver/cli_session.h"
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

/* Those of a graph, before or after its passes; all --input are among them, and none is left. only:
 * a file that is called otherwise is the only input's.  False without a message otherwise. */
bool predict_inputs_fit(Cli *cli, const Graph *g, bool only, PredictInputs *out);
/* Why not, as a message; EXIT_USER.  section, model: what they could have been, either may be NULL.
 */
ExitCode predict_inputs_refuse(Cli *cli, const Graph *section, const Graph *model);
/* Opens the files of --input and compares them with a graph behind its passes; false after a
 * message.  Either way predict_inputs_close. */
bool predict_inputs_open(Cli *cli, const Graph *g, PredictInputs *inputs);
void predict_inputs_close(PredictInputs *inputs);
/* Fills the inputs with examples first .. first + batch, zeros past the last; false after a
 * message. */
bool predict_inputs_fill(const Session *s, const PredictInputs *inputs, int64_t first);

#endif
