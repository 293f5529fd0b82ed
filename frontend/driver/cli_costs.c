/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_costs.h"
#include "frontend/driver/cli_child.h"
#include "frontend/driver/cli_codegen.h"
#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_program.h"

#include "codegen/build/cache.h"
#include "codegen/build/compile.h"
#include "codegen/build/hash.h"
#include "frontend/driver/cli_measure.h"
#include "ir/support/bug.h"
#include "ir/support/map.h"
#include "runtime/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "scrimp.costs.1", SUFFIX[] = "costs";
/* The passes that decide which kernels there are. */
enum { MEASURED_STEPS = 7 };

typedef struct KernelCosts {
    Cli *cli;
    const char *machine, *key;
    CodegenOptions options;
    Cache cache;
    Map seconds;        /* "kernel key:tasks" -> the bits of a double */
    const Graph *graph; /* whose nodes are added up, */
    double *of_node;    /* by NodeId */
} KernelCosts;

/* --- the table --- */

static void set_seconds(KernelCosts *c, const char *key, double seconds)
{
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    map_set(&c->seconds, key, bits);
}

static bool find_seconds(const KernelCosts *c, const char *key, double *out)
{
    const uint64_t *bits = map_find(&c->seconds, key);
    if (bits)
        memcpy(out, bits, sizeof *out);
    return bits != NULL;
}

