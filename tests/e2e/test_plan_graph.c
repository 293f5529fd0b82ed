/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --graph: random graphs x solvers x budgets, each answer replayed by code that shares
 * nothing with scrimp.  SCRIMP_GRAPHS: how many graphs. */
#include "e2e.h"
#include "tests/support/graph_replay.h"
#include "tests/support/random_step.h"
#include "tests/support/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { FIRST_SEED = 1, N_GRAPHS = 60, COMPARE_EVERY = 11 };

static json_t *ref(int node, int output)
{
    return json_pack("[i,i]", node, output);
}

static json_t *new_output(Random *r, bool may_persist)
{
    json_t *o = json_pack("{s:i}", "bytes", random_below(r, 5) ? 1 + random_below(r, 999) : 0);
    if (random_below(r, 12) == 0)
        json_object_set_new(o, "keep", json_true());
    if (may_persist && random_below(r, 3) == 0)
        json_object_set_new(o, "persistent", json_true());
    return o;
}

/* A node before `n` and one of its outputs, recent ones more often; NULL when it has none or has
 * been overwritten. */
static json_t *pick(const json_t *nodes, int n, Random *r, const bool *gone)
{
    int from = random_below(r, 2) && n > 4 ? n - 1 - random_below(r, 4) : random_below(r, n);
    int outputs =
        (int)json_array_size(json_object_get(json_array_get(nodes, (size_t)from), "outputs"));
    int k = outputs ? random_below(r, outputs) : 0;
    return outputs && !gone[2 * from + k] ? ref(from, k) : NULL;
}

static json_t *new_node(const json_t *nodes, int n, Random *r, bool *gone, bool step)
{
    json_t *in = json_array(), *out = json_array(), *over = json_array();
    for (int k = random_below(r, 4); k > 0 && n > 0; k--) {
        json_t *chosen = pick(nodes, n, r, gone);
        if (chosen)
            json_array_append_new(in, chosen);
    }
    for (int k = random_below(r, 6) ? 1 : random_below(r, 3); k > 0; k--)
        json_array_append_new(out, new_output(r, json_array_size(in) == 0));
    json_t *node = json_pack("{s:f,s:o,s:o,s:s}", "time", random_below(r, 40) * 0.25, "inputs", in,
                             "outputs", out, "op", "x");
    if (random_below(r, 4) == 0)
        json_object_set_new(node, "workspace", json_integer(random_below(r, 500)));
    if (random_below(r, 6) == 0)
        json_object_set_new(node, "rerun", json_false());
    json_t *target =
        step && json_array_size(in) && random_below(r, 6) == 0 ? json_array_get(in, 0) : NULL;
    if (target) {
        json_array_append(over, target);
        gone[2 * number_at(target, 0) + number_at(target, 1)] = true;
        json_object_set(node, "overwrites", over);
    }
    json_decref(over);
    return node;
}

/* Half of the steps are a chain that is walked back, as training does. */
static json_t *random_graph(uint64_t seed)
{
    Random r = {seed};
    bool step = random_below(&r, 2), gone[128] = {false};
    int n = 1 + random_below(&r, step ? 40 : 20);
    json_t *nodes = json_array();
    for (int k = 0; k < n; k++)
        json_array_append_new(nodes, new_node(nodes, k, &r, gone, step));
    for (int k = n - 1; k >= 0 && step && seed % 4 < 2 && n < 30; k--) {
        json_t *in = json_pack("[o]", ref((int)json_array_size(nodes) - 1, 0));
        const json_t *of = json_object_get(json_array_get(nodes, (size_t)k), "outputs");
        if (json_array_size(of) && !gone[2 * k])
            json_array_append_new(in, ref(k, 0));
        size_t before = json_array_size(
            json_object_get(json_array_get(nodes, json_array_size(nodes) - 1), "outputs"));
        if (!before || (k == n - 1 && gone[2 * k]))
            json_array_remove(in, 0);
        json_array_append_new(nodes,
                              json_pack("{s:i,s:o,s:[{s:i}]}", "time", random_below(&r, 9),
                                        "inputs", in, "outputs", "bytes", random_below(&r, 500)));
    }
    return json_pack("{s:s,s:s,s:o}", "format", "scrimp.graph.1", "kind", step ? "step" : "forward",
                     "nodes", nodes);
}

