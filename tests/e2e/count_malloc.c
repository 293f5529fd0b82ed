/* Linked into a copy of scrimp: counts allocations and prints the number at the end, so that a test
 * can see whether more training steps allocate more. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* glibc's own names of the functions that this file replaces. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static _Atomic long allocations;

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    allocations++;
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    allocations++;
    return __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    allocations++;
    *out = __libc_memalign(align, size);
    return *out ? 0 : 12; /* ENOMEM */
}

static void report(void)
{
    long n = allocations;
    fprintf(stderr, "allocations: %ld\n", n);
}

__attribute__((constructor)) static void at_start(void)
{
    atexit(report);
}
