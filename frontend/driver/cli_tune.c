/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_tune.h"

#include "frontend/driver/cli_child.h"
#include "frontend/driver/cli_codegen.h"
#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_signals.h"
#include "frontend/driver/cli_tuning.h"

#include "ir/support/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernels of a step that have variants. */
typedef struct Tune {
    Cli *cli;
    const Program *program;
    int64_t pairs;
    Map index; /* problem -> kernel */
    TuneResult *result;
    int n_variants;         /* of the family that has most */
    const char **signature; /* [variant][kernel]: what code it runs */
    double *gain;           /* by kernel: of its variant so far */
} Tune;

/* --- problems --- */

static const char *same_code_as(const Tune *t, int variant, int kernel)
{
    return t->signature[(size_t)variant * (size_t)t->result->n_kernels + (size_t)kernel];
}

/* Whether a variant runs code that no variant before it runs. */
static bool is_new(const Tune *t, int variant, int kernel)
{
    for (int v = 0; v < variant; v++)
        if (strcmp(same_code_as(t, v, kernel), same_code_as(t, variant, kernel)) == 0)
            return false;
    return true;
}

static bool list_calls(const Tune *t, const Tuning *tuning, CallList *out)
{
    const char *error = NULL;
    CodegenOptions o = cli_codegen_options(t->cli, NULL);
    o.tuning = tuning;
    if (codegen_list_calls(t->cli->pool, t->program->graph, &o, out, &error))
        return true;
    cli_error(t->cli, EXIT_USER, "E801", NULL, "%s", error);
    return false;
}

static void find_kernels(Tune *t, const CallList *l)
{
    TuneResult *r = t->result;
    r->kernel = POOL_ARRAY(t->cli->pool, (size_t)l->n + 1, TunedKernel);
    for (int i = 0; i < l->n; i++) {
        const Call *c = &l->calls[i];
        if (!c->problem)
            continue;
        const uint64_t *found = map_find(&t->index, c->problem);
        int k = found ? (int)*found : r->n_kernels++;
        if (!found) {
            map_set(&t->index, c->problem, (uint64_t)k);
            r->kernel[k].problem = c->problem;
        }
        if (c->flops > 0 || !r->kernel[k].label)
            r->kernel[k].label = c->label; /* rather than that of packing */
        r->kernel[k].calls += c->flops > 0 ? call_times(c) : 0;
    }
}

static void sign(Tune *t, int variant, const CallList *l)
{
    Pool *pool = t->cli->pool;
    int n = t->result->n_kernels;
    for (int k = 0; k < n; k++)
        t->signature[variant * n + k] = "";
    for (int i = 0; i < l->n; i++) {
        const Call *c = &l->calls[i];
        if (!c->problem)
            continue;
        const char **s = &t->signature[variant * n + (int)*map_find(&t->index, c->problem)];
        *s = pool_printf(pool, "%s %s:%lld", *s, l->key[i], (long long)c->n_tasks);
    }
}

/* Nothing is compiled for this. */
static bool look(Tune *t)
{
    Pool *pool = t->cli->pool;
    CallList l;
    t->index = map_new(pool);
    for (const KernelFamily *const *f = cpu_backend.families; *f; f++)
        if (family_variants(*f) > t->n_variants)
            t->n_variants = family_variants(*f);
    if (!list_calls(t, NULL, &l))
        return false;
    find_kernels(t, &l);
    t->signature =
        POOL_ARRAY(pool, (size_t)t->n_variants * (size_t)(t->result->n_kernels + 1), const char *);
    t->gain = POOL_ARRAY(pool, (size_t)t->result->n_kernels + 1, double);
    sign(t, 0, &l);
    for (int v = 1; v < t->n_variants; v++) {
        Tuning all = {.chosen = map_new(pool), .all = v};
        if (!list_calls(t, &all, &l))
            return false;
        sign(t, v, &l);
    }
    return true;
}

/* --- one round: a child that runs steps of both in turns --- */

typedef struct Round {
    const Tune *tune;
    const Tuning *tuning; /* of B; A has the defaults */
} Round;

typedef struct Side {
    Cli cli;
    DriverState state;
    Measurement m;
} Side;

