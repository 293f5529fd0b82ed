/* Exact order of a short window: dynamic programming over its downsets.
 *
 * What is alive after a set of the window's nodes has run does not depend on their order, so the
 * best order that ends in a set is the best over its last node.  The windows lie around the peak.
 */
#include "passes/remat/reorder.h"

#include <string.h>

enum {
    WINDOW = 20,
    MAX_STATES = 30000,       /* of one window; a window with more is halved */
    MAX_TOTAL_STATES = 300000 /* of one call: the effort */
};

/* A tensor that the window touches. */
typedef struct Local {
    int64_t bytes;
    uint32_t readers; /* nodes of the window */
    bool inside;      /* made in the window */
    bool stays;       /* read after the window, or kept */
} Local;

typedef struct Window {
    const RematProblem *p;
    int begin, n;
    const int *node; /* in the present order */
    uint32_t *pred;  /* by position in the window */
    Local *local;
    int n_local;
    int *local_of; /* by tensor; -1 */
} Window;

typedef struct State {
    uint32_t done;
    int parent, last; /* state, position */
    int64_t alive;    /* against the beginning of the window */
    int64_t peak;     /* largest so far */
} State;

typedef struct Table {
    Pool *pool;
    State *state;
    int n, room;
    int *slot; /* hash table of state indices + 1 */
    uint32_t n_slots;
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
            (Local){.bytes = w->p->tensor[tensor].bytes,
                    .stays = w->p->tensor[tensor].keep || w->p->tensor[tensor].persistent};
    }
    return &w->local[w->local_of[tensor]];
}

static void add_window_node(Window *w, const NodeGraph *g, const int *position, int k)
{
    const RematNode *node = &w->p->node[w->node[k]];
    for (int i = g->pred.begin[w->node[k]]; i < g->pred.begin[w->node[k] + 1]; i++) {
        int at = position_in(position, w->begin, w->n, g->pred.item[i]);
        if (at >= 0)
            w->pred[k] |= (uint32_t)1 << at;
    }
    for (int i = 0; i < node->n_in; i++)
        touch(w, node->in[i])->readers |= (uint32_t)1 << k;
    for (int i = 0; i < node->n_out; i++)
        touch(w, node->out[i])->inside = true;
}

static Window *window_new(Pool *pool, const RematProblem *p, const NodeGraph *g,
                          const RematSchedule *s, const int *position, int begin, int n)
{
    Window *w = POOL_NEW(pool, Window);
    *w = (Window){.p = p, .begin = begin, .n = n, .node = s->node + begin};
    size_t touched = 0;
    for (int k = 0; k < n; k++)
        touched += (size_t)p->node[w->node[k]].n_in + (size_t)p->node[w->node[k]].n_out;
    w->pred = POOL_ARRAY(pool, (size_t)n, uint32_t);
    w->local = POOL_ARRAY(pool, touched + 1, Local);
    w->local_of = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        w->local_of[t] = -1;
    for (int k = 0; k < n; k++)
        add_window_node(w, g, position, k);
    for (int t = 0; t < p->n_tensors; t++)
        for (int r = g->readers.begin[t]; w->local_of[t] >= 0 && r < g->readers.begin[t + 1]; r++)
            if (position[g->readers.item[r]] >= begin + n)
                w->local[w->local_of[t]].stays = true;
    return w;
}

static bool dies_with(const Local *x, uint32_t done, int k)
{
    uint32_t after = done | (uint32_t)1 << k;
    return !x->stays && x->readers >> k & 1 && (x->readers & ~after) == 0;
}

static bool is_merged(const Window *w, const RematNode *node, int out, uint32_t done, int k)
{
    for (int i = 0; i < node->n_in_place; i++)
        if (node->in_place[i].out == out &&
            dies_with(&w->local[w->local_of[node->in[node->in_place[i].in]]], done, k))
            return true;
    return false;
}

/* What running position k after `done` makes of a state. */
static State step(const Window *w, const State *from, int from_index, int k)
{
    const RematNode *node = &w->p->node[w->node[k]];
    int64_t transient = from->alive + node->workspace, alive = from->alive;
    for (int i = 0; i < node->n_out; i++) {
        const Local *x = &w->local[w->local_of[node->out[i]]];
        transient += is_merged(w, node, i, from->done, k) ? 0 : x->bytes;
        alive += x->stays || x->readers ? x->bytes : 0;
    }
    for (int i = 0; i < node->n_in; i++) {
        const Local *x = &w->local[w->local_of[node->in[i]]];
        alive -= dies_with(x, from->done, k) ? x->bytes : 0;
    }
    return (State){from->done | (uint32_t)1 << k, from_index, k, alive,
                   transient > from->peak ? transient : from->peak};
}

