/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/papers/tree_decomposition.h"

#include "ir/support/heap.h"
#include "ir/support/vec.h"

#include <string.h>

typedef VEC(int) IntVec;

/* The graph that is left, with the edges filled in so far, and a heap of its vertices. */
typedef struct Elimination {
    Pool *pool;
    int n;
    IntVec *near;  /* by vertex: its neighbours */
    int64_t *fill; /* by vertex: pairs of neighbours that are not neighbours */
    int *degree;   /* by vertex, as the heap knows it */
    int *heap, *place, heap_len;
    int *mark, stamp;
    int *order_of; /* by vertex: when it was eliminated */
    IntVec *bag;   /* by vertex: its neighbours at that time */
} Elimination;

static bool goes_first(const Elimination *e, int a, int b)
{
    if (e->fill[a] != e->fill[b])
        return e->fill[a] < e->fill[b];
    if (e->degree[a] != e->degree[b])
        return e->degree[a] < e->degree[b];
    return a < b;
}

static void placed(Elimination *e, int v, size_t i)
{
    e->place[v] = (int)i;
}

HEAP_DEFINE(heap, Elimination, int, goes_first, placed)

/* Moves the vertex to where its fill belongs. */
static void fix_place(Elimination *e, int v)
{
    heap_fix(e, e->heap, (size_t)e->heap_len, (size_t)e->place[v]);
}

static void mark_near(Elimination *e, int v)
{
    e->stamp++;
    for (size_t k = 0; k < e->near[v].len; k++)
        e->mark[e->near[v].data[k]] = e->stamp;
}

static void count_fill(Elimination *e, int v)
{
    int64_t n = (int64_t)e->near[v].len, joined = 0;
    mark_near(e, v);
    for (size_t k = 0; k < e->near[v].len; k++) {
        const IntVec *near = &e->near[e->near[v].data[k]];
        for (size_t i = 0; i < near->len; i++)
            joined += e->mark[near->data[i]] == e->stamp;
    }
    e->fill[v] = (n * (n - 1) - joined) / 2;
    e->degree[v] = (int)n;
}

static void remove_from(IntVec *list, int v)
{
    for (size_t k = 0; k < list->len; k++)
        if (list->data[k] == v) {
            list->data[k] = list->data[--list->len];
            return;
        }
}

/* A new edge a-b saves one to fill for whoever has both as neighbours. */
static void add_edge(Elimination *e, int a, int b)
{
    mark_near(e, a);
    for (size_t k = 0; k < e->near[b].len; k++) {
        int w = e->near[b].data[k];
        if (e->mark[w] != e->stamp)
            continue;
        e->fill[w]--;
        fix_place(e, w);
    }
    vec_push(e->pool, &e->near[a], b);
    vec_push(e->pool, &e->near[b], a);
}

static void eliminate(Elimination *e, int v)
{
    IntVec *bag = &e->bag[v];
    *bag = e->near[v];
    for (size_t k = 0; k < bag->len; k++)
        remove_from(&e->near[bag->data[k]], v);
    if (e->fill[v] > 0)
        for (size_t i = 0; i < bag->len; i++)
            for (size_t k = i + 1; k < bag->len; k++) {
                int a = bag->data[i], b = bag->data[k];
                bool joined = false;
                for (size_t x = 0; x < e->near[a].len && !joined; x++)
                    joined = e->near[a].data[x] == b;
                if (!joined)
                    add_edge(e, a, b);
            }
    for (size_t k = 0; k < bag->len; k++) {
        count_fill(e, bag->data[k]);
        fix_place(e, bag->data[k]);
    }
}

static Elimination elimination_new(Pool *pool, int n, const int *edges, int n_edges)
{
    Elimination e = {.pool = pool, .n = n};
    size_t size = (size_t)n + 1;
    e.near = POOL_ARRAY(pool, size, IntVec);
    e.bag = POOL_ARRAY(pool, size, IntVec);
    e.fill = POOL_ARRAY(pool, size, int64_t);
    e.degree = POOL_ARRAY(pool, size, int);
    e.heap = POOL_ARRAY(pool, size, int);
    e.place = POOL_ARRAY(pool, size, int);
    e.mark = POOL_ARRAY(pool, size, int);
    e.order_of = POOL_ARRAY(pool, size, int);
    for (int k = 0; k < n_edges; k++)
        for (int side = 0; side < 2; side++)
            vec_push(pool, &e.near[edges[2 * k + side]], edges[2 * k + 1 - side]);
    for (int v = 0; v < n; v++) { /* each neighbour once, and no vertex its own */
        e.stamp++;
        e.mark[v] = e.stamp;
        size_t len = 0;
        for (size_t k = 0; k < e.near[v].len; k++) {
            int w = e.near[v].data[k];
            if (e.mark[w] != e.stamp)
                e.near[v].data[len++] = w;
            e.mark[w] = e.stamp;
        }
        e.near[v].len = len;
    }
    for (int v = 0; v < n; v++)
        count_fill(&e, v);
    for (int v = 0; v < n; v++) {
        e.heap[e.heap_len] = v;
        heap_up(&e, e.heap, (size_t)e.heap_len++);
    }
    return e;
}

