#include "frontend/cli_measure.h"
#include "ir/support/clock.h"

#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 2 };
static const double LEARNING_RATE = 1e-4;

static bool prepare(Cli *cli, const Program *program, Measurement *m)
{
    if (!host_open(cli, program, &m->host))
        return false;
    int n = m->host.session.step->n_calls;
    m->profile = (RtProfile){.n = n,
                             .seconds = POOL_ARRAY(cli->pool, (size_t)n, double),
                             .count = POOL_ARRAY(cli->pool, (size_t)n, int64_t)};
    return session_initialize(&m->host.session, 1) &&
           session_fill(&m->host.session, m->data, 0, false);
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
    host_close(&m->host);
    dataset_close(m->data);
    m->data = NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double of_rank(double *seconds, int64_t n, int64_t rank)
{
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    return seconds[rank];
}

double measurement_steps(Measurement *m, int64_t n)
{
    double *seconds = POOL_ARRAY(m->host.session.cli->pool, (size_t)n, double);
    for (int64_t i = -WARM_UP_STEPS; i < n; i++) {
        double start = clock_seconds();
        session_run(&m->host.session, LEARNING_RATE, i + WARM_UP_STEPS, 0, 1);
        if (i >= 0)
            seconds[i] = clock_seconds() - start;
    }
    return of_rank(seconds, n, n / 2);
}

double *measurement_calls(Measurement *m, int64_t n, int64_t rank)
{
    size_t calls = (size_t)m->host.session.step->n_calls;
    double *seconds = POOL_ARRAY(m->host.session.cli->pool, calls * (size_t)n, double);
    double *out = POOL_ARRAY(m->host.session.cli->pool, calls, double);
    m->host.session.context.profile = &m->profile;
    for (int64_t i = 0; i < n; i++) {
        memset(m->profile.seconds, 0, calls * sizeof *m->profile.seconds);
        session_run(&m->host.session, LEARNING_RATE, i, 0, 1);
        for (size_t k = 0; k < calls; k++)
            seconds[k * (size_t)n + (size_t)i] = m->profile.seconds[k];
    }
    m->host.session.context.profile = NULL;
    for (size_t k = 0; k < calls; k++)
        out[k] = of_rank(seconds + k * (size_t)n, n, rank);
    return out;
}
