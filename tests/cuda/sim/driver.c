/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A simulated libcuda.so.1: one device in this process's memory.  What is put on a stream runs when
 * somebody waits for the stream, and not before, so that a missing wait shows.  Allocations hold
 * NaNs and end at an unreadable page.
 *
 * SCRIMP_SIM_FAIL: the number of the launch that fails, counted from 1, as all that follow do.
 * SCRIMP_SIM_ORDER: forward (the default), reverse, or a number, from which the order of threads
 * and blocks is drawn.  SCRIMP_SIM_BYTES: the device's memory.  SCRIMP_SIM_DRIVER: the driver's
 * version (13000: 13.0). */
#include "runtime/cuda/driver.h"
#include "fibers.h"

#define SIM_DRIVER
#include "kernel.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    BAD_VALUE = 1,
    BAD_IMAGE = 200,
    NOT_FOUND = 500,
    LAUNCH_FAILED = 719,
    PARAMETER_BYTES = 4096
};
static const unsigned POISON = 0x7fc5ca1au;

/* --- kernels --- */

typedef struct Function {
    void (*run)(const void *parameter);
    unsigned long bytes;
    int threads;
    char *shared, *shared_end;
    char name[128];
} Function;

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

static void fill(char *from, char *to)
{
    for (; to - from >= 4; from += 4)
        memcpy(from, &POISON, 4);
}

static int run_kernel(const Function *f, unsigned blocks, unsigned threads, const void *parameter)
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
        fill(f->shared, f->shared_end);
        make_order((int)threads, order);
        if (!fibers_run((int)threads, order, run_thread, NULL)) {
            fprintf(stderr, "simulator: %s: a thread ended while others wait at a barrier\n",
                    f->name);
            return LAUNCH_FAILED;
        }
    }
    return CUDA_OK;
}

/* --- work on streams --- */

typedef struct Work {
    enum { LAUNCH, COPY, FILL } kind;
    const Function *function;
    unsigned blocks, threads, word;
    char parameter[PARAMETER_BYTES];
    char *to;
    const char *from;
    size_t bytes;
    struct Work *next;
} Work;

typedef struct Queue {
    Work *first, *last;
} Queue;

typedef struct Stream {
    Queue queue;
    Queue *capture;
} Stream;

static void push(Queue *q, const Work *w)
{
    Work *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *w;
    copy->next = NULL;
    if (q->last)
        q->last->next = copy;
    else
        q->first = copy;
    q->last = copy;
}

