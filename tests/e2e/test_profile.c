/* Measured costs of examples whose kernels are quickly compiled; slow_profile.c has the others. */
#include "profile_example.h"

static const ProfileExample examples[] = {
    {"mlp.scrimp -D N=16", false},
    {"convnet.scrimp -D N=8", false},
    {"ffn.scrimp -D N=256 -D width=64 -D layers=12", true},
    {"chargpt.scrimp -D N=2 -D T=16 -D p=0.1", true},
    {"lstm_ptb.scrimp -D N=64 -D V=10 -D H=24 -D T=4", true},
    {"../tests/golden/memplan/pieces.scrimp", true}, /* views would change its kernels */
};

int main(void)
{
    e2e_begin();
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++)
        profile_example(&examples[e]);
    return e2e_end();
}
