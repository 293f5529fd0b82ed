/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The printed memory equals what is used; slow_memory.c has the larger examples. */
#include "e2e.h"
#include "resident_memory.h"

#include <stdio.h>

int main(void)
{
    e2e_begin();
    make_digits(2000);
    char path[400];
    snprintf(path, sizeof path, "%s/text", e2e_tmp());
    make_text(path, 200000);
    expect_within("mlp.scrimp", "100%", "--data $TMP/idx", 2e6);
    expect_within("convnet.scrimp", "min", "--data $TMP/idx", 2e6);
    expect_within("chargpt.scrimp -D L=2", "60%", "--data $TMP/text", 1e6);
    return e2e_end();
}
