/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A layout within a limit from the tightest buffers outwards (P6).  Whether there is one depends
 * mostly on the few buffers that live when hardly a byte is left over.  They are placed first, as a
 * problem of their own in which time is only where they live: branch and bound with short restarts.
 * Then come those that are less tight, by a part of their number at a time; as long as branch and
 * bound finds a layout, it starts anew, then first fit puts the new ones into the layout there is,
 * and an ejection search makes room.  A level that fails ends the attempt: another one, with
 * another idea of what is tight, finds more than more effort would.
 *
 * Tight is a buffer whose busiest time leaves little over, compared with its size and a part of the
 * limit.  Small buffers go in bundles (bundle.c).
 *
 * Sources: branching where least is left over: Haralick and Elliott 1980; restarts: Gomes, Selman
 * and Kautz 1998; bundles are the coarsening of multilevel methods (Walshaw 2004). */
#include "ir/support/sort.h"
#include "passes/memplan/place_internal.h"

#include <string.h>

enum { N_ORDERS = 6, N_ATTEMPTS = 12, MAX_CORE = 2000, FIRST_CORE = 10, STEP_CORE = 5 };
/* Branch and bound: steps of a restart a buffer; restarts until they get twice as long; steps of a
 * level.  Ejection: steps of a try. */
enum { STEPS_A_BUFFER = 1000, RESTARTS = 32, EJECT_TRIES = 2, ORDER_STEPS = 8 };
static const int64_t EXACT_STEPS = 8000000, EJECT_STEPS = 6000000;
static const char *const orders[N_ORDERS] = {"TWA", "AWT", "TZW", "WTA", "TAW", "WZT"};

/* What an attempt takes for tight: as parts of the limit, what a size is worth beside its bytes,
 * and below what size buffers are bundled; and how fast a core grows, in tenths. */
typedef struct Tightness {
    int64_t share, small;
    int growth;
} Tightness;
static const Tightness attempts[N_ATTEMPTS] = {
    {100, 300, 16}, {1000, 300, 13}, {1000, 1000, 14}, {100, 1000, 13},
    {10, 300, 16},  {10, 1000, 13},  {100, 100, 16},   {1000, 100, 13},
    {10, 100, 20},  {100, 100, 16},  {1000, 100, 13},  {10, 100, 20}, /* with other restarts */
};

typedef struct Core { /* what is placed so far */
    PlaceProblem *problem;
    int *buffer; /* by buffer of `problem` */
    int64_t *offset;
} Core;

typedef struct TightFirst {
    const PlaceProblem *p;
    PlaceWork *work;
    int64_t limit;
    int attempt;
    int *tight;             /* buffers, the tightest first */
    int *ordered[N_ORDERS]; /* all buffers */
    int *entry;             /* the order in which first fit takes new ones */
    int *position;          /* by buffer: in the core, or -1 */
    int64_t *offset;        /* by buffer: of the core before */
    bool *known;            /* by buffer: in the core before */
    bool exact;             /* branch and bound found all cores so far */
} TightFirst;

/* Fills s->tight; how many leave nothing over. */
static int sort_by_tightness(TightFirst *s, Pool *pool)
{
    const PlaceProblem *p = s->p;
    Weighted *items = POOL_ARRAY(pool, (size_t)p->n, Weighted);
    int64_t share = s->limit / attempts[s->attempt % N_ATTEMPTS].share;
    int full = 0;
    for (int b = 0; b < p->n; b++) {
        double over = (double)(s->limit - p->max_load[b]);
        items[b] = (Weighted){over / (double)(p->size[b] + share), b};
        full += p->max_load[b] == s->limit;
    }
    sort_weighted(items, (size_t)p->n);
    for (int k = 0; k < p->n; k++)
        s->tight[k] = items[k].item;
    return full;
}

/* The n tightest buffers as a problem of their own. */
static Core core_new(TightFirst *s, Pool *pool, int n)
{
    Core c = {.buffer = POOL_ARRAY(pool, (size_t)n, int)};
    MemBuffer *buffers = POOL_ARRAY(pool, (size_t)n, MemBuffer);
    int *index = POOL_ARRAY(pool, (size_t)n, int), m = 0;
    for (int b = 0; b < s->p->n; b++)
        s->position[b] = -1;
    for (int k = 0; k < n; k++)
        s->position[s->tight[k]] = 0;
    for (int b = 0; b < s->p->n; b++) {
        if (s->position[b] < 0)
            continue;
        buffers[m] = (MemBuffer){s->p->start[b], s->p->end[b], s->p->size[b]};
        c.buffer[m] = b;
        index[m] = m;
        s->position[b] = m++;
    }
    c.problem = place_compress(pool, buffers, index, n);
    c.problem->target = s->limit;
    c.offset = POOL_ARRAY(pool, (size_t)n, int64_t);
    s->work->done += s->p->n;
    return c;
}

/* Those of the buffers that are in the core, by position. */
static int pick_members(const TightFirst *s, const int *buffers, bool only_new, int *order)
{
    int n = 0;
    for (int k = 0; k < s->p->n; k++) {
        int b = buffers[k];
        if (s->position[b] >= 0 && !(only_new && s->known[b]))
            order[n++] = s->position[b];
    }
    s->work->done += s->p->n;
    return n;
}