static void expect_answer(const json_t *graph, const json_t *row, const char *what)
{
    Played p = play_schedule(graph, json_object_get(row, "schedule"));
    double time = json_get_number(row, "time"), peak = json_get_number(row, "peak_bytes");
    const char *status = json_string_value(json_object_get(row, "status"));
    const json_t *budget = json_object_get(row, "budget_bytes");
    EXPECT(!p.fault, what);
    EXPECT(peak == (double)p.peak, what);
    EXPECT(fabs(time - p.time) <= 1e-12 * p.time, what);
    EXPECT(fabs(json_get_number(row, "time_once") - p.time_once) <= 1e-12 * p.time_once, what);
    EXPECT(json_get_number(row, "peak_lower_bound_bytes") <= peak, what);
    EXPECT(json_get_number(row, "persistent_bytes") <= peak, what);
    bool fits = !json_is_integer(budget) || peak <= json_number_value(budget);
    EXPECT(fits == (strcmp(status, "infeasible") != 0), what);
    if (!fits) {
        EXPECT(json_get_number(row, "min_feasible_bytes") == peak, what);
        return;
    }
    EXPECT(json_get_number(row, "arena_lower_bound_bytes") == peak, what);
    EXPECT(json_get_number(row, "arena_bytes") >= peak, what);
    double lower = json_get_number(row, "overhead_lower_bound_percent");
    EXPECT(lower >= 0 && lower < 1e9, what);
    EXPECT(p.time_once == 0 || lower <= 100 * (p.time / p.time_once - 1) + 1e-6, what);
}

/* Replays the answer of the default solver, and of every other one for some seeds (the exhaustive
 * ones take a second); returns how many recompute something. */
static int check_budget(const json_t *graph, uint64_t seed, const char *budget)
{
    char what[100];
    int recomputing = 0;
    bool compare = seed % COMPARE_EVERY == 0;
    Result r = run("$SCRIMP plan --graph $TMP/graph.json %s --schedule --json --budget %s",
                   compare ? "--compare" : "", budget);
    json_t *rows = json_loads(r.out, 0, NULL);
    if (!compare)
        rows = json_pack("[o]", rows);
    EXPECT((r.code == 0 || r.code == 3) && json_array_size(rows) >= (compare ? 3 : 1), r.err);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        snprintf(what, sizeof what, "seed %llu, %s at %s", (unsigned long long)seed,
                 json_string_value(json_object_get(row, "solver")), budget);
        expect_answer(graph, row, what);
        recomputing += json_get_number(row, "recomputed_ops") > 0;
    }
    json_decref(rows);
    result_free(&r);
    return recomputing;
}

static void check_given_order(const json_t *graph)
{
    json_t *row = run_json(0, "$SCRIMP plan --graph - --schedule --json < $TMP/graph.json");
    const json_t *schedule = json_object_get(row, "schedule");
    expect_answer(graph, row, "no budget");
    for (size_t i = 0; i < json_array_size(schedule); i++)
        EXPECT(number_at(schedule, i) == (int64_t)i, "without a budget the order stays");
    json_decref(row);
}

static void test_random_graphs(void)
{
    static const char *const budgets[] = {"min", "35%", "70%", "100%"};
    int n = sample_number("SCRIMP_GRAPHS", N_GRAPHS), recomputing = 0;
    printf("seeds %d to %d\n", FIRST_SEED, FIRST_SEED + n - 1);
    for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + (uint64_t)n; seed++) {
        char path[400];
        json_t *graph = random_graph(seed);
        snprintf(path, sizeof path, "%s/graph.json", e2e_tmp());
        EXPECT(json_dump_file(graph, path, 0) == 0, path);
        for (size_t k = seed % 2; k < 4; k += 2)
            recomputing += check_budget(graph, seed, budgets[k]);
        if (seed % 16 == 0)
            check_given_order(graph);
        json_decref(graph);
    }
    printf("%d answers recompute\n", recomputing);
    EXPECT(recomputing > n / 4, "the graphs leave something to recompute");
}

/* A chain whose answer can be told by hand: of six equal values walked back, a budget of one value
 * less makes one of them again. */
