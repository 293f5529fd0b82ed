#include "frontend/cli_measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP_STEPS = 2 };
static const double LEARNING_RATE = 1e-4;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool open_memory(Cli *cli, const Program *program, Measurement *m)
{
    RtError err;
    if (!session_compile(cli, program, &m->session))
        return false;
    m->threads = threads_new((int)cli->threads, &err);
    if (!m->threads || !arena_map(&m->arena, program->plan->arena_bytes, &err)) {
        cli_error(cli, EXIT_USER, "E804", NULL, "%s", err.message);
        return false;
    }
    int n = m->session.step->n_calls;
    m->profile = (RtProfile){.n = n,
                             .seconds = POOL_ARRAY(cli->pool, (size_t)n, double),
                             .count = POOL_ARRAY(cli->pool, (size_t)n, int64_t)};
    session_attach(&m->session, m->arena.base, m->threads, NULL);
    return session_initialize(&m->session, 1) && session_fill(&m->session, m->data, 0, false);
}

bool measurement_open(Cli *cli, const Program *program, Measurement *out)
{
    *out = (Measurement){.data = session_open_data(cli, program->graph, true, 1)};
    bool ok = out->data && open_memory(cli, program, out);
    if (!ok)
        measurement_close(out);
    return ok;
}

void measurement_close(Measurement *m)
{
    threads_free(m->threads);
    if (m->arena.base)
        arena_unmap(&m->arena);
    session_close(&m->session);
    dataset_close(m->data);
    m->threads = NULL;
    m->arena.base = NULL;
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
    double *seconds = POOL_ARRAY(m->session.cli->pool, (size_t)n, double);
    for (int64_t i = -WARM_UP_STEPS; i < n; i++) {
        double start = now_seconds();
        session_run(&m->session, LEARNING_RATE, i + WARM_UP_STEPS, 0, 1);
        if (i >= 0)
            seconds[i] = now_seconds() - start;
    }
    return of_rank(seconds, n, n / 2);
}

double *measurement_calls(Measurement *m, int64_t n, int64_t rank)
{
    size_t calls = (size_t)m->session.step->n_calls;
    double *seconds = POOL_ARRAY(m->session.cli->pool, calls * (size_t)n, double);
    double *out = POOL_ARRAY(m->session.cli->pool, calls, double);
    m->session.context.profile = &m->profile;
    for (int64_t i = 0; i < n; i++) {
        memset(m->profile.seconds, 0, calls * sizeof *m->profile.seconds);
        session_run(&m->session, LEARNING_RATE, i, 0, 1);
        for (size_t k = 0; k < calls; k++)
            seconds[k * (size_t)n + (size_t)i] = m->profile.seconds[k];
    }
    m->session.context.profile = NULL;
    for (size_t k = 0; k < calls; k++)
        out[k] = of_rank(seconds + k * (size_t)n, n, rank);
    return out;
}
