/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/bounds/cut_relaxation.h"

#include "passes/remat/model/readers.h"
#include <float.h>
#include <limits.h>
#include <string.h>

enum { SOURCE, SINK, COST_BITS = 44, WEIGHT_BITS = 29 };
static const double MOST_COST = DBL_MAX / INT_MAX;

typedef enum Side { OPEN, PAST, FUTURE } Side; /* of t, for certain */

typedef struct Build {
    const CutProblem *problem;
    const RematProblem *p;
    CutRelaxation *m;
    Side *side;      /* by node */
    int *ran, *done; /* by node: the vertices of e and h */
    int64_t *weight; /* by tensor: bytes that k_x adds at t */
    int room;
} Build;

/* Costs below 0 or undefined count as 0, which can only lower the bound; so do those of which a
 * sum might not be finite. */
static double cost_of(const RematNode *node)
{
    return node->cost > 0 && node->cost < MOST_COST ? node->cost : 0;
}

static CutScale find_scale(const RematProblem *p)
{
    double cost = 0, bytes = 0;
    int exponent;
    CutScale s = {0, 0};
    for (int n = 0; n < p->n_nodes; n++)
        cost += cost_of(&p->node[n]);
    for (int t = 0; t < p->n_tensors; t++)
        bytes += (double)p->tensor[t].bytes;
    frexp(cost, &exponent); /* cost < 2^exponent, even when the sum was rounded down */
    s.cost_exponent = COST_BITS - 1 - (cost > 0 ? exponent : 0);
    frexp(bytes, &exponent);
    s.shift = exponent > WEIGHT_BITS - 1 ? exponent - (WEIGHT_BITS - 1) : 0;
    return s;
}

CutProblem *cut_problem_new(Pool *pool, const RematProblem *p, bool rerun)
{
    CutProblem *m = POOL_NEW(pool, CutProblem);
    *m = (CutProblem){p, rerun, find_scale(p), remat_readers(pool, p)};
    return m;
}

/* Ancestors and descendants of t by first runs: a producer runs before its readers, and who reads a
 * version of a tensor before who overwrites it. */
static void mark_before(const Build *b, int n, Side side)
{
    const RematNode *node = &b->p->node[n];
    const Csr *readers = &b->problem->readers;
    for (int k = 0; k < node->n_in; k++)
        if (b->p->tensor[node->in[k]].producer >= 0)
            b->side[b->p->tensor[node->in[k]].producer] = side;
    for (int k = 0; k < node->n_overwrites; k++) {
        int t = node->overwrites[k];
        for (int r = readers->begin[t]; r < readers->begin[t + 1]; r++)
            if (readers->item[r] != n)
                b->side[readers->item[r]] = side;
    }
}

static bool follows(const Build *b, int n, int t)
{
    const RematNode *node = &b->p->node[n];
    const Csr *readers = &b->problem->readers;
    for (int k = 0; k < node->n_in; k++) {
        int producer = b->p->tensor[node->in[k]].producer;
        if (producer == t || (producer >= 0 && b->side[producer] == FUTURE))
            return true;
    }
    for (int k = 0; k < node->n_overwrites; k++) {
        int x = node->overwrites[k];
        for (int r = readers->begin[x]; r < readers->begin[x + 1]; r++) {
            int u = readers->item[r];
            if (u != n && (u == t || b->side[u] == FUTURE))
                return true;
        }
    }
    return false;
}

static void find_sides(Build *b)
{
    int t = b->m->node;
    b->side[t] = PAST;
    for (int n = t; n >= 0; n--)
        if (b->side[n] == PAST)
            mark_before(b, n, PAST);
    for (int n = t + 1; n < b->p->n_nodes; n++)
        if (follows(b, n, t))
            b->side[n] = FUTURE;
}

/* An output that can be written over no input has room of its own; one that can be written over one
 * input only, when that input lives on; one with several needs none for certain. */
