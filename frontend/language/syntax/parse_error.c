/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "expected X or Y, got Z": the parser's list of acceptable tokens, shortened to what helps. */
#include "frontend/language/syntax/parse_internal.h"

#include <string.h>

static bool one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

#define ONE_OF(name, table) one_of((name), (table), sizeof(table) / sizeof *(table))

/* Tokens an expression starts with: listed as "an expression" when all of them would do. */
static const char *const expression_starts[] = {
    "a name",   "a string",     "a string with {...}",
    "a $path",  "an integer",   "a size",
    "a number", "a percentage", "'true'",
    "'false'",  "'seq'",        "'shared'",
    "'match'",  "'not'",        "'-'",
    "'('",      "'['",
};

/* After an operand any operator is possible; a list of all of them helps no one. */
static const char *const operators[] = {
    "'|>'",  "'..'", "'..='", "'or'", "'and'", "'=='", "'!='", "'<'", "'>'",
    "'<='",  "'>='", "'+'",   "'-'",  "'++'",  "'@'",  "'*'",  "'/'", "'//'",
    "'mod'", "'**'", "'('",   "'['",  "'.'",   "':'",  "'if'",
};

static const char *const reserved[] = {
    "'for'",    "'in'",    "'if'",     "'else'",   "'return'", "'match'",
    "'with'",   "'param'", "'buffer'", "'assert'", "'seq'",    "'and'",
    "'shared'", "'or'",    "'not'",    "'mod'",    "'true'",   "'false'",
};

static const char *const top_words[] = {"option", "block", "model", "train", "remat", "import"};

/* The tokens to name, at most `max`; -1 when there are too many to help. */
static int helpful(const char *const *expected, int n, const char **out, int max)
{
    bool expression = one_of("an integer", expected, (size_t)n);
    bool operand = one_of("'*'", expected, (size_t)n) || one_of("'|>'", expected, (size_t)n);
    int len = 0;
    if (one_of("'option'", expected, (size_t)n)) {
        out[0] = "a declaration";
        return 1;
    }
    if (expression)
        out[len++] = "an expression";
    for (int i = 0; i < n; i++) {
        if ((expression && ONE_OF(expected[i], expression_starts)) ||
            (operand && ONE_OF(expected[i], operators)) || !strcmp(expected[i], "an annotation") ||
            !strcmp(expected[i], "the end of the file"))
            continue;
        if (len == max)
            return -1;
        out[len++] = expected[i];
    }
    return len;
}

static const char *expected_text(Pool *pool, const char *const *names, int n)
{
    StrBuf text = strbuf_new(pool);
    for (int i = 0; i < n; i++)
        strbuf_printf(&text, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ", names[i]);
    return text.text;
}

static const char *got_text(ParseState *ps, Span at, const char *name)
{
    if (at.begin >= ps->length)
        return "the end of the file";
    if (!strcmp(name, "the end of the line"))
        return ps->text[at.begin] == '}'   ? "'}'"
               : ps->text[at.begin] == ';' ? "';'"
                                           : "the end of the line";
    if (*name == '\'')
        return name;
    if (!strcmp(name, "a string") || !strncmp(name, "a string ", 9))
        return "a string";
    return pool_printf(ps->pool, "'%.40s'", parse_slice(ps, at));
}

static const char *const comparisons[] = {"'=='", "'!='", "'<'", "'>'", "'<='", "'>='"};

static void add_help(ParseState *ps, Span at, const char *got, const char *const *expected, int n)
{
    if (one_of("'option'", expected, (size_t)n)) {
        const char *near = nearest_word(parse_slice(ps, at), top_words, 6);
        if (near)
            diag_help(ps->diag, "did you mean `%s`?", near);
        else
            diag_help(ps->diag,
                      "a file holds `option`, `block`, `model`, `import`, `train` and `remat`");
    } else if (one_of("a name", expected, (size_t)n) &&
               !one_of("an integer", expected, (size_t)n) && ONE_OF(got, reserved)) {
        diag_help(ps->diag, "%s is a reserved word", got);
    } else if (!strcmp(got, "'='") && one_of("'=='", expected, (size_t)n)) {
        diag_help(ps->diag, "equality is written `==`");
    } else if (ONE_OF(got, comparisons) && one_of("'and'", expected, (size_t)n)) {
        diag_help(ps->diag, "comparisons do not chain: write `a < b and b < c`");
    } else if (scan_first_on_line(ps, at) && ONE_OF(got, operators)) {
        diag_help(
            ps->diag,
            "a line goes on when it ends with an operator, or inside parentheses: put this %s "
            "at the end of the line before",
            got);
    } else if (ONE_OF(got, operators) && one_of("'|>'", expected, (size_t)n) &&
               !one_of("'and'", expected, (size_t)n)) {
        diag_help(ps->diag, "a pipe ends with a call: write `(x |> f()) + 1`");
    } else if (!strcmp(got, "','") && one_of("')'", expected, (size_t)n)) {
        diag_help(ps->diag, "a list is written `[a, b]`");
    }
}

/* ---- x += 1 ---- */

/* The operator that ends right before a '=', as in `+=`; empty when none does. */
static Span operator_before(const ParseState *ps, Span at)
{
    Span op = {at.file, at.begin, at.begin};
    while (op.begin > 0 && strchr("+-*/@", ps->text[op.begin - 1]))
        op.begin--;
    return op;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The name that a statement begins with, when only it stands before `end`; else NULL. */
static const char *name_before(ParseState *ps, size_t end)
{
    while (end > 0 && is_blank(ps->text[end - 1]))
        end--;
    size_t begin = end, before;
    while (begin > 0 && is_word(ps->text[begin - 1]))
        begin--;
    for (before = begin; before > 0 && is_blank(ps->text[before - 1]);)
        before--;
    bool starts = before == 0 || strchr("\n{;", ps->text[before - 1]);
    return starts && begin < end ? pool_strndup(ps->pool, ps->text + begin, end - begin) : NULL;
}

/* False when it is no such assignment. */
static bool report_update(ParseState *ps, Span at, const char *got)
{
    Span op = strcmp(got, "'='") == 0 ? operator_before(ps, at) : (Span){0};
    if (op.begin == op.end)
        return false;
    const char *text = parse_slice(ps, op), *name = name_before(ps, op.begin);
    diag_error(ps->diag, (Span){op.file, op.begin, at.end}, "E010", "there is no '%s='", text);
    diag_help(ps->diag,
              "a value never changes: `%s = %s %s ...` binds the name to a new one, also in loops",
              name ? name : "x", name ? name : "x", text);
    return true;
}

void report_syntax_error(ParseState *ps, Span at, const char *got, const char *const *expected,
                         int n_expected)
{
    if (ps->recovering)
        return;
    ps->recovering = true;
    if (ps->synthetic || scan_blame_bracket(ps, at) || report_update(ps, at, got))
        return;
    const char *names[8];
    int n = helpful(expected, n_expected, names, 8);
    const char *what = got_text(ps, at, got);
    if (n > 0)
        diag_error(ps->diag, at, "E010", "expected %s, got %s", expected_text(ps->pool, names, n),
                   what);
    else
        diag_error(ps->diag, at, "E010", "unexpected %s", what);
    add_help(ps, at, got, expected, n_expected);
}
