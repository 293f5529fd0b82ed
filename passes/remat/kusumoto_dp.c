/* See kusumoto_dp.h.
 *
 * T is quantised by block, not by node, so that errors do not add up.  "Skip t when a smaller t has
 * a smaller m" holds for the time-centric strategy only. */
#include "passes/remat/kusumoto_dp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SETS = 1000, MAX_UNITS = 4096, MIN_UNITS = 64 };
static const double MAX_STEPS = 8e6; /* of one dynamic program */

static void add_outside(const ForwardView *v, const LowerSet *l, const Bitset *marked, int64_t *sum)
{
    for (int u = 0; u < v->n; u++)
        if (bitset_has(marked, (size_t)u) && !bitset_has(&l->nodes, (size_t)u))
            *sum += v->bytes[u];
}

/* Boundary, successors outside and their other predecessors outside. */
static void measure_set(Pool *pool, const ForwardView *v, LowerSet *l)
{
    Pool *scratch = pool_new_child(pool);
    Bitset next = bitset_new(scratch, (size_t)v->n), around = bitset_new(scratch, (size_t)v->n);
    int *boundary = POOL_ARRAY(scratch, (size_t)v->n + 1, int);
    l->size = l->n_boundary = 0;
    for (int u = 0; u < v->n; u++) {
        if (!bitset_has(&l->nodes, (size_t)u))
            continue;
        l->size++;
        l->time += v->cost[u];
        l->bytes += v->bytes[u];
        bool leaves = false;
        for (int k = v->succ.begin[u]; k < v->succ.begin[u + 1]; k++)
            if (!bitset_has(&l->nodes, (size_t)v->succ.item[k])) {
                leaves = true;
                bitset_add(&next, (size_t)v->succ.item[k]);
            }
        if (leaves) {
            boundary[l->n_boundary++] = u;
            l->boundary_bytes += v->bytes[u];
        }
    }
    for (int w = 0; w < v->n; w++)
        for (int k = v->pred.begin[w]; bitset_has(&next, (size_t)w) && k < v->pred.begin[w + 1];
             k++)
            bitset_add(&around, (size_t)v->pred.item[k]);
    add_outside(v, l, &next, &l->after);
    add_outside(v, l, &around, &l->after);
    l->boundary = pool_grow(pool, boundary, (size_t)l->n_boundary * sizeof *boundary,
                            (size_t)l->n_boundary * sizeof *boundary + 1);
    pool_free(scratch);
}

static int compare_boundaries(const void *a, const void *b)
{
    const LowerSet *x = a, *y = b;
    if (x->boundary_bytes != y->boundary_bytes)
        return x->boundary_bytes < y->boundary_bytes ? -1 : 1;
    return x->size - y->size;
}

static int compare_sizes(const void *a, const void *b)
{
    const LowerSet *x = a, *y = b;
    if (x->size != y->size)
        return x->size - y->size;
    return (x->time > y->time) - (x->time < y->time);
}

static void make_sets(Family *f)
{
    const ForwardView *v = f->v;
    f->set = POOL_ARRAY(f->pool, (size_t)v->n + 2, LowerSet);
    for (int u = 0; u < v->n; u++) {
        LowerSet *l = &f->set[u];
        l->nodes = bitset_new(f->pool, (size_t)v->n);
        for (int k = v->pred.begin[u]; k < v->pred.begin[u + 1]; k++)
            bitset_union(&l->nodes, &f->set[v->pred.item[k]].nodes);
        bitset_add(&l->nodes, (size_t)u);
    }
    for (int u = 0; u < v->n; u++)
        measure_set(f->pool, v, &f->set[u]);
    f->n = v->n;
    if (f->n > MAX_SETS) {
        qsort(f->set, (size_t)f->n, sizeof *f->set, compare_boundaries);
        f->n = MAX_SETS;
    }
    int whole = -1;
    for (int i = 0; i < f->n; i++)
        whole = f->set[i].size == v->n ? i : whole;
    for (int extra = 0; extra < (whole < 0 ? 2 : 1); extra++) {
        LowerSet *l = &f->set[f->n++];
        *l = (LowerSet){.nodes = bitset_new(f->pool, (size_t)v->n)};
        for (int u = 0; extra == 1 && u < v->n; u++)
            bitset_add(&l->nodes, (size_t)u);
        measure_set(f->pool, v, l);
    }
    qsort(f->set, (size_t)f->n, sizeof *f->set, compare_sizes);
}

static bool is_subset(const LowerSet *a, const LowerSet *b)
{
    if (a->size >= b->size)
        return false;
    for (size_t w = 0; w < (a->nodes.n_bits + 63) / 64; w++)
        if (a->nodes.words[w] & ~b->nodes.words[w])
            return false;
    return true;
}

static Block make_block(const Family *f, int from, int to, double *time)
{
    const LowerSet *a = &f->set[from], *b = &f->set[to];
    Block block = {.to = to, .need = 2 * (b->bytes - a->bytes) + b->after};
    *time = b->time - a->time;
    for (int k = 0; k < b->n_boundary; k++) {
        int u = b->boundary[k];
        if (bitset_has(&a->nodes, (size_t)u))
            continue;
        block.cached += f->v->bytes[u];
        *time -= f->v->cost[u];
    }
    return block;
}

