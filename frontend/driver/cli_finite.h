/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finding NaN and infinity: which number is the first, and which input or weight it came from.
 * Called by train, eval and generate. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_FINITE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_FINITE_H

#include "frontend/driver/cli_session.h"

/* What `train` does with a step that leaves something that is not finite (--on-nan). */
typedef enum NanPolicy { NAN_STOP, NAN_WARN, NAN_SKIP } NanPolicy;

/* False after a message. */
bool finite_policy(Cli *cli, NanPolicy *out);

/* What a step has computed: "the loss is nan" or "the gradient norm is inf"; NULL when finite. */
const char *finite_outputs(const Session *s);
/* The first tensor with a number that is not finite, as "the weight fc1.weight has nan",
 * or NULL: weights in the model's order, then running statistics, then the optimizer's state (not
 * with weights_only, which are what inference reads). */
const char *finite_tensors(const Session *s, bool weights_only);
/* The first number of a batch that is not finite, with its field and example, or NULL: of training
 * step or evaluation batch `number`.  Fills the inputs anew, so that what the last run
 * of the step has left is lost, but for persistent tensors. */
const char *finite_batch(const Session *s, const Dataset *data, bool training, int64_t number,
                         bool overfit);

#endif
