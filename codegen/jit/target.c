/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/jit/target.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#endif

enum {
    L2_BYTES = 1 << 20, /* where nothing is known, */
    L2_LEAST = 1 << 18, /* and within what a system is believed */
    L2_MOST = 1 << 23
};

/* Flags and widths as measured in docs/cpu.md: 512-bit vectors need to be asked for.  "generic"
 * compiles for the compiler's own default without any inline assembly; it keeps the portable path
 * of the emitter tested on every host. */
#define V4_FLAGS                                                                                   \
    {                                                                                              \
        "-march=x86-64-v4", "-mtune=icelake-server", "-mprefer-vector-width=512", NULL             \
    }
static const Target targets[] = {
#if defined(__x86_64__)
    {"x86-64-v4-amx", V4_FLAGS, 16, 32, true, true, true, L2_BYTES},
    {"x86-64-v4", V4_FLAGS, 16, 32, true, true, false, L2_BYTES},
    {"x86-64-v3", {"-march=x86-64-v3", "-mtune=haswell", NULL}, 8, 16, true, true, false, L2_BYTES},
    {"x86-64", {"-march=x86-64", NULL}, 4, 16, true, false, false, L2_BYTES},
#elif defined(__aarch64__)
    {"aarch64", {NULL}, 4, 32, false, true, false, L2_BYTES},
#endif
    {"generic", {NULL}, 4, 16, false, false, false, L2_BYTES},
};
enum { N_TARGETS = sizeof targets / sizeof *targets };

#if defined(__x86_64__)
/* The processor has what is needed (bits of leaf 7 of CPUID), and the system lets this process use
 * it: it has to be asked, once (Linux, Documentation/arch/x86/xstate.rst). */
static bool amx_runs_here(void)
{
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AVX512_BF16 = 1 << 5 };
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    unsigned a = 0, b = 0, c = 0, d = 0, d0 = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d0) || !__get_cpuid_count(7, 1, &a, &b, &c, &d))
        return false;
    return (d0 & AMX_BF16) && (d0 & AMX_TILE) && (a & AVX512_BF16) &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#endif

bool target_runs_here(const Target *t)
{
#if defined(__x86_64__)
    /* clang 14 does not know "x86-64-v4" as a feature name: ask for the parts. */
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
    if (strcmp(t->name, "x86-64-v4-amx") == 0)
        return v4 && amx_runs_here();
    if (strcmp(t->name, "x86-64-v4") == 0)
        return v4;
    if (strcmp(t->name, "x86-64-v3") == 0)
        return v3;
#endif
    (void)t;
    return true;
}

/* The machine's own; virtual machines may tell 0. */
static int64_t l2_here(void)
{
    long told = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (told <= 0)
        return L2_BYTES;
    return told < L2_LEAST ? L2_LEAST : told > L2_MOST ? L2_MOST : told;
}

static Target here;

static void find_here(void)
{
    size_t i = 0;
    while (!target_runs_here(&targets[i])) /* the last one runs everywhere */
        i++;
    here = targets[i];
    here.l2_bytes = l2_here();
}

const Target *target_find(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!name || strcmp(name, "native") == 0) {
        pthread_once(&once, find_here);
        return &here;
    }
    for (size_t i = 0; i < N_TARGETS; i++)
        if (strcmp(targets[i].name, name) == 0)
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
