/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entries of the kernel cache: every bit and every length counts, writers at once, names, and what
 * goes when there is too much. */
#include "codegen/build/cache.h"

#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char KEY[] = "00112233445566778899aabbccddeeff",
                  OTHER[] = "ffeeddccbbaa99887766554433221100";
static char folder[] = "/tmp/scrimp-test-XXXXXX";

static const char *path_of(Pool *pool, const char *key, const char *suffix)
{
    return pool_printf(pool, "%s/%s.%s", folder, key, suffix);
}

static size_t read_file(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(out, 1, room, f) : 0;
    if (f)
        fclose(f);
    return n;
}

static void write_file(const char *path, const char *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0)
        abort();
    chmod(path, 0600);
}

static bool holds(Pool *pool, const Cache *c, const char *key, const char *suffix, const char *text)
{
    size_t n = 0;
    const char *fault, *data = cache_get(pool, c, key, suffix, &n, &fault);
    return data && !fault && n == strlen(text) && memcmp(data, text, n) == 0;
}

static bool refused(Pool *pool, const Cache *c, const char *key, const char *suffix)
{
    size_t n = 1;
    const char *fault, *data = cache_get(pool, c, key, suffix, &n, &fault);
    return !data && fault && n == 0;
}

static void test_every_bit(Pool *pool, const Cache *c)
{
    static const char text[] = "what was compiled";
    char whole[300], bad[300];
    const char *error = "", *path = path_of(pool, KEY, "o");
    CHECK(cache_put(pool, c, KEY, "o", text, strlen(text), &error));
    CHECK(holds(pool, c, KEY, "o", text));
    size_t n = read_file(path, whole, sizeof whole);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        memcpy(bad, whole, n);
        bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
        write_file(path, bad, n);
        CHECK_MSG(refused(pool, c, KEY, "o"), "bit %d", (int)bit);
    }
    for (size_t length = 0; length < n; length++) {
        write_file(path, whole, length);
        CHECK_MSG(refused(pool, c, KEY, "o"), "length %d", (int)length);
    }
    memcpy(bad, whole, n);
    bad[n] = '\n';
    write_file(path, bad, n + 1);
    CHECK(refused(pool, c, KEY, "o"));
    write_file(path, whole, n);
    CHECK(holds(pool, c, KEY, "o", text));
    write_file(path_of(pool, OTHER, "o"), whole, n); /* another entry's, or another kind's */
    write_file(path_of(pool, KEY, "so"), whole, n);
    CHECK(refused(pool, c, OTHER, "o") && refused(pool, c, KEY, "so"));
    CHECK(cache_put(pool, c, OTHER, "o", "", 0, &error) && holds(pool, c, OTHER, "o", ""));
    remove(path_of(pool, KEY, "so"));
    CHECK(!holds(pool, c, KEY, "so", text) && !refused(pool, c, KEY, "so"));
}

/* What is in the place of an entry, and is none. */
static void test_no_files(Pool *pool, const Cache *c)
{
    const char *path = path_of(pool, OTHER, "so"), *error = "";
    CHECK(mkfifo(path, 0600) == 0 && refused(pool, c, OTHER, "so")); /* does not hang */
    CHECK(cache_put(pool, c, OTHER, "so", "x", 1, &error) && holds(pool, c, OTHER, "so", "x"));
    remove(path);
    CHECK(symlink(path_of(pool, OTHER, "o"), path) == 0 && refused(pool, c, OTHER, "so"));
    remove(path);
    CHECK(mkdir(path, 0700) == 0 && refused(pool, c, OTHER, "so"));
    CHECK(!cache_put(pool, c, OTHER, "so", "x", 1, &error) && strstr(error, "cannot write"));
    rmdir(path);
}

/* Each reads whole entries only, whoever writes meanwhile. */
static void test_writers(Pool *pool, const Cache *c)
{
    enum { WRITERS = 6, ROUNDS = 200, BYTES = 9000 };
    pid_t child[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        child[w] = fork();
        if (child[w] != 0)
            continue;
        char data[BYTES];
        const char *error;
        bool ok = true;
        memset(data, 'a' + w, sizeof data);
        for (int i = 0; i < ROUNDS && ok; i++) {
            Pool *mine = pool_new();
            size_t n = 0;
            const char *fault;
            ok = cache_put(mine, c, KEY, "plans", data, (size_t)(BYTES - w), &error);
            const char *got = cache_get(mine, c, KEY, "plans", &n, &fault);
            ok = ok && got && got[0] == got[n - 1] && n == (size_t)(BYTES - (got[0] - 'a'));
            pool_free(mine);
        }
        _exit(ok ? 0 : 1);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        CHECK(waitpid(child[w], &status, 0) == child[w] && status == 0);
    }
    CacheList l;
    const char *error;
    CHECK(cache_list(pool, c, NULL, &l, &error));
    for (size_t i = 0; i < l.n; i++)
        CHECK(strcmp(l.entry[i].suffix, "tmp") != 0);
}

static void put_aged(Pool *pool, const Cache *c, int number, double hours)
{
    const char *error, *key = pool_printf(pool, "%032d", number);
    char data[1000] = {0};
    struct timespec t[2] = {{c->opened.tv_sec - (time_t)(3600 * hours), 0},
                            {c->opened.tv_sec - (time_t)(3600 * hours), 0}};
    CHECK(cache_put(pool, c, key, "so", data, sizeof data, &error));
    utimensat(AT_FDCWD, path_of(pool, key, "so"), t, 0);
}

