/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scrimp tune: measures variants of kernels, keeps a table, which all verbs that compile use, and
 * which changes code but never a bit.  A table that is damaged, foreign or of another machine does
 * no harm. */
#include "check.h"
#include "e2e.h"
#include "equal_runs.h"

#include "codegen/build/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CACHE " --cache $TMP/cache "
#define TUNE  "$SCRIMP tune $TMP/net.scrimp --threads 1 --steps 5 -q" CACHE
#define TRAIN "$SCRIMP train $TMP/net.scrimp --threads 1 -q --seed 3" CACHE

/* Convolutions, both gradients, and products, wider than a vector. */
static void write_model(void)
{
    FILE *f = fopen(in_tmp("net.scrimp"), "w");
    if (!f)
        abort();
    fputs("model net(x: f32[4, 3, 12, 12]) {\n"
          "  x = x |> c1: conv(40, 3, pad = 1) |> relu() |> c2: conv(40, 3, pad = 1, stride = 2)\n"
          "  return x |> relu() |> flatten() |> fc1: linear(70) |> tanh() |> fc2: linear(10)\n"
          "}\n"
          "train {\n"
          "  batch = synthetic(x = f32[4, 3, 12, 12], label = i32[4])\n"
          "  loss  = cross_entropy(net(batch.x), batch.label)\n"
          "  optim = adamw(lr = 1e-2)\n"
          "  steps = 6\n"
          "}\n",
          f);
    fclose(f);
}

/* --- the table, by the cache's own functions --- */

static Cache open_cache(Pool *pool)
{
    Cache c;
    const char *error = NULL;
    if (!cache_open(pool, in_tmp("cache"), false, &c, &error))
        abort();
    return c;
}

/* The only one; NULL: there is none. */
static const char *table_key(Pool *pool, const Cache *c)
{
    CacheList list;
    const char *error = NULL;
    EXPECT(cache_list(pool, c, "tuning", &list, &error) && list.n <= 1, "tables");
    return list.n ? list.entry[0].key : NULL;
}

static json_t *read_table(void)
{
    Pool *pool = pool_new();
    Cache c = open_cache(pool);
    size_t n = 0;
    const char *fault = NULL, *key = table_key(pool, &c);
    const char *text = key ? cache_get(pool, &c, key, "tuning", &n, &fault) : NULL;
    json_t *table = text ? json_loadb(text, n, 0, NULL) : NULL;
    EXPECT(table != NULL, "no table");
    pool_free(pool);
    return table;
}

static void write_table(const json_t *table)
{
    Pool *pool = pool_new();
    Cache c = open_cache(pool);
    const char *error = NULL, *key = table_key(pool, &c);
    char *text = json_dumps(table, 0);
    EXPECT(key && cache_put(pool, &c, key, "tuning", text, strlen(text), &error), "not written");
    free(text);
    pool_free(pool);
}

/* All problems of the table get this variant. */
static void force(const char *variant)
{
    json_t *table = read_table(), *kernels = json_object_get(table, "kernels"), *value;
    const char *problem;
    void *next;
    json_object_foreach_safe(kernels, next, problem, value)
    {
        json_object_set_new(kernels, problem, json_string(variant));
    }
    write_table(table);
    json_decref(table);
}

/* Compiles to $TMP/step.so. */
#define COMPILE "$SCRIMP compile $TMP/net.scrimp --name step -o $TMP/step.so -q" CACHE

/* The code is that without tuning, or another. */
static void expect_plain_code(const char *why)
{
    Result r = run(COMPILE "--threads 1 && cmp $TMP/step.so $TMP/plain.so");
    EXPECT(r.code == 0, why);
    result_free(&r);
}

static void expect_other_code(const char *why)
{
    Result r = run(COMPILE "--threads 1 && ! cmp -s $TMP/step.so $TMP/plain.so");
    EXPECT(r.code == 0, why);
    result_free(&r);
}

/* Trains to the bits of $TMP/a. */
static void expect_same_bits(void)
{
    expect_ok("rm -rf $TMP/b; " TRAIN "--out $TMP/b");
    expect_equal_runs("a", "b");
}

/* --- tests --- */

static void check_kernel(const json_t *k, const json_t *table)
{
    const char *problem = json_string_value(json_object_get(k, "problem"));
    const char *variant = json_string_value(json_object_get(k, "variant"));
    const char *kept =
        json_string_value(json_object_get(json_object_get(table, "kernels"), problem));
    double before = json_get_number(k, "default_seconds"), after = json_get_number(k, "seconds");
    EXPECT(kept && variant && strcmp(kept, variant) == 0, "the table is what was said");
    EXPECT(before > 0 && after > 0 && after <= before, "times");
    EXPECT(json_get_number(k, "calls") >= 1, "calls");
    EXPECT(strcmp(variant, "default") == 0 ? after == before : after < before, variant);
}

static void test_kept(void)
{
    json_t *said = run_json(0, TUNE "--json"), *table = read_table(), *k;
    size_t i, n = json_array_size(json_object_get(said, "kernels"));
    EXPECT(n == 11, "two convolutions and three gradients, two products and four");
    EXPECT(json_object_size(json_object_get(table, "kernels")) == n, "one entry a kernel");
    json_array_foreach(json_object_get(said, "kernels"), i, k)
    {
        check_kernel(k, table);
    }
    EXPECT(json_get_number(said, "rounds") == json_get_number(said, "rounds_done"), "rounds");
    EXPECT(json_get_number(table, "threads") == 1, "threads");
    json_decref(said);
    json_decref(table);
    expect_ok("$SCRIMP cache verify" CACHE "&& ! ls $TMP/cache | grep tmp");
    expect_said(0, " 1 ", "$SCRIMP cache" CACHE "| grep tuning");
}

