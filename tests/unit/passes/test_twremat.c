/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tree decompositions of graphs whose treewidth is known and of random ones, TWRemat on a chain and
 * on a large step, and pruning. */
#include "check.h"
#include "passes/remat/model/runs.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/papers/prune.h"
#include "passes/remat/papers/tree_decomposition.h"
#include "passes/remat/solvers.h"
#include "tests/support/layered_problem.h"

typedef struct Edges {
    int n_vertices, n_edges, *pair;
} Edges;

static void add_edge(Edges *e, int a, int b)
{
    e->pair[2 * e->n_edges] = a;
    e->pair[2 * e->n_edges++ + 1] = b;
}

static bool bag_has(const TreeDecomposition *t, int bag, int v)
{
    for (int i = t->bag.begin[bag]; i < t->bag.begin[bag + 1]; i++)
        if (t->bag.item[i] == v)
            return true;
    return false;
}

/* The three properties, one root, and lemma 1. */
static void check_decomposition(const TreeDecomposition *t, const Edges *e)
{
    int roots = 0;
    for (int b = 0; b < t->n_bags; b++) {
        roots += t->parent[b] < 0;
        int up = t->parent[b], here = 0, above = 0;
        CHECK(csr_length(&t->bag, b) <= t->width + 1);
        for (int v = 0; v < e->n_vertices && up >= 0; v++) {
            here += bag_has(t, b, v) && !bag_has(t, up, v);
            above += bag_has(t, up, v) && !bag_has(t, b, v);
        }
        CHECK(up < 0 || (here > 0 && above > 0));
    }
    CHECK(roots == (t->n_bags > 0) && t->n_bags <= e->n_vertices);
    for (int v = 0; v < e->n_vertices; v++) { /* connected: one bag of v has a parent without it */
        int tops = 0;
        for (int b = 0; b < t->n_bags; b++)
            tops += bag_has(t, b, v) && (t->parent[b] < 0 || !bag_has(t, t->parent[b], v));
        CHECK_MSG(tops == 1, "vertex %d: %d", v, tops);
    }
    for (int k = 0; k < e->n_edges; k++) {
        bool found = false;
        for (int b = 0; b < t->n_bags; b++)
            found |= bag_has(t, b, e->pair[2 * k]) && bag_has(t, b, e->pair[2 * k + 1]);
        CHECK(found);
    }
}

static int width_of(Pool *pool, const Edges *e)
{
    TreeDecomposition t = tree_decomposition(pool, e->n_vertices, e->pair, e->n_edges);
    check_decomposition(&t, e);
    return t.width;
}

static Edges no_edges(Pool *pool, int n)
{
    return (Edges){n, 0, POOL_ARRAY(pool, 2 * (size_t)n * (size_t)n + 1, int)};
}

static void test_widths(Pool *pool)
{
    Edges tree = no_edges(pool, 31), ring = no_edges(pool, 9), clique = no_edges(pool, 7);
    Edges grid = no_edges(pool, 20), apart = no_edges(pool, 4);
    for (int v = 1; v < 31; v++)
        add_edge(&tree, (v - 1) / 2, v);
    for (int v = 0; v < 9; v++)
        add_edge(&ring, v, (v + 1) % 9);
    for (int v = 0; v < 7; v++)
        for (int u = 0; u < v; u++)
            add_edge(&clique, u, v);
    for (int v = 0; v < 20; v++) {
        if (v % 4 < 3)
            add_edge(&grid, v, v + 1);
        if (v < 16)
            add_edge(&grid, v, v + 4);
    }
    CHECK(width_of(pool, &tree) == 1);
    CHECK(width_of(pool, &ring) == 2);
    CHECK(width_of(pool, &clique) == 6);
    CHECK(width_of(pool, &grid) == 4);
    CHECK(width_of(pool, &apart) == 0);
}

static void test_random_graphs(Pool *parent)
{
    Random r = {5};
    for (int k = 0; k < 300 && !check_failures; k++) {
        Pool *pool = pool_new_child(parent);
        Edges e = no_edges(pool, 1 + random_below(&r, 25));
        for (int i = random_below(&r, 3 * e.n_vertices); i > 0 && e.n_vertices > 1; i--) {
            int a = random_below(&r, e.n_vertices), b = random_below(&r, e.n_vertices - 1);
            add_edge(&e, a, b + (b >= a));
        }
        width_of(pool, &e);
        pool_free(pool);
    }
}

static RematNode *add_node(RematProblem *p, const char *name, int n_in)
{
    RematNode *node = &p->node[p->n_nodes];
    *node = (RematNode){.name = name, .cost = 1, .rerun = true};
    node->in = POOL_ARRAY(p->pool, (size_t)n_in + 1, int);
    node->out = POOL_ARRAY(p->pool, 1, int);
    node->out[node->n_out++] = problem_tensor(p, 64, p->n_nodes++, false);
    return node;
}

