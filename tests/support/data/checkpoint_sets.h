/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoint contents of the tests: every number is a function of the step, so that a mixture of
 * two steps shows. */
#ifndef SCRIMP_TESTS_CHECKPOINT_SETS_H
#define SCRIMP_TESTS_CHECKPOINT_SETS_H

#include "runtime/checkpoint.h"

enum { SET_TENSORS = 4, SET_ELEMENTS = 5000 };

typedef struct Set {
    float w[SET_ELEMENTS], m[SET_ELEMENTS], b[3];
    int32_t count[1];
    CheckpointTensor tensor[SET_TENSORS];
    TrainerState state;
} Set;

/* The contents of a step. */
void set_fill(Set *s, int64_t step);
/* Four tensors of zeros. */
void set_init(Set *s);
/* Loads dir; the step if everything belongs to it, -1 if it does not load, -2 if it is a mixture.
 */
int64_t set_loaded_step(const char *dir, RtError *err);

#endif
