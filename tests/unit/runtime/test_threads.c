/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pool: every task exactly once, the documented partition, own scratch, sleeping and waking,
 * measuring; built with -fsanitize=thread this is also the race test. */
#include "runtime/cores.h"
#include "runtime/threads.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_TASKS = 1000 };

typedef struct Job {
    int64_t calls;
    int32_t runs[MAX_TASKS];
    int64_t begin[MAX_TASKS], end[MAX_TASKS]; /* of the range the task was in */
    char *scratch[MAX_TASKS];
} Job;

static void mark(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    Job *job = (Job *)(void *)buf[0];
    memset(scratch, (int)(begin & 127), SCRIMP_SCRATCH_BYTES);
    for (int64_t i = begin; i < end; i++) {
        job->runs[i]++;
        job->begin[i] = begin;
        job->end[i] = end;
        job->scratch[i] = scratch;
    }
    for (int64_t i = 0; i < SCRIMP_SCRATCH_BYTES; i += 4096)
        if (scratch[i] != (char)(begin & 127)) /* another thread was here */
            job->runs[begin] += 1000;
    if ((uintptr_t)scratch % 64 != 0)
        job->runs[begin] += 1000000;
}

/* Threads' scratch memory does not overlap. */
static void check_scratch(const Job *job, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        int64_t apart = (intptr_t)job->scratch[i] - (intptr_t)job->scratch[i - 1];
        bool same_range = job->begin[i] == job->begin[i - 1];
        CHECK(same_range ? apart == 0 : llabs(apart) >= SCRIMP_SCRATCH_BYTES);
    }
}

static void test_partition(int n_threads)
{
    RtError err = {{0}};
    Threads *threads = threads_new(n_threads, &err);
    CHECK_MSG(threads, "%s", err.message);
    if (!threads)
        return;
    CHECK(threads_count(threads) == n_threads);
    static const int64_t counts[] = {0, 1, 2, 3, 7, 8, 64, 999, 1000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        Job *job = calloc(1, sizeof *job);
        int64_t n = counts[c];
        threads_run(threads, mark, (char *const[]){(char *)job}, n);
        for (int64_t i = 0; i < MAX_TASKS; i++)
            CHECK_MSG(job->runs[i] == (i < n), "%d threads, task %d of %d", n_threads, (int)i,
                      (int)n);
        for (int64_t t = 0; n > 1 && t < n_threads; t++) {
            int64_t begin = t * n / n_threads, end = (t + 1) * n / n_threads;
            if (begin < end)
                CHECK(job->begin[begin] == begin && job->end[begin] == end);
        }
        check_scratch(job, n);
        free(job);
    }
    threads_free(threads);
}

/* Each region reads what the one before wrote, from other threads: a lost wake-up hangs, a lost
 * write shows in the sum. */
static void shift(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    (void)scratch;
    const int64_t *from = (const int64_t *)(const void *)buf[0];
    int64_t *to = (int64_t *)(void *)buf[1];
    for (int64_t i = begin; i < end; i++)
        to[i] = from[(i + 1) % 64] + 1;
}

static void test_chain(int n_threads, int regions, bool sleep)
{
    Threads *threads = threads_new(n_threads, NULL);
    int64_t a[64] = {0}, b[64] = {0};
    for (int r = 0; threads && r < regions; r++) {
        char *buf[2] = {(char *)(r % 2 ? b : a), (char *)(r % 2 ? a : b)};
        threads_run(threads, shift, buf, 64);
        if (sleep) /* longer than workers stay awake */
            nanosleep(&(struct timespec){0, 12000000}, NULL);
    }
    for (int i = 0; i < 64; i++)
        CHECK((regions % 2 ? b : a)[i] == regions);
    threads_free(threads);
}

static void test_profile(void)
{
    Threads *threads = threads_new(2, NULL);
    double seconds[2] = {0};
    int64_t count[2] = {0}, a[64] = {0}, b[64] = {0};
    RtProfile profile = {.n = 2, .seconds = seconds, .count = count};
    ScrimpContext ctx = threads_context(threads, (char *)a, &profile);
    char *buf[2] = {(char *)a, (char *)b};
    CHECK(ctx.arena == (char *)a);
    for (int i = 0; i < 5; i++)
        ctx.run(&ctx, 1, shift, buf, 64);
    ctx.run(&ctx, 2, shift, buf, 64); /* past the arrays: runs, is not measured */
    CHECK(count[0] == 0 && count[1] == 5 && seconds[1] > 0 && seconds[0] <= 0);
    CHECK(b[0] == 1);
    threads_free(threads);
}

