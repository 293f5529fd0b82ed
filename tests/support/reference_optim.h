/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizers in double, written from PyTorch's documentation and the papers; they share nothing
 * with passes/autodiff. */
#ifndef SCRIMP_TESTS_REFERENCE_OPTIM_H
#define SCRIMP_TESTS_REFERENCE_OPTIM_H

#include "ir/train_spec.h"

/* A tensor that is trained, the same for both sides at the start. */
typedef struct Tensor {
    const char *name;
    int64_t count;
    double *data, *m, *v, *a; /* m, v, a: the reference's optimizer state */
    double *average;          /* its running mean */
    bool matrix;
    int64_t rows, columns; /* of its last two dimensions */
    int64_t first;         /* its first dimension */
} Tensor;

/* One update, the t-th, by a gradient that is clipped. */
void reference_tensor(const UpdateRule *o, Tensor *p, const double *grad, double lr, int t);

#endif
