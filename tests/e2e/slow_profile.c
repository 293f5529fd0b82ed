/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measured costs of the other examples, small. */
#include "e2e.h"
#include "profile_example.h"

static const ProfileExample examples[] = {
    {"mlp.scrimp -D N=16", false},
    {"chargpt.scrimp -D N=2 -D T=16 -D p=0.1", true},
    {"ffn.scrimp -D N=256 -D width=64 -D layers=12", true},
    {"lstm_ptb.scrimp -D N=64 -D V=10 -D H=24 -D T=4", true},
    {"demo.scrimp -D N=4 -D T=64 -D L=3", true},
    {"alexnet.scrimp -D N=64 -D size=96 -D hidden=32", false},
    {"vgg.scrimp -D depth=11 -D size=32 -D N=64 -D hidden=32", true},
    {"resnet.scrimp -D depth=18 -D size=64 -D N=32 -D classes=10", true},
    {"densenet.scrimp -D N=2 -D size=64 -D classes=10", true},
    {"googlenet.scrimp -D N=16 -D size=64 -D classes=10 -D aux=false", true},
    {"inception_v3.scrimp -D N=2 -D size=80 -D aux=false -D classes=10", true},
    {"nascell.scrimp -D C=4 -D layers=3 -D size=16 -D N=4", true},
    {"unet.scrimp -D size=188 -D width=4 -D N=2", false},
    {"pspnet.scrimp -D N=2 -D size=65 -D depth=50 -D width=8 -D classes=5", true},
    {"transformer.scrimp -D N=2 -D S=8 -D T=8 -D V=40 -D C=32 -D heads=2 -D layers=2", true},
    {"gpt2.scrimp -D N=8 -D T=64 -D V=50 -D layers=3 -D C=32 -D heads=2", true},
};

int main(void)
{
    e2e_begin();
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++)
        profile_example(&examples[e]);
    return e2e_end();
}
