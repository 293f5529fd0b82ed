/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/report.h"

#include "passes/remat/bounds/bound.h"
#include "passes/remat/solvers.h"

#include <math.h>
#include <string.h>

enum { MAX_NAMED = 5 };

static const RematProblem *relaxed(const RematProblem *p, const SolveContext *c)
{
    return c->relaxed ? c->relaxed : p;
}

static void fill_peak(Pool *pool, const RematProblem *p, double until, RematReport *r)
{
    RematPeakBound bound = remat_peak_bound_under_time(pool, p, (double)INFINITY, until);
    r->lower_bound_bytes = bound.bytes;
    r->bound_node = "";
    if (bound.node < 0)
        return;
    const RematNode *node = &p->node[bound.node];
    r->bound_node = pool_strdup(pool, node->name ? node->name : "unnamed");
    r->bound_workspace_bytes = node->workspace > 0 ? node->workspace : 0; /* relaxed: below 0 */
    r->n_bound_tensors = bound.n_tensors;
    r->bound_tensors = POOL_ARRAY(pool, (size_t)bound.n_tensors + 1, RematSized);
    for (int k = 0; k < bound.n_tensors; k++) {
        const RematTensor *x = &p->tensor[bound.tensor[k]];
        r->bound_tensors[k] =
            (RematSized){pool_strdup(pool, x->name ? x->name : "unnamed"), x->bytes};
    }
}

/* Where no budget was given, that of each operation once. */
static double overhead_percent(Pool *pool, const RematProblem *p, const SolveContext *c,
                               const RematReport *r)
{
    double time = 0;
    for (int n = 0; n < p->n_nodes; n++)
        time += p->node[n].cost;
    if (!(r->base_cost > 0))
        return 0;
    if (r->budget_bytes != INT64_MAX)
        time +=
            remat_overhead_lower_bound(relaxed(p, c), r->budget_bytes, pool, c->bounds_until, NULL);
    return 100 * (time - r->base_cost) / r->base_cost;
}

void bound_report_fill(Pool *pool, const RematProblem *p, const SolveContext *c, RematReport *r)
{
    fill_peak(pool, relaxed(p, c), c->bounds_until, r);
    r->overhead_lower_bound_percent =
        r->lower_bound_bytes > r->budget_bytes ? (double)INFINITY : overhead_percent(pool, p, c, r);
    r->order_bound_bytes =
        r->recomputed_ops
            ? 0
            : remat_peak_bound_under_time(pool, relaxed(p, c), 0, c->bounds_until).bytes;
}

void bound_report_limits(const RematSolver *only, const RematOptions *o, const RematProblem *p,
                         RematReport *report)
{
    report->other_solver = only != remat_solvers ? only : NULL;
    int most = only ? only->most_nodes : 0;
    report->solver_most_nodes = p->n_nodes > most ? most : 0;
    report->out_of_time = remat_out_of_time(o);
}

static void take_peak(RematReport *r, const RematReport *from)
{
    r->lower_bound_bytes = from->lower_bound_bytes;
    r->bound_node = from->bound_node;
    r->bound_workspace_bytes = from->bound_workspace_bytes;
    r->bound_tensors = from->bound_tensors;
    r->n_bound_tensors = from->n_bound_tensors;
}

void bound_report_also(Pool *pool, const RematProblem *p, const SolveContext *c, RematReport *r)
{
    RematReport other = *r;
    bound_report_fill(pool, p, c, &other);
    if (other.lower_bound_bytes < r->lower_bound_bytes)
        take_peak(r, &other);
    if (other.overhead_lower_bound_percent < r->overhead_lower_bound_percent)
        r->overhead_lower_bound_percent = other.overhead_lower_bound_percent;
    if (other.order_bound_bytes < r->order_bound_bytes)
        r->order_bound_bytes = other.order_bound_bytes;
}

/* "%d.conv1, which runs with %relu.0 2MiB, ..., 3 more of 256B, 1MiB of workspace and 12KiB of
 * persistent tensors in memory" */
static const char *load_text(Pool *pool, const RematReport *r)
{
    const char *text = pool_printf(pool, "%s, which runs with", r->bound_node);
    int64_t others = 0;
    for (int k = 0; k < r->n_bound_tensors; k++)
        if (k < MAX_NAMED)
            text = pool_printf(pool, "%s %s %s,", text, r->bound_tensors[k].name,
                               bytes_text(pool, r->bound_tensors[k].bytes));
        else
            others += r->bound_tensors[k].bytes;
    if (others)
        text = pool_printf(pool, "%s %d more of %s,", text, r->n_bound_tensors - MAX_NAMED,
                           bytes_text(pool, others));
    if (r->bound_workspace_bytes > 0)
        text = pool_printf(pool, "%s workspace of %s,", text,
                           bytes_text(pool, r->bound_workspace_bytes));
    return pool_printf(pool, "%s and persistent tensors of %s in memory", text,
                       bytes_text(pool, r->persistent_bytes));
}

