/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/strbuf.h"

#include <string.h>

StrBuf strbuf_new(Pool *pool)
{
    StrBuf b = {.pool = pool, .text = pool_alloc(pool, 64), .cap = 64};
    return b;
}

void strbuf_putn(StrBuf *b, const char *s, size_t n)
{
    if (b->len + n + 1 > b->cap) {
        size_t cap = b->cap * 2;
        while (cap < b->len + n + 1)
            cap *= 2;
        b->text = pool_grow(b->pool, b->text, b->len, cap);
        b->cap = cap;
    }
    memcpy(b->text + b->len, s, n);
    b->len += n;
    b->text[b->len] = '\0';
}

void strbuf_put(StrBuf *b, const char *s)
{
    strbuf_putn(b, s, strlen(s));
}

void strbuf_printf(StrBuf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    strbuf_put(b, pool_vprintf(b->pool, format, args));
    va_end(args);
}
