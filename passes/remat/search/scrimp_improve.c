/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the scrimp solver improves a schedule: large-neighbourhood search (Shaw 1998) over its
 * recomputations, and other orders of its runs. */
#include "passes/remat/model/schedule.h"
#include "passes/remat/model/solver.h"
#include "passes/remat/order/reorder.h"
#include "passes/remat/search/ladder.h"

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
static int draw_recomputed(Search *x)
{
    int n, slots = slots_count(x->slots);
    for (int slot = (int)(search_random(x) % (uint64_t)slots), k = 0; k < slots; k++, slot++) {
        const int *node = slots_in_slot(x->slots, slot % slots, &n);
        if (n > 0)
            return node[search_random(x) % (uint64_t)n];
    }
    return 0;
}

static Ruin draw_ruin(Search *x)
{
    const Slots *s = x->slots;
    RuinKind kind = (RuinKind)(search_random(x) % RUIN_KINDS);
    int n = slots_count(s);
    double u = search_uniform(x), v = search_uniform(x);
    Ruin r = {.kind = kind,
              .chance = 0.005 + 0.17 * u * u,
              .center = (int)(search_random(x) % (uint64_t)n),
              .width = 2 + (int)(0.15 * n * u * v)};
    if (kind == RUIN_ALIKE) {
        r.alike = x->kind[draw_recomputed(x)];
        r.chance = 0.25 + u;
    }
    return r;
}

static bool is_ruined(Search *x, const Ruin *r, int node, int slot)
{
    int at = r->kind == RUIN_SLOTS ? slot : node;
    switch (r->kind) {
    case RUIN_ALIKE:
        return x->kind[node] == r->alike && search_uniform(x) < r->chance;
    case RUIN_ALL_OVER:
        return search_uniform(x) < r->chance;
    case RUIN_SLOTS:
    case RUIN_NODES:
    case RUIN_KINDS:
        break;
    }
    return at >= r->center - r->width && at <= r->center + r->width;
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

/* Stays at the best schedule, or one as good. */
void ladder_improve(Ladder *l, double work)
{
    Search *x = l->base[0]->x;
    double until = (double)slots_work(x->slots) + work, best = slots_time(x->slots);
    int most_failures = 20 + slots_recomputed(x->slots), failures = 0;
    while ((double)slots_work(x->slots) < until && slots_recomputed(x->slots) > 0 &&
           failures < most_failures && !remat_out_of_time(l->options)) {
        int mark = slots_mark(x->slots);
        x->noise = 0.6 * search_uniform(x);
        x->draw = search_random(x);
        x->by_kind = search_random(x) % 2 == 0;
        x->reach = search_uniform(x);
        x->reach = x->reach < 0.3 ? 0 : x->reach;
        ruin(x);
        bool as_good = ladder_repair(l) && slots_time(x->slots) <= best;
        failures = as_good && slots_time(x->slots) < best * (1 - 1e-9) ? 0 : failures + 1;
        if (as_good) {
            best = slots_time(x->slots);
            slots_commit(x->slots);
        } else {
            slots_rollback(x->slots, mark);
        }
    }
    x->noise = x->reach = 0;
}

/* ---- other orders ---- */

/* After how many failures in a row the order is left as it is, and so many more, divided by nodes;
 * up to how many runs it is made anew, and not only in windows around the peak: for more of them
 * that is ten times the work and gains hardly anything. */
enum { MOST_IN_VAIN = 6, CHEAP = 4000, MOST_LISTED = 1500 };

RematSchedule ladder_order(Pool *scratch, const RematProblem *runs, int64_t good_enough_bytes,
                           double until)
{
    if (runs->n_nodes <= MOST_LISTED)
        return reorder_nodes(scratch, runs, good_enough_bytes, until);
    RematSchedule order = remat_base_schedule(scratch, runs);
    reorder_windows(scratch, runs, node_graph_new(scratch, runs), &order, good_enough_bytes, until);
    return order;
}

bool ladder_reorder(Ladder *l)
{
    const FrontPoint *best = front_within(l->front, l->target_bytes);
    if (!best || best->peak_bytes == l->reordered_bytes ||
        l->in_vain >= MOST_IN_VAIN + CHEAP / l->p->n_nodes)
        return false;
    l->reordered_bytes = best->peak_bytes;
    Pool *scratch = pool_new_child(l->pool);
    RematSchedule s = {best->schedule.len, NULL};
    const RematProblem *runs = remat_expand(scratch, l->p, &best->schedule);
    RematSchedule order = ladder_order(scratch, runs, l->low, l->options->context.orders_until);
    int64_t peak = remat_check(scratch, runs, &order).peak_bytes;
    bool better = peak < best->peak_bytes;
    s.node = POOL_ARRAY(scratch, (size_t)s.len + 1, int);
    for (int i = 0; i < s.len; i++)
        s.node[i] = best->schedule.node[order.node[i]];
    if (better)
        ladder_offer_schedule(l, &s);
    l->in_vain = better ? 0 : l->in_vain + 1;
    pool_free(scratch);
    return better;
}
