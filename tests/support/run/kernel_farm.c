/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/run/kernel_farm.h"

#include "codegen/jit/jit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FARM_GROUP = 64, FARM_CHILDREN = 2 };

Farm farm_new(Pool *pool, const Target *target)
{
    Farm f = {.pool = pool, .target = target, .optimization = 1, .index = map_new(pool)};
    snprintf(f.folder, sizeof f.folder, "/tmp/scrimp-farm-XXXXXX");
    if (!mkdtemp(f.folder))
        abort();
    return f;
}

Lowering *farm_lower(Farm *f, const Graph *g)
{
    Lowering *l = POOL_NEW(f->pool, Lowering);
    *l = (Lowering){.pool = f->pool, .graph = g, .target = f->target, .backend = &cpu_backend};
    lower_graph(l);
    for (size_t i = 0; i < l->calls.len; i++) {
        FarmKernel k = {&l->calls.data[i], NULL};
        if (map_find(&f->index, k.call->key))
            continue;
        map_set(&f->index, k.call->key, f->kernels.len);
        vec_push(f->pool, &f->kernels, k);
    }
    return l;
}

static void farm_path(const Farm *f, size_t group, char *path, size_t size)
{
    snprintf(path, size, "%s/%zu.so", f->folder, group);
}

static void farm_emit(Jit *j, size_t index, const Call *call)
{
    char symbol[32];
    snprintf(symbol, sizeof symbol, "k%zu", index);
    jit_kernel_begin(j, symbol);
    call_emit(call, j);
    jit_kernel_end(j);
}

/* A matrix kernel in an object of its own, as in scrimp: its helper functions have fixed names. */
static bool farm_object(const Farm *f, size_t index, const char *path)
{
    const char *error = NULL;
    Jit *j = jit_new(f->target, true);
    jit_set_optimization(j, f->optimization);
    farm_emit(j, index, f->kernels.data[index].call);
    bool ok = jit_write_object(j, path, &error);
    if (!ok)
        fprintf(stderr, "%s\n", error);
    jit_free(j);
    return ok;
}

/* One shared object for the kernels of a group. */
static bool farm_build(const Farm *f, size_t group)
{
    char path[128], objects[FARM_GROUP][128];
    const char *list[FARM_GROUP], *error = NULL;
    int n = 0;
    bool ok = true;
    Jit *j = jit_new(f->target, false);
    jit_set_optimization(j, f->optimization);
    for (size_t i = group * FARM_GROUP; i < f->kernels.len && i < (group + 1) * FARM_GROUP; i++) {
        const Call *call = f->kernels.data[i].call;
        if (!call->contract) {
            farm_emit(j, i, call);
            continue;
        }
        snprintf(objects[n], sizeof objects[n], "%s/%zu.o", f->folder, i);
        list[n] = objects[n];
        ok &= farm_object(f, i, objects[n++]);
    }
    farm_path(f, group, path, sizeof path);
    ok = ok && jit_write_shared(j, path, list, n, &error);
    if (error)
        fprintf(stderr, "%s\n", error);
    for (int i = 0; i < n; i++)
        unlink(objects[i]);
    jit_free(j);
    return ok;
}

static bool farm_wait(void)
{
    int status = 0;
    wait(&status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool farm_compile(Farm *f)
{
    size_t groups = (f->kernels.len + FARM_GROUP - 1) / FARM_GROUP;
    bool ok = true;
    int running = 0;
    for (size_t g = 0; g < groups; g++) {
        if (running == FARM_CHILDREN) {
            ok &= farm_wait();
            running--;
        }
        fflush(NULL);
        if (fork() == 0)
            _exit(farm_build(f, g) ? 0 : 1);
        running++;
    }
    while (running-- > 0)
        ok &= farm_wait();
    return ok;
}

bool farm_load(Farm *f)
{
    char path[128], symbol[32];
    for (size_t i = 0; i < f->kernels.len; i++) {
        farm_path(f, i / FARM_GROUP, path, sizeof path);
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        snprintf(symbol, sizeof symbol, "k%zu", i);
        void *found = handle ? dlsym(handle, symbol) : NULL;
        memcpy(&f->kernels.data[i].run, &found, sizeof found);
        if (!found)
            return false;
        vec_push(f->pool, &f->handles, handle);
    }
    return true;
}

void farm_free(Farm *f)
{
    char path[128];
    for (size_t i = 0; i < f->handles.len; i++)
        dlclose(f->handles.data[i]);
    for (size_t g = 0; g <= f->kernels.len / FARM_GROUP; g++) {
        farm_path(f, g, path, sizeof path);
        unlink(path);
    }
    rmdir(f->folder);
}

/* --- buffers --- */

Fenced fenced_new(int64_t bytes, bool aligned)
{
    size_t page = 4096, size = (size_t)bytes, up = aligned ? (size + 63) / 64 * 64 : size;
    Fenced b = {.mapped = (up + page - 1) / page * page + page};
    b.base = mmap(NULL, b.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.base == MAP_FAILED || mprotect(b.base + b.mapped - page, page, PROT_NONE))
        abort();
    b.data = b.base + b.mapped - page - up;
    memset(b.base, 0x7f, b.mapped - page);
    return b;
}

void fenced_free(Fenced *b)
{
    munmap(b->base, b->mapped);
}

bool fenced_intact(const Fenced *b)
{
    for (const char *p = b->base; p < b->data; p++)
        if (*p != 0x7f)
            return false;
    return true;
}
