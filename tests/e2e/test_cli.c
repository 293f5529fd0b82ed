/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The command line: help, mistakes, exit codes. */
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Help fits a terminal of 100 columns. */
static void expect_narrow(const char *text)
{
    for (const char *line = text; line && *line;) {
        size_t bytes = strcspn(line, "\n"), columns = 0;
        for (size_t i = 0; i < bytes; i++)
            columns += ((unsigned char)line[i] & 0xc0) != 0x80; /* UTF-8: one a character */
        EXPECT(columns <= 100, line);
        line += bytes + (line[bytes] == '\n');
    }
}

static void test_help(void)
{
    static const char *const verbs[] = {"check",    "summary", "predict", "dump",  "opt",
                                        "plan",     "arena",   "compile", "train", "eval",
                                        "generate", "bench",   "verify",  "data",  "tune"};
    Result top = run("$SCRIMP --help");
    EXPECT(top.code == 0, top.err);
    expect_narrow(top.out);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        EXPECT(strstr(top.out, verbs[i]) != NULL, verbs[i]);
        Result r = run("$SCRIMP %s --help", verbs[i]);
        EXPECT(r.code == 0 && strstr(r.out, "usage:") && strstr(r.out, verbs[i]), r.err);
        expect_narrow(r.out);
        Result same = run("$SCRIMP help %s", verbs[i]);
        EXPECT(same.code == 0 && strcmp(same.out, r.out) == 0, same.out);
        result_free(&r);
        result_free(&same);
    }
    expect_said(0, "options of ", "$SCRIMP help train $EXAMPLES/mlp.scrimp");
    expect_run(1, "did you mean `train`?", "$SCRIMP help trian");
    result_free(&top);
}

static void test_mistakes(void)
{
    expect_run(1, "plan", "$SCRIMP plam $EXAMPLES/mlp.scrimp");
    expect_run(1, "--stepz", "$SCRIMP train $EXAMPLES/mlp.scrimp --stepz 3");
    expect_run(1, "needs a file", "$SCRIMP check");
    expect_run(1, "a whole number, 1 or more", "$SCRIMP train $EXAMPLES/mlp.scrimp --steps many");
    expect_run(1, "--no is short for several: --no-masks, --no-views, --no-norms, --no-attention",
               "$SCRIMP plan $EXAMPLES/mlp.scrimp --no");
    expect_ok("$SCRIMP plan $EXAMPLES/mlp.scrimp --thread 1 --no-m --sol=chen");
    expect_run(1, "--threads 0", "$SCRIMP plan $EXAMPLES/mlp.scrimp --thread 0");
    expect_said(0, "--thread 1 is --threads 1", "$SCRIMP --help");
    expect_run(1, "-z: no such option", "$SCRIMP check -z $EXAMPLES/mlp.scrimp");
    expect_run(1, "-z: no such option", "$SCRIMP plan --json -z.scrimp");
    expect_run(1, "--json=3: no such option", "$SCRIMP plan --json=3 $EXAMPLES/mlp.scrimp");
    expect_run(1, "exclude each other", "$SCRIMP plan $EXAMPLES/mlp.scrimp --sweep 3 --budget min");
    expect_run(1, "nothing-here.scrimp", "$SCRIMP check $TMP/nothing-here.scrimp");
    expect_run(1, "did you mean", "$SCRIMP check $EXAMPLES/mlp.scrimp -D hiden=3");
    expect_run(1, "E404", "$SCRIMP plan $EXAMPLES/mlp.scrimp --solver chem");
    expect_run(1, "did you mean `chen`", "$SCRIMP plan $EXAMPLES/mlp.scrimp --solver chem --json");
    expect_run(0, NULL, "$SCRIMP plan $EXAMPLES/mlp.scrimp --solver best");
    expect_run(1, "fuse",
               "$SCRIMP dump $EXAMPLES/mlp.scrimp --no-loc > $TMP/a.ir && "
               "$SCRIMP opt -p fuze $TMP/a.ir");
    expect_run(1, "pass fold takes no arguments",
               "$SCRIMP opt -p 'fold(budget=40%),dce' $TMP/a.ir");
    expect_run(1, "two stages, not 'grad'", "$SCRIMP dump $EXAMPLES/mlp.scrimp --diff grad");
    expect_run(1, "called 'remta'", "$SCRIMP dump $EXAMPLES/mlp.scrimp --diff grad..remta");
    expect_run(3, "E401", "$SCRIMP plan $EXAMPLES/mlp.scrimp --budget 1KiB");
    expect_run(1, "no-such-folder: no such folder",
               "$SCRIMP train $EXAMPLES/mlp.scrimp --data $TMP/no-such-folder");
    expect_run(1, "E801",
               "$SCRIMP compile $EXAMPLES/mlp.scrimp --march z80 -o $TMP/x.so --header $TMP/x.h");
    expect_run(1, "z80", "$SCRIMP plan $EXAMPLES/mlp.scrimp --march z80");
    expect_run(1, "no-folder/x.so: No such file",
               "$SCRIMP compile $EXAMPLES/mlp.scrimp -o $TMP/no-folder/x.so --header $TMP/x.h");
    expect_run(1, "no-folder/x.h: No such file",
               "$SCRIMP compile $EXAMPLES/mlp.scrimp -o $TMP/x.so --header $TMP/no-folder/x.h");
}

