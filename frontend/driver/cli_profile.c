/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_profile.h"
#include "frontend/driver/cli_where.h"

#include "codegen/build/flops_peak.h"
#include "runtime/stream.h"

#include <stdlib.h>
#include <string.h>

double profile_rate(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds / 1e9 : 0;
}

static const Step *step_of(const Measurement *m)
{
    return m->running.session.step;
}

static Pool *pool_of(const Measurement *m)
{
    return m->running.session.cli->pool;
}

/* --- rows --- */

/* The row of every call, in the order of their first calls. */
static int *name_rows(const Measurement *m, StepProfile *p)
{
    const Step *step = step_of(m);
    Pool *pool = pool_of(m);
    Map index = map_new(pool);
    int *row_of = POOL_ARRAY(pool, (size_t)step->n_calls, int);
    p->kernel = POOL_ARRAY(pool, (size_t)step->n_calls, KernelRow);
    for (int i = 0; i < step->n_calls; i++) {
        const Call *c = &step->calls[i];
        const uint64_t *found = map_find(&index, c->label);
        int row = row_of[i] = found ? (int)*found : p->n_kernels++;
        if (!found)
            map_set(&index, c->label, (uint64_t)row);
        KernelRow *r = &p->kernel[row];
        r->name = c->label;
        r->calls += (int)call_times(c);
        r->flops += c->flops * (double)call_times(c);
        r->bytes += c->bytes * (double)call_times(c);
        r->line = r->line ? r->line : loc_line(&c->loc);
    }
    return row_of;
}

static void place_rows(const Measurement *m, StepProfile *p, const int *row_of)
{
    const Step *step = step_of(m);
    Loc *loc = POOL_ARRAY(pool_of(m), (size_t)step->n_calls, Loc);
    for (int r = 0; r < p->n_kernels; r++) {
        int n = 0;
        for (int i = 0; i < step->n_calls; i++)
            if (row_of[i] == r)
                loc[n++] = step->calls[i].loc;
        p->kernel[r].where = where_text(pool_of(m), loc, n, true);
        p->kernel[r].path = where_text(pool_of(m), loc, n, false);
    }
}

/* A row's place before it was sorted. */
typedef struct Place {
    const KernelRow *row;
    int from;
} Place;

