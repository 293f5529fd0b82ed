/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/step.h"

#include "codegen/build/hash.h"
#include "codegen/build/strips.h"
#include "codegen/generator_id.h"
#include "codegen/jit/jit.h"
#include "codegen/jit/jit_amx.h"

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
    Lowering l = {.pool = pool,
                  .graph = g,
                  .target = target.target,
                  .backend = backend,
                  .tuning = target.tuning};
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
    if (plan && backend->linked && target.strip_cache != STRIPS_NONE)
        strips_find(p, target.strip_cache ? target.strip_cache : target.target->l2_bytes);
    Map seen = map_new(pool);
    for (int i = 0; i < p->n_calls; i++) {
        p->has_loops |= p->calls[i].loops != NULL;
        const char *key = kernel_key(pool, backend, compiler, &p->calls[i]);
        const uint64_t *found = map_find(&seen, key);
        if (!found) {
            p->first_call[p->n_kernels] = i;
            p->kernel_key[p->n_kernels] = key;
            map_set(&seen, key, (uint64_t)p->n_kernels);
        }
        p->kernel_of[i] = found ? (int)*found : p->n_kernels++;
    }
    strips_describe(p);
    return p;
}

const char *codegen_generator(void)
{
    return GENERATOR_ID;
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

static void put_loops_key(StrBuf *b, const Call *c)
{
    const CallLoops *l = c->loops;
    strbuf_printf(b, "(%d,%d", l->begins, l->ends);
    for (int i = 0; i < l->depth; i++)
        strbuf_printf(b, ",%lld", (long long)l->steps[i]);
    for (int i = 0; i < l->depth * c->n_bufs; i++)
        strbuf_printf(b, "%c%lld", i ? ',' : ';', (long long)l->stride[i]);
    strbuf_put(b, ")");
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
        if (c->loops)
            put_loops_key(&b, c);
    }
    for (size_t i = 0; i < p->strips.chains.len; i++) {
        const StripChain *c = &p->strips.chains.data[i];
        strbuf_printf(&b, "|%d>%d:%lld", c->first, c->n, (long long)c->words);
    }
    for (size_t i = 0; i < p->strips.words.len; i++)
        strbuf_printf(&b, ",%llx", (unsigned long long)p->strips.words.data[i]);
    return content_key(p->pool, b.text, b.len);
}

/* --- the table of calls ---
 *
 * One run of words a call: its kernel with the count of its arguments above it, its tasks, a bit
 * for every argument (1: a number, 0: an offset in the arena), its arguments.  The step walks it,
 * so that compiling a step does not depend on how many calls it has.
 *
 * In a step with loops there follow: a word that packs how many loops are around the call, begin
 * with it and end with it; the steps of those that begin; by argument and loop, the bytes that an
 * argument moves from step to step. */

enum { COUNT_SHIFT = 32, MASK_BITS = 64, LOOP_BITS = 8 };

typedef VEC(int64_t) Words;

static void put_loops(const StepProgram *p, const Call *c, Words *words)
{
    const CallLoops none = {0}, *l = c->loops ? c->loops : &none;
    vec_push(p->pool, words,
             (int64_t)l->depth | (int64_t)l->begins << LOOP_BITS |
                 (int64_t)l->ends << 2 * LOOP_BITS);
    for (int i = l->depth - l->begins; i < l->depth; i++)
        vec_push(p->pool, words, l->steps[i]);
    for (int i = 0; i < l->depth * c->n_bufs; i++)
        vec_push(p->pool, words, l->stride[i]);
}

/* What a kernel is called with; argument k is a number where bit k is set. */
typedef struct Arguments {
    int n;
    int64_t value[CALL_MAX_BUFS];
    uint64_t number[CALL_MAX_BUFS / MASK_BITS];
} Arguments;

static void add_argument(Arguments *to, int64_t value, bool number)
{
    to->number[to->n / MASK_BITS] |= (uint64_t)number << to->n % MASK_BITS;
    to->value[to->n++] = value;
}

