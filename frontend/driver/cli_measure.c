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
    return (StepNumbers){LEARNING_RATE, update, 0, 1};
}

/* As train runs it: on a device the inputs of the next step travel meanwhile; those of this one
 * were sent. */
static bool run_step(Session *s, int64_t update)
{
    if (!s->cuda)
        return session_run(s, numbers(update));
    return session_start(s) && session_send(s, numbers(update + 1)) && session_finish(s);
}

bool measurement_run(Measurement *m, int64_t n, StepTimes *out)
{
    Session *session = &m->running.session;
    Pool *pool = session->cli->pool;
    int calls = session->step->n_calls;
    bool ok = session_send(session, numbers(0));
    StepTimes t = {.n = n,
                   .n_calls = calls,
                   .step = POOL_ARRAY(pool, (size_t)n, double),
                   .call = POOL_ARRAY(pool, (size_t)n * (size_t)calls, double)};
    session->context.profile = &m->profile; /* of the host */
    for (int64_t i = -WARM_UP_STEPS; i < n && ok; i++) {
        memset(m->profile.seconds, 0, (size_t)calls * sizeof *m->profile.seconds);
        double start = clock_seconds();
        ok = run_step(session, i + WARM_UP_STEPS);
        double seconds = clock_seconds() - start;
        if (ok && session->cuda)
            ok = session_measure(session, &m->profile);
        if (i < 0 || !ok)
            continue;
        t.step[i] = seconds;
        memcpy(t.call + i * calls, m->profile.seconds, (size_t)calls * sizeof *t.call);
    }
    session->context.profile = NULL;
    *out = t;
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

double *measurement_medians(Measurement *m, int64_t n)
{
    Pool *pool = m->running.session.cli->pool;
    StepTimes t;
    if (!measurement_run(m, n, &t))
        return NULL;
    double *seconds = POOL_ARRAY(pool, (size_t)n, double);
    double *out = POOL_ARRAY(pool, (size_t)t.n_calls, double);
    for (int k = 0; k < t.n_calls; k++) {
        for (int64_t i = 0; i < n; i++)
            seconds[i] = t.call[i * t.n_calls + k];
        measurement_sort(seconds, n);
        out[k] = seconds[n / 2];
    }
    return out;
}
