/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A growing string on a pool; text is always NUL-terminated. */
#ifndef SCRIMP_IR_SUPPORT_STRBUF_H
#define SCRIMP_IR_SUPPORT_STRBUF_H

#include "ir/support/pool.h"

typedef struct StrBuf {
    Pool *pool;
    char *text;
    size_t len, cap;
} StrBuf;

StrBuf strbuf_new(Pool *pool);
void strbuf_put(StrBuf *b, const char *s);
void strbuf_putn(StrBuf *b, const char *s, size_t n);
void strbuf_printf(StrBuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
