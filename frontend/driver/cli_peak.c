/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --peak: what is in memory when most is, by part of the model and kind. */
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/cli_where.h"
#include "frontend/driver/report/step_shrink.h"
#include "ir/support/byte_size.h"
#include "ir/support/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Tensors that are named of a row. */
enum { MOST_NAMED = 3 };

/* Tensors of one kind in one part of the model. */
typedef struct PeakRow {
    const char *path;
    TensorKind kind;
    int tensors;
    int64_t bytes;
    const BufferFact *largest[MOST_NAMED]; /* as many of them as there are, from the left */
} PeakRow;

typedef struct PeakTable {
    PeakRow *row; /* persistent ones first, then the largest */
    int n;
} PeakTable;

static bool is_persistent(TensorKind k)
{
    return k == TENSOR_WEIGHTS || k == TENSOR_STATISTICS || k == TENSOR_OPTIMIZER;
}

static bool at_peak(const StepFacts *f, const BufferFact *b)
{
    return b->first <= f->peak_slot && f->peak_slot < b->end;
}

/* --- groups --- */

/* The first `parts` parts of a path; numbers as stars where `stars` is set. */
static const char *group_of(Pool *pool, const char *path, bool stars, int parts)
{
    const char *whole = stars ? path_with_stars(pool, path) : path, *end = whole;
    for (int i = 0; i < parts && *end; i++)
        end += strcspn(end + (i > 0), ".") + (i > 0);
    bool open = *end && !(end > whole && end[-1] == '*'); /* "layer2.*" has no parts of its own */
    return pool_printf(pool, "%.*s%s", (int)(end - whole), whole, open ? ".*" : "");
}

static int named_of(const PeakRow *r)
{
    return r->tensors < MOST_NAMED ? r->tensors : MOST_NAMED;
}

/* The largest of two rows' largest; of equals the row's own stay in front. */
static void merge_largest(PeakRow *r, const PeakRow *add)
{
    const PeakRow own = *r;
    for (int k = 0, i = 0, j = 0; k < MOST_NAMED; k++) {
        bool has_own = i < named_of(&own), has_other = j < named_of(add);
        bool other = has_other && (!has_own || add->largest[j]->bytes > own.largest[i]->bytes);
        if (has_own || has_other)
            r->largest[k] = other ? add->largest[j++] : own.largest[i++];
    }
}

static void add_to(Pool *pool, PeakTable *t, PeakRow add)
{
    for (int i = 0; i < t->n; i++)
        if (t->row[i].kind == add.kind && strcmp(t->row[i].path, add.path) == 0) {
            merge_largest(&t->row[i], &add);
            t->row[i].tensors += add.tensors;
            t->row[i].bytes += add.bytes;
            return;
        }
    add.path = pool_strdup(pool, add.path);
    t->row[t->n++] = add;
}

static PeakTable grouped(Pool *pool, const PeakTable *whole, bool stars, int parts)
{
    PeakTable t = {POOL_ARRAY(pool, (size_t)whole->n + 1, PeakRow), 0};
    for (int i = 0; i < whole->n; i++) {
        PeakRow r = whole->row[i];
        r.path = group_of(pool, r.path, stars, parts);
        add_to(pool, &t, r);
    }
    return t;
}

/* Rows that are read at a glance, not counting what is less than a thousandth of all. */
enum { MOST_ROWS = 16, DEEPEST_PATH = 12, SMALL_PART = 1000 };

static bool is_small(const PeakTable *t, const PeakRow *r)
{
    int64_t all = 0;
    for (int i = 0; i < t->n; i++)
        all += t->row[i].bytes;
    return r->bytes < all / SMALL_PART;
}

static bool has_few_rows(const PeakTable *t)
{
    int large = 0;
    for (int i = 0; i < t->n; i++)
        large += !is_small(t, &t->row[i]);
    return large <= MOST_ROWS;
}

