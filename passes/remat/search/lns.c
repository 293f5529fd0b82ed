/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/search/lns.h"

#include "ir/support/bug.h"
#include "passes/remat/model/runs.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/model/solver.h"

#include <string.h>

/* ---- base orders ---- */

static Base *base_new(LargeNeighbourhoodSearch *l, const int *order)
{
    Pool *pool = pool_new_child(l->pool);
    Base *b = POOL_NEW(pool, Base);
    int n = l->p->n_nodes;
    *b = (Base){.pool = pool, .order = POOL_ARRAY(pool, (size_t)n + 1, int)};
    b->slot_of = POOL_ARRAY(pool, (size_t)n + 1, int);
    memcpy(b->order, order, (size_t)n * sizeof *order);
    for (int i = 0; i < n; i++)
        b->slot_of[order[i]] = i;
    b->p = remat_expand(pool, l->p, &(RematSchedule){n, b->order});
    b->p->loss_node = l->p->loss_node < 0 ? -1 : b->slot_of[l->p->loss_node];
    b->x = greedy_new(pool, b->p, &l->random);
    b->is_own = true;
    for (int i = 0; i < n; i++)
        b->is_own &= order[i] == i;
    l->done += 10 * (int64_t)n;
    return b;
}

static void base_free(LargeNeighbourhoodSearch *l, Base *b)
{
    if (!b)
        return;
    l->done += incremental_work(b->x->slots);
    pool_free(b->pool);
}

/* The base with this order, moved to the front of the list; the last one goes when it is new. */
static Base *use_base(LargeNeighbourhoodSearch *l, const int *order)
{
    int k = 0;
    size_t bytes = (size_t)l->p->n_nodes * sizeof *order;
    while (k < LNS_BASES - 1 && l->base[k] && memcmp(l->base[k]->order, order, bytes) != 0)
        k++;
    Base *b = l->base[k];
    if (!b || memcmp(b->order, order, bytes) != 0) {
        base_free(l, b);
        b = base_new(l, order);
    }
    memmove(l->base + 1, l->base, (size_t)k * sizeof *l->base);
    return l->base[0] = b;
}

GreedySearch *lns_base(LargeNeighbourhoodSearch *l, const int *order)
{
    Pool *scratch = pool_new_child(l->pool);
    Base *b = use_base(l, order ? order : remat_base_schedule(scratch, l->p).node);
    pool_free(scratch);
    incremental_clear(b->x->slots);
    b->x->target_bytes = l->target_bytes;
    b->x->most_work = l->most_work;
    b->x->whole_prices = l->style.whole_prices;
    b->x->noise = b->x->reach = 0;
    return b->x;
}

GreedySearch *lns_load(LargeNeighbourhoodSearch *l, const RematSchedule *s)
{
    Pool *scratch = pool_new_child(l->pool);
    int n = l->p->n_nodes, next = 0;
    int *order = POOL_ARRAY(scratch, (size_t)n + 1, int);
    bool *ran = POOL_ARRAY(scratch, (size_t)n + 1, bool);
    for (int i = 0; i < s->len; i++)
        if (!ran[s->node[i]]) {
            ran[s->node[i]] = true;
            order[next++] = s->node[i];
        }
    GreedySearch *x = lns_base(l, order);
    const int *slot_of = l->base[0]->slot_of;
    next = 0;
    for (int i = 0; i < s->len && next < n; i++) {
        int node = slot_of[s->node[i]];
        if (node == next)
            next++;
        else if (incremental_allowed(x->slots, node, next) &&
                 !incremental_has(x->slots, node, next))
            incremental_add(x->slots, node, next);
    }
    incremental_commit(x->slots);
    pool_free(scratch);
    return x;
}

/* ---- the front ---- */

bool lns_offer_schedule(LargeNeighbourhoodSearch *l, const RematSchedule *s)
{
    Pool *scratch = pool_new_child(l->pool);
    RematFigures f = remat_check(scratch, l->p, s);
    if (!f.ok)
        BUG("scrimp made a wrong schedule: %s", f.fault);
    bool obeys = l->front->points.len == 0 || remat_obeys_hints(scratch, l->p, s);
    bool taken = obeys && pareto_offer(l->front, f.peak_bytes, f.time, s);
    l->done += s->len / 4;
    pool_free(scratch);
    return taken;
}

void lns_offer(LargeNeighbourhoodSearch *l)
{
    const Base *b = l->base[0];
    int64_t peak = incremental_peak(b->x->slots, NULL);
    double time = incremental_time(b->x->slots);
    bool own = b->is_own && pareto_takes(&l->own, peak, time);
    if (!own && !pareto_takes(l->front, peak, time))
        return;
    Pool *scratch = pool_new_child(l->pool);
    RematSchedule s = incremental_schedule(scratch, b->x->slots);
    for (int i = 0; i < s.len; i++)
        s.node[i] = b->order[s.node[i]];
    if (own)
        pareto_offer(&l->own, peak, time, &s);
    lns_offer_schedule(l, &s);
    pool_free(scratch);
}

/* ---- effort ---- */

int64_t lns_work(const LargeNeighbourhoodSearch *l)
{
    int64_t work = l->done;
    for (int k = 0; k < LNS_BASES && l->base[k]; k++)
        work += incremental_work(l->base[k]->x->slots);
    return work;
}

bool lns_out_of_work(const LargeNeighbourhoodSearch *l, double part)
{
    return (double)lns_work(l) >= part * l->work || remat_out_of_time(l->options);
}

bool lns_repair(LargeNeighbourhoodSearch *l)
{
    GreedySearch *x = l->base[0]->x;
    bool fits = greedy_reduce(x);
    lns_offer(l);
    if (!fits)
        return false;
    greedy_restore(x);
    lns_offer(l);
    return true;
}
