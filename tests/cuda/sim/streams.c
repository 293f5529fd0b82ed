/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Streams, events and graphs: what is put on a stream is kept until somebody waits for it. */
#include "driver_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct Event {
    struct Stream *stream; /* where it was recorded last */
    unsigned long recorded, reached;
    int timed;
    double at; /* ms, of the last record that was reached */
};

typedef struct Queue {
    Work *first, *last;
} Queue;

typedef struct Stream {
    Queue queue;
    Queue *capture;
    int invalid; /* what is captured */
    int at_once; /* SCRIMP_SIM_STREAM */
} Stream;

static void push(Queue *q, const Work *w)
{
    Work *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    *copy = *w;
    copy->next = NULL;
    if (q->last)
        q->last->next = copy;
    else
        q->first = copy;
    q->last = copy;
}

static void clear(Queue *q)
{
    for (Work *w = q->first, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    *q = (Queue){NULL, NULL};
}

static int run_until(Stream *s, const Event *event, unsigned long number);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int perform(const Work *w)
{
    if (w->kind == LAUNCH)
        return run_kernel(w->function, w->blocks, w->threads, w->parameter);
    if (w->kind == CALL)
        w->call(w->user);
    if (w->kind == COPY)
        memmove(w->to, w->from, w->bytes);
    for (size_t i = 0; w->kind == FILL && i < w->bytes; i++)
        memcpy(w->to + 4 * i, &w->word, 4);
    if (w->kind == RECORD) {
        w->event->reached = w->number;
        w->event->at = now();
    }
    if (w->kind == WAIT)
        return run_until(w->event->stream, w->event, w->number);
    return CUDA_OK;
}

/* Runs what is on the stream, in order, up to a record of the event; event NULL: all of it.  Behind
 * an error nothing runs. */
static int run_until(Stream *s, const Event *event, unsigned long number)
{
    int error = CUDA_OK;
    while (s->queue.first && error == CUDA_OK && !(event && event->reached >= number)) {
        Work *w = s->queue.first;
        s->queue.first = w->next;
        if (!w->next)
            s->queue.last = NULL;
        error = perform(w);
        free(w);
    }
    if (error != CUDA_OK)
        clear(&s->queue);
    return error;
}

int put(void *stream, const Work *w)
{
    Stream *s = stream;
    if (!has_context())
        return NO_CONTEXT;
    push(s->capture ? s->capture : &s->queue, w);
    return s->at_once && !s->capture ? run_until(s, NULL, 0) : CUDA_OK;
}

EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
    static int made;
    const char *at_once = getenv("SCRIMP_SIM_STREAM");
    if (!has_context())
        return NO_CONTEXT;
    Stream *s = is_full(__func__) ? NULL : calloc(1, sizeof *s);
    (void)flags;
    *stream = s;
    if (!s)
        return CUDA_OUT_OF_MEMORY;
    made++;
    s->at_once = at_once && atoi(at_once) == made;
    return CUDA_OK;
}

EXPORT int cuStreamSynchronize(void *stream)
{
    Stream *s = stream;
    if (!s->capture)
        return run_until(s, NULL, 0);
    s->invalid = 1;
    return CAPTURE_UNSUPPORTED;
}

EXPORT int cuStreamDestroy_v2(void *stream)
{
    clear(&((Stream *)stream)->queue);
    free(stream);
    return CUDA_OK;
}

EXPORT int cuLaunchHostFunc(void *stream, void (*call)(void *user), void *user)
{
    return call ? put(stream, &(Work){.kind = CALL, .call = call, .user = user}) : BAD_VALUE;
}

/* --- events --- */

EXPORT int cuEventCreate(void **event, unsigned flags)
{
    Event *e = is_full(__func__) ? NULL : calloc(1, sizeof(Event));
    *event = e;
    if (!e)
        return CUDA_OUT_OF_MEMORY;
    e->timed = !(flags & CUDA_EVENT_DISABLE_TIMING);
    return CUDA_OK;
}

EXPORT int cuEventDestroy_v2(void *event)
{
    free(event);
    return CUDA_OK;
}

/* Dependencies between captured streams are not simulated. */
EXPORT int cuEventRecord(void *event, void *stream)
{
    Event *e = event;
    Stream *s = stream;
    if (s->capture)
        return CAPTURE_UNSUPPORTED;
    e->stream = s;
    return put(s, &(Work){.kind = RECORD, .event = e, .number = ++e->recorded});
}

/* For the last record so far; none: for nothing. */
EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    Event *e = event;
    if (flags || ((Stream *)stream)->capture)
        return CAPTURE_UNSUPPORTED;
    if (!e->recorded)
        return CUDA_OK;
    return put(stream, &(Work){.kind = WAIT, .event = e, .number = e->recorded});
}

EXPORT int cuEventSynchronize(void *event)
{
    const Event *e = event;
    return e->stream ? run_until(e->stream, e, e->recorded) : CUDA_OK;
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *begin, void *end)
{
    const Event *b = begin, *e = end;
    if (!b->timed || !e->timed || !b->recorded || !e->recorded)
        return BAD_HANDLE;
    if (b->reached < b->recorded || e->reached < e->recorded)
        return NOT_READY;
    *milliseconds = (float)(e->at - b->at);
    return CUDA_OK;
}

/* --- graphs --- */

/* What is refused while a stream is captured spoils the capture. */
static Stream *captured;

int refused(void)
{
    if (captured)
        captured->invalid = 1;
    return captured ? CAPTURE_UNSUPPORTED : has_context() ? CUDA_OK : NO_CONTEXT;
}

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode)
{
    Stream *s = stream;
    if (mode != CUDA_CAPTURE_THREAD_LOCAL || captured)
        return BAD_VALUE;
    s->capture = calloc(1, sizeof(Queue));
    s->invalid = 0;
    captured = s->capture ? s : NULL;
    return s->capture ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

EXPORT int cuStreamEndCapture(void *stream, void **graph)
{
    Stream *s = stream;
    *graph = s->capture;
    s->capture = NULL;
    captured = NULL;
    if (!*graph || !s->invalid)
        return *graph ? CUDA_OK : BAD_VALUE;
    clear(*graph);
    free(*graph);
    *graph = NULL;
    return CAPTURE_INVALIDATED;
}

EXPORT int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    (void)flags;
    Queue *copy = is_full(__func__) ? NULL : calloc(1, sizeof *copy);
    for (const Work *w = ((Queue *)graph)->first; copy && w; w = w->next)
        push(copy, w);
    *executable = copy;
    return copy ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

EXPORT int cuGraphLaunch(void *executable, void *stream)
{
    int error = is_full(__func__) ? CUDA_OUT_OF_MEMORY : CUDA_OK;
    for (const Work *w = ((Queue *)executable)->first; w && error == CUDA_OK; w = w->next)
        error = put(stream, w);
    return error;
}

EXPORT int cuGraphDestroy(void *graph)
{
    clear(graph);
    free(graph);
    return CUDA_OK;
}

EXPORT int cuGraphExecDestroy(void *executable)
{
    return cuGraphDestroy(executable);
}
