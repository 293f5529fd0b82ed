/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emitter: a thin layer over libgccjit (only jit.c and jit_values.c include libgccjit.h).
 * Kernel generators build loops and vector expressions with it.
 *
 * Values are gcc_jit rvalues: pure expressions that are evaluated where they are used; name
 * intermediate results with jit_tmp when they are used twice.  Vectors have target->vector_floats
 * lanes. */
#ifndef SCRIMP_CODEGEN_JIT_JIT_H
#define SCRIMP_CODEGEN_JIT_JIT_H

#include "codegen/jit/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gcc_jit_rvalue *JitValue;
typedef struct gcc_jit_lvalue *JitVar;
typedef struct gcc_jit_type *JitType;
typedef struct gcc_jit_function *JitFunction;
typedef struct gcc_jit_block *JitBlock;
typedef struct Jit Jit;

typedef struct JitTypes {
    JitType i64, i32, u32, u64, u16, u8, f32, f64, boolean, none;
    JitType p_i64, p_i32, p_i16, p_u8, p_f32, p_char; /* pointers */
    JitType p_bf16; /* to 16-bit words: what is loaded through it is f32, what is stored is rounded
                       to nearest even, ties to even */
    JitType vf, vi, vu; /* vectors of f32, i32, u32: vector_floats lanes */
    JitType vh;         /* of as many 16-bit words */
} JitTypes;

/* One context = one object file.  contract: allow a*b+c to become one FMA. */
Jit *jit_new(const Target *target, bool contract);
void jit_free(Jit *j);
const JitTypes *jit_types(const Jit *j);
const Target *jit_target(const Jit *j);
int jit_lanes(const Jit *j); /* target->vector_floats */
/* Writes an object file; false and *error (static storage) on failure. */
bool jit_write_object(Jit *j, const char *path, const char **error);
bool jit_write_assembly(Jit *j, const char *path, const char **error);
/* What was asked of libgccjit, in a language like C: for people and for tests.  It needs no
 * compiler and is the same on every machine; constants are shortened.  Nothing where the file
 * cannot be written. */
void jit_write_source(Jit *j, const char *path);
/* A shared object of this context and of further object files (or options of the linker). */
bool jit_write_shared(Jit *j, const char *path, const char *const *objects, int n_objects,
                      const char **error);
void jit_set_optimization(Jit *j, int level); /* -O level; 2 when not called */
/* "libgccjit 12.2.0", and with what code is instrumented; static storage */
const char *jit_compiler_version(void);
JitType jit_pointer_to(Jit *j, JitType type);

/* --- functions --- */
/* A kernel with the ABI of runtime/abi.h, exported under `symbol`. */
void jit_kernel_begin(Jit *j, const char *symbol);
void jit_kernel_end(Jit *j);
/* A function like a kernel, to be called from within one; ended by jit_kernel_end. */
JitFunction jit_inner_kernel_begin(Jit *j, const char *name);
void jit_inner_kernel_call(Jit *j, JitFunction f, JitValue bufs, JitValue begin, JitValue end,
                           JitValue scratch);
/* Which of the kernel's buffers hold bf16, a bit each: for them, jit_buf gives a p_bf16 where a
 * p_f32 is asked for. */
void jit_set_bf16(Jit *j, uint64_t buffers);
JitType jit_real_pointer(const Jit *j, int i); /* p_f32 or p_bf16, as buffer i has it */
JitValue jit_buf(Jit *j, int i,
                 JitType pointer_type); /* buf[i] cast; loaded once at the top of the kernel */
JitValue jit_number(Jit *j, int i);     /* the number (i64) that stands in the place of buffer i */
JitValue jit_bufs(Jit *j);              /* the buffer table itself, to be passed to helpers */
JitValue jit_task_begin(Jit *j);
JitValue jit_task_end(Jit *j);
JitValue jit_scratch(Jit *j, JitType pointer_type);
/* Internal helper functions; the function under construction is saved and restored, so helpers can
 * be made while a kernel is open. jit_function_lookup returns a helper made before under the same
 * name in this context, or NULL. */
JitFunction jit_function_begin(Jit *j, const char *name, JitType result, int n_params,
                               const JitType *types);
