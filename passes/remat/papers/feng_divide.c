/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The division tree (2021, algorithms 2 to 4; see feng.h). */
#include "ir/support/bitset.h"
#include "ir/support/sort.h"
#include "passes/remat/papers/feng.h"

#include <stdlib.h>
#include <string.h>

/* A complicate segment with more vertices is broken into single edges. */
enum { MAX_COMPLICATE = 3000 };

typedef struct Divider {
    Pool *pool;
    const FengGraph *f;
    FengDivision division;
    int *place; /* by vertex: its place in the segment at hand, 1.. ; 0 = not an inner vertex */
    bool limited;
} Divider;

static FengSegment new_segment(const Divider *d, int from, int to, int *inner, int n_inner)
{
    FengSegment s = {.from = from, .to = to, .inner = inner, .n_inner = n_inner};
    for (int k = 0; k < n_inner; k++)
        s.cost += d->f->g.bytes[inner[k]];
    return s;
}

static void set_places(const Divider *d, const FengSegment *s, bool inside)
{
    for (int k = 0; k < s->n_inner; k++)
        d->place[s->inner[k]] = inside ? k + 1 : 0;
}

static FengSegment *add_member(const Divider *d, FengSegment *s, int from, int to, int *inner,
                               int n_inner)
{
    s->member[s->n_members] = new_segment(d, from, to, inner, n_inner);
    return &s->member[s->n_members++];
}

/* ---- branches ---- */

static void walk_part(const Divider *d, const Csr *c, int v, int part, int *part_of, int *stack,
                      int *top)
{
    for (int k = c->begin[v]; k < c->begin[v + 1]; k++) {
        int place = d->place[c->item[k]];
        if (place && !part_of[place - 1]) {
            part_of[place - 1] = part;
            stack[(*top)++] = c->item[k];
        }
    }
}

/* Connected parts of the inner vertices, numbered from 1. */
static int find_parts(const Divider *d, Pool *scratch, const FengSegment *s, int *part_of)
{
    int *stack = POOL_ARRAY(scratch, (size_t)s->n_inner + 1, int), n = 0, top = 0;
    for (int first = 0; first < s->n_inner; first++) {
        if (part_of[first])
            continue;
        part_of[first] = ++n;
        stack[top++] = s->inner[first];
        while (top > 0) {
            int v = stack[--top];
            walk_part(d, &d->f->g.pred, v, n, part_of, stack, &top);
            walk_part(d, &d->f->g.succ, v, n, part_of, stack, &top);
        }
    }
    return n;
}

static bool divide_branches(const Divider *d, Pool *scratch, FengSegment *s)
{
    int *part_of = POOL_ARRAY(scratch, (size_t)s->n_inner + 1, int);
    int n = find_parts(d, scratch, s, part_of);
    if (n < 2)
        return false;
    s->kind = FENG_BRANCH;
    s->member = POOL_ARRAY(d->pool, (size_t)n, FengSegment);
    Csr parts = csr_new(scratch, n);
    for (int k = 0; k < s->n_inner; k++)
        csr_count(&parts, part_of[k] - 1);
    csr_close(&parts, d->pool, s->n_inner);
    for (int k = 0; k < s->n_inner; k++)
        csr_store(&parts, part_of[k] - 1, s->inner[k]);
    for (int part = 0; part < n; part++)
        add_member(d, s, s->from, s->to, parts.item + parts.begin[part], csr_length(&parts, part));
    return true;
}

/* ---- linear ---- */

/* The furthest place that v has an edge to, within the segment; an edge from end to end is a branch
 * of its own, with nothing inside. */
static int furthest(const Divider *d, const FengSegment *s, int v)
{
    int reach = 0;
    for (int k = d->f->g.succ.begin[v]; k < d->f->g.succ.begin[v + 1]; k++) {
        int u = d->f->g.succ.item[k],
            place = u == s->to && v != s->from ? s->n_inner + 1 : d->place[u];
        reach = place > reach ? place : reach;
    }
    return reach;
}

