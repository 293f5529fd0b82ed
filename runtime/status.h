/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the runtime reports failures of its environment (files, memory, threads): functions return
 * false or NULL and fill an RtError whose message says what happened and a way out.  Nothing here
 * exits or aborts.  Called by every runtime module. */
#ifndef SCRIMP_RUNTIME_STATUS_H
#define SCRIMP_RUNTIME_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct RtError {
    char message[512];
} RtError;

/* Fills err (which may be NULL) and returns false, so that callers can `return rt_error(...)`. */
bool rt_error(RtError *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts "prefix: " before a message that is already there (which file, which tensor). */
bool rt_error_prefix(RtError *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* a * b and a + b for byte and element counts; false on a negative operand or past INT64_MAX. */
bool rt_mul(int64_t a, int64_t b, int64_t *out);
bool rt_add(int64_t a, int64_t b, int64_t *out);

/* Zeroed memory for n elements of size bytes, or NULL with a message.  Freed with free(). */
void *rt_alloc(int64_t n, size_t size, RtError *err);
/* Test hook: the k-th following rt_alloc fails (1 = the next); 0 switches it off. */
void rt_alloc_fail_at(uint64_t k);

#endif