/* Where a set stands, or would. */
static uint32_t find_slot(const Table *t, uint32_t done)
{
    uint32_t h = done * 2654435761u % t->n_slots;
    while (t->slot[h] && t->state[t->slot[h] - 1].done != done)
        h = h + 1 == t->n_slots ? 0 : h + 1;
    return h;
}

static void table_grow(Table *t)
{
    int room = t->room > 0 ? 4 * t->room : 64;
    room = room < MAX_STATES ? room : MAX_STATES;
    t->state = pool_grow(t->pool, t->state, (size_t)t->room * sizeof *t->state,
                         (size_t)room * sizeof *t->state);
    t->room = room;
    t->n_slots = 2 * (uint32_t)room + 1;
    t->slot = POOL_ARRAY(t->pool, t->n_slots, int);
    for (int k = 0; k < t->n; k++)
        t->slot[find_slot(t, t->state[k].done)] = k + 1;
}

/* Keeps the better of two ways to the same set; false when the table is full. */
static bool offer(Table *t, State s)
{
    if (t->n == t->room && t->room < MAX_STATES)
        table_grow(t);
    uint32_t h = find_slot(t, s.done);
    if (!t->slot[h]) {
        if (t->n == MAX_STATES)
            return false;
        t->state[t->n++] = s;
        t->slot[h] = t->n;
    } else if (s.peak < t->state[t->slot[h] - 1].peak) {
        t->state[t->slot[h] - 1] = s;
    }
    return true;
}

/* States are made set by set in order of size, so that each is final before it is extended. */
static bool expand_states(const Window *w, Table *t)
{
    int begin = 0;
    for (int size = 0; size < w->n; size++) {
        int end = t->n;
        for (int i = begin; i < end; i++)
            for (int k = 0; k < w->n; k++) {
                uint32_t done = t->state[i].done;
                if (!(done >> k & 1) && (w->pred[k] & ~done) == 0 &&
                    !offer(t, step(w, &t->state[i], i, k)))
                    return false;
            }
        begin = end;
    }
    return true;
}

static int64_t peak_of_present_order(const Window *w)
{
    State s = {.peak = INT64_MIN};
    for (int k = 0; k < w->n; k++)
        s = step(w, &s, 0, k);
    return s.peak;
}

/* Solves one window; true when its order got better.  *states grows by the effort. */
static bool improve_window(Pool *scratch, const RematProblem *p, const NodeGraph *g,
                           RematSchedule *s, const int *position, int begin, int n, int *states)
{
    Pool *pool = pool_new_child(scratch);
    Window *w = window_new(pool, p, g, s, position, begin, n);
    Table t = {.pool = pool};
    offer(&t, (State){.parent = -1, .peak = INT64_MIN});
    bool complete = expand_states(w, &t);
    *states += t.n;
    bool better = complete && t.state[t.n - 1].peak < peak_of_present_order(w);
    if (better) {
        int *order = POOL_ARRAY(pool, (size_t)n, int);
        for (int k = n - 1, i = t.n - 1; k >= 0; i = t.state[i].parent, k--)
            order[k] = w->node[t.state[i].last];
        memcpy(s->node + begin, order, (size_t)n * sizeof *order);
    }
    pool_free(pool);
    return complete ? better
           : n > 4  ? improve_window(scratch, p, g, s, position, begin + n / 4, n / 2, states)
                    : false;
}

/* Windows with the peak at their end, in their middle and at their beginning. */
static bool improve_around(Pool *scratch, const RematProblem *p, const NodeGraph *g,
                           RematSchedule *s, int *position, int peak_at, int *states)
{
    for (int k = 0; k < s->len; k++)
        position[s->node[k]] = k;
    static const int before[] = {WINDOW / 2, WINDOW - 2, 1};
    for (int k = 0; k < 3; k++) {
        int begin = peak_at - before[k] < 0 ? 0 : peak_at - before[k];
        int end = begin + WINDOW > s->len ? s->len : begin + WINDOW;
        if (improve_window(scratch, p, g, s, position, begin, end - begin, states))
            return true;
    }
    return false;
}

int64_t reorder_windows(Pool *scratch, const RematProblem *p, const NodeGraph *g, RematSchedule *s,
                        int64_t good_enough_bytes)
{
    Pool *pool = pool_new_child(scratch);
    int *position = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int), states = 0;
    int *kept = POOL_ARRAY(pool, (size_t)s->len + 1, int);
    RematFigures f = remat_check(pool, p, s);
    while (f.peak_bytes > good_enough_bytes && states < MAX_TOTAL_STATES &&
           !reorder_out_of_time(p)) {
        memcpy(kept, s->node, (size_t)s->len * sizeof *kept);
        if (!improve_around(pool, p, g, s, position, f.peak_at, &states))
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
