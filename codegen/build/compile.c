/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/codegen.h"

#include "codegen/build/cache.h"
#include "codegen/build/compile.h"
#include "codegen/build/fd.h"
#include "codegen/build/job.h"
#include "codegen/build/link.h"
#include "codegen/build/scratch.h"
#include "codegen/build/step.h"
#include "codegen/build/supports.h"
#include "codegen/build/workers.h"
#include "codegen/jit/jit.h"
#include "ir/support/clock.h"
#include "ir/support/strbuf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What a step is made of: verified copies of the cache's objects and new ones, all in the scratch
 * folder. */
typedef struct Build {
    const StepProgram *program;
    const CodegenOptions *options;
    const Cache *cache;
    Scratch scratch;
    const void **image; /* by kernel, where they are not linked */
    size_t *image_bytes;
    int *missing; /* kernel indices */
    int n_missing;
} Build;

enum { MOST_OBJECT_BYTES = 1 << 30 };

static const char *object_path(const Build *b, int kernel)
{
    return scratch_path(b->program->pool, &b->scratch, b->program->kernel_key[kernel],
                        b->program->backend->object);
}

static const char *linked_path(const Build *b)
{
    return scratch_path(b->program->pool, &b->scratch, "step", "so");
}

static void note(const CodegenOptions *o, Pool *pool, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void note(const CodegenOptions *o, Pool *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (o->note)
        o->note(o->user, pool_vprintf(pool, format, args));
    va_end(args);
}

/* Another process finds the kernel from here on, whatever becomes of this one. */
static bool keep_object(const Build *b, int kernel, char *message, size_t size)
{
    Pool *pool = b->program->pool;
    size_t n;
    const char *error = NULL, *path = object_path(b, kernel);
    const char *bytes = fd_read_path(pool, path, MOST_OBJECT_BYTES, &n);
    if (!bytes)
        error = pool_printf(pool, "cannot read %s: %s", path, strerror(errno));
    else
        cache_put(pool, b->cache, b->program->kernel_key[kernel], b->program->backend->object,
                  bytes, n, &error);
    if (error)
        snprintf(message, size, "%s", error);
    return !error;
}

/* Runs in a child. */
static bool compile_kernel(void *user, int index, char *message, size_t size)
{
    const Build *b = user;
    int kernel = b->missing[index];
    return b->program->backend->compile(b->program, kernel, object_path(b, kernel), message,
                                        size) &&
           keep_object(b, kernel, message, size);
}

static const char *kernel_name(void *user, int index)
{
    const Build *b = user;
    return b->program->calls[b->program->first_call[b->missing[index]]].label;
}

/* Runs in a child. */
static bool link_step(void *user, int index, char *message, size_t size)
{
    (void)index;
    const Build *b = user;
    const StepProgram *p = b->program;
    int n;
    const char *const *options = link_options(p, &b->scratch, &n);
    Jit *j = jit_new(p->target, false);
    step_emit(j, p);
    const char *error = NULL;
    bool ok = jit_write_shared(j, linked_path(b), options, n, &error);
    return job_end(j, ok, error, message, size);
}

static const char *step_name(void *user, int index)
{
    (void)user;
    (void)index;
    return "the step";
}

/* Copies the cache's objects into the scratch folder: those that are linked are those that were
 * verified, and may leave the cache meanwhile. */
static bool collect_objects(Build *b, const char **error)
{
    const StepProgram *p = b->program;
    const char *fault, *first = NULL;
    int n_bad = 0;
    b->missing = POOL_ARRAY(p->pool, (size_t)p->n_kernels, int);
    b->n_missing = 0;
    for (int k = 0; k < p->n_kernels; k++) {
        size_t n;
        Pool *pool = pool_new_child(p->pool);
        const char *bytes =
            cache_get(pool, b->cache, p->kernel_key[k], p->backend->object, &n, &fault);
        bool ok = !bytes || fd_create(object_path(b, k), bytes, n);
        if (!ok)
            *error = pool_printf(p->pool, "cannot write %s: %s (set TMPDIR)", object_path(b, k),
                                 strerror(errno));
        if (!bytes)
            b->missing[b->n_missing++] = k;
        if (fault && n_bad++ == 0)
            first = pool_printf(p->pool, "%s.%s: %s", p->kernel_key[k], p->backend->object, fault);
        pool_free(pool);
        if (!ok)
            return false;
    }
    if (n_bad)
        note(b->options, p->pool,
             "%d of %d kernels in the cache %s cannot be used (%s); they are "
             "compiled again",
             n_bad, p->n_kernels, b->cache->dir, first);
    return true;
}

/* Kernels that the step names by number, as they lie in the scratch folder. */
static bool new_images(Build *b, const char **error)
{
    const StepProgram *p = b->program;
    b->image = POOL_ARRAY(p->pool, (size_t)p->n_kernels + 1, const void *);
    b->image_bytes = POOL_ARRAY(p->pool, (size_t)p->n_kernels + 1, size_t);
    for (int k = 0; k < p->n_kernels && !p->backend->linked; k++) {
        const char *path = object_path(b, k);
        b->image[k] = fd_read_path(p->pool, path, MOST_OBJECT_BYTES, &b->image_bytes[k]);
        if (!b->image[k]) {
            *error = pool_printf(p->pool, "cannot read %s: %s", path, strerror(errno));
            return false;
        }
    }
    return true;
}

/* The step's shared object, on the pool. */
static const char *build(Build *b, size_t *n, const char **error)
{
    Pool *pool = b->program->pool;
    const CodegenOptions *o = b->options;
    if (!collect_objects(b, error))
        return NULL;
    Workers kernels = {.n_jobs = b->n_missing,
                       .n_children = o->jobs,
                       .job = compile_kernel,
                       .name = kernel_name,
                       .progress = o->progress,
                       .user = b,
                       .progress_user = o->user,
                       .tmpdir = b->scratch.dir};
    Workers link = {.n_jobs = 1,
                    .n_children = 1,
                    .job = link_step,
                    .name = step_name,
                    .user = b,
                    .tmpdir = b->scratch.dir};
    if (!workers_run(pool, &kernels, error) || !workers_run(pool, &link, error) ||
        !new_images(b, error))
        return NULL;
    const char *bytes = fd_read_path(pool, linked_path(b), MOST_OBJECT_BYTES, n);
    if (!bytes)
        *error = pool_printf(pool, "cannot read %s: %s", linked_path(b), strerror(errno));
    return bytes;
}

static const char *build_in_scratch(Build *b, size_t *n, const char **error)
{
    if (!scratch_open(b->program->pool, &b->scratch, error))
        return NULL;
    const char *bytes = build(b, n, error);
    scratch_close(&b->scratch);
    return bytes;
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

StepTarget step_target(const CodegenOptions *o, const Target *target)
{
    return (StepTarget){.backend = o->backend ? o->backend : &cpu_backend,
                        .target = target,
                        .arch = o->arch,
                        .tuning = o->tuning,
                        .strip_cache = o->strip_cache};
}

bool codegen_build(const StepProgram *program, const CodegenOptions *o, BuiltStep *out,
                   const char **error)
{
    Cache cache;
    if (!cache_open(program->pool, o->cache_dir, o->no_cache, &cache, error))
        return false;
    Build b = {.program = program, .options = o, .cache = &cache};
    out->so = build_in_scratch(&b, &out->so_bytes, error);
    out->image = b.image;
    out->image_bytes = b.image_bytes;
    cache_trim(program->pool, &cache, NULL, cache.limits);
    return out->so != NULL;
}

bool codegen_write(Pool *pool, const char *path, const void *bytes, size_t n, mode_t mode,
                   const char **error)
{
    if (fd_replace(pool, path, bytes, n, mode, true))
        return true;
    *error = pool_printf(pool, "cannot write %s: %s", path, strerror(errno));
    return false;
}

/* Kernels that the step names by number, from the cache. */
static bool cached_images(Build *b, const char **error)
{
    const StepProgram *p = b->program;
    b->image = POOL_ARRAY(p->pool, (size_t)p->n_kernels + 1, const void *);
    b->image_bytes = POOL_ARRAY(p->pool, (size_t)p->n_kernels + 1, size_t);
    for (int k = 0; k < p->n_kernels && !p->backend->linked; k++) {
        const char *fault = NULL, *key = p->kernel_key[k];
        b->image[k] =
            cache_get(p->pool, b->cache, key, p->backend->object, &b->image_bytes[k], &fault);
        if (!b->image[k]) {
            *error = pool_printf(p->pool, "its kernel %s is gone", key);
            return false;
        }
    }
    return true;
}

static void set_kernels(const Build *b, Step *step)
{
    const StepProgram *p = b->program;
    ScrimpDeviceKernel *kernel = POOL_ARRAY(p->pool, (size_t)p->n_kernels + 1, ScrimpDeviceKernel);
    for (int k = 0; k < p->n_kernels; k++)
        kernel[k] = step_device_kernel(p, k, b->image[k], b->image_bytes[k]);
    step->kernel = p->backend->linked ? NULL : kernel;
}

static bool load(Step *step, Pool *pool, const char *bytes, size_t n, const char **error)
{
    if (!image_load(pool, bytes, n, &step->image, error))
        return false;
    void *symbol = image_symbol(&step->image, SCRIMP_STEP_SYMBOL);
    memcpy(&step->run, &symbol, sizeof symbol);
    if (!step->run)
        *error = "the compiled step has no entry";
    return step->run != NULL;
}

/* True when a step of the cache runs.  One that is whole but cannot be loaded (it was made where
 * the system's libraries are others) is made again, too; until then it stays, since what failed may
 * have been this process (a limit of memory or of a file's size). */
static bool load_cached(Build *b, Step *step)
{
    Pool *pool = pool_new_child(b->program->pool);
    const char *key = step->key;
    size_t n;
    const char *fault, *bytes = cache_get(pool, b->cache, key, "so", &n, &fault);
    bool ok = bytes && cached_images(b, &fault) && load(step, pool, bytes, n, &fault);
    if (!ok && fault)
        note(b->options, pool,
             "the step %s.so in the cache %s cannot be used (%s); it is made again", key,
             b->cache->dir, fault);
    pool_free(pool);
    return ok;
}

static bool make_step(Build *b, Step *step, const char **error)
{
    const StepProgram *p = b->program;
    size_t n;
    if (load_cached(b, step))
        return true;
    const char *bytes = build_in_scratch(b, &n, error);
    step->n_compiled = b->n_missing;
    bool ok = bytes && cache_put(p->pool, b->cache, step->key, "so", bytes, n, error) &&
              load(step, p->pool, bytes, n, error);
    cache_trim(p->pool, b->cache, NULL, b->cache->limits);
    return ok;
}

static const char *keep_text(Pool *pool, const char *text)
{
    return text ? pool_strdup(pool, text) : NULL;
}

/* How often a call runs. */
static const CallLoops *keep_loops(Pool *pool, const CallLoops *loops)
{
    if (!loops)
        return NULL;
    CallLoops *copy = POOL_NEW(pool, CallLoops);
    *copy = *loops;
    copy->stride = NULL;
    return copy;
}

/* What a program says of its calls, without the program, which is much larger. */
static void keep_calls(Pool *pool, const StepProgram *p, Step *step)
{
    const char *const *program_key = step_call_keys(p);
    Call *call = POOL_ARRAY(pool, (size_t)p->n_calls + 1, Call);
    const char **key = POOL_ARRAY(pool, (size_t)p->n_calls + 1, const char *);
    for (int i = 0; i < p->n_calls; i++) {
        int first =
            p->first_call[p->kernel_of[i]]; /* not behind i: calls of a kernel share a key */
        key[i] = first == i ? pool_strdup(pool, program_key[i]) : key[first];
        call[i] = p->calls[i];
        call[i].key = key[i];
        call[i].label = pool_strdup(pool, call[i].label);
        call[i].problem = keep_text(pool, call[i].problem);
        call[i].desc = NULL;
        call[i].buf = NULL;
        call[i].n_bufs = 0;
        call[i].writes = call[i].reads = (CallSpans){.n = 0};
        call[i].loops = keep_loops(pool, call[i].loops);
        call[i].loc.path = keep_text(pool, call[i].loc.path); /* of a loop's body, it goes, too */
        call[i].loc.file = keep_text(pool, call[i].loc.file);
    }
    step->calls = call;
    step->call_key = key;
    step->n_calls = p->n_calls;
    step->n_kernels = p->n_kernels;
}

static bool compile_program(Pool *pool, const StepProgram *p, const CodegenOptions *o,
                            const Cache *cache, Step *step, const char **error)
{
    Build b = {.program = p, .options = o, .cache = cache};
    if (!cache->dir && !o->no_cache)
        note(o, pool,
             "there is no kernel cache, since HOME names no folder of this user: all is "
             "compiled anew (SCRIMP_CACHE names a folder)");
    step->key = pool_strdup(pool, step_key(p));
    bool ok = make_step(&b, step, error);
    if (ok)
        set_kernels(&b, step);
    if (ok)
        keep_calls(pool, p, step);
    return ok;
}

Step *codegen_compile(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                      const char **error)
{
    double start = clock_seconds();
    Cache cache;
    const Target *target = codegen_target(pool, o->march, true, error);
    if (!target || !cache_open(pool, o->cache_dir, o->no_cache, &cache, error))
        return NULL;
    StepTarget made_for = step_target(o, target);
    *error = codegen_unsupported_by(pool, made_for.backend, g);
    if (*error)
        return NULL;
    /* A device loads images, which are read with the program. */
    Pool *work = made_for.backend->linked ? pool_new_child(pool) : pool;
    Step *step = POOL_NEW(pool, Step);
    *step = (Step){.image = {NULL, -1},
                   .driver = made_for.backend->driver ? made_for.backend->driver() : 0};
    const StepProgram *p = step_program(work, g, plan, made_for, error);
    bool ok = p && compile_program(pool, p, o, &cache, step, error);
    if (*error)
        *error = pool_strdup(pool, *error);
    if (work != pool)
        pool_free(work);
    step->compile_seconds = clock_seconds() - start;
    return ok ? step : NULL;
}

bool codegen_list_calls(Pool *pool, const Graph *g, const CodegenOptions *o, CallList *out,
                        const char **error)
{
    const Target *target = codegen_target(pool, o->march, false, error);
    const StepProgram *p =
        target ? step_program(pool, g, NULL, step_target(o, target), error) : NULL;
    if (p)
        *out = (CallList){p->calls, step_call_keys(p), p->n_calls};
    return p != NULL;
}

void codegen_unload(Step *step)
{
    if (step)
        image_unload(&step->image);
}
