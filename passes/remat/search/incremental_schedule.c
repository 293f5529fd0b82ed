/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/readers.h"
#include "passes/remat/search/incremental_schedule_internal.h"

#include "ir/support/bug.h"

#include <string.h>

/* ---- lifetimes ---- */

static void mark_dirty(IncrementalSchedule *s, int slot)
{
    if (slot < 0 || slot >= s->n || s->dirty[slot])
        return;
    s->dirty[slot] = true;
    vec_push(s->pool, &s->dirty_list, slot);
}

/* The last read of a tensor in (from, to); from when there is none. */
static Key last_read(const IncrementalSchedule *s, int tensor, Key from, Key to)
{
    Key last = from;
    for (int k = s->readers.begin[tensor]; k < s->readers.begin[tensor + 1]; k++) {
        int reader = s->readers.item[k], run = run_before_key(s, reader, to);
        Key at = run < 0 ? from : key_of(s, reader, s->runs[reader].slot[run]);
        last = at > last ? at : last;
    }
    return last;
}

/* Moves the end of a life that begins in slot `begin` (-1: before the first slot). */
static void set_end(IncrementalSchedule *s, int tensor, int begin, Key *end, Key to)
{
    int64_t bytes = s->p->tensor[tensor].bytes;
    int old = slot_of(s, *end), new = slot_of(s, to);
    if (*end == to)
        return;
    s->work++;
    if (new > old)
        range_max_add(&s->through, old > begin + 1 ? old : begin + 1, new - 1, bytes);
    else if (new < old)
        range_max_add(&s->through, new > begin + 1 ? new : begin + 1, old - 1, -bytes);
    mark_dirty(s, begin);
    mark_dirty(s, old);
    mark_dirty(s, new);
    *end = to;
}

/* Recounts the life of output k of one run. */
static void update_life(IncrementalSchedule *s, int node, int run, int k)
{
    const RematNode *x = &s->p->node[node];
    Runs *r = &s->runs[node];
    int tensor = x->out[k];
    if (!counts(s, tensor))
        return;
    bool last = run + 1 == r->n;
    Key from = key_of(s, node, r->slot[run]);
    Key to = last ? end_key(s) : key_of(s, node, r->slot[run + 1]);
    Key end = last && s->p->tensor[tensor].keep ? to : last_read(s, tensor, from, to);
    set_end(s, tensor, r->slot[run], &r->end[run * x->n_out + k], end);
}

static void update_operands(IncrementalSchedule *s, int node, Key at)
{
    const RematNode *x = &s->p->node[node];
    for (int i = 0; i < x->n_in; i++) {
        int tensor = x->in[i], producer = s->p->tensor[tensor].producer;
        if (!counts(s, tensor))
            continue;
        if (producer < 0)
            set_end(s, tensor, -1, &s->batch_end[tensor], last_read(s, tensor, -1, end_key(s)));
        else
            update_life(s, producer, run_before_key(s, producer, at), s->out_index[tensor]);
    }
}

/* ---- runs ---- */

static void runs_reserve(IncrementalSchedule *s, Runs *r, int n_out)
{
    if (r->n < r->room)
        return;
    int room = r->room ? 2 * r->room : 2;
    r->slot = pool_grow(s->pool, r->slot, (size_t)r->room * sizeof *r->slot,
                        (size_t)room * sizeof *r->slot);
    r->end = pool_grow(s->pool, r->end, (size_t)(r->room * n_out) * sizeof *r->end,
                       (size_t)(room * n_out + 1) * sizeof *r->end);
    r->room = room;
}

static int find_run(const IncrementalSchedule *s, int node, int slot)
{
    int run = run_before_key(s, node, key_of(s, node, slot) + 1);
    return run >= 0 && s->runs[node].slot[run] == slot ? run : -1;
}

static void open_run(IncrementalSchedule *s, int node, int run, int slot)
{
    int n_out = s->p->node[node].n_out;
    Runs *r = &s->runs[node];
    runs_reserve(s, r, n_out);
    size_t behind = (size_t)(r->n - run);
    memmove(r->slot + run + 1, r->slot + run, behind * sizeof *r->slot);
    memmove(r->end + (run + 1) * n_out, r->end + run * n_out,
            behind * (size_t)n_out * sizeof *r->end);
    r->slot[run] = slot;
    for (int k = 0; k < n_out; k++)
        r->end[run * n_out + k] = key_of(s, node, slot);
    r->n++;
}

static void close_run(IncrementalSchedule *s, int node, int run)
{
    int n_out = s->p->node[node].n_out;
    Runs *r = &s->runs[node];
    size_t behind = (size_t)(r->n - run - 1);
    memmove(r->slot + run, r->slot + run + 1, behind * sizeof *r->slot);
    memmove(r->end + run * n_out, r->end + (run + 1) * n_out,
            behind * (size_t)n_out * sizeof *r->end);
    r->n--;
}

