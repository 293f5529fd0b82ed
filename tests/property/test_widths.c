/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One result for every width of vectors: kernels of every operation with 4, 8 and 16 lanes and
 * fused multiply-adds, and with matrix registers, as far as this processor runs them, on the random
 * shapes of test_compiled_ops.c, bit for bit.  SCRIMP_SHAPES: how many shapes; SCRIMP_TEST_OP: of
 * one operation. */
#include "check.h"
#include "op_run.h"
#include "tests/support/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 2, WIDTHS = 4 };

/* AVX2's instructions on half its width: what SSE's 4 lanes lack is the fused multiply-add. */
static const Target narrow = {.name = "x86-64-v3 with 4 lanes",
                              .flags = {"-march=x86-64-v3", NULL},
                              .vector_floats = 4,
                              .vector_registers = 16,
                              .x86 = true,
                              .fma = true};

/* A case by width. */
typedef struct Case {
    OpRun run[WIDTHS];
} Case;

typedef struct Cases {
    Pool *pool;
    Farm farm[WIDTHS];
    int n_widths;
    VEC(Case) list;
} Cases;

static bool wanted(OpKind op)
{
    const char *only = getenv("SCRIMP_TEST_OP");
    return op_case_table[op] && cpu_backend.rules[op] != lower_none &&
           (!only || strcmp(only, op_name(op)) == 0);
}

static void add_case(Cases *all, OpKind op, OpCaseMake *make, int seed)
{
    Case c;
    for (int w = 0; w < all->n_widths; w++) {
        c.run[w] = (OpRun){.op = op};
        bool made = op_run_draw(all->pool, op, make, (uint64_t)seed, &c.run[w].c);
        CHECK_MSG(made, "no shapes fit %s", op_name(op));
        if (!made)
            return;
        c.run[w].calls = farm_lower(&all->farm[w], c.run[w].c.g);
    }
    vec_push(all->pool, &all->list, c);
}

static void add_cases(Cases *all, int shapes)
{
    for (int op = 0; op < OP_COUNT; op++)
        for (int i = 0; i < shapes && wanted((OpKind)op); i++)
            add_case(all, (OpKind)op, op_case_table[op], i + 1);
    for (int k = 0; k < op_conv_cases_n; k++)
        for (int i = 0; i < (shapes + 1) / 3 && wanted(op_conv_cases[k].op); i++)
            add_case(all, op_conv_cases[k].op, op_conv_cases[k].make, i + 1);
    for (int k = 0; k < op_winograd_cases_n; k++)
        for (int i = 0; i < shapes && wanted(op_winograd_cases[k].op); i++)
            add_case(all, op_winograd_cases[k].op, op_winograd_cases[k].make, i + 1);
    for (int k = 0; k < op_by_rows_cases_n; k++)
        for (int i = 0; i < shapes && wanted(op_by_rows_cases[k].op); i++)
            add_case(all, op_by_rows_cases[k].op, op_by_rows_cases[k].make, i + 1);
    for (int k = 0; k < op_pairs_cases_n; k++)
        for (int i = 0; i < 2 * shapes && wanted(op_pairs_cases[k].op); i++)
            add_case(all, op_pairs_cases[k].op, op_pairs_cases[k].make, i + 1);
}

static void compare(const Cases *all, const Case *c, int w)
{
    const OpRun *a = &c->run[0], *b = &c->run[w];
    const Node *n = graph_node(a->c.g, a->c.node);
    for (int i = 0; i < n->n_out; i++) {
        const Type *t = value_type(a->c.g, n->out[i]);
        int64_t at = op_first_difference(t, a->value[n->out[i]].data, b->value[n->out[i]].data);
        CHECK_MSG(at == type_elements(t), "%s: element %lld of result %d differs between %s and %s",
                  op_run_text(a), (long long)at, i, all->farm[0].target->name,
                  all->farm[w].target->name);
    }
}

static void check_case(const Cases *all, Case *c, char *scratch)
{
    for (int w = 0; w < all->n_widths; w++) {
        op_run_buffers(&c->run[w]);
        op_run_calls(&all->farm[w], &c->run[w], INT64_MAX, false, scratch);
    }
    for (int w = 1; w < all->n_widths; w++)
        compare(all, c, w);
    for (int w = 0; w < all->n_widths; w++)
        op_run_free_buffers(&c->run[w]);
}

static void add_width(Cases *all, const Target *t)
{
    if (!t || !target_runs_here(t))
        return;
    all->farm[all->n_widths] = farm_new(all->pool, t);
    all->farm[all->n_widths++].optimization = 2;
}

int main(void)
{
    Cases all = {.pool = pool_new()};
    const Target *v3 = target_find("x86-64-v3");
    if (!v3 || !target_runs_here(v3)) {
        printf("skipped: this processor has no AVX2\n");
        return 77;
    }
    add_width(&all, v3);
    add_width(&all, &narrow);
    add_width(&all, target_find("x86-64-v4"));
    add_width(&all, target_find("x86-64-v4-amx"));
    add_cases(&all, sample_number("SCRIMP_SHAPES", SHAPES));
    bool ready = true;
    void *scratch = NULL;
    for (int w = 0; w < all.n_widths; w++)
        ready = ready && farm_compile(&all.farm[w]) && farm_load(&all.farm[w]);
    CHECK_MSG(ready, "kernels do not compile");
    if (posix_memalign(&scratch, 64, SCRIMP_SCRATCH_BYTES))
        abort();
    for (size_t i = 0; ready && check_failures < 20 && i < all.list.len; i++)
        check_case(&all, &all.list.data[i], scratch);
    printf("%zu cases, %d widths\n", all.list.len, all.n_widths);
    free(scratch);
    for (int w = 0; w < all.n_widths; w++)
        farm_free(&all.farm[w]);
    pool_free(all.pool);
    return test_result();
}
