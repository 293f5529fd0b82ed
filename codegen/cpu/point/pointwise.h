/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise code.
 *
 * A PointProgram is a straight-line program over one iteration space: registers hold one vector of
 * elements each, loads and stores have a stride per dim (0 = broadcast).  Every element-wise group,
 * fill, copy and optimizer step is such a program (pointwise.c); matrix kernels apply the POINT
 * operations of their body to accumulators with point_emit_body.
 *
 * Vectors by element type: f32 in vf, i32 and u8 in vi, bool in vi as 0 / -1. */
#ifndef SCRIMP_CODEGEN_CPU_POINT_POINTWISE_H
#define SCRIMP_CODEGEN_CPU_POINT_POINTWISE_H

#include "codegen/build/kernel.h"
#include "codegen/jit/jit.h"

enum { POINT_MAX_IN = 7 };

/* Instructions that are no operations of the IR; numbered after OP_COUNT. */
typedef enum PointSpecial {
    POINT_LOAD = OP_COUNT, /* at `access` */
    POINT_COORDINATE,      /* i32: low word of the place that `access` gives, lane by lane */
    POINT_COORDINATE_HIGH, /* i32: its high word */
    POINT_NUMBER,          /* number k of the program */
    POINT_BIT,         /* bool: bit of the place in the words (relu_mask) of the access's buffer */
    POINT_RNG_KEY_LOW, /* words of the sum of two 64-bit numbers (low, high, low, high) */
    POINT_RNG_KEY_HIGH,
    POINT_ONE_MINUS_POWER, /* (step) -> 1 - a^step, in double; all lanes equal */
} PointSpecial;

/* in: registers, which are the numbers of earlier instructions. */
KERNEL_DESC_BEGIN
typedef struct PointInstr {
    int op;            /* OpKind or PointSpecial */
    DType dtype, from; /* of the result, of the first input */
    int n_in;
    int in[POINT_MAX_IN];
    int access;
    int k;     /* POINT_NUMBER: which */
    bool flag; /* gelu: tanh form; pow: exponent a is known */
    char unused[3];
    double a, b; /* constants: value, eps and element count, p, exponent */
} PointInstr;
KERNEL_DESC(PointInstr)

/* Element (i0, i1, ...) of the space is at element base + sum of i[d] * stride[d] of a buffer. */
KERNEL_DESC_BEGIN
typedef struct PointAccess {
    int buf; /* -1: a place without memory (COORDINATE); BIT: of words, the place counts bits */
    DType dtype;
    int64_t base, stride[TYPE_MAX_RANK];
} PointAccess;

typedef struct PointStore {
    int reg;
    char unused[4];
    PointAccess at;
} PointStore;
KERNEL_DESC(PointStore)

typedef struct PointProgram {
    Pool *pool;
    int rank;
    int64_t dim[TYPE_MAX_RANK];
    int n_bufs; /* of the call; its numbers come behind them */
    VEC(int64_t) number;
    VEC(PointInstr) instr;
    VEC(PointAccess) access;
    VEC(PointStore) store;
} PointProgram;

PointProgram *point_program(Pool *pool, const Type *space);
/* Row-major strides of `type` broadcast into the program's space as numpy does (axis < 0), or of a
 * vector that runs along `axis` of the space. */
PointAccess point_access(const PointProgram *p, int buf, const Type *type, int axis);
/* The same for a value of the graph, where it lies (ir/strided_view.h), of a buffer that point_buf
 * gives.
 */
PointAccess point_access_value(const PointProgram *p, int buf, const Graph *g, ValueId v, int axis);
CallBuf point_buf(const Graph *g, ValueId v);
int point_load(PointProgram *p, PointAccess access);
int point_const(PointProgram *p, DType dtype, double value);
/* The same value as an argument of the call, so that other values need no other kernel. */
int point_number(PointProgram *p, DType dtype, double value);
int point_unary(PointProgram *p, OpKind op, int a);
int point_binary(PointProgram *p, OpKind op, int a, int b);
int point_push(PointProgram *p, PointInstr instr);
void point_store(PointProgram *p, int reg, PointAccess at);
/* Adds the call; bufs as the accesses number them. */
void point_call(Lowering *l, PointProgram *p, const char *label, const CallBuf *bufs, int n_bufs,
                double flops);

/* The exponent of a power whose code depends on it; other constants are numbers of the call. */
bool point_known_exponent(const Graph *g, const Node *n, double *e);

/* The lanes of a POINT_NUMBER: number i (the place of a buffer) of the kernel. */
JitValue point_number_lanes(Jit *j, DType dtype, int i);
/* One instruction on vectors. */
JitValue point_apply(Jit *j, const PointInstr *instr, const JitValue *in);

/* Where the elements of a body come from, for kernels with their own loops. */
typedef struct PointSource {
    void *user;
    /* Value v of the body that is no POINT result (an `input`, the matrix product), for the current
     * vector of elements, broadcast to it.  axis < 0: v is aligned with the result as numpy does;
     * else v has one dim, which runs along `axis` of the result.  Called once per (v, axis). */
    JitValue (*value)(void *user, ValueId v, int axis);
    /* i64: index of lane 0 in the row-major result (dropout), and in its last two dims
     * (causal_mask). */
    JitValue (*linear)(void *user);
    JitValue (*row)(void *user);
    JitValue (*column)(void *user);
    /* Word i of the i32[4] input v (dropout's generator), as a scalar i32. */
    JitValue (*word)(void *user, ValueId v, int i);
    /* Lanes of 0 / -1: the result's bits in the mask v (relu_mask). */
    JitValue (*bits)(void *user, ValueId v);
} PointSource;

/* Values v of `wanted` for one vector of elements of the body; all operations between are of the
 * result's shape or broadcast to it.  Code without branches. */
void point_emit_body(Jit *j, const Graph *body, const ValueId *wanted, int n_wanted,
                     const PointSource *source, JitValue *result);

/* A group of element-wise operations as one kernel. */
void lower_point_group(Lowering *l, const Node *node);

#endif