static void test_chain(void)
{
    json_t *nodes = json_array();
    for (int k = 0; k < 6; k++)
        json_array_append_new(nodes, json_pack("{s:i,s:o,s:[{s:i}]}", "time", 1, "inputs",
                                               k ? json_pack("[[i,i]]", k - 1, 0) : json_array(),
                                               "outputs", "bytes", 100));
    json_t *graph =
        json_pack("{s:s,s:s,s:o}", "format", "scrimp.graph.1", "kind", "forward", "nodes", nodes);
    char path[400];
    snprintf(path, sizeof path, "%s/graph.json", e2e_tmp());
    json_dump_file(graph, path, 0);
    json_t *all = run_json(0, "$SCRIMP plan --graph $TMP/graph.json --json");
    EXPECT(json_get_number(all, "time") == 18, "6 forward, 12 backward");
    EXPECT(json_get_number(all, "keep_all_peak_bytes") == 700, "six values and a gradient");
    json_t *less = run_json(0, "$SCRIMP plan --graph $TMP/graph.json --budget 600B --json");
    EXPECT(json_get_number(less, "time") == 19, "one of them runs again");
    EXPECT(strcmp(json_string_value(json_object_get(less, "status")), "optimal") == 0,
           "so few nodes are searched exactly");
    json_t *min = run_json(0, "$SCRIMP plan --graph $TMP/graph.json --budget min --json");
    double peak = json_get_number(min, "peak_bytes");
    json_t *none =
        run_json(3, "$SCRIMP plan --graph $TMP/graph.json --budget %.0fB --json", peak - 1);
    EXPECT(json_get_number(none, "min_feasible_bytes") == peak, "a byte less than the least");
    EXPECT(json_is_true(json_object_get(none, "infeasible_proven")), "is proven to be too little");
    json_decref(all);
    json_decref(less);
    json_decref(min);
    json_decref(none);
    json_decref(graph);
}

/* A moment is enough for an answer, and the answer is sound. */
static void test_time_limit(void)
{
    json_t *nodes = json_array();
    for (int k = 0; k < 400; k++)
        json_array_append_new(nodes, json_pack("{s:i,s:o,s:[{s:i}]}", "time", 1 + k % 7, "inputs",
                                               k ? json_pack("[[i,i]]", k - 1, 0) : json_array(),
                                               "outputs", "bytes", 100 + k % 31));
    json_t *graph =
        json_pack("{s:s,s:s,s:o}", "format", "scrimp.graph.1", "kind", "forward", "nodes", nodes);
    char path[400];
    snprintf(path, sizeof path, "%s/graph.json", e2e_tmp());
    json_dump_file(graph, path, 0);
    Result r = run("$SCRIMP plan --graph $TMP/graph.json --budget 50%% --time-limit 0.000001 "
                   "--schedule --json");
    json_t *row = json_loads(r.out, 0, NULL);
    EXPECT(r.code == 0 || r.code == 3, r.err);
    expect_answer(graph, row, "under a time limit");
    json_decref(row);
    json_decref(graph);
    result_free(&r);
}

/* Of two runs of n1 the first is read and the second overwritten: no order of the runs may put the
 * overwriting one between them. */
static void test_overwritten_beside_kept(void)
{
    static const char text[] =
        "{\"format\": \"scrimp.graph.1\", \"kind\": \"step\", \"nodes\": ["
        "{\"name\": \"n1\", \"time\": 1, \"outputs\": [{\"bytes\": 1}]},"
        "{\"name\": \"n2\", \"time\": 0, \"outputs\": [{\"bytes\": 0}, {\"bytes\": 1, "
        "\"keep\": true}]},"
        "{\"name\": \"n3\", \"time\": 1, \"inputs\": [[0, 0], [1, 0]], \"outputs\": "
        "[{\"bytes\": 1}]},"
        "{\"name\": \"up\", \"time\": 1, \"inputs\": [[0, 0]], \"overwrites\": [[0, 0]]}]}";
    json_t *graph = json_loads(text, 0, NULL);
    char path[400];
    snprintf(path, sizeof path, "%s/graph.json", e2e_tmp());
    EXPECT(json_dump_file(graph, path, 0) == 0, path);
    json_t *row = run_json(
        0, "$SCRIMP plan --graph $TMP/graph.json --budget min --no-cache --schedule --json");
    expect_answer(graph, row, "overwritten beside kept");
    EXPECT(json_get_number(row, "peak_bytes") == 2, "n2 runs again, last");
    json_decref(row);
    json_decref(graph);
}

