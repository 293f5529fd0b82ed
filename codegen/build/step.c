/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/step.h"

#include "codegen/build/hash.h"
#include "codegen/generator_id.h"
#include "codegen/jit/jit.h"
#include "ir/support/bug.h"

#include <string.h>

static const char *kernel_key(Pool *pool, const Backend *backend, const char *compiler,
                              const Call *call)
{
    const char *library = call->library ? backend->library_version(pool, call->library) : "";
    const char *text = pool_printf(pool, "%s|%s|%s|%d|%s", GENERATOR_ID, compiler, library,
                                   call->contract, call->key);
    return content_key(pool, text, strlen(text));
}

StepProgram *step_program(Pool *pool, const Graph *g, const MemPlan *plan, StepTarget target,
                          const char **error)
{
    const Backend *backend = target.backend;
    const char *arch = target.arch ? target.arch : target.target->name;
    const char *compiler = backend->compiler(pool, arch, error);
    if (!compiler && !target.only_look)
        return NULL;
    if (!compiler)
        compiler = arch;
    Lowering l = {.pool = pool, .graph = g, .target = target.target, .backend = backend};
    lower_graph(&l);
    StepProgram *p = POOL_NEW(pool, StepProgram);
    *p = (StepProgram){.pool = pool,
                       .graph = g,
                       .plan = plan,
                       .symbol = SCRIMP_STEP_SYMBOL,
                       .backend = backend,
                       .target = target.target,
                       .arch = target.arch,
                       .compiler = compiler,
                       .calls = l.calls.data,
                       .n_calls = (int)l.calls.len,
                       .kernel_of = POOL_ARRAY(pool, l.calls.len, int),
                       .first_call = POOL_ARRAY(pool, l.calls.len, int),
                       .kernel_key = POOL_ARRAY(pool, l.calls.len, const char *)};
    Map seen = map_new(pool);
    for (int i = 0; i < p->n_calls; i++) {
        const char *key = kernel_key(pool, backend, compiler, &p->calls[i]);
        const uint64_t *found = map_find(&seen, key);
        if (!found) {
            p->first_call[p->n_kernels] = i;
            p->kernel_key[p->n_kernels] = key;
            map_set(&seen, key, (uint64_t)p->n_kernels);
        }
        p->kernel_of[i] = found ? (int)*found : p->n_kernels++;
    }
    return p;
}

const char *const *step_call_keys(const StepProgram *p)
{
    const char **key = POOL_ARRAY(p->pool, (size_t)p->n_calls + 1, const char *);
    for (int i = 0; i < p->n_calls; i++)
        key[i] = p->kernel_key[p->kernel_of[i]];
    return key;
}

const char *step_kernel_symbol(const StepProgram *p, int kernel)
{
    return pool_printf(p->pool, "k_%s", p->kernel_key[kernel]);
}

ScrimpDeviceKernel step_device_kernel(const StepProgram *p, int kernel, const void *image,
                                      size_t bytes)
{
    const Call *call = &p->calls[p->first_call[kernel]];
    return (ScrimpDeviceKernel){.symbol = step_kernel_symbol(p, kernel),
                                .image = image,
                                .bytes = (int64_t)bytes,
                                .library = call->library,
                                .threads = call->threads};
}

int64_t step_buffer_offset(const StepProgram *p, const Call *call, int buf)
{
    const CallBuf *b = &call->buf[buf];
    if (b->value == CALL_NUMBER)
        return b->offset;
    int64_t base =
        b->value == VALUE_NONE ? p->plan->workspace_offset[call->node] : p->plan->offset[b->value];
    if (base < 0)
        BUG("%s reads a value without storage", call->label);
    return base + b->offset;
}

const char *step_key(const StepProgram *p)
{
    StrBuf b = strbuf_new(p->pool);
    strbuf_printf(&b, "%s|%s|%s", GENERATOR_ID, p->backend->name, p->target->name);
    for (int i = 0; i < p->n_calls; i++) {
        const Call *c = &p->calls[i];
        strbuf_printf(&b, "|%s:%lld", p->kernel_key[p->kernel_of[i]], (long long)c->n_tasks);
        for (int k = 0; k < c->n_bufs; k++)
            strbuf_printf(&b, "%c%llx", c->buf[k].value == CALL_NUMBER ? '=' : ',',
                          (unsigned long long)step_buffer_offset(p, c, k));
    }
    return content_key(p->pool, b.text, b.len);
}

/* --- the table of calls ---
 *
 * One run of words a call: its kernel with the count of its arguments above it, its tasks, a bit
 * for every argument (1: a number, 0: an offset in the arena), its arguments.  The step walks it,
 * so that compiling a step does not depend on how many calls it has. */

enum { COUNT_SHIFT = 32, MASK_BITS = 64 };

typedef VEC(int64_t) Words;

static void put_call(const StepProgram *p, int index, Words *words)
{
    const Call *c = &p->calls[index];
    vec_push(p->pool, words, (int64_t)c->n_bufs << COUNT_SHIFT | p->kernel_of[index]);
    vec_push(p->pool, words, c->n_tasks);
    size_t masks = words->len;
    for (int k = 0; k < c->n_bufs; k += MASK_BITS)
        vec_push(p->pool, words, 0);
    for (int k = 0; k < c->n_bufs; k++) {
        uint64_t bit = c->buf[k].value == CALL_NUMBER;
        words->data[masks + (size_t)(k / MASK_BITS)] |= (int64_t)(bit << k % MASK_BITS);
        vec_push(p->pool, words, step_buffer_offset(p, c, k));
    }
}

