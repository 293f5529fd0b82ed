/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `scrimp data` writes what `train` then learns from, without options; a data set that is not there
 * says so. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    e2e_begin();
    expect_there(0, "", "cp $EXAMPLES/mlp.scrimp $EXAMPLES/chargpt.scrimp .");
    expect_there(1, "`scrimp data mlp.scrimp` writes a small stand-in",
                 "$SCRIMP train mlp.scrimp -q");
    expect_there(1, "--data there` writes a small stand-in",
                 "$SCRIMP train mlp.scrimp -q --data there");
    expect_there(0, "wrote data/mnist: 4000 made-up digits to train on, 1000 held out",
                 "$SCRIMP data mlp.scrimp");
    expect_there(
        0,
        "note: data/mnist is there already, so nothing is written: mnist: 4000 examples to "
        "train on, 1000 held out",
        "cksum data/mnist/* > before && cp $EXAMPLES/convnet.scrimp . && $SCRIMP data "
        "convnet.scrimp");
    expect_there(0, "", "cksum data/mnist/* | cmp - before");
    expect_there(1, "error[E523]: bare is there already",
                 "mkdir bare && $SCRIMP data mlp.scrimp --data bare");
    expect_there(0, "accuracy 0.9", "$SCRIMP train mlp.scrimp -q --steps 93");
    expect_there(0, "", "$SCRIMP data chargpt.scrimp -q --data text.txt && test -s text.txt");
    expect_there(
        0, "", "$SCRIMP train chargpt.scrimp -q -D L=1 -D N=4 --data text.txt --steps 40 --log l");
    expect_there(
        0, "",
        "awk -F'\"loss\": *' '{split($2,a,\",\"); v[NR]=a[1]} END {exit !(v[40]<v[1]-1)}' l");
    expect_there(1, "error[E523]: synthetic reads no files",
                 "$SCRIMP data $EXAMPLES/resnet.scrimp");
    return e2e_end();
}
