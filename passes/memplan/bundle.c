/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bundles: small buffers whose lives are alike are packed into one, which takes as many bytes as
 * they need at their busiest time, over the hull of their lives.  What is lost where fewer of them
 * live must be left over there by the limit.  A search then has a few hundred buffers to move
 * instead of thousands, and none so small that the holes between the others decide about it. */
#include "passes/memplan/place_internal.h"

#include <string.h>

/* IncrementalSchedule at which a bundle is weighed first; of what the limit leaves in a slot,
 * bundles may lose so much (1/LEFT_PARTS). */
enum { N_SAMPLES = 64, LEFT_PARTS = 2, SAMPLES_A_STEP = 8, MEMBERS_A_STEP = 4 };

typedef struct Bundle {
    int begin, end;  /* hull of the lives */
    int64_t height;  /* of its members where they lie, each as low as it could */
    int64_t *load;   /* by slot less `from`, of the hull */
    int from, to;    /* slots that load[] has room for */
    VEC(int) member; /* by offset */
} Bundle;

typedef struct Bundling {
    const PlaceProblem *p;
    PlaceWork *work;
    Pool *pool;
    int64_t limit, *left;             /* by slot: what bundles may still lose there */
    int64_t *inner;                   /* by buffer in a bundle: its offset there */
    int sample[N_SAMPLES], n_samples; /* the slot with the least left of each part of the time */
    VEC(Bundle) bundle;
} Bundling;

static void choose_samples(Bundling *s)
{
    int slots = s->p->n_slots;
    s->n_samples = slots < N_SAMPLES ? slots : N_SAMPLES;
    for (int k = 0; k < s->n_samples; k++) {
        int begin = (int)((int64_t)slots * k / s->n_samples);
        int end = (int)((int64_t)slots * (k + 1) / s->n_samples);
        s->sample[k] = begin;
        for (int t = begin; t < end; t++)
            if (s->left[t] < s->left[s->sample[k]])
                s->sample[k] = t;
    }
}

/* A bundle with one buffer more. */
typedef struct Joined {
    const Bundle *bundle;
    int buffer, begin, end;
    int64_t height;
} Joined;

static int64_t load_at(const Bundle *g, int t)
{
    return g->begin <= t && t < g->end ? g->load[t - g->from] : 0;
}

static int64_t load_with(const Bundling *s, const Joined *j, int t)
{
    int b = j->buffer;
    return load_at(j->bundle, t) + (s->p->start[b] <= t && t < s->p->end[b] ? s->p->size[b] : 0);
}

/* The part of what is left in slot t that joining would lose; 2 for more than all. */
static double loss_at(const Bundling *s, const Joined *j, int t)
{
    const Bundle *g = j->bundle;
    int64_t before = g->begin <= t && t < g->end ? g->height - load_at(g, t) : 0;
    int64_t lost = j->height - load_with(s, j, t) - before;
    if (lost <= 0)
        return 0;
    return lost > s->left[t] ? 2 : (double)lost / (double)s->left[t];
}

