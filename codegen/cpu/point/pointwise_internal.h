/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the files of the element-wise generator. */
#ifndef SCRIMP_CODEGEN_CPU_POINT_POINTWISE_INTERNAL_H
#define SCRIMP_CODEGEN_CPU_POINT_POINTWISE_INTERNAL_H

#include "codegen/cpu/point/pointwise.h"

#include <math.h>

/* Gives a register with value v, which the body does not compute: a constant, or what comes from
 * outside.  axis as in PointSource; word >= 0: element `word` of v, the same in all lanes. */
typedef int PointLeaf(void *user, PointProgram *p, ValueId v, int axis, int word);

/* The code of one POINT operation: point_code_NAME for every row of that class in ops.def, so that
 * an operation without code is an error of the linker.  One of unary, binary and real, or expand.
 */
typedef struct BodyMap BodyMap;
typedef JitValue PointFn(Jit *j, const PointInstr *p, const JitValue *in);
typedef struct PointCode {
    JitValue (*unary)(Jit *j, JitValue a); /* of f32 */
    JitValue (*binary)(Jit *j, JitValue a, JitValue b);
    PointFn *real;    /* of f32, where the instruction says more */
    PointFn *integer; /* of i32, u8 and bool; NULL: codegen/build/supports.c refuses them */
    /* Attributes that the code depends on; NULL: none. */
    void (*describe)(const Graph *g, const Node *n, PointInstr *i);
    /* Operands besides the inputs that are read element by element; NULL: none. */
    void (*operands)(BodyMap *m, const Node *n, PointInstr *i);
    /* Instructions that it consists of; their last register.  NULL: it is one itself. */
    int (*expand)(PointProgram *p, const PointInstr *i);
} PointCode;
extern const PointCode *const point_codes[OP_COUNT]; /* NULL: of another class */
#define EACH_POINT(name) extern const PointCode point_code_##name;
#include "ir/ops_by_class.h"

/* point_program.c: a generator's words and the element's index; bits of a mask; row and column. */
void generator_operands(BodyMap *m, const Node *n, PointInstr *i);
void mask_operands(BodyMap *m, const Node *n, PointInstr *i);
void coordinate_operands(BodyMap *m, const Node *n, PointInstr *i);
/* POINT_RNG_KEY_LOW and HIGH. */
JitValue point_rng_key(Jit *j, const PointInstr *p, const JitValue *in);

/* Appends the code of a body's values; reg[i] gets the register of wanted[i]. */
void point_add_body(PointProgram *p, const Graph *g, const ValueId *wanted, int n_wanted, int *reg,
                    PointLeaf *leaf, void *user);
/* The same for one POINT node of a graph whose other values all are leaves. */
int point_add_node(PointProgram *p, const Graph *g, const Node *n, PointLeaf *leaf, void *user);
/* A number as it sits in a lane: the bits of an f32, an i32, or 0 / -1 for bool. */
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
/* Place `at` (i64) of lane 0 as i32 lanes, the next places in the next lanes when counts: low or
 * high words. */
JitValue point_place_word(Jit *j, JitValue at, bool counts, bool high);

#endif