/* The function's parameter i is the kernel's buffer table (jit_bufs): jit_buf works in it, too. */
void jit_function_bufs(Jit *j, int i);
/* It has the parameters of a kernel: all of a kernel's arguments work in it. */
void jit_function_is_kernel(Jit *j);
JitValue jit_param(Jit *j, int i);
void jit_function_end(Jit *j);                /* void result */
void jit_function_return(Jit *j, JitValue v); /* ends the function with a result */
JitFunction jit_function_lookup(Jit *j, const char *name);
void jit_call_void(Jit *j, JitFunction f, int n, const JitValue *args);
JitValue jit_call(Jit *j, JitFunction f, int n,
                  const JitValue *args); /* result held in a temporary */
/* An exported function without result; ended by jit_function_end. */
void jit_export_begin(Jit *j, const char *symbol, int n_params, const JitType *types);
/* A function of another object file. */
JitFunction jit_import(Jit *j, const char *symbol, JitType result, int n_params,
                       const JitType *types);
JitValue jit_function_pointer(Jit *j, JitFunction f); /* as p_char */
/* Calls the function without result that pointer (any pointer type) leads to. */
void jit_call_pointer_void(Jit *j, JitValue pointer, int n, const JitType *types,
                           const JitValue *args);
/* Calls a function without result that GCC must not make a part of this one, which would have to
 * keep the values of both in registers. */
void jit_call_apart(Jit *j, JitFunction f, int n, const JitType *types, const JitValue *args);
/* A GCC builtin by name ("__builtin_sqrtf"); result held in a temporary. */
JitValue jit_builtin(Jit *j, const char *name, int n, const JitValue *args);
/* Extended asm: "text" with operand 0 the result and 1..n the inputs; constraints as GCC's ("=v",
 * "v", "Yk"). Operands are copied to locals.  Only for jit_x86.c. */
JitValue jit_asm(Jit *j, const char *text, JitType result, const char *out_constraint, int n,
                 const JitValue *in, const char *const *constraint);
/* jit_asm that reads memory through a pointer operand: volatile, with a memory clobber. */
JitValue jit_asm_load(Jit *j, const char *text, JitType result, const char *out_constraint, int n,
                      const JitValue *in, const char *const *constraint);
/* The same without result, inputs 0..n-1, volatile, with a memory clobber (stores through
 * pointers). */
void jit_asm_void(Jit *j, const char *text, int n, const JitValue *in,
                  const char *const *constraint);

/* --- scalars --- */
JitValue jit_i64(Jit *j, int64_t v);
JitValue jit_i32(Jit *j, int32_t v);
JitValue jit_f32(Jit *j, double v);
JitValue jit_zero(Jit *j, JitType t);
/* Arithmetic on equal types (scalars or vectors); the type is taken from a. */
JitValue jit_add(Jit *j, JitValue a, JitValue b);
JitValue jit_sub(Jit *j, JitValue a, JitValue b);
JitValue jit_mul(Jit *j, JitValue a, JitValue b);
/* From here on products of f32 are rounded before anything is added to them, also in a context made
 * to contract. */
void jit_round_products(Jit *j, bool on);
JitValue jit_div(Jit *j, JitValue a, JitValue b);
JitValue jit_mod(Jit *j, JitValue a, JitValue b);
JitValue jit_and(Jit *j, JitValue a, JitValue b);
JitValue jit_or(Jit *j, JitValue a, JitValue b);
JitValue jit_xor(Jit *j, JitValue a, JitValue b);
JitValue jit_shl(Jit *j, JitValue a, JitValue b);
JitValue jit_shr(Jit *j, JitValue a,
                 JitValue b);         /* arithmetic for signed, logical for unsigned types */
JitValue jit_not(Jit *j, JitValue a); /* bitwise */
JitValue jit_neg(Jit *j, JitValue a);
JitValue jit_muladd_i64(Jit *j, JitValue a, int64_t k, JitValue b); /* a*k + b */
typedef enum JitCompare { JIT_EQ, JIT_NE, JIT_LT, JIT_LE, JIT_GT, JIT_GE } JitCompare;
JitValue jit_compare(Jit *j, JitCompare op, JitValue a, JitValue b); /* boolean; scalars only */
JitValue jit_cast(Jit *j, JitValue v, JitType t);    /* scalar conversion or pointer cast */
JitValue jit_bitcast(Jit *j, JitValue v, JitType t); /* same size */
JitValue jit_min_i64(Jit *j, JitValue a, JitValue b);
JitValue jit_max_i64(Jit *j, JitValue a, JitValue b);
JitType jit_type_of(JitValue v);

