/* The only file that knows libgccjit.  Facts about version 12 that shaped it are in docs/cpu.md. */
#include "codegen/jit.h"
#include "codegen/jit_x86.h"

#include "ir/support/bug.h"
#include "ir/support/map.h"
#include "ir/support/pool.h"

#include <libgccjit.h>
#include <string.h>

enum { JIT_MAX_PARAMS = 24, JIT_MAX_BUFS = 64, JIT_MAX_LANES = 16 };

/* A function under construction.  Buffers are loaded in `entry`, which jumps to the code proper
 * when the function ends, so a load made inside a loop is still done once. */
typedef struct Frame {
    struct Frame *outer;
    gcc_jit_function *function;
    gcc_jit_block *entry, *first, *block;
    gcc_jit_param *param[JIT_MAX_PARAMS];
    int n_params;
    int bufs; /* which parameter is the buffer table; -1: none */
    bool kernel;
    struct {
        JitType type;
        gcc_jit_lvalue *var;
    } buf[JIT_MAX_BUFS];
} Frame;

struct Jit {
    gcc_jit_context *ctx;
    const Target *target;
    Pool *pool;
    JitTypes t;
    gcc_jit_type *vf_unaligned, *vi_unaligned, *vu_unaligned, *pp_char;
    gcc_jit_location *loc;
    Frame *frame;
    Map functions;
    int n_names;
};

/* --- context --- */

static void init_scalar_types(Jit *j)
{
    gcc_jit_context *c = j->ctx;
    JitTypes *t = &j->t;
    t->i64 = gcc_jit_context_get_int_type(c, 8, 1);
    t->u64 = gcc_jit_context_get_int_type(c, 8, 0);
    t->i32 = gcc_jit_context_get_int_type(c, 4, 1);
    t->u32 = gcc_jit_context_get_int_type(c, 4, 0);
    t->u8 = gcc_jit_context_get_int_type(c, 1, 0);
    t->f32 = gcc_jit_context_get_type(c, GCC_JIT_TYPE_FLOAT);
    t->f64 = gcc_jit_context_get_type(c, GCC_JIT_TYPE_DOUBLE);
    t->boolean = gcc_jit_context_get_type(c, GCC_JIT_TYPE_BOOL);
    t->none = gcc_jit_context_get_type(c, GCC_JIT_TYPE_VOID);
}

static void init_types(Jit *j)
{
    JitTypes *t = &j->t;
    size_t lanes = (size_t)j->target->vector_floats;
    init_scalar_types(j);
    t->p_i64 = gcc_jit_type_get_pointer(t->i64);
    t->p_i32 = gcc_jit_type_get_pointer(t->i32);
    t->p_u8 = gcc_jit_type_get_pointer(t->u8);
    t->p_f32 = gcc_jit_type_get_pointer(t->f32);
    t->p_char = gcc_jit_type_get_pointer(gcc_jit_context_get_type(j->ctx, GCC_JIT_TYPE_CHAR));
    j->pp_char = gcc_jit_type_get_pointer(t->p_char);
    t->vf = gcc_jit_type_get_vector(t->f32, lanes);
    t->vi = gcc_jit_type_get_vector(t->i32, lanes);
    t->vu = gcc_jit_type_get_vector(t->u32, lanes);
    j->vf_unaligned = gcc_jit_type_get_aligned(t->vf, 4);
    j->vi_unaligned = gcc_jit_type_get_aligned(t->vi, 4);
    j->vu_unaligned = gcc_jit_type_get_aligned(t->vu, 4);
}

/* Int and float views of one buffer are mixed everywhere: type-based aliasing must be off.
 * libgccjit reports warnings as errors: -w. */
