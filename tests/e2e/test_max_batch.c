/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --max-batch: the batch that it names fits, the next one does not, and what cannot be
 * searched is refused. */
#include "e2e.h"

#include <math.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NET "$EXAMPLES/convnet.scrimp"

static json_t *largest(const char *budget, const char *options)
{
    return run_json(0, "$SCRIMP plan " NET " --max-batch --json --budget %s %s", budget, options);
}

/* Plans of the batch and of the next one, by the same solver. */
static void test_bisection(const char *solver)
{
    char options[64];
    snprintf(options, sizeof options, "--solver %s", solver);
    json_t *o = largest("20MiB", options);
    int batch = (int)json_get_number(o, "batch");
    EXPECT(batch > 1, solver);
    EXPECT(json_get_number(o, "arena_bytes") <= 20 * 1048576.0, solver);
    json_t *at =
        run_json(0, "$SCRIMP plan " NET " --json --budget 20MiB %s -D N=%d", options, batch);
    json_t *above = run_json(3, "$SCRIMP plan " NET " --json --budget 20MiB %s -D N=%d 2>/dev/null",
                             options, batch + 1);
    EXPECT(json_get_number(at, "arena_bytes") == json_get_number(o, "arena_bytes"), solver);
    EXPECT(json_get_number(at, "overhead_percent") == json_get_number(o, "overhead_percent"),
           solver);
    EXPECT(json_get_number(above, "min_feasible_bytes") > 20 * 1048576.0, solver);
    json_decref(o);
    json_decref(at);
    json_decref(above);
}

/* Recomputation never makes the batch smaller, and costs time; a larger budget fits more. */
static void test_reference(void)
{
    json_t *none = largest("12MiB", "--solver none"), *o = largest("12MiB", "");
    json_t *more = largest("24MiB", "");
    double kept = json_get_number(none, "batch");
    EXPECT(json_get_number(none, "relative_time_per_sample") == 1, "itself");
    EXPECT(json_get_number(none, "recomputed_ops") == 0, "none");
    EXPECT(json_get_number(o, "batch_without_recomputation") == kept, "reference");
    EXPECT(json_get_number(o, "batch") > kept, "more with recomputation");
    EXPECT(json_get_number(o, "overhead_percent") > 0, "which takes time");
    EXPECT(json_get_number(more, "batch") > json_get_number(o, "batch"), "budget");
    double ratio = json_get_number(o, "cost_per_sample") / json_get_number(none, "cost_per_sample");
    EXPECT(fabs(ratio - json_get_number(o, "relative_time_per_sample")) < 1e-6, "ratio");
    json_decref(none);
    json_decref(o);
    json_decref(more);
}

/* Measured costs: predicted seconds, of the answer only. */
static void test_profile(void)
{
    json_t *o = run_json(0, "$SCRIMP plan $EXAMPLES/mlp.scrimp --max-batch --budget 4MiB --cost "
                            "profile --cache $TMP/cache --json");
    EXPECT(json_get_number(o, "predicted_seconds_per_sample") > 0, "seconds");
    EXPECT(json_get_number(o, "arena_bytes") <= 4 * 1048576.0, "budget");
    json_decref(o);
}

/* False where there are none. */
static bool run_in_terminal(const char *command, char *seen, size_t size)
{
    int terminal;
    size_t n = 0;
    fflush(NULL);
    pid_t child = forkpty(&terminal, NULL, NULL, NULL);
    if (child < 0)
        return false;
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(126);
    }
    for (ssize_t got; n + 1 < size && (got = read(terminal, seen + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    seen[n] = '\0';
    close(terminal);
    waitpid(child, NULL, 0);
    return true;
}

/* A search takes minutes: a terminal sees a line that is redrawn, others see lines, and --quiet
 * neither. */
static void test_progress(void)
{
    static const char search[] = "$SCRIMP plan $EXAMPLES/mlp.scrimp --max-batch --budget 4MiB";
    Result r = run("%s", search);
    EXPECT(r.code == 0 && strncmp(r.err, "batch without recomputation: trying 1 (", 39) == 0,
           r.err);
    EXPECT(!strchr(r.err, '\033'), r.err);
    Result quiet = run("%s --quiet", search);
    EXPECT(quiet.code == 0 && *quiet.err == '\0', quiet.err);
    EXPECT(strcmp(quiet.out, r.out) == 0, "the answer");
    result_free(&r);
    result_free(&quiet);
    static char seen[1 << 16];
    if (!run_in_terminal(search, seen, sizeof seen)) {
        printf("skipped, as there are no terminals\n");
        return;
    }
    EXPECT(strstr(seen, "\r\033[Kbatch with recomputation: trying ") && strstr(seen, " fits, "),
           seen);
    EXPECT(strstr(seen, "\r\033[Klargest batch "), "the line is cleared at the end");
}

static void expect_error(int code, const char *options, const char *text)
{
    Result r = run("$SCRIMP plan %s", options);
    EXPECT(r.code == code && strstr(r.err, text), r.err);
    result_free(&r);
}

static void test_errors(void)
{
    expect_error(3, NET " --max-batch --budget 300KiB", "E401");
    expect_error(3, NET " --max-batch --budget 300KiB", "no batch was found");
    expect_error(1, NET " --max-batch --budget 50%", "E407");
    expect_error(1, NET " --max-batch", "E407");
    expect_error(1, NET " --max-batch --budget 1GiB -D N=3", "E407");
    expect_error(1, NET " --max-batch --budget 1GiB --compare", "E407");
    Result r = run("sed 's/^option N = .*//; s/batch = N/batch = 8/; s/\\[N/[8/g' "
                   "$EXAMPLES/mlp.scrimp > $TMP/fixed.scrimp");
    result_free(&r);
    expect_error(1, "$TMP/fixed.scrimp --max-batch --budget 1GiB", "E413");
}

int main(void)
{
    e2e_begin();
    test_bisection("scrimp");
    test_bisection("chen");
    test_reference();
    test_profile();
    test_errors();
    test_progress();
    return e2e_end();
}
