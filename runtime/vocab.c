/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CODE = 0x10FFFF };

int utf8_decode(const unsigned char *s, int64_t n, uint32_t *code)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    int len = s[0] < 0x80 ? 1 : s[0] < 0xC0 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (len == 0 || len > n || s[0] >= 0xF8)
        return 0;
    uint32_t c = len == 1 ? s[0] : s[0] & (0x7Fu >> len);
    for (int i = 1; i < len; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3Fu);
    }
    if (c < least[len] || c > MAX_CODE || (c >= 0xD800 && c < 0xE000))
        return 0;
    *code = c;
    return len;
}

bool utf8_is_valid(const char *s, size_t n)
{
    uint32_t code;
    for (size_t i = 0; i < n;) {
        int k = utf8_decode((const unsigned char *)s + i, (int64_t)(n - i), &code);
        if (k == 0)
            return false;
        i += (size_t)k;
    }
    return true;
}

int utf8_encode(uint32_t code, char out[4])
{
    int len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = len - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80u | (code & 0x3F));
    out[0] = (char)(len == 1 ? code : lead[len] | code);
    return len;
}

/* One bit for each code point of the text. */
static bool mark_codes(unsigned char *seen, const unsigned char *text, int64_t bytes, RtError *err)
{
    for (int64_t at = 0; at < bytes;) {
        uint32_t code = 0;
        int len = utf8_decode(text + at, bytes - at, &code);
        if (len == 0)
            return rt_error(err,
                            "byte 0x%02x at offset %lld is not UTF-8; use tokens = bytes, or "
                            "convert the text",
                            (unsigned)text[at], (long long)at);
        seen[code / 8] |= (unsigned char)(1u << code % 8);
        at += len;
    }
    return true;
}

bool vocab_from_text(Vocab *vocab, const unsigned char *text, int64_t bytes, RtError *err)
{
    *vocab = (Vocab){.chars = true};
    unsigned char *seen = rt_alloc(MAX_CODE / 8 + 1, 1, err);
    if (!seen || !mark_codes(seen, text, bytes, err)) {
        free(seen);
        return false;
    }
    int32_t n = 0;
    for (int64_t i = 0; i <= MAX_CODE / 8; i++)
        n += __builtin_popcount(seen[i]);
    vocab->code = rt_alloc(n, sizeof *vocab->code, err);
    for (uint32_t code = 0; vocab->code && code <= MAX_CODE; code++)
        if (seen[code / 8] >> code % 8 & 1)
            vocab->code[vocab->size++] = code;
    free(seen);
    return vocab->code != NULL;
}

bool vocab_from_codes(Vocab *vocab, const uint32_t *code, int32_t n, RtError *err)
{
    *vocab = (Vocab){.chars = true};
    for (int32_t i = 0; i < n; i++)
        if (code[i] > MAX_CODE || (code[i] >= 0xD800 && code[i] < 0xE000) ||
            (i && code[i] <= code[i - 1]))
            return rt_error(err, "the stored vocabulary is damaged at entry %d", i);
    vocab->code = rt_alloc(n, sizeof *code, err);
    if (!vocab->code)
        return false;
    if (n)
        memcpy(vocab->code, code, (size_t)n * sizeof *code);
    vocab->size = n;
    return true;
}

Vocab vocab_bytes(void)
{
    return (Vocab){.size = 256};
}

void vocab_free(Vocab *vocab)
{
    free(vocab->code);
    *vocab = (Vocab){0};
}

int32_t vocab_find(const Vocab *vocab, uint32_t code)
{
    if (!vocab->chars)
        return code < 256 ? (int32_t)code : -1;
    int32_t low = 0, high = vocab->size;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (vocab->code[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < vocab->size && vocab->code[low] == code ? low : -1;
}

int64_t vocab_encode(const Vocab *vocab, const char *text, int64_t bytes, int32_t *out, int64_t cap,
                     RtError *err)
{
    const unsigned char *s = (const unsigned char *)text;
    int64_t n = 0;
    for (int64_t at = 0; at < bytes; n++) {
        uint32_t code = s[at];
        int len = vocab->chars ? utf8_decode(s + at, bytes - at, &code) : 1;
        int32_t token = len ? vocab_find(vocab, code) : -1;
        if (token < 0) {
            rt_error(
                err,
                "'%.*s' at byte %lld is not in the vocabulary the model was trained with: write "
                "only characters of its training text",
                len ? len : 1, text + at, (long long)at);
            return -1;
        }
        if (n < cap)
            out[n] = token;
        at += len;
    }
    return n;
}

int vocab_decode(const Vocab *vocab, int32_t token, char out[4])
{
    if (token < 0 || token >= vocab->size)
        return 0;
    if (vocab->chars)
        return utf8_encode(vocab->code[token], out);
    out[0] = (char)token;
    return 1;
}
