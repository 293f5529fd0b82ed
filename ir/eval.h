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
/* Runs every node in order.  Inputs and persistent tensors must have been set.  When round_f32 is true, every f32
 * result is rounded to float (useful against compiled code); else everything stays double. */
void eval_run(EvalState *s, bool round_f32);
const double *eval_get(const EvalState *s, ValueId v);

/* The counter generator (Philox4x32-10; Salmon et al. 2011) that dropout, runtime init and tests share the definition of:
 * 32 random bits for element index under (seed, step, key). */
uint32_t rng_bits(uint64_t seed, uint64_t step, uint64_t key, uint64_t index);

#endif
