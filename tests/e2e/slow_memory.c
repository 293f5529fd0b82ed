/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The printed memory equals what is used: the larger examples. */
#include "e2e.h"
#include "resident_memory.h"

#include <stdio.h>

int main(void)
{
    e2e_begin();
    char path[400];
    snprintf(path, sizeof path, "%s/text", e2e_tmp());
    make_text(path, 200000);
    expect_within("chargpt.scrimp", "60%", "--data $TMP/text", 1e6);
    expect_within("demo.scrimp -D N=4", "40%", "--data $TMP/text", 1e6);
    expect_within("resnet.scrimp -D depth=18 -D size=64 -D N=16 -D classes=10", "50%", "", 4e6);
    expect_within("resnet.scrimp -D depth=50 -D size=64 -D N=8 -D classes=10", "50%", "", 4e6);
    return e2e_end();
}
