/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Families of lower sets (see kusumoto.h). */
#include "passes/remat/papers/kusumoto.h"

#include "ir/support/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANCESTOR_SETS = 1000, MAX_SETS = 300000, MAX_UNITS = 4096, MIN_UNITS = 64 };
static const int64_t MAX_BLOCKS = 4000000; /* stored; 96 MB */
static const double MAX_DENSE = 8e6;       /* blocks times units of the ancestor family */

static void add_outside(const ForwardGraph *g, const LowerSet *l, const Bitset *marked,
                        int64_t *sum)
{
    for (int u = 0; u < g->n; u++)
        if (bitset_has(marked, (size_t)u) && !bitset_has(&l->nodes, (size_t)u))
            *sum += g->bytes[u];
}

/* Boundary, successors outside and their other predecessors outside.  next and around: empty. */
static void measure_marked(const ForwardGraph *g, LowerSet *l, Bitset *next, Bitset *around,
                           int *boundary)
{
    for (int u = 0; u < g->n; u++) {
        if (!bitset_has(&l->nodes, (size_t)u))
            continue;
        l->size++;
        l->time += g->time[u];
        l->bytes += g->bytes[u];
        bool leaves = false;
        for (int k = g->succ.begin[u]; k < g->succ.begin[u + 1]; k++)
            if (!bitset_has(&l->nodes, (size_t)g->succ.item[k])) {
                leaves = true;
                bitset_add(next, (size_t)g->succ.item[k]);
            }
        if (leaves) {
            boundary[l->n_boundary++] = u;
            l->boundary_bytes += g->bytes[u];
        }
    }
    for (int w = 0; w < g->n; w++)
        for (int k = g->pred.begin[w]; bitset_has(next, (size_t)w) && k < g->pred.begin[w + 1]; k++)
            bitset_add(around, (size_t)g->pred.item[k]);
    add_outside(g, l, next, &l->after);
    add_outside(g, l, around, &l->after);
}

static void measure_set(Pool *pool, const ForwardGraph *g, LowerSet *l)
{
    Pool *scratch = pool_new_child(pool);
    Bitset next = bitset_new(scratch, (size_t)g->n), around = bitset_new(scratch, (size_t)g->n);
    int *boundary = POOL_ARRAY(scratch, (size_t)g->n + 1, int);
    *l = (LowerSet){.nodes = l->nodes};
    measure_marked(g, l, &next, &around, boundary);
    l->boundary = pool_grow(pool, boundary, (size_t)l->n_boundary * sizeof *boundary,
                            (size_t)l->n_boundary * sizeof *boundary + 1);
    pool_free(scratch);
}

static int compare_nodes(const LowerSet *x, const LowerSet *y)
{
    return memcmp(x->nodes.words, y->nodes.words, (x->nodes.n_bits + 63) / 64 * sizeof(uint64_t));
}

static int compare_boundaries(const void *a, const void *b)
{
    const LowerSet *x = a, *y = b;
    if (x->boundary_bytes != y->boundary_bytes)
        return x->boundary_bytes < y->boundary_bytes ? -1 : 1;
    return x->size != y->size ? x->size - y->size : compare_nodes(x, y);
}

static int compare_sizes(const void *a, const void *b)
{
    const LowerSet *x = a, *y = b;
    return x->size != y->size ? x->size - y->size : compare_nodes(x, y);
}

/* ---- the ancestors of each node ---- */

static bool is_late(Family *f)
{
    f->limited |= f->g->until > 0 && clock_seconds() >= f->g->until;
    return f->limited;
}

/* Each takes a walk over the graph: none when time runs out, which only graphs of tens of thousands
 * of vertices live to see. */
