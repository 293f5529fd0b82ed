/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/report/report.h"

#include "frontend/driver/report/report_pack.h"
#include "frontend/driver/report/step_shrink.h"
#include "ir/strided_view.h"

#include <math.h>

static json_t *bytes_json(int64_t bytes)
{
    return json_integer((json_int_t)bytes);
}

/* --- one step --- */

/* "line" is one of the text in the page; of an imported file, "file" is its name and line. */
static void put_place(Pool *pool, json_t *o, const Loc *loc)
{
    if (loc->path)
        json_object_set_new(o, "path", json_string(loc->path));
    if (loc_line(loc))
        json_object_set_new(o, "line", json_integer(loc->line));
    if (loc->file)
        json_object_set_new(o, "file",
                            json_string(pool_printf(pool, "%s:%u", loc->file, loc->line)));
}

static json_t *indices_json(const int *list, int n)
{
    json_t *a = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_integer(list[i]));
    return a;
}

static json_t *operation_json(Pool *pool, const StepFacts *f, const OperationFact *o,
                              const double *seconds)
{
    const Node *n = graph_node(f->graph, o->node);
    json_t *j = json_pack("{s:s,s:s,s:s}", "name", graph_value(f->graph, n->out[0])->name, "op",
                          op_name(n->op), "phase", phase_name[o->phase]);
    put_place(pool, j, &n->loc);
    if (loc_line(&n->loc))
        json_object_set_new(j, "column", json_integer(n->loc.column));
    json_object_set_new(j, "cost", json_real(o->cost));
    if (seconds)
        json_object_set_new(j, "seconds", json_real(seconds[o->node]));
    if (o->before >= 0)
        json_object_set_new(j, "again", json_integer(o->before));
    json_object_set_new(j, "in", indices_json(o->in, o->n_in));
    json_object_set_new(j, "out", indices_json(o->out, o->n_out));
    return j;
}

/* By value of the graph: the slot in which it is made; views are made with what they show. */
static int slot_of_value(const StepFacts *f, ValueId v)
{
    const Node *n = value_node(f->graph, v);
    while (node_is_view(n)) {
        v = n->in[0];
        n = value_node(f->graph, v);
    }
    return f->slot_of[graph_value(f->graph, v)->def];
}

/* Views and pieces of the tensor in a buffer. */
static void put_views(json_t *views, const StepFacts *f, int buffer)
{
    const BufferFact *b = &f->buffer[buffer];
    for (int i = 0; i < b->n_held; i++) {
        ValueId v = b->held[i];
        if (v == b->value)
            continue;
        int slot = slot_of_value(f, v);
        json_array_append_new(views, json_pack("{s:i,s:s,s:i}", "buffer", buffer, "name",
                                               graph_value(f->graph, v)->name, "first",
                                               slot < b->first ? b->first : slot));
    }
}

static json_t *buffer_json(Pool *pool, const StepFacts *f, const BufferFact *b)
{
    json_t *j = json_pack("{s:s,s:s}", "name", buffer_fact_name(pool, f, b), "kind",
                          tensor_kind_name[b->kind]);
    if (b->kind != TENSOR_WORKSPACE)
        json_object_set_new(j, "type",
                            json_string(type_text(pool, value_type(f->graph, b->value))));
    json_object_set_new(j, "bytes", bytes_json(b->bytes));
    json_object_set_new(j, "first", json_integer(b->first));
    json_object_set_new(j, "end", json_integer(b->end));
    if (b->over >= 0)
        json_object_set_new(j, "over", json_integer(b->over));
    if (b->offset >= 0)
        json_object_set_new(j, "offset", bytes_json(b->offset));
    put_place(pool, j, &value_node(f->graph, b->value)->loc);
    return j;
}

/* For peaks that are lower by the percentages that the page offers. */
static json_t *shrink_json(Pool *pool, const StepFacts *f)
{
    static const int percents[] = {5, 10, 20, 30};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        const Shrink s = step_shrink(pool, f, percents[i]);
        json_t *tensors = json_array();
        for (int k = 0; k < s.n; k++)
            json_array_append_new(tensors,
                                  json_pack("[i,i]", s.tensor[k].buffer, s.tensor[k].moments));
        json_array_append_new(list,
                              json_pack("{s:i,s:I,s:i,s:b,s:o}", "percent", s.percent,
                                        "target_bytes", (json_int_t)s.target_bytes, "moments",
                                        s.moments, "enough", (int)s.enough, "tensors", tensors));
    }
    return list;
}

