/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The values of words, numbers and strings.  Whatever is wrong with one is reported here; the
 * scanner then goes on with a harmless value. */
#include "frontend/language/syntax/parse_internal.h"
#include "parse.tab.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int scan_top_word(const char *word)
{
    static const struct {
        const char *text;
        int token;
    } words[] = {{"option", TOK_OPTION}, {"block", TOK_BLOCK}, {"model", TOK_MODEL},
                 {"train", TOK_TRAIN},   {"remat", TOK_REMAT}, {"import", TOK_IMPORT}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i].text, word))
            return words[i].token;
    return 0;
}

static void out_of_range(ParseState *ps, Span span, const char *most)
{
    diag_error(ps->diag, span, "E006", "number out of range");
    diag_help(ps->diag, "the largest is %s", most);
}

static char *without_underscores(ParseState *ps, const char *text)
{
    char *copy = pool_strdup(ps->pool, text), *to = copy;
    for (const char *from = copy; *from; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
    return copy;
}

/* Reads the leading digits; false when they overflow int64. */
static bool read_digits(const char *digits, int64_t *value)
{
    *value = 0;
    for (; isdigit((unsigned char)*digits); digits++)
        if (!size_mul(*value, 10, value) || !size_add(*value, *digits - '0', value))
            return false;
    return true;
}

int64_t scan_integer(ParseState *ps, Span span, const char *text)
{
    int64_t value;
    if (read_digits(without_underscores(ps, text), &value))
        return value;
    out_of_range(ps, span, "9223372036854775807");
    return 1;
}

double scan_real(ParseState *ps, Span span, const char *text)
{
    double value = strtod(without_underscores(ps, text), NULL);
    if (isfinite(value))
        return value;
    out_of_range(ps, span, "about 1.8e308");
    return 1;
}

static int64_t unit_bytes(const char *unit)
{
    static const char prefixes[] = "KMGT";
    const char *prefix = *unit == 'B' ? NULL : strchr(prefixes, *unit);
    int64_t step = unit[0] != 'B' && unit[1] == 'i' ? 1024 : 1000, bytes = 1;
    for (const char *p = prefixes; prefix && p <= prefix; p++)
        bytes *= step;
    return bytes;
}

int64_t scan_size(ParseState *ps, Span span, const char *text)
{
    const char *digits = without_underscores(ps, text);
    int64_t unit = unit_bytes(digits + strcspn(digits, "KMGTB")), value;
    if (!digits[strspn(digits, "0123456789KMGTiB")]) {
        if (read_digits(digits, &value) && size_mul(value, unit, &value))
            return value;
    } else {
        double bytes = floor(strtod(digits, NULL) * (double)unit);
        if (bytes < 0x1p63)
            return (int64_t)bytes;
    }
    out_of_range(ps, span, "9223372036854775807 bytes");
    return 1;
}

void scan_malformed_number(ParseState *ps, Span span, const char *text)
{
    diag_error(ps->diag, span, "E005", "malformed number '%.40s'", text);
    diag_help(ps->diag, "sizes end in B, KiB, MiB, GiB, TiB, KB, MB, GB or TB, percentages in %%; "
                        "digits may be grouped by single '_'");
}

AnnotKind scan_annotation(ParseState *ps, Span span, const char *name)
{
    static const char *const names[] = {[ANNOT_KEEP] = "keep", [ANNOT_RECOMPUTE] = "recompute"};
    for (int i = 0; i < 2; i++)
        if (!strcmp(names[i], name))
            return (AnnotKind)i;
    const char *near = nearest_word(name, names, 2);
    diag_error(ps->diag, span, "E007", "unknown annotation '@%.40s'", name);
    if (near)
        diag_help(ps->diag, "did you mean `@%s`?", near);
    else
        diag_help(ps->diag, "there are `@keep` and `@recompute`");
    return ANNOT_KEEP;
}

void scan_string_begin(ParseState *ps, Span quote, bool continues)
{
    ps->string = strbuf_new(ps->pool);
    strbuf_put(&ps->string, "");
    ps->string_continues = continues;
    ps->piece_begin = quote.begin;
    if (!continues)
        ps->string_begin = quote.begin;
}

void scan_escape(ParseState *ps, Span span, char escaped)
{
    static const char from[] = "nt\"\\{}", to[] = "\n\t\"\\{}";
    const char *known = escaped ? strchr(from, escaped) : NULL;
    if (known) {
        strbuf_putn(&ps->string, &to[known - from], 1);
        return;
    }
    diag_error(ps->diag, span, "E004", "unknown escape in a string");
    diag_help(ps->diag, "the escapes are \\n \\t \\\" \\\\ \\{ and \\}");
}

const char *scan_string_piece(ParseState *ps, Span *span)
{
    span->begin = (uint32_t)ps->piece_begin;
    return ps->string.text;
}

int scan_string_unclosed(ParseState *ps, Span *span)
{
    span->begin = (uint32_t)ps->piece_begin;
    span->end = (uint32_t)ps->position;
    diag_error(ps->diag, *span, "E003", "this string has no closing '\"' on its line");
    return ps->string_continues ? TOK_STRING_TAIL : TOK_STRING;
}

static const char *bad_text_help(const char *text)
{
    switch (*text) {
    case '%':
        return "the remainder is written `a mod b`";
    case '!':
        return "write `not`";
    case '&':
        return "write `and`";
    case '|':
        return text[1] ? "write `or`" : "a pipe is written `|>`";
    case '$':
        return "a parameter is written `$path.weight`";
    case '@':
        return "annotations are `@keep` and `@recompute`";
    case '^':
        return "a power is written `a ** b`";
    case '?':
        return "write `a if condition else b`";
    case '\'':
    case '`':
        return "strings are written with double quotes";
    default:
        return NULL;
    }
}

void scan_bad_text(ParseState *ps, Span span, const char *text)
{
    unsigned char c = (unsigned char)*text;
    if (isprint(c) || c >= 0x80)
        diag_error(ps->diag, span, "E002", "'%.40s' is not part of the language", text);
    else
        diag_error(ps->diag, span, "E002", "control character 0x%02x", (unsigned)c);
    const char *help = bad_text_help(text);
    if (help)
        diag_help(ps->diag, "%s", help);
    ps->recovering = true; /* what follows would not make sense to the grammar */
}
