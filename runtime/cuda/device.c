/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/device.h"

#include "runtime/cuda/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct CudaDevice {
    const CudaDriver *cu;
    int ordinal;
    void *context, *stream;
    CudaAddress arena;
    int64_t bytes;
    char name[128], arch[16];
};

struct CudaStep {
    CudaDevice *device;
    ScrimpStep *run;
    void **module, **function;
    uint32_t *threads; /* by kernel */
    int n;
    int64_t runs;
    void *graph;            /* executable */
    int error, failed_call; /* of the first launch that failed */
};

enum { POISON = 0x7fc5ca1a };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool failed(const CudaDriver *cu, int error, const char *what, RtError *err)
{
    const char *text = NULL;
    if (cu->error_string(error, &text) != CUDA_OK || !text)
        text = "unknown error";
    return rt_error(err, "CUDA: %s: %s (error %d)", what, text, error);
}

static bool check(const CudaDevice *d, int error, const char *what, RtError *err)
{
    return error == CUDA_OK || failed(d->cu, error, what, err);
}

/* --- the device --- */

static bool describe(CudaDevice *d, RtError *err)
{
    int major, minor;
    if (!check(d, d->cu->device_name(d->name, sizeof d->name, d->ordinal), "its name", err) ||
        !check(d, d->cu->device_attribute(&major, CUDA_ATTRIBUTE_MAJOR, d->ordinal),
               "compute capability", err) ||
        !check(d, d->cu->device_attribute(&minor, CUDA_ATTRIBUTE_MINOR, d->ordinal),
               "compute capability", err))
        return false;
    snprintf(d->arch, sizeof d->arch, "sm_%d%d", major % 100, minor % 10);
    return true;
}

/* Device 0, without a context on it. */
static bool find_device(CudaDevice *d, RtError *err)
{
    int n = 0;
    if (!check(d, d->cu->init(0), "the driver does not start", err) ||
        !check(d, d->cu->device_count(&n), "counting devices", err))
        return false;
    if (n == 0)
        return rt_error(err, "the CUDA driver knows no device (CUDA_VISIBLE_DEVICES may hide it)");
    return check(d, d->cu->device(&d->ordinal, 0), "device 0", err) && describe(d, err);
}

static bool open_device(CudaDevice *d, RtError *err)
{
    return find_device(d, err) &&
           check(d, d->cu->context_retain(&d->context, d->ordinal), "context", err) &&
           check(d, d->cu->context_set(d->context), "context", err) &&
           check(d, d->cu->stream_create(&d->stream, CUDA_STREAM_NON_BLOCKING), "stream", err);
}

bool cuda_arch_here(char *arch, size_t size, RtError *err)
{
    CudaDevice d = {.cu = cuda_driver(err)};
    bool ok = d.cu && find_device(&d, err);
    snprintf(arch, size, "%s", d.arch);
    return ok;
}

CudaDevice *cuda_device_open(RtError *err)
{
    const CudaDriver *cu = cuda_driver(err);
    CudaDevice *d = cu ? rt_alloc(1, sizeof *d, err) : NULL;
    if (!d)
        return NULL;
    d->cu = cu;
    if (open_device(d, err))
        return d;
    cuda_device_close(d);
    return NULL;
}

void cuda_device_close(CudaDevice *d)
{
    if (!d)
        return;
    if (d->stream)
        d->cu->stream_wait(d->stream);
    if (d->arena)
        d->cu->release(d->arena);
    if (d->stream)
        d->cu->stream_destroy(d->stream);
    if (d->context)
        d->cu->context_release(d->ordinal);
    free(d);
}

/* The first release of NVIDIA's driver with a version of CUDA. */
static int driver_release(int version)
{
    return version >= 13000 ? 580 : 525;
}

bool cuda_device_takes(const CudaDevice *d, int version, RtError *err)
{
    int here = 0;
    if (!check(d, d->cu->version(&here), "version of the driver", err))
        return false;
    if (here >= version)
        return true;
    return rt_error(err,
                    "the driver is for CUDA %d.%d, the kernels were compiled by NVRTC %d: install "
                    "NVIDIA's driver %d or newer, or NVRTC of CUDA %d (SCRIMP_CUDA_PATH names its "
                    "folder)",
                    here / 1000, here % 1000 / 10, version / 1000, driver_release(version),
                    here / 1000);
}

const char *cuda_device_name(const CudaDevice *d)
{
    return d->name;
}

const char *cuda_device_arch(const CudaDevice *d)
{
    return d->arch;
}

/* --- memory --- */

static bool no_memory(const CudaDevice *d, int64_t bytes, int64_t *left, RtError *err)
{
    size_t free_bytes = 0, total = 0;
    d->cu->memory_info(&free_bytes, &total);
    *left = (int64_t)free_bytes;
    return rt_error(err, "%s has %zu of its %zu bytes left; the arena needs %lld", d->name,
                    free_bytes, total, (long long)bytes);
}

bool cuda_arena_map(CudaDevice *d, int64_t bytes, int64_t *left, RtError *err)
{
    *left = -1;
    int error = d->cu->allocate(&d->arena, (size_t)bytes);
    if (error == CUDA_OUT_OF_MEMORY)
        return no_memory(d, bytes, left, err);
    if (!check(d, error, "allocating the arena", err))
        return false;
    d->bytes = bytes;
    return check(d, d->cu->fill_words(d->arena, POISON, (size_t)bytes / 4, d->stream),
                 "filling the arena", err) &&
           cuda_wait(d, err);
}

