/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The best price of memory at one moment. */
#include "passes/remat/bounds/cut_relaxation.h"

enum { MAX_PRICES = 24 };
static const int64_t FIRST_PRICE = 1 << 12, HIGHEST_PRICE = (int64_t)1 << 32;

/* What the base order, every node once, has alive at each node; t's merged outputs as in
 * cut_relaxation.c: with several inputs to be written over, room of their own is not certain. */
static int64_t merged_bytes(const RematProblem *p, int n, const int *last)
{
    const RematNode *node = &p->node[n];
    int64_t bytes = 0;
    for (int o = 0; o < node->n_out; o++) {
        int candidates = 0, only = -1;
        for (int k = 0; k < node->n_in_place; k++) {
            int in = node->in[node->in_place[k].in];
            if (node->in_place[k].out == o && in != only && !p->tensor[in].persistent &&
                p->tensor[in].bytes == p->tensor[node->out[o]].bytes) {
                candidates++;
                only = in;
            }
        }
        if (!p->tensor[node->out[o]].persistent &&
            (candidates > 1 || (candidates == 1 && last[only] == n)))
            bytes += p->tensor[node->out[o]].bytes;
    }
    return bytes;
}

int64_t *cut_keep_all_bytes(Pool *pool, const RematProblem *p)
{
    int64_t *bytes = POOL_ARRAY(pool, (size_t)p->n_nodes + 2, int64_t), alive = 0;
    int *last = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    for (int x = 0; x < p->n_tensors; x++)
        last[x] = p->tensor[x].producer < 0 ? 0 : p->tensor[x].producer;
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++)
            last[p->node[n].in[k]] = n;
    for (int x = 0; x < p->n_tensors; x++) {
        int first = p->tensor[x].producer < 0 ? 0 : p->tensor[x].producer;
        if (p->tensor[x].keep || p->tensor[x].persistent)
            last[x] = p->n_nodes;
        bytes[first] += p->tensor[x].bytes;
        bytes[last[x] + 1] -= p->tensor[x].bytes;
    }
    for (int n = 0; n < p->n_nodes; n++) {
        alive += bytes[n];
        bytes[n] = alive + p->node[n].workspace - merged_bytes(p, n, last);
    }
    return bytes;
}

/* What a cut at this price proves, in the scaled units of what is bounded. */
static int64_t proven(const CutLimit *l, const MinimumCut *cut, int64_t price, int64_t spare)
{
    if (!l->on_time)
        return cut->value - price * spare;
    int64_t rest = cut->value - spare;
    return rest <= 0 ? 0 : (rest + price - 1) / price;
}

/* Where the lines of the two cuts meet, no price proves more. */
static double most_provable(const CutLimit *l, const MinimumCut *lo, const MinimumCut *hi,
                            int64_t spare)
{
    double cost = (double)(hi->cost - lo->cost), weight = (double)(lo->weight - hi->weight);
    if (!l->on_time)
        return (double)lo->cost + cost * (double)(lo->weight - spare) / weight;
    return cost > 0 ? (double)lo->weight - weight * (double)(spare - lo->cost) / cost
                    : (double)lo->weight;
}

static int64_t search_price(CutRelaxation *m, CutLimit *l, int64_t spare, int64_t good_enough,
                            int64_t *work)
{
    int64_t best = 0, price = l->price > 0 ? l->price : FIRST_PRICE;
    int shift = m->problem->scale.shift;
    MinimumCut lo = {.weight = (l->keep_all - m->fixed_bytes) >> shift}, hi = {0};
    bool has_hi = false;
    for (int k = 0; k < MAX_PRICES; k++) {
        MinimumCut cut = cut_relaxation_cut(m, 1, price, work);
        int64_t value = proven(l, &cut, price, spare);
        if (value > best) {
            best = value;
            l->price = price;
        }
        bool is_lo = l->on_time ? cut.cost <= spare : cut.weight > spare;
        if (is_lo)
            lo = cut;
        else
            hi = cut;
        has_hi |= !is_lo;
        int64_t next = price < HIGHEST_PRICE / 8 ? price * 8 : HIGHEST_PRICE;
        if (has_hi && (lo.weight <= hi.weight || hi.cost <= lo.cost))
            break;
        if (has_hi) {
            double most = most_provable(l, &lo, &hi, spare);
            next = (hi.cost - lo.cost) / (lo.weight - hi.weight);
            if (most <= (double)good_enough || most - (double)best <= most / 4096)
                break;
        }
        if (next == price || next <= 0)
            break;
        price = next < HIGHEST_PRICE ? next : HIGHEST_PRICE;
    }
    return best;
}

int64_t cut_relaxation_bound(CutRelaxation *m, CutLimit *l, int64_t *work)
{
    int shift = m->problem->scale.shift;
    if (l->on_time) {
        int64_t enough = l->good_enough > m->fixed_bytes ? l->good_enough - m->fixed_bytes : -1;
        int64_t value = l->limit < INT64_MAX && m->problem->rerun
                            ? search_price(m, l, l->limit, enough < 0 ? -1 : enough >> shift, work)
                            : cut_relaxation_cut(m, 0, 1, work).value;
        return m->fixed_bytes + (value << shift);
    }
    if (m->fixed_bytes > l->limit)
        return INT64_MAX;
    return l->keep_all <= l->limit
               ? 0
               : search_price(m, l, (l->limit - m->fixed_bytes) >> shift, l->good_enough, work);
}
