/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The instruction set a model is compiled for. */
#ifndef SCRIMP_CODEGEN_JIT_TARGET_H
#define SCRIMP_CODEGEN_JIT_TARGET_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Target {
    const char
        *name; /* "x86-64-v4-amx", "x86-64-v4", "x86-64-v3", "x86-64", "aarch64", "generic" */
    const char *flags[6]; /* for libgccjit; NULL-terminated */
    int vector_floats;    /* 16, 8 or 4: width of every emitted vector */
    int vector_registers; /* 32 or 16 */
    bool x86;             /* extended asm of jit_x86.c may be used */
    bool fma;
    bool amx;         /* matrix registers, for bf16 (jit_amx.h), and AVX512_BF16 */
    int64_t l2_bytes; /* of a core's second-level cache */
} Target;

/* --march NAME; "native" or NULL asks the running CPU, also for the sizes of its caches, which of
 * the others are always the same.  NULL when unknown. */
const Target *target_find(const char *name);
/* NULL-terminated names for help texts. */
const char *const *target_names(void);
/* Whether this CPU can run code compiled for t. */
bool target_runs_here(const Target *t);

#endif