/* What is small is told by the first part of its path. */
static PeakTable small_together(Pool *pool, const PeakTable *fine)
{
    PeakTable t = {POOL_ARRAY(pool, (size_t)fine->n + 1, PeakRow), 0};
    for (int i = 0; i < fine->n; i++) {
        PeakRow r = fine->row[i];
        if (is_small(fine, &r))
            r.path = group_of(pool, r.path, true, 1);
        add_to(pool, &t, r);
    }
    return t;
}

static int persistent_first(const void *a, const void *b)
{
    const PeakRow *x = a, *y = b;
    if (is_persistent(x->kind) != is_persistent(y->kind))
        return is_persistent(x->kind) ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    int order = strcmp(x->path, y->path);
    return order ? order : (int)x->kind - (int)y->kind;
}

/* Whole paths where there are few; then layers of one form together; then fewer and fewer levels.
 */
static PeakTable at_a_glance(Pool *pool, const PeakTable *whole)
{
    PeakTable t = grouped(pool, whole, false, DEEPEST_PATH);
    if (t.n > MOST_ROWS) {
        t = grouped(pool, whole, true, DEEPEST_PATH);
        for (int parts = DEEPEST_PATH - 1; parts > 0 && !has_few_rows(&t); parts--)
            t = grouped(pool, whole, true, parts);
    }
    if (t.n > MOST_ROWS)
        t = small_together(pool, &t);
    qsort(t.row, (size_t)t.n, sizeof *t.row, persistent_first);
    return t;
}

/* One row a tensor; persistent ones are told by their kind. */
static PeakTable tensors_at_peak(Pool *pool, const StepFacts *f)
{
    PeakTable t = {POOL_ARRAY(pool, (size_t)f->n_buffers + 1, PeakRow), 0};
    for (int k = 0; k < f->n_buffers; k++) {
        const BufferFact *b = &f->buffer[k];
        if (!at_peak(f, b))
            continue;
        const char *path = value_node(f->graph, b->value)->loc.path;
        t.row[t.n++] =
            (PeakRow){is_persistent(b->kind) || !path ? "" : path, b->kind, 1, b->bytes, {b}};
    }
    return t;
}

/* --- what is printed --- */

/* OTHER_COLUMNS: of everything but the part's name and the bar. */
enum { USUAL_COLUMNS = 80, OTHER_COLUMNS = 44, LEAST_BAR = 8, MOST_BAR = 60, EIGHTHS = 8 };

static int columns_of_output(void)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : USUAL_COLUMNS;
}

/* A terminal that says it shows UTF-8. */
static bool has_blocks(void)
{
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"}, *locale = "";
    for (int i = 0; i < 3 && !*locale; i++)
        locale = getenv(names[i]) ? getenv(names[i]) : "";
    return isatty(STDOUT_FILENO) && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
}

/* Any bytes have a bar. */
static const char *bar_of(Pool *pool, double share, int width, bool blocks)
{
    static const char *const parts[EIGHTHS] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    StrBuf out = strbuf_new(pool);
    int eighths = (int)(share * width * EIGHTHS + 0.5);
    eighths = eighths < 1 ? 1 : eighths;
    for (int i = 0; i < (blocks ? eighths / EIGHTHS : (eighths + EIGHTHS - 1) / EIGHTHS); i++)
        strbuf_put(&out, blocks ? "█" : "#");
    strbuf_put(&out, blocks ? parts[eighths % EIGHTHS] : "");
    return out.text;
}

static const char *part_text(const PeakRow *r)
{
    return *r->path ? r->path : is_persistent(r->kind) ? "the whole model" : "the model itself";
}

static int longest_part(const PeakTable *t)
{
    size_t longest = strlen("part of the model");
    for (int i = 0; i < t->n; i++)
        longest = strlen(part_text(&t->row[i])) > longest ? strlen(part_text(&t->row[i])) : longest;
    return (int)longest;
}

