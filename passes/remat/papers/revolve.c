/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Binomial checkpointing on a chain of equal stages.
 *
 * Source: Griewank and Walther 2000, Algorithm 799: Revolve (TOMS 26:1).  With c snapshots and r
 * repetitions beta(c, r) = (c + r)! / (c! r!) stages can be reversed; n stages take
 * t(n, c) = r n - beta(c + 1, r - 1) advances, r being the least with beta(c, r) >= n.  The next
 * snapshot goes to any place m with t(m, c) + m + t(n - m, c - 1) = t(n, c); the largest that keeps
 * both sides within their binomials is taken.
 *
 * Differs: stages are the pieces of the forward graph between its articulation points (chain.h),
 * and are not equal; costs and bytes play no part in where snapshots go.  The number of snapshots
 * is no parameter: several are tried, and of each what pruning makes of it at several limits. */
#include "passes/remat/papers/revolve.h"

#include "passes/remat/model/runs.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/chain.h"
#include "passes/remat/solvers.h"

/* Numbers of snapshots with which a stage would run more often than this are passed over. */
enum { MAX_STAGES = 512, MAX_REPETITIONS = 16, PRUNE_STEPS = 6 };

/* (c + r)! / (c! r!), or more than any chain is long; 0 for r < 0. */
static int64_t beta(int c, int r)
{
    int64_t value = 1;
    if (r < 0)
        return 0;
    for (int k = 1; k <= r && value <= INT32_MAX; k++)
        value = value * (c + k) / k;
    return value;
}

static int repetitions(int n, int c)
{
    int r = 0;
    while (beta(c, r) < n)
        r++;
    return r;
}

int64_t revolve_advances(int n, int c)
{
    int r = repetitions(n, c);
    return (int64_t)r * n - beta(c + 1, r - 1);
}

int revolve_split(int n, int c)
{
    int r = repetitions(n, c);
    int64_t most = beta(c, r - 1), least = n - beta(c - 1, r);
    int64_t m = most < n - 1 ? most : n - 1;
    /* the part behind the snapshot must need r repetitions still, or as few as it can */
    if (n - m < beta(c - 1, r - 1) && n - beta(c - 1, r - 1) >= 1)
        m = n - beta(c - 1, r - 1);
    m = m < least ? least : m;
    return (int)(m < 1 ? 1 : m);
}

/* Reverses stages [first, end), the values before which are there, with c snapshots.  Recursion: as
 * deep as there are stages. */
static void reverse(StageRuns *r, int first, int end, int c)
{
    while (end - first > 1) {
        int split = c > 1 ? first + revolve_split(end - first, c) : end - 1;
        run_forward(r, first, split);
        reverse(r, split, end, c - 1);
        end = split;
    }
    if (end > first) {
        run_forward(r, first, end);
        run_backward(r, first);
    }
}

RematStatus remat_revolve(const RematProblem *p, const RematOptions *o, Pool *pool,
                          RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    ForwardView *v = forward_view_new(scratch, p);
    Candidates *c = candidates_new(scratch, v, o);
    Chain *chain = chain_new(scratch, v, MAX_STAGES);
    bool all = true;
    for (int k = 1; k < chain->n && all; k += 1 + k / 3) {
        if (revolve_advances(chain->n, k) > (int64_t)MAX_REPETITIONS * chain->n)
            continue;
        Pool *once = pool_new_child(scratch);
        StageRuns r = {.chain = chain, .pool = once};
        reverse(&r, 0, chain->n, k);
        candidates_try_runs(c, v->late, r.node, r.len, PRUNE_STEPS);
        pool_free(once);
        all = !remat_out_of_time(o);
    }
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status == REMAT_INFEASIBLE && !all ? REMAT_LIMIT : status;
}