static void add_buffers(const StepProgram *p, const Call *c, Arguments *to)
{
    for (int k = 0; k < c->n_bufs; k++)
        add_argument(to, step_buffer_offset(p, c, k), c->buf[k].value == CALL_NUMBER);
}

/* The chain that a call is of, or NULL; *before: chains that end before the call. */
static const StripChain *chain_of(const StepProgram *p, int call, size_t *before)
{
    const Strips *s = &p->strips;
    while (*before < s->chains.len &&
           s->chains.data[*before].first + s->chains.data[*before].n <= call)
        ++*before;
    const StripChain *chain = *before < s->chains.len ? &s->chains.data[*before] : NULL;
    return chain && call >= chain->first ? chain : NULL;
}

/* The first call of a chain begins all of them; of the others the rest is run. */
static int64_t add_chain(const StepProgram *p, const StripChain *chain, int index, Arguments *to)
{
    int at = index - chain->first;
    add_argument(to, chain->words, true);
    add_argument(to, at, true);
    for (int i = 0; i < chain->n; i++)
        add_buffers(p, &p->calls[chain->first + i], to);
    return at ? p->calls[index].reads.spans->n : p->calls[index].n_tasks;
}

static void put_call(const StepProgram *p, int index, const StripChain *chain, Words *words)
{
    const Call *c = &p->calls[index];
    Arguments with = {0};
    int64_t kernel = p->kernel_of[index], n_tasks = c->n_tasks;
    if (chain) {
        kernel = p->n_kernels + (index > chain->first);
        n_tasks = add_chain(p, chain, index, &with);
    } else {
        add_buffers(p, c, &with);
    }
    vec_push(p->pool, words, (int64_t)with.n << COUNT_SHIFT | kernel);
    vec_push(p->pool, words, n_tasks);
    for (int k = 0; k < with.n; k += MASK_BITS)
        vec_push(p->pool, words, (int64_t)with.number[k / MASK_BITS]);
    for (int k = 0; k < with.n; k++)
        vec_push(p->pool, words, with.value[k]);
    if (p->has_loops)
        put_loops(p, c, words);
}

static JitValue call_table(Jit *j, const StepProgram *p)
{
    Words words = {0};
    size_t before = 0;
    for (int i = 0; i < p->n_calls; i++)
        put_call(p, i, chain_of(p, i, &before), &words);
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

/* Handles of the kernels, in order, and behind them the two of strips. */
static JitValue kernel_table(Jit *j, const StepProgram *p)
{
    const JitTypes *t = jit_types(j);
    JitVar array = jit_array_var(j, t->p_char, p->n_kernels + 2, "kernels");
    JitValue table = jit_tmp(j, jit_array_ptr(j, array, jit_pointer_to(j, t->p_char)));
    for (int k = 0; k < p->n_kernels; k++)
        jit_store(j, table, jit_i64(j, k), kernel_handle(j, p, k));
    if (!p->strips.chains.len)
        return table;
    StripCode strips = strips_emit(j);
    jit_store(j, table, jit_i64(j, p->n_kernels), jit_function_pointer(j, strips.run));
    jit_store(j, table, jit_i64(j, p->n_kernels + 1), jit_function_pointer(j, strips.rest));
    return table;
}

/* Behind all arguments, what chains need beside them. */
static void fill_slots(Jit *j, const StepProgram *p, JitValue kernels, JitValue arguments)
{
    const JitTypes *t = jit_types(j);
    const Strips *s = &p->strips;
    if (!s->chains.len)
        return;
    JitType pointers = jit_pointer_to(j, t->p_char);
    int64_t n_notes = strips_notes(p);
    JitVar notes = jit_array_var(j, t->i64, (int)n_notes, "notes");
    JitValue words = jit_table(j, t->i64, s->words.data, s->words.len, sizeof *s->words.data);
    const JitValue slot[STRIP_SLOTS] = {[STRIP_WORDS] = words,
                                        [STRIP_KERNELS] = kernels,
                                        [STRIP_NOTES] = jit_array_ptr(j, notes, t->p_i64)};
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, n_notes), 1, "note");
    jit_store(j, jit_tmp(j, slot[STRIP_NOTES]), jit_index(&l), jit_i64(j, 0));
    jit_end_for(j, &l);
    for (int i = 0; i < STRIP_SLOTS; i++)
        jit_store(j, jit_cast(j, arguments, pointers), jit_i64(j, (int64_t)CALL_MAX_BUFS + i),
                  jit_cast(j, slot[i], t->p_char));
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