static int64_t largest_row(const PeakTable *t)
{
    int64_t largest = 1;
    for (int i = 0; i < t->n; i++)
        largest = t->row[i].bytes > largest ? t->row[i].bytes : largest;
    return largest;
}

/* "    %a 2MiB, %b 2MiB, 7 more": the largest, as many as there is room for. */
static void print_largest(Pool *pool, const StepFacts *f, const PeakRow *r, int columns)
{
    enum { FOR_MORE = 12 };
    StrBuf line = strbuf_new(pool);
    int n = 0;
    for (; n < named_of(r); n++) {
        const BufferFact *b = r->largest[n];
        const char *next = pool_printf(pool, "%s%s %s", n ? ", " : "    ",
                                       buffer_fact_name(pool, f, b), bytes_text(pool, b->bytes));
        if (n > 0 && (int)(line.len + strlen(next)) + FOR_MORE > columns)
            break;
        strbuf_put(&line, next);
    }
    if (n < r->tensors)
        strbuf_printf(&line, ", %d more", r->tensors - n);
    puts(line.text);
}

/* The largest row's bar is as wide as there is room. */
static void print_table(Pool *pool, const StepFacts *f, const PeakTable *t)
{
    int columns = columns_of_output(), parts = longest_part(t),
        bar = columns - parts - OTHER_COLUMNS;
    bool blocks = has_blocks();
    bar = bar < LEAST_BAR ? LEAST_BAR : bar > MOST_BAR ? MOST_BAR : bar;
    printf("%-*s  %-10s %8s %10s %7s\n", parts, "part of the model", "kind", "tensors", "bytes",
           "share");
    for (int i = 0; i < t->n; i++) {
        const PeakRow *r = &t->row[i];
        printf("%-*s  %-10s %8d %10s %6.1f%%  %s\n", parts, part_text(r), tensor_kind_name[r->kind],
               r->tensors, bytes_text(pool, r->bytes),
               100 * (double)r->bytes / (double)f->peak_bytes,
               bar_of(pool, (double)r->bytes / (double)largest_row(t), bar, blocks));
        print_largest(pool, f, r, columns);
    }
}

/* What would have to be smaller for a lower peak. */
static void print_shrink(Pool *pool, const StepFacts *f, const Shrink *s)
{
    const char *target = bytes_text(pool, s->target_bytes);
    printf("\nFor a peak that is %d%% lower (%s): ", s->percent, target);
    if (s->target_bytes < f->persistent_bytes) {
        printf("weights, statistics and optimizer state alone\nare %s; nothing else can make up "
               "for that.\n",
               bytes_text(pool, f->persistent_bytes));
        return;
    }
    printf("%d operation%s more.\n%s\n%10s  %-10s  tensor\n", s->moments,
           s->moments == 1 ? " needs" : "s need",
           s->enough ? "Without these tensors none would; the first helps most."
                     : "These tensors help most, but are not enough.",
           "bytes", "operations");
    for (int k = 0; k < s->n; k++) {
        const BufferFact *b = &f->buffer[s->tensor[k].buffer];
        printf("%10s  %-10s  %s%s\n", bytes_text(pool, b->bytes),
               pool_printf(pool, "%d of %d", s->tensor[k].moments, s->moments),
               buffer_fact_name(pool, f, b),
               place_text(pool, f->graph, &value_node(f->graph, b->value)->loc));
    }
}

static void print_peak(Pool *pool, const StepFacts *f, const PeakTable *t, const Shrink *s)
{
    const Node *n = graph_node(f->graph, f->operation[f->peak_slot].node);
    printf("The step needs most memory, %s, in operation %d of 0 to %d:\n%s = %s%s\n\n",
           bytes_text(pool, f->peak_bytes), f->peak_slot, f->n_operations - 1,
           graph_value(f->graph, n->out[0])->name, op_name(n->op),
           place_text(pool, f->graph, &n->loc));
    print_table(pool, f, t);
    print_shrink(pool, f, s);
}

/* --- for programs --- */

