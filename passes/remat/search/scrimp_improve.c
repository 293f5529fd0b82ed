/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the scrimp solver improves a schedule: large-neighbourhood search (Shaw 1998) over its
 * recomputations, and other orders of its runs. */
#include "passes/remat/model/schedule.h"
#include "passes/remat/model/solver.h"
#include "passes/remat/order/reorder.h"
#include "passes/remat/search/lns.h"

/* ---- large neighbourhoods ---- */

typedef enum RuinKind {
    RUIN_ALL_OVER, /* recomputations anywhere, each with a chance */
    RUIN_SLOTS,    /* those within a stretch of slots, */
    RUIN_NODES,    /* or of nodes */
    RUIN_ALIKE,    /* those of nodes of one kind, each with a chance */
    RUIN_KINDS
} RuinKind;

typedef struct Ruin {
    RuinKind kind;
    int center, width;
    double chance;
    uint64_t alike;
} Ruin;

/* A node that runs again, at random. */
static int draw_recomputed(GreedySearch *x)
{
    int n, slots = incremental_count(x->slots);
    for (int slot = (int)(greedy_random(x) % (uint64_t)slots), k = 0; k < slots; k++, slot++) {
        const int *node = incremental_in_slot(x->slots, slot % slots, &n);
        if (n > 0)
            return node[greedy_random(x) % (uint64_t)n];
    }
    return 0;
}

static Ruin draw_ruin(GreedySearch *x)
{
    const IncrementalSchedule *s = x->slots;
    RuinKind kind = (RuinKind)(greedy_random(x) % RUIN_KINDS);
    int n = incremental_count(s);
    double u = greedy_uniform(x), v = greedy_uniform(x);
    Ruin r = {.kind = kind,
              .chance = 0.005 + 0.17 * u * u,
              .center = (int)(greedy_random(x) % (uint64_t)n),
              .width = 2 + (int)(0.15 * n * u * v)};
    if (kind == RUIN_ALIKE) {
        r.alike = x->kind[draw_recomputed(x)];
        r.chance = 0.25 + u;
    }
    return r;
}

static bool is_ruined(GreedySearch *x, const Ruin *r, int node, int slot)
{
    int at = r->kind == RUIN_SLOTS ? slot : node;
    switch (r->kind) {
    case RUIN_ALIKE:
        return x->kind[node] == r->alike && greedy_uniform(x) < r->chance;
    case RUIN_ALL_OVER:
        return greedy_uniform(x) < r->chance;
    case RUIN_SLOTS:
    case RUIN_NODES:
    case RUIN_KINDS:
        break;
    }
    return at >= r->center - r->width && at <= r->center + r->width;
}

static void ruin(GreedySearch *x)
{
    const Ruin r = draw_ruin(x);
    for (int slot = incremental_count(x->slots) - 1; slot >= 0; slot--) {
        int n;
        incremental_in_slot(x->slots, slot, &n);
        for (int i = n - 1; i >= 0; i--) {
            int left, node;
            const int *in_slot = incremental_in_slot(x->slots, slot, &left);
            if (i >= left) /* went with another */
                continue;
            node = in_slot[i];
            if (is_ruined(x, &r, node, slot))
                greedy_remove(x, node, slot);
        }
    }
}

/* How the prices of the next repair are bent. */
static void draw_prices(GreedySearch *x)
{
    x->noise = 0.6 * greedy_uniform(x);
    x->draw = greedy_random(x);
    x->by_kind = greedy_random(x) % 2 == 0;
    x->reach = greedy_uniform(x);
    x->reach = x->reach < 0.3 ? 0 : x->reach;
}

/* Stays at the best schedule, or one as good. */
void lns_improve(LargeNeighbourhoodSearch *l, double work)
{
    GreedySearch *x = l->base[0]->x;
    double until = (double)incremental_work(x->slots) + work, best = incremental_time(x->slots);
    int most_failures = 20 + incremental_recomputed(x->slots), failures = 0;
    while ((double)incremental_work(x->slots) < until && incremental_recomputed(x->slots) > 0 &&
           failures < most_failures && !remat_out_of_time(l->options)) {
        int mark = incremental_mark(x->slots);
        draw_prices(x);
        ruin(x);
        bool as_good = lns_repair(l) && incremental_time(x->slots) <= best;
        failures = as_good && incremental_time(x->slots) < best * (1 - 1e-9) ? 0 : failures + 1;
        if (as_good) {
            best = incremental_time(x->slots);
            incremental_commit(x->slots);
        } else {
            incremental_rollback(x->slots, mark);
        }
    }
    x->noise = x->reach = 0;
}

