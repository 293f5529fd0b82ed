/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Denormal numbers of f32, those below 2^-126: operations on them take up to a hundred times as
 * long on many processors, and gradients that vanish are full of them.  The threads of a step take
 * them for zeros and make zeros of them. */
#ifndef SCRIMP_RUNTIME_DENORMALS_H
#define SCRIMP_RUNTIME_DENORMALS_H

#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
enum { DENORMALS_FLUSH = 0x8040 }; /* flush to zero, denormals are zero */
static inline uint64_t denormals_mode(void)
{
    return _mm_getcsr();
}
static inline void denormals_set(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}
#elif defined(__aarch64__)
enum { DENORMALS_FLUSH = 1 << 24 }; /* FZ: of operands and results */
static inline uint64_t denormals_mode(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void denormals_set(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else /* they are computed as they are */
enum { DENORMALS_FLUSH = 0 };
static inline uint64_t denormals_mode(void)
{
    return 0;
}
static inline void denormals_set(uint64_t mode)
{
    (void)mode;
}
#endif

#endif
