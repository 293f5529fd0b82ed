/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions by cuDNN, simulated, in whole training steps: losses are those of --exact within
 * 1e-4, every plan has the same bits, and what is missing or too small is said; slow_cuda.c has the
 * examples.  SCRIMP_ALL=1: also a ResNet. */
#include "e2e.h"
#include "equal_runs.h"
#include "tests/support/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Plain, strided, grouped, depthwise, dilated and transposed convolutions, with a bias and
 * without; images of three channels. */
static const char model[] =
    "option N = 3 \"batch\"\n"
    "option precision = \"f32\" in [\"f32\", \"tf32\", \"bf16\"] \"see train\"\n"
    "model net(x: f32[N, 3, 14, 14]) {\n"
    "  x = x |> stem: conv(8, 3, stride = 2, pad = 1) |> relu()\n"
    "  x = x |> group: conv(12, 3, pad = 1, groups = 2, bias = false) |> n: bn() |> relu()\n"
    "  x = x |> deep: conv(12, 3, pad = 2, dilation = 2, groups = 12) |> relu()\n"
    "  x = x |> up: deconv(6, 2, stride = 2) |> relu() |> flat: conv(5, [1, 3]) |> relu()\n"
    "  return x |> global_avgpool() |> flatten() |> fc: linear(4)\n"
    "}\n"
    "train {\n"
    "  batch = synthetic(image = f32[N, 3, 14, 14], label = i32[N])\n"
    "  loss = cross_entropy(net(batch.image), batch.label)\n"
    "  optim = sgd(lr = 0.05, momentum = 0.9)\n"
    "  precision = precision\n  epochs = 5\n"
    "}\n";

static void write_model(void)
{
    FILE *f = fopen(in_tmp("net.scrimp"), "w");
    fputs(model, f);
    fclose(f);
}

#define TRAIN "$SCRIMP train -q $TMP/net.scrimp --seed 3 --steps 4 "

static void test_losses(void)
{
    double exact = trained_loss(TRAIN "--device cuda --exact", "exact");
    double fast = trained_loss(TRAIN "--device cuda --fast", "fast");
    double tf32 = trained_loss(TRAIN "--device cuda --fast -D precision=tf32", "tf32");
    double bf16 = trained_loss(TRAIN "--device cuda --fast -D precision=bf16", "bf16");
    char text[128];
    snprintf(text, sizeof text, "%.9g exact, %.9g fast, %.9g tf32, %.9g bf16", exact, fast, tf32,
             bf16);
    EXPECT(fabs(fast - exact) <= 1e-4 * exact, text);
    EXPECT(fabs(tf32 - exact) <= 1e-3 * exact && tf32 != fast, text);
    EXPECT(fabs(bf16 - exact) <= 2e-2 * exact && bf16 != fast, text);
    expect_run(1, NULL, "cmp $TMP/exact/model.safetensors $TMP/fast/model.safetensors");
}

static void test_resnet(void)
{
#define RESNET                                                                                     \
    "$SCRIMP train -q $EXAMPLES/resnet.scrimp -D depth=18 -D size=64 -D N=4 -D classes=10 "        \
    "-D lr=0.001 --seed 3 --steps 2 --device cuda "
    trained_loss(RESNET "--exact", "resnet_exact");
    trained_loss(RESNET "--fast", "resnet_fast");
    expect_near_losses("resnet_exact", "resnet_fast", 2, 1e-4);
}

/* Calls of the libraries in a dump of the launches. */
static void test_plan(void)
{
    Result r = run(SIMULATED "$SCRIMP dump --stage=plan --no-loc --device cuda $TMP/net.scrimp");
    int calls = 0;
    for (const char *at = r.out; (at = strstr(at, "library=\"cudnn\"")); at++)
        calls++;
    EXPECT(r.code == 0 && calls == 14, r.out); /* all but the images' gradient */
    result_free(&r);
    expect_said(0, "\ndilation_y 2\n",
                SIMULATED "$SCRIMP dump --stage=cuda --device sm_80 $TMP/net.scrimp");
}

static void test_verify(void)
{
    expect_said(0, "identical: 2 steps",
                SIMULATED
                "$SCRIMP verify $TMP/net.scrimp --device cuda --fast --budget min --steps 2");
}

/* A device with fewer multiprocessors than planned for, on which the engine wants more than the
 * step has for it: another one is taken when the step is loaded, which adds in the same order. */
static void test_other_devices(void)
{
    expect_ok(SIMULATED "SCRIMP_SIM_CUDNN_SMS=20 " TRAIN
                        "-D precision=bf16 --device cuda --fast --out $TMP/small");
    expect_ok("cmp $TMP/small/model.safetensors $TMP/bf16/model.safetensors");
}

static void test_missing(void)
{
    expect_run(1, "the cuDNN library is too old",
               SIMULATED "SCRIMP_SIM_CUDNN=90100 " TRAIN "--device cuda --fast");
    expect_run(0, "scrimp's own kernels are used",
               SIMULATED "SCRIMP_SIM_CUDNN=90100 " TRAIN "--device cuda --out $TMP/own");
    expect_ok(SIMULATED "SCRIMP_SIM_CUDNN=none " TRAIN "--device cuda --fast --out $TMP/none");
    expect_run(1, "cuDNN ended the process that asked it",
               SIMULATED "SCRIMP_SIM_CUDNN=crash " TRAIN "--device cuda --fast");
    expect_run(0, "cuDNN ended the process that asked it",
               SIMULATED "SCRIMP_SIM_CUDNN=crash " TRAIN "--device cuda --out $TMP/ended");
    expect_run(1, "of which scrimp knows no device",
               SIMULATED "$SCRIMP plan $EXAMPLES/convnet.scrimp --device sm_30 --fast");
}

/* For two architectures, with a plan of each convolution, and one of the product. */
static void test_export(void)
{
    expect_ok(SIMULATED "$SCRIMP compile $TMP/net.scrimp --device sm_80,sm_90 --fast -o $TMP/two");
    expect_said(0, "17 17",
                "cd $TMP/two && echo $(ls sm_80/*.plan | wc -l) $(ls sm_90/*.plan | wc -l)");
    expect_ok("grep -q '^engine 47$' $TMP/two/sm_90/*.plan");
}

int main(void)
{
    e2e_begin();
    write_model();
    test_losses();
    test_plan();
    test_verify();
    test_other_devices();
    test_missing();
    test_export();
    if (sample_all())
        test_resnet();
    return e2e_end();
}
