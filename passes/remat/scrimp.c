/* Scrimp's own solver.  A schedule is a base order and any set of recomputations at any places
 * (slots.h).  All quick solvers are asked first (scrimp_starts.c).  Then come the searches of a
 * table (scrimp_climb.c), each of which begins with what those found and sees nothing of the
 * others; small problems are searched exactly in the end (scrimp_exact.c).
 * Every schedule on the way goes to the front (front.h).  Targets, effort and random numbers do not
 * depend on the budget, so neither does the front: one search answers every budget, and time never
 * grows with the budget.
 *
 * Solvers and searches run on several threads.  Fronts are merged in the order of the tables, and
 * work is counted, never by the clock: what is found does not depend on the number of threads. */
#include "ir/support/parallel.h"
#include "passes/remat/bound.h"
#include "passes/remat/ladder.h"
#include "passes/remat/memo.h"
#include "passes/remat/solvers.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* On small graphs either beginning may end far below the other.  With whole prices a search has
 * time for fewer drops, but what it finds near the smallest peak can be far better: U-Net's least
 * arena is a tenth smaller, and Inception-v3 takes a third of the extra time at 20%. */
static const struct SearchRow {
    int most_nodes;
    LadderStyle style;
} searches[] = {
    {INT_MAX, {.descends = true}},
    {INT_MAX, {.descends = false, .whole_prices = true}},
    {400, {.descends = false}},
};
enum { N_SEARCHES = sizeof searches / sizeof *searches };

/* Work of one search: one or two milliseconds a node up to 800, then less; the most is about three
 * seconds. */
static const double SMALL_PER_NODE = 7e3, LARGE = 4e6, LARGE_PER_NODE = 2e3, MOST_WORK = 1.2e7;

static double work_for(int n_nodes)
{
    double small = SMALL_PER_NODE * n_nodes, large = LARGE + LARGE_PER_NODE * n_nodes;
    return fmin(fmin(small, large), MOST_WORK);
}

/* What the searches of one problem begin with, and what each of them finds. */
typedef struct Portfolio {
    const RematProblem *p;
    const RematOptions *options;
    const Front *starts;
    int64_t starts_work, low;
    int n, row[N_SEARCHES];
    Front found[N_SEARCHES];
} Portfolio;

/* A ladder whose front is that of keeping everything, as far as @recompute lets it. */
static void ladder_begin(Ladder *l, const RematProblem *p, const RematOptions *o, Pool *pool,
                         Front *front)
{
    *l = (Ladder){.p = p, .options = o, .pool = pool, .front = front, .random = o->seed};
    l->own.pool = pool;
    l->work = work_for(p->n_nodes) * remat_effort(o);
    l->most_work = (int64_t)(l->work / 100) + 20 * p->n_nodes;
    ladder_start_from_hints(l);
    l->high = front->points.data[0].peak_bytes;
}

static void search(void *user, int k, Pool *pool)
{
    Portfolio *x = user;
    Front *front = &x->found[k];
    Ladder l;
    *front = (Front){.pool = pool};
    ladder_begin(&l, x->p, x->options, pool, front);
    l.style = searches[x->row[k]].style;
    l.low = x->low;
    front_merge(front, x->starts);
    l.done += x->starts_work;
    ladder_climb(&l);
}

static void search_all(const RematProblem *p, const RematOptions *o, Pool *pool, Front *front,
                       int64_t starts_work, int64_t low)
{
    Pool *scratch = pool_new_child(pool);
    Portfolio x = {.p = p, .options = o, .starts = front, .starts_work = starts_work, .low = low};
    for (int row = 0; row < N_SEARCHES; row++)
        if (p->n_nodes <= searches[row].most_nodes)
            x.row[x.n++] = row;
    parallel_run(scratch, o->n_threads, x.n, search, &x);
    for (int k = 0; k < x.n; k++)
        front_merge(front, &x.found[k]);
    pool_free(scratch);
}

/* True when nothing is better than the front. */
static bool fill_front(const RematProblem *p, const RematOptions *o, Pool *pool, Front *front)
{
    int ignored;
    Ladder l;
    ladder_begin(&l, p, o, pool, front);
    l.low = remat_peak_lower_bound(p, pool, &ignored);
    if (l.high <= l.low) /* keeping everything needs no more than anything else */
        return true;
    int64_t work = start_from_others(p, o, pool, front);
    search_all(p, o, pool, front, work, l.low);
    return ladder_exact(&l);
}

/* Searches, unless the memo knows. */
static void recall(RematMemo *memo, const RematProblem *p, const RematOptions *o, Pool *scratch)
{
    if (memo_recall_front(memo, p, o))
        return;
    memo->exact = fill_front(p, o, scratch, &memo->front);
    memo_keep_front(memo, o);
}

RematStatus remat_scrimp(const RematProblem *p, const RematOptions *o, Pool *pool,
                         RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    RematMemo *memo = p->memo ? p->memo : remat_memo_new(scratch, NULL);
    recall(memo, p, o, scratch);
    const FrontPoint *best = front_within(&memo->front, o->budget_bytes);
    bool fits = best != NULL;
    if (!fits || o->objective == REMAT_MIN_MEMORY)
        best = &memo->front.points.data[0];
    *out =
        (RematSchedule){best->schedule.len, POOL_ARRAY(pool, (size_t)best->schedule.len + 1, int)};
    memcpy(out->node, best->schedule.node, (size_t)out->len * sizeof *out->node);
    if (o->notes)
        o->notes->exact = memo->exact;
    RematStatus status = memo->exact && fits ? REMAT_OPTIMAL
                         : !memo->complete   ? REMAT_LIMIT
                         : fits              ? REMAT_FEASIBLE
                                             : REMAT_INFEASIBLE;
    pool_free(scratch); /* the memo may lie in it */
    return status;
}
