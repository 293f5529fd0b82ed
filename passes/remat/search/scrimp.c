/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scrimp's own solver.  A schedule is a base order and any set of recomputations at any places
 * (incremental_schedule.h).  All quick solvers are asked first (scrimp_starts.c).  Then come the
 * searches of a table (scrimp_climb.c), each of which begins with what those found and sees nothing
 * of the others; small problems are searched exactly in the end (scrimp_exact.c). Where each node
 * can run once in the given order there is nothing to search. Every schedule on the way goes to the
 * front (pareto_front.h).  Targets, effort and random numbers do not depend on the budget, so
 * neither does the front: one search answers every budget, and time never grows with the budget.
 *
 * Solvers and searches run on several threads.  Fronts are merged in the order of the tables, and
 * work is counted, never by the clock: what is found does not depend on the number of threads. */
#include "ir/support/parallel.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/pieces_schedule.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/search/lns.h"
#include "passes/remat/solvers.h"

#include <limits.h>
#include <math.h>

/* Up to how many nodes everything is done in several ways. */
enum { SMALL = 400 };
/* Where pieces may lie inside the whole, the problem with copies says too much: of nested
 * concatenations twice as much as plans need.  The one that counts contents has what plans can
 * reach, but more tensors and so fewer looks.  On small graphs either beginning may end below
 * the other: ssm's least arena is 0.8% smaller by the last row.  With whole prices a search has
 * time for fewer drops, but what it finds near the smallest peak can be far better: U-Net's least
 * arena is 7% smaller, and Inception-v3 takes two fifths of the extra time at 20%. */
static const struct SearchRow {
    int most_nodes, most_beside_pieces; /* the latter where pieces matter */
    SearchStyle style;
    bool on_pieces; /* on the problem that counts contents */
} searches[] = {
    {SMALL, INT_MAX, {.descends = true}, true},
    {INT_MAX, INT_MAX, {.descends = true}, false},
    {INT_MAX, SMALL, {.descends = false, .whole_prices = true}, false},
    {SMALL, SMALL, {.descends = false, .whole_prices = true}, true},
    {SMALL, SMALL, {.descends = false}, false},
};
enum { N_SEARCHES = sizeof searches / sizeof *searches };

/* Work of one search, apart from shrinking: one or two milliseconds a node up to 800, then less;
 * the most is about three seconds. */
static const double SMALL_PER_NODE = 7e3, LARGE = 4e6, LARGE_PER_NODE = 2e3, MOST_WORK = 1.2e7;
static const double NO_LIMIT = 1e17; /* more than can be done, and what an integer can count */

static double work_for(int n_nodes)
{
    double small = SMALL_PER_NODE * n_nodes, large = LARGE + LARGE_PER_NODE * n_nodes;
    return fmin(fmin(small, large), MOST_WORK);
}

/* What the searches of one problem begin with, and what each of them finds. */
typedef struct Portfolio {
    const RematProblem *p;
    const RematOptions *options;
    const Starts *starts;
    int64_t low_bytes, pieces_low_bytes; /* no peak of p, and none of its pieces, is below */
    int n, row[N_SEARCHES];
    ParetoFront found[N_SEARCHES];
    ParetoFront smallest[N_SEARCHES]; /* of p's own, with copies: one point, or none */
} Portfolio;

static double reads_per_node(const RematProblem *p)
{
    double reads = 1;
    for (int n = 0; n < p->n_nodes; n++)
        reads += p->node[n].n_in;
    return reads / (p->n_nodes + 1);
}

/* An update looks at the operands of a run, and at all readers of each: both are more where every
 * piece is a tensor. */
static double work_on_pieces(const RematProblem *p, const AliasedProblem *pieces)
{
    double part = fmin(1, reads_per_node(p) / reads_per_node(&pieces->problem));
    return part * part;
}

static int64_t least_peak(const RematProblem *p, const RematOptions *o, Pool *scratch)
{
    int ignored;
    return remat_peak_lower_bound(p, scratch, o->context.bounds_until, &ignored);
}

/* A ladder whose front is that of keeping everything, as far as @recompute lets it.  No peak is
 * below low_bytes.  False when that needs no more than anything else. */
