/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The multiply-add peak of one core, measured: independent multiply-adds in registers, in the
 * widest vectors of a target.  `bench` and the kernel benchmark state speed as a share of it. */
#ifndef SCRIMP_CODEGEN_BUILD_FLOPS_PEAK_H
#define SCRIMP_CODEGEN_BUILD_FLOPS_PEAK_H

#include "codegen/jit/target.h"
#include "ir/support/pool.h"

/* GFLOP/s of one core (a multiply-add counts two), the best of several runs of a few milliseconds
 * each; 0 and *error on an environment failure.  The kernel is compiled in a child process. */
double codegen_measure_peak_gflops(Pool *pool, const Target *target, const char **error);

#endif
