/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/pool.h"

#include "ir/support/bug.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chunks grow with their pool: most pools are small and do not live long. */
enum { POOL_CHUNK_BYTES = 64 * 1024, POOL_FIRST_BYTES = 1024, POOL_ALIGN = 16 };

typedef struct Chunk Chunk;
struct Chunk {
    Chunk *next;
    size_t used, size;
    bool zeroed; /* as a whole; else by pool_alloc */
    _Alignas(POOL_ALIGN) char data[];
};

/* Children are linked so that freeing a pool frees them too: after a jump to the recovery point
 * nobody else knows of them. */
struct Pool {
    Chunk *chunks;
    jmp_buf *recover;
    Pool *parent, *children, *previous, *next;
    size_t bytes;
};

static atomic_uint_fast64_t fail_countdown;

uint64_t pool_fail_at(uint64_t n)
{
    return atomic_exchange(&fail_countdown, n);
}

static bool injected_failure(void)
{
    uint_fast64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    while (left && !atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
        ;
    return left == 1;
}

Pool *pool_new(void)
{
    return injected_failure() ? NULL : calloc(1, sizeof(Pool));
}

static void unlink_from_parent(Pool *pool)
{
    if (pool->next)
        pool->next->previous = pool->previous;
    if (pool->previous)
        pool->previous->next = pool->next;
    else if (pool->parent)
        pool->parent->children = pool->next;
}

void pool_free(Pool *pool)
{
    if (!pool)
        return;
    while (pool->children)
        pool_free(pool->children);
    unlink_from_parent(pool);
    for (Chunk *c = pool->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(pool);
}

void pool_on_oom(Pool *pool, jmp_buf *recover)
{
    pool->recover = recover;
}

_Noreturn void pool_out_of_memory(Pool *pool)
{
    for (Pool *p = pool; p; p = p->parent)
        if (p->recover)
            longjmp(*p->recover, 1);
    fputs("scrimp: out of memory\n", stderr);
    bug_end();
}

Pool *pool_new_child(Pool *parent)
{
    Pool *pool = pool_new();
    if (!pool)
        pool_out_of_memory(parent);
    pool->parent = parent;
    pool->next = parent->children;
    if (pool->next)
        pool->next->previous = pool;
    parent->children = pool;
    return pool;
}

static Chunk *chunk_new(Pool *pool, size_t bytes)
{
    size_t usual = pool->bytes < POOL_FIRST_BYTES   ? POOL_FIRST_BYTES
                   : pool->bytes > POOL_CHUNK_BYTES ? POOL_CHUNK_BYTES
                                                    : pool->bytes;
    size_t size = bytes > usual ? bytes : usual;
    bool zeroed = size > POOL_CHUNK_BYTES; /* fresh pages are zero */
    Chunk *c = size > SIZE_MAX - sizeof(Chunk) ? NULL
               : zeroed                        ? calloc(1, sizeof(Chunk) + size)
                                               : malloc(sizeof(Chunk) + size);
    if (!c)
        pool_out_of_memory(pool);
    c->size = size;
    c->used = 0;
    c->zeroed = zeroed;
    /* A big block goes behind the current chunk, whose room stays in use. */
    if (pool->chunks && bytes > usual / 2) {
        c->next = pool->chunks->next;
        pool->chunks->next = c;
    } else {
        c->next = pool->chunks;
        pool->chunks = c;
    }
    return c;
}

void *pool_alloc(Pool *pool, size_t bytes)
{
    if (injected_failure() || bytes > SIZE_MAX - POOL_ALIGN)
        pool_out_of_memory(pool);
    size_t need = (bytes + POOL_ALIGN - 1) & ~(size_t)(POOL_ALIGN - 1);
    Chunk *c = pool->chunks;
    if (!c || c->size - c->used < need)
        c = chunk_new(pool, need);
    void *p = c->data + c->used;
    if (!c->zeroed)
        memset(p, 0, need);
    c->used += need;
    pool->bytes += need;
    return p;
}

void *pool_array(Pool *pool, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        pool_out_of_memory(pool);
    return pool_alloc(pool, bytes);
}

void *pool_grow(Pool *pool, const void *old, size_t old_bytes, size_t new_bytes)
{
    void *p = pool_alloc(pool, new_bytes);
    if (old_bytes)
        memcpy(p, old, old_bytes);
    return p;
}

char *pool_strndup(Pool *pool, const char *s, size_t n)
{
    char *copy = pool_alloc(pool, n + 1);
    memcpy(copy, s, n);
    return copy;
}

char *pool_strdup(Pool *pool, const char *s)
{
    return pool_strndup(pool, s, strlen(s));
}

char *pool_vprintf(Pool *pool, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *s = pool_alloc(pool, (size_t)(n < 0 ? 0 : n) + 1);
    if (n > 0)
        vsnprintf(s, (size_t)n + 1, format, again);
    va_end(again);
    return s;
}

char *pool_printf(Pool *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *s = pool_vprintf(pool, format, args);
    va_end(args);
    return s;
}

bool size_mul(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool size_add(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}