static void add_output(Build *b, const RematNode *node, int out)
{
    int64_t bytes = b->p->tensor[node->out[out]].bytes;
    int only = -1, n = 0;
    for (int k = 0; k < node->n_in_place; k++) {
        int in = node->in[node->in_place[k].in];
        if (node->in_place[k].out != out || b->p->tensor[in].persistent ||
            b->p->tensor[in].bytes != bytes || in == only)
            continue;
        only = in;
        n++;
    }
    if (b->p->tensor[node->out[out]].persistent)
        return; /* counted with the persistent ones */
    if (n == 0)
        b->m->fixed_bytes += bytes;
    else if (n == 1)
        b->weight[only] += bytes;
}

/* The persistent tensors that exist for certain, and what t needs beside them. */
static void add_operands(Build *b)
{
    const RematNode *node = &b->p->node[b->m->node];
    for (int x = 0; x < b->p->n_tensors; x++) {
        const RematTensor *tensor = &b->p->tensor[x];
        if (!tensor->persistent)
            b->weight[x] = tensor->bytes;
        else if (tensor->producer < 0 || b->side[tensor->producer] == PAST)
            b->m->fixed_bytes += tensor->bytes;
    }
    for (int k = 0; k < node->n_in; k++) {
        if (!b->p->tensor[node->in[k]].persistent)
            b->m->fixed_bytes += b->p->tensor[node->in[k]].bytes;
        b->weight[node->in[k]] = 0;
    }
    for (int k = 0; k < node->n_out; k++)
        b->weight[node->out[k]] = 0;
    for (int k = 0; k < node->n_out; k++)
        add_output(b, node, k);
    b->m->fixed_bytes += node->workspace;
}

static void add_term(Build *b, int from, int to, CutTerm term)
{
    if (from == to || from == SINK || to == SOURCE)
        return; /* never paid */
    int e = flow_edge(b->m->net, from, to);
    if (e == b->room) {
        size_t room = b->room ? 2 * (size_t)b->room : 256;
        b->m->term = pool_grow(b->m->pool, b->m->term, (size_t)b->room * sizeof(CutTerm),
                               room * sizeof(CutTerm));
        b->room = (int)room;
    }
    b->m->term[e] = term;
}

/* from = 1 requires to = 1. */
static void require(Build *b, int from, int to)
{
    add_term(b, from, to, (CutTerm){.tensor = -1});
}

/* Does a node that has run for certain overwrite something that n reads? */
static bool *find_stale(Build *b)
{
    bool *stale = POOL_ARRAY(b->m->pool, (size_t)b->p->n_nodes + 1, bool);
    const Csr *readers = &b->problem->readers;
    for (int n = 0; n < b->p->n_nodes; n++)
        for (int k = 0; b->side[n] == PAST && k < b->p->node[n].n_overwrites; k++) {
            int t = b->p->node[n].overwrites[k];
            for (int r = readers->begin[t]; r < readers->begin[t + 1]; r++)
                stale[readers->item[r]] = true;
        }
    return stale;
}

static void add_vertices(Build *b)
{
    const bool *stale = find_stale(b);
    for (int n = 0; n < b->p->n_nodes; n++) {
        bool once = stale[n] || n == b->m->node || !cut_rerun(b->problem, n);
        b->ran[n] = b->done[n] = SINK;
        if (b->side[n] == FUTURE)
            continue;
        b->ran[n] = b->side[n] == PAST ? SOURCE : flow_vertex(b->m->net);
        b->done[n] = once ? b->ran[n] : flow_vertex(b->m->net);
    }
}