/* The least whole percentage that reaches `bytes`. */
static int64_t percent_of(const RematReport *r, Budget b, int64_t bytes)
{
    int64_t whole = b.of_bytes ? b.of_bytes : r->keep_all_peak_bytes;
    double span = (double)(whole - r->persistent_bytes);
    b.amount = floor(100 * (double)(bytes - r->persistent_bytes) / span);
    while (budget_bytes(b, r->persistent_bytes, r->keep_all_peak_bytes) < bytes)
        b.amount++;
    return (int64_t)b.amount;
}

static const char *asked_text(Pool *pool, const RematReport *r, Budget asked)
{
    const char *bytes = bytes_apart_text(pool, r->budget_bytes, r->min_feasible_bytes);
    if (strcmp(bytes, bytes_text(pool, r->lower_bound_bytes)) == 0)
        bytes = bytes_apart_text(pool, r->budget_bytes, r->lower_bound_bytes);
    return asked.kind == BUDGET_PERCENT ? pool_printf(pool, "%g%% (%s)", asked.amount, bytes)
                                        : bytes;
}

/* That no plan meets the budget. */
static bool is_proven(const RematReport *r)
{
    return r->infeasible_proven || r->lower_bound_bytes > r->budget_bytes;
}

/* What may meet the budget after all, where nothing proves that none can. */
static const char *another_try_text(Pool *pool, const RematReport *r)
{
    if (is_proven(r))
        return "";
    const char *longer =
        r->out_of_time ? "time ran out: a longer --time-limit may find a plan; " : "";
    const char *other =
        r->other_solver ? pool_printf(pool, "the default solver, --solver %s, may find a plan; ",
                                      remat_solvers->name)
                        : "";
    return pool_printf(pool, "%s%s", longer, other);
}

/* What no batch is small enough for; `other` where it may be. */
static const char *other_way_text(Pool *pool, const RematReport *r, const char *other)
{
    if (!*other || r->persistent_bytes <= r->budget_bytes)
        return other;
    return pool_printf(pool,
                       "; weights, statistics and optimizer state alone take %s, whatever the "
                       "batch: a smaller model or an optimizer with less state takes less",
                       bytes_text(pool, r->persistent_bytes));
}

static const char *way_out_text(Pool *pool, const RematReport *r, Budget asked, const char *other)
{
    const char *least = bytes_text(pool, r->min_feasible_bytes);
    const char *part =
        asked.kind == BUDGET_PERCENT && r->keep_all_peak_bytes > r->persistent_bytes &&
                (!asked.of_bytes || asked.of_bytes > r->persistent_bytes)
            ? pool_printf(pool, "%lld%%, ", (long long)percent_of(r, asked, r->min_feasible_bytes))
            : "";
    const char *unit = asked.bare ? "a number without a unit is bytes (write 40% or 40MiB); " : "";
    return pool_printf(pool, "%s%sgive it %s%s (%lld bytes) or more, or min%s", unit,
                       another_try_text(pool, r), part, least, (long long)r->min_feasible_bytes,
                       other_way_text(pool, r, other));
}

RematError bound_report_infeasible(Pool *pool, const RematReport *r, Budget asked,
                                   const char *way_out)
{
    const char *budget = asked_text(pool, r, asked), *load = load_text(pool, r),
               *least = bytes_apart_text(pool, r->min_feasible_bytes, r->budget_bytes),
               *bound = bytes_apart_text(pool, r->lower_bound_bytes, r->budget_bytes);
    const char *found = is_proven(r) && strcmp(least, bound) == 0
                            ? "no plan"
                            : pool_printf(pool, "the smallest plan found takes %s; none", least);
    const char *why =
        is_proven(r) ? "infeasible"
        : r->solver_most_nodes
            ? pool_printf(pool, "not met: %s looks only at graphs of up to %d operations",
                          r->other_solver->name, r->solver_most_nodes)
        : r->out_of_time ? "not met within the time limit"
                         : "infeasible";
    const char *message = pool_printf(pool, "budget %s %s: %s takes less than %s, forced by %s",
                                      budget, why, found, bound, load);
    return (RematError){"E401", message, way_out_text(pool, r, asked, way_out)};
}
