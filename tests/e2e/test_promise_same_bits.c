/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 10: what scrimp makes is a function of its input.  Dumps, plans and compiled steps of two
 * runs are the same bytes; so are trained weights for any number of threads, any number of compiler
 * processes and a cold or warm cache. */
#include "e2e.h"
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

static void test_dumps(const char *example)
{
    static const char *const stages[] = {"ast", "ir", "grad", "remat", "plan", "code"};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        char command[600];
        snprintf(command, sizeof command,
                 "for i in 1 2; do SCRIMP_CACHE=$TMP/dump$i $SCRIMP dump $EXAMPLES/%s --stage=%s > "
                 "$TMP/$i || exit 9; done; "
                 "cmp $TMP/1 $TMP/2 && test -s $TMP/1",
                 example, stages[i]);
        expect_ok(command);
    }
}

/* Solving takes another time each run; all else is the same.  Each run searches for itself, in a
 * cache of its own, and what it keeps there are the same bytes. */
static void test_plans(void)
{
    expect_ok("for i in 1 2; do $SCRIMP plan $EXAMPLES/chargpt.scrimp -D L=2 --sweep 8 --json "
              "--cache $TMP/plans$i --threads $i > $TMP/json || exit 9; "
              "sed 's/\"solve_seconds\": [^,}]*//g' $TMP/json > $TMP/$i; done; cmp $TMP/1 $TMP/2");
    expect_ok("cd $TMP/plans1; test -n \"$(ls)\" && test \"$(ls)\" = \"$(ls ../plans2)\" && "
              "for f in *; do cmp $f ../plans2/$f || exit 1; done");
    expect_ok("$SCRIMP plan $EXAMPLES/chargpt.scrimp -D L=2 --sweep 8 --json --no-cache | "
              "sed 's/\"solve_seconds\": [^,}]*//g' > $TMP/2; cmp $TMP/1 $TMP/2");
}

/* The same names (content keys) and the same bytes of kernels, however many processes compile. */
static void test_kernels(void)
{
    expect_ok("$SCRIMP train $TMP/tiny.scrimp --steps 1 -q --cache $TMP/one --jobs 1");
    expect_ok("$SCRIMP train $TMP/tiny.scrimp --steps 1 -q --cache $TMP/two --jobs 2");
    expect_ok("ls $TMP/one > $TMP/1; ls $TMP/two > $TMP/2; cmp $TMP/1 $TMP/2; test -s $TMP/1");
    expect_ok("cd $TMP/one; for f in *.o; do cmp $f ../two/$f || exit 1; done");
    expect_ok("! ls $TMP/one | grep tmp");
}

static void test_training(void)
{
    static const char *const ways[] = {"--threads 1",
                                       "--threads 2",
                                       "--threads 7",
                                       "--threads 2 --budget min --cache $TMP/fresh",
                                       "--threads 3 --no-cache",
                                       "--threads 2 --cache $TMP/one"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char command[600];
        snprintf(command, sizeof command,
                 "rm -rf $TMP/run; $SCRIMP train $TMP/tiny.scrimp -q %s --out $TMP/run", ways[i]);
        expect_ok(command);
        expect_ok("cat $TMP/run/model.safetensors $TMP/run/optimizer-*.safetensors > $TMP/bits; "
                  "test -s $TMP/first || cp $TMP/bits $TMP/first; cmp $TMP/bits $TMP/first");
    }
}

int main(void)
{
    e2e_begin();
    write_tiny_model(12, 0);
    test_dumps("mlp.scrimp");
    test_dumps("chargpt.scrimp -D L=1");
    test_plans();
    test_kernels();
    test_training();
    return e2e_end();
}
