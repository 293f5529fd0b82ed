/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A device, simulated, that has no memory left, for whatever it is asked: exit code 3, the numbers,
 * and a way out that helps; what it uses beside the arena is reported; drivers that are too old. */
#include "e2e.h"
#include "equal_runs.h"
#include "tiny_model.h"

#include <stdio.h>
#include <string.h>

#define MODEL " --device cuda --exact $TMP/tiny.scrimp "

/* Exit code 3, and the bytes of the arena where there is one. */
static void test_full(void)
{
    static const struct {
        const char *function, *said;
    } rows[] = {
        {"cuDevicePrimaryCtxRetain", "context: the device has no memory left"},
        {"cuStreamCreate", "stream: out of memory"},
        {"cuMemAlloc_v2", "left; the arena needs"},
        {"cuModuleLoadData", "loading a kernel: out of memory: beside an arena of"},
        {"cuLaunchKernel", "launching call 0 of the step: out of memory: beside an arena of"},
        {"cuGraphInstantiateWithFlags", "making a graph of the step: out of memory: beside"},
        {"cuGraphLaunch", "launching the step: out of memory: beside an arena of"},
        {"cuEventCreate", "event: out of memory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Result r =
            run(SIMULATED "SCRIMP_SIM_FULL=%s $SCRIMP train -q --steps 4" MODEL, rows[i].function);
        char detail[3000];
        snprintf(detail, sizeof detail, "%s: code %d\n%.2000s", rows[i].function, r.code, r.err);
        EXPECT(r.code == 3 && strstr(r.err, rows[i].said), detail);
        EXPECT(strstr(r.err, "error[E401]") && strstr(r.err, "a smaller"), detail);
        result_free(&r);
    }
    /* Page-locked memory is the host's: no budget helps. */
    expect_run(1, "no page-locked memory",
               SIMULATED "SCRIMP_SIM_FULL=cuMemHostAlloc $SCRIMP train -q --steps 4" MODEL);
}

static int64_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* The arena is the plan's; kernels and staging are told apart from it. */
static void test_report(void)
{
    json_t *plan = run_json(0, "$SCRIMP plan $TMP/tiny.scrimp --json");
    json_t *o = run_json(0, SIMULATED "$SCRIMP bench --steps 1 --json" MODEL);
    const json_t *device = json_object_get(o, "device");
    EXPECT(strcmp(json_string_value(json_object_get(device, "arch")), "sm_90") == 0, "arch");
    EXPECT(number(device, "arena_bytes") == number(plan, "arena_bytes"), "arena");
    EXPECT(number(device, "staging_bytes") > 0, "staging");
    EXPECT(number(device, "kernels_and_graphs_bytes") > 10000, "kernels");
    EXPECT(number(device, "total_bytes") == (int64_t)16 << 30, "total");
    json_decref(plan);
    json_decref(o);
    expect_said(0, "device memory: arena ", SIMULATED "$SCRIMP bench --steps 1" MODEL);
    expect_run(0, "device memory: arena ", SIMULATED "$SCRIMP train --steps 1" MODEL);
}

/* The bytes that --budget is said to need. */
static long long suggested(const char *verb)
{
    Result r = run(SIMULATED "SCRIMP_SIM_BYTES=90000 $SCRIMP %s" MODEL, verb);
    const char *help = strstr(r.err, "--budget ");
    long long bytes = 0;
    EXPECT(r.code == 3, r.err);
    if (help)
        sscanf(help, "--budget %lld", &bytes);
    result_free(&r);
    return bytes;
}

/* What is suggested leaves room for kernels; verify runs the step that keeps all, whatever the
 * budget, so that no budget is suggested. */
static void test_way_out(void)
{
    long long bytes = suggested("train --steps 1");
    EXPECT(bytes > 60000 && bytes < 90000, "the budget that is suggested");
    expect_run(3, "a smaller batch: whatever the budget, verify also runs the step that keeps all",
               SIMULATED "SCRIMP_SIM_BYTES=90000 $SCRIMP verify" MODEL);
    expect_run(3, "help: a smaller batch\n",
               SIMULATED "SCRIMP_SIM_BYTES=9000 $SCRIMP eval --checkpoint $TMP/w" MODEL);
}

/* Two plans on a device that has room for one arena, beside the kernels of both. */
static void test_verify(void)
{
    json_t *plan = run_json(0, "$SCRIMP plan $EXAMPLES/mlp.scrimp -D N=20 --json");
    int64_t arena = number(plan, "arena_bytes");
    Result r = run(SIMULATED "SCRIMP_SIM_BYTES=%lld $SCRIMP verify --device cuda --exact "
                             "$EXAMPLES/mlp.scrimp -D N=20 --steps 1",
                   (long long)(arena + arena / 4 * 3));
    EXPECT(r.code == 0 && strstr(r.out, "identical: 1 step"), r.err);
    result_free(&r);
    json_decref(plan);
}

static void test_driver(void)
{
    expect_run(1, "the driver is for CUDA 12.4, the kernels were compiled by NVRTC 13",
               SIMULATED
               "SCRIMP_SIM_NVRTC=13 SCRIMP_SIM_DRIVER=12040 $SCRIMP train -q --steps 1" MODEL);
    expect_ok(SIMULATED
              "SCRIMP_SIM_NVRTC=13 SCRIMP_SIM_DRIVER=13000 $SCRIMP train -q --steps 1" MODEL);
}

int main(void)
{
    e2e_begin();
    write_tiny_model(10, 100);
    test_full();
    test_report();
    test_way_out();
    test_verify();
    test_driver();
    return e2e_end();
}
