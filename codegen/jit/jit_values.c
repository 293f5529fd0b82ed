/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scalars, vectors, variables, memory and instructions of generated code. */
#include "codegen/jit/jit_bf16.h"
#include "codegen/jit/jit_internal.h"
#include "codegen/jit/jit_x86.h"

#include "ir/support/bug.h"

#include <string.h>

/* --- scalars --- */

JitValue jit_i64(Jit *j, int64_t v)
{
    return gcc_jit_context_new_rvalue_from_long(j->ctx, j->t.i64, (long)v);
}

JitValue jit_i32(Jit *j, int32_t v)
{
    return gcc_jit_context_new_rvalue_from_int(j->ctx, j->t.i32, v);
}

/* Rounded here: libgccjit would keep a constant's excess digits. */
JitValue jit_f32(Jit *j, double v)
{
    return gcc_jit_context_new_rvalue_from_double(j->ctx, j->t.f32, (double)(float)v);
}

static bool is_vector(JitType t)
{
    return gcc_jit_type_dyncast_vector(t) != NULL;
}

static JitValue splat_as(Jit *j, JitType vector, JitValue scalar)
{
    gcc_jit_rvalue *lane[JIT_MAX_LANES];
    for (int i = 0; i < jit_lanes(j); i++)
        lane[i] = scalar;
    return gcc_jit_context_new_rvalue_from_vector(j->ctx, NULL, vector, (size_t)jit_lanes(j), lane);
}

JitValue jit_zero(Jit *j, JitType t)
{
    if (is_vector(t)) {
        gcc_jit_vector_type *v = gcc_jit_type_dyncast_vector(t);
        return splat_as(j, t, jit_zero(j, gcc_jit_vector_type_get_element_type(v)));
    }
    return gcc_jit_type_is_pointer(t) ? gcc_jit_context_null(j->ctx, t)
                                      : gcc_jit_context_zero(j->ctx, t);
}

static JitValue binary(Jit *j, enum gcc_jit_binary_op op, JitValue a, JitValue b)
{
    return gcc_jit_context_new_binary_op(j->ctx, NULL, op, jit_type_of(a), a, b);
}

