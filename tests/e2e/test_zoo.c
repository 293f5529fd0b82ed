/* The zoo at the batches of the papers is planned in seconds, and what compiles quickly learns:
 * see zoo.h. */
#include "zoo.h"

// clang-format off
/* Batches of Kusumoto et al. 2019, table 1, and of Feng and Huang 2021. */
static const char *const planned[] = {
    "resnet.scrimp -D depth=50 -D N=96",
    "resnet.scrimp -D depth=152 -D variant=chainer -D N=48",
    "densenet.scrimp -D depth=161 -D N=32",
    "vgg.scrimp -D depth=19 -D N=64",
    "googlenet.scrimp -D N=256",
    "inception_v3.scrimp -D size=300 -D aux=false -D N=32",
    "pspnet.scrimp",
    "nascell.scrimp -D cell=nasnet",
    "nascell.scrimp -D cell=amoebanet",
    "nascell.scrimp -D cell=darts_v1",
    "nascell.scrimp -D cell=darts_v2",
    "ffn.scrimp -D layers=100",
    "gpt2.scrimp -D p=0.1",
};

static const ZooModel models[] = {
    {"alexnet.scrimp -D size=64 -D hidden=64 -D N=4 -D classes=10 -D p=0", 150, "min", 0.01},
    {"vgg.scrimp -D depth=11 -D size=32 -D hidden=256 -D N=4 -D classes=10 -D p=0 -D lr=0.02", 60, "min", 0.01},
};
// clang-format on

static void plan(const char *model)
{
    Result r = run("$SCRIMP plan $EXAMPLES/%s --budget min --json", model);
    char detail[2000];
    snprintf(detail, sizeof detail, "%s: exit code %d after %.1f s\n%.1000s", model, r.code,
             r.seconds, r.err);
    EXPECT(r.code == 0 && r.seconds < 60, detail);
    json_t *o = r.code == 0 ? json_loads(r.out, 0, NULL) : NULL;
    if (o)
        EXPECT(json_get_number(o, "arena_bytes") < json_get_number(o, "keep_all_peak_bytes"),
               "the least memory is less than all of it");
    json_decref(o);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    for (size_t i = 0; i < sizeof planned / sizeof *planned; i++)
        plan(planned[i]);
    zoo_run(models, sizeof models / sizeof *models);
    return e2e_end();
}
