/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a run was trained with.  train keeps it in the run's trainer.json; --resume compares. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_RESUME_H
#define SCRIMP_FRONTEND_DRIVER_CLI_RESUME_H

#include "frontend/driver/cli_session.h"

/* An object of strings: the options, the fields of the train section that are set, the number of
 * examples, and a hash of the model before any pass.  The caller releases it. */
json_t *resume_settings(Cli *cli, const Ast *ast, const Program *program, const Dataset *data);

/* Whether a run that was trained with `then` (NULL: not known) may go on with `now`.  What changes
 * the model or the order of the data is refused (E518), with the values of both and the options
 * that lead back; a change that may be meant (learning rate, length, budget, place of the data) is
 * a note.
 */
bool resume_check(Cli *cli, const Ast *ast, json_t *now, json_t *then);

/* Puts the examples that the data set leaves out into the settings, for resume_left_out. */
void resume_put_left_out(json_t *settings, const Dataset *data);
/* Those of the run in cli->output.out that --resume continues, on the pool; *n = 0 without one. */
const char *const *resume_left_out(Cli *cli, int64_t *n);

#endif