/* --- loops ---
 *
 * By level, the outermost first: the step that runs, how many there are, and where the loop begins,
 * as a place in the table and a number of a call. */

typedef struct Loops {
    JitValue step, steps, place, call;
    JitVar
        entered; /* the first level that begins anew at the next call; -1: those that begin there */
} Loops;

static JitValue level_array(Jit *j, const char *name)
{
    const JitTypes *t = jit_types(j);
    JitVar array = jit_array_var(j, t->i64, CALL_MAX_LOOPS, name);
    return jit_tmp(j, jit_array_ptr(j, array, t->p_i64));
}

static Loops loops_new(Jit *j)
{
    Loops l = {level_array(j, "step"), level_array(j, "steps"), level_array(j, "place"),
               level_array(j, "first"), jit_var(j, jit_types(j)->i64, "entered")};
    jit_set(j, l.entered, jit_i64(j, -1));
    return l;
}

/* Byte `at` of the word that says which loops a call is in. */
static JitValue loop_count(Jit *j, JitValue word, int at)
{
    JitValue shifted = jit_shr(j, word, jit_i64(j, at * LOOP_BITS));
    return jit_tmp(j, jit_and(j, shifted, jit_i64(j, (1 << LOOP_BITS) - 1)));
}

/* Loops that begin at this call are at their step 0: all of them, or behind a jump back those
 * within the one that jumped. */
static void begin_loops(Jit *j, const Loops *l, JitValue words, JitValue at, JitValue depth,
                        JitValue begins, JitValue place, JitValue call)
{
    JitValue first = jit_tmp(j, jit_sub(j, depth, begins));
    JitVar from = jit_var(j, jit_types(j)->i64, "from");
    jit_set(j, from, first);
    JitIf jumped = jit_if(j, jit_compare(j, JIT_GE, jit_get(l->entered), jit_i64(j, 0)));
    jit_set(j, from, jit_get(l->entered));
    jit_end_if(j, &jumped);
    jit_set(j, l->entered, jit_i64(j, -1));
    JitLoop level = jit_for(j, jit_get(from), depth, 1, "level");
    JitValue d = jit_index(&level);
    jit_store(j, l->step, d, jit_i64(j, 0));
    jit_store(j, l->steps, d, jit_load(j, words, jit_add(j, at, jit_sub(j, d, first))));
    jit_store(j, l->place, d, place);
    jit_store(j, l->call, d, call);
    jit_end_for(j, &level);
}

/* Arguments move by the strides of the loops around the call. */
static void move_arguments(Jit *j, const Loops *l, JitValue words, JitValue strides, JitValue n,
                           JitValue depth, JitValue arguments)
{
    JitLoop argument = jit_for(j, jit_i64(j, 0), n, 1, "moved");
    JitValue k = jit_index(&argument);
    JitLoop level = jit_for(j, jit_i64(j, 0), depth, 1, "level");
    JitValue d = jit_index(&level), row = jit_add(j, strides, jit_mul(j, k, depth));
    JitValue by = jit_mul(j, jit_load(j, words, jit_add(j, row, d)), jit_load(j, l->step, d));
    jit_store(j, arguments, k, jit_add(j, jit_load(j, arguments, k), by));
    jit_end_for(j, &level);
    jit_end_for(j, &argument);
}

/* Behind the last call of loops: from the innermost out, the first that has another step goes back
 * to its first call. */
