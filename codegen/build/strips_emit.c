/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The code of chains: one function runs any of them. */
#include "codegen/build/strips.h"
#include "codegen/jit/jit_short.h"

enum { P_BUFS, P_BEGIN, P_END, P_SCRATCH, P_COUNT };

/* A call of the chain, as the table has it; pointers are to words. */
typedef struct StripCall {
    JitValue kernel, arguments, notes, spans; /* spans: how many */
    JitValue task, from, to;                  /* of the spans */
    JitValue at;    /* elements of the result where spans begin, and where the last one ends */
    JitVar follows; /* the next span */
} StripCall;

typedef struct StripEmit {
    Jit *j;
    JitValue words, kernels, notes, n_calls;
    StripCall call[STRIP_CALLS_MOST];
} StripEmit;

static JitValue slot(Jit *j, StripSlot which)
{
    JitValue at = jit_i64(j, (int64_t)CALL_MAX_BUFS + which);
    return jit_tmp(j, jit_load(j, jit_param(j, P_BUFS), at));
}

static JitValue number(Jit *j, int argument)
{
    JitValue numbers = jit_cast(j, jit_param(j, P_BUFS), jit_types(j)->p_i64);
    return jit_tmp(j, jit_load(j, numbers, jit_i64(j, argument)));
}

static JitValue next(Jit *j, JitValue i)
{
    return add(j, i, jit_i64(j, 1));
}

static StripEmit open_chain(Jit *j)
{
    const JitTypes *t = jit_types(j);
    StripEmit e = {.j = j};
    JitValue words = jit_cast(j, slot(j, STRIP_WORDS), t->p_i64);
    e.words = jit_tmp(j, jit_offset(j, words, number(j, STRIP_PLACE)));
    e.kernels = jit_tmp(j, jit_cast(j, slot(j, STRIP_KERNELS), jit_pointer_to(j, t->p_char)));
    e.notes = jit_tmp(j, jit_cast(j, slot(j, STRIP_NOTES), t->p_i64));
    e.n_calls = jit_tmp(j, jit_load(j, e.words, jit_i64(j, 0)));
    return e;
}

/* Call i of the chain; where the chain has no such call, what is read of it means nothing. */
static StripCall open_call(const StripEmit *e, JitValue i)
{
    Jit *j = e->j;
    JitValue place = jit_tmp(j, jit_load(j, e->words, next(j, i)));
    JitValue at = jit_tmp(j, jit_offset(j, e->words, place)), head[STRIP_HEAD];
    for (int k = 0; k < STRIP_HEAD; k++)
        head[k] = jit_tmp(j, jit_load(j, at, jit_i64(j, k)));
    StripCall c = {.spans = head[STRIP_SPANS]};
    c.kernel = jit_tmp(j, jit_load(j, e->kernels, head[STRIP_KERNEL]));
    c.arguments = jit_tmp(j, jit_offset(j, jit_param(j, P_BUFS), head[STRIP_FIRST_ARGUMENT]));
    c.notes = jit_tmp(j, jit_offset(j, e->notes, head[STRIP_FIRST_NOTE]));
    c.task = jit_tmp(j, jit_offset(j, at, jit_i64(j, STRIP_HEAD)));
    c.from = jit_tmp(j, jit_offset(j, c.task, next(j, c.spans)));
    c.to = jit_tmp(j, jit_offset(j, c.from, c.spans));
    c.at = jit_tmp(j, jit_offset(j, c.to, c.spans));
    return c;
}

static void run_tasks(Jit *j, const StripCall *c, JitValue from, JitValue to)
{
    const JitTypes *t = jit_types(j);
    const JitType types[P_COUNT] = {jit_pointer_to(j, t->p_char), t->i64, t->i64, t->p_char};
    const JitValue args[P_COUNT] = {c->arguments, from, to, jit_param(j, P_SCRATCH)};
    JitIf any = jit_if(j, jit_compare(j, JIT_LT, from, to));
    jit_call_pointer_void(j, c->kernel, P_COUNT, types, args);
    jit_end_if(j, &any);
}

/* All tasks of a span. */
static void run_span(Jit *j, const StripCall *c, JitValue span)
{
    JitValue from = jit_tmp(j, jit_load(j, c->task, span));
    run_tasks(j, c, from, jit_tmp(j, jit_load(j, c->task, next(j, span))));
}

/* How many of n words, which grow, are below a limit. */
static JitVar count_below(Jit *j, JitValue words, JitValue n, JitValue limit)
{
    JitVar count = jit_var(j, jit_types(j)->i64, "below");
    jit_set(j, count, jit_i64(j, 0));
    JitLoop l = jit_for(j, jit_i64(j, 0), n, 1, "word");
    JitIf below = jit_if(j, jit_compare(j, JIT_LT, jit_load(j, words, jit_index(&l)), limit));
    jit_set(j, count, next(j, jit_index(&l)));
    jit_end_if(j, &below);
    jit_end_for(j, &l);
    return count;
}

