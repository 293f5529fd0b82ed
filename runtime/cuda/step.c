/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/step.h"

#include "runtime/cuda/device_internal.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/timer.h"

#include <stdio.h>
#include <stdlib.h>

/* A kernel, or what a library does. */
typedef struct Loaded {
    void *module, *function;
    uint32_t threads;
    const CudaLibrary *library; /* NULL: a kernel */
    void *plan;
} Loaded;

struct CudaStep {
    CudaDevice *device;
    ScrimpStep *run;
    Loaded *kernel;
    int n;
    int64_t runs;
    void *graph;            /* executable */
    CudaTimer *timer;       /* of whoever measures, once asked */
    int error, failed_call; /* of the first launch that failed */
    bool library_failed;    /* that launch was a library's, which says why: */
    RtError library_error;
};

static bool load_module(const CudaStep *s, const ScrimpDeviceKernel *kernel, Loaded *out,
                        RtError *err)
{
    const CudaDevice *d = s->device;
    bool ok =
        cuda_check(d, d->cu->module_load(&out->module, kernel->image), "loading a kernel", err);
    if (!ok)
        return rt_error_prefix(err, "%s", kernel->symbol);
    out->threads = (uint32_t)kernel->threads;
    return cuda_check(d, d->cu->module_function(&out->function, out->module, kernel->symbol),
                      kernel->symbol, err);
}

static bool load_plan(const CudaStep *s, const ScrimpDeviceKernel *kernel, Loaded *out,
                      RtError *err)
{
    out->library = cuda_library_named(kernel->library, err);
    if (!out->library)
        return false;
    out->plan = out->library->load(kernel->image, kernel->bytes, err);
    return out->plan || cuda_library_failed(s->device, err);
}

CudaStep *cuda_step_load(CudaDevice *d, ScrimpStep *run, const ScrimpDeviceKernel *kernel, int n,
                         RtError *err)
{
    CudaStep *s = rt_alloc(1, sizeof *s, err);
    if (!s)
        return NULL;
    *s = (CudaStep){.device = d, .run = run, .kernel = rt_alloc(n + 1, sizeof *s->kernel, err)};
    bool ok = s->kernel != NULL;
    for (int k = 0; k < n && ok; k++) {
        Loaded *loaded = &s->kernel[s->n++];
        ok = kernel[k].library ? load_plan(s, &kernel[k], loaded, err)
                               : load_module(s, &kernel[k], loaded, err);
    }
    if (ok)
        return s;
    cuda_step_unload(s);
    return NULL;
}

void cuda_step_unload(CudaStep *s)
{
    if (!s)
        return;
    const CudaDriver *cu = s->device->cu;
    cu->stream_wait(s->device->stream); /* a failed step may have left launches in line */
    if (s->graph)
        cu->graph_executable_destroy(s->graph);
    cuda_timer_close(s->timer);
    for (int k = 0; k < s->n; k++) {
        if (s->kernel[k].module)
            cu->module_unload(s->kernel[k].module);
        if (s->kernel[k].plan)
            s->kernel[k].library->unload(s->kernel[k].plan);
    }
    free(s->kernel);
    free(s);
}

static int launch_kernel(const CudaStep *s, const Loaded *kernel, char *const *buf, int64_t n_tasks)
{
    union {
        char *const *words;
        void *parameter;
    } u = {buf};
    if (n_tasks <= 0 || n_tasks > INT32_MAX)
        return CUDA_INVALID_VALUE; /* a grid has at most 2^31 - 1 blocks */
    return s->device->cu->launch(kernel->function, (uint32_t)n_tasks, 1, 1, kernel->threads, 1, 1,
                                 0, s->device->stream, &u.parameter, NULL);
}

static int run_plan(CudaStep *s, const Loaded *kernel, char *const *buf)
{
    s->library_failed =
        !kernel->library->run(kernel->plan, buf, s->device->stream, &s->library_error);
    return s->library_failed ? CUDA_INVALID_VALUE : CUDA_OK;
}

static int put(CudaStep *s, const Loaded *kernel, char *const *buf, int64_t n_tasks)
{
    return kernel->library ? run_plan(s, kernel, buf) : launch_kernel(s, kernel, buf, n_tasks);
}

/* ScrimpContext.run: puts a kernel, which the step names by number, on the stream. */
static void launch(ScrimpContext *ctx, int32_t call, ScrimpKernel *kernel, char *const *buf,
                   int64_t n_tasks)
{
    CudaStep *s = ctx->threads;
    const RtProfile *p = ctx->profile;
    bool timed = p && call < p->n;
    if (s->error != CUDA_OK)
        return;
    s->failed_call = call;
    s->error = timed ? cuda_timer_begin(s->timer, call) : CUDA_OK;
    if (s->error == CUDA_OK)
        s->error = put(s, &s->kernel[(uintptr_t)kernel], buf, n_tasks);
    if (timed && s->error == CUDA_OK)
        s->error = cuda_timer_end(s->timer, call);
}

/* profile: NULL when not measuring. */
static bool launch_all(CudaStep *s, RtProfile *profile, RtError *err)
{
    ScrimpContext ctx = {.arena = (char *)(uintptr_t)s->device->arena,
                         .run = launch,
                         .threads = s,
                         .profile = profile};
    s->error = CUDA_OK;
    s->library_failed = false;
    s->run(&ctx);
    if (s->error == CUDA_OK)
        return true;
    char what[64];
    snprintf(what, sizeof what, "launching call %d of the step", s->failed_call);
    if (s->library_failed) {
        *err = s->library_error;
        cuda_library_failed(s->device, err);
        return rt_error_prefix(err, "%s", what);
    }
    return cuda_check(s->device, s->error, what, err);
}

bool cuda_step_measure(CudaStep *s, RtProfile *profile, RtError *err)
{
    if (!s->timer)
        s->timer = cuda_timer_open(s->device, profile->n, err);
    return s->timer && launch_all(s, profile, err) && cuda_timer_add(s->timer, profile, err);
}

static bool capture(CudaStep *s, RtError *err)
{
    CudaDevice *d = s->device;
    void *graph = NULL;
    if (!cuda_check(d, d->cu->capture_begin(d->stream, CUDA_CAPTURE_THREAD_LOCAL), "capturing",
                    err))
        return false;
    bool ok = launch_all(s, NULL, err);
    int error = d->cu->capture_end(d->stream, &graph);
    ok = ok && cuda_check(d, error, "capturing the step", err) &&
         cuda_check(d, d->cu->graph_instantiate(&s->graph, graph, 0), "making a graph of the step",
                    err);
    if (graph)
        d->cu->graph_destroy(graph);
    return ok;
}

bool cuda_step_run(CudaStep *s, RtError *err)
{
    CudaDevice *d = s->device;
    if (s->runs++ == 0)
        return launch_all(s, NULL, err);
    if (!s->graph && !capture(s, err))
        return false;
    return cuda_check(d, d->cu->graph_launch(s->graph, d->stream), "launching the step", err);
}
