/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/flops_peak.h"

#include "codegen/build/job.h"
#include "codegen/build/scratch.h"
#include "codegen/build/workers.h"
#include "codegen/jit/jit.h"
#include "runtime/abi.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

enum {
    CHAINS = 12, /* latency 4 or 5 at two per cycle, in 16 registers with two operands */
    STEPS = 100000,
    RUNS = 20
};

/* acc = acc * x + y, CHAINS times per step; x and y come from memory so that nothing is folded. */
static void emit(Jit *j)
{
    const JitTypes *t = jit_types(j);
    JitValue p = jit_buf(j, 0, t->p_f32);
    JitVar acc[CHAINS];
    JitValue x = jit_vload(j, p, jit_i64(j, 0)), y = jit_vload(j, p, jit_i64(j, jit_lanes(j)));
    for (int i = 0; i < CHAINS; i++) {
        acc[i] = jit_var(j, t->vf, "acc");
        jit_set(j, acc[i], jit_vf(j, i));
    }
    JitLoop l = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "step");
    for (int i = 0; i < CHAINS; i++)
        jit_set(j, acc[i], jit_add(j, jit_mul(j, jit_get(acc[i]), x), y));
    jit_end_for(j, &l);
    for (int i = 0; i < CHAINS; i++)
        jit_vstore(j, p, jit_i64(j, (2 + i) * jit_lanes(j)), jit_get(acc[i]));
}

typedef struct PeakBuild {
    const Target *target;
    const char *path;
} PeakBuild;

static bool build(void *user, int index, char *message, size_t size)
{
    (void)index;
    const PeakBuild *b = user;
    Jit *j = jit_new(b->target, true);
    jit_kernel_begin(j, "peak");
    emit(j);
    jit_kernel_end(j);
    const char *error = NULL;
    bool ok = jit_write_shared(j, b->path, NULL, 0, &error);
    return job_end(j, ok, error, message, size);
}

static const char *job_name(void *user, int index)
{
    (void)user;
    (void)index;
    return "the peak measurement";
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double measure(const Target *target, ScrimpKernel *kernel)
{
    _Alignas(64) float data[(2 + CHAINS) * 16] = {0};
    char *buf[] = {(char *)data};
    double best = 1e30;
    for (int run = 0; run < RUNS; run++) {
        double start = seconds();
        kernel(buf, 0, STEPS, NULL);
        double took = seconds() - start;
        best = took < best ? took : best;
    }
    return 2.0 * CHAINS * STEPS * target->vector_floats / best * 1e-9;
}

static double load_and_measure(Pool *pool, const PeakBuild *b, const char **error)
{
    ScrimpKernel *kernel = NULL;
    double gflops = 0;
    void *handle = dlopen(b->path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "peak") : NULL;
    memcpy(&kernel, &symbol, sizeof symbol);
    if (kernel)
        gflops = measure(b->target, kernel);
    else
        *error = pool_printf(pool, "cannot load %s", b->path);
    if (handle)
        dlclose(handle);
    return gflops;
}

double codegen_measure_peak_gflops(Pool *pool, const Target *target, const char **error)
{
    Scratch scratch;
    if (!scratch_open(pool, &scratch, error))
        return 0;
    PeakBuild b = {target, scratch_path(pool, &scratch, "peak", "so")};
    Workers w = {.n_jobs = 1,
                 .n_children = 1,
                 .job = build,
                 .name = job_name,
                 .user = &b,
                 .tmpdir = scratch.dir};
    double gflops = workers_run(pool, &w, error) ? load_and_measure(pool, &b, error) : 0;
    scratch_close(&scratch);
    return gflops;
}
