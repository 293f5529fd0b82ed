/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Exact order of a short window: dynamic programming over its downsets.
 *
 * What is alive after a set of the window's nodes has run does not depend on their order, so the
 * best order that ends in a set is the best over its last node.  The windows lie around the peak.
 */
#include "passes/remat/order/reorder.h"

#include <string.h>

enum {
    WINDOW = 20,
    MAX_STATES = 30000,       /* of one window; a window with more is halved */
    MAX_TOTAL_STATES = 300000 /* of one call: the effort */
};

/* A tensor that the window touches. */
typedef struct Local {
    int tensor;
    int64_t bytes;
    uint32_t readers; /* nodes of the window */
    bool stays;       /* read after the window, or kept */
} Local;

/* An input of a node of the window that dies with it if it is the last reader: if `others`, the
 * other readers in the window, have run.  Then `bytes` are free, or, where an output may be written
 * over the input, the bytes of that output are never needed beside it. */
typedef struct Freed {
    uint32_t others;
    int64_t bytes;
    int out; /* which output; -1: none */
} Freed;

/* What a state needs to know of a node of the window. */
typedef struct Run {
    uint32_t pred, succ;        /* by position */
    int64_t transient, lasting; /* workspace and outputs; outputs that someone reads or keeps */
    Freed *input, *output;      /* those that may die; may take an input's place, by output */
    int n_inputs, n_outputs;
} Run;

typedef struct Window {
    const RematProblem *p;
    int begin, n;
    const int *node; /* in the present order */
    Run *run;        /* by position in the window */
    Local *local;
    int n_local;
    int *local_of; /* by tensor; -1 */
} Window;

typedef struct State {
    uint32_t done;
    int parent, last; /* state, position */
    uint32_t ready;   /* not done, and all before them is */
    int64_t alive;    /* against the beginning of the window */
    int64_t peak;     /* largest so far */
} State;

typedef struct Table {
    Pool *pool;
    State *state;
    int n, room;
    int *slot; /* hash table of state indices + 1, */
    int shift; /* of 2^(32 - shift) slots */
} Table;

static int position_in(const int *position, int begin, int n, int node)
{
    int k = position[node] - begin;
    return k >= 0 && k < n ? k : -1;
}

static Local *touch(Window *w, int tensor)
{
    if (w->local_of[tensor] < 0) {
        w->local_of[tensor] = w->n_local;
        w->local[w->n_local++] =
            (Local){.tensor = tensor,
                    .bytes = w->p->tensor[tensor].bytes,
                    .stays = w->p->tensor[tensor].keep || w->p->tensor[tensor].persistent};
    }
    return &w->local[w->local_of[tensor]];
}

static void touch_tensors(Window *w, int k)
{
    const RematNode *node = &w->p->node[w->node[k]];
    for (int i = 0; i < node->n_in; i++)
        touch(w, node->in[i])->readers |= (uint32_t)1 << k;
    for (int i = 0; i < node->n_out; i++)
        touch(w, node->out[i]);
}

static void find_staying(Window *w, const NodeGraph *g, const int *position)
{
    for (int i = 0; i < w->n_local; i++) {
        Local *x = &w->local[i];
        for (int r = g->readers.begin[x->tensor]; r < g->readers.begin[x->tensor + 1]; r++)
            x->stays |= position[g->readers.item[r]] >= w->begin + w->n;
    }
}

/* Adds what the death of an input of position k frees; nothing when the input stays. */
static void add_freed(const Window *w, Freed *list, int *n, int input, int k, int64_t bytes,
                      int out)
{
    const Local *x = &w->local[w->local_of[input]];
    if (!x->stays)
        list[(*n)++] = (Freed){x->readers & ~((uint32_t)1 << k), bytes, out};
}

static Run run_new(Pool *pool, const Window *w, const NodeGraph *g, const int *position, int k)
{
    const RematNode *node = &w->p->node[w->node[k]];
    Run r = {.transient = node->workspace};
    for (int i = g->pred.begin[w->node[k]]; i < g->pred.begin[w->node[k] + 1]; i++) {
        int at = position_in(position, w->begin, w->n, g->pred.item[i]);
        if (at >= 0)
            r.pred |= (uint32_t)1 << at;
    }
    r.input = POOL_ARRAY(pool, (size_t)node->n_in + 1, Freed);
    r.output = POOL_ARRAY(pool, (size_t)node->n_in_place + 1, Freed);
    for (int i = 0; i < node->n_in; i++)
        add_freed(w, r.input, &r.n_inputs, node->in[i], k, w->p->tensor[node->in[i]].bytes, -1);
    for (int out = 0; out < node->n_out; out++) {
        const Local *x = &w->local[w->local_of[node->out[out]]];
        r.transient += x->bytes;
        r.lasting += x->stays || x->readers ? x->bytes : 0;
        for (int i = 0; i < node->n_in_place; i++)
            if (node->in_place[i].out == out)
                add_freed(w, r.output, &r.n_outputs, node->in[node->in_place[i].in], k, x->bytes,
                          out);
    }
    return r;
}

