/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every example, or that of the file that is named (--list prints them), small, on the simulated
 * device: ten steps leave the losses, the weights and the optimizer's state of the CPU's, bit for
 * bit, and a step under a budget those of one that keeps everything; with NVIDIA's libraries,
 * simulated, they come near, but for deep networks with batch norm of a few pixels, whose gradients
 * amplify any rounding: test_cuda_conv.c has one with more pixels. */
#include "e2e.h"
#include "equal_runs.h"

#include <stdio.h>
#include <string.h>

typedef struct Example {
    const char *args, *data;
    bool keeps_nothing; /* its optimizer: plain SGD */
    bool amplifies; /* roundings, or has a gradient that is nothing else: of a bias that a softmax
                       or a norm takes out again */
    int seed;       /* of a batch of which no maximum hangs on a rounding */
} Example;

#define STAND_IN "--data $TMP/data" /* what `scrimp data` writes for the example */

static const Example examples[] = {
    {"mlp.scrimp -D N=20", "--data $TMP/idx", false, false, 3},
    {"convnet.scrimp -D N=4", "--data $TMP/idx", false, false, 3},
    {"vae.scrimp -D N=20 -D hidden=40", "--data $TMP/idx", false, false, 3},
    {"alexnet.scrimp -D N=2 -D size=96 -D hidden=32 -D classes=10", "", false, false, 4},
    {"vgg.scrimp -D depth=11 -D size=32 -D N=2 -D hidden=32 -D classes=10", "", false, false, 3},
    {"resnet.scrimp -D depth=50 -D size=32 -D N=2 -D classes=10", "", false, true, 3},
    {"densenet.scrimp -D N=2 -D size=32 -D classes=10", "", false, true, 3},
    {"googlenet.scrimp -D N=2 -D size=64 -D classes=10 -D aux=false", "", false, true, 3},
    {"inception_v3.scrimp -D N=2 -D size=80 -D aux=false -D classes=10", "", false, true, 3},
    {"nascell.scrimp -D cell=nasnet -D N=1 -D C=4 -D layers=3 -D size=8", "", false, true, 3},
    {"unet.scrimp -D width=2 -D size=188", "", false, false, 3},
    {"pspnet.scrimp -D N=2 -D size=49 -D depth=50 -D width=4 -D classes=5", "", false, true, 3},
    {"ffn.scrimp -D N=16 -D width=16 -D layers=6", "", true, false, 3},
    {"lstm_ptb.scrimp -D N=2 -D V=20 -D H=8 -D T=3", "", true, false, 3},
    {"transformer.scrimp -D N=2 -D S=7 -D T=6 -D V=60 -D C=16 -D heads=2 -D layers=2", "", false,
     false, 3},
    {"chargpt.scrimp -D N=2 -D T=8 -D L=2 -D C=16 -D p=0.1", "--data $TMP/t.txt", false, false, 3},
    {"demo.scrimp -D N=2 -D T=16 -D L=2 -D C=32", "--data $TMP/t.txt", false, false, 3},
    {"gpt2.scrimp -D N=2 -D T=16 -D V=300 -D C=16 -D heads=2 -D layers=2 -D p=0.1",
     "--data $TMP/t.bin", false, false, 3},
    {"llama.scrimp -D N=2 -D T=16 -D layers=2", STAND_IN, false, false, 3},
    {"vit.scrimp -D size_name=tiny -D layers=2 -D N=2 -D size=32 -D classes=10", "", false, false,
     3},
    {"mobilenet_v2.scrimp -D N=2 -D size=64 -D classes=10", "", false, true, 3},
    {"efficientnet.scrimp -D N=2 -D size=32 -D classes=10", "", false, true, 3},
    {"convnext.scrimp -D N=2 -D size=32 -D classes=10", "", false, false, 3},
    {"simclr.scrimp -D N=4 -D size=32", STAND_IN, false, true, 3},
    {"mixer.scrimp -D N=2 -D size=64 -D layers=2 -D C=64", "", false, true, 3},
    {"bert.scrimp -D size_name=tiny -D N=2 -D T=16 -D V=200", "", false, true, 3},
    {"moe.scrimp -D N=2 -D T=16 -D layers=2", STAND_IN, false, false, 3},
    {"gru.scrimp -D N=2 -D T=5 -D H=16", STAND_IN, false, false, 3},
    {"ddpm.scrimp -D N=2 -D width=8 -D layers=1", STAND_IN, false, true, 3},
    {"dcgan.scrimp -D N=4 -D ngf=4 -D ndf=4", STAND_IN, false, true, 3},
    {"lenet.scrimp -D N=20", STAND_IN, false, false, 3},
    {"audio.scrimp -D N=4 -D length=8000", STAND_IN, false, true, 3},
    {"tabular.scrimp -D N=50 -D width=16", STAND_IN, false, false, 3},
    {"ode.scrimp -D N=20 -D H=8", STAND_IN, false, false, 3},
    {"ssm.scrimp -D N=2 -D T=9 -D width=16", STAND_IN, false, false, 3},
};

