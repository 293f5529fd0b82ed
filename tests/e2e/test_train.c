/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Training as a user does it: loss falls, runs resume bit for bit, Ctrl-C saves, the step runs
 * without scrimp. */
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_learning(void)
{
    make_digits(2000);
    expect_ok("sed '/^train {/a held_out = 10%' $EXAMPLES/mlp.scrimp > $TMP/mlp.scrimp");
    expect_ok("$SCRIMP train $TMP/mlp.scrimp -D N=50 --data $TMP/idx --steps 120 --log $TMP/log "
              "--out $TMP/run");
    double loss = last_in_log(in_tmp("log"), "loss");
    EXPECT(loss < 0.7, "the training loss did not fall");
    EXPECT(isfinite(last_in_log(in_tmp("log"), "grad_norm")), "no gradient norm");
    EXPECT(isfinite(last_in_log(in_tmp("log"), "lr")) &&
               isfinite(last_in_log(in_tmp("log"), "seconds")),
           "no lr or seconds");
    EXPECT(last_in_log(in_tmp("log"), "val_accuracy") > 0.8, "held-out accuracy");
    json_t *o = run_json(
        0, "$SCRIMP eval $TMP/mlp.scrimp -D N=50 --data $TMP/idx --checkpoint $TMP/run --json");
    EXPECT(json_get_number(o, "accuracy") > 0.8, "accuracy of eval");
    EXPECT(fabs(json_get_number(o, "loss") - last_in_log(in_tmp("log"), "val_loss")) < 1e-6,
           "eval and the last evaluation of train agree");
    json_decref(o);
}

/* 30 steps at once equal 12 + 18 steps, for weights and optimizer state. */
static void test_resume(void)
{
    expect_ok("$SCRIMP train $EXAMPLES/convnet.scrimp -D N=20 --data $TMP/idx --steps 30 --out "
              "$TMP/whole -q");
    expect_ok("$SCRIMP train $EXAMPLES/convnet.scrimp -D N=20 --data $TMP/idx --steps 30 --out "
              "$TMP/parts -q");
    expect_ok("cmp $TMP/whole/model.safetensors $TMP/parts/model.safetensors");
    /* A run that is interrupted saves; more threads and a budget change nothing.  (The shell has a
     * job in the background ignore INT.)  On a busy machine the run may end before the signal. */
    expect_ok(
        "for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf $TMP/parts; "
        "env --default-signal $SCRIMP train $EXAMPLES/convnet.scrimp -D N=20 --data $TMP/idx "
        "--steps 30 --out $TMP/parts 2> $TMP/progress & pid=$!; "
        "while ! grep -q '^step' $TMP/progress; do sleep 0.01; done; "
        "kill -INT $pid; wait $pid; code=$?; test $code = 0 || break; done; test $code = 130");
    expect_ok("$SCRIMP train $EXAMPLES/convnet.scrimp -D N=20 --data $TMP/idx --steps 30 --out "
              "$TMP/parts "
              "--resume --threads 1 --budget 70% -q");
    expect_ok("cmp $TMP/whole/model.safetensors $TMP/parts/model.safetensors");
    expect_ok("cmp $TMP/whole/optimizer-*.safetensors $TMP/parts/optimizer-*.safetensors");
}

static void test_text(void)
{
    make_text(in_tmp("text"), 30000);
    expect_ok("$SCRIMP train $EXAMPLES/chargpt.scrimp -D N=4 -D L=2 --data $TMP/text --steps 40 "
              "--log $TMP/log "
              "--out $TMP/gpt -q");
    EXPECT(last_in_log(in_tmp("log"), "loss") < 2.6, "the language model learns");
    Result r = run(
        "$SCRIMP generate $EXAMPLES/chargpt.scrimp -D L=2 --checkpoint $TMP/gpt --prompt 'the ' "
        "--tokens 80 --top-k 10 --seed 3");
    EXPECT(r.code == 0 && strncmp(r.out, "the ", 4) == 0 && strlen(r.out) >= 84, r.err);
    Result again = run(
        "$SCRIMP generate $EXAMPLES/chargpt.scrimp -D L=2 --checkpoint $TMP/gpt --prompt 'the ' "
        "--tokens 80 --top-k 10 --seed 3 --threads 1");
    EXPECT(strcmp(r.out, again.out) == 0, "the same seed writes the same text");
    expect_run(1, "gpt/model.safetensors has no vocabulary",
               "$SCRIMP generate $EXAMPLES/chargpt.scrimp -D L=2 --checkpoint "
               "$TMP/gpt/model.safetensors --prompt 'the '");
    result_free(&r);
    result_free(&again);
}

/* What ./bootstrap demo trains finds its text in the source tree.  The last evaluation reads a
 * twentieth of it: a batch has to be large enough for that. */
static void test_demo(void)
{
    expect_ok("cd $EXAMPLES/.. && exec $SCRIMP train examples/demo.scrimp -D N=4 -D T=64 -D L=2 "
              "-D C=32 --steps 2 --log $TMP/demo.log -q");
    EXPECT(isfinite(last_in_log(in_tmp("demo.log"), "loss")), "no loss");
}

static void test_overfit(void)
{
    expect_ok("$SCRIMP train $EXAMPLES/mlp.scrimp -D N=16 --data $TMP/idx --steps 150 --overfit "
              "--log $TMP/log -q");
    EXPECT(last_in_log(in_tmp("log"), "loss") < 0.01, "one batch is learnt by heart");
}

static void test_ahead_of_time(void)
{
    if (run("command -v gcc").code != 0)
        return;
    expect_ok("cd $TMP && $SCRIMP compile $EXAMPLES/mlp.scrimp -D N=64 -o step.so --header step.h");
    expect_ok("cd $TMP && gcc -O2 -Wall -Werror -I. $EXAMPLES/aot/train_mlp.c ./step.so -lm -o "
              "serial && ./serial");
    expect_ok("cd $TMP && ./serial > serial.txt && gcc -O2 -fopenmp -I. $EXAMPLES/aot/train_mlp.c "
              "./step.so -lm "
              "-o threads && OMP_WAIT_POLICY=passive ./threads > threads.txt && cmp serial.txt "
              "threads.txt");
    expect_ok("cd $TMP && ! ldd step.so | grep -q -e gccjit -e scrimp");
}

int main(void)
{
    e2e_begin();
    test_learning();
    test_resume();
    test_text();
    test_demo();
    test_overfit();
    test_ahead_of_time();
    return e2e_end();
}
