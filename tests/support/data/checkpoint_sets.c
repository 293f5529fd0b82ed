/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/data/checkpoint_sets.h"

#include <string.h>

void set_fill(Set *s, int64_t step)
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

void set_init(Set *s)
{
    memset(s, 0, sizeof *s);
    s->tensor[0] = (CheckpointTensor){"fc.weight", RT_F32, 2, {50, 100}, s->w, CHECKPOINT_MODEL};
    s->tensor[1] = (CheckpointTensor){"fc.bias", RT_F32, 1, {3}, s->b, CHECKPOINT_MODEL};
    s->tensor[2] =
        (CheckpointTensor){"fc.weight", RT_F32, 2, {50, 100}, s->m, CHECKPOINT_OPTIMIZER};
    s->tensor[3] = (CheckpointTensor){"count", RT_I32, 0, {0}, s->count, CHECKPOINT_OPTIMIZER};
}

int64_t set_loaded_step(const char *dir, RtError *err)
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