/* What each thread did of calls, the first of which runs twice, as in a loop: its share, within the
 * whole run, or nothing; and in all. */
static void test_spans(int n, int64_t n_tasks)
{
    enum { CALLS = 2, RUNS = 3, MOST = 4 };
    static const int order[RUNS + 1] = {0, 1, 0, 1}; /* for the last one there is no room */
    Threads *threads = threads_new(n, NULL);
    double seconds[CALLS] = {0}, busy[MOST * CALLS] = {0}, sum[MOST * CALLS] = {0};
    int64_t count[CALLS] = {0}, a[64] = {0}, b[64] = {0};
    RtSpan span[(MOST + 1) * RUNS] = {{0}};
    int32_t run_call[RUNS] = {0};
    RtProfile profile = {CALLS, seconds, count, busy, span, run_call, RUNS, 0};
    ScrimpContext ctx = threads_context(threads, NULL, &profile);
    char *buf[2] = {(char *)a, (char *)b};
    for (int run = 0; run < RUNS; run++)
        ctx.run(&ctx, order[run], shift, buf, n_tasks);
    for (int run = 0; run < RUNS; run++) {
        const RtSpan *whole = &span[n * RUNS + run];
        CHECK(run_call[run] == order[run] && count[order[run]] == 2 - order[run]);
        CHECK(whole->end > whole->begin && whole->end - whole->begin <= seconds[order[run]]);
        for (int t = 0; t < n; t++) {
            const RtSpan *s = &span[t * RUNS + run];
            bool works = n_tasks == 1 ? t == 0 : n_tasks * (t + 1) / n > n_tasks * t / n;
            CHECK(works == (s->end > 0));
            CHECK(!works || (s->begin >= whole->begin && s->end >= s->begin));
            CHECK(s->end <= whole->end && (!run || !works || s->begin >= s[-1].end));
            sum[t * CALLS + order[run]] += s->end - s->begin;
        }
    }
    CHECK(memcmp(sum, busy, sizeof sum) == 0);
    for (int i = 0; i < n_tasks; i++)
        CHECK(b[i] == 1);
    ctx.run(&ctx, order[RUNS], shift, buf, n_tasks);
    CHECK(profile.runs == RUNS && count[1] == 2);
    threads_free(threads);
}

/* The smallest normal number halved and doubled, and the least denormal one as an operand. */
static void halve(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    (void)scratch;
    volatile float *x = (volatile float *)(void *)buf[0];
    for (int64_t i = begin; i < end; i++) {
        x[2 * i] = x[2 * i] * 0.5f;
        x[2 * i] = x[2 * i] * 2.0f;
        x[2 * i + 1] = x[2 * i + 1] * 0x1p100f;
    }
}

static void test_denormals(int n_threads, bool keep)
{
    Threads *threads = threads_new(n_threads, NULL);
    float x[2 * MAX_TASKS];
    volatile float mine = 0x1p-126f;
    for (int64_t i = 0; i < MAX_TASKS; i++)
        x[2 * i] = 0x1p-126f, x[2 * i + 1] = 0x1p-149f;
    if (keep)
        threads_keep_denormals(threads);
    threads_run(threads, halve, (char *const[]){(char *)x}, MAX_TASKS / 2);
    threads_run(threads, halve, (char *const[]){(char *)(x + MAX_TASKS)}, 1);
    for (int64_t i = 0; i <= MAX_TASKS / 2; i++)
        CHECK(x[2 * i] == (keep ? 0x1p-126f : 0) && x[2 * i + 1] == (keep ? 0x1p-49f : 0));
    mine = mine * 0.5f;
    CHECK(mine == 0x1p-127f);
    threads_free(threads);
}

static void test_errors(void)
{
    RtError err = {{0}};
    CHECK(!threads_new(-1, &err) && strstr(err.message, "1 to 1024"));
    CHECK(!threads_new(5000, &err));
    CHECK(cores_allowed() >= 1);
    threads_free(NULL);
}

int main(void)
{
    for (int n = 1; n <= 5; n++)
        test_partition(n);
    test_chain(2, 20000, false);
    test_chain(4, 2000, false);
    test_chain(3, 20, true);
    for (int i = 0; i < 50; i++) /* start and stop */
        test_chain(1 + i % 4, i % 3, false);
    test_profile();
    for (int n = 1; n <= 4; n++)
        for (int64_t tasks = 1; tasks <= 64; tasks *= 4)
            test_spans(n, tasks == 4 ? 3 : tasks);
    for (int n = 1; n <= 3; n++)
        test_denormals(n, false), test_denormals(n, true);
    test_errors();
    return test_result();
}
