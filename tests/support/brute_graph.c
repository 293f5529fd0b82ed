/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/brute_graph.h"

#include <stdlib.h>

typedef struct BruteSearch {
    const BruteGraph *g;
    int64_t budget;
    bool for_peak, reruns;
    BrutePrice *best;                      /* by state */
    uint32_t *queue, head, tail, n_states; /* a ring: each state is in it once at most */
    bool *queued;
} BruteSearch;

static int brute_value(const ExternalGraph *g, ExternalRef ref)
{
    int value = (int)ref.output;
    for (int64_t n = 0; n < ref.node; n++)
        value += g->node[n].n_out;
    return value;
}

static void brute_add_output(BruteGraph *b, int node, const ExternalOutput *o)
{
    uint32_t bit = (uint32_t)1 << b->n_values;
    b->bytes[b->n_values] = o->bytes;
    b->maker[b->n_values++] = node;
    b->makes[node] |= bit;
    b->persistent |= o->persistent ? bit : 0;
    b->keep |= o->keep && !o->persistent ? bit : 0;
}

static void brute_add_given(BruteGraph *b, const ExternalGraph *g)
{
    for (int n = 0; n < g->n_nodes; n++) {
        const ExternalNode *from = &g->node[n];
        int v = b->n_nodes++;
        b->time[v] = from->time;
        b->rerun[v] = from->rerun;
        b->workspace[v] = from->workspace;
        for (int k = 0; k < from->n_in; k++)
            b->reads[v] |= (uint32_t)1 << brute_value(g, from->in[k]);
        for (int k = 0; k < from->n_overwrites; k++)
            b->overwrites[v] |= (uint32_t)1 << brute_value(g, from->overwrites[k]);
        for (int k = 0; k < from->n_out; k++)
            brute_add_output(b, v, &from->out[k]);
    }
}

/* b_v for every node, last first: its output is the last value so far. */
static void brute_add_backward(BruteGraph *b)
{
    int n = b->n_nodes, gradient[BRUTE_NODES];
    for (int v = n - 1; v >= 0; v--) {
        int back = b->n_nodes++;
        ExternalOutput out = {0};
        b->time[back] = 2 * b->time[v];
        b->rerun[back] = true;
        b->reads[back] = b->reads[v] | b->makes[v];
        for (int w = v + 1; w < n; w++)
            if (b->reads[w] & b->makes[v])
                b->reads[back] |= (uint32_t)1 << gradient[w];
        for (int x = 0; x < b->n_values; x++)
            out.bytes += b->reads[v] >> x & 1 ? b->bytes[x] : 0;
        gradient[v] = b->n_values;
        brute_add_output(b, back, &out);
    }
}

bool brute_graph(const ExternalGraph *g, BruteGraph *out)
{
    int nodes = g->n_nodes * (g->forward ? 2 : 1), values = g->forward ? g->n_nodes : 0;
    for (int n = 0; n < g->n_nodes; n++)
        values += g->node[n].n_out;
    *out = (BruteGraph){0};
    if (nodes > BRUTE_NODES || values > BRUTE_VALUES || nodes + values > BRUTE_BITS)
        return false;
    brute_add_given(out, g);
    if (g->forward)
        brute_add_backward(out);
    return true;
}

static int64_t brute_bytes(const BruteGraph *g, uint32_t values)
{
    int64_t bytes = 0;
    for (int x = 0; x < g->n_values; x++)
        bytes += values >> x & 1 ? g->bytes[x] : 0;
    return bytes;
}

static void brute_reach(BruteSearch *s, uint32_t state, BrutePrice price)
{
    BrutePrice *best = &s->best[state];
    bool better = s->for_peak ? price.peak < best->peak : price.time < best->time;
    if (best->reached && !better)
        return;
    *best = price;
    best->reached = true;
    if (s->queued[state])
        return;
    s->queued[state] = true;
    s->queue[s->tail++ % s->n_states] = state;
}

/* Every value that node n reads is there and was never overwritten. */
static bool brute_may_run(const BruteSearch *s, uint32_t ran, uint32_t alive, int n)
{
    const BruteGraph *g = s->g;
    if (ran >> n & 1 && !(g->rerun[n] && s->reruns))
        return false;
    for (int x = 0; x < g->n_values; x++) {
        if (!(g->reads[n] >> x & 1))
            continue;
        if (!(g->persistent >> x & 1 ? ran >> g->maker[x] & 1 : alive >> x & 1))
            return false;
        for (int m = 0; m < g->n_nodes; m++)
            if (ran >> m & 1 && g->overwrites[m] >> x & 1)
                return false;
    }
    return !(alive & g->makes[n]);
}

static void brute_run(BruteSearch *s, uint32_t ran, uint32_t alive, BrutePrice price, int n)
{
    const BruteGraph *g = s->g;
    uint32_t during = alive | (g->makes[n] & ~g->persistent);
    uint32_t operands = (g->reads[n] | g->makes[n]) & ~g->persistent;
    int64_t bytes = brute_bytes(g, during | g->persistent) + g->workspace[n];
    if (bytes > s->budget)
        return;
    price.time += g->time[n];
    price.peak = bytes > price.peak ? bytes : price.peak;
    for (uint32_t dies = operands;; dies = (dies - 1) & operands) {
        brute_reach(s, (ran | (uint32_t)1 << n) << g->n_values | (during & ~dies), price);
        if (dies == 0)
            return;
    }
}

BrutePrice brute_best(const BruteGraph *g, int64_t budget, bool for_peak, bool reruns)
{
    uint32_t states = (uint32_t)1 << (g->n_nodes + g->n_values);
    uint32_t values = ((uint32_t)1 << g->n_values) - 1, all = ((uint32_t)1 << g->n_nodes) - 1;
    BruteSearch s = {
        .g = g, .budget = budget, .for_peak = for_peak, .reruns = reruns, .n_states = states};
    BrutePrice answer = {0};
    s.best = calloc(states, sizeof *s.best);
    s.queued = calloc(states, sizeof *s.queued);
    s.queue = calloc(states, sizeof *s.queue);
    if (!s.best || !s.queued || !s.queue)
        abort();
    brute_reach(&s, 0, (BrutePrice){0});
    while (s.head != s.tail) {
        uint32_t state = s.queue[s.head++ % s.n_states];
        uint32_t ran = state >> g->n_values, alive = state & values;
        BrutePrice price = s.best[state];
        s.queued[state] = false;
        bool better = for_peak ? price.peak < answer.peak : price.time < answer.time;
        if (ran == all && (alive & g->keep) == g->keep && (!answer.reached || better))
            answer = price;
        for (int n = 0; n < g->n_nodes; n++)
            if (brute_may_run(&s, ran, alive, n))
                brute_run(&s, ran, alive, price, n);
    }
    free(s.best);
    free(s.queued);
    free(s.queue);
    return answer;
}