static void add_options(Jit *j, bool contract)
{
    static const char *const common[] = {"-w", "-fno-strict-aliasing", "-fno-math-errno",
                                         "-fno-trapping-math", "-fno-stack-protector"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        gcc_jit_context_add_command_line_option(j->ctx, common[i]);
    for (int i = 0; j->target->flags[i]; i++)
        gcc_jit_context_add_command_line_option(j->ctx, j->target->flags[i]);
#ifdef SCRIMP_JIT_SANITIZE /* the tsan build watches the kernels, too */
    gcc_jit_context_add_command_line_option(j->ctx, SCRIMP_JIT_SANITIZE);
#endif
    gcc_jit_context_add_command_line_option(j->ctx,
                                            contract ? "-ffp-contract=fast" : "-ffp-contract=off");
}

Jit *jit_new(const Target *target, bool contract)
{
    Pool *pool = pool_new();
    if (!pool)
        BUG("out of memory");
    Jit *j = POOL_NEW(pool, Jit);
    j->pool = pool;
    j->target = target;
    j->functions = map_new(pool);
    j->ctx = gcc_jit_context_acquire();
    if (!j->ctx)
        BUG("libgccjit gives no context");
    gcc_jit_context_set_bool_print_errors_to_stderr(j->ctx, 0);
    gcc_jit_context_set_bool_allow_unreachable_blocks(j->ctx, 1);
    jit_set_optimization(j, 2);
    add_options(j, contract);
    init_types(j);
    return j;
}

void jit_free(Jit *j)
{
    gcc_jit_context_release(j->ctx);
    pool_free(j->pool);
}

void jit_set_optimization(Jit *j, int level)
{
    gcc_jit_context_set_int_option(j->ctx, GCC_JIT_INT_OPTION_OPTIMIZATION_LEVEL, level);
}

#ifdef SCRIMP_JIT_SANITIZE
#define VERSION_SUFFIX " " SCRIMP_JIT_SANITIZE
#else
#define VERSION_SUFFIX ""
#endif

const char *jit_compiler_version(void)
{
    static char text[80];
    snprintf(text, sizeof text, "libgccjit %d.%d.%d" VERSION_SUFFIX, gcc_jit_version_major(),
             gcc_jit_version_minor(), gcc_jit_version_patchlevel());
    return text;
}

const JitTypes *jit_types(const Jit *j)
{
    return &j->t;
}

const Target *jit_target(const Jit *j)
{
    return j->target;
}

int jit_lanes(const Jit *j)
{
    return j->target->vector_floats;
}

JitType jit_pointer_to(Jit *j, JitType type)
{
    (void)j;
    return gcc_jit_type_get_pointer(type);
}

void jit_set_loc(Jit *j, const char *file, int line, int column)
{
    gcc_jit_context_set_bool_option(j->ctx, GCC_JIT_BOOL_OPTION_DEBUGINFO, 1);
    j->loc = gcc_jit_context_new_location(j->ctx, file, line, column);
}

static bool write_file(Jit *j, enum gcc_jit_output_kind kind, const char *path, const char **error)
{
    static char message[512];
    const char *fault = gcc_jit_context_get_first_error(j->ctx);
    if (!fault) {
        gcc_jit_context_compile_to_file(j->ctx, kind, path);
        fault = gcc_jit_context_get_first_error(j->ctx);
    }
    if (!fault)
        return true;
    snprintf(message, sizeof message, "libgccjit: %s", fault);
    *error = message;
    return false;
}

bool jit_write_object(Jit *j, const char *path, const char **error)
{
    return write_file(j, GCC_JIT_OUTPUT_KIND_OBJECT_FILE, path, error);
}

bool jit_write_assembly(Jit *j, const char *path, const char **error)
{
    return write_file(j, GCC_JIT_OUTPUT_KIND_ASSEMBLER, path, error);
}

bool jit_write_shared(Jit *j, const char *path, const char *const *objects, int n_objects,
                      const char **error)
{
    for (int i = 0; i < n_objects; i++)
        gcc_jit_context_add_driver_option(j->ctx, objects[i]);
    return write_file(j, GCC_JIT_OUTPUT_KIND_DYNAMIC_LIBRARY, path, error);
}

/* --- functions --- */

static const char *unique_name(Jit *j, const char *hint)
{
    return pool_printf(j->pool, "%s_%d", hint, j->n_names++);
}

static Frame *frame(const Jit *j)
{
    if (!j->frame)
        BUG("code outside of a function");
    return j->frame;
}

static gcc_jit_block *new_block(Jit *j, const char *hint)
{
    return gcc_jit_function_new_block(frame(j)->function, unique_name(j, hint));
}

static gcc_jit_function *declare(Jit *j, enum gcc_jit_function_kind kind, const char *name,
                                 JitType result, int n, const JitType *types, gcc_jit_param **param)
{
    if (n > JIT_MAX_PARAMS)
        BUG("function %s has %d parameters", name, n);
    for (int i = 0; i < n; i++)
        param[i] = gcc_jit_context_new_param(j->ctx, j->loc, types[i], unique_name(j, "p"));
    return gcc_jit_context_new_function(j->ctx, j->loc, kind, result, name, n, param, 0);
}

static Frame *open_frame(Jit *j, enum gcc_jit_function_kind kind, const char *name, JitType result,
                         int n, const JitType *types)
{
    Frame *f = POOL_NEW(j->pool, Frame);
    f->function = declare(j, kind, name, result, n, types, f->param);
    f->n_params = n;
    f->bufs = -1;
    f->outer = j->frame;
    j->frame = f;
    f->entry = new_block(j, "entry");
    f->first = f->block = new_block(j, "body");
    return f;
}

static void close_frame(Jit *j)
{
    gcc_jit_block_end_with_jump(frame(j)->entry, NULL, frame(j)->first);
    j->frame = j->frame->outer;
}

void jit_kernel_begin(Jit *j, const char *symbol)
{
    const JitType types[] = {j->pp_char, j->t.i64, j->t.i64, j->t.p_char};
    Frame *f = open_frame(j, GCC_JIT_FUNCTION_EXPORTED, symbol, j->t.none, 4, types);
    f->kernel = true;
    f->bufs = 0;
}

void jit_kernel_end(Jit *j)
{
    jit_function_end(j);
}

static Frame *kernel_frame(const Jit *j)
{
    if (!frame(j)->kernel)
        BUG("kernel arguments used in a helper function");
    return frame(j);
}

void jit_function_bufs(Jit *j, int i)
{
    frame(j)->bufs = i;
}

JitValue jit_bufs(Jit *j)
{
    if (frame(j)->bufs < 0)
        BUG("this function was not given the buffers");
    return gcc_jit_param_as_rvalue(frame(j)->param[frame(j)->bufs]);
}

JitValue jit_buf(Jit *j, int i, JitType pointer_type)
{
    Frame *f = frame(j);
    if (i < 0 || i >= JIT_MAX_BUFS)
        BUG("buffer %d", i);
    if (f->buf[i].type != pointer_type) {
        gcc_jit_rvalue *one = gcc_jit_lvalue_as_rvalue(
            gcc_jit_context_new_array_access(j->ctx, j->loc, jit_bufs(j), jit_i64(j, i)));
        f->buf[i].type = pointer_type;
        f->buf[i].var = jit_var(j, pointer_type, "buf");
        gcc_jit_block_add_assignment(f->entry, j->loc, f->buf[i].var,
                                     jit_cast(j, one, pointer_type));
    }
    return gcc_jit_lvalue_as_rvalue(f->buf[i].var);
}

JitValue jit_task_begin(Jit *j)
{
    return gcc_jit_param_as_rvalue(kernel_frame(j)->param[1]);
}

JitValue jit_task_end(Jit *j)
{
    return gcc_jit_param_as_rvalue(kernel_frame(j)->param[2]);
}

JitValue jit_scratch(Jit *j, JitType pointer_type)
{
    return jit_cast(j, gcc_jit_param_as_rvalue(kernel_frame(j)->param[3]), pointer_type);
}

JitFunction jit_function_begin(Jit *j, const char *name, JitType result, int n_params,
                               const JitType *types)
{
    Frame *f = open_frame(j, GCC_JIT_FUNCTION_INTERNAL, name, result, n_params, types);
    map_set(&j->functions, name, (uint64_t)(uintptr_t)f->function);
    return f->function;
}

void jit_export_begin(Jit *j, const char *symbol, int n_params, const JitType *types)
{
    open_frame(j, GCC_JIT_FUNCTION_EXPORTED, symbol, j->t.none, n_params, types);
}

JitFunction jit_import(Jit *j, const char *symbol, JitType result, int n_params,
                       const JitType *types)
{
    gcc_jit_param *param[JIT_MAX_PARAMS];
    return declare(j, GCC_JIT_FUNCTION_IMPORTED, symbol, result, n_params, types, param);
}

JitVar jit_param_var(Jit *j, int i)
{
    if (i < 0 || i >= frame(j)->n_params)
        BUG("parameter %d", i);
    return gcc_jit_param_as_lvalue(frame(j)->param[i]);
}

JitValue jit_param(Jit *j, int i)
{
    return gcc_jit_lvalue_as_rvalue(jit_param_var(j, i));
}

void jit_function_end(Jit *j)
{
    gcc_jit_block_end_with_void_return(frame(j)->block, j->loc);
    close_frame(j);
}

void jit_function_return(Jit *j, JitValue v)
{
    gcc_jit_block_end_with_return(frame(j)->block, j->loc, v);
    close_frame(j);
}

JitFunction jit_function_lookup(Jit *j, const char *name)
{
    const uint64_t *found = map_find(&j->functions, name);
    return found ? (JitFunction)(uintptr_t)*found : NULL;
}

static gcc_jit_rvalue *new_call(Jit *j, JitFunction f, int n, const JitValue *args)
{
    gcc_jit_rvalue *copy[JIT_MAX_PARAMS];
    if (n > JIT_MAX_PARAMS)
        BUG("call with %d arguments", n);
    for (int i = 0; i < n; i++)
        copy[i] = args[i];
    return gcc_jit_context_new_call(j->ctx, j->loc, f, n, copy);
}

void jit_call_void(Jit *j, JitFunction f, int n, const JitValue *args)
{
    gcc_jit_block_add_eval(frame(j)->block, j->loc, new_call(j, f, n, args));
}

JitValue jit_call(Jit *j, JitFunction f, int n, const JitValue *args)
{
    return jit_tmp(j, new_call(j, f, n, args));
}

JitValue jit_function_pointer(Jit *j, JitFunction f)
{
    return jit_cast(j, gcc_jit_function_get_address(f, j->loc), j->t.p_char);
}

void jit_call_pointer_void(Jit *j, JitValue pointer, int n, const JitType *types,
                           const JitValue *args)
{
    gcc_jit_rvalue *values[JIT_MAX_PARAMS];
    gcc_jit_type *copy[JIT_MAX_PARAMS];
    if (n > JIT_MAX_PARAMS)
        BUG("call with %d arguments", n);
    for (int i = 0; i < n; i++) {
        values[i] = args[i];
        copy[i] = types[i];
    }
    JitType type = gcc_jit_context_new_function_ptr_type(j->ctx, j->loc, j->t.none, n, copy, 0);
    gcc_jit_rvalue *call =
        gcc_jit_context_new_call_through_ptr(j->ctx, j->loc, jit_cast(j, pointer, type), n, values);
    gcc_jit_block_add_eval(frame(j)->block, j->loc, call);
}

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
    return gcc_jit_context_new_rvalue_from_vector(j->ctx, j->loc, vector, (size_t)jit_lanes(j),
                                                  lane);
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
    return gcc_jit_context_new_binary_op(j->ctx, j->loc, op, jit_type_of(a), a, b);
}

