/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/papers/chain.h"

#include "ir/support/vec.h"

enum { SMALL_PART = 64 };

typedef VEC(int) IntVec;

/* What crosses from view nodes up to u to later ones. */
typedef struct Crossing {
    IntVec node;
    const int *last_reader;
} Crossing;

static void move_on(Pool *pool, Crossing *c, int u)
{
    size_t n = 0;
    for (size_t k = 0; k < c->node.len; k++)
        if (c->last_reader[c->node.data[k]] > u)
            c->node.data[n++] = c->node.data[k];
    c->node.len = n;
    if (c->last_reader[u] > u)
        vec_push(pool, &c->node, u);
}

/* The node that all but a small part of what crosses comes from; -1 when there is none. */
static int find_crosser(const ForwardView *v, const Crossing *c)
{
    int most = -1;
    int64_t bytes = 0;
    for (size_t k = 0; k < c->node.len; k++) {
        int u = c->node.data[k];
        bytes += v->bytes[u];
        most = most < 0 || v->bytes[u] > v->bytes[most] ? u : most;
    }
    if (most < 0 || v->bytes[most] == 0 || (bytes - v->bytes[most]) > v->bytes[most] / SMALL_PART)
        return -1;
    return most;
}

/* crosser[u]: the node that crosses a cut after view node u; -1 = no cut there. */
static void find_cuts(Pool *pool, const ForwardView *v, int *crosser)
{
    int *last_reader = POOL_ARRAY(pool, (size_t)v->n + 1, int);
    for (int u = 0; u < v->n; u++)
        for (int k = v->succ.begin[u]; k < v->succ.begin[u + 1]; k++)
            if (v->succ.item[k] > last_reader[u])
                last_reader[u] = v->succ.item[k];
    Crossing c = {.last_reader = last_reader};
    int last = -1;
    for (int u = 0; u < v->n; u++) {
        move_on(pool, &c, u);
        crosser[u] = find_crosser(v, &c);
        if (crosser[u] == last) /* cut where the value is made, not again later */
            crosser[u] = -1;
        else if (crosser[u] >= 0)
            last = crosser[u];
    }
}

static void thin_cuts(const ForwardView *v, int max_stages, int *crosser)
{
    int64_t total = 0, bytes = 0;
    int n = 1;
    for (int u = 0; u < v->n; u++) {
        total += v->bytes[u];
        n += crosser[u] >= 0;
    }
    for (int u = 0; u < v->n && n > max_stages; u++) {
        bytes += v->bytes[u];
        if (crosser[u] >= 0 && bytes < total / max_stages + 1)
            crosser[u] = -1;
        else if (crosser[u] >= 0)
            bytes = 0;
    }
}

static int stage_of_read(const Chain *c, int tensor)
{
    int producer = c->v->p->tensor[tensor].producer;
    if (producer < 0 || c->stage_of[producer] < 0)
        return c->n - 1;
    int stage = c->stage_of[producer] + (c->crosses[producer] ? 1 : 0);
    return stage < c->n ? stage : c->n - 1;
}

static void place_backward(Chain *c, int n)
{
    const RematNode *node = &c->v->p->node[n];
    c->stage_of[n] = c->n - 1;
    for (int k = 0; k < node->n_in; k++) {
        int stage = stage_of_read(c, node->in[k]);
        c->stage_of[n] = stage < c->stage_of[n] ? stage : c->stage_of[n];
    }
}

static Csr group(Pool *pool, const Chain *c, bool forward)
{
    Csr csr = csr_new(pool, c->n);
    for (int store = 0; store < 2; store++) {
        for (int n = 0; n < c->v->p->n_nodes; n++) {
            if (c->stage_of[n] < 0 || (c->v->index[n] >= 0) != forward)
                continue;
            if (store)
                csr_store(&csr, c->stage_of[n], n);
            else
                csr_count(&csr, c->stage_of[n]);
        }
        if (!store)
            csr_close(&csr, pool, c->v->p->n_nodes);
    }
    return csr;
}

Chain *chain_new(Pool *pool, const ForwardView *v, int max_stages)
{
    Chain *c = POOL_NEW(pool, Chain);
    size_t n_nodes = (size_t)v->p->n_nodes + 1;
    int *crosser = POOL_ARRAY(pool, (size_t)v->n + 1, int), stage = 0;
    *c = (Chain){.v = v, .stage_of = POOL_ARRAY(pool, n_nodes, int)};
    c->crosses = POOL_ARRAY(pool, n_nodes, bool);
    find_cuts(pool, v, crosser);
    thin_cuts(v, max_stages, crosser);
    for (int u = 0; u < v->n; u++) {
        c->stage_of[v->node[u]] = v->late[v->node[u]] ? -1 : stage;
        if (crosser[u] < 0 || u == v->n - 1)
            continue;
        c->crosses[v->node[crosser[u]]] = true;
        stage++;
    }
    c->n = stage + 1;
    for (int n = 0; n < v->p->n_nodes; n++) {
        if (v->index[n] >= 0)
            continue;
        if (v->late[n])
            c->stage_of[n] = -1;
        else
            place_backward(c, n);
    }
    c->forward = group(pool, c, true);
    c->backward = group(pool, c, false);
    return c;
}

static void run_stage(StageRuns *r, const Csr *nodes, int stage)
{
    for (int k = nodes->begin[stage]; k < nodes->begin[stage + 1]; k++) {
        if (r->len == r->cap) {
            int cap = 2 * r->cap + 64;
            r->node = pool_grow(r->pool, r->node, (size_t)r->len * sizeof *r->node,
                                (size_t)cap * sizeof *r->node);
            r->cap = cap;
        }
        r->node[r->len++] = nodes->item[k];
    }
}

void run_forward(StageRuns *r, int first, int end)
{
    for (int s = first; s < end; s++)
        run_stage(r, &r->chain->forward, s);
}

void run_backward(StageRuns *r, int stage)
{
    run_stage(r, &r->chain->backward, stage);
}
