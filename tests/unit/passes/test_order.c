/* SPDX-License-Identifier: GPL-3.0-or-later */
/* reorder_nodes against all orders of tiny problems, the order bound against the optimum, and time
 * at size. */
#include "check.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/model/step_problem.h"
#include "passes/remat/order/reorder.h"
#include "tests/support/random_problem.h"

#include <string.h>
#include <time.h>

typedef struct Search {
    Pool *pool;
    const RematProblem *p;
    RematSchedule s;
    bool *used;
    int64_t best;
    int n_orders;
} Search;

static bool is_ready(const Search *x, int n)
{
    const RematNode *node = &x->p->node[n];
    for (int k = 0; k < node->n_in; k++) {
        int producer = x->p->tensor[node->in[k]].producer;
        if (producer >= 0 && !x->used[producer])
            return false;
    }
    return true;
}

static void all_orders(Search *x)
{
    if (x->s.len == x->p->n_nodes) {
        Pool *pool = pool_new_child(x->pool);
        RematFigures f = remat_check(pool, x->p, &x->s);
        if (f.ok && f.peak_bytes < x->best)
            x->best = f.peak_bytes;
        x->n_orders++;
        pool_free(pool);
        return;
    }
    for (int n = 0; n < x->p->n_nodes; n++) {
        if (x->used[n] || !is_ready(x, n))
            continue;
        x->used[n] = true;
        x->s.node[x->s.len++] = n;
        all_orders(x);
        x->s.len--;
        x->used[n] = false;
    }
}

static void check_tiny(void)
{
    Random r = {99};
    int missed = 0, cases = 250;
    for (int k = 0; k < cases; k++) {
        Pool *pool = pool_new();
        const RematProblem *p = random_problem(pool, &r, 3 + random_below(&r, 5));
        Search x = {.pool = pool, .p = p, .best = INT64_MAX};
        x.s.node = POOL_ARRAY(pool, (size_t)p->n_nodes, int);
        x.used = POOL_ARRAY(pool, (size_t)p->n_nodes, bool);
        all_orders(&x);
        RematSchedule s = reorder_nodes(pool, p, 0, 0);
        RematFigures f = remat_check(pool, p, &s);
        int64_t bound = reorder_bound(pool, p, node_graph_new(pool, p));
        CHECK_MSG(f.ok && f.peak_bytes >= x.best, "case %d: %s", k, f.fault);
        CHECK_MSG(bound <= x.best, "case %d: bound %lld above optimum %lld", k, (long long)bound,
                  (long long)x.best);
        missed += f.peak_bytes > x.best;
        pool_free(pool);
    }
    printf("seed 99: orders above the optimum: %d of %d\n", missed, cases);
    CHECK_MSG(missed * 50 <= cases, "%d of %d", missed,
              cases); /* windows cover tiny problems whole */
}

/* The two rules of thumb: an update follows its gradient; a small dW goes before dX. */
static void check_updates_follow(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {.graph = random_step(pool, 3, 40), .pool = pool};
    RematMapping map;
    RematProblem *p = remat_problem_from_graph(pool, ctx.graph, NULL, &map);
    RematSchedule base = remat_base_schedule(pool, p);
    int64_t before = remat_check(pool, p, &base).peak_bytes;
    const char *fault = "";
    CHECK(pass_order(&ctx));
    CHECK_MSG(graph_verify(ctx.graph, &fault), "%s", fault);
    CHECK(pass_plan(&ctx));
    CHECK(ctx.plan->peak_bytes < before);
    pool_free(pool);
}

static void check_large(int n_nodes, double limit)
{
    Pool *pool = pool_new();
    Random r = {5};
    const RematProblem *p = random_problem(pool, &r, n_nodes);
    clock_t begin = clock();
    RematSchedule s = reorder_nodes(pool, p, 0, 0);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    RematFigures f = remat_check(pool, p, &s);
    printf("%d nodes: %.2f s\n", n_nodes, seconds);
    CHECK_MSG(f.ok && seconds < limit, "%s, %.2f s", f.fault, seconds);
    RematSchedule again = reorder_nodes(pool, p, 0, 0);
    CHECK(memcmp(s.node, again.node, (size_t)s.len * sizeof *s.node) == 0);
    pool_free(pool);
}

/* The best so far when time is up, which at the latest is the base order. */
static void check_out_of_time(void)
{
    Pool *pool = pool_new();
    Random r = {5};
    RematProblem p = *random_problem(pool, &r, 10000);
    RematSchedule base = remat_base_schedule(pool, &p), full = reorder_nodes(pool, &p, 0, 0);
    clock_t begin = clock();
    RematSchedule s = reorder_nodes(pool, &p, 0, 1e-9); /* long ago */
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    CHECK(remat_check(pool, &p, &full).peak_bytes < remat_check(pool, &p, &base).peak_bytes);
    CHECK(s.len == base.len && memcmp(s.node, base.node, (size_t)s.len * sizeof *s.node) == 0);
    CHECK_MSG(seconds < 1, "%.2f s", seconds);
    s = reorder_nodes(pool, &p, 0, 1e18); /* long after */
    CHECK(memcmp(s.node, full.node, (size_t)s.len * sizeof *s.node) == 0);
    pool_free(pool);
}

int main(void)
{
    check_out_of_time();
    check_tiny();
    check_updates_follow();
    check_large(1000, 5);
    check_large(10000, 30);
    return test_result();
}
