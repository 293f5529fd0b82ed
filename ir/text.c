/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool text_is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_.~#/-+@[]", c));
}

static void put_escaped(StrBuf *b, char c)
{
    unsigned char u = (unsigned char)c;
    if (c == '\\')
        strbuf_put(b, "\\\\");
    else if (c == '\n')
        strbuf_put(b, "\\n");
    else if (c == '\t')
        strbuf_put(b, "\\t");
    else if (u < 32 || u == 127)
        strbuf_printf(b, "\\x%02x", u);
    else
        strbuf_putn(b, &c, 1);
}

void text_put_string(StrBuf *b, const char *s)
{
    strbuf_put(b, "\"");
    for (; *s; s++) {
        if (*s == '"')
            strbuf_put(b, "\\\"");
        else
            put_escaped(b, *s);
    }
    strbuf_put(b, "\"");
}

void text_put_rest_of_line(StrBuf *b, const char *s)
{
    if (*s == ' ') /* the reader skips spaces here */
        strbuf_put(b, "\\x20"), s++;
    for (; *s; s++)
        put_escaped(b, *s);
}

void text_put_name(StrBuf *b, const char *s)
{
    const char *c = s;
    while (text_is_name_char(*c))
        c++;
    /* A leading '#' would read as a comment. */
    if (*c || !*s || *s == '#')
        text_put_string(b, s);
    else
        strbuf_put(b, s);
}

void text_put_double(StrBuf *b, double x)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    if (strstr(text, "e+") && fabs(x) < 1e15) /* a whole number */
        snprintf(text, sizeof text, "%.0f", x);
    strbuf_put(b, x != x ? "nan" : text);
}

int text_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}
