/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkmate's program against an exhaustive search under the same rules, its rounding against the
 * same, and both on graphs beyond their limits.  Skipped where Cbc is not installed. */
#include "check.h"
#include "ir/support/milp.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/solvers.h"
#include "tests/support/layered_problem.h"
#include "tests/support/sample.h"

#include <math.h>

enum { MOST = 9 };

/* Dijkstra over (nodes run so far in base order, values in memory): runs of what may run, and
 * dropping a value, as often and wherever one likes. */
typedef struct Search {
    const RematProblem *p;
    int64_t budget;
    double least[(MOST + 1) << MOST];
    bool done[(MOST + 1) << MOST];
} Search;

static int64_t value_bytes(const RematProblem *p, int n)
{
    int64_t bytes = 0;
    for (int k = 0; k < p->node[n].n_out; k++)
        bytes += p->tensor[p->node[n].out[k]].bytes;
    return bytes;
}

static int64_t bytes_alive(const RematProblem *p, int set)
{
    int64_t bytes = 0;
    for (int t = 0; t < p->n_tensors; t++)
        bytes += p->tensor[t].producer < 0 ? p->tensor[t].bytes : 0;
    for (int n = 0; n < p->n_nodes; n++)
        bytes += set >> n & 1 ? value_bytes(p, n) : 0;
    return bytes;
}

/* In the replay's terms: its inputs are there, and not overwritten by a node that has run. */
static bool can_run(const Search *s, int next, int set, int n)
{
    const RematProblem *p = s->p;
    if (n > next || (n < next && (!p->node[n].rerun || set >> n & 1)))
        return false;
    for (int k = 0; k < p->node[n].n_in; k++) {
        int t = p->node[n].in[k], producer = p->tensor[t].producer;
        if (producer >= 0 && !(set >> producer & 1))
            return false;
        for (int u = 0; u < next; u++)
            for (int i = 0; i < p->node[u].n_overwrites; i++)
                if (p->node[u].overwrites[i] == t)
                    return false;
    }
    return bytes_alive(p, set | 1 << n) + p->node[n].workspace <= s->budget;
}

static void reach(Search *s, int next, int set, double time)
{
    double *least = &s->least[next << MOST | set];
    *least = time < *least ? time : *least;
}

static double search(Search *s)
{
    const RematProblem *p = s->p;
    int n = p->n_nodes, kept = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < p->node[k].n_out; i++)
            kept |= p->tensor[p->node[k].out[i]].keep ? 1 << k : 0;
    for (int k = 0; k < (MOST + 1) << MOST; k++) {
        s->least[k] = (double)INFINITY;
        s->done[k] = false;
    }
    s->least[0] = 0;
    for (;;) {
        int best = -1;
        for (int k = 0; k < (n + 1) << MOST; k++)
            if (!s->done[k] && isfinite(s->least[k]) && (best < 0 || s->least[k] < s->least[best]))
                best = k;
        if (best < 0)
            return (double)INFINITY;
        int next = best >> MOST, set = best & ((1 << MOST) - 1);
        s->done[best] = true;
        if (next == n && (set & kept) == kept)
            return s->least[best];
        for (int k = 0; k < n; k++) {
            if (set >> k & 1)
                reach(s, next, set & ~(1 << k), s->least[best]);
            if (can_run(s, next, set, k))
                reach(s, next + (k == next), set | 1 << k, s->least[best] + p->node[k].cost);
        }
    }
}

/* v0 .. v3 and back, b_i reading b_(i+1) and v_i or so; single outputs, nothing in place, no batch:
 * what the program's rules say is what the replay finds. */
