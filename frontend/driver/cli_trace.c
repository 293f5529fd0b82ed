/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The format: "Trace Event Format", Google, 2016.  Times in it are microseconds: here with three
 * digits behind the point, made of whole nanoseconds, so that what does not overlap when it is
 * measured does not do so in the file. */
#include "frontend/driver/cli_trace.h"

#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_profile.h"
#include "frontend/driver/report/step_facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Tracks: steps, then the threads or the device. */
enum { STEPS_TRACK = 1, FIRST_THREAD };
enum { MOST_SPANS = 4000000 };

typedef struct Trace {
    const Measurement *m;
    const StepTimes *t;
    StrBuf out;
    double origin;     /* when the first step begins */
    const char **call; /* by call: what its events have in common */
    StepFacts facts;   /* what is in memory when */
    int n_threads;
    int64_t n_events;
} Trace;

bool trace_fits(Cli *cli, const Measurement *m, int64_t steps)
{
    const Session *s = &m->running.session;
    double rows = s->cuda ? 1 : threads_count(s->machine->threads) + 1;
    double each = rows * (double)measurement_runs(m);
    if (each * (double)steps <= MOST_SPANS)
        return true;
    cli_error(cli, EXIT_USER, "E407",
              pool_printf(cli->pool, "--steps %.0f is the most here", fmax(1, MOST_SPANS / each)),
              "--trace: %lld steps of %lld kernels are more than viewers open", (long long)steps,
              (long long)measurement_runs(m));
    return false;
}

/* --- what is written for every event --- */

static void put_text(StrBuf *out, const char *text)
{
    json_t *s = json_string(text);
    char *quoted = s ? json_dumps(s, JSON_ENCODE_ANY) : NULL;
    strbuf_put(out, quoted ? quoted : "\"\"");
    free(quoted);
    json_decref(s);
}

static int64_t nanoseconds(const Trace *t, double clock)
{
    return llround(1e9 * (clock - t->origin));
}

