/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_tuning.h"

#include "frontend/driver/cli_machine.h"

#include "codegen/build/compile.h"
#include "codegen/build/hash.h"
#include "runtime/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "scrimp.tuning.1", SUFFIX[] = "tuning";

/* The family that "FAMILY KEY" begins with; NULL: there is none. */
static const KernelFamily *family_of(const char *problem)
{
    for (const KernelFamily *const *f = cpu_backend.families; *f; f++) {
        size_t n = strlen((*f)->name);
        if (strncmp(problem, (*f)->name, n) == 0 && problem[n] == ' ')
            return *f;
    }
    return NULL;
}

/* What has another form, or names what this program does not have, is left out. */
static void read_table(TuningTable *t, const char *text, size_t n)
{
    const char *problem;
    json_t *value, *root = json_loadb(text, n, 0, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    json_t *kernels =
        format && strcmp(format, FORMAT) == 0 ? json_object_get(root, "kernels") : NULL;
    json_object_foreach(kernels, problem, value)
    {
        const KernelFamily *f = family_of(problem);
        int variant = f && json_is_string(value) ? family_find(f, json_string_value(value)) : -1;
        if (variant >= 0)
            map_set(&t->tuning.chosen, problem, (uint64_t)variant);
    }
    json_decref(root);
}

/* NULL when memory runs out. */
static const char *table_text(const TuningTable *t)
{
    json_t *kernels = json_object();
    const Map *chosen = &t->tuning.chosen;
    for (size_t i = 0; i < chosen->len; i++) {
        const MapEntry *e = &chosen->entries[i];
        const char *variant = family_of(e->key)->variant_name((int)e->value);
        json_object_set_new(kernels, e->key, json_string(variant));
    }
    json_t *root = json_pack("{s:s,s:s,s:s,s:i,s:o}", "format", FORMAT, "machine", t->machine,
                             "target", t->target, "threads", t->threads, "kernels", kernels);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_SORT_KEYS);
    const char *kept = text ? pool_strdup(t->pool, text) : NULL;
    free(text);
    json_decref(root);
    return kept;
}

bool tuning_open(Cli *cli, bool write, TuningTable *out, const char **error)
{
    Pool *pool = cli->pool;
    *out = (TuningTable){.pool = pool,
                         .machine = machine_processor_name(pool),
                         .threads = cli->build.threads ? (int)cli->build.threads : cores_allowed(),
                         .tuning.chosen = map_new(pool)};
    const Target *target = codegen_target(pool, NULL, true, error);
    if (!target ||
        !(write ? cache_open(pool, cli->build.cache, cli->build.no_cache, &out->cache, error)
                : cache_look(pool, cli->build.cache, &out->cache, error)))
        return false;
    out->target = target->name;
    const char *place = pool_printf(pool, "%s|%s|%s|%s|%d", FORMAT, codegen_generator(),
                                    out->machine, out->target, out->threads);
    out->key = content_key(pool, place, strlen(place));
    size_t n = 0;
    const char *text = cache_get(pool, &out->cache, out->key, SUFFIX, &n, &out->fault);
    if (text)
        read_table(out, text, n);
    return true;
}

bool tuning_save(Cli *cli, const Map *chosen, TuningTable *out, const char **error)
{
    if (!tuning_open(cli, true, out, error))
        return false;
    for (size_t i = 0; i < chosen->len; i++)
        map_set(&out->tuning.chosen, chosen->entries[i].key, chosen->entries[i].value);
    const char *text = table_text(out);
    if (!text)
        *error = "out of memory";
    return text && cache_put(cli->pool, &out->cache, out->key, SUFFIX, text, strlen(text), error);
}

static bool wants_table(const Cli *cli)
{
    const char *march = cli->build.march;
    return (cli_takes(cli, "no-tuning") || cli->verb->run == verb_tune) && !cli->build.no_tuning &&
           !cli->build.no_cache && cli_backend(cli) == &cpu_backend &&
           (!march || strcmp(march, "native") == 0);
}

/* A cache that cannot be used is told by whoever needs it. */
static const Tuning *read_once(Cli *cli)
{
    const char *error = NULL;
    TuningTable *t = POOL_NEW(cli->pool, TuningTable);
    if (!wants_table(cli) || !tuning_open(cli, false, t, &error))
        return NULL;
    if (t->fault)
        fprintf(
            stderr,
            "note: the tuned kernels %s.%s in the cache %s cannot be used (%s); kernels are the "
            "defaults until `scrimp tune` measures them again\n",
            t->key, SUFFIX, t->cache.dir, t->fault);
    return t->tuning.chosen.len ? &t->tuning : NULL;
}

const Tuning *cli_tuning(Cli *cli)
{
    DriverState *s = cli->state;
    if (!s->knows_tuning)
        s->tuning = read_once(cli);
    s->knows_tuning = true;
    return s->tuning;
}
