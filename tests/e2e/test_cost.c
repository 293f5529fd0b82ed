/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --cost: models without a machine, and measured costs with their table on disk. */
#include "e2e.h"
#include "equal_runs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char PLAN[] = "SCRIMP_CACHE=$TMP/cache $SCRIMP plan $EXAMPLES/mlp.scrimp -D N=16 "
                           "--budget 100%% --threads 1 --cost profile --json";

static void test_models(void)
{
    static const char *const names[] = {"roofline", "unit", "kusumoto", "flops", "sm_80", "sm_90"};
    for (int i = 0; i < 6; i++) {
        json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/mlp.scrimp --cost %s --json", names[i]);
        EXPECT(strcmp(json_string_value(json_object_get(o, "cost")), names[i]) == 0, names[i]);
        EXPECT(!json_object_get(o, "predicted_seconds_per_step"), "no machine was measured");
        json_decref(o);
    }
}

/* Plans for a device cost what the device costs, unless somebody says otherwise. */
static void test_devices(void)
{
    static const char *const asked[][2] = {{"--device cpu", "roofline"},
                                           {"--device cuda", "sm_90"},
                                           {"--device sm_86", "sm_80"},
                                           {"--device sm_100", "sm_90"},
                                           {"--device cuda --cost unit", "unit"}};
    for (int i = 0; i < 5; i++) {
        json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/mlp.scrimp %s --json", asked[i][0]);
        EXPECT(strcmp(json_string_value(json_object_get(o, "cost")), asked[i][1]) == 0,
               asked[i][0]);
        json_decref(o);
    }
}

/* A table that is written again is another file; one that is read counts as used.  -1 without one.
 */
static int64_t table(void)
{
    struct stat st;
    Result r = run("ls $TMP/cache/*.costs");
    r.out[strcspn(r.out, "\n")] = 0;
    int64_t which = r.code == 0 && stat(r.out, &st) == 0 ? (int64_t)st.st_ino : -1;
    result_free(&r);
    return which;
}

static double predicted(const char *when)
{
    json_t *o = run_json(0, PLAN);
    double seconds = json_get_number(o, "predicted_seconds_per_step");
    EXPECT(seconds > 0 && seconds < 60, when);
    json_decref(o);
    return seconds;
}

static void test_measured(void)
{
    EXPECT(table() < 0, "no table at first");
    double first = predicted("measured");
    int64_t written = table();
    EXPECT(written > 0, "there is a table now");
    EXPECT(predicted("from the table") == first, "the table has the same figures");
    EXPECT(table() == written, "nothing was measured again");
    Result r = run("echo '{' > $(ls $TMP/cache/*.costs)");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    predicted("after the table was damaged");
    json_t *o = run_json(0, "SCRIMP_CACHE=$TMP/cache $SCRIMP bench $EXAMPLES/mlp.scrimp -D N=16 "
                            "--threads 1 --cost profile --json");
    EXPECT(json_get_number(o, "predicted_seconds_per_step") > 0, "bench compares");
    json_decref(o);
}

#define ON_DEVICE(verb, options)                                                                   \
    SIMULATED "SCRIMP_CACHE=$TMP/device " options " $SCRIMP " verb                                 \
              " $EXAMPLES/mlp.scrimp -D N=16 --cost profile --device cuda "

/* The device is opened in a child, since kernels are compiled in forked processes afterwards. */
static void test_measured_on_a_device(void)
{
    static const char list[] = "ls -i $TMP/device/*.costs";
    expect_ok(ON_DEVICE("plan", ""));
    json_t *o = run_json(0, ON_DEVICE("bench", "") "--steps 1 --budget min --json");
    EXPECT(json_get_number(o, "predicted_seconds_per_step") > 0, "bench compares");
    json_decref(o);
    expect_ok("grep -q 'simulated device' $TMP/device/*.costs");
    Result first = run(list);
    expect_ok(ON_DEVICE("plan", ""));
    Result second = run(list);
    EXPECT(first.code == 0 && strcmp(first.out, second.out) == 0, "nothing was measured again");
    result_free(&first);
    result_free(&second);
    expect_ok(ON_DEVICE("plan", "") "--no-cache");
    expect_run(1, "launching call", ON_DEVICE("plan", "SCRIMP_SIM_FAIL=4") "--no-cache");
    expect_run(3, "E401", ON_DEVICE("plan", "SCRIMP_SIM_BYTES=1000000") "--no-cache");
}

static void test_refused(void)
{
    Result r = run("$SCRIMP plan $EXAMPLES/mlp.scrimp --cost rofline");
    EXPECT(r.code == 1 && strstr(r.err, "E412") && strstr(r.err, "did you mean `roofline`"), r.err);
    result_free(&r);
    r = run("$SCRIMP dump $EXAMPLES/mlp.scrimp --stage=remat --budget 100%% --cost profile");
    EXPECT(r.code == 1 && strstr(r.err, "E412"), r.err);
    result_free(&r);
    r = run("echo '{}' | $SCRIMP plan --graph - --cost unit");
    EXPECT(r.code == 1 && strstr(r.err, "E407"), r.err);
    result_free(&r);
}

int main(void)
{
    e2e_begin();
    test_models();
    test_devices();
    test_measured();
    test_measured_on_a_device();
    test_refused();
    return e2e_end();
}
