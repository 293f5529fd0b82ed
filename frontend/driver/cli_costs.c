/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_costs.h"
#include "frontend/driver/cli_codegen.h"
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

/* The processor's name, as far as the system tells one. */
static const char *processor_name(Pool *pool)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    const char *name = "unknown";
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        name = pool_printf(pool, "%.*s", (int)strcspn(colon + 1, "\n"), colon + 1);
        break;
    }
    if (f)
        fclose(f);
    return name + (*name == ' ');
}

/* A file that cannot be understood is as good as none: what it lacks is measured again. */
static void load(KernelCosts *c)
{
    size_t n = 0;
    json_t *value;
    const char *fault, *key, *text = cache_get(c->cli->pool, &c->cache, c->key, SUFFIX, &n, &fault);
    if (fault)
        fprintf(stderr,
                "note: the measured costs %s.%s in the cache %s cannot be used (%s); they "
                "are measured again\n",
                c->key, SUFFIX, c->cache.dir, fault);
    json_t *root = text ? json_loadb(text, n, 0, NULL) : NULL;
    const char *format = json_string_value(json_object_get(root, "format"));
    if (format && strcmp(format, FORMAT) == 0)
        json_object_foreach(json_object_get(root, "kernels"), key,
                            value) if (json_is_real(value) && json_real_value(value) >= 0)
            set_seconds(c, key, json_real_value(value));
    json_decref(root);
}

static bool open_table(Cli *cli, KernelCosts *c, const char **error)
{
    const CodegenOptions o = cli_codegen_options(cli, NULL);
    *c = (KernelCosts){.cli = cli, .seconds = map_new(cli->pool)};
    const Target *target = codegen_target(cli->pool, cli->build.march, false, error);
    if (!target || !cache_open(cli->pool, o.cache_dir, o.no_cache, &c->cache, error))
        return false;
    c->machine = processor_name(cli->pool);
    const char *place = pool_printf(cli->pool, "%s|%s|%s|%d", FORMAT, c->machine, target->name,
                                    cli->build.threads ? (int)cli->build.threads : cores_allowed());
    c->key = content_key(cli->pool, place, strlen(place));
    load(c);
    return true;
}

static bool save(const KernelCosts *c, const char **error)
{
    if (!c->cache.dir)
        return true;
    json_t *kernels = json_object();
    for (size_t i = 0; i < c->seconds.len; i++) {
        double seconds;
        memcpy(&seconds, &c->seconds.entries[i].value, sizeof seconds);
        json_object_set_new(kernels, c->seconds.entries[i].key, json_real(seconds));
    }
    json_t *root =
        json_pack("{s:s,s:s,s:o}", "format", FORMAT, "machine", c->machine, "kernels", kernels);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    bool ok = text && cache_put(c->cli->pool, &c->cache, c->key, SUFFIX, text, strlen(text), error);
    if (!text)
        *error = "out of memory";
    free(text);
    json_decref(root);
    return ok;
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
    CallList l = codegen_list_calls(pool, g, target_find(c->cli->build.march));
    double *of_node = POOL_ARRAY(c->cli->pool, g->nodes.len + 1, double);
    const char *missing = NULL;
    for (int i = 0; i < l.n && !missing; i++) {
        double seconds = 0;
        if (!find_seconds(c, key_of(pool, &l, i), &seconds))
            missing = pool_strdup(c->cli->pool, l.calls[i].label);
        of_node[l.calls[i].node] += seconds;
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

/* --- measuring --- */

/* Equal calls differ in what the processor's caches hold when they begin: their mean. */
static void add_calls(KernelCosts *c, const CallList *l, const double *seconds)
{
    Pool *pool = pool_new_child(c->cli->pool);
    Map first = map_new(pool);
    int *count = POOL_ARRAY(pool, (size_t)l->n + 1, int);
    double *sum = POOL_ARRAY(pool, (size_t)l->n + 1, double);
    for (int i = 0; i < l->n; i++) {
        const char *key = key_of(pool, l, i);
        if (!map_find(&first, key))
            map_set(&first, key, (uint64_t)i);
        uint64_t k = *map_find(&first, key);
        sum[k] += seconds[i];
        count[k]++;
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
    if (!measurement_open(c->cli, program, &m))
        return EXIT_USER;
    const Step *step = m.running.session.step;
    CallList l = {.calls = step->calls, .key = step->call_key, .n = step->n_calls};
    const double *medians = measurement_medians(&m, MEASURED_STEPS);
    if (medians)
        add_calls(c, &l, medians);
    measurement_close(&m);
    if (!medians)
        return EXIT_USER;
    if (!save(c, &error))
        return cli_error(c->cli, EXIT_USER, "E801", NULL, "%s", error);
    return EXIT_OK;
}

/* What the kernels of the step with masks take, or of the one without, where not all is known. */
static ExitCode measure_missing(KernelCosts *c, const Ast *ast, const ProgramOptions *o,
                                const PlanRequest *request, MaskUse masks)
{
    Program p;
    ProgramOptions plain = *o;
    /* What these costs allow is not known yet. */
    Budget budget = {.kind = request->budget.kind == BUDGET_NONE ? BUDGET_NONE : BUDGET_MIN};
    plain.observer = NULL;
    plain.pipeline = pipeline_before(c->cli->pool, "remat");
    plain.plan.cost = cost_models;
    plain.plan.masks = masks;
    ExitCode code = program_build(c->cli, ast, &plain, NULL, &p);
    if (code != EXIT_OK || !add_up(c, p.graph))
        return code;
    plain.pipeline = NULL;
    plain.plan.budget = &budget;
    plain.plan.no_views = true; /* solvers see the step without them */
    code = program_build(c->cli, ast, &plain, NULL, &p);
    return code == EXIT_OK ? measure(c, &p) : code;
}

ExitCode cli_measure_costs(Cli *cli, const Ast *ast, const ProgramOptions *o,
                           const PlanRequest *request, MeasuredCosts **out)
{
    const char *error = NULL;
    KernelCosts *c = POOL_NEW(cli->pool, KernelCosts);
    if (cli_backend(cli) != &cpu_backend)
        return cli_error(cli, EXIT_USER, "E806", "another --cost, or leave it out",
                         "--cost profile measures kernels of the CPU, not those of --device %s",
                         cli->build.device);
    if (!open_table(cli, c, &error))
        return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
    ExitCode code = EXIT_OK;
    if (request->masks != MASKS_NEVER)
        code = measure_missing(c, ast, o, request, MASKS_ALWAYS);
    if (code == EXIT_OK && request->masks != MASKS_ALWAYS)
        code = measure_missing(c, ast, o, request, MASKS_NEVER);
    if (code == EXIT_OK) {
        *out = POOL_NEW(cli->pool, MeasuredCosts);
        **out = (MeasuredCosts){measured_cost, c};
    }
    return code;
}
