/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every network of the zoo, in every variant: see zoo.h; test_zoo.c has the others. */
#include "e2e.h"
#include "zoo.h"

#include <stdio.h>

// clang-format off
static const ZooModel models[] = {
    {"alexnet.scrimp -D variant=original -D size=67 -D hidden=64 -D N=4 -D classes=10 -D p=0 -D std=0.05", 60, 0.01},
    {"vgg.scrimp -D depth=11 -D size=32 -D N=4 -D classes=10 -D p=0 -D lr=0.02", 60, 0.01},
    {"vgg.scrimp -D variant=chainer -D depth=13 -D size=32 -D N=4 -D classes=10 -D p=0 -D lr=0.02", 100, 0.01},
    {"resnet.scrimp -D depth=50 -D size=64 -D N=4 -D classes=10 -D lr=0.02", 30, 0.01},
    {"resnet.scrimp -D depth=50 -D variant=chainer -D size=64 -D N=4 -D classes=10 -D lr=0.02", 30, 0.01},
    {"resnet.scrimp -D depth=18 -D variant=tf_v1 -D size=32 -D N=4 -D classes=10 -D lr=0.02", 30, 0.01},
    {"resnet.scrimp -D depth=18 -D variant=tf_v2 -D size=32 -D N=4 -D classes=10 -D lr=0.02", 30, 0.01},
    {"densenet.scrimp -D depth=121 -D size=32 -D N=4 -D classes=10 -D lr=0.05", 20, 0.01},
    {"densenet.scrimp -D depth=121 -D concat=list -D size=32 -D N=4 -D classes=10 -D lr=0.05", 20, 0.01},
    {"googlenet.scrimp -D size=64 -D N=4 -D classes=10 -D p=0 -D p_aux=0", 25, 0.01},
    {"googlenet.scrimp -D variant=chainer -D size=80 -D N=2 -D classes=10 -D p=0 -D lr=0.05", 200, 0.01},
    {"inception_v3.scrimp -D aux=false -D size=139 -D N=6 -D classes=10 -D p=0 -D smoothing=0 -D lr=0.001", 20, 0.01},
    {"inception_v3.scrimp -D size=299 -D N=2 -D classes=10 -D p=0 -D smoothing=0 -D lr=0.001", 60, 0.01},
    {"unet.scrimp -D size=188 -D width=8 -D p=0 -D lr=0.0001", 300, 0.01},
    {"unet.scrimp -D variant=phseg_v5 -D size=188 -D width=8 -D p=0 -D lr=0.0001", 300, 0.01},
    {"unet.scrimp -D weighted=true -D size=188 -D width=8 -D p=0 -D lr=0.00001", 300, 0.01},
    /* borders between labels lie between the elements that are resized: no loss of 0 */
    {"pspnet.scrimp -D depth=50 -D size=49 -D width=8 -D classes=5 -D p=0 -D lr=0.05", 100, 0.06},
    {"pspnet.scrimp -D aux=false -D depth=50 -D size=49 -D width=8 -D classes=5 -D p=0 -D lr=0.05", 100, 0.06},
    {"nascell.scrimp -D cell=nasnet -D C=4 -D layers=3 -D size=16 -D N=4", 40, 0.01},
    {"nascell.scrimp -D cell=amoebanet -D C=4 -D layers=3 -D size=16 -D N=4", 40, 0.01},
    {"nascell.scrimp -D cell=darts_v1 -D C=4 -D layers=3 -D size=16 -D N=4", 40, 0.01},
    {"nascell.scrimp -D cell=darts_v2 -D C=4 -D layers=3 -D size=16 -D N=4", 40, 0.01},
    /* a regression of random numbers of variance 1 */
    {"ffn.scrimp -D N=32 -D width=64 -D layers=5 -D lr=0.05", 3000, 0.1},
    {"transformer.scrimp -D variant=paper -D N=4 -D S=16 -D T=16 -D V=50 -D C=32 -D heads=2 -D layers=2 -D p=0 -D smoothing=0 -D warmup=40", 100, 0.01},
    {"gpt2.scrimp -D N=4 -D T=64 -D V=50 -D layers=3 -D C=32 -D heads=2 -D warmup=10 --data $TMP/tokens.bin", 700, 0.01},
    {"lstm_ptb.scrimp -D N=2 -D V=30 -D H=32 -D T=6 -D p=0 -D r=0.3", 300, 0.01},
    {"lstm_ptb.scrimp -D variant=pytorch -D N=2 -D V=30 -D H=32 -D T=6 -D p=0 -D r=0.3", 300, 0.01},
};
// clang-format on

/* A file of 16-bit tokens below 50. */
static void make_random_tokens(void)
{
    char path[600];
    snprintf(path, sizeof path, "%s/tokens.bin", e2e_tmp());
    FILE *f = fopen(path, "wb");
    for (uint32_t i = 0, x = 1; f && i < 2000; i++) {
        x = x * 1664525 + 1013904223;
        fputc((int)(x >> 16) % 50, f);
        fputc(0, f);
    }
    EXPECT(f && fclose(f) == 0, path);
}

int main(void)
{
    e2e_begin();
    make_random_tokens();
    zoo_run(models, sizeof models / sizeof *models);
    return e2e_end();
}
