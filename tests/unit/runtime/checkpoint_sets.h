/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoint contents of the tests: every number is a function of the step, so that a mixture of
 * two steps shows. */
#ifndef SCRIMP_TESTS_CHECKPOINT_SETS_H
#define SCRIMP_TESTS_CHECKPOINT_SETS_H

#include "runtime/checkpoint.h"

#include <string.h>

enum { SET_TENSORS = 4, SET_ELEMENTS = 5000 };

typedef struct Set {
    float w[SET_ELEMENTS], m[SET_ELEMENTS], b[3];
    int32_t count[1];
    CheckpointTensor tensor[SET_TENSORS];
    TrainerState state;
} Set;

static inline void set_fill(Set *s, int64_t step)
{
    for (int i = 0; i < SET_ELEMENTS; i++) {
        s->w[i] = (float)(step * 100 + i % 97);
        s->m[i] = (float)(step * 3 - i % 89);
    }
    for (int i = 0; i < 3; i++)
        s->b[i] = (float)(step + i);
    s->count[0] = (int32_t)step;
    s->state = (TrainerState){.step = step,
                              .data_position = 2 * step,
                              .epoch = (double)step / 8,
                              .seed = 0xFFFFFFFFFFFFFFF0u + (uint64_t)step,
                              .model_hash = 0x123456789ABCDEF0u};
}

static inline void set_init(Set *s)
{
    memset(s, 0, sizeof *s);
    s->tensor[0] = (CheckpointTensor){"fc.weight", RT_F32, 2, {50, 100}, s->w, CHECKPOINT_MODEL};
    s->tensor[1] = (CheckpointTensor){"fc.bias", RT_F32, 1, {3}, s->b, CHECKPOINT_MODEL};
    s->tensor[2] =
        (CheckpointTensor){"fc.weight", RT_F32, 2, {50, 100}, s->m, CHECKPOINT_OPTIMIZER};
    s->tensor[3] = (CheckpointTensor){"count", RT_I32, 0, {0}, s->count, CHECKPOINT_OPTIMIZER};
}

/* Loads dir; the step if everything belongs to it, -1 if it does not load, -2 if it is a mixture.
 */
static inline int64_t set_loaded_step(const char *dir, RtError *err)
{
    static Set got, want;
    set_init(&got);
    set_init(&want);
    if (!checkpoint_load(dir, &got.state, got.tensor, SET_TENSORS, err))
        return -1;
    set_fill(&want, got.state.step);
    bool same =
        memcmp(got.w, want.w, sizeof got.w) == 0 && memcmp(got.m, want.m, sizeof got.m) == 0 &&
        memcmp(got.b, want.b, sizeof got.b) == 0 && got.count[0] == want.count[0] &&
        got.state.seed == want.state.seed && got.state.data_position == want.state.data_position &&
        got.state.model_hash == want.state.model_hash;
    return same ? got.state.step : -2;
}

#endif
