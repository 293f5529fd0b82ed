/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Linked into a copy of scrimp: counts allocations and prints the number at the end, so that a test
 * can see whether more training steps allocate more.  Those of the libraries that decode pictures
 * are counted apart, by the place of the call: scrimp cannot keep them from allocating. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* glibc's own names of the functions that this file replaces. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

extern void __libc_free(void *p);

enum { LIBRARIES = 8, BLOCKS = 4096 };
static struct {
    uintptr_t from, to;
} library[LIBRARIES];
static int n_libraries;
static _Atomic long allocations, of_libraries;
/* Blocks that the libraries have: those they free at the end of a function look as if the caller
 * did. */
static void *block[BLOCKS];
static atomic_flag blocks_locked = ATOMIC_FLAG_INIT;

/* Puts `to` in the place of `from`; false when there is none. */
static bool swap_block(const void *from, void *to)
{
    int i = 0;
    while (atomic_flag_test_and_set(&blocks_locked))
        ;
    while (i < BLOCKS && block[i] != from)
        i++;
    if (i < BLOCKS)
        block[i] = to;
    atomic_flag_clear(&blocks_locked);
    return i < BLOCKS;
}

static long blocks_left(void)
{
    long n = 0;
    for (int i = 0; i < BLOCKS; i++)
        n += block[i] != NULL;
    return n;
}

static bool is_library(const void *caller)
{
    for (int i = 0; i < n_libraries; i++)
        if ((uintptr_t)caller >= library[i].from && (uintptr_t)caller < library[i].to)
            return true;
    return false;
}

static void *count(void *p, const void *caller)
{
    if (!is_library(caller)) {
        allocations++;
    } else {
        of_libraries++;
        if (p && !swap_block(NULL, p))
            abort(); /* more at once than any picture needs */
    }
    return p;
}

static void give_back(const void *p)
{
    if (p && n_libraries)
        swap_block(p, NULL);
}

void *malloc(size_t size)
{
    return count(__libc_malloc(size), __builtin_return_address(0));
}

void *calloc(size_t n, size_t size)
{
    return count(__libc_calloc(n, size), __builtin_return_address(0));
}

void *realloc(void *old, size_t size)
{
    give_back(old);
    return count(__libc_realloc(old, size), __builtin_return_address(0));
}

void *aligned_alloc(size_t align, size_t size)
{
    return count(__libc_memalign(align, size), __builtin_return_address(0));
}

int posix_memalign(void **out, size_t align, size_t size)
{
    *out = count(__libc_memalign(align, size), __builtin_return_address(0));
    return *out ? 0 : 12; /* ENOMEM */
}

void free(void *p)
{
    give_back(p);
    __libc_free(p);
}

/* Where the code of libpng, libjpeg-turbo, libsndfile and what it decodes with lies. */
static void find_libraries(void)
{
    char line[600];
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) {
        char *end;
        uintptr_t from = strtoul(line, &end, 16), to = strtoul(end + 1, &end, 16);
        bool code = strncmp(end, " r-x", 4) == 0;
        if (code && n_libraries < LIBRARIES &&
            (strstr(line, "/libpng") || strstr(line, "/libturbojpeg") || strstr(line, "/libjpeg") ||
             strstr(line, "/libsndfile") || strstr(line, "/libFLAC"))) {
            library[n_libraries].from = from;
            library[n_libraries++].to = to;
        }
    }
    if (f)
        fclose(f);
}

static void report(void)
{
    long n = allocations, others = of_libraries, left = blocks_left();
    fprintf(stderr, "allocations: %ld\nof picture libraries: %ld, %ld not given back\n", n, others,
            left);
}

__attribute__((constructor)) static void at_start(void)
{
    find_libraries();
    atexit(report);
}
