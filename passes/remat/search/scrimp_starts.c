/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the scrimp solver starts: answers of all solvers that are quick.  They go to the front as
 * they are, so that no budget is answered worse than by them, and their orders of first runs become
 * base orders of the search. */
#include "ir/support/map.h"
#include "ir/support/parallel.h"
#include "passes/remat/model/pieces_schedule.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/order/reorder.h"
#include "passes/remat/search/lns.h"
#include "passes/remat/solvers.h"

/* Up to how many nodes a solver is asked: where it takes about a second, or two: then it comes
 * first, so that the others run beside it.  With few steps the exhaustive search keeps to ancestor
 * sets, with more it has all lower sets of small graphs. */
static const struct Start {
    RematSolve *solve;
    int most_nodes;
    int64_t max_steps;      /* 0: the solver's own limit */
    int64_t steps_per_node; /* 0: no matter how many */
} asked_first[] = {{remat_kusumoto_exact, 3000, 1000000000, 300000},
                   {remat_chen, 1 << 20, 0, 0},
                   {remat_kusumoto_approx, 40000, 100000000, 0},
                   {remat_mincut, 10000, 0, 0},
                   {remat_feng_acg, 5000, 0, 0},
                   {remat_feng_closeset, 5000, 0, 0},
                   {remat_feng_linear, 5000, 0, 0},
                   {remat_revolve, 10000, 0, 0},
                   {remat_chain_dp, 10000, 0, 0},
                   {remat_twremat, 10000, 0, 0},
                   {remat_dtr, 5000, 0, 0},
                   {remat_xla_greedy, 3000, 100000000, 0},
                   {remat_random, 5000, 0, 0},
                   {remat_kusumoto_exhaustive, 1000, 100000, 0},
                   {remat_kusumoto_exhaustive, 5000, 100000000, 65000}};
/* With more runs only answers that are nearly the smallest so far are worth another order. */
enum { MANY_RUNS = 1500, N_STARTS = sizeof asked_first / sizeof *asked_first };

/* What one solver found, or the reordering of its smallest schedule. */
typedef struct Found {
    Pool *pool;
    const RematProblem *p;
    const AliasedProblem *pieces; /* or NULL */
    Starts seen;
} Found;

typedef struct Asked {
    const RematProblem *p;
    const RematOptions *options;
    Found found[N_STARTS], ordered[N_STARTS];
    RematSchedule smallest[N_STARTS]; /* NULL: it was not asked */
    int n_orders, order_of[N_STARTS]; /* whose smallest is to have another order */
} Asked;

Starts starts_new(Pool *pool)
{
    return (Starts){.plain.pool = pool, .on_pieces.pool = pool, .counted.pool = pool};
}

static void merge_starts(Starts *all, const Starts *more)
{
    pareto_merge(&all->plain, &more->plain);
    pareto_merge(&all->on_pieces, &more->on_pieces);
    pareto_merge(&all->counted, &more->counted);
}

static void offer(ParetoFront *front, const RematProblem *p, const RematSchedule *s,
                  const RematFigures *f)
{
    if (!f->ok || !pareto_takes(front, f->peak_bytes, f->time))
        return;
    Pool *scratch = pool_new_child(front->pool);
    if (remat_obeys_hints(scratch, p, s))
        pareto_offer(front, f->peak_bytes, f->time, s);
    pool_free(scratch);
}

static void offer_schedule(Found *x, const RematSchedule *s, const RematFigures *f)
{
    const AliasedProblem *pieces = x->pieces;
    offer(&x->seen.plain, x->p, s, f);
    if (!pieces)
        return;
    Pool *scratch = pool_new_child(x->pool);
    RematSchedule runs;
    RematFigures counted = *f, on_pieces = pieces_check(scratch, pieces, s, &runs);
    counted.peak_bytes = pieces_likely_peak(f->peak_bytes, &on_pieces);
    offer(&x->seen.on_pieces, &pieces->problem, &runs, &on_pieces);
    offer(&x->seen.counted, x->p, s, &counted);
    pool_free(scratch);
}

static void seen_schedule(void *user, const RematSchedule *s, const RematFigures *f)
{
    offer_schedule(user, s, f);
}

