/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recomputation is invisible: every example, or those of the file that is named, every solver and
 * budget, at one and two threads. */
#include "e2e.h"
#include "verify_example.h"

#include <string.h>

static const char *const examples[] = {
    "mlp.scrimp -D N=16",
    "convnet.scrimp -D N=8",
    "vae.scrimp -D N=200 -D hidden=40",
    "resnet.scrimp -D depth=18 -D size=32 -D N=2 -D classes=10",
    "resnet.scrimp -D depth=50 -D size=64 -D N=2 -D classes=10",
    "chargpt.scrimp -D N=2",
    "demo.scrimp -D N=2",
    "resnet.scrimp -D depth=50 -D size=64 -D classes=10",
    "gpt2.scrimp -D N=2 -D T=128 -D V=1000",
    "ffn.scrimp -D N=256 -D width=64 -D layers=12",
    "lstm_ptb.scrimp -D N=64 -D V=10 -D H=24 -D T=6",
    "lstm_ptb.scrimp -D N=8 -D V=10 -D H=24 -D T=6 -D form=layers",
    "llama.scrimp -D N=2 -D T=16 -D layers=2",
    "vit.scrimp -D size_name=tiny -D layers=2 -D N=2 -D size=64 -D classes=10 -D drop=0.1",
    "mobilenet_v2.scrimp -D N=2 -D size=64 -D classes=10",
    "efficientnet.scrimp -D N=2 -D size=64 -D classes=10",
    "convnext.scrimp -D N=2 -D size=64 -D classes=10",
    "simclr.scrimp -D N=4 -D size=32",
    "mixer.scrimp -D N=2 -D size=64 -D layers=2 -D C=64",
    "bert.scrimp -D size_name=tiny -D N=2 -D T=16 -D V=200",
    "moe.scrimp -D N=2 -D T=16 -D layers=2",
    "gru.scrimp -D N=4 -D T=19 -D H=32",
    "ddpm.scrimp -D N=2 -D width=8 -D layers=1",
    "dcgan.scrimp -D N=4 -D ngf=4 -D ndf=4",
    "lenet.scrimp -D N=20",
    "audio.scrimp -D N=8 -D length=8000",
    "tabular.scrimp -D N=100 -D width=32",
    "ode.scrimp -D N=200 -D H=16",
    "ssm.scrimp -D N=2 -D T=17 -D width=32"};
static const char *const solvers[] = {"none", "chen", "kusumoto_approx", ""};
static const char *const budgets[] = {"80%", "60%", "40%", "min"};

static void verify_all(const char *example)
{
    for (size_t s = 0; s < sizeof solvers / sizeof *solvers; s++)
        for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++)
            for (int threads = 1; threads <= 2; threads++)
                verify_example(example, solvers[s], budgets[b], threads);
}

int main(int argc, char **argv)
{
    int verified = 0;
    e2e_begin();
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++) {
        if (argc > 1 && strncmp(examples[e], argv[1], strcspn(examples[e], ".") + 1) != 0)
            continue;
        verify_all(examples[e]);
        verified++;
    }
    EXPECT(verified > 0, "no example is called so");
    return e2e_end();
}
