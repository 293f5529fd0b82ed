/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Saving as a user meets it: file systems without links, disks that are slower than the steps. */
#include "e2e.h"
#include "equal_runs.h"
#include "tiny_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* False where there is no LD_PRELOAD. */
static bool have_library(const char *variable)
{
    const char *path = getenv(variable);
    if (!*path)
        return false;
    EXPECT(access(path, R_OK) == 0, path);
    return true;
}

/* Training, resuming and reading are the same where a second name has to be a copy. */
static void test_no_links(void)
{
    if (!have_library("NO_LINKS"))
        return;
    write_tiny_model(8, 2);
    expect_run(0, NULL, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/links -q");
    expect_run(0, NULL,
               "LD_PRELOAD=$NO_LINKS $SCRIMP train $TMP/tiny.scrimp --out $TMP/none --steps 4 -q");
    expect_run(0, NULL,
               "LD_PRELOAD=$NO_LINKS $SCRIMP train $TMP/tiny.scrimp --out $TMP/none --resume -q");
    expect_run(0, NULL, "cmp $TMP/links/model.safetensors $TMP/none/model.safetensors");
    expect_run(0, NULL, "test $(stat -c %h $TMP/none/model.safetensors) = 1"); /* no link indeed */
    expect_run(0, NULL, "test $(stat -c %h $TMP/links/model.safetensors) = 2");
}

/* Saves that take longer than what is between them: every one is made, in order, and the run says
 * what it waits for. */
static void test_late_disk(void)
{
    if (!have_library("LATE_DISK"))
        return;
    write_tiny_model(6, 1);
    expect_run(0, NULL, "$SCRIMP train $TMP/tiny.scrimp --out $TMP/quick -q");
    Result r =
        run("RENAMED=$TMP/renamed LD_PRELOAD=$LATE_DISK $SCRIMP train $TMP/tiny.scrimp --out "
            "$TMP/late");
    EXPECT(r.code == 0 && strstr(r.err, "the run waits for every save"), r.err);
    result_free(&r);
    expect_run(0, NULL, "test $(grep -c 'late/trainer.json$' $TMP/renamed) = 6");
    expect_run(0, NULL,
               "for i in 1 2 3 4 5 6; do echo $TMP/late/model-000000000$i.safetensors; done > "
               "$TMP/wanted; grep /model-0 $TMP/renamed | cmp - $TMP/wanted");
    expect_run(0, NULL, "cmp $TMP/quick/model.safetensors $TMP/late/model.safetensors");
}

#define FALLING "$SCRIMP train $TMP/falling.scrimp --keep-best -q "
static void write_falling(void)
{
    FILE *f = fopen(in_tmp("falling.scrimp"), "w");
    if (!f)
        abort();
    fputs("model m(x: f32[8, 12]) { return x |> fc: linear(5) }\n"
          "train {\n"
          "  batch = synthetic(x = f32[8, 12], y = i32[8])\n"
          "  loss = cross_entropy(m(batch.x), batch.y)\n"
          "  optim = sgd(lr = 0.05)\n"
          "  held_out = 80\n  eval_every = 4\n  steps = 8\n"
          "}\n",
          f);
    fclose(f);
}

/* Both evaluations are the best so far.  Killed between the saves of the second, the run that goes
 * on keeps it all the same. */
static void test_killed_at_best(void)
{
    if (!have_library("LATE_DISK"))
        return;
    expect_run(0, NULL, FALLING "--out $TMP/best");
    expect_equal_runs("best", "best/best"); /* the last one indeed */
    for (int at = 2; at <= 4; at++) {
        char run[16], best[24];
        snprintf(run, sizeof run, "%d", at);
        setenv("AT", run, 1);
        expect_run(0, NULL,
                   "KILL_AT_SWITCH=$AT LD_PRELOAD=$LATE_DISK " FALLING
                   "--out $TMP/killed$AT; test $? = 137");
        expect_run(0, NULL,
                   "test ! -e $TMP/killed$AT/trainer.json || resume=--resume; " FALLING
                   "--out $TMP/killed$AT $resume");
        snprintf(run, sizeof run, "killed%d", at);
        snprintf(best, sizeof best, "killed%d/best", at);
        expect_equal_runs("best", run);
        expect_equal_runs("best", best);
    }
}

/* The last three saves are checkpoints that evaluate, and go on to what the run comes to.  Killed
 * at any save, the run that goes on has them too. */
#define KEPT "$SCRIMP train $TMP/falling.scrimp --keep-last 3 -q --steps 18 "
static void test_keep_last(void)
{
    expect_run(0, NULL, KEPT "--out $TMP/kept");
    expect_run(0, NULL, "test \"$(cd $TMP/kept && echo step-*)\" = 'step-12 step-16 step-18'");
    expect_equal_runs("kept", "kept/step-18");
    expect_run(0, NULL, "test $TMP/kept/model.safetensors -ef $TMP/kept/step-18/model.safetensors");
    expect_run(0, NULL,
               "$SCRIMP eval $TMP/falling.scrimp --checkpoint $TMP/kept/step-12 && "
               "cp -r $TMP/kept/step-12 $TMP/older && " KEPT "--resume --out $TMP/older");
    expect_equal_runs("kept", "older");
    expect_run(
        0, NULL,
        "test \"$(cd $TMP/older && echo step-*)\" = 'step-12 step-16 step-18' && "
        "mkdir $TMP/kept/step-99 $TMP/kept/step-16.unfinished && touch $TMP/kept/step-12/mine");
    expect_run(0, NULL, KEPT "--steps 6 --overwrite --out $TMP/kept");
    expect_run(0, NULL,
               "test \"$(cd $TMP/kept && echo step-*)\" = 'step-12 step-4 step-6' && "
               "test \"$(ls $TMP/kept/step-12)\" = mine");
    expect_run(1, "--keep-last needs the run's folder", KEPT);
}

static void test_killed_while_keeping(void)
{
    if (!have_library("LATE_DISK"))
        return;
    for (int at = 2; at <= 4; at++) {
        char number[16], name[16];
        snprintf(number, sizeof number, "%d", at);
        snprintf(name, sizeof name, "stop%d", at);
        setenv("AT", number, 1);
        expect_run(0, NULL,
                   "KILL_AT_SWITCH=$AT LD_PRELOAD=$LATE_DISK " KEPT
                   "--out $TMP/stop$AT; test $? = 137");
        expect_run(0, NULL, KEPT "--resume --out $TMP/stop$AT");
        expect_equal_runs("older", name);
        expect_run(0, NULL,
                   "test \"$(cd $TMP/stop$AT && echo step-*)\" = 'step-12 step-16 step-18'");
    }
}

int main(void)
{
    e2e_begin();
    test_no_links();
    test_late_disk();
    write_falling();
    test_killed_at_best();
    test_keep_last();
    test_killed_while_keeping();
    return e2e_end();
}
