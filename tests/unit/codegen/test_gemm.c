/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products of every target of this host against the reference evaluator.  Operands are small
 * multiples of 1/4, so that every sum is exact and results must be equal.
 * SCRIMP_TARGETS: of how many targets. */
#include "check.h"
#include "tests/support/fused.h"
#include "tests/support/run/exact_case.h"
#include "tests/support/sample.h"

#include <limits.h>
#include <stdlib.h>

static void swap(int64_t *a, int64_t *b)
{
    int64_t t = *a;
    *a = *b;
    *b = t;
}

/* a_batch, b_batch: how many of the result's `batch` dims each operand has; the last one is 1 when
 * ones. */
static void test_matmul(const Target *target, int64_t m, int64_t n, int64_t k, bool ta, bool tb,
                        int n_batch, int a_batch, int b_batch, bool ones)
{
    ExactCase c = exact_case_new();
    int64_t batch[3] = {2, 3, 2}, a[5], b[5];
    for (int i = 0; i < a_batch; i++)
        a[i] = batch[n_batch - a_batch + i];
    for (int i = 0; i < b_batch; i++)
        b[i] = ones && i == b_batch - 1 ? 1 : batch[n_batch - b_batch + i];
    a[a_batch] = m;
    a[a_batch + 1] = b[b_batch] = k;
    b[b_batch + 1] = n;
    if (ta)
        swap(&a[a_batch], &a[a_batch + 1]);
    if (tb)
        swap(&b[b_batch], &b[b_batch + 1]);
    AttrList attrs = {0};
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    ValueId in[2] = {exact_case_input(&c, a_batch + 2, a), exact_case_input(&c, b_batch + 2, b)};
    ValueId out = graph_add(c.g, OP_matmul, in, 2, &attrs, NULL, (Loc){0});
    exact_case_check(&c, out, target,
                     pool_printf(c.pool, "matmul %lldx%lldx%lld ta%d tb%d batch %d %d",
                                 (long long)m, (long long)n, (long long)k, ta, tb, a_batch,
                                 b_batch));
}

static void test_linear(const Target *target, int64_t m, int64_t n, int64_t k, bool in_out,
                        bool bias)
{
    ExactCase c = exact_case_new();
    int64_t x[3] = {2, m, k}, w[2] = {in_out ? k : n, in_out ? n : k}, b[1] = {n};
    AttrList attrs = {0};
    if (in_out)
        attrs_int(&attrs, ATTR_in_out, 1);
    ValueId in[3] = {exact_case_input(&c, 3, x), exact_case_input(&c, 2, w),
                     exact_case_input(&c, 1, b)};
    ValueId out = graph_add(c.g, OP_linear, in, bias ? 3 : 2, &attrs, NULL, (Loc){0});
    exact_case_check(&c, out, target,
                     pool_printf(c.pool, "linear %lldx%lldx%lld in_out%d bias%d", (long long)m,
                                 (long long)n, (long long)k, in_out, bias));
}

static ValueId body_add(Graph *body, OpKind op, ValueId a, ValueId b)
{
    ValueId in[2] = {a, b};
    AttrList none = {0};
    return graph_add(body, op, in, b == VALUE_NONE ? 1 : 2, &none, NULL, (Loc){0});
}

/* relu(linear(x, w) + residual) * per_column + per_row, x [2, m, k]: what the fuse pass may make.
 */
static ValueId add_fused(ExactCase *c, int64_t m, int64_t n, int64_t k, ValueId *residual)
{
    const int64_t dims[5][3] = {{2, m, k}, {n, k}, {2, m, n}, {n}, {m, 1}};
    const int rank[5] = {3, 2, 3, 1, 2};
    ExactCase body = {c->pool, graph_new(c->pool, "fused")};
    ValueId outer[5], inner[5];
    for (int i = 0; i < 5; i++) {
        outer[i] = exact_case_input(c, rank[i], dims[i]);
        inner[i] = exact_case_input(&body, rank[i], dims[i]);
    }
    ValueId v = body_add(body.g, OP_linear, inner[0], inner[1]);
    v = body_add(body.g, OP_add, v, inner[2]);
    v = body_add(body.g, OP_relu, v, VALUE_NONE);
    v = body_add(body.g, OP_mul, v, inner[3]);
    v = body_add(body.g, OP_add, inner[4], v);
    graph_add_output(body.g, "out", v);
    *residual = outer[2];
    NodeId fused = graph_add_fused(c->g, body.g, outer, 5, "%out", (Loc){0});
    return graph_node(c->g, fused)->out[0];
}

