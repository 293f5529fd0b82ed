/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/diag.h"

#include "ir/support/bug.h"
#include "ir/support/vec.h"

#include <jansson.h>
#include <string.h>

enum { MAX_ERRORS = 20, MAX_SHOWN_WIDTH = 120 };

/* Where byte BLOCK * i of a text stands: on which line, and where the line begins. */
typedef struct LineMark {
    size_t start;
    uint32_t line;
} LineMark;

enum { LINE_BLOCK = 1024 };

typedef struct Source {
    const char *name, *text;
    size_t length;
    LineMark *marks; /* of every block */
} Source;

typedef struct Note {
    Span span;
    bool help;
    const char *text;
} Note;

typedef struct Message {
    Span span;
    const char *code, *text;
    bool warning;
    VEC(Note) notes;
} Message;

struct Diag {
    Pool *pool;
    VEC(Source) sources;
    VEC(Message) messages;
    int n_errors;
    bool dropped; /* the last message was past the limit: its notes go too */
};

Diag *diag_new(Pool *pool)
{
    Diag *d = POOL_NEW(pool, Diag);
    d->pool = pool;
    return d;
}

/* Line and start of the line at `end`, from those at `begin`. */
static LineMark next_mark(const char *text, size_t begin, size_t end, LineMark m)
{
    const char *at = text + begin;
    while (begin < end && (at = memchr(at, '\n', (size_t)(text + end - at)))) {
        m = (LineMark){(size_t)(++at - text), m.line + 1};
        begin = m.start;
    }
    return m;
}

static LineMark *line_marks(Pool *pool, const char *text, size_t length)
{
    LineMark *marks = POOL_ARRAY(pool, length / LINE_BLOCK + 1, LineMark);
    marks[0] = (LineMark){0, 1};
    for (size_t i = 1; i <= length / LINE_BLOCK; i++)
        marks[i] = next_mark(text, (i - 1) * LINE_BLOCK, i * LINE_BLOCK, marks[i - 1]);
    return marks;
}

uint32_t diag_add_source(Diag *diag, const char *name, const char *text, size_t length)
{
    Source s = {pool_strdup(diag->pool, name), text, length, line_marks(diag->pool, text, length)};
    vec_push(diag->pool, &diag->sources, s);
    return (uint32_t)diag->sources.len;
}

static const Source *source_of(const Diag *diag, uint32_t file)
{
    return file && file <= diag->sources.len ? &diag->sources.data[file - 1] : NULL;
}

const char *diag_source_name(const Diag *diag, uint32_t file)
{
    const Source *s = source_of(diag, file);
    return s ? s->name : NULL;
}

const char *diag_source_text(const Diag *diag, uint32_t file, size_t *length)
{
    const Source *s = source_of(diag, file);
    *length = s ? s->length : 0;
    return s ? s->text : NULL;
}

static void line_column(const Source *s, size_t offset, uint32_t *line, uint32_t *column)
{
    size_t end = offset < s->length ? offset : s->length, block = end / LINE_BLOCK;
    LineMark m = next_mark(s->text, block * LINE_BLOCK, end, s->marks[block]);
    *line = m.line;
    *column = (uint32_t)(end - m.start) + 1;
}

void diag_line_column(const Diag *diag, Span span, uint32_t *line, uint32_t *column)
{
    const Source *s = source_of(diag, span.file);
    *line = *column = 0;
    if (s)
        line_column(s, span.begin, line, column);
}

static void add_message(Diag *diag, Span span, const char *code, bool warning, const char *format,
                        va_list args)
{
    diag->n_errors += !warning;
    diag->dropped = warning ? diag->messages.len >= 4 * MAX_ERRORS : diag->n_errors > MAX_ERRORS;
    if (diag->dropped)
        return;
    Message m = {.span = span, .code = code, .warning = warning};
    m.text = pool_vprintf(diag->pool, format, args);
    vec_push(diag->pool, &diag->messages, m);
}

void diag_error(Diag *diag, Span span, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_message(diag, span, code, false, format, args);
    va_end(args);
}

void diag_warning(Diag *diag, Span span, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_message(diag, span, code, true, format, args);
    va_end(args);
}

static void add_note(Diag *diag, Span span, bool help, const char *format, va_list args)
{
    if (diag->dropped)
        return;
    if (!diag->messages.len)
        BUG("a note without a message");
    Message *m = &diag->messages.data[diag->messages.len - 1];
    Note n = {span, help, pool_vprintf(diag->pool, format, args)};
    vec_push(diag->pool, &m->notes, n);
}

void diag_note(Diag *diag, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_note(diag, span, false, format, args);
    va_end(args);
}

void diag_help(Diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_note(diag, (Span){0}, true, format, args);
    va_end(args);
}

bool diag_is_full(const Diag *diag)
{
    return diag->n_errors > MAX_ERRORS;
}

int diag_error_count(const Diag *diag)
{
    return diag->n_errors;
}

bool diag_is_empty(const Diag *diag)
{
    return diag->messages.len == 0;
}

void diag_clear(Diag *diag)
{
    diag->messages.len = 0;
    diag->n_errors = 0;
}

/* Text */

static void put_char(FILE *out, char c)
{
    /* Control characters of hostile text must not reach the terminal. */
    fputc(c == '\t' || (unsigned char)c < 32 || c == 127 ? ' ' : c, out);
}

