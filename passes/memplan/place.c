/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The placement driver: split, search from large to small and from tight to loose (P6), try orders,
 * let the misplaced buffers move up (P1, P4), then branch and bound (P5).
 *
 * Sources: Lim, Bhattacharyya et al. and MiniMalloc (Moffitt 2023) for the canonical skyline view;
 * squeaky wheel optimization: Joslin and Clements 1999.  Effort is bounded by counted steps, never
 * by the clock, so a plan is the same on every machine. */
#include "passes/memplan/place_internal.h"

#include "ir/support/bug.h"
#include "ir/support/sort.h"

#include <string.h>

/* Rounds of the squeaky wheel, and how many in a row may bring nothing. */
enum { MAX_ROUNDS = 8, MAX_STALE = 3, N_ORDERS = 9 };
/* Up to how many buffers: beyond, one attempt would use up all steps. */
enum { MAX_EXACT = 2000, MAX_LEVELS = 8000, MAX_TIGHT = 16000 };
/* Attempts above the bound: a sixteenth of the way is the first step. */
enum { ABOVE_ATTEMPTS = 9, ABOVE_SHIFT = 4 };
/* Attempts from tight to loose, and from large to small: fewer where each takes long. */
enum { ATTEMPTS = 12, ATTEMPTS_OF_MANY = 4, FEW = 1500, SEEDS = 7, SEEDS_OF_FEW = 10 };
/* Steps of all attempts together: one or two seconds; of plans on trial, hundredths; of one
 * attempt, and of one for each buffer; of the orders, which mostly add nothing to the searches
 * before. */
static const int64_t WORK_LIMIT = 500000000, MANY_LIMIT = 240000000;
static const int64_t SKETCH_LIMIT = 20000000, LEVELS_LIMIT = 50000000, LEVEL_STEPS = 120000;
static const int64_t ORDERS_LIMIT = 30000000;
/* Of the branch and bound that comes before longer attempts. */
static const int64_t QUICK_EXACT = 4000000;

/* T max load, Z size, W life, A area; all descending.  The first is the one that usually suffices
 * for training steps; where the effort runs out, the first ones are all that is tried. */
static const char *const orders[N_ORDERS] = {"TZW", "TWA", "TAW", "ATZ", "WTA",
                                             "WAT", "ZTA", "AWT", "ZWT"};

typedef struct Search {
    const PlaceProblem *p;
    PlaceWork *work;
    int *order;
    int64_t *trial, *best; /* offsets */
    int64_t best_height;
    int64_t lower; /* no layout below it is worth having, or there is none */
} Search;

/* Buffers that stick out above the target move from position k to k/2. */
static void promote_offenders(Search *s)
{
    const PlaceProblem *p = s->p;
    for (int k = 0; k < p->n; k++) {
        int b = s->order[k], to = k / 2;
        if (s->trial[b] + p->size[b] <= p->target)
            continue;
        memmove(s->order + to + 1, s->order + to, (size_t)(k - to) * sizeof *s->order);
        s->order[to] = b;
    }
}

static bool search_done(const Search *s)
{
    return s->best_height <= s->lower || s->work->done > s->work->limit;
}

static void limit_work(Search *s, int64_t steps)
{
    if (s->work->limit - s->work->done > steps)
        s->work->limit = s->work->done + steps;
}

static void keep_lower(Search *s, int64_t height)
{
    if (height >= s->best_height)
        return;
    s->best_height = height;
    memcpy(s->best, s->trial, (size_t)s->p->n * sizeof *s->best);
}

static int64_t try_order(Search *s)
{
    int64_t height = place_skyline(s->p, s->order, s->trial, s->work);
    keep_lower(s, height);
    return height;
}

/* From large to small, with `steps` more, fewer for few buffers. */
static void try_levels(Search *s, uint64_t seed, int64_t steps)
{
    int64_t limit = s->work->limit, enough = LEVEL_STEPS * s->p->n;
    if (search_done(s) || s->p->n > MAX_LEVELS)
        return;
    limit_work(s, steps < enough ? steps : enough);
    keep_lower(s, place_levels(s->p, s->trial, seed, s->work));
    s->work->limit = limit;
}

static void squeaky_wheel(Search *s)
{
    int64_t lowest = INT64_MAX;
    int stale = 0;
    for (int round = 0; round < MAX_ROUNDS && stale < MAX_STALE && !search_done(s); round++) {
        int64_t height = try_order(s);
        stale = height < lowest ? 0 : stale + 1;
        lowest = height < lowest ? height : lowest;
        promote_offenders(s);
    }
}

/* Orders by the height that the skyline reaches with them, the lowest first; untried ones last. */
static void rank_orders(Search *s, int rank[N_ORDERS])
{
    int64_t height[N_ORDERS];
    for (int k = 0; k < N_ORDERS; k++) {
        height[k] = INT64_MAX;
        if (k == 0 || !search_done(s)) {
            place_order(s->p, orders[k], s->order);
            height[k] = try_order(s);
        }
        int to = k;
        for (; to > 0 && height[k] < height[rank[to - 1]]; to--)
            rank[to] = rank[to - 1];
        rank[to] = k;
    }
}

static void try_exact(Search *s, int64_t steps)
{
    if (s->p->n <= MAX_EXACT && s->best_height > s->lower)
        place_exact(s->p, s->best, &s->best_height, &s->lower, steps);
}

/* Within the lower bound from the tightest buffers outwards, up to `attempts` times. */
static void try_tight_first(Search *s, int attempts)
{
    for (int k = 0; k < attempts && s->p->n <= MAX_TIGHT && !search_done(s); k++)
        if (place_tight_first(s->p, s->lower, k, s->trial, s->work))
            keep_lower(s, place_height(s->p, s->trial));
}

