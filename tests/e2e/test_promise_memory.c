/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promises 7 and 8: budgets are kept and monotone; out of memory happens before step 1 or never. */
#include "e2e.h"
#include "sources_allocate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_sweep(const char *example)
{
    json_t *list = run_json(0, "$SCRIMP plan $EXAMPLES/%s --sweep 50 --json", example);
    const bool views = !strstr(example, "--no-views");
    double overhead = 1e30, arena = 0;
    EXPECT(json_array_size(list) == 50, example);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i);
        double now = json_get_number(o, "overhead_percent");
        EXPECT(json_get_number(o, "arena_bytes") <= json_get_number(o, "budget_bytes"), example);
        EXPECT(json_get_number(o, "arena_lower_bound_bytes") <= json_get_number(o, "arena_bytes"),
               example);
        /* Of the schedule, whose pieces of tensors are copies. */
        EXPECT(views || json_get_number(o, "peak_bytes") <= json_get_number(o, "arena_bytes"),
               example);
        EXPECT(now <= overhead, "more memory costs more time");
        overhead = now;
        arena = json_get_number(o, "arena_bytes");
    }
    EXPECT(overhead == 0 && arena > 0, example);
    json_decref(list);
}

/* An address space too small for the arena: an error with numbers, and no step was made. */
static void test_out_of_memory(void)
{
    /* Few kernels, a large arena. */
    static const char model[] = "ffn.scrimp -D layers=32 -D width=128 -D N=8192";
    Result r = run("$SCRIMP train $EXAMPLES/%s --steps 1 -q", model); /* compiles */
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/%s --json", model);
    long long arena = (long long)json_get_number(o, "arena_bytes");
    json_decref(o);
    r = run("ulimit -v %lld; $SCRIMP train $EXAMPLES/%s --steps 2 --log $TMP/oom.log --threads 1",
            arena / 1024, model);
    EXPECT(r.code == 1 && strstr(r.err, "error[E804]"), r.err);
    char bytes[40], path[400];
    snprintf(bytes, sizeof bytes, "%lld", arena);
    EXPECT(strstr(r.err, "MiB") || strstr(r.err, bytes), r.err);
    EXPECT(!strstr(r.err, "step 1"), r.err);
    snprintf(path, sizeof path, "%s/oom.log", e2e_tmp());
    char *log = read_text(path, NULL);
    EXPECT(!log || !*log, log);
    free(log);
    result_free(&r);
    /* Hardly any memory at all: still a message, not a crash. */
    for (int mib = 6; mib <= 40; mib += 2) {
        r = run("ulimit -v %d; $SCRIMP train $EXAMPLES/%s --steps 1 -q", mib * 1024, model);
        char detail[1000];
        snprintf(detail, sizeof detail, "%d MiB: exit code %d\n%.800s", mib, r.code, r.err);
        EXPECT((r.code == 1 || r.code == 127) && *r.err, detail); /* 127: the loader itself */
        result_free(&r);
    }
}

int main(void)
{
    e2e_begin();
    test_sweep("mlp.scrimp");
    test_sweep("chargpt.scrimp -D L=2");
    test_sweep("chargpt.scrimp -D L=2 --no-views");
    test_out_of_memory();
    expect_no_allocation(20, 220);
    test_images_and_arrays();
    test_sounds();
    test_sequences();
    return e2e_end();
}
