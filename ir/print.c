/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/print.h"

#include "ir/support/bitset.h"
#include "ir/text.h"

#include <inttypes.h>

typedef struct Printer {
    const Graph *g;
    PrintOptions options;
    StrBuf *out;
    int indent;
    Bitset printed; /* nodes */
} Printer;

/* The sigil, and the rest quoted when it has to be. */
static void put_value(Printer *p, ValueId v)
{
    const char *name = graph_value(p->g, v)->name;
    strbuf_putn(p->out, name, name[0] ? 1 : 0);
    text_put_name(p->out, name[0] ? name + 1 : name);
}

static void put_indent(const Printer *p)
{
    for (int i = 0; i < p->indent; i++)
        strbuf_put(p->out, "  ");
}

static void put_attr_value(StrBuf *b, const Attr *a)
{
    switch (attr_kind(a->key)) {
    case ATTR_KIND_INT:
        strbuf_printf(b, "%" PRId64, a->u.i);
        break;
    case ATTR_KIND_BOOL:
        strbuf_put(b, a->u.i ? "true" : "false");
        break;
    case ATTR_KIND_FLOAT:
        text_put_double(b, a->u.f);
        break;
    case ATTR_KIND_STRING:
        text_put_string(b, a->u.s);
        break;
    case ATTR_KIND_INTS:
        strbuf_put(b, "[");
        for (int i = 0; i < a->n; i++)
            strbuf_printf(b, i ? ",%" PRId64 : "%" PRId64, a->u.ints[i]);
        strbuf_put(b, "]");
        break;
    case ATTR_KIND_FLOATS:
        for (int i = 0; i < a->n; i++) {
            strbuf_put(b, i ? "," : "[");
            text_put_double(b, a->u.floats[i]);
        }
        strbuf_put(b, a->n ? "]" : "[]");
        break;
    }
}

static void put_attrs(Printer *p, const Node *n)
{
    for (int i = 0; i < n->n_attr; i++) {
        strbuf_printf(p->out, "%s%s=", i ? ", " : " {", attr_name(n->attr[i].key));
        put_attr_value(p->out, &n->attr[i]);
    }
    if (n->n_attr)
        strbuf_put(p->out, "}");
}

static void put_lines(Printer *p);

static void put_body(Printer *p, const Node *n)
{
    Printer inner = {n->body, p->options, p->out, p->indent, {0}};
    inner.printed = bitset_new(p->out->pool, n->body->nodes.len + 1);
    strbuf_put(p->out, " {\n");
    put_lines(&inner);
    put_indent(p);
    strbuf_put(p->out, "}");
}

static void put_types(Printer *p, const Node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        const Value *v = graph_value(p->g, n->out[i]);
        strbuf_put(p->out, i ? ", " : " : ");
        strbuf_put(p->out, type_text(p->out->pool, &v->type));
        if (v->writes != VALUE_NONE) {
            strbuf_put(p->out, " -> ");
            put_value(p, v->writes);
        }
    }
}

/* `of` only names what was printed before: the reader resolves names in order, and the original of
 * a recomputation may be gone. */
static void put_remat(Printer *p, const Node *n)
{
    const char *separator = "";
    bool known = n->remat_of != NODE_NONE && bitset_has(&p->printed, n->remat_of);
    if (!known && !n->remat_by)
        return;
    strbuf_put(p->out, " @remat(");
    if (known) {
        strbuf_put(p->out, "of=");
        put_value(p, graph_node(p->g, n->remat_of)->out[0]);
        separator = ", ";
    }
    if (n->remat_by) {
        strbuf_printf(p->out, "%sby=", separator);
        text_put_name(p->out, n->remat_by);
    }
    strbuf_put(p->out, ")");
}

static void put_loc(StrBuf *out, const Loc *loc)
{
    strbuf_put(out, "   loc ");
    if (loc->file)
        text_put_string(out, loc->file);
    strbuf_printf(out, "%s%" PRIu32 ":%" PRIu32, loc->file ? " " : "", loc->line, loc->column);
    if (loc->path) {
        strbuf_put(out, " in ");
        text_put_name(out, loc->path);
    }
}

