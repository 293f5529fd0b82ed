/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step reads and writes, call by call, on the CPU and on the simulated device: before a call
 * all memory is NaN but what an earlier call left for it or for a later one; behind it nothing has
 * changed but the buffers that it names; and the step ends with the bits of one that nobody
 * watches.  When storage is in use is found here from the calls themselves.  SCRIMP_MODELS: how
 * many random models of each family (default: the one that other tests take, too); SCRIMP_ALL=1:
 * also with everything kept. */
#include "check.h"
#include "codegen/build/step.h"
#include "ir/strided_view.h"
#include "runtime/cuda/step.h"
#include "tests/support/fixed_models.h"
#include "tests/support/random_model.h"
#include "tests/support/run/model_run.h"
#include "tests/support/sample.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALWAYS = INT32_MAX, BEFORE = -1, NEVER = -2 };
static const unsigned char dead_byte = 0xff; /* of NaNs, and of numbers far outside of any array */

/* Storage of a value that is no view of another, and its first and last call. */
typedef struct Life {
    int64_t begin, end;
    int first, last;
} Life;

typedef struct Watch {
    const StepProgram *program;
    const char *what;
    Life *life; /* by value; only roots have one */
    Life *work; /* of a node's workspace, by node */
    int64_t bytes;
    char *before, *after;
    bool *is_live, *is_named;
    ScrimpContext *inner;
    CudaDevice *device; /* NULL: the CPU */
    bool failed;
} Watch;

/* --- lives --- */

static void lengthen(Life *l, int call)
{
    if (l->first == NEVER)
        l->first = call;
    if (l->last < call)
        l->last = call;
}

static void mention(Watch *w, ValueId v, int call)
{
    lengthen(&w->life[value_root(w->program->graph, v)], call);
}

static void add_sources(Watch *w)
{
    const Graph *g = w->program->graph;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op != OP_input && !node_is_persistent(n))
            continue;
        mention(w, n->out[0], BEFORE);
        if (node_is_persistent(n))
            mention(w, n->out[0], ALWAYS);
    }
}