/* --- variables and memory --- */
JitVar jit_var(Jit *j, JitType t, const char *hint);
JitVar jit_array_var(Jit *j, JitType element, int n,
                     const char *hint); /* stack array, 64-byte aligned */
/* A constant array, part of the object file; as a p_f32. */
JitValue jit_constants(Jit *j, const float *values, int64_t n);
JitValue jit_array_ptr(Jit *j, JitVar array, JitType pointer_type);
/* n > 0 constant integers (their bytes in `data`) as an array of the object file; its address. */
JitValue jit_table(Jit *j, JitType element, const void *data, size_t n, size_t element_bytes);
void jit_set(Jit *j, JitVar var, JitValue v);
JitValue jit_get(JitVar var);
JitValue jit_tmp(Jit *j, JitValue v); /* evaluate now, into a fresh variable */
JitValue jit_load(Jit *j, JitValue pointer,
                  JitValue index); /* loads (vectors too) happen now, into a temporary */
JitValue jit_load_as(Jit *j, JitValue pointer, JitType type); /* *(type *)pointer */
void jit_store(Jit *j, JitValue pointer, JitValue index, JitValue v);
JitValue jit_offset(Jit *j, JitValue pointer,
                    JitValue index); /* &pointer[index], index in elements */
/* Vectors at p[index..index+lanes): element type f32, bf16 or i32 as the pointer says. */
JitValue jit_vload(Jit *j, JitValue pointer, JitValue index);         /* any alignment */
JitValue jit_vload_aligned(Jit *j, JitValue pointer, JitValue index); /* vector-size aligned */
JitValue jit_vload_bytes(Jit *j, JitValue pointer, JitValue index);   /* of u8, as i32 */
void jit_vstore(Jit *j, JitValue pointer, JitValue index, JitValue v);
void jit_vstore_aligned(Jit *j, JitValue pointer, JitValue index, JitValue v);
/* The first n (1 <= n <= lanes, an i64 value) lanes through a stack buffer: tails use the same
 * vector arithmetic as bodies. */
JitValue jit_vload_partial(Jit *j, JitValue pointer, JitValue index, JitValue n, double fill);
/* A vector of 16-bit words (vh) as they lie in memory, any alignment; for jit_bf16.c. */
JitValue jit_load_words(Jit *j, JitValue pointer, JitValue index);
void jit_store_words(Jit *j, JitValue pointer, JitValue index, JitValue words);
/* The nearest bf16 of every lane, ties to even, as f32; NaN stays NaN. */
JitValue jit_vround_bf16(Jit *j, JitValue a);
void jit_vstore_partial(Jit *j, JitValue pointer, JitValue index, JitValue n, JitValue v);
/* Asks for the `floats` (i64) floats at a pointer to be brought near, into the second-level cache;
 * any address may be named. */
void jit_prefetch(Jit *j, JitValue pointer, JitValue floats);
/* The same for the one line of the cache that has the byte at pointer; write: to be written. */
void jit_prefetch_line(Jit *j, JitValue pointer, bool write);
JitValue jit_splat(Jit *j, JitValue scalar); /* f32 -> vf, i32 -> vi, u32 -> vu */
JitValue jit_vf(Jit *j, double v);           /* constant vectors */
JitValue jit_vi(Jit *j, int32_t v);
JitValue jit_from_lanes(Jit *j, JitType vector_type, const JitValue *lanes);
JitValue jit_lane(Jit *j, JitValue vector, int i);
/* a, of f32 or a vector, in a register of which GCC does not know how it came to be: nothing is
 * merged with what made it. */
JitValue jit_opaque(Jit *j, JitValue a);
/* Lane i of the result is lane[i] of a, or lane[i] - lanes of b: GCC makes one shuffle instruction
 * of it where there is one (unpck, shufps, shuff32x4, insertf128, ...).  f32 vectors. */
