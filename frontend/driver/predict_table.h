/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables for `predict`: which inputs a file with columns gives, prepared as the run has learned. */
#ifndef SCRIMP_FRONTEND_DRIVER_PREDICT_TABLE_H
#define SCRIMP_FRONTEND_DRIVER_PREDICT_TABLE_H

#include "frontend/driver/cli.h"
#include "frontend/driver/predict_input.h"

/* Whether an input is a field that the train section has of a table. */
bool predict_table_has(const Graph *g, const PredictInput *in);
/* Opens these inputs, each of which is such a field, from the table `path`; false after a message.
 */
bool predict_table_open(Cli *cli, const Graph *g, PredictInputs *inputs, uint32_t which,
                        const char *path);
/* The values of a field's category that the run was trained on, in their order: an array of
 * strings, json_decref'd by the caller; NULL for what is none. */
json_t *predict_table_values(Cli *cli, const Graph *g, const char *field);

#endif
