/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What ReLU's gradient needs of a tensor: one bit an element. */
#include "codegen/cpu/point/relu_mask.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/forms/point.h"
#include "codegen/forms/relu_mask.h"

static JitValue word_at(Jit *j, JitValue words, JitValue bit)
{
    return jit_cast(j, jit_load(j, words, jit_shr(j, bit, jit_i64(j, 5))), jit_types(j)->u32);
}

/* Bits lie in at most two words; both are the same where one holds them all. */
JitValue relu_mask_lanes(Jit *j, JitValue words, JitValue at, JitValue n)
{
    const JitTypes *t = jit_types(j);
    JitValue first = jit_tmp(j, at);
    JitValue count = n ? n : jit_i64(j, jit_lanes(j));
    JitValue last = jit_tmp(j, jit_sub(j, jit_add(j, first, count), jit_i64(j, 1)));
    JitValue low = jit_cast(j, word_at(j, words, first), t->u64);
    JitValue high = jit_cast(j, word_at(j, words, last), t->u64);
    JitValue both =
        jit_or(j, low, jit_shl(j, high, jit_cast(j, jit_i64(j, MASK_WORD_BITS), t->u64)));
    JitValue place = jit_cast(j, jit_and(j, first, jit_i64(j, MASK_WORD_BITS - 1)), t->u64);
    JitValue bits = jit_tmp(j, jit_cast(j, jit_shr(j, both, place), t->i32));
    JitValue own = jit_lane_bits(j);
    JitValue set = jit_tmp(j, jit_and(j, jit_tmp(j, jit_splat(j, bits)), own));
    return jit_vmask(j, JIT_EQ, set, own);
}

JitValue relu_mask_one(Jit *j, JitValue words, JitValue at)
{
    const JitTypes *t = jit_types(j);
    JitValue first = jit_tmp(j, at);
    JitValue place = jit_cast(j, jit_and(j, first, jit_i64(j, MASK_WORD_BITS - 1)), t->u32);
    JitValue bit =
        jit_and(j, jit_shr(j, word_at(j, words, first), place), jit_cast(j, jit_i32(j, 1), t->u32));
    return jit_tmp(j, jit_splat(j, jit_neg(j, jit_tmp(j, jit_cast(j, bit, t->i32)))));
}

/* --- relu_mask --- */

/* So many elements of a word lie side by side: whole rows of 16 (reads_runs in ir/access.c) hold
 * them. */
static int run_length(const ReluMaskDesc *d)
{
    return d->row % MASK_WORD_BITS ? MASK_WORD_BITS / 2 : MASK_WORD_BITS;
}

/* Where an element lies, of those with which runs begin. */
static JitValue place_of(Jit *j, const ReluMaskDesc *d, JitValue element)
{
    if (d->row == 0)
        return element;
    JitValue row = jit_tmp(j, jit_div(j, element, jit_i64(j, d->row)));
    return jit_tmp(j, jit_muladd_i64(j, row, d->pitch - d->row, element));
}

/* Elements 32 word .. 32 word + 31 of x, all there. */
static JitValue whole_word(Jit *j, const ReluMaskDesc *d, JitValue x, JitValue word)
{
    int lanes = jit_lanes(j), run = run_length(d);
    JitVar bits = jit_var(j, jit_types(j)->i32, "bits");
    jit_set(j, bits, jit_i32(j, 0));
    JitValue first = jit_tmp(j, jit_mul(j, word, jit_i64(j, MASK_WORD_BITS)));
    for (int from = 0; from < MASK_WORD_BITS; from += run) {
        JitValue at =
            place_of(j, d, from ? jit_tmp(j, jit_add(j, first, jit_i64(j, from))) : first);
        for (int k = 0; k < run; k += lanes) {
            JitValue v = jit_vload(j, x, jit_add(j, at, jit_i64(j, k)));
            JitValue some = jit_tmp(j, jit_mask_bits(j, jit_vmask(j, JIT_GT, v, jit_vf(j, 0))));
            jit_set(j, bits, jit_or(j, jit_get(bits), jit_shl(j, some, jit_i32(j, from + k))));
        }
    }
    return jit_get(bits);
}

/* The last word of a tensor that does not fill it; of a value at a pitch its elements are one run,
 * the first at x. */
static JitValue part_of_word(Jit *j, JitValue x, int64_t count)
{
    JitVar bits = jit_var(j, jit_types(j)->i32, "bits");
    jit_set(j, bits, jit_i32(j, 0));
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_i64(j, count), 1, "i");
    JitValue positive = jit_compare(j, JIT_GT, jit_load(j, x, jit_index(&i)), jit_f32(j, 0));
    JitValue place = jit_cast(j, jit_index(&i), jit_types(j)->i32);
    JitValue bit = jit_shl(j, jit_cast(j, positive, jit_types(j)->i32), place);
    jit_set(j, bits, jit_or(j, jit_get(bits), bit));
    jit_end_for(j, &i);
    return jit_get(bits);
}

/* Task: some words. */
static void emit(Jit *j, const void *desc)
{
    const ReluMaskDesc *d = desc;
    int64_t whole = d->elements / MASK_WORD_BITS, words = divide_up(d->elements, MASK_WORD_BITS);
    JitValue x = jit_buf(j, 0, jit_types(j)->p_f32), to = jit_buf(j, 1, jit_types(j)->p_i32);
    JitValue first, last;
    task_items(j, items_per_task(MASK_WORD_BITS), words, &first, &last);
    JitLoop w = jit_for(j, first, jit_min_i64(j, last, jit_i64(j, whole)), 1, "word");
    jit_store(j, to, jit_index(&w), whole_word(j, d, x, jit_index(&w)));
    jit_end_for(j, &w);
    if (whole == words)
        return;
    JitIf tail = jit_if(j, jit_compare(j, JIT_EQ, last, jit_i64(j, words)));
    JitValue rest =
        jit_tmp(j, jit_offset(j, x, place_of(j, d, jit_i64(j, whole * MASK_WORD_BITS))));
    jit_store(j, to, jit_i64(j, whole), part_of_word(j, rest, d->elements % MASK_WORD_BITS));
    jit_end_if(j, &tail);
}

void cpu_relu_mask(Lowering *l, const Node *n)
{
    ReluMaskDesc d = relu_mask_describe(l, n);
    int64_t words = divide_up(d.elements, MASK_WORD_BITS);
    const CallBuf bufs[] = {point_buf(l->graph, n->in[0]), {n->out[0], 0}};
    lower_pod_call(l, "relu_mask", emit, &d, DESC_BYTES(ReluMaskDesc),
                   divide_up(words, items_per_task(MASK_WORD_BITS)), bufs, 2);
}
