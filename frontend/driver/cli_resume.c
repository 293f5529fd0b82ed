/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_resume.h"
#include "frontend/driver/cli_options.h"
#include "frontend/driver/cli_program.h"

#include "ir/print.h"
#include "ir/text.h"
#include "runtime/checkpoint.h"
#include "runtime/rng.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of the settings that are no fields of the train section. */
static const char OPTIONS[] = "options", MODEL[] = "model", EXAMPLES[] = "examples",
                  OVERFIT[] = "overfit", DENORMALS[] = "keep_denormals", EXACT[] = "exact",
                  CHUNKS[] = "no_chunks", LEFT_OUT[] = "left_out", NETWORK[] = "network",
                  METRICS[] = "metrics", NONE[] = "none";

/* Fields that a run keeps: the optimizer's state, and what decides which numbers a step sees.  All
 * others of the train section may change. */
static bool is_fixed(const char *key)
{
    static const char *const fixed[] = {
        "optim",    "accumulate", "held_out",       "held_out_is_part",
        "seed",     "data",       "batch",          "length",
        "chars",    "size",       "resize",         "augment",
        "mean_red", "mean_green", "mean_blue",      "std_red",
        "columns",  "separator",  "no_header",      "in_order",
        "rate",     "std_green",  "std_blue",       EXAMPLES,
        OVERFIT,    DENORMALS,    "accumulate_sum", "parts"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (strcmp(key, fixed[i]) == 0)
            return true;
    return false;
}

/* With running means the optimizer has tensors that it has not without; how much of them stays may
 * change. */
static bool forbids(const char *key, const char *then, const char *now)
{
    return is_fixed(key) ||
           (strcmp(key, "ema") == 0 && (strcmp(then, NONE) == 0 || strcmp(now, NONE) == 0));
}

static bool is_loss(const TrainSpec *t, const char *output)
{
    bool found = t->n_goals == 0 && strcmp(output, "loss") == 0;
    for (int i = 0; i < t->n_goals; i++)
        found = found || strcmp(output, t->goal[i].loss) == 0;
    return found;
}

/* Takes the metrics off, and what only they need; their names, with commas between them. */
static const char *cut_metrics(Pool *pool, Graph *g)
{
    const char *names = "";
    size_t kept = 0;
    for (size_t i = 0; i < g->outputs.len; i++) {
        const Output *o = &g->outputs.data[i];
        if (is_loss(&g->train, o->name))
            g->outputs.data[kept++] = *o;
        else
            names = pool_printf(pool, "%s%s%s", names, *names ? ", " : "", o->name);
    }
    g->outputs.len = kept;
    pass_dce(&(PassContext){.graph = g, .pool = pool});
    return *names ? names : NONE;
}

static const char *graph_hash(Pool *pool, const Graph *g)
{
    StrBuf text = strbuf_new(pool);
    graph_print(g, (PrintOptions){.no_loc = true}, &text);
    return pool_printf(pool, "%016" PRIx64, hash_bytes(text.text, text.len, 0));
}

static void put(json_t *settings, const char *key, const char *value)
{
    json_object_set_new(settings, key, json_string(value));
}

/* Of the graph as the file describes it, without places, annotations and the train section: all of
 * it, as runs of older builds have it, and what training needs of it. */
static void put_model(Cli *cli, const Ast *ast, json_t *settings)
{
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_TRAIN);
    Graph *g = frontend_lower(cli->pool, cli->diag, ast, &o);
    diag_clear(cli->diag); /* the program was built before: nothing new is said here */
    for (size_t n = 0; n < g->nodes.len; n++)
        g->nodes.data[n].hint = REMAT_AUTO;
    g->train.present = false;
    g->options = g->source = "";
    g->source_hash = 0;
    put(settings, MODEL, graph_hash(cli->pool, g));
    put(settings, METRICS, cut_metrics(cli->pool, g));
    put(settings, NETWORK, graph_hash(cli->pool, g));
}

/* "lr.base": the IR's header leaves the schedule's name out. */
static const char *setting_key(Pool *pool, const TrainField *f)
{
    size_t lr = offsetof(TrainSpec, rule.lr);
    bool of_schedule = f->offset > lr && f->offset < lr + sizeof(LrSchedule);
    return of_schedule ? pool_printf(pool, "lr.%s", f->key) : f->key;
}

/* Where the sources of a zip lie may change, as for one source: the key `path` has it. */
static const DataPart *parts_without_paths(Pool *pool, const TrainSpec *spec)
{
    DataPart *part = POOL_ARRAY(pool, (size_t)spec->n_data_parts + 1, DataPart);
    for (int k = 0; k < spec->n_data_parts; k++) {
        part[k] = spec->data_part[k];
        part[k].path = "";
    }
    return part;
}