static void add_ancestor_sets(Family *f)
{
    const ForwardGraph *g = f->g;
    for (int u = 0; u < g->n; u++) {
        if (is_late(f))
            return;
        LowerSet *l = &f->set[u];
        l->nodes = bitset_new(f->pool, (size_t)g->n);
        for (int k = g->pred.begin[u]; k < g->pred.begin[u + 1]; k++)
            bitset_union(&l->nodes, &f->set[g->pred.item[k]].nodes);
        bitset_add(&l->nodes, (size_t)u);
    }
    for (int u = 0; u < g->n && !is_late(f); u++)
        measure_set(f->pool, g, &f->set[u]);
    if (f->limited)
        return;
    f->n = g->n;
    if (f->n > MAX_ANCESTOR_SETS) {
        qsort(f->set, (size_t)f->n, sizeof *f->set, compare_boundaries);
        f->n = MAX_ANCESTOR_SETS;
    }
}

/* The empty set, and V unless it is there. */
static void add_ends(Family *f)
{
    const ForwardGraph *g = f->g;
    bool whole = false;
    for (int i = 0; i < f->n; i++)
        whole |= f->set[i].size == g->n;
    for (int extra = 0; extra < (whole ? 1 : 2); extra++) {
        LowerSet *l = &f->set[f->n++];
        l->nodes = bitset_new(f->pool, (size_t)g->n);
        for (int u = 0; extra == 1 && u < g->n; u++)
            bitset_add(&l->nodes, (size_t)u);
        measure_set(f->pool, g, l);
    }
}

/* ---- all lower sets ---- */

typedef struct Enumeration {
    Family *f;
    int *slot; /* open addressing: index of a set + 1 */
    size_t n_slots;
    int n;
} Enumeration;

static size_t hash_nodes(const Bitset *b)
{
    uint64_t h = 0;
    for (size_t w = 0; w < (b->n_bits + 63) / 64; w++)
        h = (h ^ b->words[w]) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return (size_t)h;
}

/* False when it is there already. */
static bool add_distinct(Enumeration *e, const Bitset *nodes)
{
    size_t bytes = (nodes->n_bits + 63) / 64 * sizeof(uint64_t);
    size_t i = hash_nodes(nodes) % e->n_slots;
    for (; e->slot[i]; i = (i + 1) % e->n_slots)
        if (memcmp(e->f->set[e->slot[i] - 1].nodes.words, nodes->words, bytes) == 0)
            return false;
    Bitset *own = &e->f->set[e->n++].nodes;
    *own = bitset_new(e->f->pool, nodes->n_bits);
    if (bytes)
        memcpy(own->words, nodes->words, bytes);
    e->slot[i] = e->n;
    return true;
}

static bool may_follow(const ForwardGraph *g, const Bitset *set, int v)
{
    if (bitset_has(set, (size_t)v))
        return false;
    for (int k = g->pred.begin[v]; k < g->pred.begin[v + 1]; k++)
        if (!bitset_has(set, (size_t)g->pred.item[k]))
            return false;
    return true;
}

/* Breadth first from the empty set.  False when there are more than max_sets. */
static bool add_all_sets(Family *f, int max_sets)
{
    Pool *scratch = pool_new_child(f->pool);
    Enumeration e = {.f = f, .n_slots = 2 * (size_t)max_sets + 3};
    e.slot = POOL_ARRAY(scratch, e.n_slots, int);
    Bitset larger = bitset_new(scratch, (size_t)f->g->n);
    add_distinct(&e, &larger);
    for (int i = 0; i < e.n && e.n <= max_sets; i++) {
        if (larger.n_bits)
            memcpy(larger.words, f->set[i].nodes.words, (larger.n_bits + 63) / 64 * 8);
        for (int v = 0; v < f->g->n && e.n <= max_sets; v++)
            if (may_follow(f->g, &f->set[i].nodes, v)) {
                bitset_add(&larger, (size_t)v);
                add_distinct(&e, &larger);
                bitset_remove(&larger, (size_t)v);
            }
    }
    f->n = e.n;
    pool_free(scratch);
    for (int i = 0; i < f->n && f->n <= max_sets; i++)
        measure_set(f->pool, f->g, &f->set[i]);
    return f->n <= max_sets;
}

/* ---- blocks ---- */