/* Nodes stand behind those that they wait for.  local_of: by tensor, -1; window_free makes it so
 * again. */
static Window *window_new(Pool *pool, const RematProblem *p, const NodeGraph *g,
                          const RematSchedule *s, const int *position, int begin, int n,
                          int *local_of)
{
    Window *w = POOL_NEW(pool, Window);
    *w = (Window){.p = p, .begin = begin, .n = n, .node = s->node + begin, .local_of = local_of};
    size_t touched = 0;
    for (int k = 0; k < n; k++)
        touched += (size_t)p->node[w->node[k]].n_in + (size_t)p->node[w->node[k]].n_out;
    w->local = POOL_ARRAY(pool, touched + 1, Local);
    w->run = POOL_ARRAY(pool, (size_t)n, Run);
    for (int k = 0; k < n; k++)
        touch_tensors(w, k);
    find_staying(w, g, position);
    for (int k = 0; k < n; k++) {
        w->run[k] = run_new(pool, w, g, position, k);
        for (uint32_t left = w->run[k].pred; left; left &= left - 1)
            w->run[__builtin_ctz(left)].succ |= (uint32_t)1 << k;
    }
    return w;
}

static void window_free(const Window *w)
{
    for (int i = 0; i < w->n_local; i++)
        w->local_of[w->local[i].tensor] = -1;
}

static State first_state(const Window *w)
{
    State s = {.parent = -1, .peak = INT64_MIN};
    for (int k = 0; k < w->n; k++)
        s.ready |= w->run[k].pred == 0 ? (uint32_t)1 << k : 0;
    return s;
}

/* What running position k after `from` makes of it. */
static void step(const Window *w, const State *from, int from_index, int k, State *out)
{
    const Run *r = &w->run[k];
    int64_t transient = from->alive + r->transient, alive = from->alive + r->lasting;
    int merged = -1; /* an output takes but one place */
    for (int i = 0; i < r->n_outputs; i++)
        if (r->output[i].out != merged && (r->output[i].others & ~from->done) == 0) {
            transient -= r->output[i].bytes;
            merged = r->output[i].out;
        }
    for (int i = 0; i < r->n_inputs; i++)
        alive -= (r->input[i].others & ~from->done) == 0 ? r->input[i].bytes : 0;
    out->done = from->done | (uint32_t)1 << k;
    out->ready = from->ready & ~((uint32_t)1 << k);
    for (uint32_t left = r->succ; left; left &= left - 1)
        out->ready |= (w->run[__builtin_ctz(left)].pred & ~out->done) == 0 ? left & -left : 0;
    out->parent = from_index;
    out->last = k;
    out->alive = alive;
    out->peak = transient > from->peak ? transient : from->peak;
}

/* Where a set stands, or would.  The multipliers are odd, to mix the few bits in which sets
 * differ (as in MurmurHash3's last steps). */
static uint32_t find_slot(const Table *t, uint32_t done)
{
    uint32_t h = (done ^ done >> 15) * 0x9e3779b1u;
    h = (h ^ h >> 13) * 0x85ebca6bu >> t->shift;
    while (t->slot[h] && t->state[t->slot[h] - 1].done != done)
        h = (h + 1) & (((uint32_t)1 << (32 - t->shift)) - 1);
    return h;
}

static void table_grow(Table *t)
{
    int room = t->room > 0 ? 4 * t->room : 64;
    room = room < MAX_STATES ? room : MAX_STATES;
    t->state = pool_grow(t->pool, t->state, (size_t)t->room * sizeof *t->state,
                         (size_t)room * sizeof *t->state);
    t->room = room;
    for (t->shift = 32; (int64_t)1 << (32 - t->shift) < 2 * (int64_t)room; t->shift--)
        ;
    t->slot = POOL_ARRAY(t->pool, (size_t)1 << (32 - t->shift), int);
    for (int k = 0; k < t->n; k++)
        t->slot[find_slot(t, t->state[k].done)] = k + 1;
}