static bool lns_begin(LargeNeighbourhoodSearch *l, const RematProblem *p, const RematOptions *o,
                      int64_t low_bytes, ParetoFront *front)
{
    Pool *pool = front->pool;
    *l = (LargeNeighbourhoodSearch){
        .p = p, .options = o, .pool = pool, .front = front, .random = o->seed};
    l->own.pool = pool;
    l->work = fmin(work_for(p->n_nodes) * remat_effort(o), NO_LIMIT);
    l->most_work = (int64_t)(l->work / 100) + 20 * p->n_nodes;
    lns_start_from_hints(l);
    l->high = front->points.data[0].peak_bytes;
    l->low = low_bytes;
    return l->high > l->low;
}

/* Schedules of p. */
static void offer_counted(const AliasedProblem *pieces, const ParetoFront *found,
                          ParetoFront *front)
{
    for (size_t k = 0; k < found->points.len; k++) {
        const ParetoPoint *x = &found->points.data[k];
        int64_t peak_bytes = pieces_peak(front->pool, pieces, &x->schedule, x->peak_bytes);
        pareto_offer(front, peak_bytes, x->time, &x->schedule);
    }
}

/* Schedules of the pieces. */
static void offer_completed(const RematProblem *p, const AliasedProblem *pieces,
                            const ParetoFront *found, ParetoFront *front)
{
    for (size_t k = 0; k < found->points.len; k++) {
        Pool *scratch = pool_new_child(front->pool);
        RematSchedule s = pieces_complete(scratch, p, pieces, &found->points.data[k].schedule);
        RematFigures f = remat_check(scratch, p, &s);
        if (f.ok && remat_obeys_hints(scratch, p, &s))
            pareto_offer(front, pieces_peak(scratch, pieces, &s, f.peak_bytes), f.time, &s);
        pool_free(scratch);
    }
}

static void search(void *user, int k, Pool *pool)
{
    Portfolio *x = user;
    const struct SearchRow *row = &searches[x->row[k]];
    const AliasedProblem *pieces = x->options->context.pieces;
    ParetoFront front = {.pool = pool_new_child(pool)};
    LargeNeighbourhoodSearch l;
    bool may_gain = lns_begin(&l, row->on_pieces ? &pieces->problem : x->p, x->options,
                              row->on_pieces ? x->pieces_low_bytes : x->low_bytes, &front);
    l.style = row->style;
    l.work *= row->on_pieces ? work_on_pieces(x->p, pieces) : 1;
    pareto_merge(&front, row->on_pieces ? &x->starts->on_pieces : &x->starts->plain);
    if (may_gain)
        lns_climb(&l);
    x->found[k] = x->smallest[k] = (ParetoFront){.pool = pool};
    if (row->on_pieces) {
        offer_completed(x->p, pieces, &front, &x->found[k]);
    } else {
        const ParetoPoint *least = &front.points.data[0];
        offer_counted(pieces, &front, &x->found[k]);
        pareto_offer(&x->smallest[k], least->peak_bytes, least->time, &least->schedule);
    }
    pool_free(front.pool);
}

/* Keeping everything needs a sixteenth less with pieces in their places. */
static bool pieces_matter(const RematProblem *p, const AliasedProblem *pieces, Pool *scratch)
{
    RematSchedule base = remat_base_schedule(scratch, p);
    int64_t plain = remat_check(scratch, p, &base).peak_bytes;
    return pieces && pieces_peak(scratch, pieces, &base, plain) < plain - plain / 16;
}

static void choose_searches(Portfolio *x, Pool *scratch)
{
    const AliasedProblem *pieces = x->options->context.pieces;
    bool matter = pieces_matter(x->p, pieces, scratch);
    for (int k = 0; k < N_SEARCHES; k++) {
        int most = matter ? searches[k].most_beside_pieces : searches[k].most_nodes;
        if (x->p->n_nodes > most || (searches[k].on_pieces && !pieces))
            continue;
        if (searches[k].on_pieces && x->pieces_low_bytes == 0)
            x->pieces_low_bytes = least_peak(&pieces->problem, x->options, scratch);
        x->row[x->n++] = k;
    }
}

/* The smallest schedule with copies that any search has found; NULL: all searches were of p's
 * pieces. */
static const ParetoPoint *smallest_with_copies(const Portfolio *x)
{
    const ParetoPoint *least = NULL;
    for (int k = 0; k < x->n; k++)
        if (x->smallest[k].points.len > 0) {
            const ParetoPoint *point = &x->smallest[k].points.data[0];
            least = least && least->peak_bytes <= point->peak_bytes ? least : point;
        }
    return least;
}

