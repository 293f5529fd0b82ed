/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise programs on the vectors of a CPU: f32 in vf, i32 and u8 in vi, bool in vi as 0 / -1.
 * Programs are kernels of their own (point_emit.c); matrix kernels apply the POINT operations of
 * their body to accumulators with point_emit_body. */
#ifndef SCRIMP_CODEGEN_CPU_POINT_POINT_JIT_H
#define SCRIMP_CODEGEN_CPU_POINT_POINT_JIT_H

#include "codegen/forms/point.h"
#include "codegen/jit/jit.h"

/* The type of a pointer to elements in memory. */
JitType point_pointer(Jit *j, DType dtype);
/* The lanes of a POINT_NUMBER: number i (the place of a buffer) of the kernel. */
JitValue point_number_lanes(Jit *j, DType dtype, int i);
/* u8 and bool: elements `at` on of a pointer, as they sit in a vector's lanes. */
bool point_is_byte(DType dtype);
JitValue point_load_bytes(Jit *j, JitValue pointer, JitValue at, DType dtype);
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

/* The code of one POINT operation: point_code_NAME for every row of that class in ops.def, so that
 * an operation without code is an error of the linker. */
typedef JitValue PointFn(Jit *j, const PointInstr *p, const JitValue *in);
typedef struct PointCode {
    JitValue (*unary)(Jit *j, JitValue a); /* of f32 */
    JitValue (*binary)(Jit *j, JitValue a, JitValue b);
    PointFn *real;    /* of f32, where the instruction says more */
    PointFn *integer; /* of i32, u8 and bool; NULL: codegen/build/supports.c refuses them */
} PointCode;
extern const PointCode *const point_codes[OP_COUNT]; /* NULL: of another class */
#define EACH_POINT(name) extern const PointCode point_code_##name;
#include "ir/ops_by_class.h"

/* POINT_RNG_KEY_LOW and HIGH. */
JitValue point_rng_key(Jit *j, const PointInstr *p, const JitValue *in);

/* A CPU's way to run a program, as a call of its own. */
void point_emit_call(const Lowering *l, CallDraft *call, const PointProgram *p);

/* Place `at` (i64) of lane 0 as i32 lanes, the next places in the next lanes when counts: low or
 * high words. */
JitValue point_place_word(Jit *j, JitValue at, bool counts, bool high);
/* The same for places lane[i] (vi, as unsigned words) behind `at`; NULL: all at `at`. */
JitValue point_place_word_at(Jit *j, JitValue at, JitValue lane, bool high);

#endif
