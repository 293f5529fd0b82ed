/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counter-based random numbers (Philox4x32-10) and what is drawn from them: initial parameters,
 * window offsets, epoch permutations.  Nothing here has state: every number depends on its keys
 * only, so training resumes anywhere.  Source: Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011. */
#ifndef SCRIMP_RUNTIME_RNG_H
#define SCRIMP_RUNTIME_RNG_H

#include "runtime/status.h"

/* The ten-round block function: counter and key in, four words out. */
void rt_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* 32 random bits for element index under (seed, step, key); the same function as the compiler's
 * rng_bits (ir/eval.h), which a property test compares. */
uint32_t rt_rng_bits(uint64_t seed, uint64_t step, uint64_t key, uint64_t index);
/* FNV-1a of a name: the key of a parameter. */
uint64_t rt_name_key(const char *name);
/* Uniform in [0, n), n >= 1, from 64 bits of (seed, step, key, index): bias below n / 2^64. */
uint64_t rt_rng_below(uint64_t n, uint64_t seed, uint64_t step, uint64_t key, uint64_t index);
/* Where i in [0, n) goes under the permutation of [0, n) named by (seed, epoch). */
uint64_t rt_permute(uint64_t i, uint64_t n, uint64_t seed, uint64_t epoch);

/* Fills dst[n] as init says: "zeros", "ones", "value(x)", "normal(std)",
 * "normal(std,mean)", "uniform(lo,hi)".  Element i depends on (seed, name, i) only.  False for
 * another text. */
bool rt_init_fill(float *dst, int64_t n, const char *init, uint64_t seed, const char *name,
                  RtError *err);

#endif