/* A message names what may help: a longer limit, or the default solver. */
static void expect_message(const char *options, const char *part)
{
    Result r = run("$SCRIMP plan --graph $TMP/graph.json --no-cache %s", options);
    EXPECT(r.code == 3, r.err);
    EXPECT(strstr(r.err, part), r.err);
    result_free(&r);
}

static json_t *chain_graph(int n)
{
    json_t *nodes = json_array();
    for (int k = 0; k < n; k++)
        json_array_append_new(nodes, json_pack("{s:i,s:o,s:[{s:i}]}", "time", 1, "inputs",
                                               k ? json_pack("[[i,i]]", k - 1, 0) : json_array(),
                                               "outputs", "bytes", 1000));
    return json_pack("{s:s,s:s,s:o}", "format", "scrimp.graph.1", "kind", "forward", "nodes",
                     nodes);
}

static void write_graph(json_t *graph)
{
    char path[400];
    snprintf(path, sizeof path, "%s/graph.json", e2e_tmp());
    EXPECT(json_dump_file(graph, path, 0) == 0, path);
    json_decref(graph);
}

static double seconds_of_children(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)u.ru_utime.tv_sec + 1e-6 * (double)u.ru_utime.tv_usec;
}

/* 100,000 nodes in wide layers, of which the order alone would take ten seconds: neither that
 * search nor the placement of an answer that does not fit may go on when time is up. */
static void test_time_limit_large(void)
{
    enum { NODES = 50000, WIDTH = 20 };
    Random r = {3};
    json_t *nodes = json_array();
    for (int k = 0; k < NODES; k++) {
        int layer = k / WIDTH;
        json_t *inputs = json_array();
        for (int i = 0; layer > 0 && i < 3; i++)
            json_array_append_new(inputs, ref((layer - 1) * WIDTH + random_below(&r, WIDTH), 0));
        json_array_append_new(nodes, json_pack("{s:i,s:o,s:[{s:i}]}", "time", 1, "inputs", inputs,
                                               "outputs", "bytes", 100 + random_below(&r, 999)));
    }
    write_graph(
        json_pack("{s:s,s:s,s:o}", "format", "scrimp.graph.1", "kind", "forward", "nodes", nodes));
    double begin = seconds_of_children();
    expect_message("--budget 50% --time-limit 0.01", "a longer --time-limit may find");
    double seconds = seconds_of_children() - begin;
    char what[100];
    snprintf(what, sizeof what, "100,000 nodes with a limit of 0.01 s: %.1f s", seconds);
    printf("%s\n", what);
    EXPECT(seconds < 5, what);
}

static void test_ways_out(void)
{
    write_graph(chain_graph(60000));
    expect_message("--budget 1% --time-limit 0.001", "a longer --time-limit may find");
    write_graph(chain_graph(60));
    expect_message("--budget 50% --solver none", "--solver scrimp");
    expect_message("--budget 50% --solver checkmate_ilp", "graphs of up to 40 operations");
    expect_message("--budget 1B", "1B");
    json_t *row = run_json(3, "$SCRIMP plan --graph $TMP/graph.json --no-cache --budget 50%% "
                              "--solver checkmate_ilp --json");
    EXPECT(strcmp(json_string_value(json_object_get(row, "status")), "limit") == 0,
           "too large for the solver");
    json_decref(row);
    write_graph(chain_graph(6)); /* searched exactly: 3 values and a gradient are too little */
    row = run_json(3, "$SCRIMP plan --graph $TMP/graph.json --no-cache --budget 3999B --json");
    EXPECT(json_is_true(json_object_get(row, "infeasible_proven")), "proven");
    EXPECT(json_is_null(json_object_get(row, "overhead_lower_bound_percent")), "null");
    json_decref(row);
}

int main(void)
{
    e2e_begin();
    test_ways_out();
    test_overwritten_beside_kept();
    test_time_limit();
    test_time_limit_large();
    test_chain();
    test_random_graphs();
    return e2e_end();
}
