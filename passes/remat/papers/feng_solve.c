/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoints in a division tree, for each max term (2021, algorithms 5 and 6; see feng.h).
 *
 * The max terms fall, and each one is the largest cost of a segment below the largest one of the
 * answer before it (2018, algorithm 1: the answers in between are the same).  Checkpoints only
 * become more as C falls, so the search ends when they alone cost as much as the best answer. */
#include "passes/remat/papers/feng.h"

#include <string.h>

typedef struct Solver {
    Pool *scratch;
    const FengGraph *f;
    int64_t max_term; /* C */
    bool *checkpoint;
    int64_t kept, largest; /* of the answer for C */
    int64_t below, next;   /* next: the largest cost of a segment that is less than below */
    int64_t steps;
} Solver;

static void set_checkpoint(Solver *s, int v)
{
    s->kept += s->checkpoint[v] ? 0 : s->f->g.bytes[v];
    s->checkpoint[v] = true;
}

static void add_candidate(Solver *s, int64_t cost)
{
    if (cost < s->below && cost > s->next)
        s->next = cost;
}

/* ---- a linear segment: its points 0 .. n, where 0 and n are its ends ---- */

typedef struct Chain {
    const FengSegment *s;
    int n;
    int64_t *before; /* cost of everything strictly before a point, its ends not counted */
    int64_t *least;  /* checkpoints up to and with a point, from the start of the run */
    int *from, *queue;
} Chain;

static int chain_point(const Chain *c, int i)
{
    return i == 0 ? c->s->from : i == c->n ? c->s->to : c->s->point[i - 1];
}

static int64_t point_bytes(const Solver *s, const Chain *c, int i)
{
    return i == 0 || i == c->n ? 0 : s->f->g.bytes[chain_point(c, i)];
}

/* l(i, j): what is strictly between two points. */
static int64_t between(const Solver *s, const Chain *c, int i, int j)
{
    return c->before[j] - c->before[i] - point_bytes(s, c, i);
}

static Chain new_chain(Solver *s, Pool *pool, const FengSegment *segment)
{
    size_t n = (size_t)segment->n_members + 1;
    Chain c = {.s = segment, .n = segment->n_members};
    c.before = POOL_ARRAY(pool, n, int64_t);
    c.least = POOL_ARRAY(pool, n, int64_t);
    c.from = POOL_ARRAY(pool, n, int);
    c.queue = POOL_ARRAY(pool, n, int);
    for (int i = 0; i < c.n; i++)
        c.before[i + 1] = c.before[i] + point_bytes(s, &c, i) + segment->member[i].cost;
    return c;
}

/* The cheapest way in the accessibility graph from point `first` to `last`, which are checkpoints;
 * a window of places from which the next point is in reach, the cheapest in front.  O(last -
 * first). Members in between fit C. */
static void solve_run(Solver *s, Chain *c, int first, int last)
{
    int head = 0, tail = 0;
    c->least[first] = 0;
    for (int j = first + 1; j <= last; j++) {
        while (tail > head && c->least[c->queue[tail - 1]] > c->least[j - 1])
            tail--;
        c->queue[tail++] = j - 1;
        while (between(s, c, c->queue[head], j) > s->max_term)
            head++;
        c->from[j] = c->queue[head];
        c->least[j] = c->least[c->from[j]] + point_bytes(s, c, j);
    }
    for (int j = last; j > first; j = c->from[j]) {
        int64_t cost = between(s, c, c->from[j], j);
        s->largest = cost > s->largest ? cost : s->largest;
        set_checkpoint(s, chain_point(c, j));
    }
    set_checkpoint(s, chain_point(c, first));
    s->steps += last - first;
}

static void recur(Solver *s, const FengSegment *segment);