static json_t *tensor_json(Pool *pool, const StepFacts *f, const BufferFact *b)
{
    json_t *o = json_pack("{s:s,s:s,s:I}", "name", buffer_fact_name(pool, f, b), "kind",
                          tensor_kind_name[b->kind], "bytes", (json_int_t)b->bytes);
    place_json(o, &value_node(f->graph, b->value)->loc);
    return o;
}

static int largest_first(const void *a, const void *b)
{
    const BufferFact *x = *(const BufferFact *const *)a, *y = *(const BufferFact *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x > y) - (x < y);
}

static json_t *tensors_json(Pool *pool, const StepFacts *f)
{
    const BufferFact **there = POOL_ARRAY(pool, (size_t)f->n_buffers + 1, const BufferFact *);
    json_t *list = json_array();
    size_t n = 0;
    for (int k = 0; k < f->n_buffers; k++)
        if (at_peak(f, &f->buffer[k]))
            there[n++] = &f->buffer[k];
    qsort(there, n, sizeof *there, largest_first);
    for (size_t k = 0; k < n; k++)
        json_array_append_new(list, tensor_json(pool, f, there[k]));
    return list;
}

static json_t *rows_json(Pool *pool, const StepFacts *f, const PeakTable *t)
{
    json_t *rows = json_array();
    for (int i = 0; i < t->n; i++) {
        const PeakRow *r = &t->row[i];
        json_t *largest = json_array();
        for (int k = 0; k < named_of(r); k++)
            json_array_append_new(largest, json_string(buffer_fact_name(pool, f, r->largest[k])));
        json_array_append_new(rows, json_pack("{s:s,s:s,s:i,s:I,s:o}", "path", r->path, "kind",
                                              tensor_kind_name[r->kind], "tensors", r->tensors,
                                              "bytes", (json_int_t)r->bytes, "largest", largest));
    }
    return rows;
}

static json_t *shrink_json(Pool *pool, const StepFacts *f, const Shrink *s)
{
    json_t *list = json_array();
    for (int k = 0; k < s->n; k++) {
        json_t *o = tensor_json(pool, f, &f->buffer[s->tensor[k].buffer]);
        json_object_set_new(o, "moments", json_integer(s->tensor[k].moments));
        json_array_append_new(list, o);
    }
    return json_pack("{s:i,s:I,s:i,s:b,s:o}", "percent", s->percent, "target_bytes",
                     (json_int_t)s->target_bytes, "moments", s->moments, "enough", (int)s->enough,
                     "tensors", list);
}

static json_t *peak_json(Pool *pool, const StepFacts *f, const PeakTable *t, const Shrink *s)
{
    const Node *n = graph_node(f->graph, f->operation[f->peak_slot].node);
    json_t *operation = json_pack("{s:s,s:s}", "name", graph_value(f->graph, n->out[0])->name, "op",
                                  op_name(n->op));
    place_json(operation, &n->loc);
    return json_pack("{s:i,s:i,s:o,s:I,s:o,s:o,s:o}", "slot", f->peak_slot, "operations",
                     f->n_operations, "operation", operation, "bytes", (json_int_t)f->peak_bytes,
                     "rows", rows_json(pool, f, t), "tensors", tensors_json(pool, f), "shrink",
                     shrink_json(pool, f, s));
}

void cli_plan_peak(Cli *cli, const PlanRow *row, const Graph *g, json_t *json)
{
    enum { PERCENT_LOWER = 10 };
    const NodeCosts costs = cli_plan_costs(cli, &row->report);
    const StepFacts f = step_facts(cli->pool, g, NULL, &costs);
    const PeakTable whole = tensors_at_peak(cli->pool, &f), t = at_a_glance(cli->pool, &whole);
    const Shrink s = step_shrink(cli->pool, &f, PERCENT_LOWER);
    if (json)
        json_object_set_new(json, "peak", peak_json(cli->pool, &f, &t, &s));
    else
        print_peak(cli->pool, &f, &t, &s);
}