/* The lowest place in the bundle; `to`: how many members lie below it. */
static int64_t lowest_inside(Bundling *s, const Bundle *g, int b, size_t *to)
{
    const PlaceProblem *p = s->p;
    int64_t at = 0;
    *to = 0;
    s->work->done += (int64_t)g->member.len / MEMBERS_A_STEP;
    for (size_t i = 0; i < g->member.len; i++) {
        int m = g->member.data[i];
        if (p->start[m] >= p->end[b] || p->end[m] <= p->start[b])
            continue;
        if (s->inner[m] >= at + p->size[b])
            break;
        int64_t top = s->inner[m] + p->size[m];
        at = top > at ? top : at;
    }
    while (*to < g->member.len && s->inner[g->member.data[*to]] < at)
        ++*to;
    return at;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The largest part over the hull, or something from `at_most` on.  It first looks at samples only,
 * with the height that the loads there ask for. */
static double join_loss(Bundling *s, Joined *j, double at_most)
{
    double worst = 0;
    size_t to;
    int b = j->buffer;
    for (int k = 0; k < s->n_samples; k++)
        if (s->p->start[b] <= s->sample[k] && s->sample[k] < s->p->end[b])
            j->height = larger(j->height, load_with(s, j, s->sample[k]));
    for (int k = 0; k < s->n_samples && worst < at_most; k++)
        if (j->begin <= s->sample[k] && s->sample[k] < j->end) {
            double loss = loss_at(s, j, s->sample[k]);
            worst = loss > worst ? loss : worst;
        }
    s->work->done += s->n_samples / SAMPLES_A_STEP;
    if (worst >= at_most)
        return worst;
    j->height = larger(j->height, lowest_inside(s, j->bundle, b, &to) + s->p->size[b]);
    s->work->done += (j->end - j->begin) / SAMPLES_A_STEP;
    for (int t = j->begin; t < j->end && worst < at_most; t++) {
        double loss = loss_at(s, j, t);
        worst = loss > worst ? loss : worst;
    }
    return worst;
}

static Joined join(const Bundling *s, const Bundle *g, int b)
{
    int start = s->p->start[b], end = s->p->end[b];
    return (Joined){g, b, start < g->begin ? start : g->begin, end > g->end ? end : g->end,
                    g->height};
}

/* Takes sign times what the bundle loses from what is left. */
static void count_loss(Bundling *s, const Bundle *g, int sign)
{
    for (int t = g->begin; t < g->end; t++)
        s->left[t] -= sign * (g->height - load_at(g, t));
}

/* A hull of [begin, end).  Most bundles of thousands are short: all slots for each of them would be
 * a gigabyte. */
static void grow_hull(Bundling *s, Bundle *g, int begin, int end)
{
    if (begin < g->from || end > g->to) {
        int more = end - begin, from = begin > more ? begin - more : 0;
        int to = s->p->n_slots - end > more ? end + more : s->p->n_slots;
        int64_t *load = POOL_ARRAY(s->pool, (size_t)(to - from), int64_t);
        for (int t = g->begin; t < g->end; t++)
            load[t - from] = g->load[t - g->from];
        g->load = load;
        g->from = from;
        g->to = to;
    }
    g->begin = begin;
    g->end = end;
}

static void add_member(Bundling *s, Bundle *g, int b)
{
    Joined j = join(s, g, b);
    size_t to;
    count_loss(s, g, -1);
    grow_hull(s, g, j.begin, j.end);
    for (int t = s->p->start[b]; t < s->p->end[b]; t++)
        g->load[t - g->from] += s->p->size[b];
    s->inner[b] = lowest_inside(s, g, b, &to);
    g->height = larger(g->height, s->inner[b] + s->p->size[b]);
    count_loss(s, g, 1);
    vec_push(s->pool, &g->member, b);
    for (size_t i = g->member.len - 1; i > to; i--)
        g->member.data[i] = g->member.data[i - 1];
    g->member.data[to] = b;
}

/* Into the bundle that loses the least by it, or one of its own. */
static void bundle_buffer(Bundling *s, int b)
{
    int best = -1;
    double least = 1;
    for (size_t k = 0; k < s->bundle.len; k++) {
        const Bundle *g = &s->bundle.data[k];
        Joined j = join(s, g, b);
        if (s->p->start[b] >= g->end || s->p->end[b] <= g->begin)
            continue;
        double loss = join_loss(s, &j, least);
        if (loss < least) {
            least = loss;
            best = (int)k;
        }
    }
    if (best < 0) {
        best = (int)s->bundle.len;
        Bundle fresh = {.begin = s->p->start[b], .end = s->p->start[b]};
        vec_push(s->pool, &s->bundle, fresh);
    }
    add_member(s, &s->bundle.data[best], b);
}

typedef struct Wholes {
    MemBuffer *buffer;
    int *index, n;
} Wholes;

static void add_whole(Wholes *w, int begin, int end, int64_t size)
{
    w->index[w->n] = w->n;
    w->buffer[w->n++] = (MemBuffer){begin, end, size};
}

/* What the search will see: buffers that are in no bundle, or alone in one, by `order`, which
 * decides where they are equal to what sorts them; then the bundles. */
static void make_wholes(const Bundling *s, const int *order, PlaceBundles *out)
{
    size_t room = (size_t)s->p->n;
    Wholes w = {POOL_ARRAY(s->pool, room, MemBuffer), POOL_ARRAY(s->pool, room, int), 0};
    bool *bundled = POOL_ARRAY(s->pool, room, bool);
    for (size_t k = 0; k < s->bundle.len; k++)
        for (size_t i = 0; i < s->bundle.data[k].member.len; i++)
            bundled[s->bundle.data[k].member.data[i]] = s->bundle.data[k].member.len > 1;
    for (int k = 0; k < s->p->n; k++)
        if (!bundled[order[k]]) {
            out->whole_of[order[k]] = w.n;
            add_whole(&w, s->p->start[order[k]], s->p->end[order[k]], s->p->size[order[k]]);
        }
    for (size_t k = 0; k < s->bundle.len; k++) {
        const Bundle *g = &s->bundle.data[k];
        if (g->member.len == 1)
            continue;
        for (size_t i = 0; i < g->member.len; i++)
            out->whole_of[g->member.data[i]] = w.n;
        add_whole(&w, g->begin, g->end, g->height);
    }
    out->problem = place_compress(s->pool, w.buffer, w.index, w.n);
    out->problem->target = s->limit;
}

PlaceBundles *place_bundle(Pool *pool, const PlaceProblem *p, int64_t limit, int64_t below,
                           PlaceWork *work)
{
    PlaceBundles *out = POOL_NEW(pool, PlaceBundles);
    Bundling s = {.p = p, .work = work, .pool = pool, .limit = limit};
    int *order = POOL_ARRAY(pool, (size_t)p->n, int);
    out->whole_of = POOL_ARRAY(pool, (size_t)p->n, int);
    out->inner = POOL_ARRAY(pool, (size_t)p->n, int64_t);
    s.inner = out->inner;
    s.left = POOL_ARRAY(pool, (size_t)p->n_slots, int64_t);
    for (int t = 0; t < p->n_slots; t++)
        s.left[t] = (limit - p->load[t]) / LEFT_PARTS;
    choose_samples(&s);
    place_order(p, "TWZ", order);
    for (int k = 0; k < p->n; k++)
        if (p->size[order[k]] < below)
            bundle_buffer(&s, order[k]);
    make_wholes(&s, order, out);
    return out;
}