static json_t *step_json(Pool *pool, Packer *packer, const StepFacts *f, const double *seconds)
{
    json_t *load = json_array(), *operations = json_array(), *buffers = json_array(),
           *views = json_array();
    for (int t = 0; t < f->n_operations; t++) {
        json_array_append_new(load, bytes_json(f->load[t]));
        json_array_append_new(operations, operation_json(pool, f, &f->operation[t], seconds));
    }
    for (int b = 0; b < f->n_buffers; b++) {
        json_array_append_new(buffers, buffer_json(pool, f, &f->buffer[b]));
        put_views(views, f, b);
    }
    return json_pack("{s:i,s:I,s:i,s:I,s:o,s:o,s:o,s:o,s:o}", "forward_end", f->forward_end,
                     "persistent_bytes", (json_int_t)f->persistent_bytes, "peak_slot", f->peak_slot,
                     "peak_bytes", (json_int_t)f->peak_bytes, "shrink", shrink_json(pool, f),
                     "load", load, "operations", packed_rows(packer, operations), "buffers",
                     packed_rows(packer, buffers), "views", packed_rows(packer, views));
}

/* --- what is recomputed --- */

static json_t *rerun_json(const Report *r, const RerunEffect *e)
{
    const StepFacts *f = &r->planned;
    json_t *instead = json_array();
    for (int i = 0; i < e->n_instead; i++)
        json_array_append_new(instead, json_string(graph_value(f->graph, e->instead[i])->name));
    json_t *j =
        json_pack("{s:i,s:i,s:f,s:I,s:i,s:i,s:b,s:I,s:o}", "slot", e->slot, "of", e->before_slot,
                  "cost", f->operation[e->slot].cost, "bytes", (json_int_t)e->bytes, "from",
                  e->from, "to", e->to, "spans_peak", (int)e->spans_peak, "without_peak_bytes",
                  (json_int_t)e->without_peak_bytes, "instead", instead);
    if (r->node_seconds)
        json_object_set_new(j, "seconds", json_real(r->node_seconds[e->node]));
    return j;
}

static json_t *reruns_json(const Report *r)
{
    json_t *a = json_array();
    for (int i = 0; i < r->reruns.n; i++)
        json_array_append_new(a, rerun_json(r, &r->reruns.effect[i]));
    return a;
}

/* --- the model's text --- */

typedef struct LineFacts {
    int64_t peak_bytes;
    double cost, rerun_cost, seconds;
} LineFacts;

static int count_lines(const char *text)
{
    int n = 1;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void add_operations(const Report *r, LineFacts *line, uint32_t n_lines)
{
    for (int t = 0; t < r->planned.n_operations; t++) {
        const OperationFact *o = &r->planned.operation[t];
        uint32_t at = loc_line(&graph_node(r->planned.graph, o->node)->loc);
        if (at > n_lines)
            continue;
        line[at].cost += o->cost;
        line[at].rerun_cost += o->before >= 0 ? o->cost : 0;
        line[at].seconds += r->node_seconds ? r->node_seconds[o->node] : 0;
    }
}

static void add_peak(const StepFacts *f, LineFacts *line, uint32_t n_lines)
{
    for (int b = 0; b < f->n_buffers; b++) {
        const BufferFact *buffer = &f->buffer[b];
        uint32_t at = loc_line(&value_node(f->graph, buffer->value)->loc);
        if (at <= n_lines && buffer->first <= f->peak_slot && f->peak_slot < buffer->end)
            line[at].peak_bytes += buffer->bytes;
    }
}

/* Lines of which something is known; line 0, which is none, has what no line has made. */
static json_t *source_json(Pool *pool, const Report *r)
{
    const uint32_t n_lines = (uint32_t)count_lines(r->source);
    LineFacts *line = POOL_ARRAY(pool, n_lines + 1, LineFacts);
    json_t *lines = json_array();
    add_operations(r, line, n_lines);
    add_peak(&r->planned, line, n_lines);
    for (uint32_t i = 0; i <= n_lines; i++) {
        const LineFacts *l = &line[i];
        if (l->peak_bytes == 0 && l->cost == 0)
            continue;
        json_t *j =
            json_pack("{s:i,s:I,s:f,s:f}", "line", (int)i, "peak_bytes", (json_int_t)l->peak_bytes,
                      "cost", l->cost, "rerun_cost", l->rerun_cost);
        if (r->node_seconds)
            json_object_set_new(j, "seconds", json_real(l->seconds));
        json_array_append_new(lines, j);
    }
    return json_pack("{s:s,s:s,s:o}", "name", r->source_name, "text", r->source, "lines", lines);
}

/* --- all of it --- */

json_t *report_json(Pool *pool, Report *r)
{
    Packer packer = packer_new();
    json_t *kept = step_json(pool, &packer, &r->kept, NULL),
           *planned = step_json(pool, &packer, &r->planned, r->node_seconds);
    json_object_set(planned, "arena_bytes", json_object_get(r->plan, "arena_bytes"));
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:b,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:{s:s,s:o},s:o}",
                     "format", "scrimp.report.2", "version", r->version, "command", r->command,
                     "title", r->title, "device", r->device, "in_seconds", (int)r->in_seconds,
                     "plan", r->plan, "strings", packer_end(&packer), "kept", kept, "planned",
                     planned, "recomputations", reruns_json(r), "frontier", r->frontier, "solvers",
                     r->solvers, "source", source_json(pool, r), "ir", "before", r->ir_before,
                     "after", packed_text(r->ir_after, r->ir_before), "measured",
                     r->measured ? r->measured : json_null());
}
