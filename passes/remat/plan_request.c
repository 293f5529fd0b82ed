/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/plan_request.h"

#include "ir/support/diag.h"
#include "ir/support/milp.h"
#include "passes/remat/solvers.h"

#include <string.h>

/* Layers */

static const char *text_of(const char *upper, const char *lower)
{
    return upper ? upper : lower;
}

static int64_t number_of(int64_t upper, int64_t lower)
{
    return upper ? upper : lower;
}

static double amount_of(double upper, double lower)
{
    return upper > 0 ? upper : lower;
}

PlanSettings plan_settings_merge(const PlanSettings *upper, const PlanSettings *lower)
{
    return (PlanSettings){
        .budget = text_of(upper->budget, lower->budget),
        .solver = text_of(upper->solver, lower->solver),
        .objective = text_of(upper->objective, lower->objective),
        .cost = text_of(upper->cost, lower->cost),
        .seed = number_of(upper->seed, lower->seed),
        .time_limit_seconds = amount_of(upper->time_limit_seconds, lower->time_limit_seconds),
        .effort = amount_of(upper->effort, lower->effort),
        .twremat_leaf_bags = number_of(upper->twremat_leaf_bags, lower->twremat_leaf_bags),
        .n_threads = number_of(upper->n_threads, lower->n_threads),
        .no_masks = upper->no_masks || lower->no_masks,
        .no_views = upper->no_views || lower->no_views,
        .no_norms = upper->no_norms || lower->no_norms,
        .no_attention = upper->no_attention || lower->no_attention,
        .no_chunks = upper->no_chunks || lower->no_chunks};
}

/* Words */

static bool refuse(RematError *error, const char *code, const char *message, const char *help)
{
    *error = (RematError){code, message, help};
    return false;
}

static const char *solver_list(Pool *pool)
{
    const char *list = "solvers: best";
    for (const RematSolver *r = remat_solvers; r->name; r++)
        list = pool_printf(pool, "%s, %s", list, r->name);
    return pool_printf(pool, "%s; `scrimp plan --compare` compares them", list);
}

static bool read_solver(Pool *pool, const char *name, const RematSolver **out, RematError *error)
{
    const char *names[64] = {"best"};
    *out = NULL;
    if (name && strcmp(name, "best") == 0)
        return true;
    *out = name && *name ? remat_solver_find(name) : remat_solvers;
    if (*out && (*out)->needs_milp && !milp_is_available())
        return refuse(error, "E404", pool_printf(pool, "solver '%s' needs COIN-OR Cbc", name),
                      "install its library: apt-get install coinor-libcbc3");
    if (*out)
        return true;
    size_t n = 1;
    for (const RematSolver *r = remat_solvers; r->name && n < 64; r++)
        names[n++] = r->name;
    const char *nearest = nearest_word(name, names, n);
    return refuse(error, "E404", pool_printf(pool, "no solver is called '%s'", name),
                  nearest ? pool_printf(pool, "did you mean `%s`?", nearest) : solver_list(pool));
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
    return refuse(error, "E412", pool_printf(pool, "no cost model is called '%s'", name),
                  nearest ? pool_printf(pool, "did you mean `%s`?", nearest) : list);
}

static bool read_objective(Pool *pool, const char *name, RematObjective *out, RematError *error)
{
    bool memory = name && strcmp(name, "memory") == 0;
    *out = memory ? REMAT_MIN_MEMORY : REMAT_MIN_TIME;
    return memory || !name || !*name || strcmp(name, "time") == 0 ||
           refuse(error, "E405", pool_printf(pool, "no objective is called '%s'", name),
                  "objectives: time, memory");
}

static bool read_budget(Pool *pool, const char *text, Budget *out, RematError *error)
{
    if (budget_parse(text, out))
        return true;
    if (out->amount >= 9e18)
        return refuse(error, "E403", pool_printf(pool, "a budget of %s is too large", text),
                      "write at most 8000000TiB, or no budget");
    return refuse(error, "E403", pool_printf(pool, "'%s' is not a budget", text),
                  "write bytes with their unit (512MiB, 1.5GB, 4G), a part (40%) or min");
}

bool plan_request_read(Pool *pool, const PlanSettings *s, PlanRequest *out, RematError *error)
{
    *out = (PlanRequest){.seed = (uint64_t)s->seed,
                         .time_limit_seconds = s->time_limit_seconds,
                         .effort = s->effort,
                         .twremat_leaf_bags = (int)s->twremat_leaf_bags,
                         .n_threads = (int)s->n_threads,
                         .masks = s->no_masks ? MASKS_NEVER : MASKS_BY_BUDGET,
                         .no_views = s->no_views,
                         .no_norms = s->no_norms,
                         .no_attention = s->no_attention,
                         .no_chunks = s->no_chunks};
    return read_solver(pool, s->solver, &out->solver, error) &&
           read_cost(pool, s->cost, &out->costs.model, error) &&
           read_objective(pool, s->objective, &out->objective, error) &&
           read_budget(pool, s->budget, &out->budget, error);
}

bool plan_request_has_costs(const PlanRequest *r, RematError *error)
{
    const CostModel *model = r->costs.model;
    return !model || model->cost || r->costs.measured ||
           refuse(error, "E412", "nothing is measured here: cost profile cannot be used",
                  "use cost roofline");
}

RematOptions plan_request_options(const PlanRequest *r, double begin)
{
    double limit = r->time_limit_seconds;
    return (RematOptions){.objective = r->objective,
                          .seed = r->seed,
                          .deadline_seconds = limit > 0 ? begin + limit : 0,
                          .effort = r->effort,
                          .twremat_leaf_bags = r->twremat_leaf_bags,
                          .n_threads = r->n_threads};
}