JitValue jit_add(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_PLUS, a, b);
}

JitValue jit_sub(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_MINUS, a, b);
}

JitValue jit_mul(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_MULT, a, b);
}

JitValue jit_div(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_DIVIDE, a, b);
}

JitValue jit_mod(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_MODULO, a, b);
}

JitValue jit_and(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_BITWISE_AND, a, b);
}

JitValue jit_or(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_BITWISE_OR, a, b);
}

JitValue jit_xor(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_BITWISE_XOR, a, b);
}

JitValue jit_shl(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_LSHIFT, a, b);
}

JitValue jit_shr(Jit *j, JitValue a, JitValue b)
{
    return binary(j, GCC_JIT_BINARY_OP_RSHIFT, a, b);
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
    return gcc_jit_context_new_unary_op(j->ctx, j->loc, GCC_JIT_UNARY_OP_MINUS, jit_type_of(a), a);
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
    return gcc_jit_context_new_comparison(j->ctx, j->loc, map[op], a, b);
}

JitValue jit_cast(Jit *j, JitValue v, JitType t)
{
    return jit_type_of(v) == t ? v : gcc_jit_context_new_cast(j->ctx, j->loc, v, t);
}

JitValue jit_bitcast(Jit *j, JitValue v, JitType t)
{
    return gcc_jit_context_new_bitcast(j->ctx, j->loc, v, t);
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
    return gcc_jit_function_new_local(frame(j)->function, j->loc, t, unique_name(j, hint));
}

