/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/run/run_kernels.h"

#include "check.h"
#include "codegen/jit/jit.h"
#include "ir/graph.h"
#include "ir/strided_view.h"
#include "runtime/abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUN_PAGE = 4096 };

static int64_t run_pages(int64_t bytes)
{
    return (bytes + RUN_PAGE - 1) / RUN_PAGE * RUN_PAGE + RUN_PAGE;
}

/* Ends where an unreadable page begins: generated code is not instrumented by the sanitizers. */
static char *run_alloc(int64_t bytes)
{
    char *p = mmap(NULL, (size_t)run_pages(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + run_pages(bytes) - RUN_PAGE, RUN_PAGE, PROT_NONE))
        abort();
    p += run_pages(bytes) - RUN_PAGE - bytes;
    memset(p, 0x7f, (size_t)bytes); /* huge floats: what is not written shows */
    return p;
}

static void run_unmap(char *p, int64_t bytes)
{
    munmap(p + bytes + RUN_PAGE - run_pages(bytes), (size_t)run_pages(bytes));
}

static void run_compile_in_child(const KernelRun *r, const char *path)
{
    char objects[64][160];
    const char *list[64];
    const Lowering *l = &r->lowering;
    if (l->calls.len > 64)
        _exit(3);
    const char *error = "";
    for (size_t i = 0; i < l->calls.len; i++) {
        const Call *c = &l->calls.data[i];
        snprintf(objects[i], sizeof objects[i], "%s.%zu.o", path, i);
        list[i] = objects[i];
        char symbol[32];
        snprintf(symbol, sizeof symbol, "k%zu", i);
        Jit *j = jit_new(l->target, c->contract);
        jit_kernel_begin(j, symbol);
        call_emit(c, j);
        jit_kernel_end(j);
        if (getenv("SCRIMP_TEST_ASM")) {
            char text[200];
            snprintf(text, sizeof text, "%s.%zu.s", getenv("SCRIMP_TEST_ASM"), i);
            jit_write_assembly(j, text, &error);
        }
        if (!jit_write_object(j, objects[i], &error)) {
            fprintf(stderr, "%s: %s\n", c->label, error);
            _exit(2);
        }
        jit_free(j);
    }
    Jit *j = jit_new(l->target, false);
    if (!jit_write_shared(j, path, list, (int)l->calls.len, &error)) {
        fprintf(stderr, "%s\n", error);
        _exit(2);
    }
    for (size_t i = 0; i < l->calls.len; i++)
        unlink(objects[i]);
    _exit(0);
}

bool run_compile(KernelRun *r)
{
    static int count;
    char path[128];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/scrimp_test_%d_%d.so", folder ? folder : "/tmp", (int)getpid(),
             count++);
    pid_t child = fork();
    if (child == 0)
        run_compile_in_child(r, path);
    int status = 0;
    waitpid(child, &status, 0);
    r->handle = status == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(path);
    return r->handle != NULL;
}

void run_link(KernelRun *r)
{
    r->kernel = POOL_ARRAY(r->pool, r->lowering.calls.len, ScrimpKernel *);
    for (size_t i = 0; i < r->lowering.calls.len; i++) {
        char symbol[32];
        snprintf(symbol, sizeof symbol, "k%zu", i);
        void *found = dlsym(r->handle, symbol);
        memcpy(&r->kernel[i], &found, sizeof found);
    }
}

KernelRun *run_new(Pool *pool, const Graph *g, const Target *target)
{
    KernelRun *r = POOL_NEW(pool, KernelRun);
    r->pool = pool;
    r->graph = g;
    r->lowering = (Lowering){.pool = pool, .graph = g, .target = target, .backend = &cpu_backend};
    lower_graph(&r->lowering);
    bool compiled = run_compile(r);
    CHECK(compiled);
    if (!compiled)
        return NULL;
    run_link(r);
    r->data = POOL_ARRAY(pool, g->values.len, char *);
    r->workspace = POOL_ARRAY(pool, g->nodes.len, char *);
    for (size_t v = 0; v < g->values.len; v++)
        if (value_root(g, (ValueId)v) == v)
            r->data[v] = run_alloc(type_bytes(&g->values.data[v].type));
    for (size_t v = 0; v < g->values.len; v++)
        r->data[v] = r->data[value_root(g, (ValueId)v)];
    for (size_t n = 0; n < g->nodes.len; n++)
        r->workspace[n] = run_alloc(node_workspace_bytes(g, &g->nodes.data[n]));
    r->scratch = run_alloc(SCRIMP_SCRATCH_BYTES);
    return r;
}

void run_buffers(const KernelRun *r, const Call *c, char **buf)
{
    for (int k = 0; k < c->n_bufs; k++) {
        ValueId v = c->buf[k].value;
        char *base = v == VALUE_NONE ? r->workspace[c->node] : v == CALL_NUMBER ? NULL : r->data[v];
        buf[k] = call_argument(&c->buf[k], base);
    }
}

void run_once(const KernelRun *r)
{
    for (size_t i = 0; i < r->lowering.calls.len; i++) {
        const Call *c = &r->lowering.calls.data[i];
        char *buf[CALL_MAX_BUFS];
        run_buffers(r, c, buf);
        r->kernel[i](buf, 0, c->n_tasks, r->scratch);
    }
}

void run_all(const KernelRun *r, int64_t group, bool backward)
{
    for (size_t i = 0; i < r->lowering.calls.len; i++) {
        const Call *c = &r->lowering.calls.data[i];
        char *buf[CALL_MAX_BUFS];
        run_buffers(r, c, buf);
        int64_t groups = (c->n_tasks + group - 1) / group;
        for (int64_t q = 0; q < groups; q++) {
            int64_t begin = (backward ? groups - 1 - q : q) * group;
            int64_t end = begin + group < c->n_tasks ? begin + group : c->n_tasks;
            memset(r->scratch, 0x7f, SCRIMP_SCRATCH_BYTES / 16);
            r->kernel[i](buf, begin, end, r->scratch);
        }
    }
}

void run_free(KernelRun *r)
{
    if (!r)
        return;
    for (size_t v = 0; v < r->graph->values.len; v++)
        if (value_root(r->graph, (ValueId)v) == v)
            run_unmap(r->data[v], type_bytes(&r->graph->values.data[v].type));
    for (size_t n = 0; n < r->graph->nodes.len; n++)
        run_unmap(r->workspace[n], node_workspace_bytes(r->graph, &r->graph->nodes.data[n]));
    run_unmap(r->scratch, SCRIMP_SCRATCH_BYTES);
    dlclose(r->handle);
}
