/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory of a schedule under construction: what begins or ends in a slot is recounted, run by run,
 * when asked for; what lives through it is in the tree. */
#include "passes/remat/model/schedule.h"
#include "passes/remat/search/incremental_schedule_internal.h"

/* The end of the life of operand i of a run at `at`, and the slot where it began. */
static Key operand_life(const IncrementalSchedule *s, const RematNode *x, int i, Key at, int *begin)
{
    int tensor = x->in[i], producer = s->p->tensor[tensor].producer;
    if (producer < 0) {
        *begin = -1;
        return s->batch_end[tensor];
    }
    int run = run_before_key(s, producer, at);
    *begin = s->runs[producer].slot[run];
    return s->runs[producer].end[run * s->p->node[producer].n_out + s->out_index[tensor]];
}

/* Bytes that are there when the slot begins and gone when it ends. */
static int64_t ending_bytes(const IncrementalSchedule *s, int node, int slot)
{
    const RematNode *x = &s->p->node[node];
    Key at = key_of(s, node, slot);
    int64_t bytes = 0;
    for (int i = 0; i < x->n_in; i++) {
        int begin;
        if (counts(s, x->in[i]) && operand_life(s, x, i, at, &begin) == at && begin < slot)
            bytes += s->p->tensor[x->in[i]].bytes;
    }
    return bytes;
}

static void find_dying(IncrementalSchedule *s, const RematNode *x, Key at)
{
    for (int i = 0; i < x->n_in; i++) {
        int begin;
        s->dies[i] = counts(s, x->in[i]) && operand_life(s, x, i, at, &begin) == at;
    }
    remat_merge_in_place(s->p, x, s->dies, s->in_merged, s->out_merged);
}

/* One run: *alive goes on to the next, the result is the most while it runs. */
static int64_t replay_run(IncrementalSchedule *s, int node, int slot, int64_t *alive)
{
    const RematNode *x = &s->p->node[node];
    Key at = key_of(s, node, slot);
    int run = run_before_key(s, node, at + 1); /* the one at `at` */
    find_dying(s, x, at);
    for (int k = 0; k < x->n_out; k++)
        *alive += s->out_merged[k] ? 0 : s->p->tensor[x->out[k]].bytes;
    int64_t most = *alive + x->workspace;
    for (int i = 0; i < x->n_in; i++)
        if (s->dies[i] && !s->in_merged[i])
            *alive -= s->p->tensor[x->in[i]].bytes;
    for (int k = 0; k < x->n_out; k++)
        if (counts(s, x->out[k]) && s->runs[node].end[run * x->n_out + k] == at)
            *alive -= s->p->tensor[x->out[k]].bytes;
    return most;
}

static int64_t recount(IncrementalSchedule *s, int slot)
{
    const SlotRuns *x = &s->slot[slot];
    int64_t alive = ending_bytes(s, slot, slot) + (slot == 0 ? s->unread_batch : 0);
    int64_t most = INT64_MIN;
    for (int i = 0; i < x->n; i++)
        alive += ending_bytes(s, x->node[i], slot);
    for (int i = 0; i <= x->n; i++) {
        int64_t here = replay_run(s, i < x->n ? x->node[i] : slot, slot, &alive);
        most = here > most ? here : most;
    }
    s->work += x->n + 1;
    return most;
}

static void refresh(IncrementalSchedule *s)
{
    for (size_t i = 0; i < s->dirty_list.len; i++) {
        int slot = s->dirty_list.data[i];
        int64_t inside = recount(s, slot);
        range_max_add(&s->through, slot, slot, inside - s->inside[slot]);
        s->inside[slot] = inside;
        s->dirty[slot] = false;
    }
    s->dirty_list.len = 0;
}

int64_t incremental_peak(IncrementalSchedule *s, int *slot)
{
    refresh(s);
    s->work++;
    if (slot)
        *slot = range_max_argmost(&s->through);
    return range_max_most(&s->through, 0, s->n - 1) + s->constant;
}

int64_t incremental_peak_within(IncrementalSchedule *s, int first, int last)
{
    refresh(s);
    s->work++;
    return first > last ? INT64_MIN : range_max_most(&s->through, first, last) + s->constant;
}

void incremental_above(IncrementalSchedule *s, int64_t limit, int *next)
{
    refresh(s);
    s->work += s->n / 8;
    range_max_above(&s->through, limit - s->constant, next, s->n);
}