static int by_seconds(const void *a, const void *b)
{
    const KernelRow *x = ((const Place *)a)->row, *y = ((const Place *)b)->row;
    if (x->time.median != y->time.median)
        return x->time.median > y->time.median ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void sort_rows(Pool *pool, StepProfile *p, int *row_of, int n_calls)
{
    size_t n = (size_t)p->n_kernels;
    Place *place = POOL_ARRAY(pool, n + 1, Place);
    KernelRow *sorted = POOL_ARRAY(pool, n + 1, KernelRow);
    int *to = POOL_ARRAY(pool, n + 1, int);
    for (int r = 0; r < p->n_kernels; r++)
        place[r] = (Place){&p->kernel[r], r};
    qsort(place, n, sizeof *place, by_seconds);
    for (int r = 0; r < p->n_kernels; r++) {
        sorted[r] = *place[r].row;
        to[place[r].from] = r;
    }
    for (int i = 0; i < n_calls; i++)
        row_of[i] = to[row_of[i]];
    p->kernel = sorted;
}

/* The one statistic of steps, rows and what is between kernels. */
static void time_rows(const Measurement *m, StepProfile *p, const int *row_of)
{
    const StepTimes *t = &m->times;
    int64_t n = t->n;
    double *outside = POOL_ARRAY(pool_of(m), (size_t)n, double);
    double *step = POOL_ARRAY(pool_of(m), (size_t)n, double);
    double *row = POOL_ARRAY(pool_of(m), (size_t)n * (size_t)(p->n_kernels + 1), double);
    for (int64_t k = 0; k < n; k++) {
        outside[k] = step[k] = t->step[k];
        for (int i = 0; i < t->n_calls; i++) {
            row[row_of[i] * n + k] += t->call[k * t->n_calls + i];
            outside[k] -= t->call[k * t->n_calls + i];
        }
    }
    p->step = measurement_spread(step, n);
    p->outside = measurement_spread(outside, n);
    p->rest_seconds = p->step.median - p->outside.median;
    for (int r = 0; r < p->n_kernels; r++) {
        p->kernel[r].time = measurement_spread(row + r * n, n);
        p->rest_seconds -= p->kernel[r].time.median;
        p->flops += p->kernel[r].flops;
        p->bytes += p->kernel[r].bytes;
    }
}

/* After time_rows. */
static void time_waiting(const Measurement *m, StepProfile *p, const int *row_of)
{
    const StepTimes *t = &m->times;
    const int rows = p->n_kernels; /* and one for all of them together */
    double *row = POOL_ARRAY(pool_of(m), (size_t)t->n * (size_t)(rows + 1), double);
    p->waiting = -1;
    if (!t->waiting)
        return;
    for (int64_t k = 0; k < t->n; k++)
        for (int i = 0; i < t->n_calls; i++) {
            row[row_of[i] * t->n + k] += t->waiting[k * t->n_calls + i];
            row[rows * t->n + k] += t->waiting[k * t->n_calls + i];
        }
    for (int r = 0; r < rows; r++)
        p->kernel[r].waiting = measurement_spread(row + r * t->n, t->n).median;
    p->waiting = measurement_spread(row + rows * t->n, t->n).median;
}

/* --- output --- */

static json_t *row_json(const StepProfile *p, const KernelRow *r)
{
    json_t *o = json_pack("{s:s,s:I,s:f,s:f,s:f}", "name", r->name, "calls", (json_int_t)r->calls,
                          "seconds", r->time.median, "seconds_low", r->time.low, "seconds_high",
                          r->time.high);
    if (p->waiting >= 0)
        json_object_set_new(o, "waiting_seconds", json_real(r->waiting));
    json_object_set_new(o, "gflops", json_real(profile_rate(r->flops, r->time.median)));
    json_object_set_new(o, "gbytes_per_second", json_real(profile_rate(r->bytes, r->time.median)));
    json_object_set_new(o, "flops", json_real(r->flops));
    json_object_set_new(o, "bytes", json_real(r->bytes));
    json_object_set_new(o, "line", json_integer(r->line));
    json_object_set_new(o, "path", json_string(r->path));
    return o;
}

json_t *profile_kernels_json(const StepProfile *p)
{
    json_t *kernels = json_array();
    for (int i = 0; i < p->n_kernels; i++)
        json_array_append_new(kernels, row_json(p, &p->kernel[i]));
    return kernels;
}

/* --- operations --- */

/* Calls of an operation follow each other where no kernels run in turns. */
static void time_nodes(const Measurement *m, StepProfile *p)
{
    const StepTimes *t = &m->times;
    const Call *call = step_of(m)->calls;
    double *seconds = POOL_ARRAY(pool_of(m), (size_t)t->n, double);
    p->node_seconds = POOL_ARRAY(pool_of(m), m->running.session.graph->nodes.len, double);
    for (int from = 0, to; from < t->n_calls; from = to) {
        memset(seconds, 0, (size_t)t->n * sizeof *seconds);
        for (to = from; to < t->n_calls && call[to].node == call[from].node; to++)
            for (int64_t k = 0; k < t->n; k++)
                seconds[k] += t->call[k * t->n_calls + to];
        p->node_seconds[call[from].node] += measurement_spread(seconds, t->n).median;
    }
}

/* --- threads --- */

const char *profile_track_name(const Measurement *m, int thread)
{
    const Session *s = &m->running.session;
    if (s->cuda)
        return cuda_device_name(s->machine->cuda);
    return thread == 0 ? "main" : pool_printf(s->cli->pool, "worker %d", thread);
}

static int64_t median_step(const StepTimes *t, double median)
{
    int64_t i = 0;
    while (t->step[i] < median || t->step[i] > median)
        i++;
    return i;
}

static ThreadTrack track_of(const Measurement *m, const int *row_of, int64_t step, int thread)
{
    const StepTimes *t = &m->times;
    const RtSpan *span = measurement_spans(t, step, thread);
    ThreadEvent *event = POOL_ARRAY(pool_of(m), (size_t)t->n_runs, ThreadEvent);
    int n = 0;
    for (int64_t r = 0; r < t->n_runs; r++)
        if (span[r].end > 0)
            event[n++] = (ThreadEvent){span[r].begin - t->whole[step].begin,
                                       span[r].end - span[r].begin, row_of[t->run_call[r]]};
    return (ThreadTrack){profile_track_name(m, thread), n, event};
}

static void follow_threads(const Measurement *m, StepProfile *p)
{
    const StepTimes *t = &m->times;
    if (!t->span)
        return;
    int64_t step = median_step(t, p->step.median);
    p->n_tracks = m->running.session.cuda ? 1 : t->n_rows - 1;
    p->track = POOL_ARRAY(pool_of(m), (size_t)p->n_tracks, ThreadTrack);
    for (int thread = 0; thread < p->n_tracks; thread++)
        p->track[thread] = track_of(m, p->kernel_of_call, step, thread);
}

/* --- all of it --- */

void profile_add_up(const Measurement *m, StepProfile *out)
{
    *out = (StepProfile){.steps = m->times.n};
    int *row_of = name_rows(m, out);
    place_rows(m, out, row_of);
    time_rows(m, out, row_of);
    time_waiting(m, out, row_of);
    sort_rows(pool_of(m), out, row_of, m->times.n_calls);
    out->kernel_of_call = row_of;
    time_nodes(m, out);
    follow_threads(m, out);
}

bool profile_peaks(const Measurement *m, StepProfile *out)
{
    const char *error = NULL;
    Cli *cli = m->running.session.cli;
    const Machine *machine = m->running.session.machine;
    if (machine->cuda)
        return true;
    double one = codegen_measure_peak_gflops(cli->pool, target_find(cli->build.march), &error);
    if (one <= 0)
        return cli_error(cli, EXIT_USER, "E801", NULL, "%s", error) == EXIT_OK;
    out->peak_gflops = one * threads_count(machine->threads);
    out->peak_gbytes_per_second = stream_gbytes_per_second(machine->threads);
    return true;
}

/* Long loops run more kernels than a page holds. */
static bool spans_fit(const Measurement *m)
{
    enum { MOST_EVENTS = 200000 };
    const Session *s = &m->running.session;
    int tracks = s->cuda ? 1 : threads_count(s->machine->threads);
    return measurement_runs(m) <= MOST_EVENTS / tracks;
}

bool profile_measure(Cli *cli, const Program *program, int64_t steps, StepProfile *out)
{
    Measurement m;
    if (!measurement_open(cli, program, &m))
        return false;
    bool ok = measurement_run(&m, steps, spans_fit(&m) ? DETAIL_SPANS : DETAIL_WAITING);
    if (ok)
        profile_add_up(&m, out);
    ok = ok && profile_peaks(&m, out);
    measurement_close(&m);
    return ok;
}
