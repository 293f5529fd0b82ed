/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cache: what the kernel cache holds, whether it is whole, and emptying it. */
#include "frontend/driver/cli.h"

#include "codegen/build/cache.h"
#include "ir/support/byte_size.h"

#include <stdio.h>
#include <string.h>

typedef struct Kind {
    const char *suffix, *name, *doc;
} Kind;

static const Kind kinds[] = {
    {"o", "kernels", "object files of single kernels"},
    {"so", "steps", "training steps, linked"},
    {"plans", "plans", "what solvers found"},
    {"costs", "costs", "measured kernel times"},
    {"tuning", "tuning", "the fastest variants of kernels"},
    {"tmp", "temporary", "left by processes that were killed"},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

typedef struct Sums {
    int64_t n[N_KINDS], bytes[N_KINDS];
} Sums;

static Sums add_up(const CacheList *l)
{
    Sums s = {0};
    for (size_t i = 0; i < l->n; i++)
        for (int k = 0; k < N_KINDS; k++)
            if (strcmp(l->entry[i].suffix, kinds[k].suffix) == 0) {
                s.n[k]++;
                s.bytes[k] += l->entry[i].bytes;
            }
    return s;
}

/* --- show --- */

static ExitCode show_json(const Cache *cache, const CacheList *l, const Sums *s)
{
    json_t *parts = json_object();
    for (int k = 0; k < N_KINDS; k++)
        json_object_set_new(
            parts, kinds[k].name,
            json_pack("{s:I,s:I}", "files", (json_int_t)s->n[k], "bytes", (json_int_t)s->bytes[k]));
    cli_print_json(json_pack("{s:s,s:I,s:I,s:o,s:I,s:f}", "folder", cache->dir, "files",
                             (json_int_t)l->n, "bytes", (json_int_t)l->bytes, "kinds", parts,
                             "limit_bytes", (json_int_t)cache->limits.bytes, "limit_days",
                             cache->limits.days));
    return EXIT_OK;
}

static ExitCode show(Cli *cli, const Cache *cache, const CacheList *l)
{
    Sums s = add_up(l);
    if (cli->output.json)
        return show_json(cache, l, &s);
    printf("%s\n", cache->dir);
    for (int k = 0; k < N_KINDS; k++)
        if (s.n[k] || k < N_KINDS - 1)
            printf("  %-10s %6lld  %10s  %s\n", kinds[k].name, (long long)s.n[k],
                   bytes_text(cli->pool, s.bytes[k]), kinds[k].doc);
    printf("  %-10s %6zu  %10s\n", "all", l->n, bytes_text(cli->pool, l->bytes));
    if (l->n)
        printf("last used %.1f to %.1f days ago\n", cache_age(&l->entry[l->n - 1], cache->opened),
               cache_age(&l->entry[0], cache->opened));
    if (cache->limits.bytes)
        printf("at most %s stay (SCRIMP_CACHE_SIZE)\n", bytes_text(cli->pool, cache->limits.bytes));
    if (cache->limits.days > 0)
        printf("what was not used for %g days goes (SCRIMP_CACHE_DAYS)\n", cache->limits.days);
    return EXIT_OK;
}

/* --- verify --- */

static const char *fault_of(Cli *cli, const Cache *cache, const CacheEntry *e)
{
    size_t n;
    const char *fault = NULL;
    Pool *pool = pool_new_child(cli->pool);
    if (strcmp(e->suffix, "tmp") != 0)
        cache_peek(pool, cache, e->key, e->suffix, &n, &fault);
    fault = fault ? pool_strdup(cli->pool, fault) : NULL;
    pool_free(pool);
    return fault;
}

static ExitCode verify(Cli *cli, const Cache *cache, const CacheList *l)
{
    int64_t bad = 0;
    json_t *damaged = json_array();
    for (size_t i = 0; i < l->n; i++) {
        const char *fault = fault_of(cli, cache, &l->entry[i]);
        if (!fault)
            continue;
        bad++;
        json_array_append_new(damaged,
                              json_pack("{s:s,s:s}", "file", l->entry[i].name, "fault", fault));
        if (!cli->output.json)
            printf("%s/%s: %s\n", cache->dir, l->entry[i].name, fault);
    }
    if (cli->output.json)
        cli_print_json(json_pack("{s:s,s:I,s:O}", "folder", cache->dir, "files", (json_int_t)l->n,
                                 "damaged", damaged));
    else
        printf("%zu files, %lld of them cannot be used%s\n", l->n, (long long)bad,
               bad ? " and are made again when they are needed" : "");
    json_decref(damaged);
    return bad ? EXIT_USER : EXIT_OK;
}

/* --- clear --- */

static ExitCode clear(Cli *cli, const Cache *cache, const CacheList *l)
{
    int64_t n = 0, bytes = 0;
    for (size_t i = 0; i < l->n; i++) {
        const CacheEntry *e = &l->entry[i];
        if (cli->build.older > 0 && cache_age(e, cache->opened) < cli->build.older)
            continue;
        if (!cache_unlink(cli->pool, cache, e))
            return cli_error(cli, EXIT_USER, "E801", NULL, "cannot remove %s/%s", cache->dir,
                             e->name);
        n++;
        bytes += e->bytes;
    }
    if (cli->output.json)
        cli_print_json(json_pack("{s:s,s:I,s:I}", "folder", cache->dir, "removed_files",
                                 (json_int_t)n, "removed_bytes", (json_int_t)bytes));
    else
        printf("removed %lld of %zu files, %s, from %s\n", (long long)n, l->n,
               bytes_text(cli->pool, bytes), cache->dir);
    return EXIT_OK;
}

/* --- */

typedef struct Action {
    const char *name;
    ExitCode (*run)(Cli *cli, const Cache *cache, const CacheList *l);
} Action;

static const Action actions[] = {{"show", show}, {"verify", verify}, {"clear", clear}};
enum { N_ACTIONS = sizeof actions / sizeof *actions };

static const Action *find_action(const char *name)
{
    for (int i = 0; i < N_ACTIONS; i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

ExitCode verb_cache(Cli *cli)
{
    Cache cache;
    CacheList list;
    const char *error;
    const Action *a = find_action(cli->file ? cli->file : actions[0].name);
    if (!a)
        return cli_error(cli, EXIT_USER, "E801", "write show, verify or clear",
                         "scrimp cache does not know '%s'", cli->file);
    if (cli->build.older > 0 && a->run != clear)
        return cli_error(cli, EXIT_USER, "E801", "scrimp cache clear --older DAYS",
                         "--older says what `clear` removes");
    if (!cache_look(cli->pool, cli->build.cache, &cache, &error))
        return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
    if (!cache.dir)
        return cli_error(cli, EXIT_USER, "E801", "set SCRIMP_CACHE, or give --cache DIR",
                         "there is no kernel cache: HOME names no folder of this user");
    if (!cache_list(cli->pool, &cache, NULL, &list, &error))
        return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error);
    return a->run(cli, &cache, &list);
}
