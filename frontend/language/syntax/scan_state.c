/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where statements end and which brackets are open.  The scanner keeps a stack of open brackets
 * with their places, so that what was never closed is reported where it was opened; the parser is
 * then given the missing closing tokens and goes on. */
#include "frontend/language/syntax/parse_internal.h"
#include "parse.tab.h"

#include <string.h>

void scan_queue(ParseState *ps, int token, Span span, bool synthetic)
{
    vec_push(ps->pool, &ps->pending, (PendingToken){token, span, synthetic});
}

static int last_owed(const ParseState *ps)
{
    bool owes = ps->pending.len > ps->next_pending;
    return owes ? ps->pending.data[ps->pending.len - 1].token : ps->last_token;
}

void scan_open(ParseState *ps, char open, Span span)
{
    vec_push(ps->pool, &ps->brackets, (Bracket){open, span, ps->line_indent});
}

char scan_innermost(const ParseState *ps)
{
    return ps->brackets.len ? ps->brackets.data[ps->brackets.len - 1].open : 0;
}

bool scan_inside_string(const ParseState *ps)
{
    for (size_t i = ps->brackets.len; i-- > 0;)
        if (ps->brackets.data[i].open == '"')
            return true;
    return false;
}

static char closer_of(char open)
{
    return open == '(' ? ')' : open == '[' ? ']' : '}';
}

/* Pops the innermost bracket and queues what would have closed it. */
static void close_innermost(ParseState *ps, Span at)
{
    char open = ps->brackets.data[--ps->brackets.len].open;
    Span here = {at.file, at.begin, at.begin};
    if (open == '{' && last_owed(ps) != TOK_NL && last_owed(ps) != '{')
        scan_queue(ps, TOK_NL, here, true);
    scan_queue(ps, open == '"' ? TOK_STRING_TAIL : closer_of(open), here, true);
}

/* ---- indentation ---- */

static void start_line(ParseState *ps)
{
    ps->line_begin = ps->position;
    size_t end = ps->position;
    while (end < ps->length && (ps->text[end] == ' ' || ps->text[end] == '\t'))
        end++;
    ps->line_indent = end - ps->position;
}

bool scan_first_on_line(const ParseState *ps, Span token)
{
    return token.begin == ps->line_begin + ps->line_indent;
}

/* Remembers the first pair of braces that do not look as if they belonged together. */
static void suspect_braces(ParseState *ps, Bracket open, Span close)
{
    if (ps->suspect_open.file || !scan_first_on_line(ps, close))
        return;
    if (open.indent > ps->line_indent) {
        ps->suspect_open = open.span;
        ps->suspect_close = close;
    }
}

/* ---- closing ---- */

static void report_unclosed(ParseState *ps, Bracket bracket, Span before, const char *what)
{
    const char *name = bracket.open == '"' ? "{" : (char[]){bracket.open, 0};
    bool suspicious = bracket.open == '{' && ps->suspect_open.file;
    diag_error(ps->diag, suspicious ? ps->suspect_open : bracket.span, "E011",
               "this '%s' is never closed", name);
    if (suspicious)
        diag_note(ps->diag, ps->suspect_close,
                  "this '}' closes it, but is indented like one of an outer '{'");
    else
        diag_note(ps->diag, before, "a '%c' is missing before %s", closer_of(bracket.open), what);
}

/* Index + 1 of the bracket that `close` can close; round and square ones do not reach out of
 * braces. */
static size_t find_opener(const ParseState *ps, char close)
{
    for (size_t i = ps->brackets.len; i > 0; i--) {
        char open = ps->brackets.data[i - 1].open;
        if (closer_of(open) == close)
            return i;
        if (open == '{' || open == '"')
            return 0;
    }
    return 0;
}

static CloseAction close_mismatched(ParseState *ps, char close, Span span)
{
    char inner = scan_innermost(ps);
    if (ps->forgiven_closers > 0 && close != '}') {
        ps->forgiven_closers--;
        return CLOSE_SKIP;
    }
    if ((inner == '(' || inner == '[') && close != '}') {
        diag_error(ps->diag, span, "E012", "expected '%c', got '%c'", closer_of(inner), close);
        diag_note(ps->diag, ps->brackets.data[ps->brackets.len - 1].span, "to close this '%c'",
                  inner);
        close_innermost(ps, span);
        return CLOSE_SKIP;
    }
    diag_error(ps->diag, span, "E012", "this '%c' closes nothing", close);
    return CLOSE_SKIP;
}

CloseAction scan_close(ParseState *ps, char close, Span span)
{
    size_t opener = find_opener(ps, close);
    if (!opener)
        return close_mismatched(ps, close, span);
    if (opener == ps->brackets.len) {
        Bracket bracket = ps->brackets.data[--ps->brackets.len];
        if (close == '}' && bracket.open == '{')
            suspect_braces(ps, bracket, span);
        return CLOSE_MATCHED;
    }
    report_unclosed(ps, ps->brackets.data[ps->brackets.len - 1], span,
                    close == '}' ? "this '}'" : "this");
    while (ps->brackets.len > opener)
        close_innermost(ps, span);
    return CLOSE_AGAIN;
}

