/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Takes out recomputations that are not needed to stay within the target. */
#include "passes/remat/search/greedy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* The layers of a network repeat: their nodes have the same costs and sizes. */
static uint64_t kind_of(const RematProblem *p, int node)
{
    const RematNode *n = &p->node[node];
    uint64_t kind;
    memcpy(&kind, &n->cost, sizeof kind);
    for (int k = 0; k < n->n_out; k++)
        kind = mix(kind + (uint64_t)p->tensor[n->out[k]].bytes);
    return mix(kind + (uint64_t)n->n_in);
}

GreedySearch *greedy_new(Pool *pool, const RematProblem *p, uint64_t *random)
{
    GreedySearch *x = POOL_NEW(pool, GreedySearch);
    *x = (GreedySearch){.p = p, .pool = pool, .slots = incremental_new(pool, p), .random = random};
    x->next_over = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    x->kind = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, uint64_t);
    for (int n = 0; n < p->n_nodes; n++)
        x->kind[n] = kind_of(p, n);
    x->stamp = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int);
    return x;
}

uint64_t greedy_random(GreedySearch *x)
{
    return mix(*x->random += 0x9e3779b97f4a7c15U);
}

double greedy_uniform(GreedySearch *x)
{
    return (double)(greedy_random(x) >> 11) * 0x1p-53;
}

double greedy_bend(const GreedySearch *x, int node)
{
    if (x->noise == 0)
        return 1;
    uint64_t who = x->by_kind ? x->kind[node] : (uint64_t)node;
    uint64_t draw = mix(x->draw + 0x9e3779b97f4a7c15U * (who + 1));
    return exp(x->noise * (2 * (double)(draw >> 11) * 0x1p-53 - 1));
}

/* ---- taking out ---- */

/* Whether @recompute asks for this run. */
static bool is_pinned(const GreedySearch *x, int node, int slot)
{
    return x->p->node[node].hint == REMAT_RECOMPUTE && slot > x->p->loss_node &&
           incremental_run_slot(x->slots, node, incremental_run_before(x->slots, node, slot - 1)) <=
               x->p->loss_node;
}

static bool is_unread(const GreedySearch *x, int node, int slot)
{
    int run = incremental_run_before(x->slots, node, slot);
    for (int k = 0; k < x->p->node[node].n_out; k++)
        if (incremental_next_read(x->slots, node, run, k, slot - 1) >= 0)
            return false;
    return true;
}

static void remove_unread(GreedySearch *x, int node, int slot)
{
    const RematNode *n = &x->p->node[node];
    incremental_remove(x->slots, node, slot);
    for (int i = 0; i < n->n_in; i++) {
        int q = x->p->tensor[n->in[i]].producer;
        if (q >= 0 && q != slot && incremental_has(x->slots, q, slot) && is_unread(x, q, slot))
            remove_unread(x, q, slot);
    }
}

void greedy_remove(GreedySearch *x, int node, int slot)
{
    if (!is_pinned(x, node, slot) || is_unread(x, node, slot))
        remove_unread(x, node, slot);
}

/* ---- what surely does not fit, without trying ---- */

/* Bytes that live until `slot` only because this run reads them; -1 when that is not the whole
 * story, because operands are made in the same slot. */
static int64_t freed_operands(const GreedySearch *x, const RematNode *n, int slot)
{
    int64_t bytes = 0;
    for (int i = 0; i < n->n_in; i++) {
        const RematTensor *t = &x->p->tensor[n->in[i]];
        if (t->producer < 0 || t->bytes == 0)
            continue;
        int run = incremental_run_before(x->slots, t->producer, slot);
        if (incremental_run_slot(x->slots, t->producer, run) == slot)
            return -1;
        int k = incremental_output(x->slots, n->in[i]);
        bytes += incremental_life_end(x->slots, t->producer, run, k) == slot ? t->bytes : 0;
    }
    return bytes;
}

/* The value kept from the run before until this slot would not fit, whatever leaves with the run.
 */
static bool cannot_be_kept(GreedySearch *x, int node, int slot)
{
    const RematNode *n = &x->p->node[node];
    int run = incremental_run_before(x->slots, node, slot - 1);
    int64_t freed = freed_operands(x, n, slot);
    for (int k = 0; k < n->n_out && freed >= 0; k++) {
        int end = incremental_life_end(x->slots, node, run, k);
        int64_t more = x->p->tensor[n->out[k]].bytes - freed;
        if (more > 0 &&
            incremental_peak_within(x->slots, end + 1, slot - 1) + more > x->target_bytes)
            return true;
    }
    return false;
}

/* ---- one by one ---- */

typedef struct Candidate {
    double time;
    int node, slot;
} Candidate;

static int dearest_first(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->time != y->time)
        return x->time > y->time ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static Candidate *list_candidates(GreedySearch *x, Pool *pool, int *n)
{
    Candidate *all = POOL_ARRAY(pool, (size_t)incremental_recomputed(x->slots) + 1, Candidate);
    *n = 0;
    for (int slot = 0; slot < incremental_count(x->slots); slot++) {
        int here;
        const int *node = incremental_in_slot(x->slots, slot, &here);
        for (int i = 0; i < here; i++)
            all[(*n)++] =
                (Candidate){x->p->node[node[i]].cost * greedy_bend(x, node[i]), node[i], slot};
    }
    qsort(all, (size_t)*n, sizeof *all, dearest_first);
    return all;
}

static bool try_without(GreedySearch *x, const Candidate *c)
{
    if (!incremental_has(x->slots, c->node, c->slot) || cannot_be_kept(x, c->node, c->slot) ||
        is_pinned(x, c->node, c->slot))
        return false;
    int mark = incremental_mark(x->slots);
    greedy_remove(x, c->node, c->slot);
    if (incremental_peak(x->slots, NULL) <= x->target_bytes)
        return true;
    incremental_rollback(x->slots, mark);
    return false;
}

void greedy_restore(GreedySearch *x)
{
    int64_t until = incremental_work(x->slots) + x->most_work;
    for (bool any = true; any && incremental_work(x->slots) < until;) {
        Pool *pool = pool_new_child(x->pool);
        int n;
        const Candidate *all = list_candidates(x, pool, &n);
        any = false;
        for (int i = 0; i < n && incremental_work(x->slots) < until; i++)
            any |= try_without(x, &all[i]);
        pool_free(pool);
    }
}
