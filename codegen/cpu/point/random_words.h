/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random words on vectors, and which elements dropout keeps by them (ir/rng.c).  key: the words of
 * the key and of the step, both low and high (vi). */
#ifndef SCRIMP_CODEGEN_CPU_POINT_RANDOM_WORDS_H
#define SCRIMP_CODEGEN_CPU_POINT_RANDOM_WORDS_H

#include "codegen/jit/jit.h"

/* The generator's four words (vu) for the number of every lane, given by its words (vi). */
void random_words(Jit *j, const JitValue *key, JitValue low, JitValue high, JitValue *word);

/* For each of n <= DROPOUT_DRAWS vectors of numbers: where element 4 number + w is kept, byte w of
 * the number's lane is 0xff, else 0.  Draws side by side take little longer than one. */
enum { DROPOUT_DRAWS = 2 };
void dropout_quads(Jit *j, const JitValue *key, int n, const JitValue *low, const JitValue *high,
                   double p, JitValue *quads);
/* Lanes of -1 where the element of that number is kept, else 0. */
JitValue dropout_kept(Jit *j, const JitValue *key, JitValue low, JitValue high, double p);

/* Elements that follow each other: blocks of as many as a draw is good for, the last two of them
 * kept.  Begin outside of the loops. */
typedef struct DropoutBlocks {
    JitVar bytes; /* u8: of the even block, the odd one, and the even one again */
    JitVar held;  /* i64: numbers of both blocks */
} DropoutBlocks;
DropoutBlocks dropout_blocks(Jit *j);
/* dropout_kept of the elements from number `at` (i64) on. */
JitValue dropout_blocks_kept(Jit *j, const DropoutBlocks *d, const JitValue *key, JitValue at,
                             double p);

/* x after dropout. */
JitValue dropout_apply(Jit *j, JitValue kept, JitValue x, double p);

#endif