static bool is_subset(const LowerSet *a, const LowerSet *b)
{
    if (a->size >= b->size)
        return false;
    for (size_t w = 0; w < (a->nodes.n_bits + 63) / 64; w++)
        if (a->nodes.words[w] & ~b->nodes.words[w])
            return false;
    return true;
}

bool kusumoto_block(const Family *f, int from, int to, Block *block)
{
    const LowerSet *a = &f->set[from], *b = &f->set[to];
    if (!is_subset(a, b))
        return false;
    *block = (Block){.from = from, .need = 2 * (b->bytes - a->bytes) + b->after};
    double time = b->time - a->time, total = f->set[f->n - 1].time;
    for (int k = 0; k < b->n_boundary; k++) {
        int u = b->boundary[k];
        if (bitset_has(&a->nodes, (size_t)u))
            continue;
        block->cached += f->g->bytes[u];
        time -= f->g->time[u];
    }
    block->units = total > 0 ? (int)lround(time / total * f->units) : 0;
    return true;
}

static int64_t count_blocks(const Family *f)
{
    int64_t n = 0;
    for (int b = 0; b < f->n && n <= MAX_BLOCKS; b++)
        for (int a = 0; a < b; a++)
            n += is_subset(&f->set[a], &f->set[b]);
    return n;
}

static void store_blocks(Family *f, int64_t total)
{
    f->block_begin = POOL_ARRAY(f->pool, (size_t)f->n + 1, int64_t);
    f->block = POOL_ARRAY(f->pool, (size_t)total + 1, Block);
    int64_t n = 0;
    for (int b = 0; b < f->n; b++) {
        f->block_begin[b] = n;
        for (int a = 0; a < b; a++)
            n += kusumoto_block(f, a, b, &f->block[n]);
    }
    f->block_begin[f->n] = n;
}

/* Times that are whole numbers with a small sum, as the paper's are, stay exact. */
static int units_of(const ForwardGraph *g, double most)
{
    double total = 0;
    bool whole = true;
    for (int v = 0; v < g->n; v++) {
        total += g->time[v];
        whole &= g->time[v] == floor(g->time[v]);
    }
    if (whole && total <= MAX_UNITS)
        return (int)total;
    return most > MAX_UNITS ? MAX_UNITS : most < MIN_UNITS ? MIN_UNITS : (int)most;
}

static Family *new_family(Pool *pool, const ForwardGraph *g, int max_sets, int64_t max_steps)
{
    Family *f = POOL_NEW(pool, Family);
    *f = (Family){.g = g, .pool = pool, .max_steps = max_steps};
    f->set = POOL_ARRAY(pool, (size_t)max_sets + 2, LowerSet);
    return f;
}

Family *kusumoto_family_ancestors(Pool *pool, const ForwardGraph *g, int64_t max_steps)
{
    Family *f = new_family(pool, g, g->n, max_steps);
    add_ancestor_sets(f);
    add_ends(f);
    qsort(f->set, (size_t)f->n, sizeof *f->set, compare_sizes);
    int64_t blocks = count_blocks(f);
    f->units = units_of(g, MAX_DENSE / (double)(blocks + 1));
    store_blocks(f, blocks);
    return f;
}

Family *kusumoto_family_all(Pool *pool, const ForwardGraph *g, int64_t max_steps)
{
    double pairs = sqrt((double)max_steps) + 1;
    int max_sets = pairs < MAX_SETS ? (int)pairs : MAX_SETS;
    Pool *own = pool_new_child(pool);
    Family *f = new_family(own, g, max_sets, max_steps);
    if (!add_all_sets(f, max_sets)) {
        pool_free(own);
        f = kusumoto_family_ancestors(pool, g, max_steps);
        f->limited = true;
        return f;
    }
    qsort(f->set, (size_t)f->n, sizeof *f->set, compare_sizes);
    f->units = units_of(g, MAX_UNITS);
    int64_t blocks = count_blocks(f);
    if (blocks <= MAX_BLOCKS)
        store_blocks(f, blocks);
    return f;
}