static RematProblem *small_problem(Pool *pool, Random *r)
{
    RematProblem *p = POOL_NEW(pool, RematProblem);
    *p = (RematProblem){.pool = pool, .loss_node = 3, .node = POOL_ARRAY(pool, 10, RematNode)};
    p->tensor = POOL_ARRAY(pool, 10, RematTensor);
    int weight = problem_tensor(p, 64, -1, true);
    for (int n = 0; n < MOST; n++) {
        RematNode *node = &p->node[p->n_nodes++];
        *node = (RematNode){.name = "node", .cost = 1 + random_below(r, 9), .forward = n < 4};
        node->rerun = random_below(r, 8) > 0;
        node->workspace = 64 * (random_below(r, 4) == 0);
        node->in = POOL_ARRAY(pool, 4, int);
        node->out = POOL_ARRAY(pool, 1, int);
        node->overwrites = POOL_ARRAY(pool, 1, int);
        if (n == 0 || random_below(r, 4) == 0)
            problem_read(node, weight);
        if (n > 0)
            problem_read(node, p->node[n - 1].out[0]);
        if (n > 1 && n < 4 && random_below(r, 3) == 0)
            problem_read(node, p->node[n - 2].out[0]);
        if (n >= 4 && n < 8)
            problem_read(node, p->node[7 - n].out[0]);
        bool update = n == 8 && random_below(r, 2);
        node->rerun &= !update;
        if (update)
            node->overwrites[node->n_overwrites++] = weight;
        int64_t bytes = update ? 0 : n < 4 ? 64 * (2 + random_below(r, 6)) : 64;
        node->out[node->n_out++] = problem_tensor(p, bytes, n, false);
    }
    p->tensor[p->node[8].out[0]].keep = true;
    return p;
}

static void test_against_search(Pool *parent, int n_problems)
{
    static Search s;
    int feasible = 0, recomputing = 0, rounded = 0;
    for (int seed = 1; seed <= n_problems && !check_failures; seed++) {
        Pool *pool = pool_new_child(parent);
        Random r = {(uint64_t)seed};
        RematProblem *p = small_problem(pool, &r);
        RematSchedule base = remat_base_schedule(pool, p), out;
        RematFigures f = remat_check(pool, p, &base);
        s.p = p;
        s.budget = f.peak_bytes - 64 * (1 + random_below(&r, 6));
        double least = search(&s);
        RematNotes notes = {0};
        RematOptions o = {.budget_bytes = s.budget, .notes = &notes};
        RematStatus status = remat_checkmate_ilp(p, &o, pool, &out);
        f = remat_check(pool, p, &out);
        CHECK(f.ok && status != REMAT_LIMIT);
        if (isfinite(least)) {
            feasible++;
            recomputing += least > f.time_once;
            CHECK_MSG(f.peak_bytes <= s.budget && notes.proven, "seed %d", seed);
            CHECK_MSG(fabs(f.time - least) < 1e-9, "seed %d: %g, search %g", seed, f.time, least);
            status = remat_checkmate_lp(p, &o, pool, &out);
            f = remat_check(pool, p, &out);
            CHECK_MSG(f.ok && (status == REMAT_INFEASIBLE || f.time >= least - 1e-9), "seed %d",
                      seed);
            rounded += status == REMAT_FEASIBLE;
        }
        pool_free(pool);
    }
    printf("%d feasible, %d recompute, %d by rounding\n", feasible, recomputing, rounded);
    CHECK(feasible > n_problems / 2 && recomputing > n_problems / 2 && rounded > n_problems / 4);
}

static void test_limits(Pool *pool)
{
    Random r = {1};
    RematProblem *p = layered_problem(pool, &r, 40, 2);
    RematOptions o = {.budget_bytes = p->persistent_bytes};
    RematSchedule s;
    CHECK(remat_checkmate_ilp(p, &o, pool, &s) == REMAT_LIMIT);
    CHECK(remat_check(pool, p, &s).ok);
    CHECK(remat_checkmate_lp(p, &o, pool, &s) == REMAT_LIMIT);
    CHECK(remat_check(pool, p, &s).ok);
}

int main(void)
{
    Pool *pool = pool_new();
    test_limits(pool);
    if (!milp_is_available()) {
        pool_free(pool);
        return check_failures ? 1 : 77;
    }
    test_against_search(pool, sample_number("SCRIMP_PROBLEMS", 60));
    pool_free(pool);
    return test_result();
}
