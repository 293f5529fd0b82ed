#include "codegen/codegen.h"

#include "codegen/cache.h"
#include "codegen/compile.h"
#include "codegen/jit.h"
#include "codegen/step.h"
#include "codegen/workers.h"
#include "ir/support/bug.h"
#include "ir/support/clock.h"
#include "ir/support/strbuf.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Kernels that are not in the cache. */
typedef struct Build {
    const StepProgram *program;
    const Cache *cache;
    int *missing; /* kernel indices */
    int n_missing;
    bool has_kernels; /* all are in the cache */
    const char *so_path;
} Build;

static const char *object_path(const Build *b, int kernel)
{
    return cache_path(b->program->pool, b->cache, b->program->kernel_key[kernel], "o");
}

static bool rename_into_place(const char *from, const char *to, char *message, size_t size)
{
    if (rename(from, to) == 0)
        return true;
    snprintf(message, size, "cannot write %s: %s", to, strerror(errno));
    unlink(from);
    return false;
}

/* Runs in a child. */
static bool compile_kernel(void *user, int index, char *message, size_t size)
{
    const Build *b = user;
    int kernel = b->missing[index];
    const Call *call = &b->program->calls[b->program->first_call[kernel]];
    const char *path = object_path(b, kernel);
    const char *temporary = cache_temporary(b->program->pool, path);
    Jit *j = jit_new(b->program->target, call->contract);
    jit_kernel_begin(j, step_kernel_symbol(b->program, kernel));
    call->emit(j, call->desc);
    jit_kernel_end(j);
    const char *error;
    bool ok = jit_write_object(j, temporary, &error);
    if (!ok) {
        snprintf(message, size, "%s", error);
        unlink(temporary);
    }
    jit_free(j);
    return ok && rename_into_place(temporary, path, message, size);
}

static const char *kernel_name(void *user, int index)
{
    const Build *b = user;
    return b->program->calls[b->program->first_call[b->missing[index]]].label;
}

static bool link_step(void *user, int index, char *message, size_t size)
{
    (void)index;
    const Build *b = user;
    const StepProgram *p = b->program;
    const char **objects = POOL_ARRAY(p->pool, (size_t)p->n_kernels, const char *);
    for (int k = 0; k < p->n_kernels; k++)
        objects[k] = object_path(b, k);
    const char *temporary = cache_temporary(p->pool, b->so_path);
    Jit *j = jit_new(p->target, false);
    jit_set_optimization(j, 0);
    step_emit(j, p);
    const char *error;
    bool ok = jit_write_shared(j, temporary, objects, p->n_kernels, &error);
    if (!ok) {
        snprintf(message, size, "%s", error);
        unlink(temporary);
    }
    jit_free(j);
    return ok && rename_into_place(temporary, b->so_path, message, size);
}

static const char *step_name(void *user, int index)
{
    (void)user;
    (void)index;
    return "the step";
}

static void find_missing(Build *b)
{
    const StepProgram *p = b->program;
    b->missing = POOL_ARRAY(p->pool, (size_t)p->n_kernels, int);
    b->n_missing = 0;
    for (int k = 0; k < p->n_kernels; k++)
        if (!cache_has(object_path(b, k)))
            b->missing[b->n_missing++] = k;
}

/* Compiles what is missing and links b->so_path. */
static bool build(Build *b, const CodegenOptions *o, const char **error)
{
    find_missing(b);
    Workers kernels = {.n_jobs = b->n_missing,
                       .n_children = o->jobs,
                       .job = compile_kernel,
                       .name = kernel_name,
                       .progress = o->progress,
                       .user = b,
                       .progress_user = o->user};
    Workers link = {.n_jobs = 1, .n_children = 1, .job = link_step, .name = step_name, .user = b};
    b->has_kernels = workers_run(b->program->pool, &kernels, error);
    return b->has_kernels && workers_run(b->program->pool, &link, error);
}

const Target *codegen_target(Pool *pool, const char *march, bool run, const char **error)
{
    const Target *t = target_find(march);
    if (!t) {
        StrBuf names = strbuf_new(pool);
        for (const char *const *n = target_names(); *n; n++)
            strbuf_printf(&names, " %s", *n);
        *error =
            pool_printf(pool, "--march %s: no such target; known:%s native", march, names.text);
        return NULL;
    }
    if (run && !target_runs_here(t)) {
        *error = pool_printf(pool, "this machine cannot run code for %s", t->name);
        return NULL;
    }
    return t;
}

bool codegen_build_so(const StepProgram *program, const CodegenOptions *o, const char *so_path,
                      const char **error)
{
    Cache cache;
    if (!cache_open(program->pool, o->cache_dir, o->no_cache, &cache, error))
        return false;
    Build b = {.program = program, .cache = &cache, .so_path = so_path};
    bool ok = build(&b, o, error);
    cache_close(&cache);
    return ok;
}

static bool load(Step *step, Pool *pool, const char **error)
{
    step->handle = dlopen(step->so_path, RTLD_NOW | RTLD_LOCAL);
    if (step->handle) {
        void *symbol = dlsym(step->handle, SCRIMP_STEP_SYMBOL);
        memcpy(&step->run, &symbol, sizeof symbol);
    }
    if (!step->run)
        *error =
            pool_printf(pool, "cannot load the compiled step %s: %s", step->so_path, dlerror());
    return step->run != NULL;
}

static bool make_step(Build *b, const CodegenOptions *o, Step *step, const char **error)
{
    b->has_kernels = cache_has(b->so_path);
    return (b->has_kernels || build(b, o, error)) && load(step, b->program->pool, error);
}

/* A machine that crashed may leave files without their contents.  What this step has taken from the
 * cache is thrown away. */
static void forget(const Build *b)
{
    unlink(b->so_path);
    for (int k = 0; k < b->program->n_kernels; k++)
        unlink(object_path(b, k));
}

Step *codegen_compile(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                      const char **error)
{
    double start = clock_seconds();
    Cache cache;
    const Target *target = codegen_target(pool, o->march, true, error);
    if (!target || !cache_open(pool, o->cache_dir, o->no_cache, &cache, error))
        return NULL;
    StepProgram *p = step_program(pool, g, plan, target);
    Build b = {
        .program = p, .cache = &cache, .so_path = cache_path(pool, &cache, step_key(p), "so")};
    Step *step = POOL_NEW(pool, Step);
    *step = (Step){.calls = p->calls,
                   .call_key = step_call_keys(p),
                   .n_calls = p->n_calls,
                   .n_kernels = p->n_kernels,
                   .so_path = b.so_path};
    bool ok = make_step(&b, o, step, error);
    if (!ok && b.has_kernels && b.n_missing < p->n_kernels) {
        forget(&b);
        ok = make_step(&b, o, step, error);
    }
    step->n_compiled = b.n_missing;
    step->compile_seconds = clock_seconds() - start;
    cache_close(&cache); /* a loaded object stays mapped */
    return ok ? step : NULL;
}

CallList codegen_list_calls(Pool *pool, const Graph *g, const Target *target)
{
    const StepProgram *p = step_program(pool, g, NULL, target);
    return (CallList){p->calls, step_call_keys(p), p->n_calls};
}

void codegen_unload(Step *step)
{
    if (step && step->handle)
        dlclose(step->handle);
}
