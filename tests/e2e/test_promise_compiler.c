/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 11, the part about code generation: its processes may die in any way; scrimp reports it,
 * exits with 1, leaves no half-written file behind that is ever used, and the next run works.
 * SCRIMP_FLIPS, SCRIMP_CUTS: how many bits and lengths of the files in the cache are changed. */
#include "e2e.h"
#include "tests/support/sample.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect_recovery(void)
{
    Result r =
        run("$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/cache --out $TMP/again "
            "&& cmp $TMP/again/model.safetensors $TMP/reference/model.safetensors");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    r = run("rm -rf $TMP/cache $TMP/again");
    result_free(&r);
}

/* Kills every child of scrimp that is seen, until it ends: one that is seen may be gone already. */
static void test_killed_child(const char *signal)
{
    Result r =
        run("$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/cache --jobs 2 & parent=$!; "
            "while test -e /proc/$parent/exe; do " /* no zombie */
            "children=; read children < /proc/$parent/task/$parent/children; "
            "for child in $children; do kill -%s $child; done; done 2> $TMP/gone; wait $parent",
            signal);
    char detail[1500];
    snprintf(detail, sizeof detail, "killed by %s: exit code %d\n%.1200s", signal, r.code, r.err);
    EXPECT(r.code == 1 && strstr(r.err, "error[E801]") && strstr(r.err, "killed by signal"),
           detail);
    result_free(&r);
    expect_recovery();
}

/* The whole family is killed: what is in the cache then is whole. */
static void test_killed_parent(int milliseconds)
{
    Result r = run("$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/cache & parent=$!; "
                   "sleep 0.%03d; kill -KILL $parent; wait $parent",
                   milliseconds);
    result_free(&r);
    expect_recovery();
}

/* A signal while kernels are compiled: there is nothing to finish and nothing to save.  On a busy
 * machine it may come too late, which is tried again. */
static void test_interrupted(const char *signal, int code)
{
    Result r =
        run("for i in 1 2 3 4 5 6 7 8; do rm -rf $TMP/cache $TMP/again; "
            "env --default-signal $SCRIMP train $TMP/tiny.scrimp --steps 2 -q --jobs 1 --cache "
            "$TMP/cache --out $TMP/again & parent=$!; "
            "while kill -0 $parent && ! ls $TMP/cache/*.o; do sleep 0.01; done >&2; "
            "kill -%s $parent; wait $parent; code=$?; ls $TMP/cache/*.so >&2 || break; done; "
            "echo $code; ls $TMP/cache $TMP/again",
            signal);
    char detail[1500], first[20];
    snprintf(detail, sizeof detail, "interrupted by %s:\n%.1200s", signal, r.out);
    snprintf(first, sizeof first, "%d\n", code);
    EXPECT(strncmp(r.out, first, strlen(first)) == 0, detail);
    EXPECT(!strstr(r.out, ".so\n"), "all kernels were compiled first");
    EXPECT(!strstr(r.out, "safetensors"), "nothing is saved");
    result_free(&r);
    expect_recovery();
}

/* Limits that the children run into: files may not grow (a full disk), no memory. */
static void test_limits(void)
{
    Result r = run("trap '' XFSZ; ulimit -f 2; $SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache "
                   "$TMP/cache 2>&1 | cat; ls $TMP/cache");
    EXPECT(strstr(r.out, "error[E801]"), r.out);
    result_free(&r);
    expect_recovery();
    r = run("ulimit -v 60000; $SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/cache");
    EXPECT(r.code == 1 && strstr(r.err, "error"), r.err);
    result_free(&r);
    expect_recovery();
}

static void test_bad_cache(void)
{
    Result r =
        run("touch $TMP/plain; $SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/plain");
    EXPECT(r.code == 1 && strstr(r.err, "plain"), r.err);
    result_free(&r);
}

/* --- damage --- */

enum { MAX_FILES = 100, FLIPS = 12, CUTS = 6 };

typedef struct Files {
    char name[MAX_FILES][64];
    int n;
} Files;