void scan_close_all(ParseState *ps, Span before, const char *what)
{
    if (ps->brackets.len)
        report_unclosed(ps, ps->brackets.data[ps->brackets.len - 1], before, what);
    while (ps->brackets.len)
        close_innermost(ps, before);
    if (last_owed(ps) != TOK_NL && last_owed(ps))
        scan_queue(ps, TOK_NL, before, true);
}

void scan_close_strings(ParseState *ps)
{
    Span here = {ps->file, (uint32_t)ps->position, (uint32_t)ps->position};
    size_t outermost = 0;
    while (ps->brackets.data[outermost].open != '"')
        outermost++;
    diag_error(ps->diag, ps->brackets.data[outermost].span, "E003",
               "this string has no closing '\"' on its line");
    while (ps->brackets.len > outermost)
        close_innermost(ps, here);
}

void scan_end_of_file(ParseState *ps, Span span)
{
    if (ps->brackets.len)
        scan_close_all(ps, span, "the end of the file");
    else if (last_owed(ps) != TOK_NL && last_owed(ps))
        scan_queue(ps, TOK_NL, span, false);
    scan_queue(ps, TOK_END, span, false);
}

bool scan_blame_bracket(ParseState *ps, Span at)
{
    char inner = scan_innermost(ps);
    if (inner != '(' && inner != '[')
        return false;
    Bracket bracket = ps->brackets.data[ps->brackets.len - 1];
    if (bracket.span.begin >= at.begin || !scan_first_on_line(ps, at) ||
        ps->line_indent > bracket.indent)
        return false;
    diag_error(ps->diag, bracket.span, "E011", "this '%c' is never closed", inner);
    diag_note(ps->diag, at, "a '%c' is missing before this line", closer_of(inner));
    while (scan_innermost(ps) == '(' || scan_innermost(ps) == '[') {
        ps->brackets.len--;
        ps->forgiven_closers++;
    }
    return true;
}

/* ---- newlines ---- */

static bool can_end_statement(int token)
{
    switch (token) {
    case TOK_ID:
    case TOK_INT:
    case TOK_FLOAT:
    case TOK_STRING:
    case TOK_STRING_TAIL:
    case TOK_PERCENT:
    case TOK_SIZE:
    case TOK_PATH:
    case TOK_TRUE:
    case TOK_FALSE:
    case TOK_RETURN:
    case TOK_UNDERSCORE:
    case ')':
    case ']':
    case '}':
        return true;
    default:
        return false;
    }
}

static size_t skip_blank(const ParseState *ps, size_t at)
{
    while (at < ps->length && strchr(" \t\r\f\n#", ps->text[at])) {
        if (ps->text[at] != '#') {
            at++;
            continue;
        }
        while (at < ps->length && ps->text[at] != '\n')
            at++;
    }
    return at;
}

static bool word_at(const ParseState *ps, size_t at, const char *word)
{
    size_t n = strlen(word);
    if (at > ps->length || ps->length - at < n || memcmp(ps->text + at, word, n) != 0)
        return false;
    char next = at + n < ps->length ? ps->text[at + n] : ' ';
    return !(next == '_' || (next >= '0' && next <= '9') || (next >= 'a' && next <= 'z') ||
             (next >= 'A' && next <= 'Z'));
}

/* The next line goes on with `|>`, `else` or `{`, which start no statement; what lies between is
 * blank. */
static bool line_is_continued(ParseState *ps)
{
    if (ps->position <= ps->continued_to)
        return true;
    size_t next = skip_blank(ps, ps->position);
    bool pipe = next + 2 <= ps->length && memcmp(ps->text + next, "|>", 2) == 0;
    bool brace = next < ps->length && ps->text[next] == '{';
    if (!pipe && !brace && !(ps->last_token == '}' && word_at(ps, next, "else")))
        return false;
    ps->continued_to = next;
    return true;
}

bool scan_newline(ParseState *ps)
{
    start_line(ps);
    char inner = scan_innermost(ps);
    if (inner == '(' || inner == '[' || !can_end_statement(ps->last_token))
        return false;
    return !line_is_continued(ps);
}

bool scan_at_top(const ParseState *ps)
{
    return !ps->brackets.len && (!ps->last_token || ps->last_token == TOK_NL);
}

bool scan_follows_operand(const ParseState *ps, Span token)
{
    return token.begin > 0 && !strchr(" \t\r\n", ps->text[token.begin - 1]) &&
           can_end_statement(ps->last_token);
}

bool scan_is_new_declaration(const ParseState *ps, Span word)
{
    if (!ps->brackets.len || word.begin != ps->line_begin)
        return false;
    bool section = word_at(ps, word.begin, "train") || word_at(ps, word.begin, "remat");
    size_t next = word.end + strspn(ps->text + word.end, " \t");
    char c = ps->text[next];
    if (section) /* `train {` may follow `if`, but only there */
        return c == '{' && (can_end_statement(ps->last_token) || ps->last_token == TOK_NL ||
                            ps->last_token == '{');
    if (word_at(ps, word.begin, "import"))
        return c == '"';
    return next > word.end && (c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) &&
           !word_at(ps, next, "if") && !word_at(ps, next, "and") && !word_at(ps, next, "or") &&
           !word_at(ps, next, "mod") && !word_at(ps, next, "for") && !word_at(ps, next, "in");
}
