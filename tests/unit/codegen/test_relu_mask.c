/* SPDX-License-Identifier: GPL-3.0-or-later */
/* relu_mask of values that lie at a pitch in another, by every target of this host, against the
 * reference evaluator and against the mask of a dense copy. */
#include "check.h"
#include "tests/support/graph_text.h"
#include "tests/support/run/run_inputs.h"

#include <math.h>
#include <string.h>

/* A part of a concatenation along the channels between two others, a subview of the whole, and a
 * part along the images, which lies densely but not at the start.  Of odd height and width, so that
 * words end inside of rows and the last one may be half full; several tasks where C is large. */
static const char *lines(Pool *pool, int c)
{
    int left = 8, all = left + c + 24;
    return pool_printf(pool,
                       "  %%l = input : f32[2,29,31,%d]\n  %%x = input : f32[2,29,31,%d]\n"
                       "  %%r = input : f32[2,29,31,24]\n"
                       "  %%a = relu %%x : f32[2,29,31,%d]\n"
                       "  %%c = concat %%l, %%a, %%r {axis=3, joined=[1]} : f32[2,29,31,%d]\n"
                       "  %%part = relu_mask %%a : i32[%d]\n"
                       "  %%s = subview %%c {start=[1,0,0,%d], limit=[2,29,31,%d], "
                       "step=[1,1,1,1]} : f32[1,29,31,%d]\n"
                       "  %%sub = relu_mask %%s : i32[%d]\n"
                       "  %%copy = slice %%c {start=[1,0,0,%d], limit=[2,29,31,%d], "
                       "step=[1,1,1,1]} : f32[1,29,31,%d]\n"
                       "  %%dense = relu_mask %%copy : i32[%d]\n"
                       "  %%n = sin %%x : f32[2,29,31,%d]\n"
                       "  %%i = concat %%x, %%n {axis=0, joined=[1]} : f32[4,29,31,%d]\n"
                       "  %%image = relu_mask %%n : i32[%d]\n"
                       "  output part = %%part\n  output sub = %%sub\n  output dense = %%dense\n"
                       "  output image = %%image\n  output c = %%c\n  output i = %%i\n",
                       left, c, c, all, (2 * 29 * 31 * c + 31) / 32, left - 3, left - 3 + c, c,
                       (29 * 31 * c + 31) / 32, left - 3, left - 3 + c, c, (29 * 31 * c + 31) / 32,
                       c, c, (2 * 29 * 31 * c + 31) / 32);
}

/* Signs all over, zeros and what compares with nothing. */
static double element(size_t place, int64_t i)
{
    uint32_t r = (uint32_t)(i + (int64_t)place * 7919) * 2654435761u >> 16;
    if (r % 61 == 0)
        return NAN;
    return r % 7 == 0 ? (r & 64 ? 0.0 : -0.0) : ((double)(r % 1024) - 512) / 4;
}

static void compare(const Graph *g, const KernelRun *r, const EvalState *s, const char *name, int c,
                    const char *target)
{
    ValueId v = graph_output(g, name);
    const double *want = eval_get(s, v);
    const int32_t *got = (const int32_t *)(const void *)r->data[v];
    int64_t n = type_elements(value_type(g, v)), wrong = 0, set = 0;
    for (int64_t i = 0; i < n; i++) {
        wrong += got[i] != (int32_t)want[i];
        set += got[i] != 0;
    }
    CHECK_MSG(wrong == 0, "%s, C=%d, %s: %lld of %lld words are wrong", target, c, name,
              (long long)wrong, (long long)n);
    CHECK_MSG(set > n / 2, "%s, C=%d: bits are set", name, c);
}

static void check_channels(const Target *target, const char *name, int c)
{
    static const char *const masks[] = {"part", "sub", "dense", "image"};
    static const int64_t group[] = {1 << 20, 1, 2};
    Pool *pool = pool_new();
    const Graph *g = graph_of(pool, "forward", lines(pool, c));
    EvalState *s = g ? eval_new(pool, g) : NULL;
    KernelRun *r = g ? run_new(pool, g, target) : NULL;
    if (r) {
        run_fill_inputs(r, s, element);
        eval_run(s, true);
        for (size_t k = 0; k < sizeof group / sizeof *group; k++) {
            for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
                memset(r->data[graph_output(g, masks[m])], 0x55, 64);
            run_all(r, group[k], k == 1);
            for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
                compare(g, r, s, masks[m], c, name);
        }
        run_free(r);
    }
    pool_free(pool);
}

int main(void)
{
    static const int channels[] = {16, 48, 64, 208};
    for (const char *const *name = target_names(); *name; name++) {
        const Target *t = target_find(*name);
        for (size_t k = 0; target_runs_here(t) && k < sizeof channels / sizeof *channels; k++)
            check_channels(t, *name, channels[k]);
    }
    return test_result();
}
