/* Sums along a line of elements that PARTIALS threads share: element i belongs to partial sum i
 * modulo PARTIALS, and these are joined in one order: the CPU's, for vectors of any width.  A block
 * has BLOCK_LINES lines at a time; all of its threads join at once. */
#define LANES    16
#define PARTIALS 64
#define LINE_THREADS PARTIALS
#ifndef BLOCK_LINES
#define BLOCK_LINES 1
#endif
#if BLOCK_LINES == 1
#define LINE_THREAD ((int)threadIdx.x)
#else
#define LINE_THREAD ((int)threadIdx.x % PARTIALS)
#endif

#define JOIN_LINE(name, type, join)                                                                \
    DEVICE type name(type mine)                                                                    \
    {                                                                                              \
        SHARED type all[BLOCK_LINES * PARTIALS];                                                   \
        const int t = LINE_THREAD;                                                                 \
        type *s = all + (threadIdx.x - t);                                                         \
        int half;                                                                                  \
        type result;                                                                               \
        s[t] = mine;                                                                               \
        __syncthreads();                                                                           \
        if (t < LANES)                                                                             \
            s[t] = join(join(s[t], s[t + LANES]), join(s[t + 2 * LANES], s[t + 3 * LANES]));       \
        __syncthreads();                                                                           \
        for (half = LANES / 2; half > 0; half /= 2) {                                              \
            if (t < half)                                                                          \
                s[t] = join(s[t], s[t + half]);                                                    \
            __syncthreads();                                                                       \
        }                                                                                          \
        result = s[0];                                                                             \
        __syncthreads();                                                                           \
        return result;                                                                             \
    }

#define PLUS(a, b) ((a) + (b))

JOIN_LINE(join_line_sum, float, PLUS)
JOIN_LINE(join_line_max, float, s_max)
JOIN_LINE(join_line_max_keep, float, s_max_keep)
JOIN_LINE(join_line_count, i64, PLUS)