static size_t count(Pool *pool, const Cache *c, const char *suffix)
{
    CacheList l;
    const char *error;
    return cache_list(pool, c, suffix, &l, &error) ? l.n : 0;
}

static void test_trim(Pool *pool, Cache *c)
{
    static const char *const foreign[] = {"notes.txt",
                                          "main.o",
                                          "1234.so",
                                          "X.tmp",
                                          "00112233445566778899aabbccddeefg.o",
                                          "00112233445566778899aabbccddeeff.o.tmp2",
                                          "00112233445566778899aabbccddeeff.c"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        write_file(pool_printf(pool, "%s/%s", folder, foreign[i]), "mine", 4);
    clock_gettime(CLOCK_REALTIME_COARSE, &c->opened);
    for (int i = 0; i < 10; i++)
        put_aged(pool, c, i, 10 * (i + 1));
    CHECK(count(pool, c, "so") == 10);
    CacheList l;
    const char *error;
    CHECK(cache_list(pool, c, "so", &l, &error) && atoi(l.entry[0].key) == 9 &&
          atoi(l.entry[9].key) == 0); /* used longest ago first */
    cache_trim(pool, c, NULL, (CacheLimits){0});
    CHECK(count(pool, c, "so") == 10);
    cache_trim(pool, c, NULL, (CacheLimits){.days = 75.0 / 24});
    CHECK(count(pool, c, "so") == 7);
    holds(pool, c, pool_printf(pool, "%032d", 6), "so", ""); /* reading is using */
    cache_trim(pool, c, "so", (CacheLimits){.bytes = 3000});
    CHECK(count(pool, c, "so") == 2 && !refused(pool, c, pool_printf(pool, "%032d", 6), "so"));
    CHECK(count(pool, c, "o") == 2 && count(pool, c, "plans") == 1);
    /* What is in use stays, however small the limit. */
    size_t n = 0;
    const char *fault;
    CHECK(cache_get(pool, c, pool_printf(pool, "%032d", 6), "so", &n, &fault) && n == 1000);
    cache_trim(pool, c, NULL, (CacheLimits){.bytes = 1});
    CHECK(cache_get(pool, c, pool_printf(pool, "%032d", 6), "so", &n, &fault) && n == 1000);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        CHECK(remove(pool_printf(pool, "%s/%s", folder, foreign[i])) == 0);
}

/* What is used as soon as the cache is open stays, however little room there is: the system stamps
 * files by a clock of ticks, which may be the one before. */
static void test_used_at_once(Pool *pool)
{
    Cache c;
    const char *error = "";
    for (int i = 0; i < 20; i++) {
        const char *fault, *key = pool_printf(pool, "%032d", i);
        size_t n;
        CHECK(cache_open(pool, folder, false, &c, &error));
        put_aged(pool, &c, i, 24);
        usleep(11000); /* a file that changes twice in a tick has finer stamps */
        CHECK(cache_open(pool, folder, false, &c, &error));
        CHECK(cache_get(pool, &c, key, "so", &n, &fault));
        cache_trim(pool, &c, NULL, (CacheLimits){.bytes = 1});
        CHECK_MSG(access(path_of(pool, key, "so"), F_OK) == 0, "%d is gone", i);
    }
}

static void test_limits(Pool *pool)
{
    Cache c;
    const char *error = "";
    CHECK(cache_open(pool, folder, false, &c, &error) && c.limits.bytes == (int64_t)2 << 30);
    setenv("SCRIMP_CACHE_SIZE", "3MiB", 1);
    setenv("SCRIMP_CACHE_DAYS", "0.5", 1);
    CHECK(cache_open(pool, folder, false, &c, &error) && c.limits.bytes == 3 << 20);
    CHECK(c.limits.days > 0.49 && c.limits.days < 0.51);
    setenv("SCRIMP_CACHE_SIZE", "0", 1);
    CHECK(cache_open(pool, folder, false, &c, &error) && c.limits.bytes == 0);
    setenv("SCRIMP_CACHE_SIZE", "50%", 1);
    CHECK(!cache_open(pool, folder, false, &c, &error) && strstr(error, "write bytes"));
    unsetenv("SCRIMP_CACHE_SIZE");
    setenv("SCRIMP_CACHE_DAYS", "nan", 1);
    CHECK(!cache_open(pool, folder, false, &c, &error) && strstr(error, "number of days"));
    unsetenv("SCRIMP_CACHE_DAYS");
    CHECK(cache_open(pool, folder, true, &c, &error) && !c.dir);
    size_t n;
    CHECK(!cache_get(pool, &c, KEY, "o", &n, &error) && !error);
}

int main(void)
{
    Pool *pool = pool_new();
    Cache c;
    const char *error = "";
    if (!mkdtemp(folder) || !cache_open(pool, folder, false, &c, &error)) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    test_every_bit(pool, &c);
    test_no_files(pool, &c);
    test_writers(pool, &c);
    test_trim(pool, &c);
    test_used_at_once(pool);
    test_limits(pool);
    CacheList l;
    CHECK(cache_list(pool, &c, NULL, &l, &error));
    for (size_t i = 0; i < l.n; i++)
        cache_unlink(pool, &c, &l.entry[i]);
    CHECK_MSG(rmdir(folder) == 0, "%s holds something", folder);
    pool_free(pool);
    return test_result();
}
