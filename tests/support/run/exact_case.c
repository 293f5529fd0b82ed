/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/run/exact_case.h"

#include "check.h"
#include "ir/eval.h"
#include "tests/support/run/run_inputs.h"

#include <stdio.h>
#include <string.h>

static uint64_t seed = 12345;

static uint64_t next_random(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

int64_t exact_case_pick(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(next_random() % (uint64_t)(hi - lo + 1));
}

ExactCase exact_case_new(void)
{
    Pool *pool = pool_new();
    ExactCase c = {pool, graph_new(pool, "case")};
    return c;
}

ValueId exact_case_input(ExactCase *c, int rank, const int64_t *dim)
{
    AttrList none = {0};
    return graph_add_source(c->g, OP_input, type_make(DTYPE_F32, rank, dim), &none, NULL, (Loc){0});
}

static double quarters(size_t place, int64_t i)
{
    (void)place;
    (void)i;
    return (double)exact_case_pick(-6, 6) / 4;
}

void exact_case_fill(const KernelRun *r, EvalState *s)
{
    run_fill_inputs(r, s, quarters);
}

int exact_case_differences(const ExactCase *c, const KernelRun *r, const EvalState *s, ValueId v)
{
    const float *got = (const float *)(const void *)r->data[v];
    const double *expect = eval_get(s, v);
    int n = 0;
    for (int64_t k = 0; k < type_elements(value_type(c->g, v)); k++)
        if ((double)got[k] != expect[k] && n++ < 3)
            fprintf(stderr, "  element %lld: %g, expected %g\n", (long long)k, (double)got[k],
                    expect[k]);
    return n;
}

void exact_case_check(ExactCase *c, ValueId result, const Target *target, const char *text)
{
    KernelRun *r = run_new(c->pool, c->g, target);
    if (r) {
        EvalState *s = eval_new(c->pool, c->g);
        exact_case_fill(r, s);
        eval_run(s, false);
        run_all(r, 1000000, false);
        CHECK_MSG(!exact_case_differences(c, r, s, result), "%s on %s", text, target->name);
        memset(r->data[result], 0x7f, (size_t)type_bytes(value_type(c->g, result)));
        run_all(r, 1, true);
        CHECK_MSG(!exact_case_differences(c, r, s, result), "%s on %s, task by task", text,
                  target->name);
    }
    run_free(r);
    pool_free(c->pool);
}
