/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/stream.h"

#include "runtime/arena.h"

#include <time.h>

/* Larger than caches, and parts of a page or more for any number of threads. */
enum { FLOATS = 16 << 20, TASKS = 4096, RUNS = 5 };
static const int64_t ARRAY_BYTES = FLOATS * (int64_t)sizeof(float);

static void triad(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    (void)scratch;
    float *restrict a = (float *)(void *)buf[0];
    const float *restrict b = (const float *)(const void *)buf[1], *restrict c =
                                                                       (const float *)(const void *)
                                                                           buf[2];
    for (int64_t i = begin * (FLOATS / TASKS); i < end * (FLOATS / TASKS); i++)
        a[i] = b[i] + 3.0F * c[i];
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double stream_gbytes_per_second(Threads *threads)
{
    Arena memory;
    double best = 0;
    if (!arena_map(&memory, 3 * ARRAY_BYTES, NULL))
        return 0;
    char *buf[3] = {memory.base, memory.base + ARRAY_BYTES, memory.base + 2 * ARRAY_BYTES};
    for (int i = 0; i < RUNS; i++) {
        double start = now();
        threads_run(threads, triad, buf, TASKS);
        double rate = 3 * (double)ARRAY_BYTES / (now() - start) / 1e9;
        best = rate > best ? rate : best;
    }
    arena_unmap(&memory);
    return best;
}
