/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Slow reference evaluation in double: the oracle of every test.  Shares nothing with codegen. */
#ifndef SCRIMP_IR_EVAL_H
#define SCRIMP_IR_EVAL_H

#include "ir/graph.h"

/* One double per element (integers and bools too), row-major. */
typedef struct EvalState {
    Pool *pool;
    const Graph *graph;
    double **data; /* by ValueId; NULL until computed */
} EvalState;

EvalState *eval_new(Pool *pool, const Graph *g);
/* Gives a SOURCE value its contents (copied). */
void eval_set(EvalState *s, ValueId v, const double *data);
/* Runs every node in order.  Inputs and persistent tensors must have been set.  Results of
 * type bf16 are rounded to it; when round_f32 is true, those of f32 to float (useful against
 * compiled code), else they stay double. */
void eval_run(EvalState *s, bool round_f32);
/* The nearest bf16, ties to even; what is too large becomes an infinity. */
double eval_round_bf16(double value);
const double *eval_get(const EvalState *s, ValueId v);
/* Copies what the step wrote (values with `writes`) into the persistent tensors: the next eval_run
 * is the next step. */
void eval_commit(EvalState *s);

/* The counter generator (Philox4x32-10; Salmon et al. 2011) that random, runtime init and tests
 * share the definition of: 32 random bits for element index under (seed, step, key). */
uint32_t rng_bits(uint64_t seed, uint64_t step, uint64_t key, uint64_t index);
/* The same, and three words more: out[0] is rng_bits'. */
void rng_words(uint64_t seed, uint64_t step, uint64_t key, uint64_t index, uint32_t out[4]);
/* The bits that decide whether dropout keeps element index: word index % 4 of number index / 4. */
uint32_t dropout_bits(uint64_t seed, uint64_t step, uint64_t key, uint64_t index);
/* The generator itself: 128 bits of counter and 64 of key to 128 random bits (ir/rng.c says how
 * rng_bits uses it). */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