static void put_node(Printer *p, const Node *n)
{
    put_indent(p);
    for (int i = 0; i < n->n_out; i++) {
        strbuf_put(p->out, i ? ", " : "");
        put_value(p, n->out[i]);
    }
    strbuf_printf(p->out, " = %s", op_name(n->op));
    for (int i = 0; i < n->n_in; i++) {
        strbuf_put(p->out, i ? ", " : " ");
        put_value(p, n->in[i]);
    }
    put_attrs(p, n);
    if (n->body)
        put_body(p, n);
    put_types(p, n);
    if (n->hint != REMAT_AUTO)
        strbuf_put(p->out, n->hint == REMAT_KEEP ? " @keep" : " @recompute");
    put_remat(p, n);
    if (n->loc.line && !p->options.no_loc)
        put_loc(p->out, &n->loc);
    strbuf_put(p->out, "\n");
}

static void put_lines(Printer *p)
{
    p->indent++;
    for (size_t i = 0; i < p->g->order.len; i++) {
        put_node(p, graph_node(p->g, p->g->order.data[i]));
        bitset_add(&p->printed, p->g->order.data[i]);
    }
    for (size_t i = 0; i < p->g->outputs.len; i++) {
        put_indent(p);
        strbuf_put(p->out, "output ");
        text_put_name(p->out, p->g->outputs.data[i].name);
        strbuf_put(p->out, " = ");
        put_value(p, p->g->outputs.data[i].value);
        strbuf_put(p->out, "\n");
    }
    p->indent--;
}

/* "{key=value, ..}" */
static void put_fields(StrBuf *b, const TrainField *fields, int n, const void *spec)
{
    const char *separator = "";
    strbuf_put(b, "{");
    for (int i = 0; i < n; i++) {
        StrBuf value = strbuf_new(b->pool);
        if (!train_field_put(&value, &fields[i], spec))
            continue;
        strbuf_printf(b, "%s%s=", separator, fields[i].key);
        strbuf_put(b, value.text);
        separator = ", ";
    }
    strbuf_put(b, "}");
}

/* A frozen group has no rule. */
static void put_group(StrBuf *b, const ParamGroup *group)
{
    int n = 0;
    while (n < TRAIN_GROUP_FIELD_COUNT &&
           (!group->frozen || train_group_fields[n].offset < offsetof(ParamGroup, rule)))
        n++;
    put_fields(b, train_group_fields, n, group);
}

static bool put_groups(StrBuf *b, const TrainSpec *train)
{
    strbuf_put(b, "[");
    for (int i = 0; i < train->n_groups; i++) {
        strbuf_put(b, i ? ", " : "");
        put_group(b, &train->group[i]);
    }
    strbuf_put(b, "]");
    return train->n_groups > 0;
}

static bool put_goals(StrBuf *b, const TrainSpec *train)
{
    strbuf_put(b, "[");
    for (int i = 0; i < train->n_goals; i++) {
        strbuf_put(b, i ? ", " : "");
        put_fields(b, train_goal_fields, TRAIN_GOAL_FIELD_COUNT, &train->goal[i]);
    }
    strbuf_put(b, "]");
    return train->n_goals > 0;
}

static bool put_parts(StrBuf *b, const TrainSpec *train)
{
    strbuf_put(b, "[");
    for (int i = 0; i < train->n_data_parts; i++) {
        strbuf_put(b, i ? ", " : "");
        put_fields(b, train_part_fields, TRAIN_PART_FIELD_COUNT, &train->data_part[i]);
    }
    strbuf_put(b, "]");
    return train->n_data_parts > 0;
}

bool train_field_put(StrBuf *b, const TrainField *field, const void *spec)
{
    const void *at = (const char *)spec + field->offset;
    switch (field->kind) {
    case TRAIN_BOOL:
        if (*(const bool *)at)
            strbuf_put(b, "true");
        return *(const bool *)at;
    case TRAIN_DOUBLE:
        text_put_double(b, *(const double *)at);
        return *(const double *)at != 0;
    case TRAIN_INT:
        strbuf_printf(b, "%" PRId64, *(const int64_t *)at);
        return *(const int64_t *)at != 0;
    case TRAIN_UINT:
        strbuf_printf(b, "%" PRIu64, *(const uint64_t *)at);
        return *(const uint64_t *)at != 0;
    case TRAIN_TEXT:
        if (*(const char *const *)at)
            text_put_string(b, *(const char *const *)at);
        return *(const char *const *)at != NULL;
    case TRAIN_OPTIM:
        strbuf_put(b, optim_names[*(const OptimKind *)at]);
        return true;
    case TRAIN_LR:
        strbuf_put(b, lr_names[*(const LrKind *)at]);
        return true;
    case TRAIN_GROUPS:
        return put_groups(b, spec);
    case TRAIN_GOALS:
        return put_goals(b, spec);
    case TRAIN_PARTS:
        return put_parts(b, spec);
    }
    return false;
}

