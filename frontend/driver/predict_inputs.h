/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `predict` gives a model: which of its inputs, and the examples of each. */
#ifndef SCRIMP_FRONTEND_DRIVER_PREDICT_INPUTS_H
#define SCRIMP_FRONTEND_DRIVER_PREDICT_INPUTS_H

#include "frontend/driver/cli_session.h"
#include "frontend/driver/predict_input.h"

/* Those of a graph, before or after its passes; all --input are among them, and none is left. only:
 * a file that is called otherwise is the only input's.  A file that holds no arrays is for all
 * inputs that the train section has of tables.  False without a message otherwise. */
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
