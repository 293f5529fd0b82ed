/* Scrimp's own solver.  A schedule is a base order and any set of recomputations at any places
 * (slots.h).  All quick solvers are asked first (scrimp_starts.c).  Then, for a ladder of targets
 * between keeping everything and the lower bound, from the highest down and then in all orders, it
 *  1. drops values greedily by time a byte (search_drop.c): from the nearest schedule that is too
 *     large, and from keeping everything with prices bent in several ways,
 *  2. takes back what is not needed (search_restore.c),
 *  3. looks for an order of the runs with a smaller peak, which becomes the base order, and
 *     improves the best schedule by large-neighbourhood search (scrimp_improve.c): recomputations
 *     of a stretch are taken out, the greedy repairs with random prices, what is not slower stays.
 * Small problems are searched exactly in the end (scrimp_exact.c).
 * Every schedule on the way goes to the front (front.h).  Targets, effort and random numbers do not
 * depend on the budget, so neither does the front: one search answers every budget, and time never
 * grows with the budget.
 *
 * Work is counted in updates and queries of the memory profile, never by the clock. */
#include "passes/remat/bound.h"
#include "passes/remat/ladder.h"
#include "passes/remat/memo.h"
#include "passes/remat/solvers.h"

#include <math.h>
#include <string.h>

enum { LEVELS = 64, STARTS = 4, PASSES = 3, SMALLEST = 8 };
/* Up to how many nodes everything is done twice. */
enum { TWICE_NODES = 400 };
/* One or two milliseconds a node up to 800, then less; the most is about three seconds. */
static const double SMALL_PER_NODE = 7e3, LARGE = 4e6, LARGE_PER_NODE = 2e3, MOST_WORK = 1.2e7;
/* Parts of the work after which the descent ends, no more starts are made, and the smallest
 * schedule is left as it is for now; and in the end. */
static const double DESCENT_PART = 0.3, STARTS_PART = 0.35, SMALLEST_PART = 0.45, OVERTIME = 1.1;
/* Exponent of the levels: denser where they are low, because there a byte costs most time. */
static const double DENSER = 1.25;

/* ---- one target ---- */

/* From the nearest schedules that are too large: of all, and of our own, because another solver's
 * may be near and yet of little use. */
static void repair_larger(Ladder *l)
{
    const Front *fronts[] = {l->front, &l->own};
    double last = 0;
    for (int k = 0; k < 2; k++) {
        const FrontPoint *above = front_above(fronts[k], l->target_bytes);
        if (!above || fabs(above->time - last) <= 1e-12 * last) /* sums in another order */
            continue;
        last = above->time;
        ladder_load(l, &above->schedule);
        ladder_repair(l);
    }
}

static void start_level(Ladder *l)
{
    static const double reach[STARTS] = {0, 0.5, 1, 0}, noise[STARTS] = {0, 0, 0, 0.4};
    if (!front_above(l->front, l->target_bytes))
        return;
    repair_larger(l);
    for (int start = 0; start < STARTS; start++) {
        const FrontPoint *all = &l->front->points.data[l->front->points.len - 1];
        Search *x = ladder_load(l, &all->schedule);
        x->reach = reach[start];
        x->noise = noise[start];
        x->draw = search_random(x);
        x->by_kind = start == STARTS - 1;
        ladder_repair(l);
    }
}

/* From large targets to small ones, so that what was gained at one goes on to the next. */
static void improve_level(Ladder *l, double work)
{
    double until = (double)ladder_work(l) + work;
    repair_larger(l);
    const FrontPoint *best = front_within(l->front, l->target_bytes);
    if (!best)
        return;
    if (ladder_reorder(l))
        best = front_within(l->front, l->target_bytes);
    ladder_load(l, &best->schedule);
    if (ladder_repair(l))
        ladder_improve(l, until - (double)ladder_work(l));
}

/* ---- all targets ---- */

/* Level k of LEVELS, the highest first. */
static int64_t target_of(const Ladder *l, double k, double exponent)
{
    return l->low + (int64_t)((double)(l->high - l->low) * pow(1 - (k + 1) / LEVELS, exponent));
}

/* In the order of a binary subdivision: wherever the work ends, what has been done is spread
 * evenly. */
static int spread(int k)
{
    int reversed = 0;
    for (int bit = 1; bit < LEVELS; bit *= 2)
        reversed = 2 * reversed + ((k & bit) != 0);
    return reversed;
}

