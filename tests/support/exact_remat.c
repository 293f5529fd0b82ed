/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/exact_remat.h"

#include <stdlib.h>

typedef struct ExactState {
    uint32_t ran, live; /* by node; by tensor, persistent ones left out */
    int64_t price;      /* time, or the largest peak so far */
    int parent, node;   /* the state before, and what ran then */
    bool settled;
} ExactState;

typedef struct Exact {
    const RematProblem *p;
    int64_t budget; /* peaks above it are refused */
    bool on_peak;   /* the price is the peak */
    ExactState *state;
    int n_states, room;
    int *table, table_size; /* hash of ran and live -> state, -1 = free */
    int *heap, n_heap, heap_room;
    int64_t *heap_price;
} Exact;

static uint32_t exact_hash(uint32_t ran, uint32_t live)
{
    uint64_t h = ((uint64_t)ran << 32 | live) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 33);
}

static int *exact_slot(Exact *x, uint32_t ran, uint32_t live)
{
    uint32_t i = exact_hash(ran, live) % (uint32_t)x->table_size;
    while (x->table[i] >= 0 &&
           (x->state[x->table[i]].ran != ran || x->state[x->table[i]].live != live))
        i = (i + 1) % (uint32_t)x->table_size;
    return &x->table[i];
}

static void exact_push(Exact *x, int state)
{
    if (x->n_heap == x->heap_room) {
        x->heap_room = 2 * x->heap_room + 64;
        x->heap = realloc(x->heap, (size_t)x->heap_room * sizeof *x->heap);
        x->heap_price = realloc(x->heap_price, (size_t)x->heap_room * sizeof *x->heap_price);
    }
    int i = x->n_heap++;
    int64_t price = x->state[state].price;
    for (; i > 0 && x->heap_price[(i - 1) / 2] > price; i = (i - 1) / 2) {
        x->heap[i] = x->heap[(i - 1) / 2];
        x->heap_price[i] = x->heap_price[(i - 1) / 2];
    }
    x->heap[i] = state;
    x->heap_price[i] = price;
}

static int exact_pop(Exact *x)
{
    int top = x->heap[0], last = x->heap[--x->n_heap], i = 0;
    int64_t price = x->heap_price[x->n_heap];
    for (int c = 1; c < x->n_heap; i = c, c = 2 * i + 1) {
        c += c + 1 < x->n_heap && x->heap_price[c + 1] < x->heap_price[c];
        if (x->heap_price[c] >= price)
            break;
        x->heap[i] = x->heap[c];
        x->heap_price[i] = x->heap_price[c];
    }
    x->heap[i] = last;
    x->heap_price[i] = price;
    return top;
}

static void exact_rehash(Exact *x)
{
    x->table_size = 2 * x->table_size + 1021;
    x->table = realloc(x->table, (size_t)x->table_size * sizeof *x->table);
    for (int i = 0; i < x->table_size; i++)
        x->table[i] = -1;
    for (int s = 0; s < x->n_states; s++)
        *exact_slot(x, x->state[s].ran, x->state[s].live) = s;
}

static void exact_reach(Exact *x, uint32_t ran, uint32_t live, int64_t price, int parent, int node)
{
    if (2 * (x->n_states + 1) > x->table_size)
        exact_rehash(x);
    int *slot = exact_slot(x, ran, live);
    if (*slot >= 0 && x->state[*slot].price <= price)
        return;
    if (*slot < 0) {
        if (x->n_states == x->room) {
            x->room = 2 * x->room + 256;
            x->state = realloc(x->state, (size_t)x->room * sizeof *x->state);
        }
        *slot = x->n_states++;
    }
    x->state[*slot] = (ExactState){ran, live, price, parent, node, false};
    exact_push(x, *slot);
}

static bool exact_overwritten(const RematProblem *p, uint32_t ran, int tensor)
{
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; ran >> n & 1 && k < p->node[n].n_overwrites; k++)
            if (p->node[n].overwrites[k] == tensor)
                return true;
    return false;
}

static bool exact_may_run(const RematProblem *p, const ExactState *s, int n)
{
    const RematNode *node = &p->node[n];
    if (s->ran >> n & 1 && (!node->rerun || node->hint == REMAT_KEEP))
        return false;
    for (int k = 0; k < node->n_in; k++) {
        int t = node->in[k];
        if ((!p->tensor[t].persistent && !(s->live >> t & 1)) || exact_overwritten(p, s->ran, t))
            return false;
    }
    for (int k = 0; k < node->n_out; k++) /* the version before was read last already */
        if (s->live >> node->out[k] & 1)
            return false;
    return true;
}

