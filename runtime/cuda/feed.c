/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/feed.h"

#include "runtime/cuda/device_internal.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2, ALIGN = 256 };

/* Tensors, one behind the other in a buffer. */
typedef struct Pieces {
    CudaPiece *piece;
    int64_t *at; /* in the buffer */
    int n;
    int64_t bytes;
} Pieces;

struct CudaFeed {
    CudaDevice *device;
    Pieces in, out;
    void *stream; /* of the copies to the device */
    char *slot[SLOTS], *back;
    void *sent[SLOTS]; /* events: the slot's bytes are on the device, */
    void *placed;      /* the inputs are where the plan has them, */
    void *returned;    /* the outputs are here */
    CudaAddress staging;
    int turn; /* the slot that is filled next */
};

static bool lay_out(Pieces *p, const CudaPiece *piece, int n, RtError *err)
{
    p->piece = rt_alloc(n, sizeof *p->piece, err);
    p->at = rt_alloc(n, sizeof *p->at, err);
    bool ok = p->piece && p->at;
    for (; p->n < n && ok; p->n++) {
        p->piece[p->n] = piece[p->n];
        p->at[p->n] = p->bytes;
        ok = rt_add(p->bytes, piece[p->n].bytes, &p->bytes) &&
             rt_add(p->bytes, (ALIGN - p->bytes % ALIGN) % ALIGN, &p->bytes);
        if (!ok)
            rt_error(err, "inputs or outputs of more than 2^63 bytes");
    }
    return ok;
}

/* Memory that the device copies from and to without the processor, so that copies run beside a
 * step.
 */
static bool lock_memory(const CudaDevice *d, int64_t bytes, char **out, RtError *err)
{
    void *p = NULL;
    int error = d->cu->allocate_host(&p, bytes ? (size_t)bytes : 1, 0);
    *out = p;
    if (error == CUDA_OUT_OF_MEMORY) /* of this machine, not of the device */
        return rt_error(err, "no page-locked memory of %lld bytes for inputs or outputs is left",
                        (long long)bytes);
    return cuda_check(d, error, "page-locked memory", err);
}

static bool make_event(const CudaDevice *d, void **event, RtError *err)
{
    return cuda_check(d, d->cu->event_create(event, CUDA_EVENT_DISABLE_TIMING), "event", err);
}

static bool make_buffers(CudaFeed *f, RtError *err)
{
    CudaDevice *d = f->device;
    bool ok =
        cuda_check(d, d->cu->stream_create(&f->stream, CUDA_STREAM_NON_BLOCKING), "stream", err);
    for (int i = 0; i < SLOTS && ok; i++)
        ok = lock_memory(d, f->in.bytes, &f->slot[i], err) && make_event(d, &f->sent[i], err);
    ok = ok && lock_memory(d, f->out.bytes, &f->back, err) && make_event(d, &f->placed, err) &&
         make_event(d, &f->returned, err);
    if (!ok || !f->in.bytes)
        return ok;
    ok = cuda_check(d, d->cu->allocate(&f->staging, (size_t)f->in.bytes),
                    "memory for inputs on their way", err);
    d->staging += ok ? f->in.bytes : 0;
    return ok;
}

CudaFeed *cuda_feed_open(CudaDevice *d, const CudaPiece *in, int n_in, const CudaPiece *out,
                         int n_out, RtError *err)
{
    CudaFeed *f = rt_alloc(1, sizeof *f, err);
    if (!f)
        return NULL;
    f->device = d;
    if (lay_out(&f->in, in, n_in, err) && lay_out(&f->out, out, n_out, err) && make_buffers(f, err))
        return f;
    cuda_feed_close(f);
    return NULL;
}

static void free_events(CudaFeed *f)
{
    void *events[] = {f->sent[0], f->sent[1], f->placed, f->returned};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (events[i])
            f->device->cu->event_destroy(events[i]);
}

