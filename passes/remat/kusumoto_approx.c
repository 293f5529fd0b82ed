/* Approximate dynamic programming over lower sets.
 *
 * Source: Kusumoto, Inoue, Watanabe, Akiba, Koyama 2019 (NeurIPS), equations 1 and 2, algorithm 1
 * and section 4.3: the sets are {L^v}, the ancestors of v with v; the empty set and V are added.
 * Time- and memory-centric (section 4.4: the largest overhead instead of the smallest) strategies;
 * the smallest budget by bisection. Differs: the model's budget is swept between its smallest and
 * that of a single block, and remat_check decides which answer is best, because equation 2 is not
 * the peak of the whole step. */
#include "passes/remat/kusumoto_dp.h"
#include "passes/remat/solvers.h"

#include <math.h>
#include <string.h>

enum { N_BUDGETS = 20 };

static void sweep(Candidates *c, const Family *f, bool memory_centric)
{
    size_t bytes = (size_t)f->v->n * sizeof(int);
    int *set_of = pool_alloc(f->pool, bytes), *previous = pool_alloc(f->pool, bytes);
    double low = (double)kusumoto_smallest_budget(f), high = 2.0 * (double)f->set[f->n - 1].bytes;
    for (int k = 0; k < N_BUDGETS; k++) {
        double budget = low * pow(high / low, (double)k / (N_BUDGETS - 1));
        int n_sets = kusumoto_solve(f, (int64_t)budget, memory_centric, set_of);
        if (n_sets > 0 && memcmp(set_of, previous, bytes) != 0)
            candidates_try_sets(c, set_of, n_sets);
        memcpy(previous, set_of, bytes);
    }
}

RematStatus remat_kusumoto_approx(const RematProblem *p, const RematOptions *o, Pool *pool,
                                  RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    ForwardView *v = forward_view_new(scratch, p);
    Candidates *c = candidates_new(scratch, v, o);
    if (v->n > 1) {
        const Family *f = kusumoto_family(scratch, v);
        if (o->objective == REMAT_MIN_TIME)
            sweep(c, f, false);
        sweep(c, f, true);
    }
    RematSchedule best;
    RematStatus status = candidates_finish(c, &best);
    *out =
        (RematSchedule){best.len, pool_grow(pool, best.node, (size_t)best.len * sizeof *best.node,
                                            (size_t)best.len * sizeof *best.node + 1)};
    pool_free(scratch);
    return status;
}
