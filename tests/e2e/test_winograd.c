/* SPDX-License-Identifier: GPL-3.0-or-later */
/* winograd = true: trains as the direct convolutions do, but for roundings; the same bits under
 * every budget and for any number of threads; eval and predict compute as training does; what is
 * said of it on a device. */
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void make_example(const char *name)
{
    /* Of a ResNet, the first two stages: the others only have more channels. */
    Result r = run("sed -e '1i option winograd = false' -e 's/for i in 0..4 {/for i in 0..2 {/' "
                   "-e 's/held_out *= 1000/held_out = 40/' -e 's/^train {/train {\\n  winograd = "
                   "winograd/' $EXAMPLES/%s.scrimp "
                   "> $TMP/%s.scrimp",
                   name, name);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

#define RESNET  "$TMP/resnet.scrimp -D depth=18 -D N=4 -D size=48 -D classes=10 "
#define CONVNET "$TMP/convnet.scrimp -D N=20 --data $TMP/idx "

static void train(const char *what, const char *more, const char *out)
{
    Result r = run("$SCRIMP train -q %s --seed 3 --steps 4 --out $TMP/%s --log $TMP/%s.log %s",
                   what, out, out, more);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static double last_loss(const char *log)
{
    return last_in_log(in_tmp(log), "loss");
}

static void test_losses(void)
{
    train(RESNET, "", "direct");
    train(RESNET, "-D winograd=true", "tiles");
    double direct = last_loss("direct.log"), tiles = last_loss("tiles.log");
    char text[64];
    snprintf(text, sizeof text, "%.9g instead of %.9g", tiles, direct);
    EXPECT(tiles != direct && fabs(tiles - direct) <= 1e-3 * direct, text);
}

static void test_same_bits(void)
{
    train(RESNET, "-D winograd=true --threads 1", "one");
    train(RESNET, "-D winograd=true --threads 3 --budget min", "three");
    expect_ok("cmp $TMP/tiles/model.safetensors $TMP/one/model.safetensors && "
              "cmp $TMP/tiles/model.safetensors $TMP/three/model.safetensors");
    expect_ok("! cmp -s $TMP/tiles/model.safetensors $TMP/direct/model.safetensors");
    expect_said(0, "identical: 2 steps",
                "$SCRIMP verify " RESNET "-D winograd=true --steps 2 --budget min");
}

static double eval_loss(const char *more)
{
    json_t *o = run_json(0, "$SCRIMP eval " CONVNET "--checkpoint $TMP/digits --json %s", more);
    double loss = o ? json_get_number(o, "loss") : (double)NAN;
    json_decref(o);
    return loss;
}

static void test_eval(void)
{
    train(CONVNET, "-D winograd=true", "digits");
    double direct = eval_loss(""), tiles = eval_loss("-D winograd=true");
    char text[64];
    snprintf(text, sizeof text, "%.12g instead of %.12g", tiles, direct);
    EXPECT(tiles != direct && fabs(tiles - direct) <= 1e-5 * direct, text);
    expect_ok("$SCRIMP compile $TMP/convnet.scrimp -D N=20 -D winograd=true --inference "
              "--checkpoint $TMP/digits "
              "-o $TMP/tiles.so && $SCRIMP compile $TMP/convnet.scrimp -D N=20 --inference "
              "--checkpoint $TMP/digits "
              "-o $TMP/direct.so && ! cmp -s $TMP/tiles.so $TMP/direct.so");
}

static void test_resume_says(void)
{
    expect_run(0, "winograd", "$SCRIMP train " CONVNET "--out $TMP/digits --resume --steps 5");
}

#define SIMULATED "SCRIMP_CUDA_PATH=$SCRIMP_BUILD/cuda-sim "

static void test_device(void)
{
    expect_run(1, "a device has no kernels for winograd = true",
               SIMULATED "$SCRIMP train " CONVNET "-D winograd=true --steps 1 --out $TMP/d "
                         "--device cuda --exact");
    expect_run(0, "note: winograd = true is for the processor's kernels",
               SIMULATED "$SCRIMP train " CONVNET "-D winograd=true --steps 1 --out $TMP/d "
                         "--device cuda");
}

static void test_errors(void)
{
    expect_ok("sed 's/winograd = winograd/winograd = 4/' $TMP/convnet.scrimp > $TMP/four.scrimp");
    expect_run(1, "`winograd` is true or false, got", "$SCRIMP check $TMP/four.scrimp");
}

int main(void)
{
    e2e_begin();
    make_digits(200);
    make_example("resnet");
    make_example("convnet");
    test_losses();
    test_same_bits();
    test_eval();
    test_resume_says();
    test_device();
    test_errors();
    return e2e_end();
}
