/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/jit/target.h"

#include <stddef.h>
#include <string.h>

/* Flags and widths as measured in docs/cpu.md: 512-bit vectors need to be asked for.  "generic"
 * compiles for the compiler's own default without any inline assembly; it keeps the portable path
 * of the emitter tested on every host. */
static const Target targets[] = {
#if defined(__x86_64__)
    {"x86-64-v4",
     {"-march=x86-64-v4", "-mtune=icelake-server", "-mprefer-vector-width=512", NULL},
     16,
     32,
     true,
     true},
    {"x86-64-v3", {"-march=x86-64-v3", "-mtune=haswell", NULL}, 8, 16, true, true},
    {"x86-64", {"-march=x86-64", NULL}, 4, 16, true, false},
#elif defined(__aarch64__)
    {"aarch64", {NULL}, 4, 32, false, true},
#endif
    {"generic", {NULL}, 4, 16, false, false},
};
enum { N_TARGETS = sizeof targets / sizeof *targets };

bool target_runs_here(const Target *t)
{
#if defined(__x86_64__)
    /* clang 14 does not know "x86-64-v4" as a feature name: ask for the parts. */
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
    if (strcmp(t->name, "x86-64-v4") == 0)
        return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    if (strcmp(t->name, "x86-64-v3") == 0)
        return v3;
#endif
    (void)t;
    return true;
}

const Target *target_find(const char *name)
{
    bool native = !name || strcmp(name, "native") == 0;
    for (size_t i = 0; i < N_TARGETS; i++)
        if (native ? target_runs_here(&targets[i]) : strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

const char *const *target_names(void)
{
    static const char *names[N_TARGETS + 1];
    for (size_t i = 0; i < N_TARGETS; i++)
        names[i] = targets[i].name;
    return names;
}