static void clear(Queue *q)
{
    for (Work *w = q->first, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    *q = (Queue){NULL, NULL};
}

static int put(void *stream, const Work *w)
{
    Stream *s = stream;
    push(s->capture ? s->capture : &s->queue, w);
    return CUDA_OK;
}

static int perform(const Work *w)
{
    if (w->kind == LAUNCH)
        return run_kernel(w->function, w->blocks, w->threads, w->parameter);
    if (w->kind == COPY)
        memmove(w->to, w->from, w->bytes);
    for (size_t i = 0; w->kind == FILL && i < w->bytes; i++)
        memcpy(w->to + 4 * i, &w->word, 4);
    return CUDA_OK;
}

EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = calloc(1, sizeof(Stream));
    return *stream ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

EXPORT int cuStreamSynchronize(void *stream)
{
    Stream *s = stream;
    int error = CUDA_OK;
    for (const Work *w = s->queue.first; w && error == CUDA_OK; w = w->next)
        error = perform(w);
    clear(&s->queue);
    return error;
}

EXPORT int cuStreamDestroy_v2(void *stream)
{
    clear(&((Stream *)stream)->queue);
    free(stream);
    return CUDA_OK;
}

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode)
{
    (void)mode;
    Stream *s = stream;
    s->capture = calloc(1, sizeof(Queue));
    return s->capture ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

EXPORT int cuStreamEndCapture(void *stream, void **graph)
{
    Stream *s = stream;
    *graph = s->capture;
    s->capture = NULL;
    return *graph ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    (void)flags;
    Queue *copy = calloc(1, sizeof *copy);
    for (const Work *w = ((Queue *)graph)->first; copy && w; w = w->next)
        push(copy, w);
    *executable = copy;
    return copy ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

EXPORT int cuGraphLaunch(void *executable, void *stream)
{
    for (const Work *w = ((Queue *)executable)->first; w; w = w->next)
        put(stream, w);
    return CUDA_OK;
}

EXPORT int cuGraphDestroy(void *graph)
{
    clear(graph);
    free(graph);
    return CUDA_OK;
}

EXPORT int cuGraphExecDestroy(void *executable)
{
    return cuGraphDestroy(executable);
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

EXPORT int cuModuleLoadData(void **module, const void *image)
{
    size_t n = image_bytes(image);
    char path[64];
    int file = n ? memfd_create("kernel", 0) : -1;
    Module *m = calloc(1, sizeof *m);
    if (!m || file < 0 || write(file, image, n) != (ssize_t)n)
        return BAD_IMAGE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    m->file = file;
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

/* --- memory --- */

typedef struct Block {
    char *mapped;
    size_t size;
    CudaAddress address;
    size_t bytes;
    struct Block *next;
} Block;

static Block *blocks;
static size_t in_use;

static size_t device_bytes(void)
{
    const char *text = getenv("SCRIMP_SIM_BYTES");
    return text ? (size_t)strtoull(text, NULL, 10) : (size_t)16 << 30;
}

EXPORT int cuMemAlloc_v2(CudaAddress *address, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
    Block *b = malloc(sizeof *b);
    if (!bytes)
        return BAD_VALUE;
    if (!b || bytes > device_bytes() - in_use)
        return CUDA_OUT_OF_MEMORY;
    b->mapped = mmap(NULL, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->mapped == MAP_FAILED)
        return CUDA_OUT_OF_MEMORY;
    mprotect(b->mapped + size, page, PROT_NONE);
    *b = (Block){b->mapped, size + page, 0, bytes, blocks};
    b->address = (CudaAddress)(unsigned long)(b->mapped + (size - bytes));
    fill(b->mapped + (size - bytes), b->mapped + size);
    blocks = b;
    in_use += bytes;
    *address = b->address;
    return CUDA_OK;
}

EXPORT int cuMemFree_v2(CudaAddress address)
{
    for (Block **b = &blocks; *b; b = &(*b)->next)
        if ((*b)->address == address) {
            Block *gone = *b;
            *b = gone->next;
            in_use -= gone->bytes;
            munmap(gone->mapped, gone->size);
            free(gone);
            return CUDA_OK;
        }
    return BAD_VALUE;
}

/* Inside of one allocation. */
static int is_device(CudaAddress address, size_t bytes)
{
    for (const Block *b = blocks; b; b = b->next)
        if (address >= b->address && bytes <= b->bytes && address - b->address <= b->bytes - bytes)
            return 1;
    return 0;
}

EXPORT int cuMemcpyHtoDAsync_v2(CudaAddress to, const void *from, size_t bytes, void *stream)
{
    if (!is_device(to, bytes))
        return BAD_VALUE;
    return put(
        stream,
        &(Work){.kind = COPY, .to = (char *)(unsigned long)to, .from = from, .bytes = bytes});
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, CudaAddress from, size_t bytes, void *stream)
{
    if (!is_device(from, bytes))
        return BAD_VALUE;
    return put(
        stream,
        &(Work){.kind = COPY, .to = to, .from = (char *)(unsigned long)from, .bytes = bytes});
}

EXPORT int cuMemsetD32Async(CudaAddress to, unsigned word, size_t words, void *stream)
{
    if (!is_device(to, 4 * words))
        return BAD_VALUE;
    return put(
        stream,
        &(Work){.kind = FILL, .to = (char *)(unsigned long)to, .word = word, .bytes = words});
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *total_bytes = device_bytes();
    *free_bytes = *total_bytes - in_use;
    return CUDA_OK;
}

/* --- the device --- */

EXPORT int cuInit(unsigned flags)
{
    return flags ? BAD_VALUE : CUDA_OK;
}

EXPORT int cuDriverGetVersion(int *version)
{
    const char *text = getenv("SCRIMP_SIM_DRIVER");
    *version = text ? atoi(text) : 13000;
    return CUDA_OK;
}

EXPORT int cuGetErrorString(int error, const char **text)
{
    static const struct {
        int error;
        const char *text;
    } texts[] = {{CUDA_OK, "no error"},
                 {BAD_VALUE, "invalid argument"},
                 {CUDA_OUT_OF_MEMORY, "out of memory"},
                 {BAD_IMAGE, "device kernel image is invalid"},
                 {NOT_FOUND, "named symbol not found"},
                 {LAUNCH_FAILED, "unspecified launch failure"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error) {
            *text = texts[i].text;
            return CUDA_OK;
        }
    return BAD_VALUE;
}

EXPORT int cuDeviceGetCount(int *n)
{
    *n = 1;
    return CUDA_OK;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "simulated device");
    return device == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == CUDA_ATTRIBUTE_MAJOR ? 9 : 0;
    return device == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    static char here;
    *context = &here;
    return device == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device == 0 ? CUDA_OK : BAD_VALUE;
}

EXPORT int cuCtxSetCurrent(void *context)
{
    return context ? CUDA_OK : BAD_VALUE;
}
