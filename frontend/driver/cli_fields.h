/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fields of a batch: what the model declares is compared with what the data hold. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_FIELDS_H
#define SCRIMP_FRONTEND_DRIVER_CLI_FIELDS_H

#include "frontend/driver/cli_session.h"

/* Whether a node is an input that the batch fills, and the name of its field. */
bool field_is_input(const Node *n);
const char *field_name(const Node *input);
/* How many micro-batches such an input holds: all of an update in a step. */
int64_t field_micro_batches(const Graph *g);
/* How many dimensions of such an input come before those of one example. */
int field_batch_dims(const Graph *g);
/* The input a value comes from through views and slices. */
ValueId field_root(const Graph *g, ValueId v);
/* How many classes or rows the model has for an integer input; 0 when it is not an index. */
int64_t field_limit(const Graph *g, ValueId input);
/* Whether examples are of an input's type, whose first dimension counts them; if not, what to call
 * on the array in NumPy, or NULL. */
bool field_fits(Pool *pool, const Type *input, const DataField *examples, const char **numpy);
/* That the data have the input's field with its type, its dimensions and a range of indices that
 * fits; false after a message. */
bool field_check(Cli *cli, const Graph *g, const Node *input, const Dataset *ds);

#endif
