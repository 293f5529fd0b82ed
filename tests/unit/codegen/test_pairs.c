/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products by pairs add in the order of ir/product.h: every element beside a loop that says so, bit
 * for bit, with numbers from tiny to large, for every instruction set that this processor has, the
 * matrix registers of x86 among them.  SCRIMP_SHAPES: how many random shapes. */
#include "check.h"
#include "ir/product.h"
#include "runtime/denormals.h"
#include "tests/support/random.h"
#include "tests/support/run/run_kernels.h"
#include "tests/support/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* rows x columns of sums of `steps`, `batch` times; an operand in bf16, else f32; stored
 * transposed. */
typedef struct PairsCase {
    int64_t batch, rows, columns, steps;
    bool a_bf16, b_bf16, ta, tb, out_bf16;
} PairsCase;

static ValueId matrix(Graph *g, const PairsCase *c, bool bf16, int64_t rows, int64_t columns)
{
    AttrList none = {0};
    Type t = type_make(bf16 ? DTYPE_BF16 : DTYPE_F32, 3, (int64_t[]){c->batch, rows, columns});
    return graph_add_source(g, OP_input, t, &none, NULL, (Loc){0});
}

static Graph *product(Pool *pool, const PairsCase *c)
{
    Graph *g = graph_new(pool, "pairs");
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_pairs, 1);
    if (c->ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (c->tb)
        attrs_int(&attrs, ATTR_tb, 1);
    attrs_string(&attrs, ATTR_dtype, dtype_name(c->out_bf16 ? DTYPE_BF16 : DTYPE_F32));
    ValueId a = matrix(g, c, c->a_bf16, c->ta ? c->steps : c->rows, c->ta ? c->rows : c->steps);
    ValueId b =
        matrix(g, c, c->b_bf16, c->tb ? c->columns : c->steps, c->tb ? c->steps : c->columns);
    graph_add(g, OP_matmul, (ValueId[]){a, b}, 2, &attrs, NULL, (Loc){0});
    return g;
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint16_t rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Element i of an operand, as a product by pairs reads it. */
static float factor(const char *data, bool bf16, int64_t i)
{
    float x = bf16 ? 0 : ((const float *)(const void *)data)[i];
    if (!bf16)
        return fabsf(x) < 0x1p-126f ? copysignf(0, x) : from_bits((uint32_t)rounded(x) << 16);
    return from_bits((uint32_t)((const uint16_t *)(const void *)data)[i] << 16);
}

/* Of one matrix of the batch, as numbers in bf16, row by row of A and column by column of B. */
static float *factors(Pool *pool, const char *data, bool bf16, bool by_lines, int64_t from,
                      int64_t lines, int64_t steps)
{
    float *out = POOL_ARRAY(pool, (size_t)(lines * steps), float);
    for (int64_t l = 0; l < lines; l++)
        for (int64_t s = 0; s < steps; s++)
            out[l * steps + s] =
                factor(data, bf16, from + (by_lines ? l * steps + s : s * lines + l));
    return out;
}

static float chain(const float *a, const float *b, int64_t from, int64_t steps)
{
    float sum = 0;
    for (int64_t s = from; s < from + PRODUCT_PAIRS_STEPS; s += 2)
        sum = s < steps ? fmaf(a[s], b[s], sum) : fmaf(0, 0, sum);
    return sum;
}

static float expected(const float *a, const float *b, int64_t steps)
{
    volatile float sum = 0;
    for (int64_t s = 0; s < steps; s += PRODUCT_PAIRS_STEPS) {
        volatile float even = chain(a, b, s, steps), odd = chain(a, b, s + 1, steps);
        volatile float both = even + odd;
        sum = sum + both;
    }
    return sum;
}

static void compare(const PairsCase *c, const Target *t, const float *a, const float *b,
                    const char *got, int64_t from)
{
    for (int64_t r = 0; r < c->rows; r++)
        for (int64_t k = 0; k < c->columns; k++) {
            float want = expected(a + r * c->steps, b + k * c->steps, c->steps);
            int64_t at = from + r * c->columns + k;
            uint16_t word = rounded(want);
            bool same = c->out_bf16 ? !memcmp(got + 2 * at, &word, sizeof word)
                                    : !memcmp(got + 4 * at, &want, sizeof want);
            CHECK_MSG(same, "%s: %lldx%lldx%lldx%lld%s%s%s%s%s: element %lld, %lld is not %a",
                      t->name, (long long)c->batch, (long long)c->rows, (long long)c->columns,
                      (long long)c->steps, c->a_bf16 ? " a bf16" : "", c->b_bf16 ? " b bf16" : "",
                      c->ta ? " ta" : "", c->tb ? " tb" : "", c->out_bf16 ? " to bf16" : "",
                      (long long)r, (long long)k, (double)want);
            if (!same)
                return;
        }
}

/* One in eight is tiny.  small: all are so small that products and sums are denormal numbers, which
 * are 0, and some are denormal themselves, just below what they would be rounded up to. */
static void fill(Random *random, char *data, bool bf16, bool small, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = (float)random_below(random, 65537) * 0x1p-16f - 0.5f;
        if (random_below(random, 8) == 0)
            x = ldexpf(x, -(int)random_below(random, 80));
        if (small)
            x = random_below(random, 16) ? x * 0x1p-62f : from_bits(0x007fc000);
        if (bf16)
            ((uint16_t *)(void *)data)[i] = rounded(x);
        else
            ((float *)(void *)data)[i] = x;
    }
}

