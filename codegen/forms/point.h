/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise programs, which every backend makes its own code of.
 *
 * A PointProgram is a straight-line program over one iteration space: a register holds an element,
 * or a vector of neighbours, as the backend likes; loads and stores have a stride per dim (0 =
 * broadcast).  Every element-wise group, fill, copy and optimizer step is such a program.  What its
 * arithmetic is, down to the bit, does not depend on the backend.
 *
 * Registers hold f32, i32 or bool (u8 in i32).  bf16 is a type of memory: a load makes f32 of it, a
 * store rounds, and what the program itself reads of a bf16 value goes through POINT_ROUND. */
#ifndef SCRIMP_CODEGEN_FORMS_POINT_H
#define SCRIMP_CODEGEN_FORMS_POINT_H

#include "codegen/build/kernel.h"

enum { POINT_MAX_IN = 7 };

/* Instructions that are no operations of the IR; numbered after OP_COUNT. */
typedef enum PointSpecial {
    POINT_LOAD = OP_COUNT, /* at `access` */
    POINT_COORDINATE,      /* i32: low word of the place that `access` gives, lane by lane */
    POINT_COORDINATE_HIGH, /* i32: its high word */
    POINT_NUMBER,          /* number k of the program */
    POINT_GIVEN,           /* what the kernel around the program computes: the sum of a product */
    POINT_BIT,         /* bool: bit of the place in the words (relu_mask) of the access's buffer */
    POINT_RNG_KEY_LOW, /* words of the sum of two 64-bit numbers (low, high, low, high) */
    POINT_RNG_KEY_HIGH,
    POINT_ONE_MINUS_POWER, /* (step) -> 1 - a^step, in double; all lanes equal */
    POINT_ROUND,           /* the nearest bf16 of an f32, ties to even, as f32 */
} PointSpecial;

/* in: registers, which are the numbers of earlier instructions. */
KERNEL_DESC_BEGIN
typedef struct PointInstr {
    int op;            /* OpKind or PointSpecial */
    DType dtype, from; /* of the result, of the first input */
    int n_in;
    int in[POINT_MAX_IN];
    int access;
    int k;     /* POINT_NUMBER: which; random: a RandomKind */
    bool flag; /* gelu: tanh form; pow: exponent a is known; relu_grad: slope a; clamp: open */
    char unused[3];
    double a, b; /* constants: value, eps and element count, p, exponent, slope, bounds, below */
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

typedef struct PointProgram PointProgram;
struct PointProgram {
    Pool *pool;
    int rank;
    int64_t dim[TYPE_MAX_RANK];
    int n_bufs; /* of the call; its numbers come behind them */
    VEC(int64_t) number;
    VEC(PointInstr) instr;
    VEC(PointAccess) access;
    VEC(PointStore) store;
};

/* The type of a register that holds a value of type t. */
static inline DType point_lane_type(DType t)
{
    return t == DTYPE_BF16 ? DTYPE_F32 : t;
}

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
/* reg as a value of type t would be read: rounded where that is bf16. */
int point_round(PointProgram *p, int reg, DType t);
void point_store(PointProgram *p, int reg, PointAccess at);
/* Adds the call; bufs as the accesses number them. */
void point_call(Lowering *l, PointProgram *p, const char *label, const CallBuf *bufs, int n_bufs,
                double flops);

/* The exponent of a power whose code depends on it; other constants are numbers of the call. */
bool point_known_exponent(const Graph *g, const Node *n, double *e);

/* Gives a register with value v, which the body does not compute: a constant, or what comes from
 * outside.  axis as in PointSource; word >= 0: element `word` of v, the same in all lanes. */
typedef int PointLeaf(void *user, PointProgram *p, ValueId v, int axis, int word);

/* Appends the code of a body's values; reg[i] gets the register of wanted[i]. */
void point_add_body(PointProgram *p, const Graph *g, const ValueId *wanted, int n_wanted, int *reg,
                    PointLeaf *leaf, void *user);
/* The same for one POINT node of a graph whose other values all are leaves. */
int point_add_node(PointProgram *p, const Graph *g, const Node *n, PointLeaf *leaf, void *user);
/* A number as it sits in a lane: the bits of an f32 (of a rounded one for bf16), an i32, or 0 / -1
 * for bool. */
int32_t point_word(DType dtype, double value);
/* The exponent has code of its own, so that it is part of a kernel. */
bool point_has_power(double e);
/* Whether an instruction has an access. */
static inline bool point_has_access(const PointInstr *i)
{
    return i->op == POINT_LOAD || i->op == POINT_COORDINATE || i->op == POINT_COORDINATE_HIGH ||
           i->op == POINT_BIT;
}
/* A place of the space as i32 lanes: its low or its high word. */
int point_coordinate(PointProgram *p, PointAccess place, bool high);
/* The channel axis of a normalisation of x. */
int channel_axis(const Type *x, const Node *n);

/* Merges dims that every access walks as one and drops dims of size 1; at least one dim remains. */
void point_collapse(PointProgram *p);
/* Takes the start that all accesses to a buffer have in common out of the program: its bytes, for
 * the call. */
int64_t point_move_base(PointProgram *p, int buf);
/* Everything the code depends on. */
const char *point_key(const PointProgram *p);
/* The lowering rules of what is element-wise whatever the backend (ops.def). */
LowerRule point_node, point_fill, point_iota, point_broadcast, point_slice, point_concat, point_pad,
    point_sgd_step, point_adam_step, point_bn_running, point_clip_scale;
/* A group of element-wise operations as one kernel. */
void lower_point_group(Lowering *l, const Node *node);

/* Random numbers of a node are bits of a counter under a key: the seed's plus this one, which is
 * the node's own. */
uint64_t random_key(const Node *n);
/* Dropout with probability p keeps where 32 random bits are at least this. */
uint32_t dropout_threshold(double p);

#endif
