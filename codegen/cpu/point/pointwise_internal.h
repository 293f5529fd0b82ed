/* Shared by the files of the element-wise generator. */
#ifndef SCRIMP_CODEGEN_CPU_POINT_POINTWISE_INTERNAL_H
#define SCRIMP_CODEGEN_CPU_POINT_POINTWISE_INTERNAL_H

#include "codegen/cpu/point/pointwise.h"

#include <math.h>

/* Gives a register with value v, which the body does not compute: a constant, or what comes from
 * outside.  axis as in PointSource; word >= 0: element `word` of v, the same in all lanes. */
typedef int PointLeaf(void *user, PointProgram *p, ValueId v, int axis, int word);

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
