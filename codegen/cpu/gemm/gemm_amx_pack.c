/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_amx_pack.h"

#include "codegen/cpu/gemm/gemm_amx_layout.h"
#include "codegen/cpu/gemm/gemm_pack.h"

#include <stdio.h>

typedef struct PackEmit {
    Jit *j;
    const AmxPack *p;
    JitValue to, from;
} PackEmit;

static bool source_is_bf16(const PackEmit *e)
{
    return jit_type_of(e->from) == jit_types(e->j)->p_bf16;
}

static JitValue source(const PackEmit *e, JitValue line, JitValue step)
{
    Jit *j = e->j;
    JitValue at = jit_muladd_i64(j, line, e->p->line, jit_mul(j, step, jit_i64(j, e->p->step)));
    return jit_tmp(j, jit_offset(j, e->from, at));
}

/* The word of line % 16 and step % 32 of a square. */
static JitValue word_within(const PackEmit *e, JitValue line, JitValue step)
{
    Jit *j = e->j;
    JitValue two = jit_i64(j, 2);
    if (!e->p->paired)
        return jit_muladd_i64(j, line, AMX_STEPS, step);
    JitValue both = jit_muladd_i64(j, line, 2, jit_mod(j, step, two));
    return jit_muladd_i64(j, jit_div(j, step, two), AMX_STEPS, both);
}

static JitValue target_at(const PackEmit *e, JitValue line, JitValue step)
{
    Jit *j = e->j;
    JitValue rows = jit_i64(j, AMX_ROWS), steps = jit_i64(j, AMX_STEPS);
    JitValue square =
        jit_muladd_i64(j, jit_div(j, line, rows), e->p->squares, jit_div(j, step, steps));
    JitValue within = word_within(e, jit_mod(j, line, rows), jit_mod(j, step, steps));
    return jit_tmp(j, jit_muladd_i64(j, square, AMX_SQUARE_WORDS, within));
}

static JitValue as_words(Jit *j, JitValue pointer)
{
    return jit_cast(j, pointer, jit_types(j)->p_i32);
}

/* The 16 pairs of steps 0..31 of a line whose steps are contiguous. */
static JitValue pairs_of_line(Jit *j, JitValue from)
{
    if (jit_type_of(from) == jit_types(j)->p_bf16)
        return jit_vload(j, as_words(j, from), jit_i64(j, 0));
    return amx_round(j, jit_vload(j, from, jit_i64(j, 0)), jit_vload(j, from, jit_i64(j, 16)));
}

/* One pair of steps of 16 lines that are contiguous. */
static JitValue pairs_of_steps(const PackEmit *e, JitValue from)
{
    Jit *j = e->j;
    JitValue second = jit_tmp(j, jit_offset(j, from, jit_i64(j, e->p->step)));
    if (source_is_bf16(e))
        return amx_load_pairs(j, from, second);
    return amx_round_pairs(j, jit_vload(j, from, jit_i64(j, 0)),
                           jit_vload(j, second, jit_i64(j, 0)));
}

/* 16 lines of 32 steps. */
static void pack_square(const PackEmit *e, JitValue line, JitValue step)
{
    Jit *j = e->j;
    JitValue row[AMX_ROWS], from = source(e, line, step);
    bool by_lines = e->p->step == 1;
    for (int i = 0; i < AMX_ROWS; i++) {
        int64_t skip = by_lines ? i * e->p->line : 2 * i * e->p->step;
        JitValue at = jit_tmp(j, jit_offset(j, from, jit_i64(j, skip)));
        JitValue pairs = by_lines ? pairs_of_line(j, at) : pairs_of_steps(e, at);
        row[i] = jit_tmp(j, jit_bitcast(j, jit_tmp(j, pairs), jit_types(j)->vf));
    }
    if (by_lines == e->p->paired)
        pack_transpose(j, row);
    JitValue to = as_words(j, jit_offset(j, e->to, target_at(e, line, step)));
    for (int i = 0; i < AMX_ROWS; i++)
        jit_vstore_aligned(j, to, jit_i64(j, i * AMX_ROWS),
                           jit_tmp(j, jit_bitcast(j, row[i], jit_types(j)->vi)));
}

/* As the conversion of whole vectors does, before it rounds. */
static void flush_denormal(Jit *j, JitVar x)
{
    JitIf below = jit_if(j, jit_compare(j, JIT_LT, jit_get(x), jit_f32(j, 0x1p-126)));
    JitIf above = jit_if(j, jit_compare(j, JIT_GT, jit_get(x), jit_f32(j, -0x1p-126)));
    jit_set(j, x, jit_mul(j, jit_get(x), jit_f32(j, 0)));
    jit_end_if(j, &above);
    jit_end_if(j, &below);
}

