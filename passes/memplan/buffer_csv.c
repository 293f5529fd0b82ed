/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/memplan/buffer_csv.h"

#include "ir/support/map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 64, MAX_ROWS = 1 << 24 };
static const int64_t MAX_BYTES = (int64_t)1 << 60; /* as of a step */

typedef enum Column {
    COLUMN_ID,
    COLUMN_LOWER,
    COLUMN_UPPER,
    COLUMN_SIZE,
    COLUMN_ALIGNMENT,
    COLUMN_GAPS,
    COLUMN_OFFSET,
    N_COLUMNS
} Column;
static const char *const column_names[N_COLUMNS] = {"id",        "lower", "upper", "size",
                                                    "alignment", "gaps",  "offset"};

typedef struct Reader {
    Pool *pool;
    const char *at, *end;
    int line;                /* of the text that was taken last, from 1 */
    int position[N_COLUMNS]; /* of the column in a row, -1 = absent */
    int n_fields;            /* in the heading */
    Map ids;                 /* id -> line */
    int64_t total;
    const char **fault;
} Reader;

static bool fail(Reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *what = pool_vprintf(r->pool, format, args);
    va_end(args);
    *r->fault = pool_printf(r->pool, "line %d: %s", r->line, what);
    return false;
}

/* The next line without its end, on the pool; NULL at the end of the text or after a message
 * (*fault). */
static char *next_line(Reader *r)
{
    if (r->at == r->end)
        return NULL;
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *next = stop ? stop + 1 : r->end, *begin = r->at;
    r->line++;
    r->at = next;
    stop = stop ? stop : r->end;
    if (stop > begin && stop[-1] == '\r')
        stop--;
    for (const char *c = begin; c < stop; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f) {
            fail(r, "a byte 0x%02x: this is not a text file", (unsigned)(unsigned char)*c);
            return NULL;
        }
    return pool_strndup(r->pool, begin, (size_t)(stop - begin));
}

static bool is_blank(const char *line)
{
    return line[strspn(line, " \t")] == '\0';
}

/* Cuts a copy of the line at its commas and trims the fields.  Returns how many there are, or -1
 * when they are more than MAX_COLUMNS. */
static int split(Pool *pool, const char *line, char **field)
{
    char *text = pool_strdup(pool, line);
    for (int n = 0; n < MAX_COLUMNS;) {
        char *comma = strchr(text, ','), *end = comma ? comma : text + strlen(text);
        text += strspn(text, " \t");
        while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        *end = '\0';
        field[n++] = text;
        if (!comma)
            return n;
        text = comma + 1;
    }
    return -1;
}

static bool read_heading(Reader *r, const char *line)
{
    char *field[MAX_COLUMNS];
    for (int c = 0; c < N_COLUMNS; c++)
        r->position[c] = -1;
    r->n_fields = split(r->pool, line, field);
    if (r->n_fields < 0)
        return fail(r, "more than %d columns", MAX_COLUMNS);
    for (int k = 0; k < r->n_fields; k++)
        for (int c = 0; c < N_COLUMNS; c++) {
            if (strcmp(field[k], column_names[c]) != 0)
                continue;
            if (r->position[c] >= 0)
                return fail(r, "two columns are called %s", column_names[c]);
            r->position[c] = k;
        }
    for (int c = 0; c <= COLUMN_SIZE; c++)
        if (r->position[c] < 0)
            return fail(r,
                        "no column is called %s; the heading has to name id, lower, upper and "
                        "size",
                        column_names[c]);
    if (r->position[COLUMN_OFFSET] >= 0)
        return fail(r, "there is a column offset already");
    return true;
}

static bool read_number(Reader *r, char *const *field, Column column, int64_t *out)
{
    const char *text = field[r->position[column]], *name = column_names[column];
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || *text == '+')
        return fail(r, "%s is '%.40s' and has to be a whole number", name, text);
    if (errno == ERANGE)
        return fail(r, "%s is %.40s, which does not fit in 64 bits", name, text);
    *out = v;
    return v >= 0 || fail(r, "%s is negative (%lld)", name, v);
}

