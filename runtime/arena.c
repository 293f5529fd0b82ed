/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/arena.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A quiet NaN that no computation makes; as an integer it is far outside every index range. */
static const uint32_t POISON = 0x7fc5ca1au;
static const int64_t HUGE_BYTES = 2 << 20, TOUCH_BYTES = 256 << 20;

/* Left to the rest of the machine when the arena has been touched. */
static const int64_t RESERVE_BYTES = 16 << 20;

static bool no_memory(int64_t bytes, const char *why, RtError *err)
{
    return rt_error(err, "no memory for the arena of %.1fMiB: %s; lower --budget or the batch size",
                    (double)bytes / 0x1p20, why);
}

static bool too_little(int64_t bytes, int64_t have, RtError *err)
{
    char why[96];
    snprintf(why, sizeof why, "%.1fMiB are available", (double)have / 0x1p20);
    return no_memory(bytes, why, err);
}

/* Maps size bytes at a multiple of align (both multiples of the page size). */
static char *map_aligned(int64_t size, int64_t align, int flags)
{
    int64_t page = sysconf(_SC_PAGESIZE), extra = align - page;
    int64_t whole;
    if (!rt_add(size, extra, &whole))
        return NULL;
    char *p = mmap(NULL, (size_t)whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
                   -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    int64_t before = (align - (int64_t)((uintptr_t)p % (uintptr_t)align)) % align;
    if (before)
        munmap(p, (size_t)before);
    if (extra - before)
        munmap(p + before + size, (size_t)(extra - before));
    return p + before;
}

/* MADV_POPULATE_WRITE reports what a write would only fault on; older kernels are touched by hand.
 */
static bool touch_range(char *p, int64_t bytes)
{
#if defined(MADV_POPULATE_WRITE)
    if (madvise(p, (size_t)bytes, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;
#endif
    int64_t page = sysconf(_SC_PAGESIZE);
    for (int64_t i = 0; i < bytes; i += page)
        ((volatile char *)p)[i] = 0;
    return true;
}

/* The kernel promises more than it has and kills whoever touches too much, so what is left is asked
 * for before every part. */
static bool touch(const Arena *arena, RtError *err)
{
    for (int64_t at = 0; at < arena->mapped; at += TOUCH_BYTES) {
        int64_t left = arena->mapped - at, part = left < TOUCH_BYTES ? left : TOUCH_BYTES;
        int64_t have = rt_available_bytes();
        if (have - left < RESERVE_BYTES)
            return too_little(arena->bytes, have + at, err);
        if (!touch_range(arena->base + at, part))
            return no_memory(arena->bytes, strerror(errno), err);
    }
    return true;
}

static bool reserve(Arena *arena, int64_t bytes, int flags, RtError *err)
{
    *arena = (Arena){.bytes = bytes};
    int64_t page = sysconf(_SC_PAGESIZE), size;
    if (bytes < 0 || !rt_add(bytes, 2 * page - 1, &size))
        return rt_error(err, "an arena of %lld bytes is not possible", (long long)bytes);
    size = size / page * page;
    char *base = map_aligned(size, bytes >= 2 * HUGE_BYTES ? HUGE_BYTES : page, flags);
    if (!base)
        return no_memory(bytes, "the address space limit or the system refuses the mapping", err);
    arena->base = base;
    arena->mapped = size - page;
    mprotect(base + arena->mapped, (size_t)page, PROT_NONE);
    return true;
}

bool arena_reserve(Arena *arena, int64_t bytes, RtError *err)
{
    return reserve(arena, bytes, MAP_NORESERVE, err);
}

bool arena_fits(int64_t bytes, RtError *err)
{
    Arena arena;
    malloc_trim(0);
    int64_t have = rt_available_bytes();
    if (!arena_reserve(&arena, bytes, err))
        return false;
    bool fits = have - arena.mapped >= RESERVE_BYTES;
    arena_unmap(&arena);
    return fits || too_little(bytes, have, err);
}

bool arena_map(Arena *arena, int64_t bytes, RtError *err)
{
    malloc_trim(0); /* what planning and compiling have freed is the arena's to use */
    if (!reserve(arena, bytes, 0, err))
        return false;
    if (arena->mapped)
        madvise(arena->base, (size_t)arena->mapped, MADV_HUGEPAGE); /* advice: may be refused */
    if (touch(arena, err))
        return true;
    arena_unmap(arena);
    return false;
}

void arena_unmap(Arena *arena)
{
    if (arena->base)
        munmap(arena->base, (size_t)(arena->mapped + sysconf(_SC_PAGESIZE)));
    *arena = (Arena){0};
}

void arena_poison(Arena *arena, int64_t offset, int64_t bytes)
{
    char *p = arena->base + offset, *end = p + bytes;
    for (; end - p >= (int64_t)sizeof POISON; p += sizeof POISON)
        memcpy(p, &POISON, sizeof POISON);
    memcpy(p, &POISON, (size_t)(end - p));
}

int64_t arena_high_water(const Arena *arena)
{
    int64_t at = arena->bytes, part = at % (int64_t)sizeof POISON;
    if (part && memcmp(arena->base + at - part, &POISON, (size_t)part) != 0)
        return at;
    for (at -= part; at > 0; at -= (int64_t)sizeof POISON)
        if (memcmp(arena->base + at - sizeof POISON, &POISON, sizeof POISON) != 0)
            return at;
    return 0;
}

bool arena_tail_clean(const Arena *arena)
{
    for (int64_t i = arena->bytes; i < arena->mapped; i++)
        if (arena->base[i])
            return false;
    return true;
}