/* Bags by vertex become bags by number: of neighbours one of which holds the other, one is left.
 * The bag of v is v and its neighbours when it went; its parent is that of the first of these to
 * go, which holds all of them but v.  So only the parent can be the subset, and then it is one
 * vertex smaller. */
typedef struct Shrink {
    int *into;  /* by vertex: the vertex whose bag stands for its bag */
    int *above; /* by vertex: the vertex of the parent bag, -1 = none */
} Shrink;

static int stands_for(Shrink *s, int v)
{
    while (s->into[v] != v)
        v = s->into[v] = s->into[s->into[v]];
    return v;
}

/* above_of: the same as above once bags are merged.  u is the last bag that v's has taken in: what
 * v's bag shares with the next one up is what u's does. */
static void shrink(Shrink *s, const Elimination *e, const int *order, int *above_of)
{
    for (int v = 0; v < e->n; v++)
        s->into[v] = v;
    for (int k = 0; k < e->n; k++) {
        int v = order[k], u = v, up = s->above[v];
        if (s->into[v] != v)
            continue;
        for (; up >= 0 && s->into[up] == up && e->bag[u].len == e->bag[up].len + 1;
             up = s->above[u]) {
            s->into[up] = v;
            u = up;
        }
        above_of[v] = up;
    }
}

static void find_parents(const Elimination *e, int *above)
{
    for (int v = 0; v < e->n; v++) {
        above[v] = -1;
        for (size_t k = 0; k < e->bag[v].len; k++) {
            int w = e->bag[v].data[k];
            if (above[v] < 0 || e->order_of[w] < e->order_of[above[v]])
                above[v] = w;
        }
    }
}

static TreeDecomposition number_bags(Pool *pool, Elimination *e, Shrink *s, const int *order,
                                     const int *above)
{
    TreeDecomposition t = {.parent = POOL_ARRAY(pool, (size_t)e->n + 1, int)};
    int *number = POOL_ARRAY(e->pool, (size_t)e->n + 1, int), items = 0, root = -1;
    for (int k = 0; k < e->n; k++)
        if (s->into[order[k]] == order[k])
            number[order[k]] = t.n_bags++;
    t.bag = csr_new(pool, t.n_bags);
    for (int store = 0; store < 2; store++) {
        for (int v = 0; v < e->n; v++) {
            if (s->into[v] != v)
                continue;
            for (size_t k = 0; k <= e->bag[v].len; k++, items++) {
                if (store)
                    csr_store(&t.bag, number[v], k ? e->bag[v].data[k - 1] : v);
                else
                    csr_count(&t.bag, number[v]);
            }
            t.width = (int)e->bag[v].len > t.width ? (int)e->bag[v].len : t.width;
        }
        if (!store)
            csr_close(&t.bag, pool, items);
    }
    for (int k = e->n - 1; k >= 0; k--) { /* roots of further components hang below the first */
        int v = order[k];
        if (s->into[v] != v)
            continue;
        t.parent[number[v]] = above[v] >= 0 ? number[stands_for(s, above[v])] : root;
        root = root < 0 && above[v] < 0 ? number[v] : root;
    }
    return t;
}

TreeDecomposition tree_decomposition(Pool *pool, int n_vertices, const int *edges, int n_edges)
{
    Pool *scratch = pool_new_child(pool);
    Elimination e = elimination_new(scratch, n_vertices, edges, n_edges);
    size_t size = (size_t)n_vertices + 1;
    int *order = POOL_ARRAY(scratch, size, int), *above_of = POOL_ARRAY(scratch, size, int);
    for (int k = 0; k < n_vertices; k++) {
        order[k] = heap_pop(&e, e.heap, (size_t)e.heap_len--);
        e.order_of[order[k]] = k;
        eliminate(&e, order[k]);
    }
    Shrink s = {POOL_ARRAY(scratch, size, int), POOL_ARRAY(scratch, size, int)};
    find_parents(&e, s.above);
    shrink(&s, &e, order, above_of);
    TreeDecomposition t = number_bags(pool, &e, &s, order, above_of);
    pool_free(scratch);
    return t;
}
