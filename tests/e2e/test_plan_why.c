/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --peak and plan --why: their figures are those of `plan --json`, of the dump and of the
 * planner asked again, and what they say is understood without either. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

typedef struct Case {
    const char *model, *options;
} Case;

static const Case cases[] = {
    {"convnet", "--budget 60%"},
    {"chargpt", "--budget 40%"},
    {"densenet", "-D depth=121 -D size=64 -D N=2 --budget 30% --effort 0.05"},
    {"mlp", ""},
};

static json_int_t integer(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static const char *string(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static json_int_t sum_of(const json_t *list, bool persistent_only)
{
    json_int_t sum = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        const char *kind = string(o, "kind");
        bool persistent = strcmp(kind, "weights") == 0 || strcmp(kind, "optimizer") == 0 ||
                          strcmp(kind, "statistics") == 0;
        sum += persistent || !persistent_only ? integer(o, "bytes") : 0;
    }
    return sum;
}

static json_int_t bytes_of(const json_t *tensors, const char *name)
{
    for (size_t i = 0; i < json_array_size(tensors); i++)
        if (strcmp(string(json_array_get(tensors, i), "name"), name) == 0)
            return integer(json_array_get(tensors, i), "bytes");
    return -1;
}

/* A row names its largest tensors, and all tensors come by size. */
static void expect_sorted(const json_t *rows, const json_t *tensors)
{
    for (size_t i = 1; i < json_array_size(tensors); i++)
        EXPECT(integer(json_array_get(tensors, i - 1), "bytes") >=
                   integer(json_array_get(tensors, i), "bytes"),
               "not by size");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *largest = json_object_get(row, "largest");
        json_int_t n = integer(row, "tensors"), most = integer(row, "bytes"), sum = 0;
        EXPECT((json_int_t)json_array_size(largest) == (n < 3 ? n : 3), string(row, "path"));
        for (size_t k = 0; k < json_array_size(largest); k++) {
            json_int_t bytes = bytes_of(tensors, json_string_value(json_array_get(largest, k)));
            EXPECT(bytes > 0 && bytes <= most, string(row, "path"));
            most = bytes;
            sum += bytes;
        }
        EXPECT(sum <= integer(row, "bytes") && (n > 3 || sum == integer(row, "bytes")),
               string(row, "path"));
        EXPECT(n <= 3 || sum + (n - 3) * most >= integer(row, "bytes"), string(row, "path"));
    }
}

static void test_peak(const Case *c)
{
    json_t *o =
        run_json(0, "$SCRIMP plan $EXAMPLES/%s.scrimp %s --peak --json", c->model, c->options);
    const json_t *peak = json_object_get(o, "peak"), *rows = json_object_get(peak, "rows"),
                 *tensors = json_object_get(peak, "tensors");
    EXPECT(integer(peak, "bytes") == integer(o, "arena_lower_bound_bytes"), c->model);
    EXPECT(sum_of(rows, false) == integer(peak, "bytes"), c->model);
    EXPECT(sum_of(tensors, false) == integer(peak, "bytes"), c->model);
    EXPECT(sum_of(rows, true) == integer(o, "persistent_bytes"), c->model);
    EXPECT(json_array_size(rows) <= 20 && json_array_size(tensors) >= json_array_size(rows),
           c->model);
    EXPECT(integer(peak, "slot") < integer(peak, "operations"), c->model);
    expect_sorted(rows, tensors);
    json_decref(o);
}

static void test_peak_text(void)
{
    Result r = run("$SCRIMP plan $EXAMPLES/chargpt.scrimp --budget 60%% --peak");
    EXPECT(r.code == 0 && strstr(r.out, "needs most memory") && strstr(r.out, "chargpt.scrimp:") &&
               strstr(r.out, "h.*.attn") && strstr(r.out, "##") && !strchr(r.out, '\033'),
           r.out);
    EXPECT(strstr(r.out, "\n    %h.0.attn.c_attn 1.2MiB, %h.1.attn.c_attn 1.2MiB"), r.out);
    EXPECT(strstr(r.out, "For a peak that is 10% lower (") && strstr(r.out, " of "), r.out);
    for (const char *line = r.out; *line; line += strcspn(line, "\n") + 1)
        EXPECT(strcspn(line, "\n") <= 80, line);
    result_free(&r);
}

