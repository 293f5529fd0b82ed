/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bench --trace: every kernel of every step once on each thread that has a share of it, no thread
 * in two places at once, no call before the one in front of it is done everywhere, and in memory
 * what the plan has there. */
#include "e2e.h"
#include "equal_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MLP "$EXAMPLES/mlp.scrimp -D N=64 "

enum { STEPS = 3, MOST_TRACKS = 16, STEPS_TRACK = 1, FIRST_THREAD = 2 };

/* Times are whole nanoseconds. */
typedef struct Span {
    int64_t begin, end;
} Span;

static int64_t nanoseconds(const json_t *event, const char *key)
{
    return (int64_t)(1e3 * json_get_number(event, key) + 0.5);
}

static Span span_of(const json_t *event)
{
    int64_t begin = nanoseconds(event, "ts");
    return (Span){begin, begin + nanoseconds(event, "dur")};
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static bool is(const json_t *event, const char *key, const char *value)
{
    return strcmp(text_of(event, key), value) == 0;
}

typedef struct Seen {
    Span step[STEPS];
    int n_steps, n_calls; /* calls: of a step */
    int n_tracks;
    char name[MOST_TRACKS][64]; /* by track */
    int64_t last[MOST_TRACKS];  /* when its last event ends */
    Span *call;                 /* of step s, call k: from the first share to the last's end */
    int *shares;                /* the same: on how many tracks */
    int64_t counter[4096], at[4096];
    int n_counters, n_waits;
} Seen;

static void see_name(Seen *s, const json_t *e)
{
    int track = (int)json_get_number(e, "tid");
    if (is(e, "name", "thread_name") && track < MOST_TRACKS)
        snprintf(s->name[track], sizeof s->name[track], "%s",
                 text_of(json_object_get(e, "args"), "name"));
}

static void see_kernel(Seen *s, const json_t *e, Span span)
{
    int call = (int)json_get_number(json_object_get(e, "args"), "call");
    int step = s->n_steps - 1;
    if (call < 0 || call >= s->n_calls || step < 0) {
        EXPECT(false, "a kernel of no step");
        return;
    }
    Span *whole = &s->call[step * s->n_calls + call];
    bool first = s->shares[step * s->n_calls + call]++ == 0;
    EXPECT(span.begin >= s->step[step].begin && span.end <= s->step[step].end, "outside its step");
    whole->begin = first || span.begin < whole->begin ? span.begin : whole->begin;
    whole->end = first || span.end > whole->end ? span.end : whole->end;
}

static void see_span(Seen *s, const json_t *e)
{
    int track = (int)json_get_number(e, "tid");
    Span span = span_of(e);
    EXPECT(span.end >= span.begin && track < MOST_TRACKS, "no span");
    EXPECT(span.begin >= s->last[track], "two events of a thread at once");
    s->last[track] = span.end;
    if (is(e, "cat", "step") && s->n_steps < STEPS)
        s->step[s->n_steps++] = span;
    else if (is(e, "cat", "kernel"))
        see_kernel(s, e, span);
    else
        s->n_waits += is(e, "cat", "wait");
}

static void see_counter(Seen *s, const json_t *e)
{
    int64_t at = nanoseconds(e, "ts");
    EXPECT(!s->n_counters || at >= s->at[s->n_counters - 1], "memory goes back in time");
    EXPECT(s->n_counters < 4096, "too many counters for this test");
    s->at[s->n_counters] = at;
    s->counter[s->n_counters++] = (int64_t)json_get_number(json_object_get(e, "args"), "bytes");
}

static void see(Seen *s, const json_t *trace)
{
    const json_t *events = json_object_get(trace, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *e = json_array_get(events, i);
        if (is(e, "ph", "M"))
            see_name(s, e);
        else if (is(e, "ph", "X"))
            see_span(s, e);
        else if (is(e, "ph", "C"))
            see_counter(s, e);
        else
            EXPECT(false, text_of(e, "ph"));
    }
}

/* --- the memory that the plan has, from its buffers --- */

typedef struct Load {
    int64_t bytes[1024];
    int slots;
} Load;

static Load plan_load(const char *model, int64_t persistent)
{
    Load l = {.slots = 0};
    Result r = run("$SCRIMP plan %s --arena-csv -", model);
    for (const char *line = strchr(r.out, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        long long lower, upper, size;
        if (sscanf(strchr(line, ','), ",%lld,%lld,%lld", &lower, &upper, &size) != 3)
            break;
        EXPECT(upper <= 1024, "too many operations for this test");
        for (long long t = lower; t < upper; t++)
            l.bytes[t] += size;
        l.slots = upper > l.slots ? (int)upper : l.slots;
    }
    for (int t = 0; t < l.slots; t++)
        l.bytes[t] += persistent;
    EXPECT(l.slots > 10, r.err);
    result_free(&r);
    return l;
}

static void check_memory(const Seen *s, const char *model)
{
    json_t *plan = run_json(0, "$SCRIMP plan %s --json", model);
    Load l = plan_load(model, (int64_t)json_get_number(plan, "persistent_bytes"));
    int64_t peak = 0;
    EXPECT(s->n_counters == STEPS * l.slots, "a counter for each operation");
    for (int i = 0; i < s->n_counters; i++) {
        EXPECT(s->counter[i] == l.bytes[i % l.slots], "not the plan's load");
        peak = s->counter[i] > peak ? s->counter[i] : peak;
    }
    /* not peak_bytes, which counts copies of pieces that lie inside the whole in the arena */
    EXPECT(peak == (int64_t)json_get_number(plan, "arena_lower_bound_bytes"),
           "not the plan's peak");
    json_decref(plan);
}

/* --- structure --- */

static int calls_of(const json_t *bench)
{
    const json_t *kernels = json_object_get(bench, "kernels");
    int n = 0;
    for (size_t i = 0; i < json_array_size(kernels); i++)
        n += (int)json_get_number(json_array_get(kernels, i), "calls");
    return n;
}

static void check_calls(const Seen *s, int threads)
{
    int most = 0;
    EXPECT(s->n_steps == STEPS, "steps");
    for (int i = 0; i < s->n_steps * s->n_calls; i++) {
        bool first = i % s->n_calls == 0;
        EXPECT(s->shares[i] >= 1 && s->shares[i] <= threads, "shares of a call");
        EXPECT(first || s->call[i].begin >= s->call[i - 1].end, "a call before the one before it");
        most = s->shares[i] > most ? s->shares[i] : most;
    }
    EXPECT(most == threads, "no call on all threads");
    EXPECT((s->n_waits > 0) == (threads > 1), "waits");
}

static void check_names(const Seen *s, int threads, const char *first)
{
    char worker[32];
    EXPECT(strcmp(s->name[STEPS_TRACK], "steps") == 0, s->name[STEPS_TRACK]);
    EXPECT(strcmp(s->name[FIRST_THREAD], first) == 0, s->name[FIRST_THREAD]);
    for (int t = 1; t < threads; t++) {
        snprintf(worker, sizeof worker, "worker %d", t);
        EXPECT(strcmp(s->name[FIRST_THREAD + t], worker) == 0, s->name[FIRST_THREAD + t]);
    }
    EXPECT(!*s->name[FIRST_THREAD + threads], "a track more");
}

static void test_steps(const char *environment, const char *model, const char *options, int threads,
                       const char *first)
{
    json_error_t error;
    json_t *bench = run_json(0, "%s $SCRIMP bench %s %s --steps %d --trace $TMP/t.json --json",
                             environment, model, options, STEPS);
    json_t *trace = json_load_file(in_tmp("t.json"), 0, &error);
    Seen *s = calloc(1, sizeof *s);
    EXPECT(trace, error.text);
    s->n_calls = calls_of(bench);
    s->call = calloc((size_t)s->n_calls * STEPS, sizeof *s->call);
    s->shares = calloc((size_t)s->n_calls * STEPS, sizeof *s->shares);
    see(s, trace);
    check_calls(s, threads);
    check_names(s, threads, first);
    if (!*environment)
        check_memory(s, model);
    json_decref(trace);
    json_decref(bench);
    free(s->call);
    free(s->shares);
    free(s);
}

/* Of a loop, whose calls run once a step of it, every run has its place. */
static void test_loop(void)
{
    json_error_t error;
    json_t *bench = run_json(0, "$SCRIMP bench $EXAMPLES/ode.scrimp -D N=4 -D H=8 --steps 2 "
                                "--threads 1 --trace $TMP/loop.json --json"),
           *trace = json_load_file(in_tmp("loop.json"), 0, &error), *e;
    int64_t last = 0;
    size_t i;
    int n = 0;
    EXPECT(trace, error.text);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, e)
    {
        if (!is(e, "cat", "kernel"))
            continue;
        EXPECT(span_of(e).begin >= last, "a kernel before the one before it");
        last = span_of(e).end;
        n++;
    }
    EXPECT(calls_of(bench) > 1000 && n == 2 * calls_of(bench), "runs of a loop's calls");
    json_decref(trace);
    json_decref(bench);
}

/* --- the file --- */

static void test_output(void)
{
    Result r = run("$SCRIMP bench " MLP "--steps 1 --threads 1 --trace -");
    json_t *trace = json_loads(r.out, 0, NULL);
    EXPECT(r.code == 0 && trace, "nothing but the trace");
    json_decref(trace);
    result_free(&r);
    expect_run(1, "both write to standard output",
               "$SCRIMP bench " MLP "--steps 1 --trace - --json");
    expect_run(1, "none/t.json: No such file",
               "$SCRIMP bench " MLP "--steps 1 --trace $TMP/none/t.json");
    expect_run(1, "is the most here", "$SCRIMP bench " MLP "--steps 100000000 --trace $TMP/t.json");
    expect_ok("test -z \"$(ls $TMP | grep tmp)\"");
}

int main(void)
{
    e2e_begin();
    test_steps("", MLP, "--threads 1", 1, "main");
    test_steps("", MLP, "--threads 3", 3, "main");
    test_steps("", "$EXAMPLES/chargpt.scrimp -D N=2 --budget min", "--threads 2", 2, "main");
    test_steps(SIMULATED, MLP, "--device cuda --exact", 1, "simulated device");
    test_loop();
    test_output();
    return e2e_end();
}
