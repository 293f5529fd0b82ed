/* Chooses between the step with masks and the one without: the better plan for the budget.  Both
 * compute the same bits.
 *
 * A search takes seconds, a bound hundredths of one: the second step is solved only where its bound
 * leaves it a chance to be better.  The answer is the same as if both were solved, so time still
 * never grows with the budget. */
#include "passes/remat/bounds/bound.h"
#include "passes/remat_pass_internal.h"

/* A second search takes as long as the first: up to so many nodes they take 3 s together.  Larger
 * steps are searched twice only for less time, where masks save more than that part of what the
 * step without them needs, or all of that is there.  So time still never grows with the budget. */
enum { MOST_NODES = 1000, LEAST_PART = 20 };

static const RematProblem *bounded(const Solve *s)
{
    return s->options.context.relaxed ? s->options.context.relaxed : s->p;
}

/* False: no plan of s within the budget takes less time. */
static bool may_be_faster(Solve *s, int64_t budget, double than)
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
    return least < bytes || (least == bytes && may_be_faster(s, bytes, time));
}

static bool is_min(const Solve *s)
{
    return s->request.budget.kind == BUDGET_MIN;
}

/* Bytes come before time. */
static bool wants_bytes(const Solve *s, const Planned *a)
{
    return is_min(s) || a->arena_bytes > s->budget_bytes ||
           s->request.objective == REMAT_MIN_MEMORY;
}

/* For `min` the budget that was found, which the plan is within. */
static int64_t bytes_of(const Solve *s, const Planned *a)
{
    return is_min(s) ? s->budget_bytes : a->arena_bytes;
}

static bool may_be_better(Solve *whole, const Solve *s, const Planned *a)
{
    double time = a->answer.figures.time;
    bool is_small = whole->p->n_nodes <= MOST_NODES;
    int64_t needed = whole->keep_all.peak_bytes - whole->p->persistent_bytes,
            saved = whole->keep_all.peak_bytes - s->keep_all.peak_bytes;
    if (wants_bytes(s, a))
        return is_small && may_be_smaller(whole, bytes_of(s, a), time);
    return (is_small || saved > needed / LEAST_PART) && may_be_faster(whole, s->budget_bytes, time);
}

static bool is_better(const Solve *s, const Planned *a, const Solve *than, const Planned *b)
{
    int64_t bytes = bytes_of(s, a), than_bytes = bytes_of(than, b);
    if ((wants_bytes(s, a) || wants_bytes(than, b)) && bytes != than_bytes)
        return bytes < than_bytes;
    return a->answer.figures.time < b->answer.figures.time;
}

Chosen choose_step(Solve *s, Solve *whole)
{
    Planned plan;
    bool has_choice = whole && s->request.budget.kind != BUDGET_NONE;
    if (has_choice && whole->keep_all.time_once <= s->keep_all.time_once &&
        solve_fits_as_it_is(whole, &plan))
        return (Chosen){.of = whole, .other = s, .base = whole, .plan = plan};
    Chosen c = {.of = s, .other = whole, .base = whole ? whole : s, .plan = solve_request(s)};
    if (!has_choice || !may_be_better(whole, s, &c.plan))
        return c;
    plan = solve_request(whole);
    if (is_better(whole, &plan, s, &c.plan))
        c = (Chosen){.of = whole, .other = s, .base = whole, .plan = plan};
    return c;
}

bool chosen_is_fastest(const Chosen *c)
{
    return !c->other || c->of->request.budget.kind == BUDGET_NONE ||
           !may_be_faster(c->other, c->of->budget_bytes, c->plan.answer.figures.time);
}
