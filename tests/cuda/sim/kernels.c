/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Modules and kernels: the image is a shared object (nvrtc.c), a block's threads are fibers. */
#include "driver_internal.h"
#include "fibers.h"

#define SIM_DRIVER
#include "kernel.h"
#include "runtime/denormals.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static SimThread current;
static const SimIndex zero;
static const Function *running;
static const void *running_parameter;

static void run_thread(void *user, int i)
{
    (void)user;
    current.thread.x = (unsigned)i;
    running->run(running_parameter);
}

/* After a barrier another thread has run. */
static void barrier(void)
{
    SimIndex me = current.thread;
    fibers_barrier();
    current.thread = me;
}

static unsigned random_state;

static unsigned draw(unsigned n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (unsigned)(((unsigned long long)(random_state >> 8) * n) >> 24);
}

/* A permutation of 0..n-1. */
static void make_order(int n, int *order)
{
    const char *how = getenv("SCRIMP_SIM_ORDER");
    int reverse = how && strcmp(how, "reverse") == 0, random = how && *how >= '0' && *how <= '9';
    for (int i = 0; i < n; i++)
        order[i] = reverse ? n - 1 - i : i;
    for (int i = n - 1; random && i > 0; i--) {
        int k = (int)draw((unsigned)i + 1), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

static int run_blocks(const Function *f, unsigned blocks, unsigned threads, const void *parameter)
{
    static int order[FIBERS_MOST];
    const char *how = getenv("SCRIMP_SIM_ORDER");
    int reverse = how && strcmp(how, "forward") != 0;
    random_state = how ? (unsigned)strtoul(how, NULL, 10) : 0;
    current.grid_size = (SimIndex){blocks, 1, 1};
    current.block_size = (SimIndex){threads, 1, 1};
    current.block = current.thread = zero;
    running = f;
    running_parameter = parameter;
    for (unsigned b = 0; b < blocks; b++) {
        current.block.x = reverse ? blocks - 1 - b : b;
        fill_nan(f->shared, f->shared_end);
        make_order((int)threads, order);
        if (!fibers_run((int)threads, order, run_thread, NULL)) {
            fprintf(stderr, "simulator: %s: a thread ended while others wait at a barrier\n",
                    f->name);
            return LAUNCH_FAILED;
        }
    }
    return CUDA_OK;
}

/* Denormal numbers are zeros on a device, too (--ftz=true). */
int run_kernel(const Function *f, unsigned blocks, unsigned threads, const void *parameter)
{
    uint64_t mode = denormals_mode();
    denormals_set(mode | DENORMALS_FLUSH);
    int result = run_blocks(f, blocks, threads, parameter);
    denormals_set(mode);
    return result;
}

EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, void *stream,
                          void **parameters, void **extra)
{
    (void)extra;
    static unsigned long launches;
    const char *fails = getenv("SCRIMP_SIM_FAIL");
    if (fails && ++launches >= strtoul(fails, NULL, 10))
        return LAUNCH_FAILED;
    if (is_full(__func__))
        return CUDA_OUT_OF_MEMORY;
    const Function *f = function;
    int ok = gx > 0 && gx <= 0x7fffffffu && gy == 1 && gz == 1 && by == 1 && bz == 1 && bx > 0 &&
             (int)bx <= f->threads && bx <= FIBERS_MOST && shared == 0;
    if (!ok) {
        fprintf(stderr, "simulator: %s cannot be launched on %u blocks of %u threads\n", f->name,
                gx, bx);
        return BAD_VALUE;
    }
    Work w = {.kind = LAUNCH, .function = f, .blocks = gx, .threads = bx};
    memcpy(w.parameter, parameters[0], f->bytes);
    return put(stream, &w);
}

/* --- modules --- */

typedef struct Module {
    void *handle;
    int file; /* open as long as the handle: dlopen takes equal paths for the same object */
    size_t bytes;
    Function function;
} Module;

static size_t image_bytes(const void *image)
{
    Elf64_Ehdr e;
    memcpy(&e, image, sizeof e);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_machine != EM_X86_64)
        return 0;
    return e.e_shoff + (size_t)e.e_shnum * e.e_shentsize;
}

/* Images are linked with no library (nvrtc.c): where the processor has no fused multiply-add,
 * they call that of libm. */
static void share_libm(void)
{
    static void *libm;
    if (!libm)
        libm = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
}

EXPORT int cuModuleLoadData(void **module, const void *image)
{
    size_t n = image_bytes(image);
    char path[64];
    int why = refused();
    if (why)
        return why;
    if (is_full(__func__) || !take_room(n))
        return CUDA_OUT_OF_MEMORY;
    int file = n ? memfd_create("kernel", 0) : -1;
    Module *m = calloc(1, sizeof *m);
    if (!m || file < 0 || write(file, image, n) != (ssize_t)n)
        return BAD_IMAGE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    share_libm();
    m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    m->file = file;
    m->bytes = n;
    if (!m->handle) {
        fprintf(stderr, "simulator: %s\n", dlerror());
        return BAD_IMAGE;
    }
    *module = m;
    return CUDA_OK;
}

EXPORT int cuModuleUnload(void *module)
{
    Module *m = module;
    give_room(m->bytes);
    dlclose(m->handle);
    close(m->file);
    free(m);
    return CUDA_OK;
}

static void *symbol(const Module *m, const char *name, const char *suffix)
{
    char text[160];
    snprintf(text, sizeof text, "%s%s", name, suffix);
    return dlsym(m->handle, text);
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    Module *m = module;
    Function *f = &m->function;
    void *run = symbol(m, name, ""), *bytes = symbol(m, name, "_bytes");
    void *threads = symbol(m, name, "_threads"), *state = dlsym(m->handle, "sim_thread");
    void *shared = dlsym(m->handle, "sim_shared_begin");
    void *shared_end = dlsym(m->handle, "sim_shared_end");
    if (!run || !bytes || !threads || !state || !shared || !shared_end)
        return NOT_FOUND;
    memcpy(&f->run, &run, sizeof run);
    f->bytes = *(unsigned long *)bytes;
    f->threads = *(int *)threads;
    f->shared = *(char **)shared;
    f->shared_end = *(char **)shared_end;
    snprintf(f->name, sizeof f->name, "%s", name);
    current.barrier = barrier;
    *(SimThread **)state = &current;
    *function = f;
    return f->bytes <= PARAMETER_BYTES ? CUDA_OK : BAD_IMAGE;
}
