#include "codegen/step.h"

#include "codegen/generator_id.h"
#include "codegen/hash.h"
#include "codegen/jit.h"
#include "ir/support/bug.h"

#include <string.h>

/* Calls of one internal function: GCC's passes are not linear in the size of a function. */
enum { CALLS_PER_FUNCTION = 64 };

static const char *kernel_key(Pool *pool, const Target *t, const Call *call)
{
    const char *text = pool_printf(pool, "%s|%s|%s|%d|%s", GENERATOR_ID, jit_compiler_version(),
                                   t->name, call->contract, call->key);
    return content_key(pool, text, strlen(text));
}

StepProgram *step_program(Pool *pool, const Graph *g, const MemPlan *plan, const Target *target)
{
    Lowering l = {.pool = pool, .graph = g, .target = target};
    lower_graph(&l);
    StepProgram *p = POOL_NEW(pool, StepProgram);
    *p = (StepProgram){.pool = pool,
                       .graph = g,
                       .plan = plan,
                       .symbol = SCRIMP_STEP_SYMBOL,
                       .target = target,
                       .calls = l.calls.data,
                       .n_calls = (int)l.calls.len,
                       .kernel_of = POOL_ARRAY(pool, l.calls.len, int),
                       .first_call = POOL_ARRAY(pool, l.calls.len, int),
                       .kernel_key = POOL_ARRAY(pool, l.calls.len, const char *)};
    Map seen = map_new(pool);
    for (int i = 0; i < p->n_calls; i++) {
        const char *key = kernel_key(pool, target, &p->calls[i]);
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

int64_t step_buffer_offset(const StepProgram *p, const Call *call, int buf)
{
    const CallBuf *b = &call->buf[buf];
    int64_t base =
        b->value == VALUE_NONE ? p->plan->workspace_offset[call->node] : p->plan->offset[b->value];
    if (base < 0)
        BUG("%s reads a value without storage", call->label);
    return base + b->offset;
}

const char *step_key(const StepProgram *p)
{
    StrBuf b = strbuf_new(p->pool);
    strbuf_printf(&b, "%s|%s|%s", GENERATOR_ID, p->graph->source ? p->graph->source : "",
                  p->target->name);
    for (int i = 0; i < p->n_calls; i++) {
        const Call *c = &p->calls[i];
        strbuf_printf(&b, "|%s:%lld@%u:%u", p->kernel_key[p->kernel_of[i]], (long long)c->n_tasks,
                      c->loc.line, c->loc.column);
        for (int k = 0; k < c->n_bufs; k++)
            strbuf_printf(&b, ",%llx", (unsigned long long)step_buffer_offset(p, c, k));
    }
    return content_key(p->pool, b.text, b.len);
}

/* ctx fields are reached by offset: the struct of runtime/abi.h is the contract. */
static JitValue context_field(Jit *j, JitValue ctx, size_t offset)
{
    JitType pointer = jit_types(j)->p_char;
    JitValue field = jit_offset(j, ctx, jit_i64(j, (int64_t)offset));
    return jit_load_as(j, field, pointer);
}

static JitFunction kernel_import(Jit *j, const StepProgram *p, int kernel)
{
    const JitTypes *t = jit_types(j);
    JitType params[] = {t->p_char, t->i64, t->i64, t->p_char};
    return jit_import(j, step_kernel_symbol(p, kernel), t->none, 4, params);
}

static void emit_call(Jit *j, const StepProgram *p, int index, JitFunction kernel, JitValue ctx,
                      JitVar bufs)
{
    const JitTypes *t = jit_types(j);
    const Call *c = &p->calls[index];
    JitValue arena = context_field(j, ctx, offsetof(ScrimpContext, arena));
    JitValue table = jit_array_ptr(j, bufs, jit_pointer_to(j, t->p_char));
    if (c->loc.line)
        jit_set_loc(j, p->graph->source ? p->graph->source : "model", (int)c->loc.line,
                    (int)c->loc.column);
    for (int k = 0; k < c->n_bufs; k++)
        jit_store(j, table, jit_i64(j, k),
                  jit_offset(j, arena, jit_i64(j, step_buffer_offset(p, c, k))));
    JitValue args[] = {ctx, jit_i32(j, index), jit_function_pointer(j, kernel),
                       jit_cast(j, table, t->p_char), jit_i64(j, c->n_tasks)};
    JitType types[] = {t->p_char, t->i32, t->p_char, t->p_char, t->i64};
    JitValue run = context_field(j, ctx, offsetof(ScrimpContext, run));
    jit_call_pointer_void(j, run, 5, types, args);
}

static JitFunction emit_part(Jit *j, const StepProgram *p, JitFunction *kernels, int first)
{
    const JitTypes *t = jit_types(j);
    JitType params[] = {t->p_char};
    JitFunction f =
        jit_function_begin(j, pool_printf(p->pool, "step_part_%d", first), t->none, 1, params);
    JitVar bufs = jit_array_var(j, t->p_char, CALL_MAX_BUFS, "bufs");
    for (int i = first; i < p->n_calls && i < first + CALLS_PER_FUNCTION; i++) {
        int k = p->kernel_of[i];
        if (!kernels[k])
            kernels[k] = kernel_import(j, p, k);
        emit_call(j, p, i, kernels[k], jit_param(j, 0), bufs);
    }
    jit_function_end(j);
    return f;
}

void step_emit(Jit *j, const StepProgram *p)
{
    JitType params[] = {jit_types(j)->p_char};
    JitFunction *kernels = POOL_ARRAY(p->pool, (size_t)p->n_kernels, JitFunction);
    int n_parts = (p->n_calls + CALLS_PER_FUNCTION - 1) / CALLS_PER_FUNCTION;
    JitFunction *part = POOL_ARRAY(p->pool, (size_t)n_parts, JitFunction);
    for (int i = 0; i < n_parts; i++)
        part[i] = emit_part(j, p, kernels, i * CALLS_PER_FUNCTION);
    jit_export_begin(j, p->symbol, 1, params);
    for (int i = 0; i < n_parts; i++) {
        JitValue ctx = jit_param(j, 0);
        jit_call_void(j, part[i], 1, &ctx);
    }
    jit_function_end(j);
}
