/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a user asks of a plan.  Settings are as they are written, in layers: the command line over
 * the model's remat section over the defaults.  They are merged, understood and refused once, by
 * the driver and before any pass, and become a request, which is plain data. */
#ifndef SCRIMP_PASSES_REMAT_PLAN_REQUEST_H
#define SCRIMP_PASSES_REMAT_PLAN_REQUEST_H

#include "passes/remat/model/budget.h"
#include "passes/remat/model/cost.h"
#include "passes/remat/model/solver.h"

/* One layer: NULL and 0 say nothing; "" is the default. */
typedef struct PlanSettings {
    const char *budget;        /* "8GiB", "40%", "min"; default: none */
    const char *solver;        /* a name of the table, or "best"; default: scrimp */
    const char *objective;     /* "time" (default) or "memory" */
    const char *cost;          /* a name of cost_models; default: roofline */
    int64_t seed;              /* of solvers that draw */
    double time_limit_seconds; /* of solvers; bounds take a quarter of it more.  0 = none */
    double effort;             /* of scrimp's search: 1 = as much as usual, 0 = 1 */
    int64_t twremat_leaf_bags; /* see RematOptions; 0 = twremat tries several */
    int64_t n_threads;         /* of scrimp's search; 0 = all cores */
    bool no_masks, no_views, no_norms, no_attention, no_chunks;
} PlanSettings;

typedef enum MaskUse {
    MASKS_BY_BUDGET, /* remat chooses between the step with masks and the one without */
    MASKS_NEVER,
    MASKS_ALWAYS /* where they lower the peak, whatever the budget */
} MaskUse;

typedef struct PlanRequest {
    Budget budget;
    const RematSolver *solver; /* NULL: the best of those that are in_portfolio */
    RematObjective objective;
    NodeCosts costs; /* a model that measures gets its `measured` from the driver */
    uint64_t seed;
    double time_limit_seconds, effort; /* as in the settings, like the next two */
    int twremat_leaf_bags, n_threads;
    MaskUse masks;
    bool no_views;     /* pieces are copied: pass views does nothing, and no plan counts on it */
    bool no_norms;     /* normalized images are tensors: pass norms does nothing */
    bool no_plain;     /* it does not keep the step whose images are */
    bool no_attention; /* scores are tensors: pass attention does nothing */
    bool no_chunks;    /* all logits of a loss are one tensor: pass chunks does nothing */
} PlanRequest;

/* A user's mistake: code, what is wrong, a way out (or NULL). */
typedef struct RematError {
    const char *code, *message, *help;
} RematError;

/* What the upper layer says, and where it says nothing, what the lower one says. */
PlanSettings plan_settings_merge(const PlanSettings *upper, const PlanSettings *lower);

/* Merged settings, understood.  False with E403 (budget), E404 (solver), E405 (objective) or E412
 * (cost). */
bool plan_request_read(Pool *pool, const PlanSettings *s, PlanRequest *out, RematError *error);

/* False with E412: the cost model measures, and nothing is there that does. */
bool plan_request_has_costs(const PlanRequest *r, RematError *error);

/* The options of solvers, without a budget.  A time limit counts from `begin`, in seconds of the
 * monotonic clock. */
RematOptions plan_request_options(const PlanRequest *r, double begin);

#endif