/* The line of the span's first byte, cut to a window around it, and a caret under the span. */
static void print_excerpt(const Source *s, Span span, const char *colour, const char *reset,
                          FILE *out)
{
    size_t at = span.begin < s->length ? span.begin : s->length, begin = at, end = at;
    while (begin > 0 && s->text[begin - 1] != '\n' && at - begin < MAX_SHOWN_WIDTH / 2)
        begin--;
    while (end < s->length && s->text[end] != '\n' && end - begin < MAX_SHOWN_WIDTH)
        end++;
    size_t last = span.end > at ? span.end : at + 1;
    fputs("    ", out);
    for (size_t i = begin; i < end; i++)
        put_char(out, s->text[i]);
    fputs("\n    ", out);
    for (size_t i = begin; i < at; i++)
        if (((unsigned char)s->text[i] & 0xc0) != 0x80) /* one column per UTF-8 character */
            fputc(' ', out);
    fprintf(out, "%s^", colour);
    for (size_t i = at + 1; i < last && i < end; i++)
        if (((unsigned char)s->text[i] & 0xc0) != 0x80)
            fputc('~', out);
    fprintf(out, "%s\n", reset);
}

static void print_place(const Diag *diag, Span span, FILE *out)
{
    const Source *s = source_of(diag, span.file);
    uint32_t line, column;
    if (!s)
        return;
    line_column(s, span.begin, &line, &column);
    fprintf(out, "%s:%u:%u: ", s->name, line, column);
}

static void print_excerpt_of(const Diag *diag, Span span, const char *colour, const char *reset,
                             FILE *out)
{
    const Source *s = source_of(diag, span.file);
    if (s)
        print_excerpt(s, span, colour, reset, out);
}

static void print_message(const Diag *diag, const Message *m, FILE *out, bool colour)
{
    const char *bold = colour ? "\033[1m" : "", *reset = colour ? "\033[0m" : "";
    const char *severe = !colour ? "" : m->warning ? "\033[1;35m" : "\033[1;31m";
    const char *calm = colour ? "\033[1;36m" : "";
    fputs(bold, out);
    print_place(diag, m->span, out);
    fprintf(out, "%s%s[%s]:%s %s%s%s\n", severe, m->warning ? "warning" : "error", m->code, reset,
            bold, m->text, reset);
    print_excerpt_of(diag, m->span, severe, reset, out);
    for (size_t i = 0; i < m->notes.len; i++) {
        const Note *n = &m->notes.data[i];
        if (n->help) {
            fprintf(out, "    %shelp:%s %s\n", calm, reset, n->text);
            continue;
        }
        fputs(bold, out);
        print_place(diag, n->span, out);
        fprintf(out, "%snote:%s %s\n", calm, reset, n->text);
        print_excerpt_of(diag, n->span, calm, reset, out);
    }
}

void diag_print(const Diag *diag, FILE *out, bool colour)
{
    for (size_t i = 0; i < diag->messages.len; i++)
        print_message(diag, &diag->messages.data[i], out, colour);
    if (diag->n_errors > MAX_ERRORS)
        fprintf(out, "... and %d more errors\n", diag->n_errors - MAX_ERRORS);
}

/* JSON */

/* Text of the user may hold bytes that are not UTF-8, which JSON cannot: they become '?'. */
static json_t *json_text(const char *s)
{
    json_t *j = json_string(s);
    if (j)
        return j;
    size_t n = strlen(s);
    char *ascii = malloc(n + 1);
    if (!ascii)
        return NULL;
    for (size_t i = 0; i <= n; i++)
        ascii[i] = (unsigned char)s[i] < 128 ? s[i] : '?';
    j = json_string(ascii);
    free(ascii);
    return j;
}

static void set_place(const Diag *diag, json_t *object, Span span, bool with_end)
{
    const Source *s = source_of(diag, span.file);
    uint32_t line = 0, column = 0, end_line = 0, end_column = 0;
    if (s) {
        line_column(s, span.begin, &line, &column);
        line_column(s, span.end > span.begin ? span.end : span.begin, &end_line, &end_column);
    }
    json_object_set_new(object, "file", s ? json_text(s->name) : json_null());
    json_object_set_new(object, "line", json_integer(line));
    json_object_set_new(object, "column", json_integer(column));
    if (with_end) {
        json_object_set_new(object, "end_line", json_integer(end_line));
        json_object_set_new(object, "end_column", json_integer(end_column));
    }
}

static json_t *message_json(const Diag *diag, const Message *m)
{
    json_t *object = json_object(), *notes = json_array(), *help = json_array();
    set_place(diag, object, m->span, true);
    json_object_set_new(object, "severity", json_string(m->warning ? "warning" : "error"));
    json_object_set_new(object, "code", json_text(m->code));
    json_object_set_new(object, "message", json_text(m->text));
    for (size_t i = 0; i < m->notes.len; i++) {
        const Note *n = &m->notes.data[i];
        if (n->help) {
            json_array_append_new(help, json_text(n->text));
            continue;
        }
        json_t *note = json_object();
        set_place(diag, note, n->span, false);
        json_object_set_new(note, "message", json_text(n->text));
        json_array_append_new(notes, note);
    }
    json_object_set_new(object, "notes", notes);
    json_object_set_new(object, "help", help);
    return object;
}

void diag_print_json(const Diag *diag, FILE *out)
{
    json_t *root = json_object(), *errors = json_array();
    for (size_t i = 0; i < diag->messages.len; i++)
        json_array_append_new(errors, message_json(diag, &diag->messages.data[i]));
    json_object_set_new(root, "errors", errors);
    if (json_dumpf(root, out, JSON_INDENT(2)) == 0)
        fputc('\n', out);
    json_decref(root);
}
