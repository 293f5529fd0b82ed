/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A region is announced by a generation counter.  Workers spin on it for as long as the next region
 * of the same step takes to come, then yield (another process may want the core), then sleep on a
 * futex (data loading, evaluation, a paused run).  Waking a sleeper costs hundreds of microseconds
 * on a virtual machine, so sleeping starts only after IDLE_SECONDS. */
#include "runtime/threads.h"

#include "runtime/cores.h"
#include "runtime/denormals.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 2000, YIELDS_PER_CLOCK = 32, MAX_THREADS = 1024 };
static const double IDLE_SECONDS = 5e-3;

typedef struct Worker {
    _Alignas(64) atomic_uint done; /* the last generation this worker finished */
    Threads *pool;
    pthread_t thread;
    int index;
    char *scratch;
} Worker;

struct Threads {
    _Alignas(64) atomic_uint generation;
    _Alignas(64) atomic_int sleepers;
    /* The region: written before generation moves, read after. */
    ScrimpKernel *kernel; /* NULL: stop */
    char *const *buf;
    int64_t n_tasks;
    int n, n_started;
    bool keep_denormals;
    char *scratch;
    size_t scratch_mapped, scratch_stride;
    Worker *worker;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

_Static_assert(sizeof(atomic_uint) == 4, "a futex is 32 bits");

static void futex_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake_all(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static bool changed(atomic_uint *word, unsigned from)
{
    return atomic_load_explicit(word, memory_order_acquire) != from;
}

/* Spins, then yields for up to `seconds`; true as soon as *word is no longer `from`. */
static bool wait_awake(atomic_uint *word, unsigned from, double seconds)
{
    for (int i = 0; i < SPINS; i++) {
        if (changed(word, from))
            return true;
        cpu_relax();
    }
    double start = now();
    do {
        for (int i = 0; i < YIELDS_PER_CLOCK; i++) {
            if (changed(word, from))
                return true;
            sched_yield();
        }
    } while (now() - start < seconds);
    return false;
}

/* Waits for a new region.  The sleeper counts itself before it looks again, the announcer moves the
 * generation before it looks for sleepers: with sequential consistency one of them sees the other.
 */
static void wait_region(Threads *pool, unsigned seen)
{
    if (wait_awake(&pool->generation, seen, IDLE_SECONDS))
        return;
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->generation) == seen)
        futex_wait(&pool->generation, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
}

/* t * n / T without overflow. */
static int64_t share(int64_t n, int t, int total)
{
    return n / total * t + n % total * t / total;
}

/* The thread's own mode is back behind it: what it computes beside kernels has denormals. */
static void run_kernel(const Threads *pool, int t, ScrimpKernel *kernel, char *const *buf,
                       int64_t begin, int64_t end)
{
    uint64_t mode = denormals_mode();
    if (!pool->keep_denormals)
        denormals_set(mode | DENORMALS_FLUSH);
    kernel(buf, begin, end, pool->scratch + (size_t)t * pool->scratch_stride);
    denormals_set(mode);
}

static void run_share(const Threads *pool, int t)
{
    int64_t begin = share(pool->n_tasks, t, pool->n);
    int64_t end = share(pool->n_tasks, t + 1, pool->n);
    if (begin < end)
        run_kernel(pool, t, pool->kernel, pool->buf, begin, end);
}

static void *worker_main(void *arg)
{
    Worker *self = arg;
    Threads *pool = self->pool;
    memset(self->scratch, 0, SCRIMP_SCRATCH_BYTES); /* touched by its owner */
    for (unsigned seen = 0;;) {
        wait_region(pool, seen);
        seen = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (!pool->kernel)
            return NULL;
        run_share(pool, self->index);
        atomic_store_explicit(&self->done, seen, memory_order_release);
    }
}

static unsigned announce(Threads *pool)
{
    unsigned next = atomic_fetch_add(&pool->generation, 1) + 1;
    if (atomic_load(&pool->sleepers) > 0)
        futex_wake_all(&pool->generation);
    return next;
}

static void wait_done(Worker *worker, unsigned generation)
{
    while (!wait_awake(&worker->done, generation - 1, 1.0))
        ;
}

void threads_run(Threads *pool, ScrimpKernel *kernel, char *const *buf, int64_t n_tasks)
{
    if (n_tasks <= 0)
        return;
    if (n_tasks == 1 || pool->n == 1) {
        run_kernel(pool, 0, kernel, buf, 0, n_tasks);
        return;
    }
    pool->kernel = kernel;
    pool->buf = buf;
    pool->n_tasks = n_tasks;
    unsigned generation = announce(pool);
    run_share(pool, 0);
    for (int t = 1; t < pool->n; t++)
        wait_done(&pool->worker[t], generation);
}

/* A kernel in the place of another, which it times: regions that nobody times pay nothing. */
typedef struct TimedKernel {
    ScrimpKernel *kernel;
    char *const *buf;
    const Threads *pool;
    const RtProfile *profile;
    double *busy; /* of thread 0; the others have rows of their own */
    RtSpan *span; /* the same, or NULL */
} TimedKernel;

static void run_timed(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    const TimedKernel *t = (const void *)buf;
    size_t thread = (size_t)(scratch - t->pool->scratch) / t->pool->scratch_stride;
    RtSpan span = {.begin = now()};
    t->kernel(t->buf, begin, end, scratch);
    span.end = now();
    t->busy[thread * (size_t)t->profile->n] += span.end - span.begin;
    if (t->span)
        t->span[thread * (size_t)t->profile->n_runs] = span;
}

/* Where the next run is noted, or NULL. */
static RtSpan *next_span(RtProfile *profile, int32_t call)
{
    if (!profile->span || profile->runs >= profile->n_runs)
        return NULL;
    profile->run_call[profile->runs] = call;
    return &profile->span[profile->runs++];
}

static void context_run(ScrimpContext *ctx, int32_t call, ScrimpKernel *kernel, char *const *buf,
                        int64_t n_tasks)
{
    Threads *pool = ctx->threads;
    RtProfile *profile = ctx->profile;
    if (!profile || call < 0 || call >= profile->n) {
        threads_run(pool, kernel, buf, n_tasks);
        return;
    }
    RtSpan *span = next_span(profile, call);
    const TimedKernel timed = {kernel, buf, pool, profile, profile->busy + call, span};
    double start = now(), end;
    if (profile->busy)
        threads_run(pool, run_timed, (char *const *)(const void *)&timed, n_tasks);
    else
        threads_run(pool, kernel, buf, n_tasks);
    end = now();
    profile->seconds[call] += end - start;
    profile->count[call]++;
    if (span)
        span[pool->n * profile->n_runs] = (RtSpan){start, end};
}

ScrimpContext threads_context(Threads *threads, char *arena, RtProfile *profile)
{
    return (ScrimpContext){
        .arena = arena, .run = context_run, .threads = threads, .profile = profile};
}

void threads_keep_denormals(Threads *threads)
{
    threads->keep_denormals = true;
}

int threads_count(const Threads *threads)
{
    return threads->n;
}

/* One mapping for all scratch, with a guard page after each thread's part. */
static bool map_scratch(Threads *pool, RtError *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pool->scratch_stride = SCRIMP_SCRATCH_BYTES + page;
    pool->scratch_mapped = pool->scratch_stride * (size_t)pool->n;
    void *p = mmap(NULL, pool->scratch_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED)
        return rt_error(
            err, "cannot map %zu bytes of scratch memory for %d threads: %s; use fewer threads",
            pool->scratch_mapped, pool->n, strerror(errno));
    pool->scratch = p;
    for (int t = 0; t < pool->n; t++)
        mprotect(pool->scratch + (size_t)(t + 1) * pool->scratch_stride - page, page, PROT_NONE);
    memset(pool->scratch, 0, SCRIMP_SCRATCH_BYTES);
    return true;
}

/* Signals go to the caller's thread: workers start with all of them blocked. */
static bool start_workers(Threads *pool, RtError *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int status = 0;
    for (int t = 1; t < pool->n && status == 0; t++) {
        Worker *w = &pool->worker[t];
        w->pool = pool;
        w->index = t;
        w->scratch = pool->scratch + (size_t)t * pool->scratch_stride;
        status = pthread_create(&w->thread, NULL, worker_main, w);
        pool->n_started += status == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (status != 0)
        return rt_error(err, "cannot start thread %d of %d: %s; use fewer threads",
                        pool->n_started + 2, pool->n, strerror(status));
    return true;
}

static void empty_kernel(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    (void)buf, (void)begin, (void)end, (void)scratch;
}

static Threads *alloc_pool(int n, RtError *err)
{
    Threads *pool = aligned_alloc(64, sizeof *pool);
    Worker *worker = aligned_alloc(64, sizeof *worker * (size_t)n);
    if (!pool || !worker) {
        free(pool);
        free(worker);
        rt_error(err, "out of memory for %d threads", n);
        return NULL;
    }
    memset(pool, 0, sizeof *pool);
    memset(worker, 0, sizeof *worker * (size_t)n);
    pool->n = n;
    pool->worker = worker;
    return pool;
}

Threads *threads_new(int n, RtError *err)
{
    if (n == 0)
        n = cores_allowed() < MAX_THREADS ? cores_allowed() : MAX_THREADS;
    if (n < 0 || n > MAX_THREADS) {
        rt_error(err, "%d threads: give a number from 1 to %d", n, MAX_THREADS);
        return NULL;
    }
    Threads *pool = alloc_pool(n, err);
    if (!pool)
        return NULL;
    if (!map_scratch(pool, err) || !start_workers(pool, err)) {
        threads_free(pool);
        return NULL;
    }
    threads_run(pool, empty_kernel, NULL, n); /* all are up, all scratch is touched */
    return pool;
}

void threads_free(Threads *pool)
{
    if (!pool)
        return;
    pool->kernel = NULL;
    announce(pool);
    for (int t = 1; t <= pool->n_started; t++)
        pthread_join(pool->worker[t].thread, NULL);
    if (pool->scratch)
        munmap(pool->scratch, pool->scratch_mapped);
    free(pool->worker);
    free(pool);
}
