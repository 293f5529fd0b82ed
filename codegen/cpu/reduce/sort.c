/* SPDX-License-Identifier: GPL-3.0-or-later */
/* codegen/forms/sort.h: sorted runs of a line are merged, two and two, from one half of the words
 * to the other and back (Knuth, The Art of Computer Programming, volume 3, 5.2.4). */
#include "codegen/forms/sort.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"
#include "ir/workspace.h"

_Static_assert(8 * SORT_WORDS(SORT_IN_SCRATCH) <= SCRIMP_WORK_BYTES, "a line fits into scratch");

typedef struct Sort {
    const SortDesc *d;
    JitVar from, to; /* p_i64: the words, and where they are merged to */
} Sort;

/* An i32 that compares as x does: NaN above all, both zeros equal. */
static JitValue real_key(Jit *j, JitValue x)
{
    const JitTypes *t = jit_types(j);
    JitVar key = jit_var(j, t->i32, "key");
    JitValue bits = jit_tmp(j, jit_bitcast(j, x, t->i32));
    JitValue below = jit_and(j, jit_shr(j, bits, jit_i32(j, 31)), jit_i32(j, INT32_MAX));
    jit_set(j, key, jit_xor(j, bits, below));
    JitIf zero = jit_if(j, jit_compare(j, JIT_EQ, x, jit_f32(j, 0)));
    jit_set(j, key, jit_i32(j, 0));
    jit_end_if(j, &zero);
    JitIf nan = jit_if(j, jit_compare(j, JIT_NE, x, x));
    jit_set(j, key, jit_i32(j, INT32_MAX));
    jit_end_if(j, &nan);
    return jit_get(key);
}

static JitValue word_of(Jit *j, const SortDesc *d, JitValue at, JitValue number)
{
    const JitTypes *t = jit_types(j);
    JitValue x = jit_load(j, d->integer ? jit_buf(j, 0, t->p_i32) : buf_f32(j, 0), at);
    JitValue key = d->integer ? x : real_key(j, x);
    if (d->descending)
        key = jit_not(j, key);
    JitValue high = jit_shl(j, jit_cast(j, jit_tmp(j, key), t->i64), jit_i64(j, 32));
    return jit_tmp(j, jit_or(j, high, number));
}

static void load_line(Jit *j, const Sort *s, JitValue start)
{
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_i64(j, s->d->length), 1, "i");
    JitValue number = jit_index(&i);
    jit_store(j, jit_get(s->from), number, word_of(j, s->d, add(j, start, number), number));
    jit_end_for(j, &i);
}

/* Words [low, middle) and [middle, end).  Where the second run has ended at the last word of all,
 * the word behind it is read, and not used. */
static void merge_runs(Jit *j, const Sort *s, JitValue low, JitValue middle, JitValue end)
{
    const JitTypes *t = jit_types(j);
    JitVar a = jit_var(j, t->i64, "a"), b = jit_var(j, t->i64, "b");
    jit_set(j, a, low);
    jit_set(j, b, middle);
    JitLoop at = jit_for(j, low, end, 1, "at");
    JitValue first = jit_load(j, jit_get(s->from), jit_get(a));
    JitValue second = jit_load(j, jit_get(s->from), jit_get(b));
    JitValue over = jit_compare(j, JIT_GE, jit_get(b), end);
    JitValue take = jit_and(j, jit_compare(j, JIT_LT, jit_get(a), middle),
                            jit_or(j, over, jit_compare(j, JIT_LT, first, second)));
    JitIf is_first = jit_if(j, take);
    jit_store(j, jit_get(s->to), jit_index(&at), first);
    jit_set(j, a, jit_add(j, jit_get(a), jit_i64(j, 1)));
    jit_else(j, &is_first);
    jit_store(j, jit_get(s->to), jit_index(&at), second);
    jit_set(j, b, jit_add(j, jit_get(b), jit_i64(j, 1)));
    jit_end_if(j, &is_first);
    jit_end_for(j, &at);
}

static void merge_pass(Jit *j, Sort *s, int64_t width)
{
    JitValue length = jit_i64(j, s->d->length);
    JitLoop run = jit_for(j, jit_i64(j, 0), length, 2 * width, "run");
    JitValue middle = jit_min_i64(j, add(j, jit_index(&run), jit_i64(j, width)), length);
    JitValue end = jit_min_i64(j, add(j, jit_index(&run), jit_i64(j, 2 * width)), length);
    merge_runs(j, s, jit_tmp(j, jit_index(&run)), jit_tmp(j, middle), jit_tmp(j, end));
    jit_end_for(j, &run);
    JitVar from = s->from;
    s->from = s->to;
    s->to = from;
}

static void store_order(Jit *j, const Sort *s, JitValue line)
{
    const JitTypes *t = jit_types(j);
    JitValue start = mul(j, line, jit_i64(j, s->d->count));
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_i64(j, s->d->count), 1, "i");
    JitValue word = jit_load(j, jit_get(s->from), jit_index(&i));
    jit_store(j, jit_buf(j, 1, t->p_i32), add(j, start, jit_index(&i)), jit_cast(j, word, t->i32));
    jit_end_for(j, &i);
}

static void sort_line(Jit *j, Sort s, JitValue line)
{
    load_line(j, &s, mul(j, line, jit_i64(j, s.d->length)));
    for (int64_t width = 1; width < s.d->length; width *= 2)
        merge_pass(j, &s, width);
    store_order(j, &s, line);
}

static Sort sort_in(Jit *j, const SortDesc *d, JitValue words)
{
    JitType p = jit_types(j)->p_i64;
    Sort s = {.d = d, .from = jit_var(j, p, "from"), .to = jit_var(j, p, "to")};
    jit_set(j, s.from, words);
    jit_set(j, s.to, jit_offset(j, words, jit_i64(j, d->length)));
    return s;
}

static int64_t sort_items(const SortDesc *d)
{
    return items_per_task(8 * d->length);
}

/* x, order; lines in the thread's scratch memory */
static void emit_sort(Jit *j, const void *desc)
{
    const SortDesc *d = desc;
    JitValue words = jit_tmp(j, jit_scratch(j, jit_types(j)->p_i64)), first, last;
    task_items(j, sort_items(d), d->lines, &first, &last);
    JitLoop line = jit_for(j, first, last, 1, "line");
    sort_line(j, sort_in(j, d, words), jit_index(&line));
    jit_end_for(j, &line);
}

/* x, order, workspace: a task has every slots-th line */
static void emit_long_sort(Jit *j, const void *desc)
{
    const SortDesc *d = desc;
    JitValue all = jit_buf(j, 2, jit_types(j)->p_i64), lines = jit_i64(j, d->lines);
    JitLoop slot = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "slot");
    JitValue place = mul(j, jit_index(&slot), jit_i64(j, SORT_WORDS(d->length)));
    JitValue words = jit_tmp(j, jit_offset(j, all, place));
    JitLoop line = jit_for(j, jit_index(&slot), lines, d->slots, "line");
    sort_line(j, sort_in(j, d, words), jit_index(&line));
    jit_end_for(j, &line);
    jit_end_for(j, &slot);
}

void cpu_argsort(Lowering *l, const Node *n)
{
    SortDesc d = sort_describe(l, n);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}, {VALUE_NONE, 0}};
    if (d.slots)
        lower_pod_call(l, "argsort", emit_long_sort, &d, DESC_BYTES(SortDesc), d.slots, bufs, 3);
    else
        lower_pod_call(l, "argsort", emit_sort, &d, DESC_BYTES(SortDesc),
                       divide_up(d.lines, sort_items(&d)), bufs, 2);
}