static void end_loops(Jit *j, const Loops *l, JitValue depth, JitValue ends, JitVar at, JitVar call)
{
    JitValue one = jit_i64(j, 1);
    JitLoop ended = jit_for(j, jit_i64(j, 0), ends, 1, "ended");
    JitIf still = jit_if(j, jit_compare(j, JIT_LT, jit_get(l->entered), jit_i64(j, 0)));
    JitValue d = jit_tmp(j, jit_sub(j, jit_sub(j, depth, one), jit_index(&ended)));
    JitValue next = jit_tmp(j, jit_add(j, jit_load(j, l->step, d), one));
    jit_store(j, l->step, d, next);
    JitIf again = jit_if(j, jit_compare(j, JIT_LT, next, jit_load(j, l->steps, d)));
    jit_set(j, at, jit_load(j, l->place, d));
    jit_set(j, call, jit_load(j, l->call, d));
    jit_set(j, l->entered, jit_add(j, d, one));
    jit_end_if(j, &again);
    jit_end_if(j, &still);
    jit_end_for(j, &ended);
}

static bool uses_amx(const StepProgram *p)
{
    bool uses = false;
    for (int i = 0; i < p->n_calls; i++)
        uses = uses || p->calls[i].amx;
    return uses;
}

void step_emit(Jit *j, const StepProgram *p)
{
    const JitTypes *t = jit_types(j);
    const bool looping = p->has_loops;
    jit_export_begin(j, p->symbol, 1, &t->p_char);
    if (uses_amx(p))
        amx_ask_permission(j);
    JitValue ctx = jit_param(j, 0), words = call_table(j, p), kernels = kernel_table(j, p);
    JitValue arena = context_field(j, ctx, offsetof(ScrimpContext, arena), t->i64);
    JitVar array = jit_array_var(j, t->i64, CALL_MAX_BUFS + STRIP_SLOTS, "arguments"),
           at = jit_var(j, t->i64, "at"), call = jit_var(j, t->i64, "call");
    JitValue arguments = jit_tmp(j, jit_array_ptr(j, array, t->p_i64));
    Loops loops = {0};
    if (looping)
        loops = loops_new(j);
    fill_slots(j, p, kernels, arguments);
    jit_set(j, at, jit_i64(j, 0));
    jit_set(j, call, jit_i64(j, 0));
    JitLoop runs =
        jit_for(j, jit_i64(j, 0), jit_i64(j, calls_runs(p->calls, p->n_calls)), 1, "run");
    JitValue place = jit_tmp(j, jit_get(at)), index = jit_tmp(j, jit_get(call));
    JitValue head = jit_tmp(j, jit_load(j, words, place)), shift = jit_i64(j, COUNT_SHIFT);
    JitValue n = jit_tmp(j, jit_shr(j, head, shift));
    JitValue kernel = jit_sub(j, head, jit_shl(j, n, shift));
    JitValue n_tasks = jit_load(j, words, jit_add(j, place, jit_i64(j, 1)));
    JitValue masks = jit_tmp(j, jit_add(j, place, jit_i64(j, 2)));
    JitValue n_masks = jit_div(j, jit_add(j, n, jit_i64(j, MASK_BITS - 1)), jit_i64(j, MASK_BITS));
    JitValue first = jit_tmp(j, jit_add(j, masks, n_masks));
    JitValue behind = jit_tmp(j, jit_add(j, first, n)), depth = NULL, ends = NULL;
    fill_arguments(j, words, masks, first, n, arena, arguments);
    if (looping) {
        JitValue in = jit_tmp(j, jit_load(j, words, behind));
        JitValue begins = loop_count(j, in, 1);
        JitValue strides = jit_tmp(j, jit_add(j, jit_add(j, behind, jit_i64(j, 1)), begins));
        depth = loop_count(j, in, 0);
        ends = loop_count(j, in, 2);
        begin_loops(j, &loops, words, jit_tmp(j, jit_add(j, behind, jit_i64(j, 1))), depth, begins,
                    place, index);
        move_arguments(j, &loops, words, strides, n, depth, arguments);
        behind = jit_tmp(j, jit_add(j, strides, jit_mul(j, n, depth)));
    }
    run_kernel(j, ctx, index, jit_load(j, kernels, jit_tmp(j, kernel)), arguments, n_tasks);
    jit_set(j, at, behind);
    jit_set(j, call, jit_add(j, index, jit_i64(j, 1)));
    if (looping)
        end_loops(j, &loops, depth, ends, at, call);
    jit_end_for(j, &runs);
    jit_function_end(j);
}