static void search_all(const RematProblem *p, const RematOptions *o, int64_t low_bytes, Pool *pool,
                       const Starts *starts, SolutionCache *cache)
{
    Pool *scratch = pool_new_child(pool);
    Portfolio x = {.p = p, .options = o, .starts = starts, .low_bytes = low_bytes};
    choose_searches(&x, scratch);
    parallel_run(scratch, o->n_threads, x.n, search, &x);
    for (int k = 0; k < x.n; k++)
        pareto_merge(&cache->front, &x.found[k]);
    const ParetoPoint *least = o->context.pieces ? smallest_with_copies(&x) : NULL;
    if (least)
        pareto_offer(&cache->with_copies, least->peak_bytes, least->time, &least->schedule);
    pool_free(scratch);
}

/* True when nothing is better than the front. */
static bool fill_front(const RematProblem *p, const RematOptions *o, Pool *pool,
                       SolutionCache *cache)
{
    const AliasedProblem *pieces = o->context.pieces;
    ParetoFront *front = &cache->front;
    Starts starts = starts_new(pool);
    LargeNeighbourhoodSearch l;
    bool may_gain = lns_begin(&l, p, o, least_peak(p, o, pool), &starts.plain);
    if (may_gain || pieces)
        start_from_others(p, o, pool, &starts);
    pareto_merge(front, &starts.counted);
    offer_counted(pieces, &starts.plain, front);
    if (!may_gain && !pieces)
        return true;
    search_all(p, o, l.low, pool, &starts, cache);
    l.front = front;
    return !pieces && lns_exact(&l);
}

/* Searches, unless the cache knows. */
static void recall(SolutionCache *cache, const RematProblem *p, const RematOptions *o,
                   Pool *scratch)
{
    if (solution_cache_recall_front(cache, p, o))
        return;
    cache->exact = fill_front(p, o, scratch, cache);
    solution_cache_keep_front(cache, o);
}

/* Nothing is faster than running each node once, and its peak is within the budget: there is
 * nothing to search.  Whether an arena fits is the planner's question (fits_as_it_is), which has
 * asked it before where there is one; solvers know peaks only, and `best` and plans of graphs from
 * elsewhere ask them alone. */
static bool base_is_best(const RematProblem *p, const RematOptions *o, Pool *scratch)
{
    RematSchedule base = remat_base_schedule(scratch, p);
    if (o->objective == REMAT_MIN_MEMORY || !remat_obeys_hints(scratch, p, &base))
        return false;
    int64_t peak_bytes = remat_check(scratch, p, &base).peak_bytes;
    return pieces_peak(scratch, o->context.pieces, &base, peak_bytes) <= o->budget_bytes;
}

static RematStatus answer_from_front(const RematProblem *p, const RematOptions *o, Pool *pool,
                                     RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    SolutionCache *cache =
        o->context.solution_cache ? o->context.solution_cache : solution_cache_new(scratch, NULL);
    recall(cache, p, o, scratch);
    bool with_copies = o->with_copies && cache->with_copies.points.len > 0;
    const ParetoFront *front = with_copies ? &cache->with_copies : &cache->front;
    const ParetoPoint *best = pareto_within(front, o->budget_bytes);
    bool fits = best != NULL;
    if (!fits || o->objective == REMAT_MIN_MEMORY)
        best = &front->points.data[0];
    *out = remat_schedule_copy(pool, &best->schedule);
    if (o->notes)
        o->notes->exact = cache->exact;
    RematStatus status = cache->exact && fits ? REMAT_OPTIMAL
                         : !cache->complete   ? REMAT_LIMIT
                         : fits               ? REMAT_FEASIBLE
                                              : REMAT_INFEASIBLE;
    pool_free(scratch); /* the cache may lie in it */
    return status;
}

RematStatus remat_scrimp(const RematProblem *p, const RematOptions *o, Pool *pool,
                         RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    bool is_best = base_is_best(p, o, scratch);
    pool_free(scratch);
    if (!is_best)
        return answer_from_front(p, o, pool, out);
    *out = remat_base_schedule(pool, p);
    if (o->notes)
        o->notes->exact = true;
    return REMAT_OPTIMAL;
}