static void check_case(const PairsCase *c, uint64_t seed)
{
    for (const char *const *name = target_names(); *name; name++) {
        const Target *t = target_find(*name);
        if (!t->fma || !target_runs_here(t))
            continue;
        Random random = (Random){seed};
        Pool *pool = pool_new();
        Graph *g = product(pool, c);
        KernelRun *r = run_new(pool, g, t);
        if (r) {
            fill(&random, r->data[0], c->a_bf16, seed % 3 == 0, c->batch * c->rows * c->steps);
            fill(&random, r->data[1], c->b_bf16, seed % 3 == 0, c->batch * c->columns * c->steps);
            run_all(r, 3, true);
            for (int64_t i = 0; i < c->batch; i++) {
                float *a = factors(pool, r->data[0], c->a_bf16, !c->ta, i * c->rows * c->steps,
                                   c->rows, c->steps);
                float *b = factors(pool, r->data[1], c->b_bf16, c->tb, i * c->columns * c->steps,
                                   c->columns, c->steps);
                compare(c, t, a, b, r->data[2], i * c->rows * c->columns);
            }
        }
        run_free(r);
        pool_free(pool);
    }
}

static void check_random(int count)
{
    for (int i = 0; i < count; i++) {
        Random random = (Random){(uint64_t)i + 1};
        PairsCase c = {.batch = random_below(&random, 4) ? 1 : 3,
                       .rows = 1 + (int64_t)random_below(&random, 90),
                       .columns = 1 + (int64_t)random_below(&random, 90),
                       .steps = 1 + (int64_t)random_below(&random, 200),
                       .a_bf16 = random_below(&random, 3) > 0,
                       .ta = random_below(&random, 2) > 0,
                       .tb = random_below(&random, 2) > 0,
                       .out_bf16 = random_below(&random, 2) > 0};
        c.b_bf16 = !c.a_bf16 || random_below(&random, 2) > 0;
        printf("seed %d\n", i + 1);
        check_case(&c, (uint64_t)i + 1);
    }
}

int main(void)
{
    static const PairsCase cases[] = {
        {1, 32, 32, 32, true, true, false, false, false},
        {1, 64, 64, 2112, true, false, false, true, true},  /* blocks of K, sums in scratch */
        {1, 40, 50, 2100, true, false, false, true, false}, /* in the result */
        {1, 70, 33, 1030, true, true, true, false, false},
        {1, 20, 260, 650, true, false, false, true, true},
        {1, 4, 16384, 300, true, false, false, true, true}, /* sums of few rows fill scratch */
        {1, 1100, 64, 64, true, false, false, false, true}, /* several blocks of rows */
        {1, 96, 500, 96, true, true, true, false, false},
    };
    denormals_set(denormals_mode() | DENORMALS_FLUSH);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], 7);
    check_random(sample_number("SCRIMP_SHAPES", 12));
    return test_result();
}