static Files files_of_cache(const char *pattern)
{
    Files f = {.n = 0};
    Result r = run("cd $TMP/whole && ls %s", pattern);
    char *save = NULL;
    for (char *line = strtok_r(r.out, "\n", &save); line && f.n < MAX_FILES;
         line = strtok_r(NULL, "\n", &save))
        snprintf(f.name[f.n++], sizeof f.name[0], "%s", line);
    EXPECT(f.n > 0, pattern);
    result_free(&r);
    return f;
}

/* at: a bit to flip.  cut: the length that is left instead. */
static void damage(const char *name, long at, bool cut)
{
    char path[500];
    snprintf(path, sizeof path, "%s/cache/%s", e2e_tmp(), name);
    if (cut) {
        EXPECT(truncate(path, at) == 0, path);
        return;
    }
    FILE *f = fopen(path, "r+b");
    fseek(f, at / 8, SEEK_SET);
    int byte = fgetc(f);
    fseek(f, at / 8, SEEK_SET);
    fputc(byte ^ 1 << at % 8, f);
    fclose(f);
}

static long size_of(const char *name)
{
    char path[500];
    struct stat st;
    snprintf(path, sizeof path, "%s/whole/%s", e2e_tmp(), name);
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The run notices, says which file it was, makes it again as it was before, and trains to the same
 * bits.  A step that is there hides objects. */
static void expect_harmless(const char *name, long at, bool cut)
{
    Result r = run("rm -rf $TMP/cache $TMP/again; cp -a $TMP/whole $TMP/cache%s",
                   strstr(name, ".o") ? "; rm $TMP/cache/*.so" : "");
    result_free(&r);
    damage(name, at, cut);
    r = run("$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --budget min --cache $TMP/cache --out "
            "$TMP/again && cmp $TMP/again/model.safetensors $TMP/kept/model.safetensors && "
            "cd $TMP/cache && for f in *.o *.plans; do cmp $f ../whole/$f || exit 9; done && "
            "$SCRIMP cache verify --cache .");
    char detail[2500];
    snprintf(detail, sizeof detail, "%s %s %ld: exit code %d\n%.1000s%.1000s", name,
             cut ? "cut to" : "bit", at, r.code, r.out, r.err);
    EXPECT(r.code == 0, detail);
    EXPECT(strstr(r.err, "cannot be used") && strstr(r.err, name), detail);
    result_free(&r);
}

/* Bits all over the files, the first and the last among them, and lengths from none to all but one
 * byte. */
static void test_damage(void)
{
    static const char *const kinds[] = {"*.so", "*.o", "*.plans"};
    int flips = sample_number("SCRIMP_FLIPS", FLIPS), cuts = sample_number("SCRIMP_CUTS", CUTS);
    Result r = run("$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --budget min --cache $TMP/whole "
                   "--out $TMP/kept && cp -a $TMP/whole $TMP/cache");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    for (int k = 0; k < 3; k++) {
        Files f = files_of_cache(kinds[k]);
        for (int i = 0; i < flips / 3; i++) {
            const char *name = f.name[i % f.n];
            expect_harmless(name, (8 * size_of(name) - 1) * i / (flips / 3 - 1), false);
        }
        for (int i = 0; i < cuts / 3; i++) {
            const char *name = f.name[(i + 7) % f.n];
            expect_harmless(name, (size_of(name) - 1) * i / (cuts / 3 - 1), true);
        }
    }
}

/* Few kernels: they are compiled a dozen times. */
static void write_model(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/tiny.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fputs("model tiny(x: f32[8, 16]) { return x |> fc1: linear(24) |> tanh() |> fc2: linear(10) }\n"
          "train {\n"
          "  batch = synthetic(x = f32[8, 16], label = i32[8])\n"
          "  loss  = cross_entropy(tiny(batch.x), batch.label)\n"
          "  optim = sgd(lr = 0.1)\n"
          "  steps = 12\n"
          "}\n",
          f);
    fclose(f);
}

int main(void)
{
    e2e_begin();
    write_model();
    Result r = run("$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --out $TMP/reference");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    test_killed_child("KILL");
    test_killed_child("SEGV");
    for (int ms = 50; ms < 900; ms += 280)
        test_killed_parent(ms);
    test_interrupted("INT", 130);
    test_interrupted("TERM", 143);
    test_limits();
    test_bad_cache();
    test_damage();
    return e2e_end();
}
