/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The vocabulary of text: bytes, or the sorted set of characters (Unicode code points) of the
 * training text.  Called by data (text), the trainer (stores it in checkpoints) and generate. */
#ifndef SCRIMP_RUNTIME_VOCAB_H
#define SCRIMP_RUNTIME_VOCAB_H

#include "runtime/status.h"

typedef struct Vocab {
    bool chars; /* false: token = byte, size 256, code is NULL */
    int32_t size;
    uint32_t *code; /* sorted code points; token = index */
} Vocab;

/* The sorted distinct characters of UTF-8 text; refuses text that is not UTF-8, naming the offset.
 */
bool vocab_from_text(Vocab *vocab, const unsigned char *text, int64_t bytes, RtError *err);
/* From stored code points (copied); they must be sorted, distinct and valid. */
bool vocab_from_codes(Vocab *vocab, const uint32_t *code, int32_t n, RtError *err);
Vocab vocab_bytes(void);
void vocab_free(Vocab *vocab);

/* Token of a code point, -1 when it is not in the vocabulary. */
int32_t vocab_find(const Vocab *vocab, uint32_t code);
/* Text to tokens: at most cap are stored in out; returns how many there are, or -1 with a message
 * that shows the first character the vocabulary has not. */
int64_t vocab_encode(const Vocab *vocab, const char *text, int64_t bytes, int32_t *out, int64_t cap,
                     RtError *err);
/* One token as bytes (UTF-8 of the character, or the byte); returns how many, 0 for a bad token. */
int vocab_decode(const Vocab *vocab, int32_t token, char out[4]);

/* Decodes one code point of s[n], n >= 1; returns its bytes, 0 when it is not UTF-8 (overlong
 * forms, surrogates and values past U+10FFFF are not). */
int utf8_decode(const unsigned char *s, int64_t n, uint32_t *code);
bool utf8_is_valid(const char *s, size_t n);
int utf8_encode(uint32_t code, char out[4]);

#endif
