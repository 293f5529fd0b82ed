/* Scrimp's own solver.  A schedule is a base order and any set of recomputations at any places
 * (slots.h).  For a ladder of targets between keeping everything and the lower bound it
 *  1. drops values greedily by time a byte (search_drop.c): from the nearest schedule that is too
 *     large, and from keeping everything with prices bent in several ways,
 *  2. takes back what is not needed (search_restore.c),
 *  3. improves the best schedule of the step by large-neighbourhood search (Shaw 1998):
 * recomputations of a stretch are taken out, the greedy repairs with random prices, what is not
 * slower stays. The schedules of chen and kusumoto_approx are starting points, too.  Every schedule
 * on the way goes to the front (front.h).  Targets, effort and random numbers do not depend on the
 * budget, so neither does the front: one search answers every budget, and time never grows with the
 * budget.
 *
 * Work is counted in updates and queries of the memory profile, never by the clock. */
#include "passes/remat/bound.h"
#include "passes/remat/front.h"
#include "passes/remat/search.h"
#include "passes/remat/solvers.h"

#include <math.h>

enum { LEVELS = 64, STARTS = 4, PASSES = 2 };
/* Less than a millisecond a node; the most is about three seconds. */
static const double WORK = 2e5, WORK_PER_NODE = 4e3, MOST_WORK = 1.2e7;
/* Part of the work after which no more starts are made. */
static const double STARTS_PART = 0.4;

/* What a search found, and with which seed. */
typedef struct RematMemo {
    Front front;
    uint64_t seed;
    bool complete;
} RematMemo;

struct RematMemo *remat_memo_new(Pool *pool)
{
    return POOL_NEW(pool, RematMemo);
}

typedef struct Ladder {
    Search *x;
    Front *front;
    const RematOptions *options;
    int64_t high, low; /* targets lie between */
    double work;       /* in all */
} Ladder;

static bool out_of_work(const Ladder *l, double part)
{
    return (double)slots_work(l->x->slots) >= part * l->work || remat_out_of_time(l->options);
}

/* ---- starting points of others ---- */

/* A recomputation goes into the slot of the first base node that has not run yet. */
static void seen_schedule(void *user, const RematSchedule *s, const RematFigures *f)
{
    const Ladder *l = user;
    const FrontPoint *rival = front_within(l->front, f->peak_bytes);
    if (rival && rival->time <= f->time)
        return;
    Slots *slots = l->x->slots;
    Pool *pool = pool_new_child(l->x->pool);
    bool *ran = POOL_ARRAY(pool, (size_t)slots_count(slots) + 1, bool);
    slots_clear(slots);
    for (int i = 0, base = 0; i < s->len; i++) {
        int node = s->node[i];
        if (ran[node] && slots_allowed(slots, node, base) && !slots_has(slots, node, base))
            slots_add(slots, node, base);
        ran[node] = true;
        while (base < slots_count(slots) && ran[base])
            base++;
    }
    slots_commit(slots);
    front_offer(l->front, slots);
    pool_free(pool);
}

static void start_from_others(Ladder *l)
{
    RematOptions o = {.objective = REMAT_MIN_TIME,
                      .deadline_seconds = l->options->deadline_seconds,
                      .seen = seen_schedule,
                      .user = l};
    RematSchedule ignored;
    remat_chen(l->x->p, &o, l->x->pool, &ignored);
    remat_kusumoto_approx(l->x->p, &o, l->x->pool, &ignored);
}

/* What @recompute asks for runs again for its first read behind the loss. */
static void start_from_hints(Ladder *l)
{
    const RematProblem *p = l->x->p;
    Slots *slots = l->x->slots;
    for (int n = p->loss_node; n >= 0; n--) {
        int next = -1;
        for (int k = 0; p->node[n].hint == REMAT_RECOMPUTE && k < p->node[n].n_out; k++) {
            int read = slots_next_read(slots, n, 0, k, p->loss_node);
            next = read >= 0 && (next < 0 || read < next) ? read : next;
        }
        if (next >= 0 && slots_allowed(slots, n, next))
            slots_add(slots, n, next);
    }
    slots_commit(slots);
}

/* ---- one target ---- */

static bool repair(Ladder *l)
{
    bool fits = search_reduce(l->x);
    front_offer(l->front, l->x->slots);
    if (!fits)
        return false;
    search_restore(l->x);
    front_offer(l->front, l->x->slots);
    return true;
}

static void start_level(Ladder *l)
{
    static const double reach[STARTS] = {0, 0.5, 1, 0}, noise[STARTS] = {0, 0, 0, 0.4};
    Search *x = l->x;
    const FrontPoint *above = front_above(l->front, x->target_bytes);
    const FrontPoint *all = &l->front->points.data[l->front->points.len - 1];
    for (int start = -1; start < STARTS && above; start++) {
        front_load(start < 0 ? above : all, x->slots);
        x->reach = start < 0 ? 0 : reach[start];
        x->noise = start < 0 ? 0 : noise[start];
        repair(l);
        all = &l->front->points.data[l->front->points.len - 1];
    }
    x->reach = x->noise = 0;
}

/* ---- large neighbourhoods ---- */

typedef struct Ruin {
    bool all_over; /* recomputations anywhere, each with a chance */
    bool by_slot;  /* else those within a stretch of slots, or of nodes */
    int center, width;
    double chance;
} Ruin;

