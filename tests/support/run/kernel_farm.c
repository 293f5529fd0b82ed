/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/run/kernel_farm.h"

#include "codegen/build/cache.h"
#include "codegen/build/fd.h"
#include "codegen/build/hash.h"
#include "codegen/generator_id.h"
#include "codegen/jit/jit.h"
#include "ir/support/strbuf.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FARM_GROUP = 64, FARM_CHILDREN = 2, FARM_MOST_BYTES = 1 << 30 };

Farm farm_new(Pool *pool, const Target *target)
{
    Farm f = {.pool = pool, .target = target, .optimization = 1, .index = map_new(pool)};
    snprintf(f.folder, sizeof f.folder, "/tmp/scrimp-farm-XXXXXX");
    if (!mkdtemp(f.folder))
        abort();
    const char *build = getenv("SCRIMP_BUILD"), *error = NULL;
    const char *folder = pool_printf(pool, "%s/test-cache", build ? build : "");
    if (!cache_open(pool, folder, !build, &f.cache, &error))
        fprintf(stderr, "%s\n", error);
    return f;
}

Lowering *farm_lower(Farm *f, const Graph *g)
{
    Lowering *l = POOL_NEW(f->pool, Lowering);
    *l = (Lowering){.pool = f->pool,
                    .graph = g,
                    .target = f->target,
                    .backend = &cpu_backend,
                    .tuning = f->tuning};
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

/* All that the code of a kernel depends on. */
static const char *farm_key(Pool *pool, const Farm *f, const Call *call)
{
    StrBuf b = strbuf_new(pool);
    strbuf_printf(&b, "farm|%s|%s|%d|%s", GENERATOR_ID, jit_compiler_version(), f->optimization,
                  f->target->name);
    for (int i = 0; f->target->flags[i]; i++)
        strbuf_printf(&b, " %s", f->target->flags[i]);
    strbuf_printf(&b, "|%d|%s", call->contract, call->key);
    return content_key(pool, b.text, b.len);
}

static const char *farm_symbol(Pool *pool, const Farm *f, const Call *call)
{
    return pool_printf(pool, "k_%s", farm_key(pool, f, call));
}

static void farm_emit(const Farm *f, Jit *j, const Call *call)
{
    jit_kernel_begin(j, farm_symbol(f->pool, f, call));
    call_emit(call, j);
    jit_kernel_end(j);
}

static bool farm_compile_object(const Farm *f, const Call *call, const char *path)
{
    const char *error = NULL;
    Jit *j = jit_new(f->target, true);
    jit_set_optimization(j, f->optimization);
    farm_emit(f, j, call);
    bool ok = jit_write_object(j, path, &error);
    if (!ok)
        fprintf(stderr, "%s\n", error);
    jit_free(j);
    return ok;
}

/* A matrix kernel in an object of its own, as in scrimp: its helper functions have fixed names.  It
 * takes a tenth of a second to compile, and other tests draw the same shapes: it is kept. */
static bool farm_object(const Farm *f, const Call *call, const char *path)
{
    size_t n;
    const char *error = NULL, *key = farm_key(f->pool, f, call);
    const char *bytes = cache_get(f->pool, &f->cache, key, "o", &n, &error);
    if (bytes)
        return fd_create(path, bytes, n);
    if (!farm_compile_object(f, call, path))
        return false;
    bytes = fd_read_path(f->pool, path, FARM_MOST_BYTES, &n);
    return bytes && cache_put(f->pool, &f->cache, key, "o", bytes, n, &error);
}

/* One shared object for the kernels of a group. */
static bool farm_build(const Farm *f, size_t group)
{
    char path[128], objects[FARM_GROUP][128];
    const char *list[FARM_GROUP], *error = NULL;
    int n = 0;
    bool ok = true;
    Jit *j = jit_new(f->target, false);
    jit_set_optimization(j, 1); /* without contraction, no level changes what is computed */
    for (size_t i = group * FARM_GROUP; i < f->kernels.len && i < (group + 1) * FARM_GROUP; i++) {
        const Call *call = f->kernels.data[i].call;
        if (!call->contract) {
            farm_emit(f, j, call);
            continue;
        }
        snprintf(objects[n], sizeof objects[n], "%s/%zu.o", f->folder, i);
        list[n] = objects[n];
        ok &= farm_object(f, call, objects[n++]);
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
    char path[128];
    for (size_t i = 0; i < f->kernels.len; i++) {
        farm_path(f, i / FARM_GROUP, path, sizeof path);
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        const char *symbol = farm_symbol(f->pool, f, f->kernels.data[i].call);
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
