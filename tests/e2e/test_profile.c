/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measured costs of examples whose kernels are quickly compiled; slow_profile.c has the others. */
#include "e2e.h"
#include "profile_example.h"

static const ProfileExample examples[] = {
    {"convnet.scrimp -D N=8", false},
    {"../tests/golden/memplan/pieces.scrimp", true}, /* views would change its kernels */
};

int main(void)
{
    e2e_begin();
    for (size_t e = 0; e < sizeof examples / sizeof *examples; e++)
        profile_example(&examples[e]);
    return e2e_end();
}
