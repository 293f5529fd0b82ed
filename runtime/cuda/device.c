/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/device.h"

#include "runtime/cuda/device_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POISON = 0x7fc5ca1a };

/* Of the last failure: the device had no memory left. */
static bool full;

bool cuda_out_of_memory(void)
{
    return full;
}

/* Bytes of the device; nothing is left of none where the driver does not answer. */
typedef struct Room {
    int error;
    size_t left, total;
} Room;

static Room room(const CudaDevice *d)
{
    Room r = {0};
    r.error = d->cu->memory_info(&r.left, &r.total);
    return r;
}

static bool what_is_left(const CudaDevice *d, Room r, RtError *err)
{
    return rt_error(err, "%s has %zu of its %zu bytes left", d->is.name, r.left, r.total);
}

/* "12 of its 100 bytes left beside an arena of 80", where the driver says so. */
static bool no_memory(const CudaDevice *d, const char *what, RtError *err)
{
    Room r = room(d);
    full = true;
    if (r.error != CUDA_OK)
        return rt_error(err, "CUDA: %s: the device has no memory left", what);
    what_is_left(d, r, err);
    if (d->bytes)
        rt_error_prefix(err, "beside an arena of %lld bytes", (long long)d->bytes);
    return rt_error_prefix(err, "CUDA: %s: out of memory", what);
}

bool cuda_library_failed(const CudaDevice *d, RtError *err)
{
    const size_t little = (size_t)64 << 20; /* handles and workspaces of libraries take less */
    Room r = room(d);
    RtError why = *err;
    full = false;
    if (r.error == CUDA_OK && r.left < little)
        no_memory(d, why.message, err);
    return false;
}

bool cuda_check(const CudaDevice *d, int error, const char *what, RtError *err)
{
    const char *text = NULL;
    if (error == CUDA_OK)
        return true;
    full = false;
    if (error == CUDA_OUT_OF_MEMORY)
        return no_memory(d, what, err);
    if (d->cu->error_string(error, &text) != CUDA_OK || !text)
        text = "unknown error";
    return rt_error(err, "CUDA: %s: %s (error %d)", what, text, error);
}

/* --- the device --- */

static bool describe(CudaDevice *d, RtError *err)
{
    int major, minor;
    if (!cuda_check(d, d->cu->device_name(d->is.name, sizeof d->is.name, d->ordinal), "its name",
                    err) ||
        !cuda_check(d, d->cu->device_attribute(&major, CUDA_ATTRIBUTE_MAJOR, d->ordinal),
                    "compute capability", err) ||
        !cuda_check(d, d->cu->device_attribute(&minor, CUDA_ATTRIBUTE_MINOR, d->ordinal),
                    "compute capability", err))
        return false;
    snprintf(d->is.arch, sizeof d->is.arch, "sm_%d%d", major % 100, minor % 10);
    return true;
}

/* Device 0, without a context on it. */
static bool find_device(CudaDevice *d, RtError *err)
{
    int n = 0;
    if (!cuda_check(d, d->cu->init(0), "the driver does not start", err) ||
        !cuda_check(d, d->cu->device_count(&n), "counting devices", err))
        return false;
    if (n == 0)
        return rt_error(err, "the CUDA driver knows no device (CUDA_VISIBLE_DEVICES may hide it)");
    return cuda_check(d, d->cu->device(&d->ordinal, 0), "device 0", err) && describe(d, err);
}

static bool in_use(const CudaDevice *d, int64_t *bytes, RtError *err)
{
    Room r = room(d);
    *bytes = (int64_t)(r.total - r.left);
    return cuda_check(d, r.error, "asking for its memory", err);
}

static bool open_device(CudaDevice *d, RtError *err)
{
    return find_device(d, err) &&
           cuda_check(d, d->cu->context_retain(&d->context, d->ordinal), "context", err) &&
           cuda_device_enter(d, err) &&
           cuda_check(d, d->cu->stream_create(&d->stream, CUDA_STREAM_NON_BLOCKING), "stream",
                      err) &&
           in_use(d, &d->at_start, err);
}

/* What the child that asks for the device answers. */
typedef struct Answer {
    bool ok;
    CudaIdentity is;
    RtError err;
} Answer;

/* It is shorter than PIPE_BUF: a pipe gives all of it at once. */
static bool read_answer(int fd, Answer *a)
{
    _Static_assert(sizeof *a <= PIPE_BUF, "an answer is written at once");
    ssize_t n;
    while ((n = read(fd, a, sizeof *a)) < 0 && errno == EINTR)
        ;
    return n == (ssize_t)sizeof *a;
}

/* In a child. */
static void answer(int fd)
{
    Answer a = {0};
    CudaDevice d = {.cu = cuda_driver(&a.err)};
    a.ok = d.cu && find_device(&d, &a.err);
    a.is = d.is;
    _exit(write(fd, &a, sizeof a) == (ssize_t)sizeof a ? 0 : 1);
}

