/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What random graphs of a few nodes are made of: random numbers, shapes and inputs.  For the
 * generators of op_cases.h. */
#ifndef SCRIMP_TESTS_PROPERTY_OP_CASE_H
#define SCRIMP_TESTS_PROPERTY_OP_CASE_H

#include "ir/graph.h"

enum { OP_CASE_INPUTS = 10 };

typedef struct OpCase {
    Pool *pool;
    Graph *g;
    uint64_t rng;
    bool small;    /* dims 1..4 and floats only: differences take two runs an element */
    unsigned bf16; /* bit i: input i, where it is of floats, is bf16; not 0: so are results that may
                      be */
    NodeId node;   /* under test; NODE_NONE when the drawn shapes do not fit */
    ValueId out;   /* its first output, or what the generator says; VALUE_NONE likewise */
    int n_in;
    ValueId in[OP_CASE_INPUTS];
    double *data[OP_CASE_INPUTS];
} OpCase;

typedef void OpCaseMake(OpCase *c);

/* SplitMix64 (Steele, Lea and Flood 2014). */
uint64_t op_bits(OpCase *c);
/* low..high inclusive */
int64_t op_int(OpCase *c, int64_t low, int64_t high);
bool op_coin(OpCase *c);
double op_uniform(OpCase *c, double low, double high);

/* --- inputs --- */

ValueId op_source(OpCase *c, Type t, double **data);
ValueId op_floats(OpCase *c, Type t, double low, double high);
ValueId op_normal(OpCase *c, Type t);
ValueId op_integers(OpCase *c, Type t, DType dtype, int64_t low, int64_t high);
ValueId op_scalar(OpCase *c, double low, double high);

/* An input of a group's body, for a value of the graph around. */
ValueId op_inner(OpCase *c, Graph *body, ValueId outer);
/* An input's elements as they lie in memory. */
void op_case_bytes(const Type *t, const double *from, char *to);

/* --- shapes --- */

int64_t op_dim(OpCase *c);
/* At most about 6000 elements, and sometimes a long vector. */
Type op_shape(OpCase *c, int low, int high);
/* A shape that broadcasts to t: some leading dims dropped, some dims 1. */
Type op_smaller(OpCase *c, Type t);
/* Two shapes that broadcast together to t or less, neither of them always the larger. */
void op_pair(OpCase *c, Type t, Type *a, Type *b);

Type op_dims(int rank, const int64_t *dims);
#define DIMS(...)                                                                                  \
    op_dims((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* --- the node --- */

void op_on(OpCase *c, OpKind op, const ValueId *in, int n_in, const AttrList *attrs);
void op_done(OpCase *c, OpKind op, const AttrList *attrs);

#endif
