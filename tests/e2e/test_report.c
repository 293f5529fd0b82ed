/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The data in the page of `report`: lives add up to loads and loads to the plan's figures, buffers
 * of the arena do not overlap, recomputations cost what the plan says, and rows are those of
 * `plan --json`.  What the page makes of them is tested in a browser (tests/report/). */
#include "e2e.h"
#include "report_data.h"
#include "tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t integer(const json_t *o, const char *key)
{
    return (int64_t)json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* --- a step --- */

static bool is_persistent(const json_t *buffer)
{
    const char *kind = text(buffer, "kind");
    return strcmp(kind, "weights") == 0 || strcmp(kind, "statistics") == 0 ||
           strcmp(kind, "optimizer") == 0;
}

static void expect_loads(const json_t *step, const char *what)
{
    const json_t *load = json_object_get(step, "load"), *b;
    size_t n = json_array_size(load), i;
    int64_t *sum = calloc(n + 1, sizeof *sum), persistent = 0, peak = 0;
    json_array_foreach(json_object_get(step, "buffers"), i, b)
    {
        int64_t first = integer(b, "first"), end = integer(b, "end");
        EXPECT(first >= 0 && first < end && end <= (int64_t)n, what);
        if (strncmp(text(b, "name") + 1, "d.", 2) == 0)
            EXPECT(strcmp(text(b, "kind"), "activation") != 0, text(b, "name"));
        persistent += is_persistent(b) ? integer(b, "bytes") : 0;
        for (int64_t t = first; t < end && t < (int64_t)n; t++)
            sum[t] += integer(b, "bytes");
    }
    EXPECT(n > 0 && n == json_array_size(json_object_get(step, "operations")), what);
    EXPECT(persistent == integer(step, "persistent_bytes"), what);
    for (size_t t = 0; t < n; t++) {
        int64_t said = (int64_t)json_integer_value(json_array_get(load, t));
        EXPECT(said == sum[t], what);
        peak = said > peak ? said : peak;
    }
    EXPECT(peak == integer(step, "peak_bytes"), what);
    EXPECT(sum[integer(step, "peak_slot")] == peak, what);
    free(sum);
}

/* Bytes above a target in the fullest operation, and how many operations are above it. */
static int64_t above(const int64_t *load, size_t n, int64_t target, int64_t *moments)
{
    int64_t most = 0;
    *moments = 0;
    for (size_t t = 0; t < n; t++) {
        *moments += load[t] > target;
        most = load[t] - target > most ? load[t] - target : most;
    }
    return most;
}

/* Without the tensors that are named nothing is above the target; without the last of them
 * something is. */
static void expect_shrink(const json_t *step, const json_t *shrink, const char *what)
{
    const json_t *list = json_object_get(step, "load"), *tensor;
    const json_t *tensors = json_object_get(shrink, "tensors");
    size_t n = json_array_size(list), i;
    int64_t *load = calloc(n + 1, sizeof *load), target = integer(shrink, "target_bytes"), moments;
    for (size_t t = 0; t < n; t++)
        load[t] = (int64_t)json_integer_value(json_array_get(list, t));
    EXPECT(target == integer(step, "peak_bytes") * (100 - integer(shrink, "percent")) / 100, what);
    EXPECT(above(load, n, target, &moments) > 0 && moments == integer(shrink, "moments"), what);
    json_array_foreach(tensors, i, tensor)
    {
        const json_t *b = json_array_get(json_object_get(step, "buffers"),
                                         (size_t)json_integer_value(json_array_get(tensor, 0)));
        int64_t lives = 0, left;
        EXPECT(!is_persistent(b) && above(load, n, target, &left) > 0, text(b, "name"));
        for (int64_t t = integer(b, "first"); t < integer(b, "end"); t++) {
            lives += json_integer_value(json_array_get(list, (size_t)t)) > target;
            load[t] -= integer(b, "bytes");
        }
        EXPECT(lives == json_integer_value(json_array_get(tensor, 1)), text(b, "name"));
    }
    EXPECT(json_is_true(json_object_get(shrink, "enough")) ==
               (above(load, n, target, &moments) == 0),
           what);
    EXPECT(i > 0, what);
    free(load);
}

static void expect_shrinks(const json_t *step, const char *what)
{
    const json_t *list = json_object_get(step, "shrink"), *shrink;
    size_t i;
    json_array_foreach(list, i, shrink) expect_shrink(step, shrink, what);
    EXPECT(i == 4, what);
}

static bool together(const json_t *a, const json_t *b)
{
    return integer(a, "first") < integer(b, "end") && integer(b, "first") < integer(a, "end");
}

static bool overlap(const json_t *a, const json_t *b)
{
    int64_t at = integer(a, "offset"), to = integer(b, "offset");
    return at < to + integer(b, "bytes") && to < at + integer(a, "bytes");
}

static void expect_placed(const json_t *step, const char *what)
{
    const json_t *buffers = json_object_get(step, "buffers"), *a, *b;
    size_t i;
    json_array_foreach(buffers, i, a)
    {
        EXPECT(integer(a, "offset") + integer(a, "bytes") <= integer(step, "arena_bytes"), what);
        for (size_t k = 0; k < i; k++) {
            b = json_array_get(buffers, k);
            EXPECT(!together(a, b) || !overlap(a, b), what);
        }
    }
}

/* An operation writes one of its results over an input: that is in memory up to then. */
static bool is_written_over(const json_t *step, const json_t *operation, const json_t *input)
{
    const json_t *out;
    size_t i;
    json_array_foreach(json_object_get(operation, "out"), i, out)
    {
        const json_t *b =
            json_array_get(json_object_get(step, "buffers"), (size_t)json_integer_value(out));
        if (json_object_get(b, "over") && integer(b, "over") == json_integer_value(input))
            return true;
    }
    return false;
}

/* What an operation reads and writes is in memory while it runs. */
static void expect_present(const json_t *step, const char *what)
{
    const json_t *buffers = json_object_get(step, "buffers"), *o, *index;
    static const char *const sides[] = {"in", "out"};
    size_t t, i;
    json_array_foreach(json_object_get(step, "operations"), t, o)
    {
        for (int side = 0; side < 2; side++)
            json_array_foreach(json_object_get(o, sides[side]), i, index)
            {
                const json_t *b = json_array_get(buffers, (size_t)json_integer_value(index));
                bool there = integer(b, "first") <= (int64_t)t && (int64_t)t < integer(b, "end");
                EXPECT(there || (side == 0 && is_written_over(step, o, index)), what);
            }
    }
}

/* One tensor follows the other in the same bytes, without a gap. */
static void expect_chains(const json_t *step, const char *what)
{
    const json_t *buffers = json_object_get(step, "buffers"), *b;
    size_t i, n = 0;
    json_array_foreach(buffers, i, b)
    {
        if (!json_object_get(b, "over"))
            continue;
        const json_t *before = json_array_get(buffers, (size_t)integer(b, "over"));
        EXPECT(integer(before, "end") == integer(b, "first"), text(b, "name"));
        EXPECT(integer(before, "offset") == integer(b, "offset"), text(b, "name"));
        EXPECT(integer(before, "bytes") == integer(b, "bytes"), text(b, "name"));
        n++;
    }
    EXPECT(n > 0, what);
}

static double cost_of(const json_t *step, bool again)
{
    double sum = 0;
    const json_t *o;
    size_t t;
    json_array_foreach(json_object_get(step, "operations"), t, o) sum +=
        again && !json_object_get(o, "again") ? 0 : json_get_number(o, "cost");
    return sum;
}

/* --- what is computed again --- */

/* "%h.ln#1~2" without "~2", or NAME as it is. */
static size_t base_length(const char *name)
{
    const char *tilde = strrchr(name, '~');
    return tilde ? (size_t)(tilde - name) : strlen(name);
}

static void expect_reruns(const json_t *data, const char *what)
{
    const json_t *step = json_object_get(data, "planned"), *plan = json_object_get(data, "plan"),
                 *r;
    const json_t *operations = json_object_get(step, "operations");
    size_t i, n = json_array_size(json_object_get(data, "recomputations"));
    EXPECT((int64_t)n == integer(plan, "recomputed_ops"), what);
    json_array_foreach(json_object_get(data, "recomputations"), i, r)
    {
        const json_t *run = json_array_get(operations, (size_t)integer(r, "slot"));
        const json_t *before = json_array_get(operations, (size_t)integer(r, "of"));
        const char *name = text(run, "name"), *first = text(before, "name");
        EXPECT(integer(run, "again") == integer(r, "of"), name);
        EXPECT(base_length(name) == base_length(first) &&
                   strncmp(name, first, base_length(name)) == 0,
               name);
        EXPECT(json_array_size(json_object_get(r, "instead")) > 0, name);
        EXPECT(integer(r, "without_peak_bytes") >= integer(plan, "persistent_bytes"), name);
    }
    if (integer(plan, "masked_tensors") == 0) {
        double percent = 100 * cost_of(step, true) / cost_of(json_object_get(data, "kept"), false);
        EXPECT(fabs(percent - json_get_number(plan, "overhead_percent")) < 1e-5, what);
    }
}

static void expect_lines(const json_t *data, const char *what)
{
    int64_t peak = 0;
    double cost = 0;
    const json_t *line;
    size_t i;
    json_array_foreach(json_object_get(json_object_get(data, "source"), "lines"), i, line)
    {
        peak += integer(line, "peak_bytes");
        cost += json_get_number(line, "cost");
    }
    EXPECT(peak == integer(json_object_get(data, "planned"), "peak_bytes"), what);
    EXPECT(fabs(cost / cost_of(json_object_get(data, "planned"), false) - 1) < 1e-6, what);
}

/* --- rows of `plan --json` --- */

static void expect_same_row(json_t *a, json_t *b, const char *what)
{
    json_object_del(a, "solve_seconds");
    json_object_del(b, "solve_seconds");
    EXPECT(json_equal(a, b), what);
}

static void expect_same_rows(json_t *a, json_t *b, const char *what)
{
    size_t i;
    json_t *row;
    EXPECT(json_array_size(a) == json_array_size(b) && json_array_size(a) > 1, what);
    json_array_foreach(a, i, row) expect_same_row(row, json_array_get(b, i), what);
}

static void expect_rows(const json_t *data, const char *model, const char *budget)
{
    json_t *plan = run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget %s --json", model, budget);
    json_t *sweep = run_json(0, "$SCRIMP plan $EXAMPLES/%s --sweep 3 --json", model);
    json_t *all =
        run_json(0, "$SCRIMP plan $EXAMPLES/%s --budget %s --compare --json", model, budget);
    expect_same_row(json_object_get(data, "plan"), plan, model);
    expect_same_rows(json_object_get(data, "frontier"), sweep, model);
    expect_same_rows(json_object_get(data, "solvers"), all, model);
    json_decref(plan);
    json_decref(sweep);
    json_decref(all);
}

static void test_model(const char *model, const char *budget)
{
    Result r = run("$SCRIMP report $EXAMPLES/%s --budget %s --frontier 3 -o $TMP/page.html", model,
                   budget);
    EXPECT(r.code == 0 && strstr(r.err, "page.html"), r.err);
    result_free(&r);
    json_t *data = report_data("page.html");
    const json_t *plan = json_object_get(data, "plan"), *kept = json_object_get(data, "kept"),
                 *planned = json_object_get(data, "planned"), *ir = json_object_get(data, "ir");
    expect_loads(kept, model);
    expect_loads(planned, model);
    expect_placed(planned, model);
    expect_present(kept, model);
    expect_present(planned, model);
    expect_shrinks(kept, model);
    expect_shrinks(planned, model);
    expect_chains(kept, model);
    expect_chains(planned, model);
    EXPECT(integer(kept, "peak_bytes") == integer(plan, "keep_all_peak_bytes"), model);
    EXPECT(integer(planned, "peak_bytes") == integer(plan, "arena_lower_bound_bytes"), model);
    EXPECT(integer(planned, "arena_bytes") == integer(plan, "arena_bytes"), model);
    expect_reruns(data, model);
    expect_lines(data, model);
    EXPECT(!strstr(text(ir, "before"), "@remat(") && strstr(text(ir, "after"), "@remat("), model);
    expect_rows(data, model, budget);
    json_decref(data);
}

static void expect_events(const json_t *thread, size_t n_kernels)
{
    double free_from = 0;
    const json_t *e;
    size_t i;
    EXPECT(json_array_size(json_object_get(thread, "events")) > 0, text(thread, "name"));
    json_array_foreach(json_object_get(thread, "events"), i, e)
    {
        double start = json_number_value(json_array_get(e, 0));
        EXPECT(start >= free_from - 1e-9, text(thread, "name"));
        free_from = start + json_number_value(json_array_get(e, 1));
        EXPECT((size_t)json_integer_value(json_array_get(e, 2)) < n_kernels, text(thread, "name"));
    }
}

static void test_measured(void)
{
    expect_ok("$SCRIMP report $EXAMPLES/mlp.scrimp -D N=16 --frontier 0 --measure --steps 3 -q "
              "--threads 2 -o $TMP/measured.html");
    json_t *data = report_data("measured.html"), *x;
    const json_t *measured = json_object_get(data, "measured");
    const json_t *kernels = json_object_get(measured, "kernels");
    size_t i;
    EXPECT(integer(measured, "steps") == 3 && json_array_size(kernels) > 0, "kernels");
    EXPECT(json_get_number(measured, "peak_gflops") > 0, "peak");
    json_array_foreach(json_object_get(measured, "threads"), i, x)
        expect_events(x, json_array_size(kernels));
    EXPECT(i == 2, "two threads");
    json_array_foreach(json_object_get(json_object_get(data, "planned"), "operations"), i, x)
        EXPECT(json_get_number(x, "seconds") > 0, text(x, "name"));
    json_decref(data);
}

/* The runs of a loop's calls are events of their own, unless they are more than a page holds. */
static void expect_loop(int steps, bool shown)
{
    write_loop_model(steps);
    expect_ok("$SCRIMP report $TMP/loop.scrimp --frontier 0 --measure --steps 1 -q --threads 1 "
              "-o $TMP/loop.html");
    json_t *data = report_data("loop.html"), *x;
    const json_t *measured = json_object_get(data, "measured"),
                 *threads = json_object_get(measured, "threads");
    int64_t calls = 0;
    size_t i;
    json_array_foreach(json_object_get(measured, "kernels"), i, x) calls += integer(x, "calls");
    EXPECT(calls > steps, "calls");
    EXPECT(json_array_size(threads) == (shown ? 1 : 0), "timeline");
    json_array_foreach(threads, i, x)
        EXPECT((int64_t)json_array_size(json_object_get(x, "events")) == calls, "events");
    json_decref(data);
}

/* A line of a file that is imported is no line of the model's. */
static void test_import(void)
{
    expect_ok("sed '/^train/,$d' $EXAMPLES/mlp.scrimp > $TMP/lib.scrimp");
    expect_ok("(echo 'import \"lib.scrimp\"'; sed -n '/^train/,$p' $EXAMPLES/mlp.scrimp) > "
              "$TMP/own.scrimp");
    expect_ok("$SCRIMP report $TMP/own.scrimp --frontier 0 -q -o $TMP/import.html");
    json_t *data = report_data("import.html");
    expect_lines(data, "import");
    const json_t *lines = json_object_get(json_object_get(data, "source"), "lines");
    EXPECT(integer(json_array_get(lines, 0), "line") == 0, "of no line");
    EXPECT(strstr(text(json_object_get(data, "ir"), "after"), "loc \"lib.scrimp\" "), "loc");
    json_decref(data);
}

/* What a model's text may hold does not end the page's script, nor break its JSON. */
static void test_odd_text(void)
{
    expect_ok("cp $EXAMPLES/mlp.scrimp \"$(printf '%s/bad\\377.scrimp' $TMP)\"");
    expect_ok("$SCRIMP report $TMP/bad*.scrimp --frontier 0 -q -o $TMP/bad.html");
    json_decref(report_data("bad.html"));
    expect_ok("(printf '# </script><!-- \\377 \\303\\251\\n'; cat $EXAMPLES/mlp.scrimp) > "
              "$TMP/odd.scrimp");
    expect_ok("$SCRIMP report $TMP/odd.scrimp --frontier 0 -q -o $TMP/odd.html");
    json_t *data = report_data("odd.html");
    const json_t *source = json_object_get(data, "source");
    EXPECT(strncmp(text(source, "text"), "# </script><!-- \xef\xbf\xbd \xc3\xa9\n", 23) == 0,
           text(source, "text"));
    EXPECT(json_array_size(json_object_get(data, "frontier")) == 0, "no frontier");
    json_decref(data);
}

static void test_errors(void)
{
    expect_run(1, "at least 2 budgets", "$SCRIMP report $EXAMPLES/mlp.scrimp --frontier 1");
    expect_run(1, "E407", "$SCRIMP report $EXAMPLES/mlp.scrimp --steps 3");
    expect_run(1, "none.scrimp", "$SCRIMP report $TMP/none.scrimp");
    expect_run(1, "missing",
               "$SCRIMP report $EXAMPLES/mlp.scrimp --frontier 0 -o $TMP/missing/x.html");
    expect_run(1, "is empty", "$SCRIMP report $EXAMPLES/mlp.scrimp -o ''");
    expect_run(1, "directory", "$SCRIMP report $EXAMPLES/mlp.scrimp -o $TMP");
    expect_run(3, "E401", "$SCRIMP report $EXAMPLES/mlp.scrimp --budget 1KiB -o $TMP/not.html");
    expect_run(1, NULL, "test -e $TMP/not.html");
    expect_said(0, "id=\"data\"", "$SCRIMP report $EXAMPLES/mlp.scrimp --frontier 0 -o -");
}

int main(void)
{
    e2e_begin();
    test_model("chargpt.scrimp", "40%");
    test_model("resnet.scrimp -D depth=18 -D N=8 -D size=64", "60%");
    test_model("unet.scrimp -D size=188 -D width=8", "50%");
    test_measured();
    expect_loop(20, true);
    expect_loop(50000, false);
    test_import();
    test_odd_text();
    test_errors();
    return e2e_end();
}