/* A vertex splits when no edge leads past it: inner vertices all lie on ways from end to end. */
static bool divide_linear(const Divider *d, FengSegment *s)
{
    s->point = POOL_ARRAY(d->pool, (size_t)s->n_inner + 1, int);
    int reach = furthest(d, s, s->from);
    for (int k = 0; k < s->n_inner; k++) {
        if (reach <= k + 1)
            s->point[s->n_points++] = s->inner[k];
        int next = furthest(d, s, s->inner[k]);
        reach = next > reach ? next : reach;
    }
    if (s->n_points == 0)
        return false;
    s->kind = FENG_LINEAR;
    s->member = POOL_ARRAY(d->pool, (size_t)s->n_points + 1, FengSegment);
    for (int k = 0, begin = 0; k <= s->n_points; k++) {
        int end = k < s->n_points ? d->place[s->point[k]] - 1 : s->n_inner;
        add_member(d, s, k ? s->point[k - 1] : s->from, k < s->n_points ? s->point[k] : s->to,
                   s->inner + begin, end - begin);
        begin = end + 1;
    }
    return true;
}

/* ---- complicate ---- */

/* The inner vertices that a pair (k, t) cuts off from both ends of the segment. */
typedef struct Cut {
    int k, t, n;
    size_t begin; /* in Cutting.items */
} Cut;

/* Local numbers: 0 = from, 1 .. n - 2 = inner, n - 1 = to.  With an edge between the ends, what a
 * second vertex cuts off once k is removed hangs below it in a depth-first tree (Hopcroft and
 * Tarjan 1973). */
typedef struct Cutting {
    Pool *pool;
    const FengSegment *s;
    int n, k;
    Csr near;               /* undirected */
    Bitset *before, *after; /* ancestors, descendants */
    int *depth, *low, *order, *begin, *size, n_order;
    VEC(Cut) cuts;
    VEC(int) items;
} Cutting;

static int local(const Divider *d, const FengSegment *s, int v)
{
    return v == s->from ? 0 : v == s->to ? s->n_inner + 1 : d->place[v];
}

/* Edges of the segment: those of its inner vertices. */
static void visit_local(const Divider *d, Cutting *c, bool store)
{
    const Csr *both[2] = {&d->f->g.pred, &d->f->g.succ};
    for (int i = 0; i < c->s->n_inner; i++)
        for (int side = 0; side < 2; side++)
            for (int v = c->s->inner[i], k = both[side]->begin[v]; k < both[side]->begin[v + 1];
                 k++) {
                int u = local(d, c->s, both[side]->item[k]);
                bool end = u == 0 || u == c->n - 1; /* an end does not list its own edges */
                if (store) {
                    csr_store(&c->near, i + 1, u);
                    if (end)
                        csr_store(&c->near, u, i + 1);
                    if (side == 0) {
                        bitset_union(&c->before[i + 1], &c->before[u]);
                        bitset_add(&c->before[i + 1], (size_t)u);
                    }
                } else {
                    csr_count(&c->near, i + 1);
                    if (end)
                        csr_count(&c->near, u);
                }
            }
}

static void set_local_graph(const Divider *d, Cutting *c)
{
    c->near = csr_new(c->pool, c->n);
    visit_local(d, c, false);
    csr_count(&c->near, 0);
    csr_count(&c->near, c->n - 1);
    int total = 0;
    for (int v = 0; v < c->n; v++)
        total += c->near.begin[v + 2];
    csr_close(&c->near, c->pool, total);
    c->before = POOL_ARRAY(c->pool, (size_t)c->n, Bitset);
    c->after = POOL_ARRAY(c->pool, (size_t)c->n, Bitset);
    for (int v = 0; v < c->n; v++) {
        c->before[v] = bitset_new(c->pool, (size_t)c->n);
        c->after[v] = bitset_new(c->pool, (size_t)c->n);
    }
    visit_local(d, c, true);
    csr_store(&c->near, 0, c->n - 1);
    csr_store(&c->near, c->n - 1, 0);
    for (int v = 1; v < c->n - 1; v++)
        bitset_add(&c->before[c->n - 1], (size_t)v);
    for (int v = 0; v < c->n; v++)
        for (int u = 0; u < v; u++)
            if (bitset_has(&c->before[v], (size_t)u))
                bitset_add(&c->after[u], (size_t)v);
}