static bool open_side(const Round *r, const Tuning *tuning, Side *s)
{
    s->cli = *r->tune->cli;
    s->state = *s->cli.state;
    s->state.tuning = tuning;
    s->state.knows_tuning = true;
    s->cli.state = &s->state;
    s->cli.output.quiet = true;    /* the parent tells how far it is */
    s->cli.build.no_strips = true; /* each kernel by itself */
    return measurement_open(&s->cli, r->tune->program, &s->m);
}

static json_t *numbers(const double *x, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(x[i]));
    return list;
}

/* By kernel: the seconds that it takes in each step. */
static json_t *kernel_times(const Tune *t, const Measurement *m, int64_t pairs)
{
    const Step *step = m->running.session.step;
    size_t n = (size_t)t->result->n_kernels, p = (size_t)pairs;
    double *sum = POOL_ARRAY(t->cli->pool, n * p + 1, double);
    json_t *all = json_array();
    for (int c = 0; c < step->n_calls; c++) {
        const char *problem = step->calls[c].problem;
        const uint64_t *k = problem ? map_find(&t->index, problem) : NULL;
        for (size_t i = 0; i < p && k; i++)
            sum[*k * p + i] += m->times.call[i * (size_t)step->n_calls + (size_t)c];
    }
    for (size_t k = 0; k < n; k++)
        json_array_append_new(all, numbers(sum + k * p, pairs));
    return all;
}

static const char *answer_of(const Tune *t, const Side *a, const Side *b, int64_t pairs)
{
    json_t *o = json_pack("{s:o,s:o,s:o,s:o}", "a", kernel_times(t, &a->m, pairs), "b",
                          kernel_times(t, &b->m, pairs), "step_a", numbers(a->m.times.step, pairs),
                          "step_b", numbers(b->m.times.step, pairs));
    char *text = json_dumps(o, JSON_REAL_PRECISION(17));
    const char *kept = text ? pool_strdup(t->cli->pool, text) : NULL;
    free(text);
    json_decref(o);
    return kept;
}

static const char *run_round(void *user, ExitCode *code)
{
    const Round *r = user;
    const Tune *t = r->tune;
    Side a = {0}, b = {0};
    bool ok = open_side(r, NULL, &a) && open_side(r, r->tuning, &b);
    int64_t pairs = ok && !signals_caught() ? turns_take(&a.m, &b.m, t->pairs) : 0;
    const char *text = "{}"; /* interrupted: of this round nothing counts */
    if (pairs == t->pairs)
        text = answer_of(t, &a, &b, pairs);
    else if (!signals_caught())
        *code = EXIT_USER;
    measurement_close(&a.m);
    measurement_close(&b.m);
    return *code == EXIT_OK ? text : NULL;
}

/* What the child has measured; NULL: a signal was caught. */
static ExitCode measure(const Tune *t, const Tuning *tuning, json_t **out)
{
    const char *text;
    Round r = {t, tuning};
    *out = NULL;
    ExitCode code = cli_run_in_child(t->cli, run_round, &r, &text);
    if (code != EXIT_OK)
        return signals_caught() ? EXIT_OK : code;
    json_t *o = json_loads(text, 0, NULL);
    if (json_object_get(o, "step_a"))
        *out = o;
    else
        json_decref(o);
    return EXIT_OK;
}

static const double *times_of(const Tune *t, const json_t *list)
{
    double *x = POOL_ARRAY(t->cli->pool, (size_t)t->pairs + 1, double);
    for (size_t i = 0; i < (size_t)t->pairs; i++)
        x[i] = json_real_value(json_array_get(list, i));
    return x;
}

typedef struct Compared {
    double before, after;
    Ratio ratio;
} Compared;

static Compared compare(const Tune *t, const json_t *a, const json_t *b)
{
    const double *before = times_of(t, a), *after = times_of(t, b);
    return (Compared){turns_spread(t->cli->pool, before, t->pairs).median,
                      turns_spread(t->cli->pool, after, t->pairs).median,
                      turns_ratio(t->cli->pool, after, before, t->pairs)};
}

static Compared compare_kernel(const Tune *t, const json_t *measured, int k)
{
    return compare(t, json_array_get(json_object_get(measured, "a"), (size_t)k),
                   json_array_get(json_object_get(measured, "b"), (size_t)k));
}

