/* Every network of the zoo: see zoo.h. */
#include "zoo.h"

// clang-format off
static const ZooModel models[] = {
    {"googlenet.scrimp -D size=64 -D N=4 -D classes=10 -D p=0 -D p_aux=0", 25, "min", 0.01},
    {"inception_v3.scrimp -D aux=false -D size=107 -D N=4 -D classes=10 -D p=0 -D smoothing=0 -D lr=0.2", 60, "min", 0.01},
    {"resnet.scrimp -D depth=50 -D variant=chainer -D size=64 -D N=4 -D classes=10 -D lr=0.02", 30, "50%", 0.01},
    {"resnet.scrimp -D depth=18 -D variant=tf_v2 -D size=32 -D N=4 -D classes=10 -D lr=0.02", 30, "50%", 0.01},
    {"densenet.scrimp -D depth=121 -D size=32 -D N=4 -D classes=10 -D lr=0.05", 20, "50%", 0.01},
    {"densenet.scrimp -D depth=121 -D concat=list -D size=32 -D N=4 -D classes=10 -D lr=0.05", 20, "50%", 0.01},
    {"nascell.scrimp -D cell=nasnet -D C=4 -D layers=3 -D size=16 -D N=4", 40, "50%", 0.01},
    {"nascell.scrimp -D cell=amoebanet -D C=4 -D layers=3 -D size=16 -D N=4", 40, "50%", 0.01},
    {"nascell.scrimp -D cell=darts_v1 -D C=4 -D layers=3 -D size=16 -D N=4", 40, "50%", 0.01},
    {"nascell.scrimp -D cell=darts_v2 -D C=4 -D layers=3 -D size=16 -D N=4", 40, "50%", 0.01},
    {"lstm_ptb.scrimp -D N=2 -D V=30 -D H=32 -D T=6 -D p=0 -D r=0.3", 300, "min", 0.01},
    {"lstm_ptb.scrimp -D variant=pytorch -D N=2 -D V=30 -D H=32 -D T=6 -D p=0 -D r=0.3", 300, "min", 0.01},
    {"ffn.scrimp -D N=4 -D width=64 -D layers=5 -D lr=0.2", 300, "min", 0.01},
    /* borders between labels lie between the elements that are resized: no loss of 0 */
    {"pspnet.scrimp -D depth=50 -D size=49 -D width=8 -D classes=5 -D p=0 -D lr=0.05", 100, "50%", 0.06},
};
// clang-format on

int main(void)
{
    e2e_begin();
    zoo_run(models, sizeof models / sizeof *models);
    return e2e_end();
}