static void recur_linear(Solver *s, const FengSegment *segment)
{
    Pool *pool = pool_new_child(s->scratch);
    Chain c = new_chain(s, pool, segment);
    int first = 0;
    for (int k = 0; k < c.n; k++) {
        if (segment->member[k].cost <= s->max_term)
            continue;
        solve_run(s, &c, first, k);
        set_checkpoint(s, chain_point(&c, k + 1));
        recur(s, &segment->member[k]);
        first = k + 1;
    }
    solve_run(s, &c, first, c.n);
    pool_free(pool);
}

/* Algorithm 5. */
static void recur(Solver *s, const FengSegment *segment)
{
    s->steps++;
    if (segment->cost <= s->max_term || segment->kind == FENG_LEAF) {
        s->largest = segment->cost > s->largest ? segment->cost : s->largest;
        return;
    }
    if (segment->kind == FENG_LINEAR) {
        recur_linear(s, segment);
        return;
    }
    for (int k = 0; k < segment->n_points; k++)
        set_checkpoint(s, segment->point[k]);
    for (int k = 0; k < segment->n_members; k++)
        recur(s, &segment->member[k]);
}

/* ---- max terms ---- */

/* Of each start, the longest stretch of a linear segment that costs less than `below`. */
static void add_stretches(Solver *s, const FengSegment *segment)
{
    Pool *pool = pool_new_child(s->scratch);
    Chain c = new_chain(s, pool, segment);
    for (int i = 0, j = 1; i < c.n; i++) {
        j = j > i ? j : i + 1;
        while (j < c.n && between(s, &c, i, j + 1) < s->below)
            j++;
        add_candidate(s, between(s, &c, i, j));
    }
    s->steps += c.n;
    pool_free(pool);
}

static void find_candidates(Solver *s, const FengSegment *segment)
{
    s->steps++;
    add_candidate(s, segment->cost);
    if (segment->kind == FENG_LINEAR)
        add_stretches(s, segment);
    for (int k = 0; k < segment->n_members; k++)
        find_candidates(s, &segment->member[k]);
}

static int64_t next_max_term(Solver *s, const FengSegment *root)
{
    s->below = s->largest < s->max_term ? s->largest : s->max_term;
    s->next = -1;
    find_candidates(s, root);
    return s->next;
}

static void solve_for(Solver *s, const FengSegment *root, int64_t max_term)
{
    memset(s->checkpoint, 0, (size_t)s->f->g.n * sizeof *s->checkpoint);
    s->kept = s->largest = 0;
    s->max_term = max_term;
    set_checkpoint(s, 0);
    set_checkpoint(s, s->f->g.n - 1);
    recur(s, root);
}

static void take_answer(FengAnswer *a, const Solver *s)
{
    a->kept = s->kept;
    a->largest = s->largest;
    a->cost = s->kept + s->largest;
    for (int v = 0; v < s->f->n_real; v++)
        a->checkpoint[v] = s->checkpoint[v + s->f->shift];
}

FengAnswer feng_plan(Pool *pool, const ForwardGraph *g, FengDivision division, int64_t max_steps,
                     FengSeen *seen, void *user)
{
    FengAnswer a = {.checkpoint = POOL_ARRAY(pool, (size_t)g->n + 1, bool), .cost = INT64_MAX};
    Pool *scratch = pool_new_child(pool);
    FengGraph f = feng_graph(scratch, g);
    const FengSegment *root = feng_divide(scratch, &f, division, &a.limited);
    Solver s = {.scratch = scratch, .f = &f};
    s.checkpoint = POOL_ARRAY(scratch, (size_t)f.g.n, bool);
    for (int64_t c = root->cost; c >= 0; c = next_max_term(&s, root)) {
        solve_for(&s, root, c);
        if (s.kept + s.largest < a.cost) {
            take_answer(&a, &s);
            if (seen)
                seen(user, &f, s.checkpoint);
        }
        a.limited |= s.steps > max_steps;
        if (s.largest > c || s.kept >= a.cost || a.limited)
            break; /* C cannot be met, or nothing below it is better */
    }
    pool_free(scratch);
    return a;
}
