#include "passes/remat/solve.h"

#include "ir/support/bug.h"
#include "ir/support/clock.h"
#include "ir/support/diag.h"
#include "ir/support/milp.h"
#include "passes/remat/cache/memo.h"
#include "passes/remat/model/pieces_schedule.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/order/reorder.h"
#include "passes/remat/solvers.h"

#include <string.h>

/* Settings */

static bool request_error(RematError *error, const char *code, const char *message,
                          const char *help)
{
    *error = (RematError){code, message, help};
    return false;
}

static const char *solver_list(Pool *pool)
{
    const char *list = "solvers: best";
    for (const RematSolver *r = remat_solvers; r->name; r++)
        list = pool_printf(pool, "%s, %s", list, r->name);
    return list;
}

static bool read_solver(Pool *pool, const char *name, const RematSolver **only, RematError *error)
{
    const char *names[64] = {"best"};
    *only = NULL;
    if (name && strcmp(name, "best") == 0)
        return true;
    *only = remat_solver_find(name && *name ? name : "scrimp");
    if (*only && (*only)->needs_milp && !milp_is_available())
        return request_error(error, "E404",
                             pool_printf(pool, "solver '%s' needs COIN-OR Cbc", name),
                             "install its library: apt-get install coinor-libcbc3");
    if (*only)
        return true;
    size_t n = 1;
    for (const RematSolver *r = remat_solvers; r->name && n < 64; r++)
        names[n++] = r->name;
    const char *nearest = nearest_word(name, names, n);
    return request_error(error, "E404", pool_printf(pool, "no solver is called '%s'", name),
                         nearest ? pool_printf(pool, "did you mean `%s`?", nearest)
                                 : solver_list(pool));
}

static bool read_cost(Pool *pool, const char *name, const CostModel **out, RematError *error)
{
    const char *names[16], *list = "cost models:";
    size_t n = 0;
    *out = name && *name ? cost_model_find(name) : cost_models;
    if (*out)
        return true;
    for (const CostModel *m = cost_models; m->name && n < 16; m++) {
        list = pool_printf(pool, "%s%s %s", list, n ? "," : "", m->name);
        names[n++] = m->name;
    }
    const char *nearest = nearest_word(name, names, n);
    return request_error(error, "E412", pool_printf(pool, "no cost model is called '%s'", name),
                         nearest ? pool_printf(pool, "did you mean `%s`?", nearest) : list);
}

bool remat_out_of_time(const RematOptions *o)
{
    return o->deadline_seconds > 0 && clock_seconds() >= o->deadline_seconds;
}

bool remat_request_read(Pool *pool, const RematSettings *s, RematRequest *out, RematError *error)
{
    const char *objective = s->objective ? s->objective : "";
    bool memory = strcmp(objective, "memory") == 0;
    *out = (RematRequest){.options = {.seed = s->seed,
                                      .effort = s->effort,
                                      .stop_at = s->stop_at,
                                      .n_threads = s->n_threads}};
    if (!read_solver(pool, s->solver, &out->only, error) ||
        !read_cost(pool, s->cost, &out->cost, error))
        return false;
    if (*objective && !memory && strcmp(objective, "time") != 0)
        return request_error(error, "E405",
                             pool_printf(pool, "no objective is called '%s'", objective),
                             "objectives: time, memory");
    out->options.objective = memory ? REMAT_MIN_MEMORY : REMAT_MIN_TIME;
    bool is_budget = budget_parse(s->budget, &out->budget);
    if (!is_budget && out->budget.amount >= 9e18)
        return request_error(error, "E403",
                             pool_printf(pool, "a budget of %s is too large", s->budget),
                             "write at most 8000000TiB, or no budget");
    if (!is_budget)
        return request_error(
            error, "E403", pool_printf(pool, "'%s' is not a budget", s->budget),
            "write bytes with their unit (512MiB, 1.5GB, 4G), a part (40%) or min");
    if (s->time_limit_seconds > 0) {
        out->options.deadline_seconds = clock_seconds() + s->time_limit_seconds;
        out->bounds_until = out->options.deadline_seconds + s->time_limit_seconds / 4;
    }
    return true;
}

/* Solving */

/* The same executions in the order with the smallest peak found, when that is below the present
 * one. */
static void improve_order(const RematProblem *p, const RematOptions *o, Pool *scratch,
                          RematAnswer *a)
{
    Pool *pool = pool_new_child(scratch);
    RematProblem *runs = remat_expand(pool, p, &a->schedule);
    runs->orders_until = o->deadline_seconds;
    RematSchedule order = reorder_nodes(pool, runs, 0);
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

static bool is_better(const RematOptions *o, const RematAnswer *a, const RematAnswer *b)
{
    bool a_fits = a->peak_bytes <= o->budget_bytes;
    bool b_fits = b->peak_bytes <= o->budget_bytes;
    if (a_fits != b_fits)
        return a_fits;
    if (a_fits && o->objective == REMAT_MIN_TIME && a->figures.time != b->figures.time)
        return a->figures.time < b->figures.time;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes < b->peak_bytes;
    return a->figures.time < b->figures.time;
}

static RematAnswer run_solver(const RematProblem *p, const RematSolver *solver,
                              const RematOptions *o, Pool *pool)
{
    RematAnswer a = {.solver = solver->name};
    a.limited = solver->solve(p, o, pool, &a.schedule) == REMAT_LIMIT;
    a.figures = remat_check(pool, p, &a.schedule);
    if (!a.figures.ok)
        BUG("solver %s made a wrong schedule: %s", solver->name, a.figures.fault);
    bool counts_pieces = solver->has_front && p->pieces && !o->with_copies;
    a.peak_bytes = a.figures.peak_bytes;
    if (counts_pieces)
        a.peak_bytes = pieces_peak(pool, p, &a.schedule, a.peak_bytes);
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
        if (only ? only != solver : !solver->in_best)
            continue;
        if (best.solver && remat_out_of_time(o)) {
            best.limited = true;
            break;
        }
        RematAnswer a = run_solver(p, solver, o, pool);
        if (!best.solver || is_better(o, &a, &best))
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
    if (memo_recall_answer(p, only, o, pool, &a))
        return a;
    a = solve_now(p, only, o, pool);
    memo_keep_answer(p, only, o, &a);
    return a;
}
