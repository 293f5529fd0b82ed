/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_measure.h"
#include "frontend/driver/cli_program.h"
#include "ir/support/clock.h"

#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 2 };
static const double LEARNING_RATE = 1e-4;

static bool prepare(Cli *cli, const Program *program, Measurement *m)
{
    if (!running_open(cli, program, &m->running))
        return false;
    int n = m->running.session.step->n_calls;
    m->profile = (RtProfile){.n = n,
                             .seconds = POOL_ARRAY(cli->pool, (size_t)n, double),
                             .count = POOL_ARRAY(cli->pool, (size_t)n, int64_t)};
    return session_initialize(&m->running.session, 1) &&
           session_fill(&m->running.session, m->data, 0, false);
}

bool measurement_open(Cli *cli, const Program *program, Measurement *out)
{
    *out = (Measurement){.data = session_open_data(cli, program->graph, true, 1)};
    bool ok = out->data && prepare(cli, program, out);
    if (!ok)
        measurement_close(out);
    return ok;
}

void measurement_close(Measurement *m)
{
    running_close(&m->running);
    dataset_close(m->data);
    m->data = NULL;
}

static StepNumbers numbers(int64_t update)
{
    return (StepNumbers){.lr = LEARNING_RATE, .update = update, .seed = 1};
}

/* As train runs it: on a device the inputs of the next step travel meanwhile; those of this one
 * were sent. */
static bool run_step(Session *s, int64_t update)
{
    if (!s->cuda)
        return session_run(s, numbers(update));
    return session_start(s) && session_send(s, numbers(update + 1)) && session_finish(s);
}

/* Where the spans of step i go; NULL: nowhere, as those of steps that warm up. */
static RtSpan *room_for_spans(const StepTimes *t, int64_t i)
{
    size_t each = (size_t)t->n_rows * (size_t)t->n_calls;
    if (i < 0)
        return NULL;
    if (t->latest)
        memset(t->latest, 0, each * sizeof *t->latest);
    return t->span ? t->span + (size_t)i * each : t->latest;
}

/* Of each call of step i: what is left of it behind the shares of all threads. */
static void note_waiting(const StepTimes *t, int64_t i, const RtSpan *span)
{
    const int threads = t->n_rows - 1;
    for (int k = 0; k < t->n_calls; k++) {
        const RtSpan *whole = &span[threads * t->n_calls + k];
        double busy = 0;
        for (int thread = 0; thread < threads; thread++)
            busy += span[thread * t->n_calls + k].end - span[thread * t->n_calls + k].begin;
        t->waiting[i * t->n_calls + k] = whole->end - whole->begin - busy / threads;
    }
}

/* What the profile has of this step, on the host's clock: a device counts from its first call. */
static void keep_spans(const Measurement *m, int64_t i, double begin, double end)
{
    const StepTimes *t = &m->times;
    RtSpan *span = m->profile.span;
    bool device = m->running.session.cuda != NULL;
    for (int k = 0; device && k < t->n_calls; k++) {
        span[k].begin += begin;
        span[k].end += begin;
        end = span[k].end;
    }
    t->whole[i] = (RtSpan){begin, end};
}

/* i < 0: to warm up. */
static bool one_step(Measurement *m, int64_t i)
{
    Session *session = &m->running.session;
    const StepTimes *t = &m->times;
    size_t calls = (size_t)t->n_calls;
    RtSpan *span = room_for_spans(t, i);
    memset(m->profile.seconds, 0, calls * sizeof *m->profile.seconds);
    m->profile.span = session->cuda ? NULL : span;
    double begin = clock_seconds();
    bool ok = run_step(session, m->steps++);
    double end = clock_seconds(), seconds = end - begin;
    if (ok && session->cuda) {
        m->profile.span = span;
        begin = clock_seconds();
        ok = session_measure(session, &m->profile);
        for (int k = 0; k < t->n_calls; k++) /* of a loop, it is the last step's */
            m->profile.seconds[k] *= (double)call_times(&session->step->calls[k]);
    }
    if (i < 0 || !ok)
        return ok;
    t->step[i] = seconds;
    memcpy(t->call + (size_t)i * calls, m->profile.seconds, calls * sizeof *t->call);
    if (t->waiting)
        note_waiting(t, i, span);
    if (t->span)
        keep_spans(m, i, begin, end);
    return true;
}

static void make_room(Measurement *m, int64_t n, StepDetail detail)
{
    Session *s = &m->running.session;
    Pool *pool = s->cli->pool;
    int calls = s->step->n_calls;
    StepTimes *t = &m->times;
    *t = (StepTimes){.n = n,
                     .n_calls = calls,
                     .step = POOL_ARRAY(pool, (size_t)n, double),
                     .call = POOL_ARRAY(pool, (size_t)n * (size_t)calls, double),
                     .n_rows = s->cuda ? 1 : threads_count(s->machine->threads) + 1};
    size_t spans = (size_t)t->n_rows * (size_t)calls;
    if (detail != DETAIL_NONE && !s->cuda)
        t->waiting = POOL_ARRAY(pool, (size_t)n * (size_t)calls, double);
    if (detail == DETAIL_WAITING && !s->cuda)
        t->latest = POOL_ARRAY(pool, spans, RtSpan);
    if (detail != DETAIL_SPANS)
        return;
    t->whole = POOL_ARRAY(pool, (size_t)n, RtSpan);
    t->span = POOL_ARRAY(pool, (size_t)n * spans, RtSpan);
}

bool measurement_begin(Measurement *m, int64_t n, StepDetail detail)
{
    Session *session = &m->running.session;
    make_room(m, n, detail);
    session->context.profile = &m->profile; /* of the host */
    bool ok = session_send(session, numbers(0));
    for (int64_t i = -WARM_UP_STEPS; i < 0 && ok; i++)
        ok = one_step(m, i);
    return ok;
}

bool measurement_step(Measurement *m, int64_t i)
{
    return one_step(m, i);
}

bool measurement_run(Measurement *m, int64_t n, StepDetail detail)
{
    bool ok = measurement_begin(m, n, detail);
    for (int64_t i = 0; i < n && ok; i++)
        ok = measurement_step(m, i);
    return ok;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void measurement_sort(double *seconds, int64_t n)
{
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
}

Spread measurement_spread(double *seconds, int64_t n)
{
    measurement_sort(seconds, n);
    return (Spread){seconds[n / 2], seconds[n / 4], seconds[n - 1 - n / 4]};
}

double *measurement_medians(Measurement *m, int64_t n)
{
    Pool *pool = m->running.session.cli->pool;
    if (!measurement_run(m, n, DETAIL_NONE))
        return NULL;
    const StepTimes t = m->times;
    double *seconds = POOL_ARRAY(pool, (size_t)n, double);
    double *out = POOL_ARRAY(pool, (size_t)t.n_calls, double);
    for (int k = 0; k < t.n_calls; k++) {
        for (int64_t i = 0; i < n; i++)
            seconds[i] = t.call[i * t.n_calls + k];
        out[k] = measurement_spread(seconds, n).median;
    }
    return out;
}
