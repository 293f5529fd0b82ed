/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --device cuda --exact on the simulated device (tests/cuda/sim): a training run leaves the
 * weights, the optimizer's state and the losses of the CPU's, bit for bit, whatever the order of
 * threads; what a machine without a device says. */
#include "e2e.h"
#include "equal_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRAIN "$SCRIMP train -q $EXAMPLES/mlp.scrimp -D N=20 --data $TMP/idx --seed 3 "

static void test_training(void)
{
    static const char *const orders[] = {"forward", "reverse", "11"};
    expect_ok(TRAIN "--steps 4 --out $TMP/cpu --log $TMP/cpu.log");
    for (int i = 0; i < 3; i++) {
        Result r =
            run(SIMULATED "SCRIMP_SIM_ORDER=%s " TRAIN
                          "--steps 4 --device cuda --exact --out $TMP/gpu%d --log $TMP/gpu%d.log",
                orders[i], i, i);
        EXPECT(r.code == 0, r.err);
        result_free(&r);
        char name[20];
        snprintf(name, sizeof name, "gpu%d", i);
        expect_equal_steps("cpu", name);
    }
}

/* Examples with kernels that the one above lacks; slow_cuda.c has all. */
static const char *const examples[] = {
    "lstm_ptb.scrimp -D N=2 -D V=20 -D H=8 -D T=2",
    "lstm_ptb.scrimp -D N=2 -D V=20 -D H=8 -D T=3 -D form=scan",
    "lstm_ptb.scrimp -D N=2 -D V=20 -D H=8 -D T=23 -D form=scan --budget min",
    "ssm.scrimp -D N=2 -D T=4 -D width=8 -D depth=1 --data $TMP/t.txt",
    "chargpt.scrimp -D N=2 -D T=8 -D L=1 -D C=16 --data $TMP/t.txt",
};

static void train_example(const char *example, bool device)
{
    const char *name = device ? "device" : "host";
    Result r = run(
        "%s $SCRIMP train -q $EXAMPLES/%s --seed 3 --steps 3 %s --out $TMP/%s --log $TMP/%s.log",
        device ? SIMULATED : "", example, device ? "--device cuda --exact" : "", name, name);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void test_examples(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        train_example(examples[i], false);
        train_example(examples[i], true);
        expect_equal_steps("host", "device");
        expect_ok("rm -r $TMP/host $TMP/device $TMP/host.log $TMP/device.log");
    }
}

/* A run may be continued on another device. */
static void test_resume(void)
{
    expect_ok(SIMULATED TRAIN
              "--steps 2 --device cuda --exact --out $TMP/moved --log $TMP/moved.log");
    expect_ok(TRAIN "--steps 4 --resume --out $TMP/moved --log $TMP/moved.log");
    expect_equal_steps("cpu", "moved");
}

/* A step that computes values again leaves the bits of one that keeps them. */
static void test_verify(void)
{
    expect_said(0, "identical: 2 steps",
                SIMULATED
                "$SCRIMP verify --device cuda --exact $EXAMPLES/mlp.scrimp -D N=20 --steps 2");
}

static void test_dumps(void)
{
    expect_said(0, "KERNEL(k_", "$SCRIMP dump --stage=cuda $EXAMPLES/mlp.scrimp -D N=20");
    expect_said(0, "# target sm_80:",
                SIMULATED "$SCRIMP dump --stage=code --device sm_80 $EXAMPLES/mlp.scrimp -D N=20");
    expect_said(1, "no such stage",
                SIMULATED
                "$SCRIMP dump --stage=asm --device cuda --exact $EXAMPLES/mlp.scrimp -D N=20");
}

/* A step that fails half way is no step: the newest save stays as it is. */
static void test_failed_launch(void)
{
    expect_ok(SIMULATED TRAIN "--steps 2 --device cuda --exact --out $TMP/half");
    expect_run(1, "launching call 27",
               SIMULATED "SCRIMP_SIM_FAIL=28 " TRAIN
                         "--steps 6 --device cuda --exact --resume --out $TMP/half");
    expect_ok(SIMULATED TRAIN "--steps 2 --device cuda --exact --out $TMP/whole");
    expect_ok("cmp $TMP/half/model.safetensors $TMP/whole/model.safetensors");
    expect_run(
        1, "launching call 4",
        SIMULATED
        "SCRIMP_SIM_FAIL=5 $SCRIMP bench $EXAMPLES/mlp.scrimp --steps 1 --device cuda --exact");
}

static void test_errors(void)
{
    expect_run(1, "the device here is sm_90", SIMULATED TRAIN "--steps 1 --device sm_75");
    expect_ok(SIMULATED TRAIN "--steps 1 --device cuda --exact --no-cache");
    expect_run(1, "there is no such device", TRAIN "--steps 1 --device tpu");
    expect_run(3, "--budget 937472, or a smaller batch",
               SIMULATED "SCRIMP_SIM_BYTES=1000000 " TRAIN "--steps 1 --device cuda --exact");
    if (access("/dev/nvidia0", F_OK) != 0)
        expect_run(1, "has no CUDA driver",
                   "SCRIMP_CUDA_PATH=$TMP " TRAIN "--steps 1 --device cuda --exact");
    expect_run(1, "there is no such device", TRAIN "--steps 1 --device sm_90,");
}

int main(void)
{
    e2e_begin();
    make_digits(200);
    make_text(in_tmp("t.txt"), 4000);
    test_training();
    test_examples();
    test_resume();
    test_verify();
    test_dumps();
    if (!getenv("SCRIMP_CUDA_REAL")) { /* what only a simulated device does on demand */
        test_failed_launch();
        test_errors();
    }
    return e2e_end();
}
