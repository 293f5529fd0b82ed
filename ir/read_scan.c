/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/read_scan.h"

#include "ir/support/map.h"
#include "ir/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER_LENGTH = 63 };

bool scan_fail(Scanner *s, size_t begin, const char *code, const char *format, ...)
{
    va_list args;
    if (s->failed)
        return false;
    s->failed = true;
    va_start(args, format);
    const char *message = pool_vprintf(s->pool, format, args);
    va_end(args);
    Span span = {s->file, (uint32_t)begin, (uint32_t)(s->at > begin ? s->at : begin + 1)};
    diag_error(s->diag, span, code, "%s", message);
    return false;
}

void scan_suggest(Scanner *s, const char *word, const char *const *candidates, size_t n)
{
    const char *near = nearest_word(word, candidates, n);
    if (near)
        diag_help(s->diag, "did you mean `%s`?", near);
}

static char char_at(const Scanner *s, size_t i)
{
    return i < s->length ? s->text[i] : '\0';
}

static void skip_space(Scanner *s)
{
    for (; s->at < s->length; s->at++) {
        char c = s->text[s->at];
        if (c == '#')
            while (s->at + 1 < s->length && s->text[s->at + 1] != '\n')
                s->at++;
        else if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            break;
    }
}

char scan_peek(Scanner *s)
{
    skip_space(s);
    return char_at(s, s->at);
}

bool scan_at_end(Scanner *s)
{
    skip_space(s);
    return s->at == s->length;
}

bool scan_take(Scanner *s, const char *punctuation)
{
    size_t n = strlen(punctuation);
    skip_space(s);
    if (s->failed || s->length - s->at < n || memcmp(s->text + s->at, punctuation, n) != 0)
        return false;
    s->token = s->at;
    s->at += n;
    return true;
}

bool scan_expect(Scanner *s, const char *punctuation)
{
    return scan_take(s, punctuation) ||
           scan_fail(s, s->at, "E701", "expected '%s' here", punctuation);
}

static bool is_word_char(char c)
{
    return c != '.' && c != '~' && text_is_name_char(c) && !strchr("#/-+@[]", c);
}

static size_t word_length(Scanner *s)
{
    size_t n = 0;
    skip_space(s);
    while (is_word_char(char_at(s, s->at + n)))
        n++;
    return n;
}

bool scan_word(Scanner *s, const char **word)
{
    size_t n = word_length(s);
    s->token = s->at;
    if (s->failed || !n)
        return scan_fail(s, s->at, "E701", "expected a word here");
    *word = pool_strndup(s->pool, s->text + s->at, n);
    s->at += n;
    return true;
}

bool scan_take_word(Scanner *s, const char *word)
{
    size_t n = word_length(s);
    if (s->failed || n != strlen(word) || memcmp(s->text + s->at, word, n) != 0)
        return false;
    s->token = s->at;
    s->at += n;
    return true;
}

bool scan_name(Scanner *s, const char **name)
{
    size_t n = 0;
    if (scan_peek(s) == '"')
        return scan_string(s, name);
    while (text_is_name_char(char_at(s, s->at + n)))
        n++;
    s->token = s->at;
    if (s->failed || !n)
        return scan_fail(s, s->at, "E701", "expected a name here");
    *name = pool_strndup(s->pool, s->text + s->at, n);
    s->at += n;
    return true;
}

bool scan_value_name(Scanner *s, const char **name)
{
    char sigil = scan_peek(s);
    size_t begin = s->at;
    const char *rest;
    if (s->failed || (sigil != '%' && sigil != '$'))
        return scan_fail(s, s->at, "E701", "expected a value, %%name or $name");
    s->at++;
    char next = char_at(s, s->at);
    if (next != '"' && !text_is_name_char(next))
        return scan_fail(s, begin, "E701", "expected a name after '%c'", sigil);
    /* '#' may begin a name here, not a comment: scan_name would skip it. */
    if (next == '"') {
        if (!scan_string(s, &rest))
            return false;
    } else {
        size_t n = 0;
        while (text_is_name_char(char_at(s, s->at + n)))
            n++;
        rest = pool_strndup(s->pool, s->text + s->at, n);
        s->at += n;
    }
    s->token = begin;
    *name = pool_printf(s->pool, "%c%s", sigil, rest);
    return true;
}

/* One character of a string or of the options, escapes resolved; a NUL in either form is refused.
 */
