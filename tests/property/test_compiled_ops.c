/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiled code against the reference evaluator: every operation with a lowering rule on random
 * shapes, for every vector width that this machine runs.  The same bits for any grouping of tasks;
 * nothing read or written outside of buffers.  SCRIMP_SHAPES: how
 * many shapes, of other targets a fifth as many. */
#include "check.h"
#include "op_run.h"
#include "tests/support/sample.h"

#include "ir/eval.h"
#include "ir/support/map.h"
#include "ir/support/strbuf.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHAPES = 2, OTHER_TARGET_SHAPES = 1 };

/* From a bf16 to the next, at most: of normal numbers, and of those below them. */
#define BF16_STEP  0x1p-7
#define BF16_LEAST 0x1p-133

static const char *current = "";

static void on_fault(int sig)
{
    (void)sig;
    static const char text[] = "access outside of a buffer in: ";
    if (write(2, text, sizeof text - 1) && write(2, current, strlen(current)) && write(2, "\n", 1))
        _exit(1);
    _exit(1);
}

/* --- data --- */

static double element(const Type *t, const char *data, int64_t i)
{
    float f;
    int32_t w;
    if (t->dtype == DTYPE_F32) {
        memcpy(&f, data + i * 4, 4);
        return (double)f;
    }
    if (t->dtype == DTYPE_BF16) {
        f = 0;
        memcpy((char *)&f + 2, data + i * 2, 2);
        return (double)f;
    }
    if (t->dtype == DTYPE_I32) {
        memcpy(&w, data + i * 4, 4);
        return w;
    }
    return (unsigned char)data[i];
}

/* --- comparison --- */

/* Allowed error: relative * |expected| + scale * largest |expected| + absolute. */
typedef struct Tolerance {
    double relative, scale, absolute;
} Tolerance;

static Tolerance tolerance_of(OpKind op)
{
    switch ((int)op) {
    case OP_pow:
        return (Tolerance){1e-5, 0, 0};
    case OP_gelu:
    case OP_silu:
        return (Tolerance){4e-6, 0, 0};
    case OP_softplus: /* of beta x, up to 60, whose rounding the exponential makes a factor */
        return (Tolerance){1e-6 + 60 * 0x1p-24, 0, 0};
    case OP_gelu_grad:
    case OP_silu_grad:
    case OP_mish_grad: /* slopes that pass through 0: parts up to 1 cancel, times up to 5 */
        return (Tolerance){1e-6, 2e-6, 5 * 0x1p-23};
    case OP_elu_grad:
    case OP_hardswish_grad:
    case OP_bn_apply:
    case OP_bn_grad_x:
    case OP_fused:
        return (Tolerance){1e-6, 2e-6, 0};
    case OP_layernorm: /* offset data: the mean's own rounding */
        return (Tolerance){3e-6, 1e-5, 0};
    case OP_layernorm_grad_sums: /* the few terms of one column, up to 24 each, may cancel */
        return (Tolerance){.relative = 3e-6, .scale = 3e-6, .absolute = 24 * 0x1p-24};
    case OP_tanh_grad:
    case OP_sgd_step:
    case OP_adam_step:
    case OP_bn_running:
        return (Tolerance){1e-6, 5e-7, 0};
    default:
        break;
    }
    if (op_table[op].op_class == OP_CLASS_MATRIX)
        return (Tolerance){1e-6, 4e-6, 0};
    if (op_table[op].op_class == OP_CLASS_REDUCE)
        return (Tolerance){3e-6, 3e-6, 0};
    return (Tolerance){1e-6, 0, 0};
}

static bool close_enough(double got, double want, Tolerance t, double largest)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got || (double)(float)want == got;
    return fabs(got - want) <= t.relative * fabs(want) + t.scale * largest + t.absolute + 1e-37;
}

static double largest_of(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i]) && fabs(x[i]) > most)
            most = fabs(x[i]);
    return most;
}

static void compare_output(const OpRun *r, const Target *target, ValueId v, const double *want)
{
    const Type *t = value_type(r->c.g, v);
    int64_t n = type_elements(t);
    Tolerance tol = dtype_is_real(t->dtype) ? tolerance_of(r->op) : (Tolerance){0, 0, 0};
    if (t->dtype == DTYPE_BF16) { /* both are rounded: they may be neighbours */
        tol.relative += BF16_STEP;
        tol.absolute += BF16_LEAST;
    }
    double largest = largest_of(want, n);
    for (int64_t i = 0; i < n; i++) {
        double got = element(t, r->value[v].data, i);
        if (close_enough(got, want[i], tol, largest))
            continue;
        CHECK_MSG(false, "%s %s: element %lld of %s is %.9g, expected %.9g", target->name, current,
                  (long long)i, graph_value(r->c.g, v)->name, got, want[i]);
        return;
    }
}

