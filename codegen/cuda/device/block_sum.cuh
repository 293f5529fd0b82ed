/* NAME(mine): the sum over all THREADS threads of a block, a power of two, of a type whose sums do not
 * depend on their order. */
#define BLOCK_SUM(name, type)                                                                      \
    DEVICE type name(type mine)                                                                    \
    {                                                                                              \
        SHARED type s[THREADS];                                                                    \
        const int t = threadIdx.x;                                                                 \
        int half;                                                                                  \
        s[t] = mine;                                                                               \
        __syncthreads();                                                                           \
        for (half = THREADS / 2; half > 0; half /= 2) {                                            \
            if (t < half)                                                                          \
                s[t] = s[t] + s[t + half];                                                         \
            __syncthreads();                                                                       \
        }                                                                                          \
        mine = s[0];                                                                               \
        __syncthreads();                                                                           \
        return mine;                                                                               \
    }
