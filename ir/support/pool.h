/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory of one compilation.  Everything the compiler builds lives in a Pool and is freed with it;
 * passes never free.  When malloc fails, pool_alloc jumps to the pool's recovery point, so callers
 * never test for NULL and nothing leaks.  Not thread-safe: one pool per thread (parallel.h). */
#ifndef SCRIMP_IR_SUPPORT_POOL_H
#define SCRIMP_IR_SUPPORT_POOL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Pool Pool;

/* NULL when out of memory (the only allocation a caller has to test). */
Pool *pool_new(void);
void pool_free(Pool *pool);

/* Where to go when memory runs out.  Usage:
 *     jmp_buf oom;
 *     if (setjmp(oom)) { pool_free(pool); return STATUS_NO_MEMORY; }
 *     pool_on_oom(pool, &oom);
 * Without a recovery point running out of memory prints a message and ends with
 * status 2. */
void pool_on_oom(Pool *pool, jmp_buf *recover);

/* Goes to the recovery point, as when malloc fails. */
_Noreturn void pool_out_of_memory(Pool *pool);

/* A child that has no recovery point of its own shares its parent's (scratch memory of one pass).
 * It is freed with its parent, if not before. */
Pool *pool_new_child(Pool *parent);

/* Zeroed, 16-byte aligned memory. */
void *pool_alloc(Pool *pool, size_t bytes);
/* Zeroed array of n elements of `size` bytes; overflow of n * size counts as out of memory. */
void *pool_array(Pool *pool, size_t n, size_t size);
/* Copies the first old_bytes of old into a new block of new_bytes (grow a vector). */
void *pool_grow(Pool *pool, const void *old, size_t old_bytes, size_t new_bytes);
char *pool_strdup(Pool *pool, const char *s);
char *pool_strndup(Pool *pool, const char *s, size_t n);
char *pool_printf(Pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *pool_vprintf(Pool *pool, const char *format, va_list args)
    __attribute__((format(printf, 2, 0), nonnull(2)));

/* Test hook: the n-th following allocation (1 = the next) of any pool fails; 0 switches it off.
 * Returns how many were left until then. */
uint64_t pool_fail_at(uint64_t n);

#define POOL_NEW(pool, T)      ((T *)pool_alloc((pool), sizeof(T)))
#define POOL_ARRAY(pool, n, T) ((T *)pool_array((pool), (n), sizeof(T)))

/* a * b and a + b for byte counts and element counts; false on overflow past INT64_MAX, or on a
 * negative operand.  The one place where sizes are checked. */
bool size_mul(int64_t a, int64_t b, int64_t *out);
bool size_add(int64_t a, int64_t b, int64_t *out);

#endif