static int64_t max_steps(const struct Start *s, int n_nodes)
{
    int64_t steps = s->steps_per_node * n_nodes;
    return steps > 0 && steps < s->max_steps ? steps : s->max_steps;
}

static Found found_new(const Asked *x, Pool *pool)
{
    const AliasedProblem *pieces = x->options->context.pieces;
    return (Found){.pool = pool, .p = x->p, .pieces = pieces, .seen = starts_new(pool)};
}

static void ask(void *user, int k, Pool *pool)
{
    Asked *x = user;
    x->found[k] = found_new(x, pool);
    if (x->p->n_nodes > asked_first[k].most_nodes || remat_out_of_time(x->options))
        return;
    RematOptions o = {.objective = REMAT_MIN_TIME,
                      .max_steps = max_steps(&asked_first[k], x->p->n_nodes),
                      .deadline_seconds = x->options->deadline_seconds,
                      .context = x->options->context,
                      .seen = seen_schedule,
                      .user = &x->found[k]};
    Pool *scratch = pool_new_child(pool);
    RematSchedule s;
    asked_first[k].solve(x->p, &o, scratch, &s);
    x->smallest[k] = remat_schedule_copy(pool, &s);
    pool_free(scratch);
}

/* ---- the smallest answers in another order, as remat_solve does with what does not fit ---- */

static void reorder(void *user, int k, Pool *pool)
{
    Asked *x = user;
    const RematSchedule *s = &x->smallest[x->order_of[k]];
    Found *found = &x->ordered[x->order_of[k]];
    Pool *scratch = pool_new_child(pool);
    *found = found_new(x, pool);
    const RematProblem *runs = remat_expand(scratch, x->p, s);
    RematSchedule order = lns_order(scratch, runs, 0, x->options->context.orders_until);
    for (int i = 0; i < order.len; i++)
        order.node[i] = s->node[order.node[i]];
    RematFigures f = remat_check(scratch, x->p, &order);
    offer_schedule(found, &order, &f);
    pool_free(scratch);
}

/* Once for each schedule, because some solvers have the same. */
static void choose_orders(Asked *x, Pool *scratch, const ParetoFront *front)
{
    uint64_t done[N_STARTS];
    int64_t least = front->points.data[0].peak_bytes;
    for (int k = 0; k < N_STARTS; k++) {
        const RematSchedule *s = &x->smallest[k];
        if (!s->node)
            continue;
        int64_t peak = remat_check(scratch, x->p, s).peak_bytes;
        least = peak < least ? peak : least;
        if (s->len > MANY_RUNS && peak > least + least / 4)
            continue;
        uint64_t hash = hash_bytes(s->node, (size_t)s->len * sizeof *s->node, 0);
        int same = 0;
        while (same < x->n_orders && done[same] != hash)
            same++;
        if (same < x->n_orders)
            continue;
        done[x->n_orders] = hash;
        x->order_of[x->n_orders++] = k;
    }
}

void start_from_others(const RematProblem *p, const RematOptions *o, Pool *pool, Starts *starts)
{
    Pool *scratch = pool_new_child(pool);
    Asked x = {.p = p, .options = o};
    parallel_run(scratch, o->n_threads, N_STARTS, ask, &x);
    choose_orders(&x, scratch, &starts->plain);
    parallel_run(scratch, o->n_threads, x.n_orders, reorder, &x);
    for (int k = 0; k < N_STARTS; k++) {
        merge_starts(starts, &x.found[k].seen);
        merge_starts(starts, &x.ordered[k].seen);
    }
    pool_free(scratch);
}

void lns_start_from_hints(LargeNeighbourhoodSearch *l)
{
    const RematProblem *p = l->p;
    IncrementalSchedule *slots = lns_base(l, NULL)->slots;
    for (int n = p->loss_node; n >= 0; n--) {
        int next = -1;
        for (int k = 0; p->node[n].hint == REMAT_RECOMPUTE && k < p->node[n].n_out; k++) {
            int read = incremental_next_read(slots, n, 0, k, p->loss_node);
            next = read >= 0 && (next < 0 || read < next) ? read : next;
        }
        if (next >= 0 && incremental_allowed(slots, n, next))
            incremental_add(slots, n, next);
    }
    incremental_commit(slots);
    lns_offer(l);
}