static void compare_with_evaluator(const OpRun *r, const Target *target)
{
    const Node *n = graph_node(r->c.g, r->c.node);
    EvalState *s = eval_new(r->c.pool, r->c.g);
    for (int i = 0; i < r->c.n_in; i++)
        eval_set(s, r->c.in[i], r->c.data[i]);
    eval_run(s, false);
    for (int i = 0; i < n->n_out; i++)
        compare_output(r, target, n->out[i], eval_get(s, n->out[i]));
}

/* The outputs' bytes one after the other. */
static char *snapshot(const OpRun *r, size_t *size)
{
    const Node *n = graph_node(r->c.g, r->c.node);
    *size = 0;
    for (int i = 0; i < n->n_out; i++)
        *size += (size_t)type_bytes(value_type(r->c.g, n->out[i]));
    char *copy = pool_alloc(r->c.pool, *size), *to = copy;
    for (int i = 0; i < n->n_out; i++) {
        size_t bytes = (size_t)type_bytes(value_type(r->c.g, n->out[i]));
        memcpy(to, r->value[n->out[i]].data, bytes);
        to += bytes;
    }
    return copy;
}

static void check_groupings(const Farm *f, const OpRun *r, char *scratch)
{
    static const int64_t sizes[] = {1, 3};
    size_t size;
    const char *whole = snapshot(r, &size);
    for (int i = 0; i < 2; i++) {
        op_run_calls(f, r, sizes[i], i, scratch);
        const char *parts = snapshot(r, &size);
        CHECK_MSG(memcmp(whole, parts, size) == 0, "%s: bits depend on the grouping of tasks",
                  current);
    }
}

/* Outputs written over inputs where the graph says that they may. */
static void check_in_place(const Farm *f, OpRun *r, char *scratch)
{
    const Graph *g = r->c.g;
    const Node *n = graph_node(g, r->c.node);
    size_t size;
    op_run_calls(f, r, INT64_MAX, false, scratch);
    const char *apart = snapshot(r, &size);
    for (int i = 0; i < n->n_in; i++) {
        if (!node_may_overwrite(g, n, 0, i) || value_node(g, n->in[i])->op == OP_const)
            continue;
        Fenced keep = r->value[n->out[0]];
        r->value[n->out[0]] = r->value[n->in[i]];
        op_run_calls(f, r, INT64_MAX, false, scratch);
        const char *together = snapshot(r, &size);
        r->value[n->out[0]] = keep;
        CHECK_MSG(memcmp(apart, together, size) == 0, "%s: differs when written over input %d",
                  current, i);
    }
}

static void check_fences(const OpRun *r)
{
    bool ok = true;
    for (size_t v = 0; v < r->c.g->values.len; v++)
        ok &= fenced_intact(&r->value[v]);
    for (size_t n = 0; n < r->c.g->nodes.len; n++)
        ok &= fenced_intact(&r->work[n]);
    CHECK_MSG(ok, "%s: wrote before a buffer", current);
}

static void check_run(const Farm *f, OpRun *r, char *scratch)
{
    current = op_run_text(r);
    if (getenv("SCRIMP_TEST_VERBOSE"))
        fprintf(stderr, "%s\n", current);
    op_run_buffers(r);
    op_run_calls(f, r, INT64_MAX, false, scratch);
    compare_with_evaluator(r, f->target);
    check_groupings(f, r, scratch);
    check_in_place(f, r, scratch);
    check_fences(r);
    op_run_free_buffers(r);
}

/* --- the table --- */

static const char *const cpu_names[OP_COUNT] = {
#define OP(name, in0, in1, n_out, op_class, shape, flops, grad, eval, access, workspace, layout,   \
           cpu, cuda, attributes)                                                                  \
    [OP_##name] = #cpu,
#include "ir/ops.def"
#undef OP
};

static bool has_lowering(OpKind op)
{
    return strcmp(cpu_names[op], "lower_none") != 0 && op != OP_loop; /* test_loops.c */
}

/* SCRIMP_TEST_OP restricts the test to one operation. */
static bool wanted(OpKind op)
{
    const char *only = getenv("SCRIMP_TEST_OP");
    return has_lowering(op) && op_case_table[op] && (!only || strcmp(only, op_name(op)) == 0);
}

