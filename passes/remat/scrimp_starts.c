/* Where the scrimp solver starts: answers of all solvers that are quick.  They go to the front as
 * they are, so that no budget is answered worse than by them, and their orders of first runs become
 * base orders of the search. */
#include "ir/support/map.h"
#include "passes/remat/ladder.h"
#include "passes/remat/reorder.h"
#include "passes/remat/solvers.h"

static void seen_schedule(void *user, const RematSchedule *s, const RematFigures *f)
{
    Ladder *l = user;
    if (front_takes(l->front, f->peak_bytes, f->time))
        ladder_offer_schedule(l, s);
}

/* Up to how many nodes a solver is asked: where it takes about a second.  With few steps the
 * exhaustive search keeps to ancestor sets, with more it has all lower sets of small graphs. */
static const struct Start {
    RematSolve *solve;
    int most_nodes;
    int64_t max_steps;      /* 0: the solver's own limit */
    int64_t steps_per_node; /* 0: no matter how many */
} starts[] = {{remat_chen, 1 << 20, 0, 0},
              {remat_kusumoto_approx, 1 << 20, 100000000, 0},
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
              {remat_kusumoto_exhaustive, 5000, 100000000, 65000},
              {remat_kusumoto_exact, 3000, 20000000, 0}};
/* With more runs only answers that are nearly the smallest so far are worth another order. */
enum { MANY_RUNS = 1500, N_STARTS = sizeof starts / sizeof *starts };

/* The same runs in an order with a smaller peak, as remat_solve does with what does not fit; once
 * for each schedule, because some solvers have the same. */
static void reorder_smallest(Ladder *l, Pool *scratch, RematSchedule *s, uint64_t *done)
{
    int64_t least = l->front->points.data[0].peak_bytes;
    if (s->len > MANY_RUNS && remat_check(scratch, l->p, s).peak_bytes > least + least / 4)
        return;
    uint64_t hash = hash_bytes(s->node, (size_t)s->len * sizeof *s->node, 0) | 1;
    int k = 0;
    while (done[k] && done[k] != hash)
        k++;
    if (done[k])
        return;
    done[k] = hash;
    const RematProblem *runs = remat_expand(scratch, l->p, s);
    RematSchedule order = ladder_order(scratch, runs, 0);
    for (int i = 0; i < order.len; i++)
        order.node[i] = s->node[order.node[i]];
    ladder_offer_schedule(l, &order);
}

static int64_t max_steps(const struct Start *s, int n_nodes)
{
    int64_t steps = s->steps_per_node * n_nodes;
    return steps > 0 && steps < s->max_steps ? steps : s->max_steps;
}

void ladder_start_from_others(Ladder *l)
{
    uint64_t reordered[N_STARTS + 1] = {0};
    for (size_t k = 0; k < N_STARTS; k++) {
        if (l->p->n_nodes > starts[k].most_nodes || remat_out_of_time(l->options))
            continue;
        RematOptions o = {.objective = REMAT_MIN_TIME,
                          .max_steps = max_steps(&starts[k], l->p->n_nodes),
                          .deadline_seconds = l->options->deadline_seconds,
                          .seen = seen_schedule,
                          .user = l};
        Pool *scratch = pool_new_child(l->pool);
        RematSchedule smallest;
        starts[k].solve(l->p, &o, scratch, &smallest);
        reorder_smallest(l, scratch, &smallest, reordered);
        pool_free(scratch);
    }
}

void ladder_start_from_hints(Ladder *l)
{
    const RematProblem *p = l->p;
    Slots *slots = ladder_base(l, NULL)->slots;
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
    ladder_offer(l);
}