bool cuda_device_here(CudaIdentity *out, RtError *err)
{
    int end[2], status;
    Answer a = {0};
    if (pipe(end) != 0)
        return rt_error(err, "cannot ask for the device: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        answer(end[1]);
    close(end[1]);
    int fault = errno;
    bool ok = child > 0 && read_answer(end[0], &a);
    close(end[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0)
        return rt_error(err, "cannot ask for the device: %s", strerror(fault));
    if (!ok)
        return rt_error(err, "the CUDA driver ended the process that asked for the device");
    if (!a.ok)
        return rt_error(err, "%s", a.err.message);
    *out = a.is;
    return true;
}

CudaDevice *cuda_device_open(RtError *err)
{
    const CudaDriver *cu = cuda_driver(err);
    CudaDevice *d = cu ? rt_alloc(1, sizeof *d, err) : NULL;
    if (!d)
        return NULL;
    d->cu = cu;
    if (open_device(d, err))
        return d;
    cuda_device_close(d);
    return NULL;
}

void cuda_device_close(CudaDevice *d)
{
    if (!d)
        return;
    if (d->stream)
        d->cu->stream_wait(d->stream);
    if (d->arena)
        d->cu->release(d->arena);
    if (d->stream)
        d->cu->stream_destroy(d->stream);
    if (d->context) {
        cuda_device_leave(d);
        d->cu->context_release(d->ordinal);
    }
    free(d);
}

bool cuda_device_enter(const CudaDevice *d, RtError *err)
{
    return cuda_check(d, d->cu->context_push(d->context), "context", err);
}

void cuda_device_leave(const CudaDevice *d)
{
    void *context;
    d->cu->context_pop(&context);
}

/* The first release of NVIDIA's driver with a version of CUDA. */
static int driver_release(int version)
{
    return version >= 13000 ? 580 : 525;
}

bool cuda_device_takes(const CudaDevice *d, int version, RtError *err)
{
    int here = 0;
    if (!cuda_check(d, d->cu->version(&here), "version of the driver", err))
        return false;
    if (here >= version)
        return true;
    return rt_error(err,
                    "the driver is for CUDA %d.%d, the kernels were compiled by NVRTC %d: install "
                    "NVIDIA's driver %d or newer, or NVRTC of CUDA %d (SCRIMP_CUDA_PATH names its "
                    "folder)",
                    here / 1000, here % 1000 / 10, version / 1000, driver_release(version),
                    here / 1000);
}

const char *cuda_device_name(const CudaDevice *d)
{
    return d->is.name;
}

const char *cuda_device_arch(const CudaDevice *d)
{
    return d->is.arch;
}

/* --- memory --- */

static bool no_room(const CudaDevice *d, int64_t bytes, int64_t *left, RtError *err)
{
    Room r = room(d);
    RtError has;
    *left = (int64_t)r.left;
    full = true;
    what_is_left(d, r, &has);
    return rt_error(err, "%s; the arena needs %lld", has.message, (long long)bytes);
}

bool cuda_arena_map(CudaDevice *d, int64_t bytes, int64_t *left, RtError *err)
{
    *left = -1;
    int error = d->cu->allocate(&d->arena, (size_t)bytes);
    if (error == CUDA_OUT_OF_MEMORY)
        return no_room(d, bytes, left, err);
    if (!cuda_check(d, error, "allocating the arena", err))
        return false;
    d->bytes = bytes;
    return cuda_arena_poison(d, err) && cuda_wait(d, err);
}

bool cuda_arena_poison(CudaDevice *d, RtError *err)
{
    return cuda_check(d, d->cu->fill_words(d->arena, POISON, (size_t)d->bytes / 4, d->stream),
                      "filling the arena", err);
}

CudaMemory cuda_device_memory(const CudaDevice *d)
{
    Room r = room(d);
    CudaMemory m = {.total = (int64_t)r.total,
                    .at_start = d->at_start,
                    .arena = d->bytes,
                    .staging = d->staging};
    m.beside = (int64_t)(r.total - r.left) - m.at_start - m.arena - m.staging;
    if (m.beside < 0) /* another program has given some back */
        m.beside = 0;
    return m;
}

static bool inside(const CudaDevice *d, int64_t offset, int64_t bytes, RtError *err)
{
    if (offset >= 0 && bytes >= 0 && offset <= d->bytes - bytes)
        return true;
    return rt_error(err, "bytes %lld..%lld are not in the arena of %lld", (long long)offset,
                    (long long)(offset + bytes), (long long)d->bytes);
}

bool cuda_write(CudaDevice *d, int64_t offset, const void *from, int64_t bytes, RtError *err)
{
    CudaAddress to = d->arena + (CudaAddress)offset;
    return inside(d, offset, bytes, err) &&
           cuda_check(d, d->cu->to_device(to, from, (size_t)bytes, d->stream),
                      "copying to the device", err);
}

bool cuda_read(CudaDevice *d, int64_t offset, void *to, int64_t bytes, RtError *err)
{
    CudaAddress from = d->arena + (CudaAddress)offset;
    return inside(d, offset, bytes, err) &&
           cuda_check(d, d->cu->from_device(to, from, (size_t)bytes, d->stream),
                      "copying from the device", err);
}

bool cuda_wait(CudaDevice *d, RtError *err)
{
    return cuda_check(d, d->cu->stream_wait(d->stream), "running a step", err);
}

bool cuda_write_pieces(CudaDevice *d, const CudaPiece *p, int n, RtError *err)
{
    bool ok = true;
    for (int i = 0; i < n && ok; i++)
        ok = cuda_write(d, p[i].offset, p[i].here, p[i].bytes, err);
    return ok && cuda_wait(d, err);
}

bool cuda_read_pieces(CudaDevice *d, const CudaPiece *p, int n, RtError *err)
{
    bool ok = true;
    for (int i = 0; i < n && ok; i++)
        ok = cuda_read(d, p[i].offset, p[i].here, p[i].bytes, err);
    return ok && cuda_wait(d, err);
}