/* Columns of MiniMalloc's that would change the answer. */
static bool check_others(Reader *r, char *const *field)
{
    int alignment = r->position[COLUMN_ALIGNMENT], gaps = r->position[COLUMN_GAPS];
    if (alignment >= 0 && *field[alignment] && strcmp(field[alignment], "1") != 0)
        return fail(r, "alignment is '%.40s'; offsets are not aligned here", field[alignment]);
    if (gaps >= 0 && *field[gaps])
        return fail(r, "gaps in a life are not understood");
    return true;
}

static bool check_id(Reader *r, const char *id)
{
    const uint64_t *first = map_find(&r->ids, id);
    if (!*id)
        return fail(r, "the id is empty");
    if (first)
        return fail(r, "id '%.40s' stands in line %d already", id, (int)*first);
    map_set(&r->ids, id, (uint64_t)r->line);
    return true;
}

static bool read_row(Reader *r, const char *line, MemBuffer *b)
{
    char *field[MAX_COLUMNS];
    Pool *scratch = pool_new_child(r->pool);
    int n = split(scratch, line, field);
    bool ok = n == r->n_fields || fail(r, "%d fields; the heading has %d%s", n, r->n_fields,
                                       strchr(line, '"') ? " (quotes do not join fields)" : "");
    ok = ok && read_number(r, field, COLUMN_LOWER, &b->lower) &&
         read_number(r, field, COLUMN_UPPER, &b->upper) &&
         read_number(r, field, COLUMN_SIZE, &b->size) && check_others(r, field) &&
         check_id(r, field[r->position[COLUMN_ID]]);
    if (ok && b->upper <= b->lower)
        ok = fail(r, "upper (%" PRId64 ") has to be greater than lower (%" PRId64 ")", b->upper,
                  b->lower);
    if (ok && (!size_add(r->total, b->size, &r->total) || r->total > MAX_BYTES))
        ok = fail(r, "all sizes up to here pass 2^60 bytes");
    pool_free(scratch);
    return ok;
}

bool buffer_csv_read(Pool *pool, const char *text, size_t length, BufferCsv *out,
                     const char **fault)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 */
    Reader r = {.pool = pool, .at = text, .end = text + length, .ids = map_new(pool)};
    VEC(MemBuffer) buffers = {0};
    VEC(const char *) rows = {0};
    r.fault = fault;
    *fault = NULL;
    *out = (BufferCsv){0};
    if (length >= 3 && memcmp(text, mark, 3) == 0)
        r.at += 3;
    for (char *line; (line = next_line(&r));) {
        if (is_blank(line))
            continue;
        if (!out->heading) {
            out->heading = line;
            if (!read_heading(&r, line))
                return false;
            continue;
        }
        MemBuffer b;
        if (rows.len == MAX_ROWS)
            return fail(&r, "more than %d rows", MAX_ROWS);
        if (!read_row(&r, line, &b))
            return false;
        vec_push(pool, &buffers, b);
        vec_push(pool, &rows, line);
    }
    if (*fault)
        return false;
    r.line = 1;
    if (!out->heading)
        return fail(&r, "the file is empty; the heading has to name id, lower, upper and size");
    out->n = (int)rows.len;
    out->buffer = buffers.data;
    out->row = rows.data;
    return true;
}

void buffer_csv_write(const BufferCsv *csv, const int64_t *offset, FILE *out)
{
    fprintf(out, "%s,offset\n", csv->heading);
    for (int i = 0; i < csv->n; i++)
        fprintf(out, "%s,%" PRId64 "\n", csv->row[i], offset[i]);
}

void buffer_csv_write_plan(const Graph *g, const MemPlan *plan, StrBuf *out)
{
    strbuf_put(out, "id,lower,upper,size,planned_offset\n");
    for (int i = 0; i < plan->n_buffers; i++) {
        const PlannedBuffer *b = &plan->buffer[i];
        bool is_value = b->node == NODE_NONE;
        ValueId v = is_value ? b->value : graph_node(g, b->node)->out[0];
        strbuf_printf(out, "%s%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n",
                      is_value ? "" : "workspace of ", graph_value(g, v)->name, b->life.lower,
                      b->life.upper, b->life.size, b->offset);
    }
}