static void put_time(StrBuf *out, const char *key, int64_t ns)
{
    strbuf_printf(out, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

static void begin_event(Trace *t, const char *kind, int track)
{
    strbuf_printf(&t->out, "%s{\"ph\":\"%s\",\"pid\":1,\"tid\":%d", t->n_events++ ? ",\n" : "",
                  kind, track);
}

/* An event that takes time; common: its name, category and arguments. */
static void put_span(Trace *t, int track, double from, double to, const char *common)
{
    int64_t begin = nanoseconds(t, from), end = nanoseconds(t, to);
    begin_event(t, "X", track);
    put_time(&t->out, "ts", begin);
    put_time(&t->out, "dur", end - begin);
    strbuf_put(&t->out, common);
    strbuf_put(&t->out, "}");
}

static void put_wait(Trace *t, int track, double from, double to)
{
    if (nanoseconds(t, to) > nanoseconds(t, from))
        put_span(t, track, from, to, ",\"name\":\"wait\",\"cat\":\"wait\"");
}

static const char *call_arguments(Pool *pool, const Graph *g, const Call *c, int index)
{
    StrBuf out = strbuf_new(pool);
    const Node *n = graph_node(g, c->node);
    strbuf_put(&out, ",\"cat\":\"kernel\",\"name\":");
    put_text(&out, c->label);
    strbuf_put(&out, ",\"args\":{\"operation\":");
    put_text(&out, graph_value(g, n->out[0])->name);
    strbuf_put(&out, ",\"path\":");
    put_text(&out, c->loc.path ? c->loc.path : "");
    if (c->loc.file) {
        strbuf_put(&out, ",\"file\":");
        put_text(&out, c->loc.file);
    }
    strbuf_printf(&out, ",\"line\":%u,\"call\":%d,\"flops\":%.0f,\"bytes\":%.0f}", c->loc.line,
                  index, c->flops, c->bytes);
    return out.text;
}

/* --- memory --- */

/* Of operations up to `slot`, at the time at which the last of them begins: those before it have no
 * kernel. */
static int put_memory(Trace *t, int from, int slot, double when)
{
    for (; from <= slot; from++) {
        begin_event(t, "C", STEPS_TRACK);
        put_time(&t->out, "ts", nanoseconds(t, when));
        strbuf_printf(&t->out, ",\"name\":\"memory\",\"args\":{\"bytes\":%" PRId64 "}}",
                      t->facts.load[from]);
    }
    return from;
}

/* --- tracks --- */

static void put_step(Trace *t, int64_t step)
{
    char common[96];
    const RtSpan *all = measurement_spans(t->t, step, t->t->n_rows - 1),
                 *whole = &t->t->whole[step];
    const Call *call = t->m->running.session.step->calls;
    int slots = 0;
    snprintf(common, sizeof common,
             ",\"name\":\"step %lld\",\"cat\":\"step\",\"args\":{\"step\":%lld}",
             (long long)(step + 1), (long long)(step + 1));
    put_span(t, STEPS_TRACK, whole->begin, whole->end, common);
    for (int64_t r = 0; r < t->t->n_runs; r++)
        slots = put_memory(t, slots, t->facts.slot_of[call[t->t->run_call[r]].node], all[r].begin);
    put_memory(t, slots, t->facts.n_operations - 1, whole->end);
}

static bool others_ran(const Trace *t, int64_t step, int64_t run)
{
    bool ran = false;
    for (int thread = 1; thread < t->n_threads && !ran; thread++)
        ran = measurement_spans(t->t, step, thread)[run].end > 0;
    return ran;
}

static const char *call_of(const Trace *t, int64_t run)
{
    return t->call[t->t->run_call[run]];
}

/* The main thread waits for the others, from the end of its share to that of the call; between
 * calls it is outside kernels, and does not wait. */
static void put_main(Trace *t, int64_t step)
{
    const RtSpan *share = measurement_spans(t->t, step, 0),
                 *all = measurement_spans(t->t, step, t->t->n_rows - 1);
    for (int64_t r = 0; r < t->t->n_runs; r++) {
        if (share[r].end > 0)
            put_span(t, FIRST_THREAD, share[r].begin, share[r].end, call_of(t, r));
        if (others_ran(t, step, r))
            put_wait(t, FIRST_THREAD, share[r].end > 0 ? share[r].end : all[r].begin, all[r].end);
    }
}

/* Other threads wait for their next share. */
static void put_worker(Trace *t, int64_t step, int thread)
{
    const RtSpan *share = measurement_spans(t->t, step, thread), *whole = &t->t->whole[step];
    double last = whole->begin;
    for (int64_t r = 0; r < t->t->n_runs; r++) {
        if (share[r].end <= 0)
            continue;
        put_wait(t, FIRST_THREAD + thread, last, share[r].begin);
        put_span(t, FIRST_THREAD + thread, share[r].begin, share[r].end, call_of(t, r));
        last = share[r].end;
    }
    put_wait(t, FIRST_THREAD + thread, last, whole->end);
}

static void put_threads(Trace *t, int64_t step)
{
    put_main(t, step);
    for (int thread = 1; thread < t->n_threads; thread++)
        put_worker(t, step, thread);
}

static void put_name(Trace *t, const char *what, int track, const char *name)
{
    begin_event(t, "M", track);
    strbuf_printf(&t->out, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    put_text(&t->out, name);
    strbuf_put(&t->out, "}}");
}

static void put_track(Trace *t, int track, const char *name)
{
    put_name(t, "thread_name", track, name);
    begin_event(t, "M", track);
    strbuf_printf(&t->out, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}", track);
}

static void put_names(Trace *t)
{
    const Session *s = &t->m->running.session;
    Pool *pool = s->cli->pool;
    put_name(t, "process_name", STEPS_TRACK, pool_printf(pool, "scrimp bench %s", s->cli->file));
    put_track(t, STEPS_TRACK, "steps");
    for (int thread = 0; thread < t->n_threads; thread++)
        put_track(t, FIRST_THREAD + thread, profile_track_name(t->m, thread));
}

/* --- the file --- */

static void put_head(Trace *t)
{
    const Session *s = &t->m->running.session;
    strbuf_put(&t->out,
               "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"program\":\"scrimp " SCRIMP_VERSION
               "\",\"model\":");
    put_text(&t->out, s->cli->file);
    strbuf_printf(&t->out,
                  ",\"persistent_bytes\":%" PRId64 ",\"peak_bytes\":%" PRId64
                  ",\"arena_bytes\":%" PRId64 "},\n\"traceEvents\":[\n",
                  s->plan->persistent_bytes, s->plan->peak_bytes, s->plan->arena_bytes);
    put_names(t);
}

ExitCode trace_write(const Measurement *m, const char *path)
{
    const Session *s = &m->running.session;
    Pool *pool = s->cli->pool;
    Trace t = {.m = m,
               .t = &m->times,
               .out = strbuf_new(pool),
               .origin = m->times.whole[0].begin,
               .call = POOL_ARRAY(pool, (size_t)m->times.n_calls, const char *),
               .facts = step_facts(pool, s->graph, s->plan, NULL),
               .n_threads = s->cuda ? 1 : m->times.n_rows - 1};
    for (int k = 0; k < m->times.n_calls; k++)
        t.call[k] = call_arguments(pool, s->graph, &s->step->calls[k], k);
    put_head(&t);
    for (int64_t i = 0; i < m->times.n; i++) {
        put_step(&t, i);
        put_threads(&t, i);
    }
    strbuf_put(&t.out, "\n]}\n");
    return cli_write_file(s->cli, path, t.out.text);
}
