/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Contexts, functions and control flow of generated code. */
#include "codegen/jit/jit_internal.h"

#include "ir/support/bug.h"

#include <string.h>

/* --- context --- */

static void init_scalar_types(Jit *j)
{
    gcc_jit_context *c = j->ctx;
    JitTypes *t = &j->t;
    t->i64 = gcc_jit_context_get_int_type(c, 8, 1);
    t->u64 = gcc_jit_context_get_int_type(c, 8, 0);
    t->i32 = gcc_jit_context_get_int_type(c, 4, 1);
    t->u32 = gcc_jit_context_get_int_type(c, 4, 0);
    t->u16 = gcc_jit_context_get_int_type(c, 2, 0);
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
    t->p_i16 = gcc_jit_type_get_pointer(gcc_jit_context_get_int_type(j->ctx, 2, 1));
    t->p_u8 = gcc_jit_type_get_pointer(t->u8);
    t->p_f32 = gcc_jit_type_get_pointer(t->f32);
    t->p_bf16 = gcc_jit_type_get_pointer(t->u16);
    t->p_char = gcc_jit_type_get_pointer(gcc_jit_context_get_type(j->ctx, GCC_JIT_TYPE_CHAR));
    j->pp_char = gcc_jit_type_get_pointer(t->p_char);
    t->vf = gcc_jit_type_get_vector(t->f32, lanes);
    t->vi = gcc_jit_type_get_vector(t->i32, lanes);
    t->vu = gcc_jit_type_get_vector(t->u32, lanes);
    j->vf_unaligned = gcc_jit_type_get_aligned(t->vf, 4);
    j->vi_unaligned = gcc_jit_type_get_aligned(t->vi, 4);
    j->vu_unaligned = gcc_jit_type_get_aligned(t->vu, 4);
    t->vh = gcc_jit_type_get_vector(t->u16, lanes);
    j->vh_unaligned = gcc_jit_type_get_aligned(t->vh, 2);
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
    /* A quarter of the compiler's time for hardly an instruction of these kernels: they are
     * vectorized as they are written, and more than two instructions are seldom one. */
    static const char *const without[] = {"--param=max-combine-insns=2", "-fno-tree-slp-vectorize",
                                          "-fno-tree-loop-vectorize", "-fno-tree-loop-distribution",
                                          "-fno-tree-loop-distribute-patterns"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        gcc_jit_context_add_command_line_option(j->ctx, without[i]);
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

void jit_write_source(Jit *j, const char *path)
{
    gcc_jit_context_dump_to_file(j->ctx, path, 0);
}

bool jit_write_shared(Jit *j, const char *path, const char *const *objects, int n_objects,
                      const char **error)
{
    for (int i = 0; i < n_objects; i++)
        gcc_jit_context_add_driver_option(j->ctx, objects[i]);
    return write_file(j, GCC_JIT_OUTPUT_KIND_DYNAMIC_LIBRARY, path, error);
}

/* --- functions --- */

const char *jit_unique_name(Jit *j, const char *hint)
{
    return pool_printf(j->pool, "%s_%d", hint, j->n_names++);
}

JitFrame *jit_frame(const Jit *j)
{
    if (!j->frame)
        BUG("code outside of a function");
    return j->frame;
}

static gcc_jit_block *new_block(Jit *j, const char *hint)
{
    return gcc_jit_function_new_block(jit_frame(j)->function, jit_unique_name(j, hint));
}

static gcc_jit_function *declare(Jit *j, enum gcc_jit_function_kind kind, const char *name,
                                 JitType result, int n, const JitType *types, gcc_jit_param **param)
{
    if (n > JIT_MAX_PARAMS)
        BUG("function %s has %d parameters", name, n);
    for (int i = 0; i < n; i++)
        param[i] = gcc_jit_context_new_param(j->ctx, NULL, types[i], jit_unique_name(j, "p"));
    return gcc_jit_context_new_function(j->ctx, NULL, kind, result, name, n, param, 0);
}

static JitFrame *open_frame(Jit *j, enum gcc_jit_function_kind kind, const char *name,
                            JitType result, int n, const JitType *types)
{
    JitFrame *f = POOL_NEW(j->pool, JitFrame);
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
    gcc_jit_block_end_with_jump(jit_frame(j)->entry, NULL, jit_frame(j)->first);
    j->frame = j->frame->outer;
}

void jit_kernel_begin(Jit *j, const char *symbol)
{
    const JitType types[] = {j->pp_char, j->t.i64, j->t.i64, j->t.p_char};
    JitFrame *f = open_frame(j, GCC_JIT_FUNCTION_EXPORTED, symbol, j->t.none, 4, types);
    f->kernel = true;
    f->bufs = 0;
}

void jit_kernel_end(Jit *j)
{
    jit_function_end(j);
}

static JitFrame *kernel_frame(const Jit *j)
{
    if (!jit_frame(j)->kernel)
        BUG("kernel arguments used in a helper function");
    return jit_frame(j);
}

void jit_function_bufs(Jit *j, int i)
{
    jit_frame(j)->bufs = i;
}

void jit_function_is_kernel(Jit *j)
{
    jit_frame(j)->kernel = true;
    jit_frame(j)->bufs = 0;
}

JitValue jit_bufs(Jit *j)
{
    if (jit_frame(j)->bufs < 0)
        BUG("this function was not given the buffers");
    return gcc_jit_param_as_rvalue(jit_frame(j)->param[jit_frame(j)->bufs]);
}

/* Entry i of the table as `type`, loaded once at the top of the function. */
static JitValue table_entry(Jit *j, int i, JitValue table, JitType type)
{
    JitFrame *f = jit_frame(j);
    if (i < 0 || i >= JIT_MAX_BUFS)
        BUG("buffer %d", i);
    if (f->buf[i].type != type) {
        gcc_jit_rvalue *one = gcc_jit_lvalue_as_rvalue(
            gcc_jit_context_new_array_access(j->ctx, NULL, table, jit_i64(j, i)));
        f->buf[i].type = type;
        f->buf[i].var = jit_var(j, type, "buf");
        gcc_jit_block_add_assignment(f->entry, NULL, f->buf[i].var, jit_cast(j, one, type));
    }
    return gcc_jit_lvalue_as_rvalue(f->buf[i].var);
}

void jit_set_bf16(Jit *j, uint64_t buffers)
{
    j->bf16 = buffers;
}

JitType jit_real_pointer(const Jit *j, int i)
{
    return i < 64 && j->bf16 >> i & 1 ? j->t.p_bf16 : j->t.p_f32;
}

JitValue jit_buf(Jit *j, int i, JitType pointer_type)
{
    if (pointer_type == j->t.p_f32)
        pointer_type = jit_real_pointer(j, i);
    return table_entry(j, i, jit_bufs(j), pointer_type);
}

JitValue jit_number(Jit *j, int i)
{
    return table_entry(j, i, jit_cast(j, jit_bufs(j), j->t.p_i64), j->t.i64);
}

static gcc_jit_lvalue *words_at(Jit *j, JitValue pointer, JitValue index)
{
    JitType p = gcc_jit_type_get_pointer(j->vh_unaligned);
    return gcc_jit_rvalue_dereference(jit_cast(j, jit_offset(j, pointer, index), p), NULL);
}

JitValue jit_load_words(Jit *j, JitValue pointer, JitValue index)
{
    JitVar words = jit_var(j, j->t.vh, "words");
    jit_set(j, words, gcc_jit_lvalue_as_rvalue(words_at(j, pointer, index)));
    return jit_get(words);
}

void jit_store_words(Jit *j, JitValue pointer, JitValue index, JitValue words)
{
    jit_set(j, words_at(j, pointer, index), words);
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
    JitFrame *f = open_frame(j, GCC_JIT_FUNCTION_INTERNAL, name, result, n_params, types);
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

static JitVar param_var(Jit *j, int i)
{
    if (i < 0 || i >= jit_frame(j)->n_params)
        BUG("parameter %d", i);
    return gcc_jit_param_as_lvalue(jit_frame(j)->param[i]);
}

JitValue jit_param(Jit *j, int i)
{
    return gcc_jit_lvalue_as_rvalue(param_var(j, i));
}

void jit_function_end(Jit *j)
{
    gcc_jit_block_end_with_void_return(jit_frame(j)->block, NULL);
    close_frame(j);
}

void jit_function_return(Jit *j, JitValue v)
{
    gcc_jit_block_end_with_return(jit_frame(j)->block, NULL, v);
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
    return gcc_jit_context_new_call(j->ctx, NULL, f, n, copy);
}

void jit_call_void(Jit *j, JitFunction f, int n, const JitValue *args)
{
    gcc_jit_block_add_eval(jit_frame(j)->block, NULL, new_call(j, f, n, args));
}

JitValue jit_call(Jit *j, JitFunction f, int n, const JitValue *args)
{
    return jit_tmp(j, new_call(j, f, n, args));
}

JitValue jit_function_pointer(Jit *j, JitFunction f)
{
    return jit_cast(j, gcc_jit_function_get_address(f, NULL), j->t.p_char);
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
    JitType type = gcc_jit_context_new_function_ptr_type(j->ctx, NULL, j->t.none, n, copy, 0);
    gcc_jit_rvalue *call =
        gcc_jit_context_new_call_through_ptr(j->ctx, NULL, jit_cast(j, pointer, type), n, values);
    gcc_jit_block_add_eval(jit_frame(j)->block, NULL, call);
}
/* --- control --- */

static void jump(Jit *j, gcc_jit_block *to)
{
    gcc_jit_block_end_with_jump(jit_frame(j)->block, NULL, to);
}

static void branch(Jit *j, JitValue condition, gcc_jit_block *yes, gcc_jit_block *no)
{
    gcc_jit_block_end_with_conditional(jit_frame(j)->block, NULL, condition, yes, no);
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
    jit_frame(j)->block = l.head;
    branch(j, jit_compare(j, JIT_LT, jit_get(l.var), l.to), body, l.exit);
    jit_frame(j)->block = body;
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
    jit_frame(j)->block = loop->exit;
}

JitIf jit_if(Jit *j, JitValue condition)
{
    JitIf s = {.otherwise = new_block(j, "else"), .after = new_block(j, "fi")};
    gcc_jit_block *then = new_block(j, "then");
    branch(j, condition, then, s.otherwise);
    jit_frame(j)->block = then;
    return s;
}

void jit_else(Jit *j, JitIf *s)
{
    s->has_else = true;
    jump(j, s->after);
    jit_frame(j)->block = s->otherwise;
}

void jit_end_if(Jit *j, JitIf *s)
{
    if (!s->has_else)
        jit_else(j, s);
    jump(j, s->after);
    jit_frame(j)->block = s->after;
}
