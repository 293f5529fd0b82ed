/* Every network of the zoo: see zoo.h. */
#include "zoo.h"

// clang-format off
static const ZooModel models[] = {
    {"resnet.scrimp -D depth=50 -D variant=chainer -D size=64 -D N=4 -D classes=10 -D lr=0.02", 30, "50%"},
    {"resnet.scrimp -D depth=18 -D variant=tf_v2 -D size=32 -D N=4 -D classes=10 -D lr=0.02", 30, "50%"},
    {"densenet.scrimp -D depth=121 -D size=32 -D N=4 -D classes=10 -D lr=0.05", 20, "50%"},
    {"densenet.scrimp -D depth=121 -D join=list -D size=32 -D N=4 -D classes=10 -D lr=0.05", 20, "50%"},
};
// clang-format on

int main(void)
{
    e2e_begin();
    zoo_run(models, sizeof models / sizeof *models);
    return e2e_end();
}