/* Small things do not take the rows that tell the large ones apart. */
static void test_peak_parts(void)
{
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/densenet.scrimp --budget 40%% --peak --json");
    const json_t *rows = json_object_get(json_object_get(o, "peak"), "rows");
    int64_t largest = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        int64_t bytes = integer(json_array_get(rows, i), "bytes");
        largest = bytes > largest ? bytes : largest;
    }
    EXPECT(3 * largest < integer(json_object_get(o, "peak"), "bytes"), "one row for nearly all");
    EXPECT(json_array_size(rows) > 12 && json_array_size(rows) < 24, "many rows");
    json_decref(o);
}

/* Rows on a terminal are as wide as it is. */
static void test_peak_terminal(void)
{
    Result r = run("LC_ALL=C.UTF-8 script -qec 'stty cols 120; $SCRIMP plan "
                   "$EXAMPLES/chargpt.scrimp --budget 40%% --peak' /dev/null");
    EXPECT(r.code == 0 && strstr(r.out, "██████████████████████████████████████████"), r.out);
    result_free(&r);
}

/* The names of the first recomputations in the dump (of groups, @remat stands behind their body);
 * returns how many. */
static int reruns_of(const Case *c, char names[][64], int most)
{
    Result r = run("$SCRIMP dump $EXAMPLES/%s.scrimp %s --stage=remat | "
                   "awk '/^  [%%$]/ {name = $1; sub(\",\", \"\", name)} "
                   "/^  [^ ].*@remat\\(of/ {print name}'",
                   c->model, c->options);
    int n = 0;
    for (const char *line = r.out; *line && n < most; line += strcspn(line, "\n") + 1)
        snprintf(names[n++], 64, "%.*s", (int)strcspn(line, "\n"), line);
    result_free(&r);
    return n;
}

/* Whether the planner runs it again within these bytes: its dump says. */
static bool again_within(const Case *c, const char *name, json_int_t bytes)
{
    Result r = run("$SCRIMP dump $EXAMPLES/%s.scrimp %s --budget %lld --stage=remat | "
                   "grep -c -F '@remat(of=%.*s,'",
                   c->model, c->options, (long long)bytes, (int)strcspn(name, "~"), name);
    bool again = r.code == 0;
    result_free(&r);
    return again;
}

static void check_answer(const Case *c, const char *name)
{
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/%s.scrimp %s --why '%s' --json", c->model,
                         c->options, name);
    const json_t *why = json_object_get(o, "why");
    if (!why)
        return;
    EXPECT(json_is_true(json_object_get(why, "again")) && strcmp(string(why, "name"), name) == 0,
           name);
    EXPECT(strncmp(string(why, "before"), name, strcspn(name, "~")) == 0, name);
    EXPECT(integer(why, "before_slot") < integer(why, "slot"), name);
    EXPECT(integer(why, "from") <= integer(why, "to") && integer(why, "to") == integer(why, "slot"),
           name);
    EXPECT(json_is_true(json_object_get(why, "spans_peak")) ==
               (integer(why, "from") <= integer(why, "peak_slot") &&
                integer(why, "peak_slot") < integer(why, "to")),
           name);
    EXPECT(integer(why, "over_budget_bytes") ==
               integer(why, "without_peak_bytes") - integer(o, "budget_bytes"),
           name);
    EXPECT(integer(why, "unnecessary_from_bytes") >= integer(why, "without_peak_bytes"), name);
    if (integer(why, "unnecessary_from_bytes") > integer(o, "budget_bytes"))
        EXPECT(json_is_true(json_object_get(why, "again_from_there")) ==
                   again_within(c, name, integer(why, "unnecessary_from_bytes")),
               name);
    json_decref(o);
}

static void test_reruns(const Case *c, int most)
{
    char names[2][64];
    int n = reruns_of(c, names, most);
    EXPECT(n > 0, c->model);
    for (int i = 0; i < n; i++)
        check_answer(c, names[i]);
}