/* Several errors in one run, as text and as JSON. */
/* The examples say of each option what it means, and of a value that cannot be, in one message,
 * what can. */
static void test_example_options(void)
{
    static const char *const wrong[] = {
        "nascell.scrimp -D size=7",
        "nascell.scrimp -D layers=-1",
        "ffn.scrimp -D layers=-1",
        "unet.scrimp -D size=1",
        "unet.scrimp -D size=200",
        "pspnet.scrimp -D size=40",
        "gpt2.scrimp -D layers=0",
        "transformer.scrimp -D heads=3",
        "transformer.scrimp -D warmup=0",
        "chargpt.scrimp -D L=-1",
        "demo.scrimp -D L=-1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        Result r = run("$SCRIMP check $EXAMPLES/%s", wrong[i]);
        const char *first = strstr(r.err, "error[");
        EXPECT(r.code == 1 && first && strstr(first, "E207") && !strstr(first + 1, "error["),
               r.err);
        result_free(&r);
    }
    static const char *const count =
        "for f in $EXAMPLES/*.scrimp; do $SCRIMP check $f --help; done | grep -cE '%s$'";
    Result all = run(count, "^  -D [A-Za-z_]+=.*(int|float|bool|string|list|any)( in .*)?");
    Result bare = run(count, "^  -D [A-Za-z_]+=.*  (int|float|bool|string|list|any)( in .*)?");
    EXPECT(atoi(all.out) > 100 && atoi(bare.out) == 0, bare.out);
    result_free(&all);
    result_free(&bare);
}

static void test_diagnostics(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/bad.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fputs("model m(x: f32[4, 8]) {\n  a = x |> linear(3)\n  b = x |> dropuot(0.1)\n  c = x |> "
          "relu\n  return x\n}\n",
          f);
    fclose(f);
    expect_run(1, "E201", "$SCRIMP check $TMP/bad.scrimp");
    expect_run(1, "E203", "$SCRIMP check $TMP/bad.scrimp");
    expect_run(1, "E204", "$SCRIMP check $TMP/bad.scrimp");
    Result r = run("$SCRIMP check $TMP/bad.scrimp --error-format=json");
    json_t *o = json_loads(r.err, 0, NULL);
    EXPECT(json_array_size(json_object_get(o, "errors")) >= 3, r.err);
    json_decref(o);
    result_free(&r);
}

/* IR text goes out and in again without a change, through every stage. */
static void test_ir_round_trip(void)
{
    static const char *const stages[] = {"ir", "grad", "remat"};
    for (int i = 0; i < 3; i++) {
        Result r = run("$SCRIMP dump $EXAMPLES/mlp.scrimp --stage=%s > $TMP/a.ir && "
                       "$SCRIMP opt -p '' $TMP/a.ir > $TMP/b.ir && "
                       "grep -v '^# scrimp opt' $TMP/a.ir | cmp - $TMP/b.ir",
                       stages[i]);
        EXPECT(r.code == 0, r.err);
        result_free(&r);
    }
    Result r = run(
        "$SCRIMP dump $EXAMPLES/mlp.scrimp --stage=ir | "
        "$SCRIMP opt -p 'fold,cse,dce,layout,fold,autodiff,fuse,order,remat(budget=min),plan' -");
    EXPECT(r.code == 0 && strstr(r.out, "plan"), r.err);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    test_help();
    test_mistakes();
    test_example_options();
    test_diagnostics();
    test_ir_round_trip();
    return e2e_end();
}