/* Depth-first from v without k: order, depth, low, and the part of the order below each vertex. */
static void explore(Cutting *c, int v, int depth)
{
    c->depth[v] = c->low[v] = depth;
    c->begin[v] = c->n_order;
    c->order[c->n_order++] = v;
    for (int i = c->near.begin[v]; i < c->near.begin[v + 1]; i++) {
        int u = c->near.item[i];
        if (u == c->k)
            continue;
        int low = c->depth[u];
        if (!low) {
            explore(c, u, depth + 1);
            low = c->low[u];
        }
        c->low[v] = low < c->low[v] ? low : c->low[v];
    }
    c->size[v] = c->n_order - c->begin[v];
}

static int count_between(const Cutting *c, int k, int t)
{
    int n = 0;
    for (int w = 0; w < (c->n + 63) / 64; w++)
        n += __builtin_popcountll(c->after[k].words[w] & c->before[t].words[w]);
    return n;
}

/* What t cuts off, its children in the tree with low >= depth; n = 0: nothing, or not all that is
 * between k and t where all of it must be. */
static Cut make_cut(Cutting *c, int t, bool closed)
{
    Cut cut = {.k = c->k, .t = t, .begin = c->items.len};
    for (int i = c->begin[t] + 1; i < c->begin[t] + c->size[t]; i += c->size[c->order[i]]) {
        int child = c->order[i];
        if (c->low[child] < c->depth[t])
            continue;
        for (int k = i; k < i + c->size[child]; k++)
            vec_push(c->pool, &c->items, c->order[k]);
    }
    cut.n = (int)(c->items.len - cut.begin);
    if (closed && cut.n != count_between(c, c->k, t)) {
        c->items.len = cut.begin;
        cut.n = 0;
    }
    return cut;
}

/* All cuts of pairs with k as the first one; what is inside another of these is left out. */
static void find_cuts(Cutting *c, int k, bool closed)
{
    bool *inside = POOL_ARRAY(c->pool, (size_t)c->n, bool);
    memset(c->depth, 0, (size_t)c->n * sizeof *c->depth);
    c->k = k;
    c->n_order = 0;
    explore(c, k == 0 ? c->n - 1 : 0, 1);
    for (int i = 1; i < c->n_order; i++) {
        int t = c->order[i];
        Cut cut = t > k && !inside[t] ? make_cut(c, t, closed) : (Cut){0};
        if (cut.n == 0)
            continue;
        vec_push(c->pool, &c->cuts, cut);
        for (int m = 0; m < cut.n; m++)
            inside[c->items.data[cut.begin + (size_t)m]] = true;
    }
}

static int compare_cuts(const void *a, const void *b)
{
    const Cut *x = a, *y = b;
    if (x->n != y->n)
        return y->n - x->n;
    return x->k != y->k ? x->k - y->k : x->t - y->t;
}

static int global(const FengSegment *s, int v)
{
    return v == 0 ? s->from : v == s->n_inner + 1 ? s->to : s->inner[v - 1];
}

/* No vertex of the cut is in a member, nor an end of one, and its ends are in none. */
static bool is_free(const Cutting *c, const Cut *cut, const bool *taken, const bool *end)
{
    bool free = !taken[cut->k] && !taken[cut->t];
    for (int i = 0; i < cut->n; i++) {
        int v = c->items.data[cut->begin + (size_t)i];
        free &= !taken[v] && !end[v];
    }
    return free;
}