static JitValue call_table(Jit *j, const StepProgram *p)
{
    Words words = {0};
    for (int i = 0; i < p->n_calls; i++)
        put_call(p, i, &words);
    vec_push(p->pool, &words, 0); /* a table has at least one word */
    return jit_tmp(j, jit_table(j, jit_types(j)->i64, words.data, words.len, sizeof *words.data));
}

/* --- code --- */

/* ctx fields are reached by offset: the struct of runtime/abi.h is the contract. */
static JitValue context_field(Jit *j, JitValue ctx, size_t offset, JitType type)
{
    JitValue field = jit_offset(j, ctx, jit_i64(j, (int64_t)offset));
    return jit_tmp(j, jit_load_as(j, field, type));
}

/* What ctx->run gets for kernel k: its address, or where it is not linked its number. */
static JitValue kernel_handle(Jit *j, const StepProgram *p, int k)
{
    const JitTypes *t = jit_types(j);
    JitType params[] = {t->p_char, t->i64, t->i64, t->p_char};
    if (!p->backend->linked)
        return jit_offset(j, jit_zero(j, t->p_char), jit_i64(j, k));
    return jit_function_pointer(j, jit_import(j, step_kernel_symbol(p, k), t->none, 4, params));
}

/* Handles of the kernels, in order. */
static JitValue kernel_table(Jit *j, const StepProgram *p)
{
    const JitTypes *t = jit_types(j);
    JitVar array = jit_array_var(j, t->p_char, p->n_kernels + 1, "kernels");
    JitValue table = jit_tmp(j, jit_array_ptr(j, array, jit_pointer_to(j, t->p_char)));
    for (int k = 0; k < p->n_kernels; k++)
        jit_store(j, table, jit_i64(j, k), kernel_handle(j, p, k));
    return table;
}

/* Arguments 0..n-1 of a call, whose bits and values lie at words[masks] and words[first]. */
static void fill_arguments(Jit *j, JitValue words, JitValue masks, JitValue first, JitValue n,
                           JitValue arena, JitValue to)
{
    JitLoop l = jit_for(j, jit_i64(j, 0), n, 1, "argument");
    JitValue k = jit_index(&l), per = jit_i64(j, MASK_BITS);
    JitValue mask = jit_load(j, words, jit_add(j, masks, jit_div(j, k, per)));
    JitValue number = jit_and(j, jit_shr(j, mask, jit_mod(j, k, per)), jit_i64(j, 1));
    JitValue base = jit_and(j, arena, jit_sub(j, number, jit_i64(j, 1)));
    jit_store(j, to, k, jit_add(j, base, jit_load(j, words, jit_add(j, first, k))));
    jit_end_for(j, &l);
}

static void run_kernel(Jit *j, JitValue ctx, JitValue call, JitValue kernel, JitValue arguments,
                       JitValue n_tasks)
{
    const JitTypes *t = jit_types(j);
    JitValue args[] = {ctx, jit_cast(j, call, t->i32), kernel, jit_cast(j, arguments, t->p_char),
                       n_tasks};
    JitType types[] = {t->p_char, t->i32, t->p_char, t->p_char, t->i64};
    JitValue run = context_field(j, ctx, offsetof(ScrimpContext, run), t->p_char);
    jit_call_pointer_void(j, run, 5, types, args);
}

void step_emit(Jit *j, const StepProgram *p)
{
    const JitTypes *t = jit_types(j);
    jit_export_begin(j, p->symbol, 1, &t->p_char);
    JitValue ctx = jit_param(j, 0), words = call_table(j, p), kernels = kernel_table(j, p);
    JitValue arena = context_field(j, ctx, offsetof(ScrimpContext, arena), t->i64);
    JitVar array = jit_array_var(j, t->i64, CALL_MAX_BUFS, "arguments"),
           at = jit_var(j, t->i64, "at");
    JitValue arguments = jit_tmp(j, jit_array_ptr(j, array, t->p_i64));
    jit_set(j, at, jit_i64(j, 0));
    JitLoop calls = jit_for(j, jit_i64(j, 0), jit_i64(j, p->n_calls), 1, "call");
    JitValue head = jit_load(j, words, jit_get(at)), shift = jit_i64(j, COUNT_SHIFT);
    JitValue n = jit_tmp(j, jit_shr(j, head, shift));
    JitValue kernel = jit_sub(j, head, jit_shl(j, n, shift));
    JitValue n_tasks = jit_load(j, words, jit_add(j, jit_get(at), jit_i64(j, 1)));
    JitValue masks = jit_tmp(j, jit_add(j, jit_get(at), jit_i64(j, 2)));
    JitValue n_masks = jit_div(j, jit_add(j, n, jit_i64(j, MASK_BITS - 1)), jit_i64(j, MASK_BITS));
    JitValue first = jit_tmp(j, jit_add(j, masks, n_masks));
    fill_arguments(j, words, masks, first, n, arena, arguments);
    run_kernel(j, ctx, jit_index(&calls), jit_load(j, kernels, jit_tmp(j, kernel)), arguments,
               n_tasks);
    jit_set(j, at, jit_add(j, first, n));
    jit_end_for(j, &calls);
    jit_function_end(j);
}