void graph_print(const Graph *g, PrintOptions options, StrBuf *out)
{
    Printer p = {g, options, out, 0, bitset_new(out->pool, g->nodes.len + 1)};
    strbuf_printf(out, "scrimp.ir %d  src=", IR_TEXT_VERSION);
    text_put_string(out, g->source);
    strbuf_printf(out, "  hash=%016" PRIx64 "  opts", g->source_hash);
    strbuf_put(out, g->options[0] ? " " : "");
    text_put_rest_of_line(out, g->options);
    strbuf_put(out, "\n");
    text_put_name(out, g->kind);
    strbuf_put(out, " @");
    text_put_name(out, g->name);
    strbuf_put(out, " {\n");
    if (g->train.present) {
        strbuf_put(out, "  train ");
        put_fields(out, train_fields, TRAIN_FIELD_COUNT, &g->train);
        strbuf_put(out, "\n");
    }
    put_lines(&p);
    strbuf_put(out, "}\n");
}

/* The plan section */

/* "2.7MiB": for the eye. */
static const char *rounded_bytes(Pool *pool, int64_t bytes)
{
    const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)bytes;
    int unit = 0;
    for (; x >= 1024 && unit < 4; unit++)
        x /= 1024;
    return pool_printf(pool, unit ? "%.1f%s" : "%.0f%s", x, units[unit]);
}

/* "128K" for whole kibibytes, else bytes: exact, so that two plans that differ print differently.
 */
static const char *exact_bytes(Pool *pool, int64_t bytes)
{
    bool whole = bytes && bytes % 1024 == 0;
    return pool_printf(pool, whole ? "%" PRId64 "K" : "%" PRId64, whole ? bytes / 1024 : bytes);
}

static const char *rounded_count(Pool *pool, double x)
{
    const char *const units[] = {"", "K", "M", "G", "T", "P"};
    int unit = 0;
    for (; x >= 1000 && unit < 5; unit++)
        x /= 1000;
    return pool_printf(pool, unit ? "%.1f%s" : "%.0f%s", x, units[unit]);
}

/* Of recomputation. */
static double extra_flops(const Graph *g)
{
    double extra = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->remat_of != NODE_NONE)
            extra += node_flops(g, n);
    }
    return extra;
}

static void put_plan_header(const Graph *g, const PlanText *plan, StrBuf *out)
{
    double extra = extra_flops(g), once = graph_flops(g) - extra;
    strbuf_printf(out, "plan persistent=%s arena=%s peak=%s",
                  rounded_bytes(out->pool, plan->persistent_bytes),
                  rounded_bytes(out->pool, plan->arena_bytes),
                  rounded_bytes(out->pool, plan->peak_bytes));
    if (plan->peak_node != NODE_NONE) {
        const char *name = graph_value(g, graph_node(g, plan->peak_node)->out[0])->name;
        strbuf_printf(out, "@%c", name[0]);
        text_put_name(out, name + 1);
    }
    if (extra > 0)
        strbuf_printf(out, " extra_flops=%s(+%.1f%%)", rounded_count(out->pool, extra),
                      once > 0 ? 100 * extra / once : 0.0);
    strbuf_put(out, " {\n");
}

/* By value: the last place in the order that makes or reads it. */
static int *last_places(Pool *pool, const Graph *g)
{
    int *last = POOL_ARRAY(pool, g->values.len, int);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; k < n->n_in; k++)
            last[n->in[k]] = (int)i;
        for (int k = 0; k < n->n_out; k++)
            last[n->out[k]] = (int)i;
    }
    return last;
}

void graph_print_plan(const Graph *g, const PlanText *plan, StrBuf *out)
{
    Printer p = {.g = g, .out = out};
    const int *last = last_places(out->pool, g);
    put_plan_header(g, plan, out);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; k < n->n_out; k++) {
            ValueId v = n->out[k];
            if (plan->offset[v] < 0)
                continue;
            strbuf_put(out, "  ");
            put_value(&p, v);
            strbuf_printf(out, " : off=%s size=%s live=%d..%d\n",
                          exact_bytes(out->pool, plan->offset[v]),
                          exact_bytes(out->pool, type_bytes(value_type(g, v))), (int)i, last[v]);
        }
    }
    strbuf_put(out, "}\n");
}