/* The k-th restart: lives count as they are, then only by their part in the core; then both
 * shuffled. */
static void restart_order(const TightFirst *s, const Core *c, int k, int *order)
{
    int which = (s->attempt + k) % N_ORDERS, n = c->problem->n;
    if (k / N_ORDERS % 2 == 0)
        pick_members(s, s->ordered[which], false, order);
    else
        place_order(c->problem, orders[which], order);
    if (k >= 2 * N_ORDERS || k + s->attempt >= N_ORDERS)
        place_shuffle(order, n, (uint64_t)k * 1000 + (uint64_t)s->attempt + 1);
    s->work->done += ORDER_STEPS * n;
}

/* Branch and bound, from nothing. */
static bool search_core(TightFirst *s, Pool *pool, Core *c)
{
    int n = c->problem->n, *order = POOL_ARRAY(pool, (size_t)n, int);
    int64_t end = s->work->done + EXACT_STEPS, effort = (int64_t)STEPS_A_BUFFER * n;
    PlaceOutcome outcome = PLACE_UNKNOWN;
    for (int k = 0; outcome == PLACE_UNKNOWN && s->work->done < end && n <= MAX_CORE; k++) {
        restart_order(s, c, k, order);
        PlaceWork work = {0, effort};
        outcome = place_branch_bound(c->problem, order, s->limit, c->offset, &work);
        s->work->done += work.done;
        if (k % RESTARTS == RESTARTS - 1)
            effort *= 2;
    }
    return outcome == PLACE_FOUND;
}

/* From the layout of the core before, by first fit and ejection. */
static bool extend_core(TightFirst *s, Pool *pool, Core *c, int try)
{
    int n = c->problem->n, n_known = 0;
    Weighted *items = POOL_ARRAY(pool, (size_t)n, Weighted);
    int *order = POOL_ARRAY(pool, (size_t)n, int);
    for (int i = 0; i < n; i++)
        if (s->known[c->buffer[i]])
            items[n_known++] = (Weighted){(double)s->offset[c->buffer[i]], i};
    sort_weighted(items, (size_t)n_known);
    for (int i = 0; i < n_known; i++)
        order[i] = items[i].item;
    pick_members(s, s->entry, true, order + n_known);
    PlaceWork work = {0, EJECT_STEPS};
    bool found = place_first_fit(c->problem, order, c->offset, &work) <= s->limit ||
                 place_eject_within(c->problem, c->offset, s->limit,
                                    (uint64_t)(s->attempt + 100 * try), &work);
    s->work->done += work.done;
    return found;
}

/* The core of the n tightest; false when it is not found. */
static bool grow_core(TightFirst *s, int n)
{
    Pool *pool = pool_new_child(s->p->scratch);
    Core c = core_new(s, pool, n);
    bool found = s->exact = s->exact && search_core(s, pool, &c);
    for (int try = 0; !found && try < EJECT_TRIES && s->work->done < s->work->limit; try++)
        found = extend_core(s, pool, &c, try);
    for (int i = 0; found && i < n; i++) {
        s->offset[c.buffer[i]] = c.offset[i];
        s->known[c.buffer[i]] = true;
    }
    pool_free(pool);
    return found;
}

static bool grow(TightFirst *s, int first)
{
    int n = first < FIRST_CORE ? FIRST_CORE : first;
    int growth = attempts[s->attempt % N_ATTEMPTS].growth;
    for (;; n = n * growth / 10 + STEP_CORE) {
        n = n < s->p->n ? n : s->p->n;
        if (!grow_core(s, n))
            return false;
        if (n == s->p->n)
            return true;
    }
}

static bool place_wholes(const PlaceProblem *p, int64_t limit, int attempt, int64_t *offset,
                         PlaceWork *work)
{
    Pool *pool = p->scratch;
    size_t n = (size_t)p->n;
    TightFirst s = {.p = p, .work = work, .limit = limit, .attempt = attempt, .exact = true};
    s.offset = offset;
    s.tight = POOL_ARRAY(pool, n, int);
    s.entry = POOL_ARRAY(pool, n, int);
    s.position = POOL_ARRAY(pool, n, int);
    s.known = POOL_ARRAY(pool, n, bool);
    for (int k = 0; k < N_ORDERS; k++) {
        s.ordered[k] = POOL_ARRAY(pool, n, int);
        place_order(p, orders[k], s.ordered[k]);
    }
    place_order(p, "TAZ", s.entry);
    return grow(&s, sort_by_tightness(&s, pool));
}

bool place_tight_first(const PlaceProblem *p, int64_t limit, int attempt, int64_t *offset,
                       PlaceWork *work)
{
    Pool *pool = pool_new_child(p->scratch);
    int64_t small = limit / attempts[attempt % N_ATTEMPTS].small;
    PlaceBundles *bundles = place_bundle(pool, p, limit, small, work);
    int64_t *whole = POOL_ARRAY(pool, (size_t)bundles->problem->n, int64_t);
    bool found = place_wholes(bundles->problem, limit, attempt, whole, work);
    for (int b = 0; found && b < p->n; b++)
        offset[b] = whole[bundles->whole_of[b]] + bundles->inner[b];
    pool_free(pool);
    return found;
}