/* Bytes alive while n runs and the inputs in `dies` die there. */
static int64_t exact_bytes(const RematProblem *p, uint32_t live, int n, uint32_t dies)
{
    const RematNode *node = &p->node[n];
    int64_t bytes = p->persistent_bytes + node->workspace;
    uint32_t in_merged = 0, out_merged = 0;
    for (int t = 0; t < p->n_tensors; t++)
        bytes += live >> t & 1 ? p->tensor[t].bytes : 0;
    for (int k = 0; k < node->n_out; k++)
        bytes += p->tensor[node->out[k]].bytes;
    for (int k = 0; k < node->n_in_place; k++) {
        int o = node->in_place[k].out, i = node->in_place[k].in;
        if (in_merged >> i & 1 || out_merged >> o & 1 || !(dies >> node->in[i] & 1) ||
            p->tensor[node->in[i]].bytes != p->tensor[node->out[o]].bytes)
            continue;
        in_merged |= 1u << i;
        out_merged |= 1u << o;
        bytes -= p->tensor[node->out[o]].bytes;
    }
    return bytes;
}

/* Batch inputs that nothing reads die after the first run. */
static uint32_t exact_unread(const RematProblem *p)
{
    uint32_t unread = 0;
    for (int t = 0; t < p->n_tensors; t++)
        if (!p->tensor[t].persistent && p->tensor[t].producer < 0 && !p->tensor[t].keep)
            unread |= 1u << t;
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++)
            unread &= ~(1u << p->node[n].in[k]);
    return unread;
}

static void exact_run(Exact *x, int from, int n)
{
    const RematProblem *p = x->p;
    ExactState s = x->state[from];
    uint32_t in = 0, out = 0, unread = s.ran ? 0 : exact_unread(p);
    for (int k = 0; k < p->node[n].n_in; k++)
        in |= p->tensor[p->node[n].in[k]].persistent ? 0 : 1u << p->node[n].in[k];
    for (int k = 0; k < p->node[n].n_out; k++)
        out |= 1u << p->node[n].out[k];
    uint32_t may_die = in | out;
    for (uint32_t dies = may_die;; dies = (dies - 1) & may_die) {
        int64_t bytes = exact_bytes(p, s.live, n, dies & in);
        int64_t price =
            x->on_peak ? (bytes > s.price ? bytes : s.price) : s.price + (int64_t)p->node[n].cost;
        if (bytes <= x->budget)
            exact_reach(x, s.ran | 1u << n, (s.live | out) & ~dies & ~unread, price, from, n);
        if (dies == 0)
            return;
    }
}

static RematSchedule exact_path(const Exact *x, Pool *pool, int state)
{
    int len = 0;
    for (int s = state; x->state[s].parent >= 0; s = x->state[s].parent)
        len++;
    RematSchedule path = {len, POOL_ARRAY(pool, (size_t)len + 1, int)};
    for (int s = state; x->state[s].parent >= 0; s = x->state[s].parent)
        path.node[--len] = x->state[s].node;
    return path;
}

int64_t exact_remat(Pool *pool, const RematProblem *p, int64_t budget, bool on_peak,
                    RematSchedule *best)
{
    Exact x = {.p = p, .budget = budget, .on_peak = on_peak};
    uint32_t live = 0, keep = 0, all = (1u << p->n_nodes) - 1;
    int64_t answer = -1;
    for (int t = 0; t < p->n_tensors; t++) {
        live |= p->tensor[t].producer < 0 && !p->tensor[t].persistent ? 1u << t : 0;
        keep |= p->tensor[t].keep && !p->tensor[t].persistent ? 1u << t : 0;
    }
    exact_reach(&x, 0, live, 0, -1, -1);
    while (x.n_heap > 0 && answer < 0) {
        int s = exact_pop(&x);
        if (x.state[s].settled)
            continue;
        x.state[s].settled = true;
        if (x.state[s].ran == all && (x.state[s].live & keep) == keep) {
            answer = x.state[s].price;
            *best = exact_path(&x, pool, s);
        }
        for (int n = 0; n < p->n_nodes && answer < 0; n++)
            if (exact_may_run(p, &x.state[s], n))
                exact_run(&x, s, n);
    }
    free(x.state);
    free(x.table);
    free(x.heap);
    free(x.heap_price);
    return answer;
}