/* What n's own variables pay and require. */
static void add_node(Build *b, int n)
{
    const RematNode *node = &b->p->node[n];
    const Csr *readers = &b->problem->readers;
    if (b->side[n] == FUTURE)
        return;
    if (b->done[n] != b->ran[n]) {
        double units = floor(cut_units(&b->problem->scale, cost_of(node)));
        if (units > 0)
            add_term(b, b->ran[n], b->done[n], (CutTerm){(int64_t)units, 0, 0, -1});
        require(b, b->done[n], b->ran[n]);
    }
    if (b->side[n] != OPEN)
        return;
    for (int k = 0; k < node->n_in; k++)
        if (b->p->tensor[node->in[k]].producer >= 0)
            require(b, b->ran[n], b->ran[b->p->tensor[node->in[k]].producer]);
    for (int k = 0; k < node->n_overwrites; k++) {
        int t = node->overwrites[k];
        for (int r = readers->begin[t]; r < readers->begin[t + 1]; r++)
            require(b, b->ran[n], b->done[readers->item[r]]);
    }
}

static void add_kept(Build *b, int x)
{
    b->m->fixed_bytes += b->weight[x];
    b->m->kept[b->m->n_kept++] = x;
}

/* The vertex that is 1 when every reader is done: SOURCE, one reader's, or a new one. */
static int readers_vertex(Build *b, int x)
{
    const Csr *readers = &b->problem->readers;
    int only = SOURCE, n = 0;
    if (b->p->tensor[x].keep)
        return SINK;
    for (int r = readers->begin[x]; r < readers->begin[x + 1]; r++) {
        int done = b->done[readers->item[r]];
        if (done == SINK)
            return SINK;
        n += done != SOURCE;
        only = done != SOURCE ? done : only;
    }
    if (n <= 1)
        return only;
    int all = flow_vertex(b->m->net);
    for (int r = readers->begin[x]; r < readers->begin[x + 1]; r++)
        require(b, all, b->done[readers->item[r]]);
    return all;
}

static void add_tensor(Build *b, int x)
{
    int producer = b->p->tensor[x].producer, from = producer < 0 ? SOURCE : b->done[producer];
    if (b->weight[x] == 0 || from == SINK)
        return;
    int to = readers_vertex(b, x);
    if (from == SOURCE && to == SINK)
        add_kept(b, x);
    else
        add_term(b, from, to,
                 (CutTerm){0, b->weight[x] >> b->problem->scale.shift, b->weight[x], x});
}

CutRelaxation *cut_relaxation_new(Pool *pool, const CutProblem *problem, int node)
{
    const RematProblem *p = problem->p;
    size_t n_nodes = (size_t)p->n_nodes + 1, n_tensors = (size_t)p->n_tensors + 1;
    CutRelaxation *m = POOL_NEW(pool, CutRelaxation);
    *m = (CutRelaxation){problem, pool,           node, 0, POOL_ARRAY(pool, n_tensors, int),
                         0,       flow_new(pool), NULL};
    Build b = {problem,
               p,
               m,
               POOL_ARRAY(pool, n_nodes, Side),
               POOL_ARRAY(pool, n_nodes, int),
               POOL_ARRAY(pool, n_nodes, int),
               POOL_ARRAY(pool, n_tensors, int64_t),
               0};
    flow_vertex(m->net);
    flow_vertex(m->net);
    find_sides(&b);
    add_operands(&b);
    add_vertices(&b);
    for (int n = 0; n < p->n_nodes; n++)
        add_node(&b, n);
    for (int x = 0; x < p->n_tensors; x++)
        add_tensor(&b, x);
    return m;
}

MinimumCut cut_relaxation_cut(CutRelaxation *m, int64_t cost_price, int64_t weight_price,
                              int64_t *work)
{
    MinimumCut cut = {0};
    for (int e = 0; e < flow_n_edges(m->net); e++) {
        const CutTerm *t = &m->term[e];
        bool free_of_price = t->tensor >= 0 || t->cost > 0;
        flow_set_capacity(m->net, e,
                          free_of_price ? cost_price * t->cost + weight_price * t->weight
                                        : FLOW_INFINITE);
    }
    cut.value = flow_max(m->net, SOURCE, SINK, work);
    for (int e = 0; e < flow_n_edges(m->net); e++)
        if (flow_in_cut(m->net, e)) {
            cut.cost += m->term[e].cost;
            cut.weight += m->term[e].weight;
            cut.bytes += m->term[e].bytes;
        }
    return cut;
}