JitVar jit_array_var(Jit *j, JitType element, int n, const char *hint)
{
    JitType type = gcc_jit_context_new_array_type(j->ctx, j->loc, element, n);
    JitVar v = jit_var(j, type, hint);
    gcc_jit_lvalue_set_alignment(v, 64);
    return v;
}

JitValue jit_array_ptr(Jit *j, JitVar array, JitType pointer_type)
{
    return jit_cast(j, gcc_jit_lvalue_get_address(array, j->loc), pointer_type);
}

void jit_set(Jit *j, JitVar var, JitValue v)
{
    gcc_jit_block_add_assignment(frame(j)->block, j->loc, var, v);
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
    return gcc_jit_context_new_array_access(j->ctx, j->loc, pointer, index);
}

JitValue jit_load(Jit *j, JitValue pointer, JitValue index)
{
    return jit_tmp(j, gcc_jit_lvalue_as_rvalue(element(j, pointer, index)));
}

JitValue jit_load_as(Jit *j, JitValue pointer, JitType type)
{
    return jit_load(j, jit_cast(j, pointer, jit_pointer_to(j, type)), jit_i64(j, 0));
}

void jit_store(Jit *j, JitValue pointer, JitValue index, JitValue v)
{
    jit_set(j, element(j, pointer, index), v);
}

