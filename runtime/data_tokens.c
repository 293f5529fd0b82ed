/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tokens(FILES): token files of llm.c (a header of 256 int32: magic, version, count; GPT-2's are 16
 * bits wide, Llama 3's 32) and of nanoGPT (raw uint16).  Files are mapped, not read.
 * Source: llm.c's dev/data/data_common.py, nanoGPT's data/openwebtext/prepare.py. */
#include "runtime/data_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 1024, SCAN_BYTES = 1 << 16, TEXT_LOOK_BYTES = 4096, TEXT_LEAST_BYTES = 64 };
enum { MAGIC_U16 = 20240520, VERSION_U16 = 1, MAGIC_U32 = 20240801, VERSION_U32 = 7 };

typedef struct Segment {
    FileBytes file;
    const unsigned char *token;
    int width;     /* 2 or 4 bytes, little-endian */
    int64_t first; /* number of its first token */
    int64_t n;
} Segment;

typedef struct Tokens {
    Segment *segment;
    int64_t n;
} Tokens;

static uint32_t read_le(const unsigned char *p, int width)
{
    uint32_t low = (uint32_t)p[0] | (uint32_t)p[1] << 8;
    return width == 2 ? low : low | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Whether raw tokens are more likely a text: the first bytes are none that texts do not have. Token
 * files have them soon: every id below 256 is a byte and a zero. */
static bool looks_like_text(const unsigned char *p, int64_t bytes)
{
    int64_t n = bytes < TEXT_LOOK_BYTES ? bytes : TEXT_LOOK_BYTES;
    for (int64_t i = 0; i < n; i++)
        if ((p[i] < ' ' && p[i] != '\n' && p[i] != '\r' && p[i] != '\t') || p[i] == 0x7f)
            return false;
    return n >= TEXT_LEAST_BYTES;
}

/* A file without a known magic number is raw uint16. */
static bool find_tokens(Segment *s, const char *path, RtError *err)
{
    const unsigned char *p = s->file.data;
    int64_t bytes = s->file.bytes;
    uint32_t magic = bytes >= HEADER_BYTES ? read_le(p, 4) : 0;
    if (magic != MAGIC_U16 && magic != MAGIC_U32) {
        *s = (Segment){.file = s->file, .token = p, .width = 2, .n = bytes / 2};
        if (looks_like_text(p, bytes))
            return rt_error(err,
                            "%s is a text, not 16-bit tokens; for texts the model's batch is "
                            "text(\"FILE\", batch = N, length = T, tokens = bytes)",
                            path);
        return bytes % 2 == 0 ||
               rt_error(err, "%s: %lld bytes are no whole number of 16-bit tokens", path,
                        (long long)bytes);
    }
    uint32_t version = read_le(p + 4, 4), count = read_le(p + 8, 4);
    bool wide = magic == MAGIC_U32;
    if (version != (wide ? VERSION_U32 : VERSION_U16))
        return rt_error(err, "%s: llm.c version %u, but %d is read", path, version,
                        wide ? VERSION_U32 : VERSION_U16);
    *s = (Segment){.file = s->file, .token = p + HEADER_BYTES, .width = wide ? 4 : 2, .n = count};
    if (bytes - HEADER_BYTES != s->n * s->width)
        return rt_error(err, "%s: the header promises %u tokens, but %lld bytes follow", path,
                        count, (long long)(bytes - HEADER_BYTES));
    return true;
}

/* The largest token, read through a small buffer: mapped pages would count as resident memory.
 * -1 on a read error. */
static int64_t largest_token(const Segment *s, const char *path)
{
    FILE *f = fopen(path, "rbe");
    unsigned char buffer[SCAN_BYTES];
    int64_t largest = 0, left = s->n * s->width;
    bool ok = f && fseeko(f, s->token - s->file.data, SEEK_SET) == 0;
    while (ok && left > 0) {
        size_t n = left < SCAN_BYTES ? (size_t)left : SCAN_BYTES;
        ok = fread(buffer, 1, n, f) == n;
        for (size_t i = 0; ok && i < n; i += (size_t)s->width) {
            int64_t v = read_le(buffer + i, s->width);
            largest = v > largest ? v : largest;
        }
        left -= (int64_t)n;
    }
    if (f)
        fclose(f);
    return ok ? largest : -1;
}

static bool add_segment(Dataset *ds, const char *path, int64_t *largest, RtError *err)
{
    Tokens *t = ds->state;
    Segment *s = &t->segment[t->n];
    if (!file_map(path, &s->file, err))
        return false;
    t->n++;
    if (!find_tokens(s, path, err))
        return false;
    s->first = ds->total;
    int64_t most = largest_token(s, path);
    if (most < 0)
        return rt_error(err, "cannot read %s: %s", path, strerror(errno));
    if (most > INT32_MAX)
        return rt_error(err, "%s: token %lld does not fit 31 bits", path, (long long)most);
    *largest = most > *largest ? most : *largest;
    ds->loaded_bytes += s->file.bytes;
    return rt_add(ds->total, s->n, &ds->total) || rt_error(err, "too many tokens");
}

/* A file with "val" in its name, beside files without, is the held-out part. */
static bool is_held_out(const char *path)
{
    return strstr(path_base(path), "val") != NULL;
}

static bool add_files(Dataset *ds, const PathList *paths, RtError *err)
{
    int64_t n_val = 0, largest = 0, train;
    for (int64_t i = 0; i < paths->n; i++)
        n_val += is_held_out(paths->path[i]);
    bool separate = n_val > 0 && n_val < paths->n;
    for (int64_t i = 0; i < paths->n; i++)
        if (!(separate && is_held_out(paths->path[i])) &&
            !add_segment(ds, paths->path[i], &largest, err))
            return false;
    train = ds->total;
    for (int64_t i = 0; separate && i < paths->n; i++)
        if (is_held_out(paths->path[i]) && !add_segment(ds, paths->path[i], &largest, err))
            return false;
    ds->test = ds->total - train;
    data_add_sequence_fields(ds, 0, largest);
    return true;
}

static bool tokens_open(Dataset *ds, RtError *err)
{
    PathList paths;
    Tokens *t = ds->state = rt_alloc(1, sizeof *t, err);
    if (!t || !paths_expand(ds->spec.path, ".bin", &paths, err))
        return false;
    t->segment = rt_alloc(paths.n, sizeof *t->segment, err);
    bool ok = t->segment && add_files(ds, &paths, err);
    paths_free(&paths);
    return ok;
}

static void tokens_close(Dataset *ds)
{
    Tokens *t = ds->state;
    for (int64_t i = 0; t && i < t->n; i++)
        file_release(&t->segment[i].file);
    if (t)
        free(t->segment);
    free(t);
}

static void tokens_read(const Dataset *ds, int64_t start, int64_t n, int32_t *dst)
{
    const Tokens *t = ds->state;
    const Segment *s = t->segment;
    while (n > 0) {
        while (start >= s->first + s->n)
            s++;
        int64_t left = s->first + s->n - start, part = left < n ? left : n;
        const unsigned char *p = s->token + (start - s->first) * s->width;
        for (int64_t i = 0; i < part; i++, p += s->width)
            dst[i] = (int32_t)read_le(p, s->width);
        start += part;
        dst += part;
        n -= part;
    }
}

const DataKind data_tokens = {.name = "tokens",
                              .sequence = true,
                              .traits.counted = "tokens",
                              .open = tokens_open,
                              .close = tokens_close,
                              .tokens = tokens_read};
