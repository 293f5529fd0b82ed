/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Depth-first search over sequences of lower sets, for small graphs.
 *
 * Source: Kusumoto et al. 2019, section 4.1: from L_i to every larger lower set within the budget,
 * with (L, t, m) carried along.  O(#L^#V); nothing but the budget prunes.  Errata: see kusumoto.h.
 * Differs: when the steps run out it has the status `limit` and the best sequence so far; with more
 * than sqrt(max_steps) lower sets only ancestor sets are searched; times are quantised as in the
 * dynamic program. */
#include "passes/remat/papers/kusumoto.h"
#include "passes/remat/solvers.h"

#include <string.h>

/* What one search may use of the steps, so that a sweep over budgets ends. */
enum { SHARES = 64 };

/* To a larger set (see Block). */
typedef struct BlockOut {
    int to, units;
    int64_t need, cached;
} BlockOut;

typedef struct Search {
    Family *f;
    int64_t budget;
    bool memory_centric, any; /* any: the first sequence will do */
    int depth, *sets;         /* the sequence so far */
    int n_best, best_t, *best;
    int64_t max_steps, best_peak, next; /* next: the smallest budget at which more is possible */
} Search;

static void found(Search *s, int t, int64_t peak)
{
    bool better = s->n_best == 0 || (s->memory_centric ? t > s->best_t : t < s->best_t);
    if (!better)
        return;
    s->n_best = s->depth;
    s->best_t = t;
    s->best_peak = peak;
    memcpy(s->best, s->sets, (size_t)s->depth * sizeof *s->best);
}

/* Counts steps; false when they have run out. */
static bool take_steps(Search *s, int n)
{
    int64_t left = s->max_steps - s->f->steps;
    s->f->steps += left < n ? (left > 0 ? left : 0) : n;
    return left >= n;
}

static void visit(Search *s, int set, int t, int64_t m, int64_t peak);

static void extend(Search *s, const BlockOut *b, int t, int64_t m, int64_t peak)
{
    if (m + b->need > s->budget) {
        s->next = m + b->need < s->next ? m + b->need : s->next;
        return;
    }
    s->sets[s->depth++] = b->to;
    visit(s, b->to, t + b->units, m + b->cached, m + b->need > peak ? m + b->need : peak);
    s->depth--;
}

/* Blocks are stored.  To look at a set that is not larger is a step, too, as it is below. */
static void visit_stored(Search *s, int set, int t, int64_t m, int64_t peak)
{
    const Family *f = s->f;
    int last = f->n; /* that was looked at */
    for (int64_t k = f->out_begin[set]; k < f->out_begin[set + 1]; k++) {
        if ((s->any && s->n_best) || !take_steps(s, last - f->out[k].to))
            return;
        last = f->out[k].to;
        extend(s, &f->out[k], t, m, peak);
    }
    if (!s->any || !s->n_best)
        take_steps(s, last - set - 1);
}

static void visit(Search *s, int set, int t, int64_t m, int64_t peak)
{
    if (set == s->f->n - 1) {
        found(s, t, peak);
        return;
    }
    if (s->f->out) {
        visit_stored(s, set, t, m, peak);
        return;
    }
    Block b;
    for (int to = s->f->n - 1; to > set; to--) {
        if ((s->any && s->n_best) || !take_steps(s, 1))
            return;
        if (kusumoto_block(s->f, set, to, &b))
            extend(s, &(BlockOut){to, b.units, b.need, b.cached}, t, m, peak);
    }
}

/* Stored blocks by the set that they lead from, the largest set that they lead to first. */
static void index_blocks(Family *f)
{
    if (f->out || !f->block)
        return;
    int64_t total = f->block_begin[f->n];
    f->out = POOL_ARRAY(f->pool, (size_t)total + 1, BlockOut);
    f->out_begin = POOL_ARRAY(f->pool, (size_t)f->n + 2, int64_t);
    for (int64_t k = 0; k < total; k++)
        f->out_begin[f->block[k].from + 2]++;
    for (int set = 0; set <= f->n; set++)
        f->out_begin[set + 1] += f->out_begin[set];
    for (int to = f->n - 1; to >= 0; to--) /* the end of each set moves on */
        for (int64_t k = f->block_begin[to]; k < f->block_begin[to + 1]; k++) {
            const Block *b = &f->block[k];
            f->out[f->out_begin[b->from + 1]++] = (BlockOut){to, b->units, b->need, b->cached};
        }
}

static void search(Search *s, int64_t budget)
{
    s->budget = budget;
    s->next = INT64_MAX;
    s->n_best = s->depth = 0;
    s->max_steps = s->f->steps + s->f->max_steps / SHARES;
    visit(s, 0, 0, 0, 0);
    s->f->limited |= s->f->steps >= s->max_steps;
}

static Search new_search(Family *f)
{
    index_blocks(f);
    size_t n = (size_t)f->g->n + 2;
    return (Search){
        .f = f, .sets = POOL_ARRAY(f->pool, n, int), .best = POOL_ARRAY(f->pool, n, int)};
}

static int64_t smallest_budget(Family *f)
{
    Search s = new_search(f);
    s.any = true;
    int64_t low = 0, high = 2 * f->set[f->n - 1].bytes;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        search(&s, middle);
        if (s.n_best)
            high = s.best_peak;
        else
            low = f->limited ? middle + 1 : s.next;
    }
    return high;
}

static int solve(Family *f, int64_t budget, bool memory_centric, int *set_of)
{
    Search s = new_search(f);
    s.memory_centric = memory_centric;
    search(&s, budget);
    for (int i = 0; i < s.n_best / 2; i++) { /* last set first */
        int other = s.best[s.n_best - 1 - i];
        s.best[s.n_best - 1 - i] = s.best[i];
        s.best[i] = other;
    }
    kusumoto_write_sequence(f, s.best, s.n_best, set_of);
    return s.n_best;
}

const KusumotoMethod kusumoto_exhaustive = {100000000, kusumoto_family_all, smallest_budget, solve};

RematStatus remat_kusumoto_exhaustive(const RematProblem *p, const RematOptions *o, Pool *pool,
                                      RematSchedule *out)
{
    return kusumoto_schedule(&kusumoto_exhaustive, p, o, pool, out);
}
