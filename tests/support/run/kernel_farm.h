/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiles the kernels of many small graphs at once, in child processes, and runs them on buffers
 * that end at a page that cannot be touched: reading or writing past the end stops the test.  No
 * plan and no arena.  Kernels of matrix operations are kept for other tests, and for the next run
 * with the same code generator. */
#ifndef SCRIMP_TESTS_KERNEL_FARM_H
#define SCRIMP_TESTS_KERNEL_FARM_H

#include "codegen/build/cache.h"
#include "codegen/build/kernel.h"
#include "ir/support/map.h"
#include "runtime/abi.h"

typedef struct FarmKernel {
    const Call *call;
    ScrimpKernel *run;
} FarmKernel;

typedef struct Farm {
    Pool *pool;
    const Target *target;
    const Tuning *tuning; /* of what is lowered; NULL: the defaults */
    int optimization;     /* -O level of matrix kernels; GCC makes fused multiply-adds from 2 on */
    Map index;            /* key -> kernel */
    VEC(FarmKernel) kernels;
    VEC(void *) handles;
    char folder[64];
    Cache cache; /* of matrix kernels, in the build's test-cache */
} Farm;

Farm farm_new(Pool *pool, const Target *target);
/* The calls of a graph; their kernels join the farm. */
Lowering *farm_lower(Farm *f, const Graph *g);
/* False when a child failed. */
bool farm_compile(Farm *f);
bool farm_load(Farm *f);
void farm_free(Farm *f);

typedef struct Fenced {
    char *base, *data;
    size_t mapped;
} Fenced;

/* Filled with 0x7f: huge floats, so that what is not written shows.  The end is the fence, or the
 * start is aligned to 64 bytes and the end near the fence. */
Fenced fenced_new(int64_t bytes, bool aligned);
void fenced_free(Fenced *b);
/* The bytes before the buffer, which nothing may have touched. */
bool fenced_intact(const Fenced *b);

#endif