static void put_train_fields(Cli *cli, json_t *settings, TrainSpec spec)
{
    if (cli->run.data)
        spec.data_path = cli->run.data;
    PlanSettings section = remat_section(&spec), plan = plan_settings_merge(&cli->plan, &section);
    spec.budget_text = plan.budget;
    spec.solver = plan.solver;
    spec.objective = plan.objective;
    spec.data_part = parts_without_paths(cli->pool, &spec);
    for (int i = 0; i < TRAIN_FIELD_COUNT; i++) {
        const TrainField *f = &train_fields[i];
        StrBuf value = strbuf_new(cli->pool);
        if (train_field_put(&value, f, &spec) && strcmp(value.text, "\"\"") != 0)
            put(settings, setting_key(cli->pool, f), value.text);
    }
}

json_t *resume_settings(Cli *cli, const Ast *ast, const Program *program, const Dataset *data)
{
    json_t *settings = json_object();
    put_train_fields(cli, settings, program->graph->train);
    put(settings, OPTIONS, program->graph->options);
    put(settings, EXAMPLES, pool_printf(cli->pool, "%lld", (long long)dataset_train_size(data)));
    if (cli->run.overfit)
        put(settings, OVERFIT, "true");
    if (cli->run.keep_denormals)
        put(settings, DENORMALS, "true");
    const char *precision = program->graph->train.precision;
    if (cli->build.exact && precision && strcmp(precision, "bf16") == 0)
        put(settings, EXACT, "true");
    if (cli->plan.no_chunks)
        put(settings, CHUNKS, "true");
    put_model(cli, ast, settings);
    return settings;
}

/* Names of files are bytes and JSON is UTF-8: what is not plain ASCII is written as %E9. */
static const char *name_put(Pool *pool, const char *name)
{
    StrBuf text = strbuf_new(pool);
    for (; *name; name++) {
        bool plain = *name >= ' ' && *name <= '~' && *name != '%';
        strbuf_printf(&text, plain ? "%c" : "%%%02X", (unsigned char)*name);
    }
    return text.text;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static const char *name_read(Pool *pool, const char *text)
{
    StrBuf name = strbuf_new(pool);
    while (*text) {
        int high = *text == '%' ? hex_digit(text[1]) : -1, low = high < 0 ? -1 : hex_digit(text[2]);
        char c = low < 0 ? *text : (char)(high * 16 + low);
        strbuf_putn(&name, &c, 1);
        text += low < 0 ? 1 : 3;
    }
    return name.text;
}

void resume_put_left_out(json_t *settings, const Dataset *data)
{
    int64_t n = dataset_left_out(data);
    if (!settings || !n)
        return;
    Pool *pool = pool_new();
    json_t *names = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(names, json_string(name_put(pool, dataset_left_out_name(data, i))));
    json_object_set_new(settings, LEFT_OUT, names);
    pool_free(pool);
}

const char *const *resume_left_out(Cli *cli, int64_t *n)
{
    json_t *settings =
        cli->run.resume && cli->output.out ? checkpoint_read_settings(cli->output.out) : NULL;
    const json_t *names = json_object_get(settings, LEFT_OUT);
    const char **name = POOL_ARRAY(cli->pool, json_array_size(names) + 1, const char *);
    *n = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *text = json_string_value(json_array_get(names, i));
        if (text && *text)
            name[(*n)++] = name_read(cli->pool, text);
    }
    json_decref(settings);
    return name;
}

static bool is_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end;
}

/* 1e+03, as older builds wrote it, is 1000.  Whole numbers, as seeds, have more digits than a
 * double: where both are written as such they are compared as text. */
static bool is_same_setting(const char *a, const char *b)
{
    double x, y;
    if (strcmp(a, b) == 0)
        return true;
    return (strpbrk(a, ".e") || strpbrk(b, ".e")) && is_number(a, &x) && is_number(b, &y) &&
           !(x < y) && !(x > y);
}

/* Where a word of "N=8 text=a b width=16" ends, which is where the next NAME= begins. */
static const char *option_end(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (const char *at = strchr(text, ' '); at; at = strchr(at + 1, ' ')) {
        size_t n = strspn(at + 1, letters);
        if (n && at[1 + n] == '=')
            return at;
    }
    return text + strlen(text);
}

/* The value of an option there, or NULL. */
static const char *option_in(Pool *pool, const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *end; *text; text = end + (*end == ' ')) {
        end = option_end(text);
        if (strncmp(text, name, n) == 0 && text[n] == '=')
            return pool_strndup(pool, text + n + 1, (size_t)(end - text) - n - 1);
    }
    return NULL;
}

/* Whether the run had an option that the file has not: no -D leads back to it. */
static bool has_other_options(Pool *pool, const Ast *ast, const char *text)
{
    const OptionInfo *o;
    int n_options = frontend_options(pool, ast, &o);
    for (const char *end; *text; text = end + (*end == ' ')) {
        size_t n = strcspn(text, "=");
        bool found = false;
        end = option_end(text);
        for (int i = 0; i < n_options; i++)
            found = found || (strlen(o[i].name) == n && strncmp(o[i].name, text, n) == 0);
        if (!found)
            return true;
    }
    return false;
}