static void train(const Example *e, const char *device, int steps, const char *name)
{
    Result r = run(SIMULATED "$SCRIMP train -q $EXAMPLES/%s %s --budget min --seed %d --steps %d "
                             "--device %s --out $TMP/%s --log $TMP/%s.log",
                   e->args, e->data, e->seed, steps, device, name, name);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void make_stand_in(const Example *e)
{
    Result r = run("rm -rf $TMP/data && $SCRIMP data -q $EXAMPLES/%s --data $TMP/data", e->args);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

/* After one step, the optimizer's state says what the gradients were. */
static void expect_near(const Example *e)
{
    train(e, "cpu", 1, "host1");
    train(e, "cuda --fast", 1, "fast1");
    train(e, "cuda --fast", 10, "fast");
    if (!e->keeps_nothing)
        expect_near_tensors("host1", "fast1", OPTIMIZER, 1e-4);
    expect_near_losses("host", "fast", 10, 1e-4);
    expect_near_tensors("host", "fast", WEIGHTS, 1e-4);
}

/* So small, not every step has a plan within half of its memory. */
static void verify(const char *args, const char *budget, bool must_fit)
{
    Result r = run(SIMULATED
                   "$SCRIMP verify $EXAMPLES/%s --device cuda --exact --budget %s --steps 2 --json",
                   args, budget);
    json_t *o = r.code == 0 ? json_loads(r.out, 0, NULL) : NULL;
    EXPECT((!must_fit && r.code == 3) || json_is_true(json_object_get(o, "identical")), r.err);
    json_decref(o);
    result_free(&r);
}

static int list(void)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        printf("%.*s\n", (int)strcspn(examples[i].args, " "), examples[i].args);
    return 0;
}

int main(int argc, char **argv)
{
    int n = 0;
    if (argc > 1 && strcmp(argv[1], "--list") == 0)
        return list();
    e2e_begin();
    make_text(in_tmp("t.txt"), 4000);
    make_tokens(in_tmp("t.bin"), 2000);
    make_digits(1200); /* convnet holds 1,000 out */
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const Example *e = &examples[i];
        if (argc > 1 && strncmp(e->args, argv[1], strcspn(e->args, ".") + 1) != 0)
            continue;
        if (strcmp(e->data, STAND_IN) == 0)
            make_stand_in(e);
        train(e, "cpu", 10, "host");
        train(e, "cuda --exact", 10, "device");
        expect_equal_steps("host", "device");
        if (!e->amplifies)
            expect_near(e);
        expect_ok("cd $TMP && rm -rf host* device* fast*");
        verify(e->args, "50%", false);
        verify(e->args, "min", true);
        n++;
    }
    EXPECT(n > 0, "no example is called so");
    return e2e_end();
}
