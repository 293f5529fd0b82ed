/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which elements dropout keeps, by every target of this host, against the generator's words: in
 * rows of all lengths, which begin anywhere in the elements that a draw decides about, in an order
 * that goes back, and at a pitch. */
#include "check.h"
#include "ir/eval.h"
#include "tests/support/graph_text.h"
#include "tests/support/run/run_kernels.h"

#include <string.h>

static const int32_t state[4] = {7, -1, 4, 1};

/* Whole; a part of a concatenation along columns; broadcast, so that each row is walked three
 * times; in a row of its own for each element. */
static const char *lines(Pool *pool, int n)
{
    return pool_printf(
        pool,
        "  %%x = input : f32[5,%d]\n  %%l = input : f32[5,3]\n  %%r = input : i32[4]\n"
        "  %%b = input : f32[5,1,%d]\n  %%z = input : f32[5,3,%d]\n"
        "  %%o = input : f32[%d,1]\n  %%w = input : f32[%d,9]\n"
        "  %%whole = dropout %%x, %%r {p=0.3, key=5} : f32[5,%d]\n"
        "  %%part = dropout %%x, %%r {p=0.3, key=6} : f32[5,%d]\n"
        "  %%c = concat %%l, %%part {axis=1, joined=[1]} : f32[5,%d]\n"
        "  %%rows = fused %%b, %%z, %%r {\n"
        "    %%fb = input : f32[5,1,%d]\n    %%fz = input : f32[5,3,%d]\n"
        "    %%fr = input : i32[4]\n"
        "    %%fd = dropout %%fb, %%fr {p=0.3, key=7} : f32[5,1,%d]\n"
        "    %%fy = mul %%fd, %%fz : f32[5,3,%d]\n    output y = %%fy\n  } : f32[5,3,%d]\n"
        "  %%ones = fused %%o, %%w, %%r {\n"
        "    %%gb = input : f32[%d,1]\n    %%gz = input : f32[%d,9]\n    %%gr = input : i32[4]\n"
        "    %%gd = dropout %%gb, %%gr {p=0.3, key=8} : f32[%d,1]\n"
        "    %%gy = mul %%gd, %%gz : f32[%d,9]\n    output y = %%gy\n  } : f32[%d,9]\n"
        "  output whole = %%whole\n  output part = %%c\n  output rows = %%rows\n"
        "  output ones = %%ones\n",
        n, n, n, n, n, n, n, n + 3, n, n, n, n, n, n, n, n, n, n);
}

static void fill(const Graph *g, const KernelRun *r)
{
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (n->op != OP_input)
            continue;
        const Type *t = value_type(g, n->out[0]);
        if (t->dtype == DTYPE_I32) {
            memcpy(r->data[n->out[0]], state, sizeof state);
            continue;
        }
        float *data = (float *)(void *)r->data[n->out[0]];
        for (int64_t i = 0; i < type_elements(t); i++)
            data[i] = 1;
    }
}

static bool keeps(uint64_t key, int64_t i)
{
    uint32_t word[4];
    rng_words(0xffffffff00000007, 0x100000004, key, (uint64_t)i / 4, word);
    return word[i % 4] >= 0.3 * 0x1p32;
}

/* number: of the element of dropout that is element i of the result, -1 for others. */
typedef int64_t Number(int64_t i, int64_t n);

static int64_t same(int64_t i, int64_t n)
{
    (void)n;
    return i;
}

static int64_t of_part(int64_t i, int64_t n)
{
    return i % (n + 3) < 3 ? -1 : i / (n + 3) * n + i % (n + 3) - 3;
}

static int64_t of_rows(int64_t i, int64_t n)
{
    return i / (3 * n) * n + i % n;
}

static int64_t of_ones(int64_t i, int64_t n)
{
    (void)n;
    return i / 9;
}

static void compare(const Graph *g, const KernelRun *r, const char *name, uint64_t key,
                    Number *number, int n)
{
    ValueId v = graph_output(g, name);
    const float *y = (const float *)(const void *)r->data[v];
    int64_t wrong = 0, count = type_elements(value_type(g, v));
    for (int64_t i = 0; i < count; i++) {
        int64_t k = number(i, n);
        float want = k < 0 ? 1 : keeps(key, k) ? (float)(1 / (1 - 0.3)) : 0;
        wrong += y[i] != want;
    }
    CHECK_MSG(wrong == 0, "%s, rows of %d: %lld of %lld are wrong", name, n, (long long)wrong,
              (long long)count);
}

static void check_rows(const Target *target, int n)
{
    static const int64_t group[] = {1 << 20, 1, 2};
    Pool *pool = pool_new();
    const Graph *g = graph_of(pool, "forward", lines(pool, n));
    KernelRun *r = g ? run_new(pool, g, target) : NULL;
    if (r) {
        fill(g, r);
        for (size_t k = 0; k < sizeof group / sizeof *group; k++) {
            run_all(r, group[k], k == 1);
            compare(g, r, "whole", 5, same, n);
            compare(g, r, "part", 6, of_part, n);
            compare(g, r, "rows", 7, of_rows, n);
            compare(g, r, "ones", 8, of_ones, n);
        }
        run_free(r);
    }
    pool_free(pool);
}

int main(void)
{
    static const int columns[] = {3, 29, 64, 20000};
    for (const char *const *name = target_names(); *name; name++) {
        const Target *t = target_find(*name);
        for (size_t k = 0; target_runs_here(t) && k < sizeof columns / sizeof *columns; k++)
            check_rows(t, columns[k]);
    }
    return test_result();
}