static RematProblem *empty_problem(Pool *pool, int n)
{
    RematProblem *p = POOL_NEW(pool, RematProblem);
    *p = (RematProblem){.pool = pool, .loss_node = -1};
    p->node = POOL_ARRAY(pool, (size_t)n, RematNode);
    p->tensor = POOL_ARRAY(pool, (size_t)n, RematTensor);
    return p;
}

/* v0 .. v(n-1), and back: b_i reads b_(i+1) and v_i.  One pass keeps all of v. */
static RematProblem *chain_and_back(Pool *pool, int n)
{
    RematProblem *p = empty_problem(pool, 2 * n);
    for (int i = 0; i < 2 * n; i++) {
        RematNode *node = add_node(p, "node", 2);
        node->forward = i < n;
        if (i > 0)
            problem_read(node, i - 1);
        if (i >= n)
            problem_read(node, 2 * n - 1 - i);
    }
    p->tensor[2 * n - 1].keep = true;
    p->loss_node = n - 1;
    return p;
}

/* Memory grows with the logarithm of the length (theorem 5), and more slowly than a straight line.
 */
static void test_chain(Pool *pool)
{
    int64_t last = 0;
    for (int n = 32; n <= 256; n *= 2) {
        RematProblem *p = chain_and_back(pool, n);
        RematNotes notes = {0};
        RematOptions o = {.budget_bytes = 0, .twremat_leaf_bags = 1, .notes = &notes};
        RematSchedule s;
        CHECK(remat_twremat(p, &o, pool, &s) == REMAT_INFEASIBLE);
        RematFigures f = remat_check(pool, p, &s);
        CHECK(notes.treewidth == 2);
        CHECK_MSG(f.ok && f.peak_bytes <= 64 * (int64_t)(n / 2), "n = %d: %lld", n,
                  (long long)f.peak_bytes / 64);
        CHECK(last == 0 || f.peak_bytes - last <= 64 * 8);
        last = f.peak_bytes;
        o.twremat_leaf_bags =
            2 * n + 1; /* everything at once: topological order, no recomputation */
        remat_twremat(p, &o, pool, &s);
        f = remat_check(pool, p, &s);
        CHECK(f.ok && f.recomputed == 0);
    }
}

static void test_prune(Pool *pool)
{
    RematProblem *p = chain_and_back(pool, 4);
    bool *late = update_nodes(pool, p);
    /* v0 v1 v2 v3 b3 | v0 v1 v2 b2 | v0 v1 b1 | v0 b0, less what liveness makes pointless */
    static const int runs[] = {0, 1, 2, 3, 4, 0, 1, 2, 5, 0, 1, 6, 0, 7};
    RematSchedule s = schedule_from_runs(pool, p, late, runs, 14), kept;
    RematFigures f = remat_check(pool, p, &s);
    CHECK(f.ok && f.recomputed == 6 && f.peak_bytes == 3 * 64);
    CHECK(peak_without_in_place(pool, p, &s) == 3 * 64);
    for (int64_t limit = 3; limit <= 6; limit++) {
        kept = prune_schedule(pool, p, &s, 64 * limit);
        RematFigures g = remat_check(pool, p, &kept);
        CHECK_MSG(g.ok && g.peak_bytes <= 64 * limit && g.time <= f.time, "limit %d", (int)limit);
        f = g;
    }
    CHECK(f.recomputed == 0);
}

/* As many nodes as Kumar et al.'s ResNet-200 has (17,705). */
static void test_large(Pool *pool)
{
    Random r = {3};
    RematProblem *p = layered_problem(pool, &r, 1100, 4);
    RematNotes notes = {0};
    RematOptions o = {.budget_bytes = p->persistent_bytes, .notes = &notes};
    RematSchedule s, base = remat_base_schedule(pool, p);
    remat_twremat(p, &o, pool, &s);
    RematFigures f = remat_check(pool, p, &s), g = remat_check(pool, p, &base);
    printf("%d nodes, width %d: peak %.1f%%, time %.2f\n", p->n_nodes, notes.treewidth,
           100 * (double)(f.peak_bytes - p->persistent_bytes) /
               (double)(g.peak_bytes - p->persistent_bytes),
           f.time / f.time_once);
    CHECK(f.ok && p->n_nodes > 17000);
    CHECK(f.peak_bytes - p->persistent_bytes < (g.peak_bytes - p->persistent_bytes) / 2);
}

int main(void)
{
    Pool *pool = pool_new();
    test_widths(pool);
    test_random_graphs(pool);
    test_chain(pool);
    test_prune(pool);
    test_large(pool);
    pool_free(pool);
    return test_result();
}