JitValue jit_offset(Jit *j, JitValue pointer, JitValue index)
{
    return gcc_jit_lvalue_get_address(element(j, pointer, index), j->loc);
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
    return gcc_jit_rvalue_dereference(jit_cast(j, jit_offset(j, pointer, index), p), j->loc);
}

static JitValue vector_load(Jit *j, JitValue pointer, JitValue index, bool aligned)
{
    JitVar v = jit_var(j, vector_for(j, pointer), "v");
    jit_set(j, v, gcc_jit_lvalue_as_rvalue(vector_at(j, pointer, index, aligned)));
    return jit_get(v);
}

JitValue jit_vload(Jit *j, JitValue pointer, JitValue index)
{
    return vector_load(j, pointer, index, false);
}

JitValue jit_vload_aligned(Jit *j, JitValue pointer, JitValue index)
{
    return vector_load(j, pointer, index, true);
}

void jit_vstore(Jit *j, JitValue pointer, JitValue index, JitValue v)
{
    jit_set(j, vector_at(j, pointer, index, false), v);
}

void jit_vstore_aligned(Jit *j, JitValue pointer, JitValue index, JitValue v)
{
    jit_set(j, vector_at(j, pointer, index, true), v);
}

/* to[0..n) = from[0..n), one by one. */
static void copy_elements(Jit *j, JitValue to, JitValue from, JitValue n)
{
    JitLoop l = jit_for(j, jit_i64(j, 0), n, 1, "i");
    jit_store(j, to, jit_index(&l), jit_load(j, from, jit_index(&l)));
    jit_end_for(j, &l);
}

static JitFunction partial_load_function(Jit *j, JitType pointer, JitType vector)
{
    const char *name = vector == j->t.vf ? "vload_partial_f32" : "vload_partial_i32";
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitType types[] = {pointer, j->t.i64, vector};
    f = jit_function_begin(j, name, vector, 3, types);
    JitVar whole = jit_var(j, vector, "whole");
    jit_set(j, whole, jit_param(j, 2));
    copy_elements(j, jit_array_ptr(j, whole, pointer), jit_param(j, 0), jit_param(j, 1));
    jit_function_return(j, jit_get(whole));
    return f;
}

static JitFunction partial_store_function(Jit *j, JitType pointer, JitType vector)
{
    const char *name = vector == j->t.vf ? "vstore_partial_f32" : "vstore_partial_i32";
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitType types[] = {pointer, j->t.i64, vector};
    f = jit_function_begin(j, name, j->t.none, 3, types);
    JitVar whole = jit_var(j, vector, "whole");
    jit_set(j, whole, jit_param(j, 2));
    copy_elements(j, jit_param(j, 0), jit_array_ptr(j, whole, pointer), jit_param(j, 1));
    jit_function_end(j);
    return f;
}

/* u32 data goes through the i32 functions. */
static JitValue partial_pointer(Jit *j, JitValue pointer, JitValue index)
{
    JitType type = vector_for(j, pointer) == j->t.vf ? j->t.p_f32 : j->t.p_i32;
    return jit_cast(j, jit_offset(j, pointer, index), type);
}