#define WHY "$SCRIMP plan $EXAMPLES/convnet.scrimp --budget 60% --why "

static void test_words(void)
{
    expect_said(0, "The run before it is %conv1, operation ", WHY "%conv1~1");
    expect_said(0, "Without it, %conv1 (", WHY "conv1~1");
    expect_said(0, " over the budget of ", WHY "%conv1~1");
    expect_said(0, "From a budget of ", WHY "%conv1~1");
    expect_said(0, "it runs again as %conv1~1", WHY "%conv1");
    expect_said(0, "fits the budget of ", WHY "%conv2");
    expect_said(0, "in memory throughout", WHY "'$conv1.weight'");
    expect_said(0, "takes no time", WHY "%reshape.2");
    expect_said(0, "no budget is set", "$SCRIMP plan $EXAMPLES/mlp.scrimp --why %fc3");
    expect_said(0, "%relu.0 = fused", "$SCRIMP plan $EXAMPLES/mlp.scrimp --why %fc1");
}

/* Lines to run next have the user's options; the last word of the help is one. */
static void test_names(void)
{
    expect_run(1, "%conv1 runs 2 times: %conv1, %conv1~1\n", WHY "%conv1~2");
    expect_run(1, "%conv2 runs once\n", WHY "%conv2~1");
    expect_run(1, "did you mean `%conv2`?", WHY "%conv22");
    expect_run(1, "convnet.scrimp -D N=50 -D p=0.2 --budget 60% --no-views --why '%conv1~1'`",
               WHY "%conv1~2 -D N=50 --no-views -D p=0.2");
    expect_run(1, "convnet.scrimp -D N=50 --budget 60% --solver chen --stage=remat`",
               WHY "nonsense --solver chen -D N=50");
    expect_ok(WHY "%conv1 -D N=50 > $TMP/first && sh -c \"$(grep '^scrimp plan' $TMP/first | "
                  "sed \"s|^scrimp|$SCRIMP|\")\" | grep -q 'The run before it is %conv1, '");
}

/* They answer in one call, each as it does alone; the picture is that of the plan. */
static void test_together(void)
{
    expect_ok(WHY "%conv1~1 > $TMP/why && " WHY "%conv1~1 --peak --svg $TMP/both.svg > $TMP/both");
    expect_ok("$SCRIMP plan $EXAMPLES/convnet.scrimp --budget 60% --peak > $TMP/peak && "
              "(cat $TMP/peak; echo; cat $TMP/why) | cmp - $TMP/both");
    expect_ok("$SCRIMP plan $EXAMPLES/convnet.scrimp --budget 60% --svg - | cmp - $TMP/both.svg");
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/convnet.scrimp --budget 60%% --why %%conv1~1 "
                            "--peak --arena-csv $TMP/a.csv --json");
    EXPECT(json_object_get(o, "peak") && json_object_get(o, "why"), "both");
    json_decref(o);
    expect_ok("grep -q '^id,' $TMP/a.csv");
    expect_run(1, "error[E407]: --svg - and --peak exclude", WHY "%conv1 --peak --svg -");
}

static void test_refusals(void)
{
    expect_run(1, "E414", WHY "nonsense");
    expect_run(1, "error[E407]: --compare and --why exclude", WHY "%conv1 --compare");
    expect_run(1, "error[E407]: --sweep and --peak exclude",
               "$SCRIMP plan $EXAMPLES/convnet.scrimp --peak --sweep 3");
    expect_run(1, "its %NAME is empty", WHY "''");
    expect_run(3, "E401", "$SCRIMP plan $EXAMPLES/convnet.scrimp --budget 1KiB --peak");
    expect_run(3, "E401", "$SCRIMP plan $EXAMPLES/convnet.scrimp --budget 1KiB --why %conv1");
}

int main(void)
{
    e2e_begin();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        test_peak(&cases[k]);
    test_peak_text();
    test_peak_parts();
    test_peak_terminal();
    test_reruns(&cases[0], 1);
    test_reruns(&cases[1], 2);
    test_reruns(&cases[2], 1);
    test_words();
    test_names();
    test_together();
    test_refusals();
    return e2e_end();
}