static void slot_insert(IncrementalSchedule *s, int slot, int node)
{
    SlotRuns *x = &s->slot[slot];
    if (x->n == x->room) {
        int room = x->room ? 2 * x->room : 4;
        x->node = pool_grow(s->pool, x->node, (size_t)x->room * sizeof *x->node,
                            (size_t)room * sizeof *x->node);
        x->room = room;
    }
    int i = x->n++;
    for (; i > 0 && x->node[i - 1] > node; i--)
        x->node[i] = x->node[i - 1];
    x->node[i] = node;
}

static void slot_delete(IncrementalSchedule *s, int slot, int node)
{
    SlotRuns *x = &s->slot[slot];
    int i = 0;
    while (x->node[i] != node)
        i++;
    x->n--;
    memmove(x->node + i, x->node + i + 1, (size_t)(x->n - i) * sizeof *x->node);
}

static void add_run(IncrementalSchedule *s, int node, int slot)
{
    const RematNode *x = &s->p->node[node];
    int run = run_before_key(s, node, key_of(s, node, slot)) + 1;
    open_run(s, node, run, slot);
    slot_insert(s, slot, node);
    mark_dirty(s, slot);
    for (int k = 0; k < x->n_out; k++) {
        update_life(s, node, run - 1, k);
        update_life(s, node, run, k);
    }
    update_operands(s, node, key_of(s, node, slot));
    s->time += x->cost;
    s->recomputed++;
}

static void remove_run(IncrementalSchedule *s, int node, int slot)
{
    const RematNode *x = &s->p->node[node];
    int run = find_run(s, node, slot);
    Runs *r = &s->runs[node];
    Key at = key_of(s, node, slot);
    for (int k = 0; k < x->n_out; k++)
        if (counts(s, x->out[k]))
            set_end(s, x->out[k], slot, &r->end[run * x->n_out + k], at);
    close_run(s, node, run);
    slot_delete(s, slot, node);
    mark_dirty(s, slot);
    for (int k = 0; k < x->n_out; k++)
        update_life(s, node, run - 1, k);
    update_operands(s, node, at);
    s->time -= x->cost;
    s->recomputed--;
}

void incremental_add(IncrementalSchedule *s, int node, int slot)
{
    add_run(s, node, slot);
    vec_push(s->pool, &s->log, ((Change){node, slot, true}));
}

void incremental_remove(IncrementalSchedule *s, int node, int slot)
{
    remove_run(s, node, slot);
    vec_push(s->pool, &s->log, ((Change){node, slot, false}));
}

int incremental_mark(const IncrementalSchedule *s)
{
    return (int)s->log.len;
}

void incremental_rollback(IncrementalSchedule *s, int mark)
{
    while ((int)s->log.len > mark) {
        Change c = s->log.data[--s->log.len];
        if (c.added)
            remove_run(s, c.node, c.slot);
        else
            add_run(s, c.node, c.slot);
    }
}

void incremental_commit(IncrementalSchedule *s)
{
    s->log.len = 0;
}

void incremental_clear(IncrementalSchedule *s)
{
    for (int slot = 0; slot < s->n; slot++)
        while (s->slot[slot].n > 0)
            remove_run(s, s->slot[slot].node[s->slot[slot].n - 1], slot);
    incremental_commit(s);
}

/* ---- making one ---- */

static void find_limits(IncrementalSchedule *s)
{
    const RematProblem *p = s->p;
    int *overwriter = POOL_ARRAY(s->pool, (size_t)p->n_tensors + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        overwriter[t] = p->n_nodes;
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_overwrites; k++)
            overwriter[p->node[n].overwrites[k]] = n;
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *x = &p->node[n];
        bool once = !x->rerun || x->hint == REMAT_KEEP || x->n_overwrites > 0;
        s->last_slot[n] = once ? n : p->n_nodes - 1;
        for (int i = 0; i < x->n_in; i++)
            if (overwriter[x->in[i]] < s->last_slot[n])
                s->last_slot[n] = overwriter[x->in[i]];
        for (int k = 0; k < x->n_out; k++)
            s->out_index[x->out[k]] = k;
    }
}

