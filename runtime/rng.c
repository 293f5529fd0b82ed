/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Names the stream of initial parameters, apart from every training step. */
static const uint64_t INIT_STEP = UINT64_MAX;

void rt_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c[0] * 0xD2511F53u, p1 = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k[0], (uint32_t)p1,
                            (uint32_t)(p0 >> 32) ^ c[3] ^ k[1], (uint32_t)p0};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u; /* golden ratio */
        k[1] += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    memcpy(out, c, sizeof c);
}

/* Generated code computes the same: counter (index, step), key seed + key * constant, first word.
 */
uint32_t rt_rng_bits(uint64_t seed, uint64_t step, uint64_t key, uint64_t index)
{
    uint64_t k = seed + key * 0x9E3779B97F4A7C15u;
    uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)step,
                           (uint32_t)(step >> 32)};
    uint32_t words[2] = {(uint32_t)k, (uint32_t)(k >> 32)}, out[4];
    rt_philox4x32(counter, words, out);
    return out[0];
}

uint64_t rt_name_key(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

uint64_t rt_rng_below(uint64_t n, uint64_t seed, uint64_t step, uint64_t key, uint64_t index)
{
    uint64_t high = rt_rng_bits(seed, step, key, 2 * index);
    uint64_t bits = high << 32 | rt_rng_bits(seed, step, key, 2 * index + 1);
    __extension__ unsigned __int128 product = (unsigned __int128)bits * n;
    return (uint64_t)(product >> 64);
}

/* A Feistel network on the next power of four is a permutation of it; walking on while the result
 * is outside [0, n) makes it one of [0, n).  Source: Black and Rogaway, "Ciphers with arbitrary
 * finite domains", 2002. */
uint64_t rt_permute(uint64_t i, uint64_t n, uint64_t seed, uint64_t epoch)
{
    enum { ROUNDS = 6 };
    uint64_t key = rt_name_key("data.permutation");
    unsigned half = 1;
    while (half < 32 && (uint64_t)1 << 2 * half < n)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t r = 0; r < ROUNDS; r++) {
            uint64_t mixed = left ^ (rt_rng_bits(seed, epoch, key + r, right) & mask);
            left = right;
            right = mixed;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

typedef enum InitKind { INIT_VALUE, INIT_NORMAL, INIT_UNIFORM } InitKind;
typedef struct Init {
    InitKind kind;
    double a, b; /* value | standard deviation, mean | low, high */
} Init;

/* Reads "name(x)" or "name(x,y)": n numbers; all of the text must be used. */
static bool read_call(const char *text, const char *name, int n, double *value)
{
    size_t len = strlen(name);
    if (strncmp(text, name, len) != 0 || text[len] != '(')
        return false;
    const char *p = text + len + 1;
    for (int i = 0; i < n; i++) {
        char *end;
        value[i] = strtod(p, &end);
        end += strspn(end, " ");
        if (end == p || *end != (i + 1 < n ? ',' : ')') || !isfinite(value[i]))
            return false;
        p = end + 1;
    }
    return *p == 0;
}

static bool read_init(const char *text, Init *init)
{
    double v[2] = {0, 0};
    if (strcmp(text, "zeros") == 0)
        *init = (Init){INIT_VALUE, 0, 0};
    else if (strcmp(text, "ones") == 0)
        *init = (Init){INIT_VALUE, 1, 0};
    else if (read_call(text, "value", 1, v))
        *init = (Init){INIT_VALUE, v[0], 0};
    else if (read_call(text, "normal", 1, v) || read_call(text, "normal", 2, v))
        *init = (Init){INIT_NORMAL, v[0], v[1]};
    else if (read_call(text, "uniform", 2, v) && v[0] <= v[1])
        *init = (Init){INIT_UNIFORM, v[0], v[1]};
    else
        return false;
    return true;
}

static void fill_uniform(float *dst, int64_t n, Init init, uint64_t seed, uint64_t key)
{
    for (int64_t i = 0; i < n; i++) {
        double u = (double)rt_rng_bits(seed, INIT_STEP, key, (uint64_t)i) * 0x1p-32;
        dst[i] = (float)(init.a + (init.b - init.a) * u);
    }
}

/* Box-Muller: elements 2j and 2j+1 share a pair of uniforms. */
static void fill_normal(float *dst, int64_t n, Init init, uint64_t seed, uint64_t key)
{
    const double two_pi = 6.28318530717958647692;
    for (int64_t i = 0; i < n; i += 2) {
        double u = (rt_rng_bits(seed, INIT_STEP, key, (uint64_t)i) + 0.5) * 0x1p-32;
        double v = rt_rng_bits(seed, INIT_STEP, key, (uint64_t)i + 1) * 0x1p-32;
        double radius = init.a * sqrt(-2 * log(u));
        dst[i] = (float)(init.b + radius * cos(two_pi * v));
        if (i + 1 < n)
            dst[i + 1] = (float)(init.b + radius * sin(two_pi * v));
    }
}

bool rt_init_fill(float *dst, int64_t n, const char *text, uint64_t seed, const char *name,
                  RtError *err)
{
    Init init;
    if (!read_init(text, &init))
        return rt_error(err,
                        "initial value '%s' of %s: write zeros, ones, value(x), normal(std), "
                        "normal(std,mean) or uniform(lo,hi)",
                        text, name);
    uint64_t key = rt_name_key(name);
    switch (init.kind) {
    case INIT_VALUE:
        for (int64_t i = 0; i < n; i++)
            dst[i] = (float)init.a;
        break;
    case INIT_NORMAL:
        fill_normal(dst, n, init, seed, key);
        break;
    case INIT_UNIFORM:
        fill_uniform(dst, n, init, seed, key);
        break;
    }
    return true;
}
