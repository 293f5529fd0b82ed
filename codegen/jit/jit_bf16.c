/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bf16 is the upper half of an f32.  AVX-512's own conversion takes small numbers for 0: only
 * factors of products are made so (jit_amx.c). */
#include "codegen/jit/jit_bf16.h"
#include "codegen/jit/jit_math_internal.h"

/* --- rounding --- */

/* Half of the last place, less one where the last bit is even: a tie goes to the even number, and
 * what overflows becomes an infinity.  A NaN gets a bit that the upper half keeps. */
static JitValue rounded_bits(Jit *j, JitValue a)
{
    JitType type = jit_types(j)->vu;
    JitValue bits = jit_tmp(j, jit_bitcast(j, a, type)), half = jit_tmp(j, vu(j, 16));
    JitValue odd = jit_and(j, jit_shr(j, bits, half), jit_tmp(j, vu(j, 1)));
    JitValue near = add(j, bits, jit_add(j, odd, jit_tmp(j, vu(j, 0x7fff))));
    JitValue quiet = jit_tmp(j, jit_or(j, bits, jit_tmp(j, vu(j, 0x400000))));
    JitValue nan = jit_vmask(j, JIT_NE, a, a);
    JitValue bits_of_all = jit_vselect(j, nan, as_int(j, quiet), as_int(j, near));
    return jit_tmp(j, jit_bitcast(j, bits_of_all, type));
}

JitValue jit_vround_bf16(Jit *j, JitValue a)
{
    JitValue bits = rounded_bits(j, jit_tmp(j, a));
    return as_float(j, jit_tmp(j, jit_and(j, bits, jit_tmp(j, vu(j, 0xffff0000u)))));
}

JitValue bf16_from_word(Jit *j, JitValue word)
{
    const JitTypes *t = jit_types(j);
    JitValue bits = jit_shl(j, jit_cast(j, word, t->u32), jit_cast(j, jit_i32(j, 16), t->u32));
    return jit_tmp(j, jit_bitcast(j, jit_tmp(j, bits), t->f32));
}

static JitValue u32(Jit *j, int32_t v)
{
    return jit_cast(j, jit_i32(j, v), jit_types(j)->u32);
}

JitValue bf16_to_word(Jit *j, JitValue value)
{
    const JitTypes *t = jit_types(j);
    JitValue x = jit_tmp(j, value), bits = jit_tmp(j, jit_bitcast(j, x, t->u32));
    JitVar r = jit_var(j, t->u32, "bf16");
    JitValue odd = jit_and(j, jit_shr(j, bits, u32(j, 16)), u32(j, 1));
    jit_set(j, r, jit_add(j, bits, jit_add(j, odd, u32(j, 0x7fff))));
    JitIf nan = jit_if(j, jit_compare(j, JIT_NE, x, x));
    jit_set(j, r, jit_or(j, bits, u32(j, 0x400000)));
    jit_end_if(j, &nan);
    return jit_cast(j, jit_shr(j, jit_get(r), u32(j, 16)), t->u16);
}

/* --- vectors --- */

static bool by_words(const Jit *j)
{
    return x86(j) && jit_lanes(j) >= 8;
}

JitValue bf16_vload(Jit *j, JitValue pointer, JitValue index)
{
    JitValue wide;
    if (by_words(j)) {
        wide = x86_words_to_i32(j, jit_load_words(j, pointer, index));
    } else if (x86(j)) {
        wide = x86_load_words(j, jit_offset(j, pointer, index));
    } else {
        return jit_vload_partial(j, pointer, index, jit_i64(j, jit_lanes(j)), 0);
    }
    return as_float(j, jit_tmp(j, jit_shl(j, wide, jit_vi(j, 16))));
}

void bf16_vstore(Jit *j, JitValue pointer, JitValue index, JitValue v)
{
    if (!x86(j)) {
        jit_vstore_partial(j, pointer, index, jit_i64(j, jit_lanes(j)), v);
        return;
    }
    JitValue bits = rounded_bits(j, jit_tmp(j, v));
    if (!by_words(j)) {
        x86_store_words(j, jit_offset(j, pointer, index), as_int(j, bits));
        return;
    }
    JitValue upper = as_int(j, jit_tmp(j, jit_shr(j, bits, jit_tmp(j, vu(j, 16)))));
    jit_store_words(j, pointer, index, x86_i32_to_words(j, upper, jit_types(j)->vh));
}