static void begin_lives(IncrementalSchedule *s)
{
    const RematProblem *p = s->p;
    for (int n = 0; n < s->n; n++)
        open_run(s, n, 0, n);
    for (int t = 0; t < p->n_tensors; t++) {
        s->batch_end[t] = key_of(s, 0, 0);
        if (p->tensor[t].producer >= 0)
            continue;
        if (p->tensor[t].persistent)
            s->constant += p->tensor[t].bytes;
        else if (counts(s, t) && !p->tensor[t].keep && csr_length(&s->readers, t) == 0)
            s->unread_batch += p->tensor[t].bytes;
        else if (counts(s, t))
            set_end(s, t, -1, &s->batch_end[t],
                    p->tensor[t].keep ? end_key(s) : last_read(s, t, -1, end_key(s)));
    }
    for (int n = 0; n < s->n; n++) {
        mark_dirty(s, n);
        s->time += p->node[n].cost;
        for (int k = 0; k < p->node[n].n_out; k++)
            update_life(s, n, 0, k);
    }
}

IncrementalSchedule *incremental_new(Pool *pool, const RematProblem *p)
{
    IncrementalSchedule *s = POOL_NEW(pool, IncrementalSchedule);
    size_t n = (size_t)p->n_nodes + 1, t = (size_t)p->n_tensors + 1, operands = 1;
    *s = (IncrementalSchedule){.pool = pool, .p = p, .n = p->n_nodes};
    s->runs = POOL_ARRAY(pool, n, Runs);
    s->slot = POOL_ARRAY(pool, n, SlotRuns);
    s->last_slot = POOL_ARRAY(pool, n, int);
    s->inside = POOL_ARRAY(pool, n, int64_t);
    s->dirty = POOL_ARRAY(pool, n, bool);
    s->out_index = POOL_ARRAY(pool, t, int);
    s->batch_end = POOL_ARRAY(pool, t, Key);
    for (int k = 0; k < p->n_nodes; k++)
        operands += (size_t)p->node[k].n_in + (size_t)p->node[k].n_out;
    s->in_merged = POOL_ARRAY(pool, operands, bool);
    s->out_merged = POOL_ARRAY(pool, operands, bool);
    s->dies = POOL_ARRAY(pool, operands, bool);
    s->readers = remat_readers(s->pool, s->p);
    find_limits(s);
    s->through = range_max_new(pool, s->n);
    begin_lives(s);
    return s;
}

/* ---- facts ---- */

bool incremental_allowed(const IncrementalSchedule *s, int node, int slot)
{
    return slot > node && slot <= s->last_slot[node];
}

bool incremental_has(const IncrementalSchedule *s, int node, int slot)
{
    return find_run(s, node, slot) >= 0;
}

int incremental_count(const IncrementalSchedule *s)
{
    return s->n;
}

int incremental_output(const IncrementalSchedule *s, int tensor)
{
    return s->out_index[tensor];
}

double incremental_time(const IncrementalSchedule *s)
{
    return s->time;
}

int incremental_recomputed(const IncrementalSchedule *s)
{
    return s->recomputed;
}

int64_t incremental_work(const IncrementalSchedule *s)
{
    return s->work;
}

int incremental_runs(const IncrementalSchedule *s, int node)
{
    return s->runs[node].n;
}

int incremental_run_slot(const IncrementalSchedule *s, int node, int run)
{
    return s->runs[node].slot[run];
}

int incremental_life_end(const IncrementalSchedule *s, int node, int run, int k)
{
    return slot_of(s, s->runs[node].end[run * s->p->node[node].n_out + k]);
}

int incremental_run_before(const IncrementalSchedule *s, int node, int slot)
{
    return run_before_key(s, node, key_of(s, s->n, slot));
}

int incremental_next_read(const IncrementalSchedule *s, int node, int run, int k, int after)
{
    int tensor = s->p->node[node].out[k], best = -1;
    const Runs *r = &s->runs[node];
    Key to = run + 1 < r->n ? key_of(s, node, r->slot[run + 1]) : end_key(s);
    for (int i = s->readers.begin[tensor]; i < s->readers.begin[tensor + 1]; i++) {
        int reader = s->readers.item[i];
        int next = run_before_key(s, reader, key_of(s, 0, after + 1)) + 1;
        const Runs *x = &s->runs[reader];
        if (next < x->n && key_of(s, reader, x->slot[next]) < to &&
            (best < 0 || x->slot[next] < best))
            best = x->slot[next];
    }
    return best;
}

const int *incremental_in_slot(const IncrementalSchedule *s, int slot, int *n)
{
    *n = s->slot[slot].n;
    return s->slot[slot].node;
}

RematSchedule incremental_schedule(Pool *pool, const IncrementalSchedule *s)
{
    RematSchedule out = {0, POOL_ARRAY(pool, (size_t)(s->n + s->recomputed) + 1, int)};
    for (int u = 0; u < s->n; u++) {
        for (int i = 0; i < s->slot[u].n; i++)
            out.node[out.len++] = s->slot[u].node[i];
        out.node[out.len++] = u;
    }
    return out;
}