/* Keeps the better of two ways to the same set; false when the table is full. */
static bool offer(Table *t, const State *s)
{
    if (t->n == t->room && t->room < MAX_STATES)
        table_grow(t);
    uint32_t h = find_slot(t, s->done);
    if (!t->slot[h]) {
        if (t->n == MAX_STATES)
            return false;
        t->state[t->n++] = *s;
        t->slot[h] = t->n;
    } else if (s->peak < t->state[t->slot[h] - 1].peak) {
        t->state[t->slot[h] - 1] = *s;
    }
    return true;
}

/* States are made set by set in order of size, so that each is final before it is extended. */
static bool expand_states(const Window *w, Table *t)
{
    int begin = 0;
    State next;
    for (int size = 0; size < w->n; size++) {
        int end = t->n;
        for (int i = begin; i < end; i++)
            for (uint32_t left = t->state[i].ready; left; left &= left - 1) {
                step(w, &t->state[i], i, __builtin_ctz(left), &next);
                if (!offer(t, &next))
                    return false;
            }
        begin = end;
    }
    return true;
}

static int64_t peak_of_present_order(const Window *w)
{
    State s = {.peak = INT64_MIN};
    for (int k = 0; k < w->n; k++) {
        State next;
        step(w, &s, 0, k, &next);
        s = next;
    }
    return s.peak;
}

/* What is the same for all windows of one schedule. */
typedef struct Windows {
    const RematProblem *p;
    const NodeGraph *g;
    RematSchedule *s;
    int *position; /* by node: in s */
    int *local_of; /* by tensor: -1 between windows */
    int states;    /* of all windows so far: the effort */
} Windows;

/* Solves one window; true when its order got better. */
static bool improve_window(Windows *x, Pool *scratch, int begin, int n)
{
    Pool *pool = pool_new_child(scratch);
    Window *w = window_new(pool, x->p, x->g, x->s, x->position, begin, n, x->local_of);
    Table t = {.pool = pool};
    State first = first_state(w);
    offer(&t, &first);
    bool complete = expand_states(w, &t);
    x->states += t.n;
    bool better = complete && t.state[t.n - 1].peak < peak_of_present_order(w);
    if (better) {
        int *order = POOL_ARRAY(pool, (size_t)n, int);
        for (int k = n - 1, i = t.n - 1; k >= 0; i = t.state[i].parent, k--)
            order[k] = w->node[t.state[i].last];
        memcpy(x->s->node + begin, order, (size_t)n * sizeof *order);
    }
    window_free(w);
    pool_free(pool);
    return complete ? better : n > 4 ? improve_window(x, scratch, begin + n / 4, n / 2) : false;
}

/* Windows with the peak at their end, in their middle and at their beginning. */
static bool improve_around(Windows *x, Pool *scratch, int peak_at)
{
    static const int before[] = {WINDOW / 2, WINDOW - 2, 1};
    for (int k = 0; k < x->s->len; k++)
        x->position[x->s->node[k]] = k;
    for (int k = 0; k < 3; k++) {
        int begin = peak_at - before[k] < 0 ? 0 : peak_at - before[k];
        int end = begin + WINDOW > x->s->len ? x->s->len : begin + WINDOW;
        if (improve_window(x, scratch, begin, end - begin))
            return true;
    }
    return false;
}

int64_t reorder_windows(Pool *scratch, const RematProblem *p, const NodeGraph *g, RematSchedule *s,
                        int64_t good_enough_bytes, double until)
{
    Pool *pool = pool_new_child(scratch);
    Windows x = {.p = p, .g = g, .s = s};
    int *kept = POOL_ARRAY(pool, (size_t)s->len + 1, int);
    x.position = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    x.local_of = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        x.local_of[t] = -1;
    RematFigures f = remat_check(pool, p, s);
    while (f.peak_bytes > good_enough_bytes && x.states < MAX_TOTAL_STATES &&
           !reorder_out_of_time(until)) {
        memcpy(kept, s->node, (size_t)s->len * sizeof *kept);
        if (!improve_around(&x, pool, f.peak_at))
            break;
        RematFigures next = remat_check(pool, p, s);
        if (!next.ok || next.peak_bytes > f.peak_bytes ||
            (next.peak_bytes == f.peak_bytes && next.peak_at == f.peak_at)) {
            memcpy(s->node, kept, (size_t)s->len * sizeof *kept);
            break;
        }
        f = next;
    }
    pool_free(pool);
    return f.peak_bytes;
}