static const char *options_text(const json_t *settings)
{
    const char *text = json_string_value(json_object_get(settings, OPTIONS));
    return text ? text : "";
}

/* " -D N=8 -D lr=0.1": what the run had where it is another value now. */
static const char *options_of_run(Cli *cli, const Ast *ast, const json_t *now, const json_t *then)
{
    const OptionInfo *o;
    StrBuf line = strbuf_new(cli->pool);
    int n = frontend_options(cli->pool, ast, &o);
    for (int i = 0; i < n; i++) {
        const char *name = o[i].name, *a = option_in(cli->pool, options_text(now), name),
                   *b = option_in(cli->pool, options_text(then), name);
        if (!a || !b || is_same_setting(a, b))
            continue;
        cli_put_word(&line, "-D");
        cli_put_word(&line, pool_printf(cli->pool, "%s=%s", name, b));
    }
    return line.len ? line.text : "";
}

/* As the IR's header has it; for what a run does not name, what it then has. */
static const char *value_of(const json_t *settings, const char *key)
{
    const char *text = json_string_value(json_object_get(settings, key));
    return text ? text : strcmp(key, "precision") == 0 ? "\"f32\"" : NONE;
}

/* What is compared in words of its own.  A run of an older build does not say its metrics. */
static bool is_aside(const char *key, const json_t *then)
{
    return !strcmp(key, OPTIONS) || !strcmp(key, MODEL) || !strcmp(key, NETWORK) ||
           (!strcmp(key, METRICS) && !json_object_get(then, NETWORK));
}

/* "batch = 8 (now 16), ..." of the keys that differ and are fixed, or are not. */
static const char *differences(Pool *pool, json_t *now, json_t *then, bool fixed)
{
    const char *key, *text = "";
    json_t *value, *all = json_copy(then);
    json_object_update_missing(all, now);
    json_object_foreach(all, key, value)
    {
        const char *a = value_of(now, key), *b = value_of(then, key);
        if (!is_same_setting(a, b) && forbids(key, b, a) == fixed && !is_aside(key, then))
            text = pool_printf(pool, "%s%s%s = %s (now %s)", text, *text ? ", " : "", key, b, a);
    }
    json_decref(all);
    return text;
}

/* Settings are as the IR's header has them: text in quotes. */
static const DataTraits *traits_of(Pool *pool, const json_t *settings)
{
    const char *text = value_of(settings, "data");
    size_t n = strlen(text);
    return data_traits(n > 2 ? pool_strndup(pool, text + 1, n - 2) : text);
}

/* Which way leads back to the run. */
static const char *way_back(Cli *cli, const Ast *ast, const json_t *now, const json_t *then)
{
    static const char another[] =
        "start another run (another --out, or --overwrite instead of --resume)";
    if (has_other_options(cli->pool, ast, options_text(then)))
        return pool_printf(cli->pool,
                           "it had other options (%s): continue it with the model file it was "
                           "begun with, or %s",
                           options_text(then), another);
    const char *options = options_of_run(cli, ast, now, then);
    if (*options)
        return pool_printf(cli->pool, "continue it with the run's%s, or %s", options, another);
    bool files = traits_of(cli->pool, now)->file_per_example;
    if (files && strcmp(value_of(now, EXAMPLES), value_of(then, EXAMPLES)) != 0)
        return pool_printf(cli->pool,
                           "put back the files that are gone (an empty file of the same name "
                           "will do: it is left out) and take away those that came, or %s",
                           another);
    return pool_printf(cli->pool, "continue it as it was, or %s", another);
}

/* Metrics may change: they are compared where both runs know the model without them. */
static bool same_model(const json_t *now, const json_t *then)
{
    const char *key = json_object_get(then, NETWORK) ? NETWORK : MODEL;
    return json_equal(json_object_get(now, key), json_object_get(then, key));
}

bool resume_check(Cli *cli, const Ast *ast, json_t *now, json_t *then)
{
    if (!then) {
        fprintf(stderr, "note: %s does not say what it was trained with: not compared\n",
                cli->output.out);
        return true;
    }
    const char *fixed = differences(cli->pool, now, then, true);
    if (*fixed)
        fixed = pool_printf(cli->pool, "had %s", fixed);
    else if (!same_model(now, then))
        fixed = "is of another model";
    const char *free = differences(cli->pool, now, then, false);
    if (!*fixed && *free)
        fprintf(stderr, "note: the run in %s had %s\n", cli->output.out, free);
    if (!*fixed)
        return true;
    cli_error(cli, EXIT_USER, "E518", way_back(cli, ast, now, then), "the run in %s %s",
              cli->output.out, fixed);
    return false;
}
