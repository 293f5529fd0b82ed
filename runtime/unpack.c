/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { IN_BYTES = 1 << 16, OUT_BYTES = 1 << 30, COUNT_BYTES = 1 << 16, GZIP_WINDOW = 15 + 16 };

struct Inflate {
    z_stream z;
    bool ready, done; /* done: behind the last packed block */
    unsigned char in[IN_BYTES];
};

static bool inflate_open(Unpack *u, RtError *err)
{
    u->inflate = rt_alloc(1, sizeof *u->inflate, err);
    if (!u->inflate)
        return false;
    u->inflate->ready = inflateInit2(&u->inflate->z, GZIP_WINDOW) == Z_OK;
    return u->inflate->ready || rt_error(err, "out of memory to unpack it");
}

bool unpack_open(Unpack *u, const char *path, RtError *err)
{
    *u = (Unpack){.fd = -1};
    u->fd = file_open_regular(path, &u->bytes, err);
    if (u->fd < 0)
        return false;
    unsigned char magic[2] = {0};
    u->packed = pread(u->fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    if (!u->packed || inflate_open(u, err))
        return true;
    unpack_close(u);
    return rt_error_prefix(err, "%s", path);
}

void unpack_close(Unpack *u)
{
    if (u->inflate && u->inflate->ready)
        inflateEnd(&u->inflate->z);
    free(u->inflate);
    if (u->fd >= 0)
        close(u->fd);
    *u = (Unpack){.fd = -1};
}

static ssize_t read_part(Unpack *u, void *to, int64_t n, RtError *err)
{
    ssize_t got;
    do
        got = read(u->fd, to, n < OUT_BYTES ? (size_t)n : OUT_BYTES);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        rt_error(err, "cannot be read: %s", strerror(errno));
    return got;
}

/* More packed bytes when all there were are used; false on an error, and at the end of the file. */
static bool refill(Unpack *u, bool *end, RtError *err)
{
    struct Inflate *f = u->inflate;
    *end = false;
    if (f->z.avail_in > 0)
        return true;
    ssize_t got = read_part(u, f->in, sizeof f->in, err);
    f->z.next_in = f->in;
    f->z.avail_in = got > 0 ? (uInt)got : 0;
    *end = got == 0;
    return got > 0;
}

/* gzip files may be joined; what else follows is left alone, as gzip does. */
static bool next_member(Unpack *u, RtError *err)
{
    struct Inflate *f = u->inflate;
    bool end;
    if (!refill(u, &end, err)) {
        f->done = end;
        return end;
    }
    f->done = f->z.next_in[0] != 0x1f;
    return f->done || inflateReset(&f->z) == Z_OK || rt_error(err, "cannot be unpacked");
}

/* Room in z.next_out; false with a message. */
static bool inflate_part(Unpack *u, RtError *err)
{
    struct Inflate *f = u->inflate;
    bool end;
    if (!refill(u, &end, err))
        return end ? rt_error(err, "cannot be unpacked: it ends early") : false;
    int status = inflate(&f->z, Z_NO_FLUSH);
    if (status == Z_STREAM_END)
        return next_member(u, err);
    return status == Z_OK || status == Z_BUF_ERROR ||
           rt_error(err, "cannot be unpacked: %s", f->z.msg ? f->z.msg : zError(status));
}

static int64_t inflate_some(Unpack *u, unsigned char *to, int64_t n, RtError *err)
{
    struct Inflate *f = u->inflate;
    int64_t at = 0;
    while (at < n && !f->done) {
        uInt room = n - at < OUT_BYTES ? (uInt)(n - at) : OUT_BYTES;
        f->z.next_out = to + at;
        f->z.avail_out = room;
        if (!inflate_part(u, err))
            return -1;
        at += room - f->z.avail_out;
    }
    return at;
}

int64_t unpack_some(Unpack *u, void *to, int64_t n, RtError *err)
{
    if (u->packed)
        return inflate_some(u, to, n, err);
    int64_t at = 0;
    for (ssize_t got = 1; at < n && got != 0; at += got) {
        got = read_part(u, (char *)to + at, n - at, err);
        if (got < 0)
            return -1;
    }
    return at;
}

bool unpack_read(Unpack *u, void *to, int64_t n, RtError *err)
{
    int64_t got = unpack_some(u, to, n, err);
    return got == n || (got >= 0 && rt_error(err, "it ends early"));
}

bool unpack_at_end(Unpack *u, RtError *err)
{
    char more;
    int64_t got = unpack_some(u, &more, 1, err);
    return got == 0 || (got > 0 && rt_error(err, "it goes on where its data should end"));
}

/* How many bytes there are, up to one more than limit; -1 with a message. */
static int64_t count_bytes(Unpack *u, int64_t limit, RtError *err)
{
    char part[COUNT_BYTES];
    int64_t n, total = 0;
    while ((n = unpack_some(u, part, sizeof part, err)) > 0 && total <= limit)
        total += n;
    if (n < 0)
        return -1;
    if (total <= limit)
        return total;
    rt_error(err, "unpacks to more than %lld bytes", (long long)limit);
    return -1;
}

static bool read_counted(Unpack *u, int64_t n, FileBytes *out, RtError *err)
{
    unsigned char *data = rt_alloc(n + 1, 1, err);
    bool ok = data && unpack_read(u, data, n, err) && unpack_at_end(u, err);
    if (ok)
        *out = (FileBytes){data, n, false};
    else
        free(data);
    return ok;
}

bool file_read_gz(const char *path, int64_t limit, FileBytes *out, RtError *err)
{
    Unpack u;
    *out = (FileBytes){0};
    if (!unpack_open(&u, path, err))
        return false;
    bool packed = u.packed;
    int64_t n = packed ? count_bytes(&u, limit, err) : 0;
    unpack_close(&u);
    if (!packed)
        return file_read(path, limit, out, err);
    if (n < 0)
        return rt_error_prefix(err, "%s", path);
    if (!unpack_open(&u, path, err))
        return false;
    bool ok = read_counted(&u, n, out, err) || rt_error_prefix(err, "%s", path);
    unpack_close(&u);
    return ok;
}
