/* Promise 11, the part about code generation: its processes may die in any way; scrimp reports it,
 * exits with 1, leaves no half-written file behind that is ever used, and the next run works. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

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

/* Kills a child of scrimp as soon as there is one. */
static void test_killed_child(const char *signal)
{
    Result r =
        run("$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/cache --jobs 2 & parent=$!; "
            "child=; while [ -z \"$child\" ] && kill -0 $parent 2>/dev/null; do "
            "child=$(cat /proc/$parent/task/$parent/children 2>/dev/null | cut -d' ' -f1); done; "
            "kill -%s $child; wait $parent",
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

/* A signal while kernels are compiled: there is nothing to finish and nothing to save. */
static void test_interrupted(const char *signal, int code)
{
    Result r =
        run("env --default-signal $SCRIMP train $TMP/tiny.scrimp --steps 2 -q --jobs 1 --cache "
            "$TMP/cache --out $TMP/again & parent=$!; "
            "while kill -0 $parent && ! ls $TMP/cache/*.o; do sleep 0.01; done >&2; "
            "kill -%s $parent; wait $parent; echo $?; ls $TMP/cache $TMP/again",
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

/* A cache that cannot be used, or whose files are damaged, is an error or is replaced. */
static void test_bad_cache(void)
{
    Result r =
        run("touch $TMP/plain; $SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/plain");
    EXPECT(r.code == 1 && strstr(r.err, "plain"), r.err);
    result_free(&r);
    r = run("$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/cache && "
            "for f in $TMP/cache/*.so; do head -c 100 $f > $f.x; mv $f.x $f; done; "
            "$SCRIMP train $TMP/tiny.scrimp --steps 2 -q --cache $TMP/cache");
    EXPECT(r.code == 0 || (r.code == 1 && strstr(r.err, "error[E801]")), r.err);
    result_free(&r);
    r = run("rm -rf $TMP/cache");
    result_free(&r);
    expect_recovery();
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
    return e2e_end();
}