/* The smallest schedule, in other orders and improved, as long as that makes it smaller. */
static void deepen(Ladder *l, double work, double part)
{
    for (int k = 0; k < SMALLEST && !ladder_out_of_work(l, part); k++) {
        int64_t before = l->target_bytes = l->front->points.data[0].peak_bytes;
        l->in_vain = 0;
        l->reordered_bytes = 0;
        if (before > l->low)
            improve_level(l, work);
        if (l->front->points.data[0].peak_bytes == before)
            break;
    }
}

/* From the highest target to the lowest that is reached, each from the one above: hardly more work
 * than reaching the lowest from keeping everything.  Where work is short, as it is for thousands of
 * nodes, this comes first. */
static void descend(Ladder *l)
{
    for (int k = 0; k < LEVELS && !ladder_out_of_work(l, DESCENT_PART); k++) {
        l->target_bytes = target_of(l, k, 1);
        repair_larger(l);
        if (!front_within(l->front, l->target_bytes))
            break;
    }
}

static void start_levels(Ladder *l)
{
    int64_t too_low = 0; /* the highest target that was not reached */
    for (int k = 0; k < LEVELS && !ladder_out_of_work(l, STARTS_PART); k++) {
        l->target_bytes = target_of(l, spread(k), 1);
        if (l->target_bytes <= too_low)
            continue;
        start_level(l);
        if (!front_within(l->front, l->target_bytes))
            too_low = l->target_bytes;
    }
}

static void climb(Ladder *l, bool from_above)
{
    if (from_above)
        descend(l);
    start_levels(l);
    double share = (1 - STARTS_PART) * l->work / (PASSES * LEVELS);
    int64_t bound = l->low;
    deepen(l, 0, SMALLEST_PART);
    for (int pass = 0; pass < PASSES; pass++) {
        l->in_vain = 0;
        l->low = l->front->points.data[0].peak_bytes;
        for (int k = 0; k < LEVELS && !ladder_out_of_work(l, 1); k++) {
            double left = l->work - (double)ladder_work(l);
            l->target_bytes = target_of(l, k - (double)pass / PASSES, DENSER);
            improve_level(l, left / ((PASSES - pass) * LEVELS - k));
        }
        l->low = bound;
        deepen(l, 2 * share, OVERTIME);
    }
}

static double work_for(int n_nodes)
{
    double small = SMALL_PER_NODE * n_nodes, large = LARGE + LARGE_PER_NODE * n_nodes;
    return fmin(fmin(small, large), MOST_WORK);
}

/* False when nothing can be gained: keeping everything needs no more than anything else. */
static bool ladder_begin(Ladder *l, const RematProblem *p, const RematOptions *o, Pool *pool,
                         Front *front)
{
    int ignored;
    *l = (Ladder){.p = p, .options = o, .pool = pool, .front = front, .random = o->seed};
    l->own.pool = pool;
    l->work = work_for(p->n_nodes) * remat_effort(o);
    l->most_work = (int64_t)(l->work / 100) + 20 * p->n_nodes;
    ladder_start_from_hints(l);
    l->high = front->points.data[0].peak_bytes;
    l->low = remat_peak_lower_bound(p, pool, &ignored);
    if (l->high <= l->low)
        return false;
    ladder_start_from_others(l);
    return true;
}

/* The search with its other beginning, which sees nothing of what the first has found: on small
 * graphs either may end far below the other, and both together are still quick. */
static void climb_again(const RematProblem *p, const RematOptions *o, Pool *pool, Front *front)
{
    Pool *scratch = pool_new_child(pool);
    Front other = {.pool = scratch};
    Ladder l;
    if (ladder_begin(&l, p, o, scratch, &other))
        climb(&l, false);
    for (size_t k = 0; k < other.points.len; k++) {
        const FrontPoint *x = &other.points.data[k];
        front_offer(front, x->peak_bytes, x->time, &x->schedule);
    }
    pool_free(scratch);
}

/* True when nothing is better than the front. */
static bool fill_front(const RematProblem *p, const RematOptions *o, Pool *pool, Front *front)
{
    Ladder l;
    if (!ladder_begin(&l, p, o, pool, front))
        return true;
    climb(&l, true);
    if (p->n_nodes <= TWICE_NODES)
        climb_again(p, o, pool, front);
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
