/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory of bf16, which registers never hold: a load gives f32, a store rounds to nearest even.
 * jit_values.c calls these for pointers of type p_bf16; everybody else says jit_load, jit_vload and
 * so on. */
#ifndef SCRIMP_CODEGEN_JIT_JIT_BF16_H
#define SCRIMP_CODEGEN_JIT_JIT_BF16_H

#include "codegen/jit/jit.h"

/* f32 from a 16-bit word, and the word of an f32. */
JitValue bf16_from_word(Jit *j, JitValue word);
JitValue bf16_to_word(Jit *j, JitValue value);
/* A vector at p[index..], any alignment. */
JitValue bf16_vload(Jit *j, JitValue pointer, JitValue index);
void bf16_vstore(Jit *j, JitValue pointer, JitValue index, JitValue v);

#endif
