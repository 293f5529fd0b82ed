/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Taking a step back: every element that is not finite is found wherever it is, and every byte
 * comes back, for any number of threads. */
#include "runtime/undo.h"

#include "check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_f32(void)
{
    enum { N = 10000 };
    static float x[N];
    static const float fine[] = {0, -0.0f, FLT_MAX, -FLT_MAX, FLT_MIN, FLT_TRUE_MIN, 1};
    for (int i = 0; i < N; i++)
        x[i] = fine[i % 7];
    CHECK(rt_first_not_finite(RT_F32, x, N) == -1 && rt_first_not_finite(RT_F32, x, 0) == -1);
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    static const int at[] = {0, 1, 4095, 4096, 4097, 8191, 9999};
    for (int b = 0; b < 4; b++)
        for (int k = 0; k < 7; k++) {
            float keep = x[at[k]];
            x[at[k]] = bad[b];
            CHECK(rt_first_not_finite(RT_F32, x, N) == at[k]);
            CHECK(rt_first_not_finite(RT_F32, x, at[k]) == -1); /* not beyond the end */
            x[at[k]] = keep;
        }
}

static void test_other_types(void)
{
    const uint16_t f16[] = {0x7BFF, 0x0001, 0xFC00}, bf16[] = {0x7F7F, 0x7C00, 0x7FC0};
    const double f64[] = {DBL_MAX, -DBL_TRUE_MIN, (double)INFINITY};
    const int32_t i32[] = {0x7F800000, -1, 0x7FC00000};
    CHECK(rt_first_not_finite(RT_F16, f16, 3) == 2 && rt_first_not_finite(RT_F16, f16, 2) == -1);
    CHECK(rt_first_not_finite(RT_BF16, bf16, 3) == 2 &&
          rt_first_not_finite(RT_BF16, bf16, 2) == -1);
    CHECK(rt_first_not_finite(RT_F64, f64, 3) == 2 && rt_first_not_finite(RT_F64, f64, 2) == -1);
    CHECK(rt_first_not_finite(RT_I32, i32, 3) == -1); /* no floats */
}

enum { LARGE = 700001, SMALL = 5 }; /* elements: more than two pieces, and one that is not full */

typedef struct State {
    float *large, small[SMALL];
    int32_t count[SMALL];
} State;

static void fill(State *s, int seed)
{
    for (int i = 0; i < LARGE; i++)
        s->large[i] = (float)(i * 7 + seed);
    for (int i = 0; i < SMALL; i++) {
        s->small[i] = (float)(seed - i);
        s->count[i] = 0x7F800000 + seed + i; /* NaN, were it a float */
    }
}

static bool is(const State *s, int seed)
{
    for (int i = 0; i < LARGE; i++)
        if (s->large[i] != (float)(i * 7 + seed))
            return false;
    for (int i = 0; i < SMALL; i++)
        if (s->small[i] != (float)(seed - i) || s->count[i] != 0x7F800000 + seed + i)
            return false;
    return true;
}

static void test_back(int n_threads)
{
    RtError err;
    State s = {.large = malloc(LARGE * sizeof(float))};
    CheckpointTensor tensor[] = {{"small", RT_F32, 1, {SMALL}, s.small, CHECKPOINT_MODEL},
                                 {"large", RT_F32, 2, {1, LARGE}, s.large, CHECKPOINT_OPTIMIZER},
                                 {"none", RT_F32, 1, {0}, s.small, CHECKPOINT_MODEL},
                                 {"count", RT_I32, 1, {SMALL}, s.count, CHECKPOINT_OPTIMIZER}};
    Threads *threads = threads_new(n_threads, &err);
    fill(&s, 1);
    Undo *u = undo_open(tensor, 4, threads, &err);
    CHECK(u && undo_bytes(u) >= (int64_t)((LARGE + 2 * SMALL) * sizeof(float)));
    for (int seed = 2; u && seed < 5; seed++) {
        fill(&s, 100);
        CHECK(undo_all_finite(u));
        undo_back(u);
        CHECK(is(&s, seed - 1));
        static const int at[] = {0, 262143, 262144, 262145, LARGE - 1};
        for (int k = 0; k < 5; k++) {
            s.large[at[k]] = NAN;
            CHECK(!undo_all_finite(u));
            undo_back(u);
            CHECK(is(&s, seed - 1));
        }
        s.small[SMALL - 1] = -INFINITY;
        CHECK(!undo_all_finite(u));
        fill(&s, seed);
        CHECK(undo_all_finite(u));
        undo_keep(u);
    }
    undo_close(u);
    threads_free(threads);
    free(s.large);
}

static void test_no_memory(void)
{
    RtError err;
    float x = 1;
    Threads *threads = threads_new(1, &err);
    CheckpointTensor huge = {"huge", RT_F32, 2, {1 << 20, 1 << 18}, &x, CHECKPOINT_MODEL};
    CHECK(!undo_open(&huge, 1, threads, &err) && err.message[0]);
    CheckpointTensor one = {"one", RT_F32, 0, {0}, &x, CHECKPOINT_MODEL};
    for (uint64_t k = 1; k <= 2; k++) {
        rt_alloc_fail_at(k);
        CHECK(!undo_open(&one, 1, threads, &err));
        rt_alloc_fail_at(0);
    }
    threads_free(threads);
}

int main(void)
{
    test_f32();
    test_other_types();
    for (int n = 1; n <= 4; n++)
        test_back(n);
    test_no_memory();
    return test_result();
}