static void make_blocks(Family *f)
{
    f->block_begin = POOL_ARRAY(f->pool, (size_t)f->n + 1, int);
    int n = 0;
    for (int a = 0; a < f->n; a++)
        for (int b = a + 1; b < f->n; b++)
            n += is_subset(&f->set[a], &f->set[b]);
    f->block = POOL_ARRAY(f->pool, (size_t)n + 1, Block);
    double units = MAX_STEPS / (n + 1), total = f->set[f->n - 1].time;
    f->units = units > MAX_UNITS ? MAX_UNITS : units < MIN_UNITS ? MIN_UNITS : (int)units;
    n = 0;
    for (int a = 0; a < f->n; a++) {
        f->block_begin[a] = n;
        for (int b = a + 1; b < f->n; b++) {
            if (!is_subset(&f->set[a], &f->set[b]))
                continue;
            double time;
            f->block[n] = make_block(f, a, b, &time);
            f->block[n++].units = total > 0 ? (int)lround(time / total * f->units) : 0;
        }
    }
    f->block_begin[f->n] = n;
}

/* Whether any sequence meets the budget: the least m of every set, whatever its t. */
static bool is_feasible(const Family *f, int64_t budget, int64_t *least)
{
    for (int a = 0; a < f->n; a++)
        least[a] = INT64_MAX;
    least[0] = 0;
    for (int a = 0; a < f->n; a++)
        for (int k = f->block_begin[a]; least[a] < INT64_MAX && k < f->block_begin[a + 1]; k++) {
            const Block *b = &f->block[k];
            if (least[a] + b->need <= budget && least[a] + b->cached < least[b->to])
                least[b->to] = least[a] + b->cached;
        }
    return least[f->n - 1] < INT64_MAX;
}

int64_t kusumoto_smallest_budget(const Family *f)
{
    int64_t low = 0, high = 2 * f->set[f->n - 1].bytes;
    int64_t *least = POOL_ARRAY(f->pool, (size_t)f->n + 1, int64_t);
    while (high - low > high / 1024 + 1) {
        int64_t middle = low + (high - low) / 2;
        if (is_feasible(f, middle, least))
            high = middle;
        else
            low = middle;
    }
    return high;
}

typedef struct Table {
    int64_t *m; /* [set][t]: opt of algorithm 1 */
    int *from_set, *from_t;
} Table;

static void extend_state(const Family *f, Table *table, int a, int t, int64_t budget)
{
    size_t row = (size_t)f->units + 1;
    int64_t m = table->m[(size_t)a * row + (size_t)t];
    for (int k = f->block_begin[a]; k < f->block_begin[a + 1]; k++) {
        const Block *b = &f->block[k];
        if (m + b->need > budget)
            continue;
        int to = t + b->units < f->units ? t + b->units : f->units;
        size_t at = (size_t)b->to * row + (size_t)to;
        if (m + b->cached < table->m[at]) {
            table->m[at] = m + b->cached;
            table->from_set[at] = a;
            table->from_t[at] = t;
        }
    }
}

/* Algorithm 1.  Returns t*, -1 = impossible. */
static int fill_table(const Family *f, Table *table, int64_t budget, bool memory_centric)
{
    size_t row = (size_t)f->units + 1;
    for (size_t i = 0; i < (size_t)f->n * row; i++)
        table->m[i] = INT64_MAX;
    table->m[0] = 0;
    for (int a = 0; a < f->n - 1; a++) {
        int64_t least = INT64_MAX;
        for (int t = 0; t <= f->units; t++) {
            int64_t m = table->m[(size_t)a * row + (size_t)t];
            if (m == INT64_MAX || (!memory_centric && m >= least))
                continue;
            least = m;
            extend_state(f, table, a, t, budget);
        }
    }
    int best = -1;
    for (int t = 0; t <= f->units; t++)
        if (table->m[(size_t)(f->n - 1) * row + (size_t)t] < INT64_MAX &&
            (best < 0 || memory_centric))
            best = t;
    return best;
}

/* set_of[u]: the first set of the sequence that holds u; returns the length of the sequence. */
static int trace_back(const Family *f, const Table *table, int t, int *set_of)
{
    size_t row = (size_t)f->units + 1;
    int length = 0, n_sets = 0;
    for (int a = f->n - 1, at = t; a > 0; n_sets++) {
        size_t i = (size_t)a * row + (size_t)at;
        a = table->from_set[i];
        at = table->from_t[i];
    }
    for (int a = f->n - 1, at = t; a > 0; length++) {
        for (int u = 0; u < f->v->n; u++)
            if (bitset_has(&f->set[a].nodes, (size_t)u))
                set_of[u] = n_sets - 1 - length;
        size_t i = (size_t)a * row + (size_t)at;
        a = table->from_set[i];
        at = table->from_t[i];
    }
    return n_sets;
}

int kusumoto_solve(const Family *f, int64_t budget, bool memory_centric, int *set_of)
{
    Pool *pool = pool_new_child(f->pool);
    size_t cells = (size_t)f->n * ((size_t)f->units + 1);
    Table table = {POOL_ARRAY(pool, cells, int64_t), POOL_ARRAY(pool, cells, int),
                   POOL_ARRAY(pool, cells, int)};
    int t = fill_table(f, &table, budget, memory_centric);
    int n_sets = t < 0 ? 0 : trace_back(f, &table, t, set_of);
    pool_free(pool);
    return n_sets;
}

Family *kusumoto_family(Pool *pool, const ForwardView *v)
{
    Family *f = POOL_NEW(pool, Family);
    *f = (Family){.v = v, .pool = pool};
    make_sets(f);
    make_blocks(f);
    return f;
}
