/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Forms of a step, and the best plan of all of them.
 *
 * All compute the same bits.  A search takes seconds, a bound hundredths of one: another form is
 * solved only where its bound leaves it a chance to be better.  The answer is the same as if all
 * were solved, so time still never grows with the budget. */
#include "passes/remat/planner_internal.h"

#include "passes/remat/bounds/bound.h"

#include <stdlib.h>
#include <string.h>

/* A second search takes as long as the first: up to so many nodes they take 3 s together.  Larger
 * steps are searched twice only for less time, where masks save more than that part of what the
 * step without them needs, or all of that is there.  So time still never grows with the budget. */
enum { MOST_NODES = 1000, LEAST_PART = 20 };

static const RematProblem *bounded(const Solve *s)
{
    return s->options.context.relaxed ? s->options.context.relaxed : s->p;
}

bool planner_may_be_faster(Solve *s, int64_t budget, double than)
{
    if (than <= s->keep_all.time_once)
        return false;
    double extra = remat_overhead_lower_bound(bounded(s), budget, s->scratch,
                                              s->options.context.bounds_until, NULL);
    return s->keep_all.time_once + extra < than;
}

/* False: no plan of s is smaller, or as small and faster. */
static bool may_be_smaller(Solve *s, int64_t bytes, double time)
{
    int forced_by;
    int64_t least =
        remat_peak_lower_bound(bounded(s), s->scratch, s->options.context.bounds_until, &forced_by);
    return least < bytes || (least == bytes && planner_may_be_faster(s, bytes, time));
}

static bool is_min(const Solve *s)
{
    return s->request->budget.kind == BUDGET_MIN;
}

/* Bytes come before time. */
static bool wants_bytes(const Solve *s, const Planned *a)
{
    return is_min(s) || a->bytes > s->budget_bytes || s->request->objective == REMAT_MIN_MEMORY;
}

/* For `min` the budget that was found, which the plan is within. */
static int64_t bytes_of(const Solve *s, const Planned *a)
{
    return is_min(s) ? s->budget_bytes : a->bytes;
}

static bool may_be_better(Solve *other, const Solve *s, const Planned *a)
{
    double time = a->answer.figures.time;
    bool is_small = other->p->n_nodes <= MOST_NODES;
    int64_t needed = other->keep_all.peak_bytes - other->p->persistent_bytes,
            saved = other->keep_all.peak_bytes - s->keep_all.peak_bytes;
    if (wants_bytes(s, a))
        return (is_small || other->step->is_finer || -saved > needed / LEAST_PART) &&
               may_be_smaller(other, bytes_of(s, a), time);
    return (is_small || saved > needed / LEAST_PART || -saved > needed / LEAST_PART) &&
           planner_may_be_faster(other, s->budget_bytes, time);
}

static bool is_better(const Solve *s, const Planned *a, const Solve *than, const Planned *b)
{
    int64_t bytes = bytes_of(s, a), than_bytes = bytes_of(than, b);
    if ((wants_bytes(s, a) || wants_bytes(than, b)) && bytes != than_bytes)
        return bytes < than_bytes;
    return a->answer.figures.time < b->answer.figures.time;
}

/* What the bounds of a form promise. */
typedef struct Promise {
    Solve *of;
    int index;
    bool in_budget; /* time is asked for, and a plan may be within the budget */
    int64_t bytes;
    double time;
} Promise;

static Promise promise_of(Solve *s, int index)
{
    double until = s->options.context.bounds_until;
    int forced_by;
    Promise p = {.of = s, .index = index};
    p.bytes = remat_peak_lower_bound(bounded(s), s->scratch, until, &forced_by);
    p.in_budget =
        !is_min(s) && s->request->objective == REMAT_MIN_TIME && p.bytes <= s->budget_bytes;
    if (p.in_budget)
        p.time = s->keep_all.time_once +
                 remat_overhead_lower_bound(bounded(s), s->budget_bytes, s->scratch, until, NULL);
    return p;
}

static int by_promise(const void *a, const void *b)
{
    const Promise *x = a, *y = b;
    if (x->in_budget != y->in_budget)
        return x->in_budget ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (!x->in_budget && x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The best plan is likely that of the form whose bound is the best, and leaves no chance to most of
 * the others.  Large forms are planned in the order there is, as what is skipped depends on it. */
static Solve **most_promising_first(Pool *scratch, Solve *const *all, int n)
{
    Promise *promise = POOL_ARRAY(scratch, (size_t)n, Promise);
    Solve **order = POOL_ARRAY(scratch, (size_t)n, Solve *);
    memcpy(order, all, (size_t)n * sizeof(Solve *));
    for (int i = 0; i < n; i++)
        if (all[i]->p->n_nodes > MOST_NODES)
            return order;
    for (int i = 0; i < n; i++)
        promise[i] = promise_of(all[i], i);
    qsort(promise, (size_t)n, sizeof *promise, by_promise);
    for (int i = 0; i < n; i++)
        order[i] = promise[i].of;
    return order;
}

/* The best plan of all forms.  Without a budget the first stays.  What fits comes first, then the
 * time; for `min`, the objective `memory` and where nothing fits the bytes, then the time; then the
 * one that promises more. */
Chosen planner_choose(Pool *scratch, Solve *const *all, int n)
{
    Solve *s = all[0];
    Chosen c = {s, all, n, {.bytes = 0}};
    bool has_choice = n > 1 && s->request->budget.kind != BUDGET_NONE;
    for (int i = 1; i < n && has_choice; i++) {
        c.of = all[i];
        if (c.of->keep_all.time_once <= s->keep_all.time_once &&
            planner_fits_as_it_is(c.of, &c.plan))
            return c;
    }
    Solve *const *order = has_choice ? most_promising_first(scratch, all, n) : all;
    c.of = order[0];
    c.plan = planner_plan(c.of);
    for (int i = 1; i < n && has_choice; i++) {
        if (!may_be_better(order[i], c.of, &c.plan))
            continue;
        Planned plan = planner_plan(order[i]);
        if (is_better(order[i], &plan, c.of, &c.plan)) {
            c.of = order[i];
            c.plan = plan;
        }
    }
    return c;
}
