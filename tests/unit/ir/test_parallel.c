/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tasks on threads: each runs once, on any number of threads; out of memory in any of them is out
 * of memory for the caller, and nothing leaks (AddressSanitizer). */
#include "check.h"

#include "ir/support/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TASKS = 100 };

typedef struct Work {
    int times[TASKS];
    int *answer[TASKS];
    atomic_int meeting; /* tasks that are waiting for each other */
    bool nested;
} Work;

static void count(void *user, int k, Pool *pool)
{
    int *sum = user;
    int *mine = POOL_NEW(pool, int);
    *mine = k;
    sum[k] = *mine;
}

static void work(void *user, int k, Pool *pool)
{
    Work *w = user;
    w->times[k]++;
    for (int i = 0; i < 50; i++) {
        Pool *scratch = pool_new_child(pool);
        pool_alloc(scratch, 100 + (size_t)i);
        pool_free(scratch);
    }
    w->answer[k] = POOL_NEW(pool, int);
    *w->answer[k] = k * k;
    if (w->nested && k % 10 == 0) {
        int part[5];
        parallel_run(pool, 2, 5, count, part);
        CHECK(part[0] == 0 && part[4] == 4);
    }
}

static void test_every_task(void)
{
    static const int threads[] = {0, 1, 2, 7, 1000};
    for (int i = 0; i < 5; i++) {
        Pool *pool = pool_new();
        Work w = {.nested = i % 2 == 0};
        parallel_run(pool, threads[i], TASKS, work, &w);
        for (int k = 0; k < TASKS; k++)
            CHECK(w.times[k] == 1 && *w.answer[k] == k * k);
        parallel_run(pool, threads[i], 0, work, &w);
        pool_free(pool);
    }
    CHECK(parallel_cores() >= 1);
    parallel_set_cores(3);
    CHECK(parallel_cores() == 3);
    parallel_set_cores(0);
}

/* Each waits until both are there. */
static void meet(void *user, int k, Pool *pool)
{
    Work *w = user;
    (void)k;
    (void)pool;
    atomic_fetch_add(&w->meeting, 1);
    while (atomic_load(&w->meeting) < 2)
        ;
}

static void test_at_once(void)
{
    Pool *pool = pool_new();
    Work w = {0};
    parallel_run(pool, 2, 2, meet, &w);
    CHECK(atomic_load(&w.meeting) == 2);
    pool_free(pool);
}

static bool run_failing(int threads, uint64_t fail_at)
{
    jmp_buf oom;
    Pool *volatile pool = pool_new();
    volatile bool done = false;
    if (setjmp(oom) == 0) {
        Work w = {.nested = true};
        pool_on_oom(pool, &oom);
        pool_fail_at(fail_at);
        parallel_run(pool, threads, TASKS, work, &w);
        done = true;
    }
    pool_fail_at(0);
    pool_free(pool);
    return done;
}

static void test_no_memory(void)
{
    for (int threads = 1; threads <= 3; threads++) {
        uint64_t k = 1;
        while (k < 1000000 && !run_failing(threads, k))
            k += 97;
        CHECK_MSG(k > 10000 && k < 1000000, "%llu allocations", (unsigned long long)k);
    }
}

int main(void)
{
    test_every_task();
    test_at_once();
    test_no_memory();
    return test_result();
}
