/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The zoo at the batches of the papers is planned in seconds, and what compiles quickly learns:
 * see zoo.h.  SCRIMP_ALL=1: those networks, too, that take many seconds, and
 * plans of the usual effort. */
#include "e2e.h"
#include "tests/support/sample.h"
#include "zoo.h"

#include <stdio.h>

typedef struct Planned {
    const char *model;
    int percent; /* of the memory without recomputation, that a plan needs at most */
    bool quick;
} Planned;

// clang-format off
/* Batches of Kusumoto et al. 2019, table 1, of Feng and Huang 2021 and of the papers on translation. */
static const Planned planned[] = {
    {"resnet.scrimp -D depth=50 -D N=96", 35, true},
    {"resnet.scrimp -D depth=152 -D variant=chainer -D N=48", 25, false},
    {"densenet.scrimp -D depth=161 -D N=32", 20, false},
    {"vgg.scrimp -D depth=19 -D N=64", 70, true},
    {"googlenet.scrimp -D variant=chainer -D N=256", 45, false},
    {"inception_v3.scrimp -D size=300 -D N=32", 35, false},
    {"inception_v3.scrimp -D size=300 -D aux=false -D N=32", 35, false},
    {"unet.scrimp -D N=8", 55, false},
    {"pspnet.scrimp", 30, false},
    {"nascell.scrimp -D cell=nasnet", 25, false},
    {"nascell.scrimp -D cell=amoebanet", 20, false},
    {"nascell.scrimp -D cell=darts_v1", 20, false},
    {"nascell.scrimp -D cell=darts_v2", 20, false},
    {"ffn.scrimp -D layers=100", 99, false},
    {"transformer.scrimp", 60, false},
    {"transformer.scrimp -D size_name=big", 55, false},
    {"gpt2.scrimp -D p=0.1", 50, true},
};

static const ZooModel models[] = {
    {"alexnet.scrimp -D size=64 -D hidden=64 -D N=4 -D classes=10 -D p=0", 140, 0.01},
    {"transformer.scrimp -D N=4 -D S=16 -D T=16 -D V=50 -D C=32 -D heads=2 -D layers=2 -D p=0 -D smoothing=0 -D warmup=40", 60, 0.01},
};
// clang-format on

static void plan(const Planned *model)
{
    Result r = run("$SCRIMP plan $EXAMPLES/%s --budget min --json %s", model->model,
                   sample_all() ? "" : "--effort 0.25");
    char detail[2000];
    snprintf(detail, sizeof detail, "%s: exit code %d after %.1f s of processors\n%.1000s\n%.500s",
             model->model, r.code, r.processor_seconds, r.out, r.err);
    EXPECT(r.code == 0 && r.processor_seconds < 120, detail);
    json_t *o = r.code == 0 ? json_loads(r.out, 0, NULL) : NULL;
    if (o)
        EXPECT(json_get_number(o, "arena_bytes") <=
                   json_get_number(o, "keep_all_peak_bytes") * model->percent / 100,
               detail);
    json_decref(o);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
        if (planned[i].quick || sample_all())
            plan(&planned[i]);
    zoo_run(models, sizeof models / sizeof *models);
    return e2e_end();
}
