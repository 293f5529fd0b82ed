/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/timer.h"

#include "runtime/cuda/device_internal.h"

#include <stdlib.h>

typedef struct Span {
    void *begin, *end; /* events */
    bool ended;
} Span;

struct CudaTimer {
    const CudaDevice *device;
    Span *span; /* by call */
    int n;
};

static bool create(const CudaDevice *d, Span *span, RtError *err)
{
    return cuda_check(d, d->cu->event_create(&span->begin, 0), "an event to measure with", err) &&
           cuda_check(d, d->cu->event_create(&span->end, 0), "an event to measure with", err);
}

CudaTimer *cuda_timer_open(const CudaDevice *d, int n_calls, RtError *err)
{
    CudaTimer *t = rt_alloc(1, sizeof *t, err);
    if (!t)
        return NULL;
    *t = (CudaTimer){.device = d, .span = rt_alloc(n_calls + 1, sizeof *t->span, err)};
    bool ok = t->span != NULL;
    while (ok && t->n < n_calls)
        ok = create(d, &t->span[t->n++], err);
    if (ok)
        return t;
    cuda_timer_close(t);
    return NULL;
}

void cuda_timer_close(CudaTimer *t)
{
    for (int i = 0; t && i < t->n; i++) {
        if (t->span[i].begin)
            t->device->cu->event_destroy(t->span[i].begin);
        if (t->span[i].end)
            t->device->cu->event_destroy(t->span[i].end);
    }
    free(t ? t->span : NULL);
    free(t);
}

int cuda_timer_begin(CudaTimer *t, int call)
{
    t->span[call].ended = false;
    return t->device->cu->event_record(t->span[call].begin, t->device->stream);
}

int cuda_timer_end(CudaTimer *t, int call)
{
    t->span[call].ended = true;
    return t->device->cu->event_record(t->span[call].end, t->device->stream);
}

static bool seconds_between(const CudaDevice *d, void *begin, void *end, double *out, RtError *err)
{
    float milliseconds = 0;
    bool ok =
        cuda_check(d, d->cu->event_elapsed(&milliseconds, begin, end), "the time of a call", err);
    *out = 1e-3 * (double)milliseconds;
    return ok;
}

/* Both ends from one origin: spans that do not overlap do not do so here. */
static bool put_span(const CudaTimer *t, int call, RtSpan *out, RtError *err)
{
    const Span *s = &t->span[call];
    void *origin = t->span[0].begin;
    return seconds_between(t->device, origin, s->begin, &out->begin, err) &&
           seconds_between(t->device, origin, s->end, &out->end, err);
}

static bool add_call(const CudaTimer *t, int call, RtProfile *profile, RtError *err)
{
    Span *s = &t->span[call];
    double seconds;
    if (!seconds_between(t->device, s->begin, s->end, &seconds, err) ||
        (profile->span && !put_span(t, call, &profile->span[call], err)))
        return false;
    s->ended = false;
    profile->seconds[call] += seconds;
    profile->count[call]++;
    return true;
}

bool cuda_timer_add(CudaTimer *t, RtProfile *profile, RtError *err)
{
    const CudaDevice *d = t->device;
    bool ok = cuda_check(d, d->cu->stream_wait(d->stream), "running the step", err);
    for (int i = 0; i < t->n && ok; i++)
        ok = !t->span[i].ended || add_call(t, i, profile, err);
    return ok;
}