static JitIf if_there_is(const StripEmit *e, int call)
{
    return jit_if(e->j, jit_compare(e->j, JIT_LT, jit_i64(e->j, call), e->n_calls));
}

/* Each call begins with the first span that is within those that this thread has of the one before.
 */
static void find_first_spans(StripEmit *e)
{
    Jit *j = e->j;
    StripCall *c = e->call;
    for (int i = 0; i < STRIP_CALLS_MOST; i++) {
        c[i] = open_call(e, jit_i64(j, i));
        c[i].follows = jit_var(j, jit_types(j)->i64, "follows");
        jit_set(j, c[i].follows, jit_i64(j, 0));
    }
    jit_set(j, c[0].follows, jit_get(count_below(j, c[0].task, c[0].spans, jit_param(j, P_BEGIN))));
    for (int i = 1; i < STRIP_CALLS_MOST; i++) {
        JitIf there = if_there_is(e, i);
        JitValue start = jit_load(j, c[i - 1].at, jit_tmp(j, jit_get(c[i - 1].follows)));
        jit_set(j, c[i].follows, jit_get(count_below(j, c[i].from, c[i].spans, jit_tmp(j, start))));
        jit_end_if(j, &there);
    }
}

/* Runs what spans of call i are within the elements before `written`, and what follows them. */
static void follow(const StripEmit *e, int i, JitValue written)
{
    Jit *j = e->j;
    if (i == STRIP_CALLS_MOST)
        return;
    const StripCall *c = &e->call[i];
    JitIf there = if_there_is(e, i);
    JitLoop l = jit_for(j, jit_tmp(j, jit_get(c->follows)), c->spans, 1, "span");
    JitValue span = jit_index(&l);
    JitIf ready = jit_if(j, jit_compare(j, JIT_LE, jit_load(j, c->to, span), written));
    run_span(j, c, span);
    jit_store(j, c->notes, span, jit_i64(j, 1));
    jit_set(j, c->follows, next(j, span));
    follow(e, i + 1, jit_tmp(j, jit_load(j, c->at, next(j, span))));
    jit_else(j, &ready);
    jit_set(j, l.var, c->spans);
    jit_end_if(j, &ready);
    jit_end_for(j, &l);
    jit_end_if(j, &there);
}

/* A thread's tasks may begin and end within a span of the first call: these have no one to follow.
 */
static void emit_run(Jit *j)
{
    StripEmit e = open_chain(j);
    find_first_spans(&e);
    const StripCall *c = &e.call[0];
    JitValue begin = jit_param(j, P_BEGIN), end = jit_param(j, P_END);
    JitVar done = jit_var(j, jit_types(j)->i64, "done");
    JitValue first = jit_tmp(j, jit_get(c->follows));
    jit_set(j, done, jit_min_i64(j, jit_tmp(j, jit_load(j, c->task, first)), end));
    run_tasks(j, c, begin, jit_tmp(j, jit_get(done)));
    JitLoop l = jit_for(j, first, c->spans, 1, "own");
    JitValue to = jit_tmp(j, jit_load(j, c->task, next(j, jit_index(&l))));
    JitIf own = jit_if(j, jit_compare(j, JIT_LE, to, end));
    run_span(j, c, jit_index(&l));
    jit_set(j, done, to);
    follow(&e, 1, jit_tmp(j, jit_load(j, c->at, next(j, jit_index(&l)))));
    jit_end_if(j, &own);
    jit_end_for(j, &l);
    run_tasks(j, c, jit_tmp(j, jit_get(done)), end);
}

/* Spans without a note; notes are zero for the next chain. */
static void emit_rest(Jit *j)
{
    StripEmit e = open_chain(j);
    StripCall c = open_call(&e, number(j, STRIP_CALL));
    JitLoop l = jit_for(j, jit_param(j, P_BEGIN), jit_param(j, P_END), 1, "span");
    JitValue span = jit_index(&l);
    JitIf left = jit_if(j, jit_compare(j, JIT_EQ, jit_load(j, c.notes, span), jit_i64(j, 0)));
    run_span(j, &c, span);
    jit_end_if(j, &left);
    jit_store(j, c.notes, span, jit_i64(j, 0));
    jit_end_for(j, &l);
}

static JitFunction function(Jit *j, const char *name, void (*emit)(Jit *j))
{
    const JitTypes *t = jit_types(j);
    const JitType types[P_COUNT] = {jit_pointer_to(j, t->p_char), t->i64, t->i64, t->p_char};
    JitFunction f = jit_function_begin(j, name, t->none, P_COUNT, types);
    emit(j);
    jit_function_end(j);
    return f;
}

StripCode strips_emit(Jit *j)
{
    return (StripCode){function(j, "strips_run", emit_run), function(j, "strips_rest", emit_rest)};
}