JitValue jit_vload_partial(Jit *j, JitValue pointer, JitValue index, JitValue n, double fill)
{
    JitType want = vector_for(j, pointer);
    JitType type = want == j->t.vf ? want : j->t.vi;
    JitValue p = partial_pointer(j, pointer, index);
    JitValue rest = type == j->t.vf ? jit_vf(j, fill) : jit_vi(j, (int32_t)fill);
    const JitValue args[] = {p, n, rest};
    JitValue v = x86_has_masks(j)
                     ? x86_load_masked(j, p, n, jit_tmp(j, rest))
                     : jit_call(j, partial_load_function(j, jit_type_of(p), type), 3, args);
    return type == want ? v : jit_tmp(j, jit_bitcast(j, v, want));
}

void jit_vstore_partial(Jit *j, JitValue pointer, JitValue index, JitValue n, JitValue v)
{
    JitType want = vector_for(j, pointer);
    JitType type = want == j->t.vf ? want : j->t.vi;
    JitValue p = partial_pointer(j, pointer, index);
    const JitValue args[] = {p, n, type == want ? v : jit_bitcast(j, v, type)};
    if (x86_has_masks(j)) {
        x86_store_masked(j, p, n, args[2]);
        return;
    }
    jit_call_void(j, partial_store_function(j, jit_type_of(p), type), 3, args);
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
    return gcc_jit_context_new_rvalue_from_vector(j->ctx, j->loc, vector_type, (size_t)jit_lanes(j),
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
 * portable way to shuffle, as libgccjit has no builtin for it. */
JitValue jit_shuffle(Jit *j, JitValue a, JitValue b, const int *lane)
{
    JitValue v[JIT_MAX_LANES];
    int n = jit_lanes(j);
    for (int i = 0; i < n; i++)
        v[i] = lane[i] < n ? jit_lane(j, a, lane[i]) : jit_lane(j, b, lane[i] - n);
    return jit_tmp(j, jit_from_lanes(j, j->t.vf, v));
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
    gcc_jit_extended_asm *e = gcc_jit_block_add_extended_asm(frame(j)->block, j->loc, text);
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

void jit_prefetch(Jit *j, JitValue pointer)
{
    JitFunction f = gcc_jit_context_get_builtin_function(j->ctx, "__builtin_prefetch");
    JitType p_void = gcc_jit_type_get_pointer(gcc_jit_type_get_const(j->t.none));
    const JitValue args[] = {gcc_jit_context_new_cast(j->ctx, j->loc, pointer, p_void)};
    jit_call_void(j, f, 1, args);
}

/* --- control --- */

static void jump(Jit *j, gcc_jit_block *to)
{
    gcc_jit_block_end_with_jump(frame(j)->block, j->loc, to);
}

static void branch(Jit *j, JitValue condition, gcc_jit_block *yes, gcc_jit_block *no)
{
    gcc_jit_block_end_with_conditional(frame(j)->block, j->loc, condition, yes, no);
}

JitLoop jit_for(Jit *j, JitValue from, JitValue to, int64_t step, const char *hint)
{
    JitLoop l = {.var = jit_var(j, j->t.i64, hint), .step = jit_i64(j, step)};
    jit_set(j, l.var, from);
    l.to = jit_tmp(j, to);
    l.head = new_block(j, "head");
    l.exit = new_block(j, "exit");
    gcc_jit_block *body = new_block(j, "loop");
    jump(j, l.head);
    frame(j)->block = l.head;
    branch(j, jit_compare(j, JIT_LT, jit_get(l.var), l.to), body, l.exit);
    frame(j)->block = body;
    return l;
}

JitValue jit_index(const JitLoop *loop)
{
    return jit_get(loop->var);
}

void jit_end_for(Jit *j, JitLoop *loop)
{
    jit_set(j, loop->var, jit_add(j, jit_get(loop->var), loop->step));
    jump(j, loop->head);
    frame(j)->block = loop->exit;
}

JitIf jit_if(Jit *j, JitValue condition)
{
    JitIf s = {.otherwise = new_block(j, "else"), .after = new_block(j, "fi")};
    gcc_jit_block *then = new_block(j, "then");
    branch(j, condition, then, s.otherwise);
    frame(j)->block = then;
    return s;
}

void jit_else(Jit *j, JitIf *s)
{
    s->has_else = true;
    jump(j, s->after);
    frame(j)->block = s->otherwise;
}

void jit_end_if(Jit *j, JitIf *s)
{
    if (!s->has_else)
        jit_else(j, s);
    jump(j, s->after);
    frame(j)->block = s->after;
}
