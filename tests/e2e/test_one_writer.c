/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One run's folder and more than one process: a second writer is told who the first is, a killed
 * one blocks nobody, and readers are never in the way. */
#include "e2e.h"
#include "tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 4 };

/* Two at once; when one has given up, the other is ended.  Prints both exit codes and both process
 * ids; messages are in $TMP/1 and $TMP/2. */
static const char two[] =
    "rm -f $TMP/1 $TMP/2; "
    "$SCRIMP train $TMP/tiny.scrimp --out $TMP/two %s --steps 2000000 -q 2> $TMP/1 & a=$!; "
    "sleep %.2f; "
    "$SCRIMP train $TMP/tiny.scrimp --out $TMP/two %s --steps 2000000 -q 2> $TMP/2 & b=$!; "
    "i=0; while ! grep -q error $TMP/1 $TMP/2 && [ $i -lt 2400 ]; do sleep 0.05; i=$((i+1)); done; "
    "if grep -q error $TMP/1; then wait $a; x=$?; kill $b; wait $b; y=$?; "
    "else kill $a; wait $a; x=$?; grep -q error $TMP/2 || kill $b; wait $b; y=$?; fi; "
    "echo $x $y $a $b";

static void one_trial(int i)
{
    char path[400], holder[64];
    const char *how = i % 2 ? "--resume" : "--overwrite";
    Result r = run(two, how, 0.04 * (i % 4), how);
    int code[2] = {-1, -1};
    long pid[2] = {0, 0};
    EXPECT(sscanf(r.out, "%d %d %ld %ld", &code[0], &code[1], &pid[0], &pid[1]) == 4, r.out);
    EXPECT((code[0] == 143 && code[1] == 1) || (code[0] == 1 && code[1] == 143), r.out);
    int loser = code[0] == 1 ? 0 : 1;
    snprintf(path, sizeof path, "%s/%d", e2e_tmp(), loser + 1);
    snprintf(holder, sizeof holder, "is being written by process %ld on ", pid[1 - loser]);
    char *said = read_text(path, NULL);
    EXPECT(said && strstr(said, "E520") && strstr(said, holder) && strstr(said, " since 20"), said);
    free(said);
    result_free(&r);
    /* One whole set is left, and nothing else. */
    expect_run(0, NULL, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/two --resume --steps 1 -q");
    expect_run(0, NULL, "test $(ls -A $TMP/two | wc -l) = 4");
}

/* There is a set before: the one that holds the lock may be ended before its first save. */
static void test_two_writers(void)
{
    expect_run(0, NULL, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/two -q --steps 1");
    for (int i = 0; i < TRIALS; i++)
        one_trial(i);
}

/* The file stays behind, the lock does not. */
static void test_killed(void)
{
    expect_run(0, NULL, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/alone -q");
    expect_run(0, NULL,
               "LD_PRELOAD=$LATE_DISK $SCRIMP train $TMP/tiny.scrimp --out $TMP/killed -q & p=$!; "
               "while [ ! -e $TMP/killed/trainer.json ]; do sleep 0.01; done; kill -9 $p; "
               "wait $p; test -e $TMP/killed/trainer.lock");
    expect_run(0, NULL, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/killed --resume -q");
    expect_run(0, NULL, "cmp $TMP/killed/model.safetensors $TMP/alone/model.safetensors");
}

/* A folder that may not be written is refused before anything is planned, and a plan that fails
 * leaves a folder as it was, or none. */
static void test_refused_first(void)
{
#define AGAIN "$SCRIMP train $TMP/tiny.scrimp --budget 1 --out "
    expect_run(1, "E519", AGAIN "$TMP/alone");
    expect_run(1, "E518", AGAIN "$TMP/alone --resume --seed 12345");
    expect_run(3, "E401", AGAIN "$TMP/alone --resume");
    expect_run(3, "E401", AGAIN "$TMP/alone --overwrite");
    expect_ok("test ! -e $TMP/alone/trainer.lock");
    expect_run(3, "E401", AGAIN "$TMP/new");
    expect_ok("test ! -e $TMP/new");
}

/* A run that writes is read as often as one likes. */
static void test_readers(void)
{
    expect_run(0, NULL, "$SCRIMP eval $TMP/tiny.scrimp --checkpoint $TMP/alone");
    expect_run(0, NULL,
               "$SCRIMP train $TMP/tiny.scrimp --out $TMP/read -q --steps 2000000 & p=$!; "
               "while [ ! -e $TMP/read/trainer.json ]; do sleep 0.01; done; "
               "for i in 1 2 3 4 5 6 7 8; do $SCRIMP eval $TMP/tiny.scrimp --checkpoint "
               "$TMP/read$(test $i -gt 4 && echo /model.safetensors) || touch $TMP/refused; done; "
               "test -e $TMP/read/trainer.lock || touch $TMP/refused; "
               "kill $p; wait $p; test $? = 143 && test ! -e $TMP/refused");
}

int main(void)
{
    e2e_begin();
    write_tiny_model(60, 2);
    expect_run(0, NULL, "sed -i '/steps/a held_out = 16' $TMP/tiny.scrimp");
    test_two_writers();
    test_killed();
    test_refused_first();
    test_readers();
    return e2e_end();
}
