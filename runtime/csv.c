/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LONGEST_NUMBER = 63 };

bool csv_open(CsvReader *r, const unsigned char *bytes, int64_t n, char separator, RtError *err)
{
    const char *text = (const char *)bytes;
    *r = (CsvReader){.at = text, .end = text + n, .separator = separator, .line = 1};
    if (n >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0))
        return rt_error(err, "it is UTF-16: save it as UTF-8");
    if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        r->at += 3;
    return true;
}

void csv_close(CsvReader *r)
{
    free(r->cell);
    r->cell = NULL;
}

static bool at_line_end(const CsvReader *r)
{
    return r->at == r->end || *r->at == '\n' || *r->at == '\r';
}

/* LF, CRLF or CR. */
static void skip_line_end(CsvReader *r)
{
    if (r->at < r->end && *r->at == '\r' && r->end - r->at > 1 && r->at[1] == '\n')
        r->at++;
    if (r->at < r->end) {
        r->at++;
        r->line++;
    }
}

static bool push(CsvReader *r, CsvCell cell, RtError *err)
{
    if (r->n_cells == CSV_MAX_CELLS)
        return rt_error(err, "line %lld: more than %d cells", (long long)r->record_line,
                        CSV_MAX_CELLS);
    if (r->n_cells == r->room) {
        int room = r->room ? 2 * r->room : 64;
        CsvCell *grown = rt_alloc(room, sizeof *grown, err);
        if (!grown)
            return false;
        if (r->n_cells)
            memcpy(grown, r->cell, (size_t)r->n_cells * sizeof *grown);
        free(r->cell);
        r->cell = grown;
        r->room = room;
    }
    r->cell[r->n_cells++] = cell;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool plain_cell(CsvReader *r, RtError *err)
{
    const char *from = r->at;
    while (!at_line_end(r) && *r->at != r->separator) {
        if (*r->at == 0)
            return rt_error(err, "line %lld: a NUL byte: this is no text", (long long)r->line);
        r->at++;
    }
    const char *to = r->at;
    while (from < to && is_blank(*from))
        from++;
    while (from < to && is_blank(to[-1]))
        to--;
    return push(r, (CsvCell){from, (size_t)(to - from), false}, err);
}

/* Behind the opening quote. */
static bool quoted_cell(CsvReader *r, RtError *err)
{
    const char *from = r->at;
    int64_t line = r->line;
    bool doubled = false;
    for (;; r->at++) {
        if (r->at == r->end)
            return rt_error(err, "line %lld, cell %d: its quote is never closed", (long long)line,
                            r->n_cells + 1);
        if (*r->at == 0)
            return rt_error(err, "line %lld: a NUL byte: this is no text", (long long)r->line);
        r->line += *r->at == '\n';
        if (*r->at != '"')
            continue;
        if (r->end - r->at < 2 || r->at[1] != '"')
            break;
        doubled = true;
        r->at++;
    }
    const char *to = r->at++;
    while (!at_line_end(r) && *r->at != r->separator && is_blank(*r->at))
        r->at++;
    if (!at_line_end(r) && *r->at != r->separator)
        return rt_error(err,
                        "line %lld, cell %d: text behind a closing quote; a quote inside a quoted "
                        "cell is written twice",
                        (long long)r->line, r->n_cells + 1);
    return push(r, (CsvCell){from, (size_t)(to - from), doubled}, err);
}

/* Spaces before a quote do not count. */
static bool read_cell(CsvReader *r, RtError *err)
{
    const char *p = r->at;
    while (p < r->end && is_blank(*p) && *p != r->separator)
        p++;
    if (p == r->end || *p != '"')
        return plain_cell(r, err);
    r->at = p + 1;
    return quoted_cell(r, err);
}

bool csv_next(CsvReader *r, RtError *err)
{
    if (err)
        err->message[0] = 0;
    while (r->at < r->end && at_line_end(r))
        skip_line_end(r);
    if (r->at == r->end)
        return false;
    r->n_cells = 0;
    r->record_line = r->line;
    for (;; r->at++) {
        if (!read_cell(r, err))
            return false;
        if (at_line_end(r))
            break;
    }
    skip_line_end(r);
    return true;
}

size_t csv_text(CsvCell cell, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < cell.n; i++) {
        out[n++] = cell.text[i];
        i += cell.doubled && cell.text[i] == '"';
    }
    return n;
}

static bool is_word(CsvCell cell, const char *word)
{
    return strlen(word) == cell.n && strncasecmp(cell.text, word, cell.n) == 0;
}

bool csv_is_missing(CsvCell cell)
{
    static const char *const words[] = {"NA",   "N/A",  "NaN",  "#N/A",   "<NA>",
                                        "null", "none", "-nan", "#NULL!", "?"};
    if (cell.n == 0)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(cell, words[i]))
            return true;
    return false;
}

bool csv_number(CsvCell cell, double *out)
{
    char text[LONGEST_NUMBER + 1], *end;
    if (is_word(cell, "true") || is_word(cell, "false")) {
        *out = cell.n == 4;
        return true;
    }
    if (cell.n == 0 || cell.n > LONGEST_NUMBER)
        return false;
    memcpy(text, cell.text, cell.n);
    text[cell.n] = 0;
    if (strspn(text, "0123456789.+-eE") < cell.n) /* strtod reads more: inf, nan, 0x10 */
        return false;
    *out = strtod(text, &end);
    return !*end && isfinite(*out);
}
