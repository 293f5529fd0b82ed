/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order bound: what must be alive while a node runs, in any order without recomputation. */
#include "passes/remat/order/reorder.h"

#include "ir/support/bitset.h"

enum { MAX_NODES = 4000 };

/* closure[n]: every node reachable from n along `next`, n itself not included.  Rows are visited so
 * that those of the neighbours are complete. */
static Bitset *closure(Pool *pool, const Csr *next, bool descending)
{
    Bitset *set = POOL_ARRAY(pool, (size_t)next->n + 1, Bitset);
    for (int i = 0; i < next->n; i++) {
        int n = descending ? next->n - 1 - i : i;
        set[n] = bitset_new(pool, (size_t)next->n);
        for (int k = next->begin[n]; k < next->begin[n + 1]; k++) {
            bitset_union(&set[n], &set[next->item[k]]);
            bitset_add(&set[n], (size_t)next->item[k]);
        }
    }
    return set;
}

static bool may_merge(const RematProblem *p, const RematNode *node, int out)
{
    for (int k = 0; k < node->n_in_place; k++) {
        const RematTensor *in = &p->tensor[node->in[node->in_place[k].in]];
        if (node->in_place[k].out == out && !in->persistent && !in->keep)
            return true;
    }
    return false;
}

/* Nodes that have t alive for sure, besides those that read or make it: after its producer and
 * before one of its readers. */
static Bitset spanned_by(Pool *pool, const RematProblem *p, const NodeGraph *g,
                         const Bitset *before, const Bitset *after, int t)
{
    Bitset span = bitset_new(pool, (size_t)p->n_nodes);
    const RematTensor *x = &p->tensor[t];
    for (int r = g->readers.begin[t]; r < g->readers.begin[t + 1]; r++)
        bitset_union(&span, &before[g->readers.item[r]]);
    for (size_t w = 0; w < (span.n_bits + 63) / 64; w++) {
        if (x->keep)
            span.words[w] = ~(uint64_t)0;
        if (x->producer >= 0)
            span.words[w] &= after[x->producer].words[w];
    }
    for (int r = g->readers.begin[t]; r < g->readers.begin[t + 1]; r++)
        bitset_remove(&span, (size_t)g->readers.item[r]);
    return span;
}

static void add_tensor(const RematProblem *p, const Bitset *span, int64_t bytes, int64_t *sum)
{
    for (int n = 0; n < p->n_nodes; n++)
        if (bitset_has(span, (size_t)n))
            sum[n] += bytes;
}

int64_t reorder_bound(Pool *scratch, const RematProblem *p, const NodeGraph *g)
{
    if (p->n_nodes > MAX_NODES)
        return 0;
    Pool *pool = pool_new_child(scratch);
    Bitset *after = closure(pool, &g->succ, true), *before = closure(pool, &g->pred, false);
    int64_t *sum = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int64_t), worst = 0;
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *node = &p->node[n];
        sum[n] = node->workspace;
        for (int k = 0; k < node->n_out; k++)
            sum[n] += may_merge(p, node, k) ? 0 : p->tensor[node->out[k]].bytes;
        for (int k = 0; k < node->n_in; k++)
            sum[n] += p->tensor[node->in[k]].persistent ? 0 : p->tensor[node->in[k]].bytes;
    }
    for (int t = 0; t < p->n_tensors; t++) {
        if (p->tensor[t].persistent || p->tensor[t].bytes == 0)
            continue;
        Pool *row = pool_new_child(pool);
        Bitset span = spanned_by(row, p, g, before, after, t);
        add_tensor(p, &span, p->tensor[t].bytes, sum);
        pool_free(row);
    }
    for (int n = 0; n < p->n_nodes; n++)
        worst = sum[n] > worst ? sum[n] : worst;
    pool_free(pool);
    return p->persistent_bytes + worst;
}
