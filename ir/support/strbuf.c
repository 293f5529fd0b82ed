/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/strbuf.h"

#include "ir/support/bug.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

StrBuf strbuf_new(Pool *pool)
{
    StrBuf b = {.pool = pool, .text = pool_alloc(pool, 64), .cap = 64};
    return b;
}

/* Room for n more bytes and the end. */
static void reserve(StrBuf *b, size_t n)
{
    size_t cap = b->cap;
    while (cap < b->len + n + 1)
        cap *= 2;
    if (cap == b->cap)
        return;
    b->text = pool_grow(b->pool, b->text, b->len, cap);
    b->cap = cap;
}

void strbuf_putn(StrBuf *b, const char *s, size_t n)
{
    reserve(b, n);
    memcpy(b->text + b->len, s, n);
    b->len += n;
    b->text[b->len] = '\0';
}

void strbuf_put(StrBuf *b, const char *s)
{
    strbuf_putn(b, s, strlen(s));
}

/* Formats where the text goes, so that nothing else is left on the pool. */
void strbuf_printf(StrBuf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(b->text + b->len, b->cap - b->len, format, args);
    if (n < 0)
        BUG("cannot format '%s'", format);
    if ((size_t)n >= b->cap - b->len) {
        reserve(b, (size_t)n);
        vsnprintf(b->text + b->len, b->cap - b->len, format, again);
    }
    b->len += (size_t)n;
    va_end(again);
    va_end(args);
}