/* The same where that failed: within a sixteenth of the way up to what is known, then an eighth,
 * and so on. */
static void try_tight_above(Search *s)
{
    int64_t unit = place_unit(s->p);
    int shift = ABOVE_SHIFT;
    for (int k = 0; k < ABOVE_ATTEMPTS && shift > 0 && s->p->n <= MAX_TIGHT && !search_done(s);
         k++) {
        int64_t limit = s->lower + ((s->best_height - s->lower) >> shift) / unit * unit;
        bool found = limit > s->lower && place_tight_first(s->p, limit, k, s->trial, s->work);
        if (found)
            keep_lower(s, place_height(s->p, s->trial));
        shift = found ? ABOVE_SHIFT : k % 2 == 0 ? shift : shift - 1;
    }
}

/* Nine orders once, then with the squeaky wheel. */
static void try_orders(Search *s)
{
    int rank[N_ORDERS];
    int64_t limit = s->work->limit;
    if (s->p->n <= MAX_LEVELS) /* where these mostly add nothing */
        limit_work(s, ORDERS_LIMIT);
    rank_orders(s, rank);
    for (int k = 0; k < N_ORDERS && !search_done(s); k++) {
        place_order(s->p, orders[rank[k]], s->order);
        squeaky_wheel(s);
    }
    s->work->limit = limit;
}

static int64_t place_component(const PlaceProblem *p, int64_t *offset, PlaceWork *work,
                               int64_t exact_steps)
{
    int64_t height;
    if (place_color(p, offset, &height))
        return height;
    Search s = {.p = p, .work = work, .best = offset, .best_height = INT64_MAX, .lower = p->target};
    s.order = POOL_ARRAY(p->scratch, (size_t)p->n, int);
    s.trial = POOL_ARRAY(p->scratch, (size_t)p->n, int64_t);
    bool final = exact_steps >= MEMPLAN_EXACT_STEPS;
    place_order(p, orders[0], s.order);
    try_order(&s);
    try_levels(&s, 0, SKETCH_LIMIT);
    if (exact_steps == MEMPLAN_SKETCH)
        return s.best_height;
    try_exact(&s, QUICK_EXACT);
    try_tight_first(&s, !final ? 1 : p->n > MAX_LEVELS ? ATTEMPTS_OF_MANY : ATTEMPTS);
    if (final)
        try_tight_above(&s);
    try_orders(&s);
    uint64_t seeds = p->n <= FEW ? SEEDS_OF_FEW : SEEDS; /* short searches differ much */
    for (uint64_t seed = 2; final && seed < seeds; seed++)
        try_levels(&s, seed, LEVELS_LIMIT);
    if (exact_steps > 0)
        try_exact(&s, exact_steps);
    return s.best_height;
}

/* Buffers with bytes, by birth. */
static int *sort_by_birth(Pool *scratch, const MemBuffer *buffers, int n, int *n_used)
{
    Ranked *births = POOL_ARRAY(scratch, (size_t)n, Ranked);
    int *index = POOL_ARRAY(scratch, (size_t)n, int), m = 0;
    for (int i = 0; i < n; i++)
        if (buffers[i].size > 0)
            births[m++] = (Ranked){buffers[i].lower, i};
    sort_ranked(births, (size_t)m);
    for (int i = 0; i < m; i++)
        index[i] = births[i].item;
    *n_used = m;
    return index;
}

/* The end of the component that begins at index[begin]: the next birth when nothing is alive. */
static int component_end(const MemBuffer *buffers, const int *index, int begin, int n)
{
    int64_t until = buffers[index[begin]].upper;
    int end = begin + 1;
    while (end < n && buffers[index[end]].lower < until) {
        if (buffers[index[end]].upper > until)
            until = buffers[index[end]].upper;
        end++;
    }
    return end;
}

static int64_t max_load(Pool *scratch, const MemBuffer *buffers, const int *index, int n)
{
    return n == 0 ? 0 : place_compress(scratch, buffers, index, n)->bound;
}

MemLayout memplan_place_within(Pool *pool, const MemBuffer *buffers, int n, int64_t align,
                               int64_t exact_steps)
{
    Pool *scratch = pool_new_child(pool);
    MemLayout layout = {.offset = POOL_ARRAY(pool, (size_t)(n > 0 ? n : 1), int64_t)};
    PlaceWork work = {0, n > MAX_LEVELS ? MANY_LIMIT : WORK_LIMIT};
    int used;
    int *index = sort_by_birth(scratch, buffers, n, &used);
    for (int i = 0; i < used; i++)
        if (buffers[index[i]].size % align != 0 ||
            buffers[index[i]].upper <= buffers[index[i]].lower)
            BUG("memplan_place: buffer %d has size %lld or an empty life", index[i],
                (long long)buffers[index[i]].size);
    layout.lower_bound_bytes = max_load(scratch, buffers, index, used);
    for (int begin = 0, end; begin < used; begin = end) {
        end = component_end(buffers, index, begin, used);
        PlaceProblem *p = place_compress(scratch, buffers, index + begin, end - begin);
        p->target = layout.lower_bound_bytes;
        int64_t *offset = POOL_ARRAY(scratch, (size_t)p->n, int64_t);
        int64_t height = place_component(p, offset, &work, exact_steps);
        for (int i = 0; i < p->n; i++)
            layout.offset[index[begin + i]] = offset[i];
        if (height > layout.arena_bytes)
            layout.arena_bytes = height;
    }
    pool_free(scratch);
    return layout;
}

MemLayout memplan_place(Pool *pool, const MemBuffer *buffers, int n, int64_t align)
{
    return memplan_place_within(pool, buffers, n, align, MEMPLAN_EXACT_STEPS);
}
