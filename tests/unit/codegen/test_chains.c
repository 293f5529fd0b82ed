/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A product with chains of its own against the products of its parts, added one after the other:
 * the same bits, signs of zeros included, on every target of this host.
 * SCRIMP_TARGETS: of how many targets. */
#include "check.h"
#include "tests/support/random.h"
#include "tests/support/run/run_kernels.h"
#include "tests/support/sample.h"

#include <limits.h>
#include <string.h>

typedef struct Case {
    int64_t m, n, chain, chains;
    DType dtype; /* of the operands */
} Case;

static const Case cases[] = {{1, 1, 1, 1, DTYPE_F32},      {33, 70, 5, 3, DTYPE_F32},
                             {65, 100, 20, 15, DTYPE_F32}, {30, 40, 256, 3, DTYPE_F32},
                             {14, 17, 100, 9, DTYPE_F32},  {513, 64, 37, 14, DTYPE_F32},
                             {70, 512, 3, 1, DTYPE_F32},   {40, 100, 24, 14, DTYPE_BF16}};

static ValueId factor(Graph *g, DType dtype, int64_t steps, int64_t width)
{
    AttrList none = {0};
    return graph_add_source(g, OP_input, type_make(dtype, 2, (const int64_t[]){steps, width}),
                            &none, NULL, (Loc){0});
}

static ValueId product(Graph *g, ValueId a, ValueId b, int64_t chain)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_ta, 1);
    if (chain)
        attrs_int(&attrs, ATTR_chain, chain);
    attrs_string(&attrs, ATTR_dtype, "f32");
    return graph_add(g, OP_matmul, (const ValueId[]){a, b}, 2, &attrs, NULL, (Loc){0});
}

static ValueId rows(Graph *g, ValueId v, int64_t from, int64_t to)
{
    AttrList attrs = {0};
    const int64_t start[] = {from, 0}, limit[] = {to, value_type(g, v)->dim[1]}, step[] = {1, 1};
    attrs_ints(&attrs, ATTR_start, start, 2);
    attrs_ints(&attrs, ATTR_limit, limit, 2);
    attrs_ints(&attrs, ATTR_step, step, 2);
    return graph_add(g, OP_slice, &v, 1, &attrs, NULL, (Loc){0});
}

/* Part by part. */
static ValueId sum_of_products(Graph *g, ValueId a, ValueId b, const Case *c)
{
    ValueId sum = VALUE_NONE;
    for (int64_t i = 0; i < c->chains; i++) {
        int64_t from = i * c->chain;
        ValueId part =
            product(g, rows(g, a, from, from + c->chain), rows(g, b, from, from + c->chain), 0);
        sum = i == 0 ? part
                     : graph_add(g, OP_add, (const ValueId[]){sum, part}, 2, NULL, NULL, (Loc){0});
    }
    return sum;
}

/* Numbers of both signs.  Every seventh column is so small that its products vanish: as -0, where
 * the other factor is above 0. */
static void fill(const KernelRun *r, ValueId v, Random *random, bool small)
{
    const Type *t = value_type(r->graph, v);
    for (int64_t i = 0; i < type_elements(t); i++) {
        float x = small && i % t->dim[1] % 7 == 3
                      ? -1e-30F
                      : (float)(random_below(random, 2001) - 1000) / 997;
        if (!small && i % t->dim[1] % 5 == 1)
            x = 1e-30F;
        if (t->dtype == DTYPE_BF16)
            memcpy(r->data[v] + 2 * i, (char *)&x + 2, 2);
        else
            memcpy(r->data[v] + 4 * i, &x, 4);
    }
}

static void test_case(const Target *target, const Case *c)
{
    Graph *g = graph_new(pool_new(), "chains");
    ValueId a = factor(g, c->dtype, c->chain * c->chains, c->m),
            b = factor(g, c->dtype, c->chain * c->chains, c->n);
    ValueId whole = product(g, a, b, c->chain), parts = sum_of_products(g, a, b, c);
    KernelRun *r = run_new(g->pool, g, target);
    CHECK_MSG(r, "%lldx%lld chain %lld", (long long)c->m, (long long)c->n, (long long)c->chain);
    if (r) {
        Random random = {17};
        fill(r, a, &random, true);
        fill(r, b, &random, false);
        run_all(r, 1, false);
        CHECK_MSG(memcmp(r->data[whole], r->data[parts], (size_t)(4 * c->m * c->n)) == 0,
                  "%lldx%lld, %lld chains of %lld on %s", (long long)c->m, (long long)c->n,
                  (long long)c->chains, (long long)c->chain, target->name);
    }
    run_free(r);
    pool_free(g->pool);
}

int main(void)
{
    int n_targets = sample_number("SCRIMP_TARGETS", INT_MAX);
    for (const char *const *name = target_names(); *name && n_targets > 0; name++)
        if (target_runs_here(target_find(*name))) {
            n_targets--;
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
                test_case(target_find(*name), &cases[i]);
        }
    return test_result();
}