/* A table changes which kernels are compiled, and no bit of what they compute. */
static void test_used(void)
{
    static const char *const variants[] = {"tile1", "tile2", "tile3", "tile4"};
    expect_ok(TRAIN "--no-tuning --out $TMP/a && " COMPILE "--no-tuning --threads 1 && "
                    "mv $TMP/step.so $TMP/plain.so");
    force("default");
    expect_plain_code("default");
    for (int i = 0; i < 4; i++) {
        force(variants[i]);
        expect_other_code(variants[i]);
        expect_same_bits();
    }
    expect_ok(COMPILE "--threads 1 --no-tuning && cmp $TMP/step.so $TMP/plain.so");
    expect_ok(COMPILE "--threads 2 && cmp $TMP/step.so $TMP/plain.so");
    expect_ok(COMPILE "--threads 1 --march native && ! cmp -s $TMP/step.so $TMP/plain.so");
}

/* What a table of another program may hold. */
static void test_foreign(void)
{
    static const char *const tables[] = {"[]", "{}",
                                         "{\"format\": \"scrimp.tuning.1\", \"kernels\": [1]}",
                                         "{\"format\": \"scrimp.tuning.2\", \"kernels\": {}}",
                                         "{\"format\": \"scrimp.tuning.1\", \"kernels\": {\"gemm "
                                         "0\": \"nosuch\", \"x y\": \"tile1\", "
                                         "\"gemm\": \"tile1\", \"\": 3, \"conv \": null}}"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        json_t *table = json_loads(tables[i], 0, NULL);
        write_table(table);
        json_decref(table);
        expect_plain_code(tables[i]);
    }
}

static void test_damaged(void)
{
    static const char *const harm[] = {"truncate -s 40 $f", "truncate -s 0 $f",
                                       "printf x | dd of=$f bs=1 seek=30 conv=notrunc 2>/dev/null",
                                       "chmod 666 $f"};
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        expect_ok("cp $TMP/saved.tuning $TMP/cache/$(cat $TMP/name)");
        force("tile1");
        expect_other_code("not damaged yet");
        Result r = run("f=$TMP/cache/$(cat $TMP/name); %s", harm[i]);
        EXPECT(r.code == 0, r.err);
        result_free(&r);
        expect_run(0, "kernels are the defaults until `scrimp tune` measures them again", TRAIN);
        expect_plain_code(harm[i]);
        expect_ok(TRAIN "--no-tuning 2>&1 | grep -q tuned && exit 1; exit 0");
    }
    expect_ok(TUNE "> /dev/null");
    expect_ok(TRAIN "2>&1 | grep -q tuned && exit 1; $SCRIMP cache verify" CACHE);
}

/* --tune measures once. */
static void test_option(void)
{
    expect_run(0, "tuned: of 11 kernels with variants, ",
               "$SCRIMP train $TMP/net.scrimp --threads 1 --seed 3 --tune --cache $TMP/fresh "
               "--out $TMP/c");
    expect_equal_runs("a", "c");
    expect_ok("$SCRIMP compile $TMP/net.scrimp --threads 1 --tune --cache $TMP/fresh -o $TMP/x.so "
              "2>&1 | grep tuned: && exit 1; test -s $TMP/x.so");
}

/* It ends soon, by the signal, and what it had is used. */
static void test_interrupted(void)
{
    expect_ok("$SCRIMP cache clear" CACHE);
    expect_said(130, "ended early, after ",
                "timeout --preserve-status -s INT 3 $SCRIMP tune $TMP/net.scrimp --threads 1 "
                "--steps 100000" CACHE);
    expect_ok("$SCRIMP cache verify" CACHE "&& ! ls $TMP/cache | grep tmp");
    expect_same_bits();
}

static void test_errors(void)
{
    expect_run(1, "5 steps or more", "$SCRIMP tune $TMP/net.scrimp --steps 4");
    expect_run(1, "no such option", "$SCRIMP tune $TMP/net.scrimp --march generic");
    expect_run(1, "cannot", "$SCRIMP tune $TMP/none.scrimp");
    expect_run(1, "leave --no-cache and --no-tuning out",
               "$SCRIMP train $TMP/net.scrimp --tune --no-cache");
    expect_run(1, "leave --no-cache and --no-tuning out",
               "$SCRIMP compile $TMP/net.scrimp --tune --no-tuning -o $TMP/y.so");
    expect_run(1, "with --march kernels are the same on every machine",
               "$SCRIMP compile $TMP/net.scrimp --tune --march generic -o $TMP/y.so");
    expect_run(1, "leave --inference or --tune out",
               "$SCRIMP compile $TMP/net.scrimp --tune --inference --checkpoint $TMP/a -o "
               "$TMP/y.so");
    expect_run(1, "tuning is for the processor",
               "$SCRIMP compile $TMP/net.scrimp --tune --device sm_80 -o $TMP/y");
    expect_run(3, "infeasible", "$SCRIMP tune $TMP/net.scrimp --budget 10");
}

int main(void)
{
    e2e_begin();
    write_model();
    test_kept();
    expect_ok("cd $TMP/cache && ls *.tuning > ../name && cp *.tuning ../saved.tuning");
    test_used();
    test_foreign();
    test_damaged();
    test_option();
    test_interrupted();
    test_errors();
    return e2e_end();
}