static Ruin draw_ruin(Search *x)
{
    const Slots *s = x->slots;
    int kind = (int)(search_random(x) % 3), n = slots_count(s);
    double u = search_uniform(x), v = search_uniform(x);
    return (Ruin){.all_over = kind == 0,
                  .by_slot = kind == 1,
                  .chance = 0.02 + 0.15 * u,
                  .center = (int)(search_random(x) % (uint64_t)n),
                  .width = 2 + (int)(0.15 * n * u * v)};
}

static bool is_ruined(Search *x, const Ruin *r, int node, int slot)
{
    int at = r->by_slot ? slot : node;
    return r->all_over ? search_uniform(x) < r->chance
                       : at >= r->center - r->width && at <= r->center + r->width;
}

static void ruin(Search *x)
{
    const Ruin r = draw_ruin(x);
    for (int slot = slots_count(x->slots) - 1; slot >= 0; slot--) {
        int n;
        slots_in_slot(x->slots, slot, &n);
        for (int i = n - 1; i >= 0; i--) {
            int left, node;
            const int *in_slot = slots_in_slot(x->slots, slot, &left);
            if (i >= left) /* went with another */
                continue;
            node = in_slot[i];
            if (is_ruined(x, &r, node, slot))
                search_remove(x, node, slot);
        }
    }
}

/* Stays at the best schedule of the present target, or one as good. */
static void improve(Ladder *l, double work)
{
    Search *x = l->x;
    double until = (double)slots_work(x->slots) + work, best = slots_time(x->slots);
    while ((double)slots_work(x->slots) < until && slots_recomputed(x->slots) > 0 &&
           !remat_out_of_time(l->options)) {
        int mark = slots_mark(x->slots);
        x->noise = 0.6 * search_uniform(x);
        x->reach = search_uniform(x);
        x->reach = x->reach < 0.3 ? 0 : x->reach;
        ruin(x);
        if (repair(l) && slots_time(x->slots) <= best) {
            best = slots_time(x->slots);
            slots_commit(x->slots);
        } else {
            slots_rollback(x->slots, mark);
        }
    }
    x->noise = x->reach = 0;
}

/* ---- all targets ---- */

/* Level k of LEVELS in the order of a binary subdivision: wherever the work ends, what has been
 * done is spread evenly. */
static int64_t target_of(const Ladder *l, int k)
{
    int reversed = 0;
    for (int bit = 1; bit < LEVELS; bit *= 2)
        reversed = 2 * reversed + ((k & bit) != 0);
    return l->high - (int64_t)((double)(l->high - l->low) * (reversed + 1) / LEVELS);
}

/* From large targets to small ones, so that what was gained at one goes on to the next. */
static void improve_level(Ladder *l, int64_t target, double work)
{
    Search *x = l->x;
    x->target_bytes = target;
    const FrontPoint *above = front_above(l->front, target);
    if (above && front_within(l->front, target)) {
        front_load(above, x->slots);
        repair(l);
    }
    const FrontPoint *best = front_within(l->front, target);
    if (!best)
        return;
    front_load(best, x->slots);
    search_restore(x);
    front_offer(l->front, x->slots);
    improve(l, work);
}

static void climb(Ladder *l)
{
    int64_t too_low = 0; /* the highest target that was not reached */
    for (int k = 0; k < LEVELS && !out_of_work(l, STARTS_PART); k++) {
        int64_t target = l->x->target_bytes = target_of(l, k);
        if (target <= too_low)
            continue;
        start_level(l);
        if (!front_within(l->front, target))
            too_low = target;
    }
    double share = (1 - STARTS_PART) * l->work / (LEVELS * PASSES);
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = 1; k <= LEVELS && !out_of_work(l, 1); k++)
            improve_level(l, l->high - (int64_t)((double)(l->high - l->low) * k / LEVELS), share);
}

static void fill_front(const RematProblem *p, const RematOptions *o, Pool *pool, Front *front)
{
    int ignored;
    Ladder l = {.x = search_new(pool, p, o->seed), .front = front, .options = o};
    l.work = fmin(WORK + WORK_PER_NODE * p->n_nodes, MOST_WORK);
    l.x->most_work = (int64_t)(l.work / 100) + 20 * p->n_nodes;
    start_from_hints(&l);
    front_offer(front, l.x->slots);
    l.high = slots_peak(l.x->slots, NULL);
    l.low = remat_peak_lower_bound(p, pool, &ignored);
    if (l.high <= l.low)
        return; /* keeping everything needs no more than anything else */
    start_from_others(&l);
    climb(&l);
}

RematStatus remat_scrimp(const RematProblem *p, const RematOptions *o, Pool *pool,
                         RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    RematMemo own = {.front = {.pool = scratch}}, *memo = p->memo ? p->memo : &own;
    if (!memo->complete || memo->seed != o->seed) {
        *memo = (RematMemo){.front = {.pool = p->memo ? p->pool : scratch}, .seed = o->seed};
        fill_front(p, o, scratch, &memo->front);
        memo->complete = !remat_out_of_time(o);
    }
    const FrontPoint *best = front_within(&memo->front, o->budget_bytes);
    bool fits = best != NULL;
    if (!fits || o->objective == REMAT_MIN_MEMORY)
        best = &memo->front.points.data[0];
    Slots *slots = slots_new(scratch, p);
    front_load(best, slots);
    *out = slots_schedule(pool, slots);
    pool_free(scratch);
    return !memo->complete ? REMAT_LIMIT : fits ? REMAT_FEASIBLE : REMAT_INFEASIBLE;
}
