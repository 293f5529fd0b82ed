#include "real.cuh"
/* Elements that are moved 16 bytes at a time stay in 32-bit words, PER_WORD(k) of buffer k in each.
 * WORD(k, x, y) is made of elements x and, of bf16, y; IN_WORDS(k, w, j) is element j of the words w;
 * PACK(k, value, j) is word j of what floats value[] become. */
#ifndef WORDS
#define WORDS
#define PER_WORD(k)       REAL_JOIN(PER_WORD_, IS_BF16(k))
#define WORD(k, x, y)     REAL_JOIN(WORD_, IS_BF16(k))(x, y)
#define IN_WORDS(k, w, j) REAL_JOIN(IN_WORDS_, IS_BF16(k))(w, j)
#define PACK(k, value, j) REAL_JOIN(PACK_, IS_BF16(k))(value, j)

#define PER_WORD_0           1
#define PER_WORD_1           2
#define WORD_0(x, y)         ((u32)to_bits(x))
#define WORD_1(x, y)         ((u32)(x) | (u32)(y) << 16)
#define IN_WORDS_0(w, j)     from_bits((int)(w)[j])
#define IN_WORDS_1(w, j)     from_bits((int)((j) % 2 ? (w)[(j) / 2] & 0xffff0000u : (w)[(j) / 2] << 16))
#define PACK_0(value, j)     ((u32)to_bits((value)[j]))
#define PACK_1(value, j)     two_bf16((value)[2 * (j)], (value)[2 * (j) + 1])
#endif