/* Lines and steps of less than a square, one by one. */
static void pack_rest(const PackEmit *e, JitValue line0, JitValue line1, JitValue step0,
                      JitValue step1)
{
    Jit *j = e->j;
    JitValue even =
        jit_mul(j, jit_div(j, jit_add(j, step1, jit_i64(j, AMX_STEPS - 1)), jit_i64(j, AMX_STEPS)),
                jit_i64(j, AMX_STEPS));
    JitLoop l = jit_for(j, line0, line1, 1, "line");
    JitLoop s = jit_for(j, step0, jit_tmp(j, even), 1, "step");
    JitVar x = jit_var(j, jit_types(j)->f32, "x");
    jit_set(j, x, jit_f32(j, 0));
    JitIf inside = jit_if(j, jit_compare(j, JIT_LT, jit_index(&s), step1));
    jit_set(j, x, jit_load(j, source(e, jit_index(&l), jit_index(&s)), jit_i64(j, 0)));
    jit_end_if(j, &inside);
    flush_denormal(j, x);
    jit_store(j, e->to, target_at(e, jit_index(&l), jit_index(&s)), jit_get(x));
    jit_end_for(j, &s);
    jit_end_for(j, &l);
}

static JitValue whole(Jit *j, JitValue n, int unit)
{
    return jit_tmp(j, jit_sub(j, n, jit_mod(j, n, jit_i64(j, unit))));
}

static void emit_pack(const PackEmit *e, JitValue lines, JitValue steps)
{
    Jit *j = e->j;
    JitValue zero = jit_i64(j, 0);
    JitValue whole_lines = whole(j, lines, AMX_ROWS), whole_steps = whole(j, steps, AMX_STEPS);
    if (e->p->step == 1) { /* along what is contiguous */
        JitLoop l = jit_for(j, zero, whole_lines, AMX_ROWS, "line");
        JitLoop s = jit_for(j, zero, whole_steps, AMX_STEPS, "step");
        pack_square(e, jit_index(&l), jit_index(&s));
        jit_end_for(j, &s);
        jit_end_for(j, &l);
    } else {
        JitLoop s = jit_for(j, zero, whole_steps, AMX_STEPS, "step");
        JitLoop l = jit_for(j, zero, whole_lines, AMX_ROWS, "line");
        pack_square(e, jit_index(&l), jit_index(&s));
        jit_end_for(j, &l);
        jit_end_for(j, &s);
    }
    pack_rest(e, zero, whole_lines, whole_steps, steps);
    pack_rest(e, whole_lines, lines, zero, steps);
}

void amx_pack(Jit *j, const AmxPack *p, JitValue to, JitValue from, JitValue lines, JitValue steps)
{
    const JitTypes *t = jit_types(j);
    bool bf16 = jit_type_of(from) == t->p_bf16;
    char name[96];
    snprintf(name, sizeof name, "amx_pack_%s%lld_%lld_%lld%s", bf16 ? "bf16_" : "",
             (long long)p->line, (long long)p->step, (long long)p->squares,
             p->paired ? "_paired" : "");
    JitFunction f = jit_function_lookup(j, name);
    if (!f) {
        const JitType types[] = {t->p_bf16, jit_type_of(from), t->i64, t->i64};
        f = jit_function_begin(j, name, t->none, 4, types);
        PackEmit e = {j, p, jit_param(j, 0), jit_param(j, 1)};
        emit_pack(&e, jit_param(j, 2), jit_param(j, 3));
        jit_function_end(j);
    }
    const JitValue args[] = {to, from, lines, steps};
    jit_call_void(j, f, 4, args);
}

void amx_pack_steps(Jit *j, JitValue to, JitValue from, int64_t steps)
{
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, steps / AMX_STEPS), 1, "square");
    JitValue at = jit_mul(j, jit_index(&l), jit_i64(j, AMX_SQUARE_WORDS));
    JitValue pairs = jit_vi(j, 0);
    if (from) {
        JitValue first = jit_mul(j, jit_index(&l), jit_i64(j, AMX_STEPS));
        pairs = pairs_of_line(j, jit_tmp(j, jit_offset(j, from, first)));
    }
    jit_vstore_aligned(j, as_words(j, jit_offset(j, to, at)), jit_i64(j, 0), jit_tmp(j, pairs));
    jit_end_for(j, &l);
}
