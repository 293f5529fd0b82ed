/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/solve.h"

#include "ir/support/bug.h"
#include "ir/support/clock.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/model/pieces_schedule.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/order/reorder.h"
#include "passes/remat/solvers.h"

#include <string.h>

bool remat_out_of_time(const RematOptions *o)
{
    return o->deadline_seconds > 0 && clock_seconds() >= o->deadline_seconds;
}

/* The same executions in the order with the smallest peak found, when that is below the present
 * one. */
static void improve_order(const RematProblem *p, const RematOptions *o, Pool *scratch,
                          RematAnswer *a)
{
    Pool *pool = pool_new_child(scratch);
    const RematProblem *runs = remat_expand(pool, p, &a->schedule);
    RematSchedule order = reorder_nodes(pool, runs, 0, o->deadline_seconds);
    for (int i = 0; i < order.len; i++)
        order.node[i] = a->schedule.node[order.node[i]];
    RematFigures f = remat_check(scratch, p, &order);
    if (f.ok && f.peak_bytes < a->figures.peak_bytes) {
        a->figures = f;
        a->peak_bytes = f.peak_bytes;
        memcpy(a->schedule.node, order.node, (size_t)order.len * sizeof *order.node);
    }
    pool_free(pool);
}

bool remat_is_better(const RematOptions *o, int64_t a_bytes, double a_time, int64_t b_bytes,
                     double b_time)
{
    bool a_fits = a_bytes <= o->budget_bytes, b_fits = b_bytes <= o->budget_bytes;
    if (a_fits != b_fits)
        return a_fits;
    if (a_fits && o->objective == REMAT_MIN_TIME && a_time != b_time)
        return a_time < b_time;
    return a_bytes != b_bytes ? a_bytes < b_bytes : a_time < b_time;
}

static RematAnswer run_solver(const RematProblem *p, const RematSolver *solver,
                              const RematOptions *o, Pool *pool)
{
    RematAnswer a = {.solver = solver};
    a.limited = solver->solve(p, o, pool, &a.schedule) == REMAT_LIMIT;
    a.figures = remat_check(pool, p, &a.schedule);
    if (!a.figures.ok)
        BUG("solver %s made a wrong schedule: %s", solver->name, a.figures.fault);
    bool counts_pieces = solver->has_front && o->context.pieces && !o->with_copies;
    a.peak_bytes = a.figures.peak_bytes;
    if (counts_pieces)
        a.peak_bytes = pieces_peak(pool, o->context.pieces, &a.schedule, a.peak_bytes);
    bool wants_bytes = a.peak_bytes > o->budget_bytes || o->objective == REMAT_MIN_MEMORY;
    if (wants_bytes && !counts_pieces && !o->with_copies && !remat_out_of_time(o))
        improve_order(p, o, pool, &a);
    return a;
}

static RematAnswer solve_now(const RematProblem *p, const RematSolver *only, const RematOptions *o,
                             Pool *pool)
{
    RematAnswer best = {0};
    for (const RematSolver *solver = remat_solvers; solver->name; solver++) {
        if (only ? only != solver : !solver->in_portfolio)
            continue;
        if (best.solver && remat_out_of_time(o)) {
            best.limited = true;
            break;
        }
        RematAnswer a = run_solver(p, solver, o, pool);
        if (!best.solver ||
            remat_is_better(o, a.peak_bytes, a.figures.time, best.peak_bytes, best.figures.time))
            best = a;
        if (o->objective == REMAT_MIN_TIME && best.figures.recomputed == 0 &&
            best.peak_bytes <= o->budget_bytes)
            break; /* nothing is faster than no recomputation */
    }
    return best;
}

RematAnswer remat_solve(const RematProblem *p, const RematSolver *only, const RematOptions *o,
                        Pool *pool)
{
    RematAnswer a;
    if (solution_cache_recall_answer(p, only, o, pool, &a))
        return a;
    a = solve_now(p, only, o, pool);
    solution_cache_keep_answer(p, only, o, &a);
    return a;
}
