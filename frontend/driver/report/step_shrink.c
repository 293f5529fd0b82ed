/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/report/step_shrink.h"

/* Operations above the target, in the order of the step. */
typedef struct Excess {
    int64_t *over;    /* bytes that are still to go, by moment */
    const int *index; /* by slot: how many moments are before it */
    int n;
} Excess;

static Excess find_excess(Pool *pool, const StepFacts *f, int64_t target)
{
    int *index = POOL_ARRAY(pool, (size_t)f->n_operations + 1, int);
    Excess e = {POOL_ARRAY(pool, (size_t)f->n_operations + 1, int64_t), index, 0};
    for (int t = 0; t < f->n_operations; t++) {
        index[t] = e.n;
        if (f->load[t] > target)
            e.over[e.n++] = f->load[t] - target;
    }
    index[f->n_operations] = e.n;
    return e;
}

static int64_t taken_by(const Excess *e, const BufferFact *b, int moment)
{
    return e->over[moment] < b->bytes ? e->over[moment] : b->bytes;
}

static int64_t gain_of(const Excess *e, const BufferFact *b)
{
    int64_t all = 0;
    for (int k = e->index[b->first]; k < e->index[b->end]; k++)
        all += taken_by(e, b, k);
    return all;
}

/* What takes most off; -1: nothing takes anything. */
static int best_buffer(const Excess *e, const StepFacts *f, const bool *chosen)
{
    int best = -1;
    int64_t most = 0;
    for (int b = f->n_persistent; b < f->n_buffers; b++) {
        int64_t gain = chosen[b] ? 0 : gain_of(e, &f->buffer[b]);
        if (gain > most) {
            most = gain;
            best = b;
        }
    }
    return best;
}

static bool is_gone(const Excess *e)
{
    for (int k = 0; k < e->n; k++)
        if (e->over[k] > 0)
            return false;
    return true;
}

Shrink step_shrink(Pool *pool, const StepFacts *f, int percent)
{
    Shrink s = {.percent = percent, .target_bytes = f->peak_bytes * (100 - percent) / 100};
    bool *chosen = POOL_ARRAY(pool, (size_t)f->n_buffers + 1, bool);
    const Excess e = find_excess(pool, f, s.target_bytes);
    s.moments = e.n;
    while (s.n < SHRINK_MOST && !is_gone(&e)) {
        int best = best_buffer(&e, f, chosen);
        if (best < 0)
            break;
        const BufferFact *b = &f->buffer[best];
        for (int k = e.index[b->first]; k < e.index[b->end]; k++)
            e.over[k] -= taken_by(&e, b, k);
        chosen[best] = true;
        s.tensor[s.n++] = (ShrinkTensor){best, e.index[b->end] - e.index[b->first]};
    }
    s.enough = is_gone(&e);
    return s;
}
