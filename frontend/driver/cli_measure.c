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

int64_t measurement_runs(const Measurement *m)
{
    const Session *s = &m->running.session;
    return s->cuda ? s->step->n_calls : calls_runs(s->step->calls, s->step->n_calls);
}

const RtSpan *measurement_spans(const StepTimes *t, int64_t i, int row)
{
    return t->span + ((size_t)i * (size_t)t->n_rows + (size_t)row) * (size_t)t->n_runs;
}

/* Where the spans of step i go; NULL: nowhere, as those of steps that warm up. */
static RtSpan *room_for_spans(const StepTimes *t, int64_t i)
{
    return i < 0 || !t->span ? NULL : t->span + (size_t)(i * t->n_rows * t->n_runs);
}

static void clear_profile(const Measurement *m)
{
    const RtProfile *p = &m->profile;
    memset(p->seconds, 0, (size_t)p->n * sizeof *p->seconds);
    if (p->busy)
        memset(p->busy, 0, (size_t)(m->times.n_rows - 1) * (size_t)p->n * sizeof *p->busy);
}

/* Of each call of step i: what is left of it behind the shares of all threads. */
static void note_waiting(const Measurement *m, int64_t i)
{
    const StepTimes *t = &m->times;
    const RtProfile *p = &m->profile;
    const int threads = t->n_rows - 1;
    for (int k = 0; k < t->n_calls; k++) {
        double busy = 0;
        for (int thread = 0; thread < threads; thread++)
            busy += p->busy[thread * t->n_calls + k];
        t->waiting[i * t->n_calls + k] = p->seconds[k] - busy / threads;
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
    clear_profile(m);
    m->profile.runs = 0;
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
        note_waiting(m, i);
    if (t->span)
        keep_spans(m, i, begin, end);
    return true;
}

static void make_room_for_spans(Measurement *m)
{
    const Session *s = &m->running.session;
    Pool *pool = s->cli->pool;
    StepTimes *t = &m->times;
    t->n_runs = m->profile.n_runs = measurement_runs(m);
    t->run_call = m->profile.run_call = POOL_ARRAY(pool, (size_t)t->n_runs, int32_t);
    t->whole = POOL_ARRAY(pool, (size_t)t->n, RtSpan);
    t->span = POOL_ARRAY(pool, (size_t)(t->n * t->n_rows * t->n_runs), RtSpan);
    for (int k = 0; s->cuda && k < t->n_calls; k++)
        t->run_call[k] = k; /* a device has spans by call */
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
    if (detail != DETAIL_NONE && !s->cuda) {
        t->waiting = POOL_ARRAY(pool, (size_t)n * (size_t)calls, double);
        m->profile.busy = POOL_ARRAY(pool, (size_t)t->n_rows * (size_t)calls, double);
    }
    if (detail == DETAIL_SPANS)
        make_room_for_spans(m);
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
