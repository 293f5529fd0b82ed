#include "passes/remat/bound_report.h"

#include "passes/remat/bound.h"
#include "passes/remat/budget.h"

#include <math.h>

enum { MAX_NAMED = 5 };

static void fill_peak(Pool *pool, const RematProblem *p, RematReport *r)
{
    RematPeakBound bound = remat_peak_bound_under_time(pool, p, (double)INFINITY, 0);
    r->lower_bound_bytes = bound.bytes;
    r->bound_node = "";
    if (bound.node < 0)
        return;
    const RematNode *node = &p->node[bound.node];
    r->bound_node = pool_strdup(pool, node->name ? node->name : "unnamed");
    r->bound_workspace_bytes = node->workspace;
    r->n_bound_tensors = bound.n_tensors;
    r->bound_tensors = POOL_ARRAY(pool, (size_t)bound.n_tensors + 1, RematSized);
    for (int k = 0; k < bound.n_tensors; k++) {
        const RematTensor *x = &p->tensor[bound.tensor[k]];
        r->bound_tensors[k] =
            (RematSized){pool_strdup(pool, x->name ? x->name : "unnamed"), x->bytes};
    }
}

/* Nothing is proven beyond 0 where no budget was given. */
static double overhead_percent(Pool *pool, const RematProblem *p, int64_t budget_bytes)
{
    double once = 0;
    for (int n = 0; n < p->n_nodes; n++)
        once += p->node[n].cost;
    if (budget_bytes == INT64_MAX || !(once > 0))
        return 0;
    return 100 * remat_overhead_lower_bound(p, budget_bytes, pool, 0, NULL) / once;
}

void bound_report_fill(Pool *pool, const RematProblem *p, RematReport *r)
{
    fill_peak(pool, p, r);
    r->overhead_lower_bound_percent = r->lower_bound_bytes > r->budget_bytes
                                          ? (double)INFINITY
                                          : overhead_percent(pool, p, r->budget_bytes);
    r->order_bound_bytes = r->recomputed_ops ? 0 : remat_peak_bound_under_time(pool, p, 0, 0).bytes;
}

const char *bound_report_text(Pool *pool, const RematReport *r)
{
    const char *text = pool_printf(pool, "no schedule needs less than %s, forced by %s:",
                                   bytes_text(pool, r->lower_bound_bytes), r->bound_node);
    for (int k = 0; k < r->n_bound_tensors && k < MAX_NAMED; k++)
        text = pool_printf(pool, "%s %s %s,", text, r->bound_tensors[k].name,
                           bytes_text(pool, r->bound_tensors[k].bytes));
    if (r->n_bound_tensors > MAX_NAMED)
        text = pool_printf(pool, "%s and %d more,", text, r->n_bound_tensors - MAX_NAMED);
    if (r->bound_workspace_bytes > 0)
        text =
            pool_printf(pool, "%s workspace %s,", text, bytes_text(pool, r->bound_workspace_bytes));
    return pool_printf(pool, "%s persistent %s", text, bytes_text(pool, r->persistent_bytes));
}