static bool inside(const CudaDevice *d, int64_t offset, int64_t bytes, RtError *err)
{
    if (offset >= 0 && bytes >= 0 && offset <= d->bytes - bytes)
        return true;
    return rt_error(err, "bytes %lld..%lld are not in the arena of %lld", (long long)offset,
                    (long long)(offset + bytes), (long long)d->bytes);
}

bool cuda_write(CudaDevice *d, int64_t offset, const void *from, int64_t bytes, RtError *err)
{
    CudaAddress to = d->arena + (CudaAddress)offset;
    return inside(d, offset, bytes, err) &&
           check(d, d->cu->to_device(to, from, (size_t)bytes, d->stream), "copying to the device",
                 err);
}

bool cuda_read(CudaDevice *d, int64_t offset, void *to, int64_t bytes, RtError *err)
{
    CudaAddress from = d->arena + (CudaAddress)offset;
    return inside(d, offset, bytes, err) &&
           check(d, d->cu->from_device(to, from, (size_t)bytes, d->stream),
                 "copying from the device", err);
}

bool cuda_wait(CudaDevice *d, RtError *err)
{
    return check(d, d->cu->stream_wait(d->stream), "running a step", err);
}

/* --- steps --- */

static bool load_kernel(CudaStep *s, const ScrimpDeviceKernel *kernel, RtError *err)
{
    const CudaDevice *d = s->device;
    bool ok =
        check(d, d->cu->module_load(&s->module[s->n], kernel->image), "loading a kernel", err);
    if (!ok)
        return rt_error_prefix(err, "%s", kernel->symbol);
    s->threads[s->n++] = (uint32_t)kernel->threads;
    return check(
        d, d->cu->module_function(&s->function[s->n - 1], s->module[s->n - 1], kernel->symbol),
        kernel->symbol, err);
}

CudaStep *cuda_step_load(CudaDevice *d, ScrimpStep *run, const ScrimpDeviceKernel *kernel, int n,
                         RtError *err)
{
    CudaStep *s = rt_alloc(1, sizeof *s, err);
    if (!s)
        return NULL;
    *s = (CudaStep){.device = d, .run = run};
    s->module = rt_alloc(n + 1, sizeof *s->module, err);
    s->function = rt_alloc(n + 1, sizeof *s->function, err);
    s->threads = rt_alloc(n + 1, sizeof *s->threads, err);
    bool ok = s->module && s->function && s->threads;
    for (int k = 0; k < n && ok; k++)
        ok = load_kernel(s, &kernel[k], err);
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
    for (int k = 0; k < s->n; k++)
        cu->module_unload(s->module[k]);
    free(s->module);
    free(s->function);
    free(s->threads);
    free(s);
}

/* ScrimpContext.run: puts a kernel, which the step names by number, on the stream. */
static void launch(ScrimpContext *ctx, int32_t call, ScrimpKernel *kernel, char *const *buf,
                   int64_t n_tasks)
{
    CudaStep *s = ctx->threads;
    RtProfile *p = ctx->profile;
    size_t k = (size_t)(uintptr_t)kernel;
    union {
        char *const *words;
        void *parameter;
    } u = {buf};
    if (s->error != CUDA_OK)
        return;
    double start = p ? now() : 0;
    s->failed_call = call;
    if (n_tasks <= 0 || n_tasks > INT32_MAX) {
        s->error = CUDA_INVALID_VALUE; /* a grid has at most 2^31 - 1 blocks */
        return;
    }
    s->error = s->device->cu->launch(s->function[k], (uint32_t)n_tasks, 1, 1, s->threads[k], 1, 1,
                                     0, s->device->stream, &u.parameter, NULL);
    if (!p || s->error != CUDA_OK || call >= p->n)
        return;
    s->error = s->device->cu->stream_wait(s->device->stream);
    p->seconds[call] += now() - start;
    p->count[call]++;
}

/* profile: NULL when not measuring. */
static bool launch_all(CudaStep *s, RtProfile *profile, RtError *err)
{
    ScrimpContext ctx = {.arena = (char *)(uintptr_t)s->device->arena,
                         .run = launch,
                         .threads = s,
                         .profile = profile};
    s->error = CUDA_OK;
    s->run(&ctx);
    if (s->error == CUDA_OK)
        return true;
    char what[64];
    snprintf(what, sizeof what, "launching call %d of the step", s->failed_call);
    return failed(s->device->cu, s->error, what, err);
}

bool cuda_step_measure(CudaStep *s, RtProfile *profile, RtError *err)
{
    return launch_all(s, profile, err);
}

static bool capture(CudaStep *s, RtError *err)
{
    const CudaDevice *d = s->device;
    void *graph = NULL;
    if (!check(d, d->cu->capture_begin(d->stream, CUDA_CAPTURE_THREAD_LOCAL), "capturing", err))
        return false;
    bool ok = launch_all(s, NULL, err);
    int error = d->cu->capture_end(d->stream, &graph);
    ok = ok && check(d, error, "capturing the step", err) &&
         check(d, d->cu->graph_instantiate(&s->graph, graph, 0), "making a graph of the step", err);
    if (graph)
        d->cu->graph_destroy(graph);
    return ok;
}

bool cuda_step_run(CudaStep *s, RtError *err)
{
    const CudaDevice *d = s->device;
    if (s->runs++ == 0)
        return launch_all(s, NULL, err);
    if (!s->graph && !capture(s, err))
        return false;
    return check(d, d->cu->graph_launch(s->graph, d->stream), "launching the step", err);
}
