/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --count, summary --count --out, dump --stage=grad --json, --stop-at: papers' figures on
 * papers' graphs, and graphs of models that another program can replay. */
#include "e2e.h"
#include "tests/support/graph_replay.h"

#include <stdio.h>
#include <string.h>

static const json_t *row_of(const json_t *table, const char *solver, const char *strategy)
{
    const json_t *rows = json_object_get(table, "rows");
    for (size_t k = 0; k < json_array_size(rows); k++) {
        const json_t *row = json_array_get(rows, k);
        if (strcmp(json_string_value(json_object_get(row, "solver")), solver) == 0 &&
            strcmp(json_string_value(json_object_get(row, "strategy")), strategy) == 0)
            return row;
    }
    EXPECT(!"a row", solver);
    return NULL;
}

/* Feng and Huang's solver has 6,021,120 elements for ResNet-50 beside source and target
 * (tests/zoo_optima.csv). */
static void test_feng(void)
{
    json_t *t = run_json(0, "$SCRIMP plan $EXAMPLES/resnet.scrimp -D depth=50 -D N=2 --count "
                            "feng2021 --json");
    double ends = 224 * 224 * 3 + 1000;
    EXPECT(json_get_number(t, "vertices") == 106, "vertices");
    EXPECT(json_get_number(t, "graph_bytes") == 2 * 4 * 21076968.0, "bytes");
    EXPECT(json_get_number(row_of(t, "feng_acg", "checkpoints"), "model_bytes") ==
               2 * 4 * (6021120 + ends),
           "optimum");
    json_decref(t);
}

/* What slow_kusumoto finds for ResNet-50 at batch 96; exact is never worse, nothing recomputes more
 * than one forward pass, and liveness never costs. */
static void test_kusumoto(void)
{
    static const char *const strategies[] = {"time-centric", "memory-centric"};
    json_t *t = run_json(0, "$SCRIMP plan $EXAMPLES/resnet.scrimp -D depth=50 -D variant=chainer "
                            "-D N=96 --count kusumoto --json");
    for (int k = 0; k < 2; k++) {
        const json_t *approx = row_of(t, "kusumoto_approx", strategies[k]);
        const json_t *exact = row_of(t, "kusumoto_exact", strategies[k]);
        double peak = json_get_number(exact, "model_bytes");
        EXPECT(peak <= json_get_number(approx, "model_bytes"), strategies[k]);
        EXPECT(peak > 3.77e9 && peak < 3.78e9, strategies[k]);
        EXPECT(json_get_number(exact, "live_overhead") < json_get_number(t, "graph_time"),
               strategies[k]);
        EXPECT(json_get_number(approx, "live_bytes") < json_get_number(t, "all_kept_bytes"),
               strategies[k]);
    }
    EXPECT(json_get_number(row_of(t, "kusumoto_exact", "time-centric"), "model_overhead") == 385,
           "overhead");
    json_decref(t);
}

/* Nodes 0, 1, 2, ...: of a forward graph also the backward part. */
static int64_t peak_of_base_order(const char *path)
{
    json_t *graph = json_load_file(path, 0, NULL), *order = json_array();
    EXPECT(graph != NULL, path);
    bool forward = strcmp(json_string_value(json_object_get(graph, "kind")), "forward") == 0;
    size_t n = json_array_size(json_object_get(graph, "nodes"));
    for (size_t k = 0; k < (forward ? 2 * n : n); k++)
        json_array_append_new(order, json_integer((json_int_t)k));
    Played p = play_schedule(graph, order);
    EXPECT(!p.fault, path);
    json_decref(graph);
    json_decref(order);
    return p.peak;
}

static char *path_of(char *buffer, size_t size, const char *name)
{
    snprintf(buffer, size, "%s/%s", e2e_tmp(), name);
    return buffer;
}

static void test_graphs(void)
{
    char path[512];
    Result r = run("$SCRIMP summary $EXAMPLES/unet.scrimp -D N=1 --count kusumoto --out "
                   "$TMP/count.json");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    json_t *t = run_json(0, "$SCRIMP plan $EXAMPLES/unet.scrimp -D N=1 --count kusumoto --json");
    EXPECT((double)peak_of_base_order(path_of(path, sizeof path, "count.json")) ==
               json_get_number(t, "all_kept_bytes"),
           "the step that keeps everything");
    json_decref(t);
    r = run("$SCRIMP dump $EXAMPLES/mlp.scrimp --stage=grad --json > $TMP/step.json");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    t = run_json(0, "$SCRIMP plan --graph $TMP/step.json --json");
    json_t *model = run_json(0, "$SCRIMP plan $EXAMPLES/mlp.scrimp --json");
    EXPECT((double)peak_of_base_order(path_of(path, sizeof path, "step.json")) ==
               json_get_number(t, "keep_all_peak_bytes"),
           "the step in its order");
    EXPECT(json_get_number(t, "persistent_bytes") == json_get_number(model, "persistent_bytes"),
           "weights and state");
    json_decref(model);
    json_decref(t);
}

/* More bags than there are: everything at once, in topological order. */
static void test_stop_at(void)
{
    json_t *all = run_json(0, "$SCRIMP plan --graph $TMP/step.json --solver twremat --stop-at "
                              "100000 --budget min --json");
    json_t *least = run_json(0, "$SCRIMP plan --graph $TMP/step.json --solver twremat --stop-at 1 "
                                "--budget min --json");
    EXPECT(json_get_number(all, "recomputed_ops") == 0, "no recomputation");
    EXPECT(json_get_number(all, "treewidth") > 1, "width");
    EXPECT(json_get_number(all, "treewidth") == json_get_number(least, "treewidth"), "width");
    EXPECT(json_get_number(least, "peak_bytes") <= json_get_number(all, "peak_bytes"), "peak");
    json_decref(all);
    json_decref(least);
}

static void expect_error(const char *options, const char *text)
{
    Result r = run("$SCRIMP %s", options);
    EXPECT(r.code == 1 && strstr(r.err, text), r.err);
    result_free(&r);
}

static void test_errors(void)
{
    expect_error("plan $EXAMPLES/mlp.scrimp --budget min --stop-at 2", "E407");
    expect_error("plan $EXAMPLES/mlp.scrimp --count kusumoto --budget min", "E407");
    expect_error("plan $EXAMPLES/mlp.scrimp --count kusumot", "did you mean `kusumoto`");
    expect_error("summary $EXAMPLES/mlp.scrimp --out $TMP/x.json", "E407");
    expect_error("summary $EXAMPLES/mlp.scrimp --count kusumoto --out $TMP/no/x.json", "E411");
    expect_error("dump $EXAMPLES/mlp.scrimp --json", "E303");
}

int main(void)
{
    e2e_begin();
    test_feng();
    test_kusumoto();
    test_graphs();
    test_stop_at();
    test_errors();
    return e2e_end();
}
