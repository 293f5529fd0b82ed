/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_ahead.h"

Ahead ahead_of(Jit *j, JitValue from, JitValue rows, int64_t stride, JitValue floats,
               JitValue tiles)
{
    JitValue before = jit_sub(j, jit_add(j, rows, tiles), jit_i64(j, 1));
    return (Ahead){.from = jit_tmp(j, from),
                   .rows = rows,
                   .floats = floats,
                   .share = jit_tmp(j, jit_div(j, before, tiles)),
                   .stride = stride};
}

void ahead_ask(Jit *j, const Ahead *a, JitValue turn)
{
    JitValue first = jit_tmp(j, jit_mul(j, turn, a->share));
    JitValue end = jit_tmp(j, jit_min_i64(j, jit_add(j, first, a->share), a->rows));
    JitLoop l = jit_for(j, first, end, 1, "ahead");
    JitValue at = jit_mul(j, jit_index(&l), jit_i64(j, a->stride));
    jit_prefetch(j, jit_tmp(j, jit_offset(j, a->from, at)), a->floats);
    jit_end_for(j, &l);
}