static void find_lives(Watch *w)
{
    const StepProgram *p = w->program;
    const Graph *g = p->graph;
    w->life = POOL_ARRAY(p->pool, g->values.len + 1, Life);
    for (size_t v = 0; v < g->values.len; v++) {
        int64_t at = p->plan->offset[v];
        w->life[v] = (Life){at, at + type_bytes(&g->values.data[v].type), NEVER, NEVER};
    }
    w->work = POOL_ARRAY(p->pool, g->nodes.len + 1, Life);
    for (size_t n = 0; n < g->nodes.len; n++) {
        int64_t at = p->plan->workspace_offset[n];
        w->work[n] = (Life){at, at + node_workspace_bytes(g, &g->nodes.data[n]), NEVER, NEVER};
    }
    add_sources(w);
    for (int c = 0; c < p->n_calls; c++) {
        lengthen(&w->work[p->calls[c].node], c);
        for (int k = 0; k < p->calls[c].n_bufs; k++)
            if (p->calls[c].buf[k].value < g->values.len)
                mention(w, p->calls[c].buf[k].value, c);
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        if (p->plan->offset[g->outputs.data[i].value] >= 0)
            mention(w, g->outputs.data[i].value, ALWAYS);
}

static void mark(bool *set, const Life *l)
{
    if (l->begin >= 0)
        memset(set + l->begin, true, (size_t)(l->end - l->begin));
}

static void mark_lives_at(Watch *w, const Life *life, size_t n, int call)
{
    for (size_t i = 0; i < n; i++)
        if (life[i].first != NEVER && life[i].first < call && life[i].last >= call)
            mark(w->is_live, &life[i]);
}

/* What lies in memory when a call begins. */
static void mark_live(Watch *w, int call)
{
    memset(w->is_live, false, (size_t)w->bytes);
    mark_lives_at(w, w->life, w->program->graph->values.len, call);
    mark_lives_at(w, w->work, w->program->graph->nodes.len, call);
}

static void mark_named(Watch *w, int call)
{
    const StepProgram *p = w->program;
    const Call *c = &p->calls[call];
    memset(w->is_named, false, (size_t)w->bytes);
    for (int k = 0; k < c->n_bufs; k++)
        if (c->buf[k].value < p->graph->values.len)
            mark(w->is_named, &w->life[value_root(p->graph, c->buf[k].value)]);
    mark(w->is_named, &w->work[c->node]);
}

/* --- the arena --- */

static void read_arena(Watch *w, char *to)
{
    RtError err;
    if (!w->device)
        memcpy(to, w->inner->arena, (size_t)w->bytes);
    else
        w->failed |= !cuda_read(w->device, 0, to, w->bytes, &err) || !cuda_wait(w->device, &err);
}

static void write_arena(Watch *w, const char *from)
{
    RtError err;
    if (!w->device)
        memcpy(w->inner->arena, from, (size_t)w->bytes);
    else
        w->failed |= !cuda_write(w->device, 0, from, w->bytes, &err) || !cuda_wait(w->device, &err);
}

static void forget_dead(Watch *w, int call)
{
    read_arena(w, w->before);
    mark_live(w, call);
    for (int64_t i = 0; i < w->bytes; i++)
        if (!w->is_live[i])
            w->before[i] = (char)dead_byte;
    write_arena(w, w->before);
}

static void check_unnamed(Watch *w, int call)
{
    read_arena(w, w->after);
    mark_named(w, call);
    for (int64_t i = 0; i < w->bytes && !w->failed; i++)
        if (!w->is_named[i] && w->before[i] != w->after[i]) {
            w->failed = true;
            CHECK_MSG(false, "%s: call %d (%s) changes byte %lld, which it does not name", w->what,
                      call, w->program->calls[call].label, (long long)i);
        }
}

/* --- running --- */

static Watch *watching;

static void run_watched(ScrimpContext *ctx, int32_t call, ScrimpKernel *kernel, char *const *buf,
                        int64_t n_tasks)
{
    Watch *w = watching;
    (void)ctx;
    if (w->failed)
        return;
    forget_dead(w, call);
    w->inner->run(w->inner, call, kernel, buf, n_tasks);
    check_unnamed(w, call);
}

static ScrimpStep *watched_step;

static void step_watched(ScrimpContext *inner)
{
    ScrimpContext outer = *inner;
    outer.run = run_watched;
    watching->inner = inner;
    watched_step(&outer);
}

static Watch watch_new(const Built *b, const Backend *backend, const char *what)
{
    const char *error = NULL;
    StepTarget target = {.strip_cache = STRIPS_NONE, /* a call touches its own buffers alone */
                         .backend = backend,
                         .target = target_find(NULL),
                         .arch = backend == &cpu_backend ? NULL : "sm_90",
                         .only_look = true};
    size_t n = (size_t)b->plan->arena_bytes + 1;
    Watch w = {.program = step_program(b->pool, b->graph, b->plan, target, &error),
               .what = what,
               .bytes = b->plan->arena_bytes,
               .before = pool_alloc(b->pool, n),
               .after = pool_alloc(b->pool, n),
               .is_live = POOL_ARRAY(b->pool, n, bool),
               .is_named = POOL_ARRAY(b->pool, n, bool)};
    find_lives(&w);
    return w;
}

static void check_end(const Watch *w, const Running *expected, const Running *got, const char *text)
{
    const char *where = w->failed ? "something" : run_difference(expected, got);
    CHECK_MSG(!where, "%s: watching changes %s\n%s", w->what, where, text);
}

static void check_cpu(const Built *b, const Running *expected, const char *text)
{
    Running r;
    Watch w = watch_new(b, &cpu_backend, "on the CPU");
    if (!run_open(&r, b, 2))
        return;
    run_initialize(&r, 1);
    run_fill(&r, 5, 0);
    watching = &w;
    watched_step = b->step->run;
    step_watched(&r.context);
    check_end(&w, expected, &r, text);
    run_close(&r);
}

/* image: the arena as it is before the step, then as it is behind it. */
static bool run_device(Watch *w, const Step *step, Running *image, RtError *err)
{
    int64_t left;
    if (!cuda_arena_map(w->device, w->bytes, &left, err) ||
        !cuda_write(w->device, 0, image->arena.base, w->bytes, err))
        return false;
    CudaStep *loaded = cuda_step_load(w->device, step_watched, step->kernel, step->n_kernels, err);
    bool ok = loaded && cuda_step_run(loaded, err) &&
              cuda_read(w->device, 0, image->arena.base, w->bytes, err) &&
              cuda_wait(w->device, err);
    cuda_step_unload(loaded);
    return ok;
}

static Step *compile_for_device(const Built *b)
{
    const char *error = NULL;
    const char *cache = pool_printf(b->pool, "%s/test-cache", getenv("SCRIMP_BUILD"));
    CodegenOptions o = {.backend = &cuda_backend, .arch = "sm_90", .cache_dir = cache, .jobs = 2};
    Step *step = codegen_compile(b->pool, b->graph, b->plan, &o, &error);
    CHECK_MSG(step, "%s", error);
    return step;
}

static void watch_device(const Built *b, const Step *step, const Running *expected,
                         const char *text)
{
    RtError err = {"no message"};
    Running r;
    Watch w = watch_new(b, &cuda_backend, "on a device");
    if (!run_open(&r, b, 1))
        return;
    run_initialize(&r, 1);
    run_fill(&r, 5, 0);
    w.device = cuda_device_open(&err);
    watching = &w;
    watched_step = step->run;
    CHECK_MSG(w.device && run_device(&w, step, &r, &err), "%s", err.message);
    check_end(&w, expected, &r, text);
    cuda_device_close(w.device);
    run_close(&r);
}

/* In a process of its own: whoever has opened a device compiles no more. */
static void check_device(const Built *b, const Running *expected, const char *text)
{
    Step *step = compile_for_device(b);
    int status = 1;
    if (!step)
        return;
    pid_t child = fork();
    if (child == 0) {
        watch_device(b, step, expected, text);
        exit(test_result());
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    codegen_unload(step);
}

/* --- models --- */

static void check_step(const char *text, const char *budget, bool for_device)
{
    Pool *pool = pool_new();
    Built b;
    Running expected;
    BuildOptions o = {.budget = budget, .for_device = for_device, .strip_cache = STRIPS_NONE};
    if (model_build(pool, text, &o, &b) && run_open(&expected, &b, 1)) {
        run_initialize(&expected, 1);
        run_step(&expected, 5, 0);
        if (for_device)
            check_device(&b, &expected, text);
        else
            check_cpu(&b, &expected, text);
        run_close(&expected);
        codegen_unload(b.step);
    }
    pool_free(pool);
}

static void check_both(const char *text, const char *budget)
{
    check_step(text, budget, false);
    if (target_find(NULL)->fma)
        check_step(text, budget, true);
}

static void check_model(const char *text)
{
    check_both(text, "min");
    if (sample_all())
        check_both(text, NULL);
}

int main(void)
{
    Pool *pool = pool_new();
    setenv("SCRIMP_CUDA_PATH", pool_printf(pool, "%s/cuda-sim", getenv("SCRIMP_BUILD")), 1);
    for (int i = 0; i < FIXED_MODELS; i++)
        check_model(fixed_models[i].text);
    int models = sample_number("SCRIMP_MODELS", 0);
    for (int family = 0; models == 0 && family < MODEL_FAMILIES; family++)
        check_model(shared_random_model(pool, (ModelFamily)family));
    for (int family = 0; family < MODEL_FAMILIES; family++)
        for (int i = 0; i < models; i++)
            check_model(random_model(pool, (uint64_t)(i + 1), (ModelFamily)family, 4,
                                     (ModelLimits){.no_dropout = false}));
    pool_free(pool);
    return test_result();
}