/* The largest cuts are the members.  They do not overlap (2018, theorems 1 and 2), but for two that
 * share an end when their union leaks and leaks are not stripped: then the larger one is taken. */
static void take_cuts(const Divider *d, Cutting *c, FengSegment *s)
{
    bool *taken = POOL_ARRAY(c->pool, (size_t)c->n, bool);
    bool *end = POOL_ARRAY(c->pool, (size_t)c->n, bool);
    if (c->cuts.len > 1)
        qsort(c->cuts.data, c->cuts.len, sizeof *c->cuts.data, compare_cuts);
    s->member = POOL_ARRAY(d->pool, (size_t)s->n_inner, FengSegment);
    for (size_t i = 0; i < c->cuts.len; i++) {
        const Cut *cut = &c->cuts.data[i];
        const int *item = &c->items.data[cut->begin];
        if (!is_free(c, cut, taken, end))
            continue;
        end[cut->k] = end[cut->t] = true;
        int *inner = POOL_ARRAY(d->pool, (size_t)cut->n, int);
        for (int k = 0; k < cut->n; k++) {
            taken[item[k]] = true;
            inner[k] = global(s, item[k]);
        }
        sort_ints(inner, (size_t)cut->n);
        add_member(d, s, global(s, cut->k), global(s, cut->t), inner, cut->n);
    }
    for (int v = 1; v < c->n - 1; v++)
        if (!taken[v])
            s->point[s->n_points++] = s->inner[v - 1];
}

static void divide_complicate(Divider *d, Pool *scratch, FengSegment *s)
{
    s->kind = FENG_COMPLICATE;
    Cutting c = {.pool = scratch, .s = s, .n = s->n_inner + 2};
    size_t n = (size_t)c.n;
    if (s->n_inner > MAX_COMPLICATE) {
        d->limited = true;
        memcpy(s->point, s->inner, (size_t)s->n_inner * sizeof *s->point);
        s->n_points = s->n_inner;
        return;
    }
    c.depth = POOL_ARRAY(scratch, n, int);
    c.low = POOL_ARRAY(scratch, n, int);
    c.order = POOL_ARRAY(scratch, n, int);
    c.begin = POOL_ARRAY(scratch, n, int);
    c.size = POOL_ARRAY(scratch, n, int);
    set_local_graph(d, &c);
    for (int k = 0; k < c.n - 1; k++)
        find_cuts(&c, k, d->division == FENG_CLOSED);
    take_cuts(d, &c, s);
}

static void divide(Divider *d, FengSegment *s)
{
    if (s->n_inner == 0)
        return;
    Pool *scratch = pool_new_child(d->pool);
    set_places(d, s, true);
    if (d->division == FENG_SPLIT)
        divide_linear(d, s);
    else if (!divide_branches(d, scratch, s) && !divide_linear(d, s))
        divide_complicate(d, scratch, s);
    set_places(d, s, false);
    pool_free(scratch);
    for (int k = 0; k < s->n_members && d->division != FENG_SPLIT; k++)
        divide(d, &s->member[k]);
}

FengSegment *feng_divide(Pool *pool, const FengGraph *f, FengDivision division, bool *limited)
{
    Divider d = {.pool = pool, .f = f, .division = division};
    d.place = POOL_ARRAY(pool, (size_t)f->g.n, int);
    int n = f->g.n - 2, *inner = POOL_ARRAY(pool, (size_t)(n > 0 ? n : 0) + 1, int);
    for (int k = 0; k < n; k++)
        inner[k] = k + 1;
    FengSegment *root = POOL_NEW(pool, FengSegment);
    *root = new_segment(&d, 0, f->g.n - 1, inner, n > 0 ? n : 0);
    divide(&d, root);
    *limited |= d.limited;
    return root;
}