void cuda_feed_close(CudaFeed *f)
{
    if (!f)
        return;
    CudaDevice *d = f->device;
    if (f->stream) /* copies may be under way in both streams, of which one waits for the other */
        d->cu->stream_wait(f->stream);
    d->cu->stream_wait(d->stream);
    if (f->staging) {
        d->cu->release(f->staging);
        d->staging -= f->in.bytes;
    }
    free_events(f);
    for (int i = 0; i < SLOTS; i++)
        if (f->slot[i])
            d->cu->release_host(f->slot[i]);
    if (f->back)
        d->cu->release_host(f->back);
    if (f->stream)
        d->cu->stream_destroy(f->stream);
    free(f->in.piece);
    free(f->in.at);
    free(f->out.piece);
    free(f->out.at);
    free(f);
}

int64_t cuda_feed_locked_bytes(const CudaFeed *f)
{
    return SLOTS * f->in.bytes + f->out.bytes;
}

/* The slot is free when its last copy has been made; the buffer on the device when the step's
 * stream has taken from it what was sent before. */
bool cuda_feed_send(CudaFeed *f, RtError *err)
{
    const CudaDevice *d = f->device;
    char *slot = f->slot[f->turn];
    void *sent = f->sent[f->turn];
    if (!f->in.bytes)
        return true;
    if (!cuda_check(d, d->cu->event_wait(sent), "sending inputs", err))
        return false;
    for (int i = 0; i < f->in.n; i++)
        memcpy(slot + f->in.at[i], f->in.piece[i].here, (size_t)f->in.piece[i].bytes);
    f->turn = (f->turn + 1) % SLOTS;
    return cuda_check(d, d->cu->stream_wait_event(f->stream, f->placed, 0), "sending inputs",
                      err) &&
           cuda_check(d, d->cu->to_device(f->staging, slot, (size_t)f->in.bytes, f->stream),
                      "sending inputs", err) &&
           cuda_check(d, d->cu->event_record(sent, f->stream), "sending inputs", err);
}

bool cuda_feed_place(CudaFeed *f, RtError *err)
{
    const CudaDevice *d = f->device;
    void *sent = f->sent[(f->turn + SLOTS - 1) % SLOTS];
    bool ok = !f->in.bytes || cuda_check(d, d->cu->stream_wait_event(d->stream, sent, 0),
                                         "waiting for inputs", err);
    for (int i = 0; i < f->in.n && ok; i++) {
        const CudaPiece *p = &f->in.piece[i];
        CudaAddress from = f->staging + (CudaAddress)f->in.at[i];
        ok = cuda_check(
            d,
            d->cu->on_device(d->arena + (CudaAddress)p->offset, from, (size_t)p->bytes, d->stream),
            "placing inputs", err);
    }
    return ok && cuda_check(d, d->cu->event_record(f->placed, d->stream), "placing inputs", err);
}

bool cuda_feed_return(CudaFeed *f, RtError *err)
{
    const CudaDevice *d = f->device;
    bool ok = true;
    for (int i = 0; i < f->out.n && ok; i++) {
        const CudaPiece *p = &f->out.piece[i];
        CudaAddress from = d->arena + (CudaAddress)p->offset;
        ok = cuda_check(
            d, d->cu->from_device(f->back + f->out.at[i], from, (size_t)p->bytes, d->stream),
            "reading outputs", err);
    }
    return ok && cuda_check(d, d->cu->event_record(f->returned, d->stream), "reading outputs", err);
}

bool cuda_feed_wait(CudaFeed *f, RtError *err)
{
    const CudaDevice *d = f->device;
    if (!cuda_check(d, d->cu->event_wait(f->returned), "running a step", err))
        return false;
    for (int i = 0; i < f->out.n; i++)
        memcpy(f->out.piece[i].here, f->back + f->out.at[i], (size_t)f->out.piece[i].bytes);
    return true;
}
