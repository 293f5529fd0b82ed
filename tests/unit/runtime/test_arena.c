/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/arena.h"

#include "check.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_map(int64_t bytes)
{
    Arena arena;
    RtError err = {{0}};
    bool ok = arena_map(&arena, bytes, &err);
    CHECK_MSG(ok, "%s", err.message);
    if (!ok)
        return;
    CHECK((uintptr_t)arena.base % 4096 == 0 && arena.bytes == bytes && arena.mapped >= bytes);
    CHECK(arena.mapped - bytes < sysconf(_SC_PAGESIZE));
    if (bytes >= 4 << 20)
        CHECK((uintptr_t)arena.base % (2 << 20) == 0);
    for (int64_t i = 0; i < bytes; i += 1000)
        CHECK(arena.base[i] == 0);
    CHECK(arena_tail_clean(&arena));
    if (arena.mapped > bytes) {
        arena.base[bytes] = 1;
        CHECK(!arena_tail_clean(&arena));
    }
    arena_unmap(&arena);
    CHECK(!arena.base);
}

static void test_poison(void)
{
    Arena arena;
    CHECK(arena_map(&arena, 10002, NULL));
    CHECK(arena_high_water(&arena) == 10002); /* zeros are not poison */
    arena_poison(&arena, 0, arena.bytes);
    CHECK(arena_high_water(&arena) == 0);
    for (int64_t i = 0; i < 10000; i += 4) {
        float f;
        memcpy(&f, arena.base + i, 4);
        CHECK(isnan(f));
    }
    float one = 1;
    memcpy(arena.base + 400, &one, 4);
    CHECK(arena_high_water(&arena) == 404);
    arena_poison(&arena, 400, 4);
    arena.base[10001] = 0;
    CHECK(arena_high_water(&arena) == 10002);
    CHECK(arena_tail_clean(&arena));
    arena_unmap(&arena);
}

/* Everything is resident before arena_map returns. */
static void test_touched(void)
{
    int64_t before = rt_peak_resident_bytes(), bytes = 64 << 20;
    Arena arena;
    CHECK(arena_map(&arena, bytes, NULL));
    int64_t grown = rt_peak_resident_bytes() - before;
    CHECK_MSG(grown >= bytes - (1 << 20), "%lld", (long long)grown);
    arena_unmap(&arena);
}

static void test_refusals(void)
{
    Arena arena;
    RtError err = {{0}};
    CHECK(!arena_map(&arena, -1, &err) && !arena.base);
    CHECK(!arena_map(&arena, INT64_MAX, &err) && !arena.base);
    CHECK(!arena_map(&arena, (int64_t)1 << 46, &err) && !arena.base);
    CHECK_MSG(strstr(err.message, "budget"), "%s", err.message);
    CHECK(!arena_fits(-1, &err) && !arena_fits(INT64_MAX, &err) && arena_fits(1 << 20, &err));
    int64_t have = rt_available_bytes();
    CHECK(have > 0);
    if (have < (int64_t)1 << 45) { /* known: just more than there is */
        CHECK(!arena_fits(have + (have >> 2), &err) && strstr(err.message, "budget"));
        CHECK(!arena_map(&arena, have + (have >> 2), &err));
        CHECK_MSG(strstr(err.message, "available") || strstr(err.message, "refuses"), "%s",
                  err.message);
    }
}

/* With a limit on the address space the answer is a message as well. */
static void test_address_limit(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return; /* sanitizers need terabytes of addresses */
#else
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {512 << 20, 512 << 20};
        Arena arena;
        RtError err = {{0}};
        setrlimit(RLIMIT_AS, &limit);
        bool small = arena_map(&arena, 8 << 20, &err), big = arena_map(&arena, 1 << 30, &err);
        _exit(small && !big && strstr(err.message, "no memory for the arena") ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#endif
}

int main(void)
{
    test_touched(); /* first: a peak never falls */
    static const int64_t sizes[] = {0, 1, 64, 4096, 4097, 100000, (4 << 20) - 64, (9 << 20) + 192};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        test_map(sizes[i]);
    test_poison();
    test_refusals();
    test_address_limit();
    return test_result();
}
