/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The threads of a block, one after the other on one thread of the machine: each runs until its
 * next barrier or its end. */
#ifndef SCRIMP_TESTS_CUDA_SIM_FIBERS_H
#define SCRIMP_TESTS_CUDA_SIM_FIBERS_H

#include <stdbool.h>

enum { FIBERS_MOST = 1024 };

/* Runs body(user, i) for i of 0..n-1 (order[k] is the k-th to run between barriers).  False when
 * some ended while others wait at a barrier: undefined on a device. */
bool fibers_run(int n, const int *order, void (*body)(void *user, int i), void *user);
/* Called from a body: waits until all others are here. */
void fibers_barrier(void);

#endif