/* --- what is faster --- */

static bool anything_new(const Tune *t, int variant)
{
    for (int k = 0; k < t->result->n_kernels; k++)
        if (is_new(t, variant, k))
            return true;
    return false;
}

static void tell_round(const Tune *t)
{
    const TuneResult *r = t->result;
    if (!t->cli->output.quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\rtuning, round %d of at most %d ", r->done + 1, r->rounds);
}

/* Faster in 95% of draws, and of such variants the fastest. */
static void judge(const Tune *t, const json_t *measured, int variant)
{
    for (int k = 0; k < t->result->n_kernels; k++) {
        TunedKernel *kernel = &t->result->kernel[k];
        Compared c = compare_kernel(t, measured, k);
        if (!kernel->variant)
            kernel->before = kernel->after = c.before;
        if (!is_new(t, variant, k) || !(c.ratio.low > 1) || c.ratio.median <= t->gain[k])
            continue;
        t->gain[k] = c.ratio.median;
        kernel->variant = variant;
        kernel->before = c.before;
        kernel->after = c.after;
    }
}

static ExitCode try_variants(Tune *t)
{
    ExitCode code = EXIT_OK;
    for (int v = 1; v < t->n_variants && code == EXIT_OK && !signals_caught(); v++) {
        json_t *measured;
        Tuning all = {.chosen = map_new(t->cli->pool), .all = v};
        if (!anything_new(t, v))
            continue;
        tell_round(t);
        code = measure(t, &all, &measured);
        if (measured) {
            judge(t, measured, v);
            t->result->done++;
        }
        json_decref(measured);
    }
    return code;
}

static Tuning chosen(const Tune *t)
{
    Tuning tuning = {.chosen = map_new(t->cli->pool)};
    for (int k = 0; k < t->result->n_kernels; k++)
        map_set(&tuning.chosen, t->result->kernel[k].problem,
                (uint64_t)t->result->kernel[k].variant);
    return tuning;
}

static bool any_chosen(const TuneResult *r)
{
    for (int k = 0; k < r->n_kernels; k++)
        if (r->kernel[k].variant)
            return true;
    return false;
}

/* Back to the default where the variant is not faster once more, all chosen ones together.  How
 * many went back. */
static int confirm(const Tune *t, const json_t *measured)
{
    int back = 0;
    for (int k = 0; k < t->result->n_kernels; k++) {
        TunedKernel *kernel = &t->result->kernel[k];
        Compared c = compare_kernel(t, measured, k);
        bool faster = c.ratio.low > 1;
        back += kernel->variant && !faster;
        kernel->variant = faster ? kernel->variant : 0;
        kernel->before = c.before;
        kernel->after = kernel->variant ? c.after : c.before;
    }
    return back;
}

/* Of many variants one is fast by chance: those that are left have to be so a second time, and the
 * step with them is measured. */
static ExitCode confirm_all(Tune *t)
{
    TuneResult *r = t->result;
    for (int again = 1; again && any_chosen(r) && !signals_caught();) {
        json_t *measured;
        const Tuning tuning = chosen(t);
        r->rounds++;
        tell_round(t);
        ExitCode code = measure(t, &tuning, &measured);
        if (!measured)
            return code;
        r->done++;
        Compared step =
            compare(t, json_object_get(measured, "step_a"), json_object_get(measured, "step_b"));
        again = confirm(t, measured);
        json_decref(measured);
        r->before = step.before;
        r->after = any_chosen(r) ? step.after : 0;
        r->ratio = step.ratio;
    }
    return EXIT_OK;
}

static void reject(TuneResult *r)
{
    r->rejected = true;
    for (int k = 0; k < r->n_kernels; k++) {
        r->kernel[k].variant = 0;
        r->kernel[k].after = r->kernel[k].before;
    }
}

/* --- all of it --- */

bool tune_possible(Cli *cli)
{
    const char *wrong = NULL;
    const char *march = cli->build.march;
    if (cli_backend(cli) != &cpu_backend)
        wrong = "kernels of a --device have no variants: tuning is for the processor";
    else if (march && strcmp(march, "native") != 0)
        wrong = "with --march kernels are the same on every machine: tuning is for this one";
    else if (cli->build.no_cache || cli->build.no_tuning)
        wrong = "what tuning finds is kept in the cache: leave --no-cache and --no-tuning out";
    else if (cli->build.inference)
        wrong = "tuning measures training steps: leave --inference or --tune out";
    if (wrong)
        cli_error(cli, EXIT_USER, "E407", NULL, "%s", wrong);
    return !wrong;
}

static bool both_fit(Cli *cli, const Program *p)
{
    RtError err;
    int64_t both, one = p->plan->arena_bytes;
    if (!size_add(one, one, &both))
        both = INT64_MAX;
    if (arena_fits(both, &err))
        return true;
    cli_error(cli, EXIT_USER, "E804", "tune with a smaller batch or --budget",
              "two arenas are in memory at once, of %s each: %s", bytes_text(cli->pool, one),
              err.message);
    return false;
}

/* What was not decided when a signal came is measured another time. */
static ExitCode save(Tune *t, bool all)
{
    const char *error = NULL;
    TuningTable *table = POOL_NEW(t->cli->pool, TuningTable);
    TuneResult *r = t->result;
    Map decided = map_new(t->cli->pool);
    for (int k = 0; k < r->n_kernels; k++)
        if (all || r->kernel[k].variant)
            map_set(&decided, r->kernel[k].problem, (uint64_t)r->kernel[k].variant);
    if (!tuning_save(t->cli, &decided, table, &error))
        return cli_error(t->cli, EXIT_USER, "E801", NULL, "%s", error);
    r->processor = table->machine;
    t->cli->state->tuning = &table->tuning;
    t->cli->state->knows_tuning = true;
    return EXIT_OK;
}

static void name_variants(TuneResult *r)
{
    for (int k = 0; k < r->n_kernels; k++)
        for (const KernelFamily *const *f = cpu_backend.families; *f; f++)
            if (strncmp(r->kernel[k].problem, (*f)->name, strlen((*f)->name)) == 0 &&
                r->kernel[k].problem[strlen((*f)->name)] == ' ')
                r->kernel[k].name = (*f)->variant_name(r->kernel[k].variant);
}

ExitCode tune_model(Cli *cli, const Program *p, int64_t pairs, TuneResult *out)
{
    *out = (TuneResult){0};
    Tune t = {.cli = cli, .program = p, .pairs = pairs, .result = out};
    if (!both_fit(cli, p) || !look(&t))
        return EXIT_USER;
    for (int v = 1; v < t.n_variants; v++)
        out->rounds += anything_new(&t, v);
    signals_catch();
    ExitCode code = try_variants(&t);
    if (code == EXIT_OK)
        code = confirm_all(&t);
    if (out->done && !cli->output.quiet && isatty(STDERR_FILENO))
        fputc('\n', stderr);
    if (code == EXIT_OK && out->after > 0 && out->ratio.high < 1)
        reject(out);
    if (code == EXIT_OK)
        code = save(&t, !signals_caught());
    name_variants(out);
    return code;
}

static bool all_known(const Tune *t, const Map *known)
{
    for (int k = 0; k < t->result->n_kernels; k++)
        if (!map_find(known, t->result->kernel[k].problem))
            return false;
    return true;
}

ExitCode tune_if_asked(Cli *cli, const Program *p)
{
    const char *error = NULL;
    TuneResult r = {0};
    Tune t = {.cli = cli, .program = p, .result = &r};
    TuningTable table;
    if (!cli->build.tune)
        return EXIT_OK;
    if (!tune_possible(cli) || !look(&t))
        return EXIT_USER;
    if (!tuning_open(cli, true, &table, &error))
        return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
    if (all_known(&t, &table.tuning.chosen))
        return EXIT_OK;
    ExitCode code = tune_model(cli, p, TUNE_PAIRS, &r);
    int n = 0;
    for (int k = 0; k < r.n_kernels; k++)
        n += r.kernel[k].variant != 0;
    if (code == EXIT_OK && !cli->output.quiet && !signals_caught())
        fprintf(stderr, "tuned: of %d kernels with variants, %d are faster than the default%s\n",
                r.n_kernels, n, r.rejected ? ", but not all of them together" : "");
    return code;
}