static void test_fused(const Target *target, int64_t m, int64_t n, int64_t k)
{
    ExactCase c = exact_case_new();
    ValueId residual, out = add_fused(&c, m, n, k, &residual);
    exact_case_check(
        &c, out, target,
        pool_printf(c.pool, "fused %lldx%lldx%lld", (long long)m, (long long)n, (long long)k));
}

/* The plan may put the result over the residual: sums of K blocks must not go there. */
static void test_in_place(const Target *target)
{
    ExactCase c = exact_case_new();
    ValueId residual, out = add_fused(&c, 30, 40, 600, &residual);
    KernelRun *r = run_new(c.pool, c.g, target);
    if (r) {
        EvalState *s = eval_new(c.pool, c.g);
        exact_case_fill(r, s);
        eval_run(s, false);
        char *own = r->data[out];
        r->data[out] = r->data[residual];
        run_all(r, 1, false);
        CHECK_MSG(!exact_case_differences(&c, r, s, out), "in place on %s", target->name);
        r->data[out] = own;
    }
    run_free(r);
    pool_free(c.pool);
}

/* Random shapes around the tile sizes, and the strides that make A be packed. */
static void test_target(const Target *target, int n_random)
{
    for (int i = 0; i < n_random; i++) {
        int64_t m = i % 4 == 0 ? exact_case_pick(1, 4) : exact_case_pick(1, 90),
                n = exact_case_pick(1, 100);
        int64_t k = i % 3 == 0 ? exact_case_pick(300, 700) : exact_case_pick(1, 70);
        test_matmul(target, m, n, k, i & 1, i & 2, 0, 0, 0, false);
    }
    test_matmul(target, 60, 48, 1024, false, false, 0, 0, 0, false); /* rows 4 KiB apart */
    test_matmul(target, 512, 40, 350, true, true, 0, 0, 0, false);   /* steps 2 KiB apart */
    test_matmul(target, 70, 512, 300, false, true, 0, 0, 0, false);  /* sums in scratch */
    test_matmul(target, 100, 16, 1100, true, false, 0, 0, 0, false); /* one run of two blocks */
    test_matmul(target, 1, 1, 1, false, false, 0, 0, 0, false);
    test_matmul(target, 17, 33, 9, false, true, 2, 2, 2, false);
    test_matmul(target, 9, 20, 31, true, false, 3, 3, 2, true);
    test_matmul(target, 20, 35, 8, false, false, 2, 2, 0, false); /* batch merges into rows */
    test_matmul(target, 5, 18, 12, false, true, 3, 1, 3, false);
    /* One operand of A's batch, stored transposed: a row a batch element, then two that do not go
     * on evenly. */
    test_matmul(target, 1, 18, 12, true, false, 2, 2, 0, false);
    test_matmul(target, 2, 18, 12, true, false, 2, 2, 0, false);
    test_fused(target, 19, 37, 24);
    test_fused(target, 30, 64, 300);
    test_fused(target, 350, 300, 512); /* sums of all columns in scratch, beside a packed A */
    test_in_place(target);
    for (int i = 0; i < n_random / 3; i++)
        test_linear(target, exact_case_pick(1, 60), exact_case_pick(1, 70), exact_case_pick(1, 400),
                    i & 1, i & 2);
}

/* Compiling is what takes time: the widest target gets most of the cases. */
int main(int argc, char **argv)
{
    int n_random = argc > 1 ? atoi(argv[1]) : 12;
    int n_targets = sample_number("SCRIMP_TARGETS", INT_MAX);
    for (const char *const *name = target_names(); *name && n_targets > 0; name++)
        if (target_runs_here(target_find(*name))) {
            n_targets--;
            test_target(target_find(*name), n_random);
            n_random = argc > 1 ? n_random : 3;
        }
    return test_result();
}
