/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/loop_pairs.h"

#include "passes/rewrite.h"

#include <math.h>
#include <stdlib.h>

/* Input j of a loop is one of its slices. */
static bool is_slice(const Node *loop, int j)
{
    LoopShape s = loop_shape(loop);
    return j >= s.carries && j < s.carries + s.slices;
}

static bool *kept_results(const Graph *g, Pool *scratch, const int *uses, NodeId forward,
                          NodeId backward)
{
    const Node *f = graph_node(g, forward), *b = graph_node(g, backward);
    bool *kept = POOL_ARRAY(scratch, (size_t)f->n_out + 1, bool);
    for (int j = 0; j < b->n_in; j++) {
        const Value *v = graph_value(g, b->in[j]);
        if (v->def == forward && v->out_index >= loop_shape(f).carries && is_slice(b, j))
            kept[v->out_index] = uses[b->in[j]] == 1;
    }
    return kept;
}

bool *loop_kept_results(const Graph *g, Pool *scratch, NodeId forward, NodeId backward)
{
    return kept_results(g, scratch, count_uses(g, scratch), forward, backward);
}

/* For a dim more of all it reads and makes. */
static bool has_room(const Graph *g, const Node *loop)
{
    for (int i = 0; i < loop->n_in + loop->n_out; i++) {
        ValueId v = i < loop->n_in ? loop->in[i] : loop->out[i - loop->n_in];
        if (value_type(g, v)->rank == TYPE_MAX_RANK)
            return false;
    }
    return true;
}

static LoopPair measured(const Graph *g, Pool *scratch, const int *uses, NodeId forward,
                         NodeId backward)
{
    const Node *f = graph_node(g, forward);
    LoopShape s = loop_shape(f);
    LoopPair p = {.forward = forward, .backward = backward, .steps = s.steps};
    const bool *kept = kept_results(g, scratch, uses, forward, backward);
    for (int i = 0; i < s.carries; i++)
        p.carry_bytes += (double)type_bytes(value_type(g, f->out[i]));
    for (int i = s.carries; i < f->n_out; i++)
        if (kept[i])
            p.kept_bytes += (double)type_bytes(value_type(g, f->out[i])) / (double)s.steps;
    return p;
}

static bool may_pair(const Graph *g, const LoopPair *p)
{
    const Node *f = graph_node(g, p->forward), *b = graph_node(g, p->backward);
    LoopShape s = loop_shape(f), t = loop_shape(b);
    return s.steps == t.steps && s.reverse != t.reverse && f->hint == REMAT_AUTO &&
           b->hint == REMAT_AUTO && p->kept_bytes > 0 && loop_run_length(p, 1) > 0 &&
           has_room(g, f) && has_room(g, b);
}

static int by_bytes(const void *a, const void *b)
{
    const LoopPair *x = a, *y = b;
    double left = x->kept_bytes * (double)x->steps, right = y->kept_bytes * (double)y->steps;
    if (left != right)
        return left > right ? -1 : 1;
    return x->forward < y->forward ? -1 : x->forward > y->forward;
}

LoopPairs loop_pairs(const Graph *g, Pool *scratch)
{
    LoopPairs pairs = {0};
    const int *uses = count_uses(g, scratch);
    bool *taken = POOL_ARRAY(scratch, g->nodes.len + 1, bool);
    for (size_t k = 0; k < g->order.len; k++) {
        NodeId backward = g->order.data[k];
        const Node *b = graph_node(g, backward);
        for (int j = 0; node_is_loop(b) && j < b->n_in && !taken[backward]; j++) {
            NodeId forward = graph_value(g, b->in[j])->def;
            if (!node_is_loop(graph_node(g, forward)) || taken[forward])
                continue;
            LoopPair p = measured(g, scratch, uses, forward, backward);
            if (!may_pair(g, &p))
                continue;
            taken[forward] = taken[backward] = true;
            vec_push(scratch, &pairs, p);
        }
    }
    if (pairs.len)
        qsort(pairs.data, pairs.len, sizeof *pairs.data, by_bytes);
    return pairs;
}

/* Kept are what each of steps / k runs begins with, all of the steps that are in no full run, and
 * what a run keeps while its gradient is computed. */
static double kept_with_runs(const LoopPair *p, int64_t steps, int levels, int64_t *best);

static double kept_with_run(const LoopPair *p, int64_t steps, int levels, int64_t k, double limit)
{
    int64_t inner;
    double bytes = (double)(steps / k) * p->carry_bytes + (double)(steps % k) * p->kept_bytes;
    if (bytes >= limit)
        return bytes;
    return bytes +
           (levels > 1 ? kept_with_runs(p, k, levels - 1, &inner) : (double)k * p->kept_bytes);
}

/* At least; more for more steps. */
static double run_takes(const LoopPair *p, int levels, int64_t k)
{
    return levels > 1 ? 2 * sqrt((double)(k + 1) * p->carry_bytes * p->kept_bytes) - p->carry_bytes
                      : (double)k * p->kept_bytes;
}

/* *best: steps of a run, 0 where there is no such number. */
static double kept_with_runs(const LoopPair *p, int64_t steps, int levels, int64_t *best)
{
    double least = INFINITY;
    *best = 0;
    for (int64_t k = 2; k <= steps / 2; k++) {
        if (run_takes(p, levels, k) >= least)
            break;
        double bytes = kept_with_run(p, steps, levels, k, least);
        if (bytes < least) {
            least = bytes;
            *best = k;
        }
    }
    return least;
}

int64_t loop_run_length(const LoopPair *pair, int levels)
{
    int64_t best;
    kept_with_runs(pair, pair->steps, levels, &best);
    return best;
}