static bool unescaped(Scanner *s, char *out)
{
    char c = s->text[s->at++];
    *out = c;
    if (c != '\\')
        return c != '\0' || scan_fail(s, s->at - 1, "E701", "a NUL byte");
    char kind = char_at(s, s->at++);
    int high, low;
    switch (kind) {
    case 'n':
        *out = '\n';
        return true;
    case 't':
        *out = '\t';
        return true;
    case '\\':
    case '"':
        *out = kind;
        return true;
    case 'x':
        high = text_hex_digit(char_at(s, s->at));
        low = text_hex_digit(char_at(s, s->at + 1));
        *out = (char)(high * 16 + low);
        if (high >= 0 && low >= 0 && *out) {
            s->at += 2;
            return true;
        }
        break;
    default:
        break;
    }
    s->at = s->at < s->length ? s->at : s->length;
    return scan_fail(s, s->at ? s->at - 1 : 0, "E701", "an escape that does not exist");
}

bool scan_string(Scanner *s, const char **text)
{
    size_t begin, n = 0, end;
    if (!scan_expect(s, "\""))
        return false;
    begin = s->token;
    for (end = s->at; end < s->length && s->text[end] != '"'; end++)
        end += s->text[end] == '\\';
    if (end >= s->length)
        return scan_fail(s, begin, "E701", "this string does not end");
    char *out = pool_alloc(s->pool, end - s->at + 1);
    while (s->at < end)
        if (!unescaped(s, &out[n++]))
            return false;
    s->at = end + 1;
    s->token = begin;
    *text = out;
    return true;
}

bool scan_rest_of_line(Scanner *s, const char **text)
{
    while (char_at(s, s->at) == ' ')
        s->at++;
    const char *newline =
        s->at < s->length ? memchr(s->text + s->at, '\n', s->length - s->at) : NULL;
    size_t end = newline ? (size_t)(newline - s->text) : s->length, n = 0;
    char *out = pool_alloc(s->pool, end - s->at + 1);
    s->token = s->at;
    while (!s->failed && s->at < end)
        if (!unescaped(s, &out[n++]))
            return false;
    *text = out;
    return !s->failed && s->at <= end;
}

/* The characters of a number, copied so that the C library can be used on them. */
static bool number_text(Scanner *s, char text[MAX_NUMBER_LENGTH + 1])
{
    size_t n = 0;
    skip_space(s);
    s->token = s->at;
    for (char c; (c = char_at(s, s->at + n)) != '\0'; n++) {
        if (!is_word_char(c) && c != '.' && c != '-' && c != '+')
            break;
        if (n == MAX_NUMBER_LENGTH)
            return scan_fail(s, s->at, "E701", "a number too long to read");
        text[n] = c;
    }
    text[n] = '\0';
    return (n && !s->failed) || scan_fail(s, s->at, "E701", "expected a number here");
}

bool scan_int(Scanner *s, int64_t *value)
{
    char text[MAX_NUMBER_LENGTH + 1], *end;
    if (!number_text(s, text))
        return false;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    /* "4..5" and "1:2" end at their punctuation. */
    if (end == text)
        return scan_fail(s, s->at, "E701", "expected a whole number here");
    s->at += (size_t)(end - text);
    if (errno == ERANGE)
        return scan_fail(s, s->token, "E707", "%s does not fit 64 bits", text);
    *value = v;
    return true;
}

bool scan_uint(Scanner *s, uint64_t *value, int base)
{
    char text[MAX_NUMBER_LENGTH + 1], *end;
    if (!number_text(s, text))
        return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, base);
    if (end == text || text[0] == '-' || text[0] == '+')
        return scan_fail(s, s->at, "E701", "expected a whole number here");
    s->at += (size_t)(end - text);
    if (errno == ERANGE)
        return scan_fail(s, s->token, "E707", "%s does not fit 64 bits", text);
    *value = v;
    return true;
}

bool scan_double(Scanner *s, double *value)
{
    char text[MAX_NUMBER_LENGTH + 1], *end;
    if (!number_text(s, text))
        return false;
    *value = strtod(text, &end);
    if (*end)
        return scan_fail(s, s->at, "E701", "'%s' is no number", text);
    s->at += (size_t)(end - text);
    return true;
}

bool scan_bool(Scanner *s, bool *value)
{
    *value = scan_take_word(s, "true");
    return *value || scan_take_word(s, "false") ||
           scan_fail(s, s->at, "E701", "expected true or false");
}