JitValue jit_shuffle(Jit *j, JitValue a, JitValue b, const int *lane);

/* --- control --- */
typedef struct JitLoop {
    JitVar var;
    JitValue to, step;
    JitBlock head, exit;
} JitLoop;
/* for (i = from; i < to; i += step); the body may run zero times. */
JitLoop jit_for(Jit *j, JitValue from, JitValue to, int64_t step, const char *hint);
JitValue jit_index(const JitLoop *loop);
void jit_end_for(Jit *j, JitLoop *loop);
typedef struct JitIf {
    JitBlock otherwise, after;
    bool has_else;
} JitIf;
JitIf jit_if(Jit *j, JitValue condition);
void jit_else(Jit *j, JitIf *s);
void jit_end_if(Jit *j, JitIf *s);

/* --- vector mathematics (jit_math.c, with jit_x86.c beside the generic path) --- */
JitValue jit_vmax(Jit *j, JitValue a, JitValue b); /* f32; NaN in a or b gives NaN */
JitValue jit_vmin(Jit *j, JitValue a, JitValue b);
JitValue jit_vmax_keep(Jit *j, JitValue a, JitValue b); /* b when either is NaN; cheapest */
JitValue jit_vrelu(Jit *j, JitValue a);                 /* max(a, 0); NaN stays */
JitValue jit_vabs(Jit *j, JitValue a);
JitValue jit_vsqrt(Jit *j, JitValue a);
JitValue jit_vexp(Jit *j, JitValue a);
JitValue jit_vexp_below(Jit *j, JitValue a);      /* the same for a <= 88, in fewer steps */
JitValue jit_vexpm1_negative(Jit *j, JitValue a); /* e^a - 1 for a <= 0; 0 for others */
JitValue jit_vlog(Jit *j, JitValue a);
JitValue jit_vlog1p_fraction(Jit *j, JitValue a); /* log(1 + a) for 0 <= a <= 1 */
JitValue jit_verf(Jit *j, JitValue a);
/* NaN past JIT_ANGLE_MAX: their reduction is exact up to there only. */
JitValue jit_vsin(Jit *j, JitValue a);
JitValue jit_vcos(Jit *j, JitValue a);
#define JIT_ANGLE_MAX 102942.0
JitValue jit_vtanh(Jit *j, JitValue a);
JitValue jit_vsigmoid(Jit *j, JitValue a);
JitValue jit_vpow(Jit *j, JitValue a, JitValue b);
JitValue jit_vmask(Jit *j, JitCompare op, JitValue a,
                   JitValue b); /* f32 or i32 vectors -> vi of 0 / -1 */
JitValue jit_vselect(Jit *j, JitValue mask, JitValue yes, JitValue no); /* lanes by mask */
JitValue jit_vfma(Jit *j, JitValue a, JitValue b,
                  JitValue c); /* a*b + c; one rounding where the target has it */
/* Phi(x) of the normal distribution, with relative accuracy on the left; its density unless NULL.
 */
JitValue jit_vnormal_cdf(Jit *j, JitValue a, JitValue *density);
/* High and low words of the 64-bit products of u32 vectors. */
void jit_vmul_wide(Jit *j, JitValue a, JitValue b, JitValue *high, JitValue *low);
JitValue jit_lane_numbers(Jit *j);             /* vi 0, 1, 2, ... */
JitValue jit_lane_bits(Jit *j);                /* vi 1, 2, 4, ... */
JitValue jit_mask_bits(Jit *j, JitValue mask); /* vi of 0 / -1 -> i32: lane k in bit k */
/* yes where a op b, else no; all f32 vectors: cheaper than a mask. */
JitValue jit_vchoose(Jit *j, JitCompare op, JitValue a, JitValue b, JitValue yes, JitValue no);
JitValue jit_vi_to_vf(Jit *j, JitValue vi);
JitValue jit_vf_to_vi(Jit *j, JitValue vf); /* truncation */
JitValue jit_hsum(Jit *j, JitValue vf);     /* f32; fixed pairwise order */
JitValue jit_hmax(Jit *j, JitValue vf);

#endif