typedef struct Runs {
    Pool *pool;
    VEC(OpRun) list;
} Runs;

static void add_run(Farm *f, Runs *runs, OpRun r)
{
    r.calls = farm_lower(f, r.c.g);
    vec_push(runs->pool, &runs->list, r);
}

static void add_case(Farm *f, Runs *runs, OpKind op, OpCaseMake *make, int seed)
{
    OpRun r = {.op = op};
    bool made = op_run_draw(runs->pool, op, make, (uint64_t)seed, &r.c);
    CHECK_MSG(made, "no shapes fit %s", op_name(op));
    if (made)
        add_run(f, runs, r);
    r = (OpRun){.op = op};
    if (op_run_draw_bf16(runs->pool, op, make, (uint64_t)seed, &r.c))
        add_run(f, runs, r);
}

static void add_cases(Farm *f, Runs *runs, int shapes)
{
    for (int op = 0; op < OP_COUNT; op++)
        for (int i = 0; i < shapes && wanted((OpKind)op); i++)
            add_case(f, runs, (OpKind)op, op_case_table[op], i + 1);
    for (int k = 0; k < op_extremes_n; k++)
        for (int i = 0; i < (shapes + 2) / 4 && wanted(op_extremes[k].op); i++)
            add_case(f, runs, op_extremes[k].op, op_extremes[k].make, i + 1);
    for (int k = 0; k < op_conv_cases_n; k++)
        for (int i = 0; i < (shapes + 1) / 3 && wanted(op_conv_cases[k].op); i++)
            add_case(f, runs, op_conv_cases[k].op, op_conv_cases[k].make, i + 1);
    for (int k = 0; k < op_winograd_cases_n; k++) /* of groups: test_widths */
        for (int i = 0; i < (shapes + 1) / 3 && op_winograd_cases[k].op != OP_fused; i++)
            if (wanted(op_winograd_cases[k].op))
                add_case(f, runs, op_winograd_cases[k].op, op_winograd_cases[k].make, i + 1);
    for (int k = 0; k < op_by_rows_cases_n; k++)
        for (int i = 0; i < shapes && wanted(op_by_rows_cases[k].op); i++)
            add_case(f, runs, op_by_rows_cases[k].op, op_by_rows_cases[k].make, i + 1);
    for (int k = 0; k < op_pairs_cases_n; k++)
        for (int i = 0; i < 2 * shapes && wanted(op_pairs_cases[k].op); i++)
            add_case(f, runs, op_pairs_cases[k].op, op_pairs_cases[k].make, i + 1);
}

/* What kernels are compiled for without --march, but for the sizes of caches. */
static bool is_host(const Target *t)
{
    return strcmp(t->name, target_find(NULL)->name) == 0;
}

static void test_target(const Target *target, int shapes)
{
    Pool *pool = pool_new();
    Farm f = farm_new(pool, target);
    if (is_host(target))
        f.optimization = 2; /* test_cuda_ops and test_widths take the same kernels */
    Runs runs = {.pool = pool};
    void *scratch = NULL;
    add_cases(&f, &runs, shapes);
    bool ready = farm_compile(&f) && farm_load(&f);
    CHECK_MSG(ready, "%s: kernels do not compile", target->name);
    if (posix_memalign(&scratch, 64, SCRIMP_SCRATCH_BYTES))
        abort();
    for (size_t i = 0; ready && i < runs.list.len; i++)
        check_run(&f, &runs.list.data[i], scratch);
    printf("%s: %zu cases, %zu kernels\n", target->name, runs.list.len, f.kernels.len);
    free(scratch);
    farm_free(&f);
    pool_free(pool);
}

static void test_every_op_has_cases(void)
{
    for (int op = 0; op < OP_COUNT; op++)
        CHECK_MSG(!has_lowering((OpKind)op) || op_case_table[op], "no generator for %s",
                  op_name((OpKind)op));
}

int main(void)
{
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    test_every_op_has_cases();
    const char *march = getenv("SCRIMP_TEST_MARCH");
    int shapes = sample_number("SCRIMP_SHAPES", SHAPES);
    int others = shapes == SHAPES ? OTHER_TARGET_SHAPES : shapes / 5;
    for (const char *const *name = target_names(); *name; name++) {
        const Target *t = target_find(*name);
        if (target_runs_here(t) && (!march || strcmp(t->name, target_find(march)->name) == 0))
            test_target(t, march || is_host(t) ? shapes : others);
    }
    return test_result();
}