#define INSTRUCTION(name, op)                                                                      \
    JitValue jit_##name(Jit *j, JitValue a, JitValue b)                                            \
    {                                                                                              \
        return binary(j, GCC_JIT_BINARY_OP_##op, a, b);                                            \
    }
INSTRUCTION(add, PLUS)
INSTRUCTION(sub, MINUS)
INSTRUCTION(div, DIVIDE)
INSTRUCTION(mod, MODULO)
INSTRUCTION(and, BITWISE_AND)
INSTRUCTION(or, BITWISE_OR)
INSTRUCTION(xor, BITWISE_XOR)
INSTRUCTION(shl, LSHIFT)
INSTRUCTION(shr, RSHIFT)

static bool is_f32(const Jit *j, JitType t)
{
    return t == j->t.f32 || t == j->t.vf;
}

/* An empty instruction. */
JitValue jit_opaque(Jit *j, JitValue a)
{
    static const char *const in[] = {"0"};
    return j->target->x86 ? jit_asm(j, "", jit_type_of(a), "=v", 1, &a, in) : jit_tmp(j, a);
}

JitValue jit_mul(Jit *j, JitValue a, JitValue b)
{
    JitValue product = binary(j, GCC_JIT_BINARY_OP_MULT, a, b);
    bool rounds = j->rounds_products && j->target->x86 && is_f32(j, jit_type_of(a));
    return rounds ? jit_opaque(j, product) : product;
}

void jit_round_products(Jit *j, bool on)
{
    j->rounds_products = on;
}

static JitValue all_ones(Jit *j, JitType t)
{
    gcc_jit_vector_type *v = gcc_jit_type_dyncast_vector(t);
    if (v)
        return splat_as(j, t, all_ones(j, gcc_jit_vector_type_get_element_type(v)));
    return gcc_jit_context_new_rvalue_from_long(j->ctx, t, t == j->t.boolean ? 1 : -1);
}

JitValue jit_not(Jit *j, JitValue a)
{
    return jit_xor(j, a, all_ones(j, jit_type_of(a)));
}

JitValue jit_neg(Jit *j, JitValue a)
{
    return gcc_jit_context_new_unary_op(j->ctx, NULL, GCC_JIT_UNARY_OP_MINUS, jit_type_of(a), a);
}

JitValue jit_muladd_i64(Jit *j, JitValue a, int64_t k, JitValue b)
{
    return jit_add(j, jit_mul(j, a, jit_i64(j, k)), b);
}

JitValue jit_compare(Jit *j, JitCompare op, JitValue a, JitValue b)
{
    static const enum gcc_jit_comparison map[] = {
        [JIT_EQ] = GCC_JIT_COMPARISON_EQ, [JIT_NE] = GCC_JIT_COMPARISON_NE,
        [JIT_LT] = GCC_JIT_COMPARISON_LT, [JIT_LE] = GCC_JIT_COMPARISON_LE,
        [JIT_GT] = GCC_JIT_COMPARISON_GT, [JIT_GE] = GCC_JIT_COMPARISON_GE};
    return gcc_jit_context_new_comparison(j->ctx, NULL, map[op], a, b);
}

JitValue jit_cast(Jit *j, JitValue v, JitType t)
{
    return jit_type_of(v) == t ? v : gcc_jit_context_new_cast(j->ctx, NULL, v, t);
}

JitValue jit_bitcast(Jit *j, JitValue v, JitType t)
{
    return gcc_jit_context_new_bitcast(j->ctx, NULL, v, t);
}

static JitValue choose_i64(Jit *j, JitCompare keep_a, JitValue a, JitValue b)
{
    JitVar v = jit_var(j, j->t.i64, "choice");
    jit_set(j, v, a);
    JitValue other = jit_tmp(j, b);
    JitIf s = jit_if(j, jit_compare(j, keep_a, other, jit_get(v)));
    jit_set(j, v, other);
    jit_end_if(j, &s);
    return jit_get(v);
}

JitValue jit_min_i64(Jit *j, JitValue a, JitValue b)
{
    return choose_i64(j, JIT_LT, a, b);
}

JitValue jit_max_i64(Jit *j, JitValue a, JitValue b)
{
    return choose_i64(j, JIT_GT, a, b);
}

JitType jit_type_of(JitValue v)
{
    return gcc_jit_rvalue_get_type(v);
}

/* --- variables and memory --- */

JitVar jit_var(Jit *j, JitType t, const char *hint)
{
    return gcc_jit_function_new_local(jit_frame(j)->function, NULL, t, jit_unique_name(j, hint));
}

JitVar jit_array_var(Jit *j, JitType element, int n, const char *hint)
{
    JitType type = gcc_jit_context_new_array_type(j->ctx, NULL, element, n);
    JitVar v = jit_var(j, type, hint);
    gcc_jit_lvalue_set_alignment(v, 64);
    return v;
}

JitValue jit_constants(Jit *j, const float *values, int64_t n)
{
    const JitTypes *t = jit_types(j);
    /* libgccjit initializes arrays of integers only. */
    JitType type = gcc_jit_context_new_array_type(j->ctx, NULL, t->u32, (int)n);
    JitVar v = gcc_jit_context_new_global(j->ctx, NULL, GCC_JIT_GLOBAL_INTERNAL, type,
                                          jit_unique_name(j, "constants"));
    gcc_jit_global_set_initializer(v, values, (size_t)n * sizeof *values);
    return jit_array_ptr(j, v, t->p_f32);
}

JitValue jit_array_ptr(Jit *j, JitVar array, JitType pointer_type)
{
    return jit_cast(j, gcc_jit_lvalue_get_address(array, NULL), pointer_type);
}

JitValue jit_table(Jit *j, JitType element, const void *data, size_t n, size_t element_bytes)
{
    JitType type = gcc_jit_context_new_array_type(j->ctx, NULL, element, (int)n);
    JitVar table = gcc_jit_context_new_global(j->ctx, NULL, GCC_JIT_GLOBAL_INTERNAL, type,
                                              jit_unique_name(j, "table"));
    gcc_jit_global_set_initializer(table, data, n * element_bytes);
    return jit_array_ptr(j, table, jit_pointer_to(j, element));
}

void jit_set(Jit *j, JitVar var, JitValue v)
{
    gcc_jit_block_add_assignment(jit_frame(j)->block, NULL, var, v);
}

JitValue jit_get(JitVar var)
{
    return gcc_jit_lvalue_as_rvalue(var);
}

JitValue jit_tmp(Jit *j, JitValue v)
{
    JitVar t = jit_var(j, jit_type_of(v), "t");
    jit_set(j, t, v);
    return jit_get(t);
}

static gcc_jit_lvalue *element(Jit *j, JitValue pointer, JitValue index)
{
    return gcc_jit_context_new_array_access(j->ctx, NULL, pointer, index);
}

static bool is_bf16(const Jit *j, JitValue pointer)
{
    return jit_type_of(pointer) == j->t.p_bf16;
}

JitValue jit_load(Jit *j, JitValue pointer, JitValue index)
{
    JitValue v = jit_tmp(j, gcc_jit_lvalue_as_rvalue(element(j, pointer, index)));
    return is_bf16(j, pointer) ? bf16_from_word(j, v) : v;
}

JitValue jit_load_as(Jit *j, JitValue pointer, JitType type)
{
    return jit_load(j, jit_cast(j, pointer, jit_pointer_to(j, type)), jit_i64(j, 0));
}

void jit_store(Jit *j, JitValue pointer, JitValue index, JitValue v)
{
    v = is_bf16(j, pointer) ? bf16_to_word(j, v) : v;
    jit_set(j, element(j, pointer, index), v);
}

JitValue jit_offset(Jit *j, JitValue pointer, JitValue index)
{
    return gcc_jit_lvalue_get_address(element(j, pointer, index), NULL);
}

static JitType vector_for(const Jit *j, JitValue pointer)
{
    JitType t = jit_type_of(pointer);
    if (t == j->t.p_f32)
        return j->t.vf;
    if (t == j->t.p_i32)
        return j->t.vi;
    if (t == gcc_jit_type_get_pointer(j->t.u32))
        return j->t.vu;
    BUG("vector access through a pointer of another type");
}

static JitType unaligned_of(const Jit *j, JitType vector)
{
    return vector == j->t.vf   ? j->vf_unaligned
           : vector == j->t.vi ? j->vi_unaligned
                               : j->vu_unaligned;
}

static gcc_jit_lvalue *vector_at(Jit *j, JitValue pointer, JitValue index, bool aligned)
{
    JitType type = vector_for(j, pointer);
    JitType p = gcc_jit_type_get_pointer(aligned ? type : unaligned_of(j, type));
    return gcc_jit_rvalue_dereference(jit_cast(j, jit_offset(j, pointer, index), p), NULL);
}

static JitValue vector_load(Jit *j, JitValue pointer, JitValue index, bool aligned)
{
    JitVar v = jit_var(j, vector_for(j, pointer), "v");
    jit_set(j, v, gcc_jit_lvalue_as_rvalue(vector_at(j, pointer, index, aligned)));
    return jit_get(v);
}

JitValue jit_vload(Jit *j, JitValue pointer, JitValue index)
{
    return is_bf16(j, pointer) ? bf16_vload(j, pointer, index)
                               : vector_load(j, pointer, index, false);
}

JitValue jit_vload_aligned(Jit *j, JitValue pointer, JitValue index)
{
    return vector_load(j, pointer, index, true);
}

void jit_vstore(Jit *j, JitValue pointer, JitValue index, JitValue v)
{
    if (is_bf16(j, pointer))
        bf16_vstore(j, pointer, index, v);
    else
        jit_set(j, vector_at(j, pointer, index, false), v);
}

void jit_vstore_aligned(Jit *j, JitValue pointer, JitValue index, JitValue v)
{
    jit_set(j, vector_at(j, pointer, index, true), v);
}

void jit_prefetch_line(Jit *j, JitValue pointer, bool write)
{
    enum { SECOND_LEVEL = 2 };
    JitFunction f = gcc_jit_context_get_builtin_function(j->ctx, "__builtin_prefetch");
    JitType any = gcc_jit_type_get_pointer(gcc_jit_type_get_const(j->t.none));
    const JitValue args[] = {jit_cast(j, pointer, any), jit_i32(j, write),
                             jit_i32(j, SECOND_LEVEL)};
    jit_call_void(j, f, 3, args);
}

void jit_prefetch(Jit *j, JitValue pointer, JitValue floats)
{
    enum { LINE = 16 };
    JitLoop l = jit_for(j, jit_i64(j, 0), floats, LINE, "line");
    jit_prefetch_line(j, jit_offset(j, pointer, jit_index(&l)), false);
    jit_end_for(j, &l);
}

/* to[0..n) = from[0..n), one by one. */
static void copy_elements(Jit *j, JitValue to, JitValue from, JitValue n)
{
    JitLoop l = jit_for(j, jit_i64(j, 0), n, 1, "i");
    jit_store(j, to, jit_index(&l), jit_load(j, from, jit_index(&l)));
    jit_end_for(j, &l);
}

/* A function of (pointer, n, vector) that loads or stores the first n lanes through the stack; one
 * that loads leaves the others as the vector has them. */
static JitFunction partial_function(Jit *j, JitType pointer, bool stores)
{
    static const char *const names[2][3] = {
        {"vload_partial_f32", "vload_partial_i32", "vload_partial_bf16"},
        {"vstore_partial_f32", "vstore_partial_i32", "vstore_partial_bf16"}};
    bool i32 = pointer == j->t.p_i32;
    const char *name = names[stores][pointer == j->t.p_bf16 ? 2 : i32];
    JitType vector = i32 ? j->t.vi : j->t.vf;
    const JitType types[] = {pointer, j->t.i64, vector};
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    f = jit_function_begin(j, name, stores ? j->t.none : vector, 3, types);
    JitVar whole = jit_var(j, vector, "whole");
    jit_set(j, whole, jit_param(j, 2));
    JitValue memory = jit_param(j, 0);
    JitValue lanes = jit_array_ptr(j, whole, i32 ? pointer : j->t.p_f32);
    copy_elements(j, stores ? memory : lanes, stores ? lanes : memory, jit_param(j, 1));
    if (stores)
        jit_function_end(j);
    else
        jit_function_return(j, jit_get(whole));
    return f;
}

/* u32 data goes through the i32 functions; *want: the vector of the data, *type: of the functions.
 */
static JitValue partial_pointer(Jit *j, JitValue pointer, JitValue index, JitType *want,
                                JitType *type)
{
    JitValue at = jit_offset(j, pointer, index);
    *want = is_bf16(j, pointer) ? j->t.vf : vector_for(j, pointer);
    *type = *want == j->t.vf ? *want : j->t.vi;
    return *want == j->t.vu ? jit_cast(j, at, j->t.p_i32) : at;
}

/* Whether there is an instruction for it. */
static bool is_masked(const Jit *j, JitValue pointer)
{
    return x86_has_masks(j) && !is_bf16(j, pointer);
}

JitValue jit_vload_partial(Jit *j, JitValue pointer, JitValue index, JitValue n, double fill)
{
    JitType want, type;
    JitValue p = partial_pointer(j, pointer, index, &want, &type);
    JitValue rest = type == j->t.vf ? jit_vf(j, fill) : jit_vi(j, (int32_t)fill);
    const JitValue args[] = {p, n, rest};
    JitValue v = is_masked(j, p) ? x86_load_masked(j, p, n, jit_tmp(j, rest))
                                 : jit_call(j, partial_function(j, jit_type_of(p), false), 3, args);
    return type == want ? v : jit_tmp(j, jit_bitcast(j, v, want));
}

void jit_vstore_partial(Jit *j, JitValue pointer, JitValue index, JitValue n, JitValue v)
{
    JitType want, type;
    JitValue p = partial_pointer(j, pointer, index, &want, &type);
    const JitValue args[] = {p, n, type == want ? v : jit_bitcast(j, v, type)};
    if (is_masked(j, p))
        x86_store_masked(j, p, n, args[2]);
    else
        jit_call_void(j, partial_function(j, jit_type_of(p), true), 3, args);
}

JitValue jit_splat(Jit *j, JitValue scalar)
{
    JitType t = jit_type_of(scalar);
    JitType vector = t == j->t.f32 ? j->t.vf : t == j->t.i32 ? j->t.vi : j->t.vu;
    return splat_as(j, vector, jit_tmp(j, scalar));
}

JitValue jit_vf(Jit *j, double v)
{
    return splat_as(j, j->t.vf, jit_f32(j, v));
}

JitValue jit_vi(Jit *j, int32_t v)
{
    return splat_as(j, j->t.vi, jit_i32(j, v));
}

JitValue jit_from_lanes(Jit *j, JitType vector_type, const JitValue *lanes)
{
    gcc_jit_rvalue *copy[JIT_MAX_LANES];
    for (int i = 0; i < jit_lanes(j); i++)
        copy[i] = lanes[i];
    return gcc_jit_context_new_rvalue_from_vector(j->ctx, NULL, vector_type, (size_t)jit_lanes(j),
                                                  copy);
}

JitValue jit_lane(Jit *j, JitValue vector, int i)
{
    JitType type = jit_type_of(vector);
    gcc_jit_vector_type *v = gcc_jit_type_dyncast_vector(type);
    JitVar copy = jit_var(j, type, "lanes");
    jit_set(j, copy, vector);
    JitType pointer = gcc_jit_type_get_pointer(gcc_jit_vector_type_get_element_type(v));
    return jit_load(j, jit_array_ptr(j, copy, pointer), jit_i64(j, i));
}

/* Lanes read through memory become VEC_PERM_EXPR in GCC's forward propagation (seen with 12.2): the
 * portable way to shuffle, as libgccjit has no builtin for it.  Propagation does not stop there: of
 * a shuffle of a shuffle, or of a load, it makes as many loads of one lane, so it may not see what
 * the result is made of. */
JitValue jit_shuffle(Jit *j, JitValue a, JitValue b, const int *lane)
{
    JitValue v[JIT_MAX_LANES];
    int n = jit_lanes(j);
    for (int i = 0; i < n; i++)
        v[i] = lane[i] < n ? jit_lane(j, a, lane[i]) : jit_lane(j, b, lane[i] - n);
    return jit_opaque(j, jit_from_lanes(j, j->t.vf, v));
}

/* Operands are copied to plain locals: anything else crashes libgccjit 12. */
static gcc_jit_extended_asm *new_asm(Jit *j, const char *text, int n, const JitValue *in,
                                     const char *const *constraint)
{
    gcc_jit_rvalue *local[JIT_MAX_PARAMS];
    if (n > JIT_MAX_PARAMS)
        BUG("asm with %d operands", n);
    for (int i = 0; i < n; i++)
        local[i] = jit_tmp(j, in[i]);
    gcc_jit_extended_asm *e = gcc_jit_block_add_extended_asm(jit_frame(j)->block, NULL, text);
    gcc_jit_extended_asm_set_volatile_flag(e, 0);
    for (int i = 0; i < n; i++)
        gcc_jit_extended_asm_add_input_operand(e, NULL, constraint[i], local[i]);
    return e;
}

JitValue jit_asm(Jit *j, const char *text, JitType result, const char *out_constraint, int n,
                 const JitValue *in, const char *const *constraint)
{
    JitVar out = jit_var(j, result, "asm");
    gcc_jit_extended_asm *e = new_asm(j, text, n, in, constraint);
    gcc_jit_extended_asm_add_output_operand(e, NULL, out_constraint, out);
    return jit_get(out);
}

JitValue jit_asm_load(Jit *j, const char *text, JitType result, const char *out_constraint, int n,
                      const JitValue *in, const char *const *constraint)
{
    JitVar out = jit_var(j, result, "asm");
    gcc_jit_extended_asm *e = new_asm(j, text, n, in, constraint);
    gcc_jit_extended_asm_set_volatile_flag(e, 1);
    gcc_jit_extended_asm_add_clobber(e, "memory");
    gcc_jit_extended_asm_add_output_operand(e, NULL, out_constraint, out);
    return jit_get(out);
}

void jit_asm_void(Jit *j, const char *text, int n, const JitValue *in,
                  const char *const *constraint)
{
    gcc_jit_extended_asm *e = new_asm(j, text, n, in, constraint);
    gcc_jit_extended_asm_set_volatile_flag(e, 1);
    gcc_jit_extended_asm_add_clobber(e, "memory");
}

JitValue jit_builtin(Jit *j, const char *name, int n, const JitValue *args)
{
    return jit_call(j, gcc_jit_context_get_builtin_function(j->ctx, name), n, args);
}
