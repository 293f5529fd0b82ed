/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/undo.h"

#include "runtime/arena.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 20, BLOCK = 4096, ALIGN = 64 };

/* ---- finite ---- */

/* The bits of the exponent: all set in NaN and infinity. */
static uint64_t exponent_mask(RtDType dtype)
{
    return dtype == RT_F32    ? 0x7F800000u
           : dtype == RT_F16  ? 0x7C00u
           : dtype == RT_BF16 ? 0x7F80u
           : dtype == RT_F64  ? 0x7FF0000000000000u
                              : 0;
}

static bool f32_finite(const uint32_t *bits, int64_t n)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad |= (uint32_t)((bits[i] & 0x7F800000u) == 0x7F800000u);
    return !bad;
}

static uint64_t bits_at(const void *data, int64_t bytes, int64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + i * bytes, (size_t)bytes);
    return bits;
}

int64_t rt_first_not_finite(RtDType dtype, const void *data, int64_t n)
{
    uint64_t mask = exponent_mask(dtype);
    int64_t bytes = rt_dtype_bytes(dtype);
    for (int64_t from = 0; mask && from < n; from += BLOCK) {
        int64_t to = n - from < BLOCK ? n : from + BLOCK;
        if (dtype == RT_F32 && f32_finite((const uint32_t *)data + from, to - from))
            continue;
        for (int64_t i = from; i < to; i++)
            if ((bits_at(data, bytes, i) & mask) == mask)
                return i;
    }
    return -1;
}

int64_t rt_tensor_elements(const CheckpointTensor *t)
{
    int64_t n;
    return rt_elements(t->rank, t->dims, &n) ? n : 0;
}

/* ---- the copy ---- */

/* A piece of a tensor: what one task looks at or copies. */
typedef struct Chunk {
    char *data, *copy;
    int64_t bytes;
    RtDType dtype;
    bool finite;
} Chunk;

struct Undo {
    Arena memory;
    Threads *threads;
    Chunk *chunk;
    int64_t n, bytes;
};

static int64_t tensor_bytes(const CheckpointTensor *t)
{
    return rt_tensor_elements(t) * rt_dtype_bytes(t->dtype);
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void cut(Undo *u, const CheckpointTensor *t, char *copy)
{
    int64_t bytes = tensor_bytes(t);
    for (int64_t at = 0; at < bytes; at += CHUNK_BYTES) {
        int64_t part = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        u->chunk[u->n++] = (Chunk){(char *)t->data + at, copy + at, part, t->dtype, true};
    }
}

Undo *undo_open(const CheckpointTensor *tensor, int64_t n, Threads *threads, RtError *err)
{
    int64_t chunks = 0, bytes = 0;
    for (int64_t i = 0; i < n; i++) {
        chunks += (tensor_bytes(&tensor[i]) + CHUNK_BYTES - 1) / CHUNK_BYTES;
        bytes += round_up(tensor_bytes(&tensor[i]));
    }
    Undo *u = rt_alloc(1, sizeof *u, err);
    if (!u)
        return NULL;
    *u = (Undo){.threads = threads, .bytes = bytes};
    u->chunk = rt_alloc(chunks, sizeof *u->chunk, err);
    if (!u->chunk || !arena_map(&u->memory, bytes, err)) {
        undo_close(u);
        return NULL;
    }
    char *copy = u->memory.base;
    for (int64_t i = 0; i < n; i++) {
        cut(u, &tensor[i], copy);
        copy += round_up(tensor_bytes(&tensor[i]));
    }
    undo_keep(u);
    return u;
}

void undo_close(Undo *u)
{
    if (!u)
        return;
    arena_unmap(&u->memory);
    free(u->chunk);
    free(u);
}

int64_t undo_bytes(const Undo *u)
{
    return u->bytes;
}

static void keep_chunks(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    const Chunk *chunk = (const Chunk *)(const void *)buf[0];
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        memcpy(chunk[i].copy, chunk[i].data, (size_t)chunk[i].bytes);
}

static void restore_chunks(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    const Chunk *chunk = (const Chunk *)(const void *)buf[0];
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        memcpy(chunk[i].data, chunk[i].copy, (size_t)chunk[i].bytes);
}

static void look_at_chunks(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    Chunk *chunk = (Chunk *)(void *)buf[0];
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        Chunk *c = &chunk[i];
        c->finite = rt_first_not_finite(c->dtype, c->data, c->bytes / rt_dtype_bytes(c->dtype)) < 0;
    }
}

static void run(Undo *u, ScrimpKernel *kernel)
{
    char *buf[] = {(char *)u->chunk};
    threads_run(u->threads, kernel, buf, u->n);
}

bool undo_all_finite(Undo *u)
{
    run(u, look_at_chunks);
    for (int64_t i = 0; i < u->n; i++)
        if (!u->chunk[i].finite)
            return false;
    return true;
}

void undo_keep(Undo *u)
{
    run(u, keep_chunks);
}

void undo_back(Undo *u)
{
    run(u, restore_chunks);
}