static void read_table(KernelCosts *c, const char *text, size_t n)
{
    const char *key;
    json_t *value, *root = json_loadb(text, n, 0, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    if (format && strcmp(format, FORMAT) == 0)
        json_object_foreach(json_object_get(root, "kernels"), key,
                            value) if (json_is_real(value) && json_real_value(value) >= 0)
            set_seconds(c, key, json_real_value(value));
    json_decref(root);
}

/* NULL when memory runs out. */
static const char *table_text(const KernelCosts *c)
{
    json_t *kernels = json_object();
    for (size_t i = 0; i < c->seconds.len; i++) {
        double seconds;
        memcpy(&seconds, &c->seconds.entries[i].value, sizeof seconds);
        json_object_set_new(kernels, c->seconds.entries[i].key, json_real(seconds));
    }
    json_t *root =
        json_pack("{s:s,s:s,s:o}", "format", FORMAT, "machine", c->machine, "kernels", kernels);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    const char *kept = text ? pool_strdup(c->cli->pool, text) : NULL;
    free(text);
    json_decref(root);
    return kept;
}

/* A file that cannot be understood is as good as none: what it lacks is measured again. */
static void load(KernelCosts *c)
{
    size_t n = 0;
    const char *fault, *text = cache_get(c->cli->pool, &c->cache, c->key, SUFFIX, &n, &fault);
    if (fault)
        fprintf(stderr,
                "note: the measured costs %s.%s in the cache %s cannot be used (%s); they "
                "are measured again\n",
                c->key, SUFFIX, c->cache.dir, fault);
    if (text)
        read_table(c, text, n);
}

/* What kernels run on, and what else their times depend on. */
static const char *place_of(KernelCosts *c, const Target *target)
{
    Cli *cli = c->cli;
    const CudaIdentity *device = cli->state->device;
    c->machine = device ? device->name : machine_processor_name(cli->pool);
    if (device)
        return pool_printf(cli->pool, "%s|%s|%s", FORMAT, c->machine, device->arch);
    return pool_printf(cli->pool, "%s|%s|%s|%d", FORMAT, c->machine, target->name,
                       cli->build.threads ? (int)cli->build.threads : cores_allowed());
}

static ExitCode open_table(Cli *cli, KernelCosts *c)
{
    const char *arch, *error = NULL;
    if (!cli_device_arch(cli, &arch))
        return EXIT_USER;
    *c = (KernelCosts){
        .cli = cli, .options = cli_codegen_options(cli, arch), .seconds = map_new(cli->pool)};
    const Target *target = codegen_target(cli->pool, cli->build.march, false, &error);
    if (!target ||
        !cache_open(cli->pool, c->options.cache_dir, c->options.no_cache, &c->cache, &error))
        return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
    const char *place = place_of(c, target);
    c->key = content_key(cli->pool, place, strlen(place));
    load(c);
    return EXIT_OK;
}

static bool save(const KernelCosts *c, const char **error)
{
    if (!c->cache.dir)
        return true;
    const char *text = table_text(c);
    if (!text)
        *error = "out of memory";
    return text && cache_put(c->cli->pool, &c->cache, c->key, SUFFIX, text, strlen(text), error);
}

/* --- nodes --- */

static const char *key_of(Pool *pool, const CallList *l, int i)
{
    return pool_printf(pool, "%s:%lld", l->key[i], (long long)l->calls[i].n_tasks);
}

/* Adds up the calls of every node.  A call that has not been measured, or NULL; c->graph is then
 * as it was. */
static const char *add_up(KernelCosts *c, const Graph *g)
{
    Pool *pool = pool_new_child(c->cli->pool);
    CallList l = {0};
    double *of_node = POOL_ARRAY(c->cli->pool, g->nodes.len + 1, double);
    const char *missing = NULL, *error;
    if (!codegen_list_calls(pool, g, &c->options, &l, &error))
        missing = pool_strdup(c->cli->pool, error);
    for (int i = 0; i < l.n && !missing; i++) {
        double seconds = 0;
        if (!find_seconds(c, key_of(pool, &l, i), &seconds))
            missing = pool_strdup(c->cli->pool, l.calls[i].label);
        of_node[l.calls[i].node] += seconds * (double)call_times(&l.calls[i]);
    }
    if (!missing) {
        c->graph = g;
        c->of_node = of_node;
    }
    pool_free(pool);
    return missing;
}

/* What was measured is enough for every build of the model: the step with masks and the one without
 * were, and but for pieces that lie elsewhere, which solvers do not see, the kernels of a step do
 * not depend on its plan (tests/property/test_plan_kernels.c). */
static double measured_cost(void *user, const Graph *g, NodeId node)
{
    KernelCosts *c = user;
    const char *missing = c->graph == g ? NULL : add_up(c, g);
    if (missing)
        BUG("kernel %s was not measured", missing);
    return c->of_node[node];
}

static void forget_graph(void *user)
{
    KernelCosts *c = user;
    c->graph = NULL;
}

/* --- measuring --- */

/* Equal calls differ in what the processor's caches hold when they begin: their mean. */
static void add_calls(KernelCosts *c, const CallList *l, const double *seconds)
{
    Pool *pool = pool_new_child(c->cli->pool);
    Map first = map_new(pool);
    double *count = POOL_ARRAY(pool, (size_t)l->n + 1, double);
    double *sum = POOL_ARRAY(pool, (size_t)l->n + 1, double);
    for (int i = 0; i < l->n; i++) {
        const char *key = key_of(pool, l, i);
        if (!map_find(&first, key))
            map_set(&first, key, (uint64_t)i);
        uint64_t k = *map_find(&first, key);
        sum[k] += seconds[i];
        count[k] += (double)call_times(&l->calls[i]);
    }
    for (size_t i = 0; i < first.len; i++) {
        uint64_t k = first.entries[i].value;
        set_seconds(c, first.entries[i].key, sum[k] / count[k]);
    }
    pool_free(pool);
}

/* Another order than that of the measured step never runs other kernels. */
static ExitCode measure(KernelCosts *c, const Program *program)
{
    Measurement m;
    const char *error = NULL;
    bool no_strips = c->cli->build.no_strips;
    c->cli->build.no_strips = true; /* each kernel by itself */
    bool opened = measurement_open(c->cli, program, &m);
    c->cli->build.no_strips = no_strips;
    if (!opened)
        return machine_failure(c->cli);
    const Step *step = m.running.session.step;
    CallList l = {.calls = step->calls, .key = step->call_key, .n = step->n_calls};
    const double *medians = measurement_medians(&m, MEASURED_STEPS);
    if (medians)
        add_calls(c, &l, medians);
    measurement_close(&m);
    if (!medians)
        return machine_failure(c->cli);
    if (!save(c, &error))
        return cli_error(c->cli, EXIT_USER, "E801", NULL, "%s", error);
    return EXIT_OK;
}

typedef struct Measuring {
    KernelCosts *costs;
    const Ast *ast;
    const ProgramOptions *options;
    const PlanRequest *request;
} Measuring;

/* What the kernels of the step with masks take, or of the one without, where not all is known; with
 * normalized images made where they are read, or as tensors. */
static ExitCode measure_missing(const Measuring *m, MaskUse masks, bool no_norms)
{
    Program p;
    KernelCosts *c = m->costs;
    ProgramOptions plain = *m->options;
    /* What these costs allow is not known yet. */
    Budget budget = {.kind = m->request->budget.kind == BUDGET_NONE ? BUDGET_NONE : BUDGET_MIN};
    plain.observer = NULL;
    plain.pipeline = pipeline_before(c->cli->pool, "remat");
    plain.plan.cost = cost_models;
    plain.plan.masks = masks;
    plain.plan.no_norms = no_norms;
    plain.plan.no_plain = true;
    ExitCode code = program_build(c->cli, m->ast, &plain, NULL, &p);
    if (code != EXIT_OK || !add_up(c, p.graph))
        return code;
    plain.pipeline = NULL;
    plain.plan.budget = &budget;
    plain.plan.no_views = true; /* solvers see the step without them */
    code = program_build(c->cli, m->ast, &plain, NULL, &p);
    return code == EXIT_OK ? measure(c, &p) : code;
}

static ExitCode measure_all(const Measuring *m)
{
    ExitCode code = EXIT_OK;
    for (int no_norms = m->request->no_norms; no_norms < 2; no_norms++) {
        if (code == EXIT_OK && m->request->masks != MASKS_NEVER)
            code = measure_missing(m, MASKS_ALWAYS, no_norms);
        if (code == EXIT_OK && m->request->masks != MASKS_ALWAYS)
            code = measure_missing(m, MASKS_NEVER, no_norms);
    }
    return code;
}

static const char *measure_in_child(void *user, ExitCode *code)
{
    const Measuring *m = user;
    m->costs->cli->state->told_library = true; /* the parent says it */
    *code = measure_all(m);
    return *code == EXIT_OK ? table_text(m->costs) : NULL;
}

/* What is compiled with these costs is forked, so that the device is opened in a child. */
static ExitCode measure_on_device(Measuring *m)
{
    const char *text;
    ExitCode code = cli_run_in_child(m->costs->cli, measure_in_child, m, &text);
    if (code == EXIT_OK)
        read_table(m->costs, text, strlen(text));
    return code;
}

ExitCode cli_measure_costs(Cli *cli, const Ast *ast, const ProgramOptions *o,
                           const PlanRequest *request, MeasuredCosts **out)
{
    KernelCosts *c = POOL_NEW(cli->pool, KernelCosts);
    Measuring m = {c, ast, o, request};
    ExitCode code = open_table(cli, c);
    if (code == EXIT_OK)
        code = cli->state->device ? measure_on_device(&m) : measure_all(&m);
    if (code == EXIT_OK) {
        *out = POOL_NEW(cli->pool, MeasuredCosts);
        **out = (MeasuredCosts){measured_cost, forget_graph, c};
    }
    return code;
}