/* What the next repair aims at: anything down to the lower bound, mostly a little below the peak,
 * because what is taken out of a schedule is mostly worth little. */
static int64_t draw_smaller(GreedySearch *x, int64_t peak, int64_t low)
{
    double u = greedy_uniform(x), square = u * u;
    return peak - 1 - (int64_t)(square * square * square * (double)(peak - low));
}

/* Stays at the smallest schedule, whatever its time. */
void lns_shrink(LargeNeighbourhoodSearch *l, double work)
{
    const ParetoPoint *least = &l->front->points.data[0];
    l->target_bytes = least->peak_bytes;
    GreedySearch *x = lns_load(l, &least->schedule);
    lns_repair(l);
    incremental_commit(x->slots);
    double until = (double)incremental_work(x->slots) + work;
    int64_t peak = incremental_peak(x->slots, NULL);
    int most_failures = 20 + incremental_recomputed(x->slots), failures = 0;
    while ((double)incremental_work(x->slots) < until && incremental_recomputed(x->slots) > 0 &&
           peak > l->low && failures < most_failures && !remat_out_of_time(l->options)) {
        int mark = incremental_mark(x->slots);
        draw_prices(x);
        x->target_bytes = draw_smaller(x, peak, l->low);
        ruin(x);
        greedy_reduce(x);
        lns_offer(l);
        int64_t reached = incremental_peak(x->slots, NULL);
        failures = reached < peak ? 0 : failures + 1;
        if (reached < peak) {
            x->target_bytes = peak = reached;
            greedy_restore(x);
            lns_offer(l);
            incremental_commit(x->slots);
        } else {
            incremental_rollback(x->slots, mark);
        }
    }
    x->noise = x->reach = 0;
}

/* ---- other orders ---- */

/* After how many failures in a row the order is left as it is, and so many more, divided by nodes;
 * up to how many runs it is made anew, and not only in windows around the peak: for more of them
 * that is ten times the work and gains hardly anything. */
enum { MOST_IN_VAIN = 6, CHEAP = 4000, MOST_LISTED = 1500 };

RematSchedule lns_order(Pool *scratch, const RematProblem *runs, int64_t good_enough_bytes,
                        double until)
{
    if (runs->n_nodes <= MOST_LISTED)
        return reorder_nodes(scratch, runs, good_enough_bytes, until);
    RematSchedule order = remat_base_schedule(scratch, runs);
    reorder_windows(scratch, runs, node_graph_new(scratch, runs), &order, good_enough_bytes, until);
    return order;
}

bool lns_reorder(LargeNeighbourhoodSearch *l)
{
    const ParetoPoint *best = pareto_within(l->front, l->target_bytes);
    if (!best || best->peak_bytes == l->reordered_bytes ||
        l->in_vain >= MOST_IN_VAIN + CHEAP / l->p->n_nodes)
        return false;
    l->reordered_bytes = best->peak_bytes;
    Pool *scratch = pool_new_child(l->pool);
    RematSchedule s = {best->schedule.len, NULL};
    const RematProblem *runs = remat_expand(scratch, l->p, &best->schedule);
    RematSchedule order = lns_order(scratch, runs, l->low, l->options->context.orders_until);
    int64_t peak = remat_check(scratch, runs, &order).peak_bytes;
    bool better = peak < best->peak_bytes;
    s.node = POOL_ARRAY(scratch, (size_t)s.len + 1, int);
    for (int i = 0; i < s.len; i++)
        s.node[i] = best->schedule.node[order.node[i]];
    if (better)
        lns_offer_schedule(l, &s);
    l->in_vain = better ? 0 : l->in_vain + 1;
    pool_free(scratch);
    return better;
}
