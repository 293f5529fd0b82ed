/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The networks that people recognise, made small: each learns one batch by heart, and recomputing
 * changes none of its bits.  test_zoo.c has what compiles in seconds, slow_zoo.c everything. */
#ifndef SCRIMP_TESTS_ZOO_H
#define SCRIMP_TESTS_ZOO_H

#include <stddef.h>

typedef struct ZooModel {
    const char *model; /* file and options: nothing random but the batch, no label smoothing */
    int steps;         /* after which the loss of one batch is at most `loss` */
    double loss;
} ZooModel;

void zoo_run(const ZooModel *models, size_t n);

#endif
