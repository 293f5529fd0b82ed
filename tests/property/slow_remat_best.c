/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scrimp is never beaten by another solver at any of 50 budgets on any network of the zoo, at the
 * batch sizes of the papers, and time never grows with the budget.  Arguments: only these files. */
#include "check.h"
#include "tests/support/zoo_problem.h"

#include <string.h>

static const ZooProblem zoo[] = {
    {"alexnet", {"N=1024"}},
    {"vgg", {"depth=16", "variant=chainer", "N=64"}},
    {"vgg", {"depth=19", "variant=chainer", "N=64"}},
    {"resnet", {"depth=18", "N=256"}},
    {"resnet", {"depth=50", "N=64"}},
    {"resnet", {"depth=50", "variant=chainer", "N=96"}},
    {"resnet", {"depth=152", "N=16"}},
    {"resnet", {"depth=152", "variant=chainer", "N=48"}},
    {"densenet", {"depth=121", "N=32"}},
    {"densenet", {"depth=161", "N=32"}},
    {"googlenet", {"variant=chainer", "N=256"}},
    {"inception_v3", {"N=32"}},
    {"unet", {"N=8"}},
    {"pspnet", {"N=2"}},
    {"nascell", {"cell=nasnet", "N=64"}},
    {"nascell", {"cell=amoebanet", "N=64"}},
    {"nascell", {"cell=darts_v2", "N=64"}},
    {"ffn", {"layers=100", "N=32"}},
    {"lstm_ptb", {"size_name=medium", "N=20"}},
    {"transformer", {"N=32"}},
    {"gpt2", {"N=8"}},
    {"chargpt", {NULL}},
    {"convnet", {NULL}},
    {"mlp", {NULL}},
};

int main(int argc, char **argv)
{
    int checked = 0;
    for (size_t k = 0; k < sizeof zoo / sizeof *zoo; k++) {
        bool wanted = argc < 2;
        for (int i = 1; i < argc; i++)
            wanted |= strcmp(argv[i], zoo[k].file) == 0;
        if (wanted)
            check_zoo_problem(&zoo[k], true);
        checked += wanted;
    }
    CHECK(checked > 0);
    return test_result();
}
