/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/graph_replay.h"

#include <string.h>

int64_t number_at(const json_t *array, size_t i)
{
    return json_integer_value(json_array_get(array, i));
}

static int64_t bytes_at(const json_t *nodes, const json_t *ref)
{
    const json_t *made =
        json_object_get(json_array_get(nodes, (size_t)number_at(ref, 0)), "outputs");
    return json_integer_value(
        json_object_get(json_array_get(made, (size_t)number_at(ref, 1)), "bytes"));
}

static bool holds_ref(const json_t *refs, int64_t node, int64_t output)
{
    for (size_t k = 0; k < json_array_size(refs); k++)
        if (number_at(json_array_get(refs, k), 0) == node &&
            number_at(json_array_get(refs, k), 1) == output)
            return true;
    return false;
}

/* b_v for every node v of a forward graph, last first. */
static json_t *replay_nodes(const json_t *graph)
{
    json_t *nodes = json_deep_copy(json_object_get(graph, "nodes"));
    int64_t n = (int64_t)json_array_size(nodes);
    if (strcmp(json_string_value(json_object_get(graph, "kind")), "forward") != 0)
        return nodes;
    for (int64_t v = n - 1; v >= 0; v--) {
        const json_t *of = json_array_get(nodes, (size_t)v);
        const json_t *read = json_object_get(of, "inputs");
        json_t *in = json_array(), *distinct = json_array();
        int64_t bytes = 0;
        for (size_t k = 0; k < json_array_size(read); k++) {
            json_t *ref = json_array_get(read, k);
            if (holds_ref(distinct, number_at(ref, 0), number_at(ref, 1)))
                continue;
            json_array_append(distinct, ref);
            json_array_append(in, ref);
            bytes += bytes_at(nodes, ref);
        }
        for (size_t k = 0; k < json_array_size(json_object_get(of, "outputs")); k++)
            json_array_append_new(in, json_pack("[I,I]", (json_int_t)v, (json_int_t)k));
        for (int64_t w = v + 1; w < n; w++) {
            const json_t *others = json_object_get(json_array_get(nodes, (size_t)w), "inputs");
            for (size_t k = 0; k < json_array_size(others); k++)
                if (number_at(json_array_get(others, k), 0) == v) {
                    json_array_append_new(in, json_pack("[I,i]", (json_int_t)(2 * n - 1 - w), 0));
                    break;
                }
        }
        double time = 2 * json_number_value(json_object_get(of, "time"));
        json_array_append_new(nodes, json_pack("{s:f,s:o,s:[{s:I}]}", "time", time, "inputs", in,
                                               "outputs", "bytes", (json_int_t)bytes));
        json_decref(distinct);
    }
    return nodes;
}

static bool flag_of(const json_t *o, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(o, key);
    return value ? json_is_true(value) : otherwise;
}

/* Whether run `at` of the schedule reads output k of the node that ran at `made`; only asked while
 * no later run of that node lies between. */
static bool reads_at(const json_t *nodes, const json_t *schedule, size_t at, int64_t node, size_t k)
{
    const json_t *reader = json_array_get(nodes, (size_t)number_at(schedule, at));
    return holds_ref(json_object_get(reader, "inputs"), node, (int64_t)k);
}

/* The last run at which output k of run `made` is alive. */
static size_t last_alive(const json_t *nodes, const json_t *schedule, size_t made, size_t k)
{
    int64_t node = number_at(schedule, made);
    size_t last = made, i = made + 1, n = json_array_size(schedule);
    for (; i < n; i++) {
        if (reads_at(nodes, schedule, i, node, k))
            last = i;
        if (number_at(schedule, i) == node)
            break;
    }
    const json_t *outputs = json_object_get(json_array_get(nodes, (size_t)node), "outputs");
    return i == n && flag_of(json_array_get(outputs, k), "keep", false) ? n - 1 : last;
}

/* Every read finds a value: made by an earlier run, and never overwritten before. */
static const char *reads_fault(const json_t *nodes, const json_t *schedule, size_t at)
{
    const json_t *in =
        json_object_get(json_array_get(nodes, (size_t)number_at(schedule, at)), "inputs");
    for (size_t k = 0; k < json_array_size(in); k++) {
        int64_t node = number_at(json_array_get(in, k), 0),
                output = number_at(json_array_get(in, k), 1);
        bool found = false;
        for (size_t i = at; i-- > 0;) {
            const json_t *run = json_array_get(nodes, (size_t)number_at(schedule, i));
            if (holds_ref(json_object_get(run, "overwrites"), node, output))
                return "reads what has been overwritten";
            found |= number_at(schedule, i) == node;
        }
        if (!found)
            return "reads what has not been made";
    }
    return NULL;
}

static const char *runs_fault(const json_t *nodes, const json_t *schedule)
{
    size_t n = json_array_size(nodes);
    for (size_t v = 0; v < n; v++) {
        size_t runs = 0;
        for (size_t i = 0; i < json_array_size(schedule); i++)
            runs += number_at(schedule, i) == (int64_t)v;
        if (runs == 0)
            return "a node never runs";
        if (runs > 1 && !flag_of(json_array_get(nodes, v), "rerun", true))
            return "a node runs again and must not";
    }
    for (size_t i = 0; i < json_array_size(schedule); i++) {
        if (number_at(schedule, i) < 0 || number_at(schedule, i) >= (int64_t)n)
            return "no such node";
        const char *fault = reads_fault(nodes, schedule, i);
        if (fault)
            return fault;
    }
    return NULL;
}

static int64_t peak_of(const json_t *nodes, const json_t *schedule)
{
    size_t len = json_array_size(schedule);
    int64_t persistent = 0, peak = 0;
    int64_t *alive = calloc(len + 1, sizeof *alive);
    for (size_t v = 0; v < json_array_size(nodes); v++) {
        const json_t *out = json_object_get(json_array_get(nodes, v), "outputs");
        for (size_t k = 0; k < json_array_size(out); k++)
            if (flag_of(json_array_get(out, k), "persistent", false))
                persistent += json_integer_value(json_object_get(json_array_get(out, k), "bytes"));
    }
    for (size_t i = 0; i < len; i++) {
        const json_t *node = json_array_get(nodes, (size_t)number_at(schedule, i));
        const json_t *out = json_object_get(node, "outputs");
        alive[i] += json_integer_value(json_object_get(node, "workspace"));
        for (size_t k = 0; k < json_array_size(out); k++) {
            const json_t *o = json_array_get(out, k);
            size_t last = last_alive(nodes, schedule, i, k);
            for (size_t t = i; t <= last && !flag_of(o, "persistent", false); t++)
                alive[t] += json_integer_value(json_object_get(o, "bytes"));
        }
    }
    for (size_t i = 0; i < len; i++)
        peak = alive[i] > peak ? alive[i] : peak;
    free(alive);
    return persistent + peak;
}

Played play_schedule(const json_t *graph, const json_t *schedule)
{
    json_t *nodes = replay_nodes(graph);
    Played p = {.fault = runs_fault(nodes, schedule)};
    for (size_t v = 0; v < json_array_size(nodes); v++)
        p.time_once += json_number_value(json_object_get(json_array_get(nodes, v), "time"));
    for (size_t i = 0; i < json_array_size(schedule) && !p.fault; i++)
        p.time += json_number_value(
            json_object_get(json_array_get(nodes, (size_t)number_at(schedule, i)), "time"));
    if (!p.fault)
        p.peak = peak_of(nodes, schedule);
    json_decref(nodes);
    return p;
}
