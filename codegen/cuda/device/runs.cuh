#include "words.cuh"
/* Lines of buffer 0 whose elements lie side by side, EIGHT threads a line.  A thread has every
 * eighth run of EIGHT neighbours, which it reads 16 bytes at a time: of the PARTIALS partial sums of
 * line.cuh, to which element i belongs by i modulo PARTIALS, those are always the same EIGHT.  Runs
 * of buffer 0 begin ALIGN elements, EIGHT or PARTIALS, or multiples of that from address 0: the
 * first ones of a line may begin before the line.  ALIGN is 1 where lines are whole batches of runs.
 * A block has BLOCK_LINES lines at a time; all of its threads join at once. */
#define EIGHT        8
#define PARTIALS     64
#define LINE_THREADS EIGHT
#define LINE_THREAD  ((int)threadIdx.x % EIGHT)
#define IN_LINE(k)   IS_INSIDE(k, 1)
#define IS_INSIDE(k, n) (ALIGN == 1 || ((k) >= 0 && (k) + ((n)-1) < LENGTH))
/* A thread reads AHEAD runs before it uses the first. */
#define BATCH        (AHEAD * PARTIALS)

/* A run of buffer k. */
#define RUN_OF(k)                                                                                  \
    typedef struct ALIGNED(16) Run_##k {                                                           \
        u32 w[EIGHT / PER_WORD(k)];                                                                \
    } Run_##k;

/* Where this thread's first run of the line x begins. */
DEVICE PLACE first_run(const REAL(0) *x)
{
    return EIGHT * LINE_THREAD - (PLACE)((i64)x / (i64)sizeof *x % ALIGN);
}

/* load_runs_k: AHEAD runs of the line x of buffer k; what is outside of it is `outside`. */
#define LOAD_RUNS(k)                                                                               \
    DEVICE REAL(k) in_line_##k(const REAL(k) *x, PLACE at, float outside)                          \
    {                                                                                              \
        return IN_LINE(at) ? x[at] : OF(k, outside);                                               \
    }                                                                                              \
                                                                                                   \
    DEVICE void load_runs_##k(const REAL(k) *x, PLACE i, float outside, Run_##k *run)              \
    {                                                                                              \
        int u, j;                                                                                  \
        if (IS_INSIDE(i, BATCH - PARTIALS + EIGHT) && ((i64)(x + i) & 15) == 0) {                  \
            UNROLL for (u = 0; u < AHEAD; u++)                                                     \
                run[u] = *(const Run_##k *)(x + i + u * PARTIALS);                                 \
            return;                                                                                \
        }                                                                                          \
        UNROLL for (u = 0; u < AHEAD; u++)                                                         \
            UNROLL for (j = 0; j < EIGHT; j += PER_WORD(k)) {                                      \
                const PLACE at = i + u * PARTIALS + j;                                             \
                run[u].w[j / PER_WORD(k)] = WORD(k, in_line_##k(x, at, outside),                   \
                                                 in_line_##k(x, at + 1, outside));                 \
            }                                                                                      \
    }
RUN_OF(0)
LOAD_RUNS(0)

/* A run of the vector p as long as a line. */
DEVICE void load_floats(const float *p, PLACE i, float *x)
{
    typedef struct ALIGNED(16) Floats {
        float x[EIGHT];
    } Floats;
    int j;
    if (IS_INSIDE(i, EIGHT) && ((i64)(p + i) & 15) == 0) {
        const Floats run = *(const Floats *)(p + i);
        for (j = 0; j < EIGHT; j++)
            x[j] = run.x[j];
        return;
    }
    for (j = 0; j < EIGHT; j++)
        x[j] = IN_LINE(i + j) ? p[i + j] : 0.0f;
}

/* store_run: floats value[] as a run of the line out of buffer k; what of it is in the line. */
#define STORE_RUN(k)                                                                               \
    typedef struct ALIGNED(16) Stored {                                                            \
        u32 w[EIGHT / PER_WORD(k)];                                                                \
    } Stored;                                                                                      \
                                                                                                   \
    DEVICE void store_run(REAL(k) *out, PLACE i, const float *value)                               \
    {                                                                                              \
        int j;                                                                                     \
        if (IS_INSIDE(i, EIGHT) && ((i64)(out + i) & 15) == 0) {                                   \
            Stored run;                                                                            \
            for (j = 0; j < EIGHT / PER_WORD(k); j++)                                              \
                run.w[j] = PACK(k, value, j);                                                      \
            *(Stored *)(out + i) = run;                                                            \
        } else {                                                                                   \
            for (j = 0; j < EIGHT; j++)                                                            \
                if (IN_LINE(i + j))                                                                \
                    out[i + j] = OF(k, value[j]);                                                  \
        }                                                                                          \
    }

DEVICE float *partials_of_line(void)
{
    SHARED float all[BLOCK_LINES * PARTIALS];
    return all + (threadIdx.x - LINE_THREAD) * EIGHT;
}

#define JOIN_FOUR(k, join) join(join(s[k], s[(k) + 16]), join(s[(k) + 32], s[(k) + 48]))
#define JOIN_RUNS(name, join)                                                                      \
    DEVICE float name(const float *mine, PLACE first)                                              \
    {                                                                                              \
        const int t = LINE_THREAD;                                                                 \
        float *s = partials_of_line(), r;                                                          \
        int j;                                                                                     \
        for (j = 0; j < EIGHT; j++)                                                                \
            s[(first + j) & (PARTIALS - 1)] = mine[j];                                             \
        __syncthreads();                                                                           \
        s[t] = join(JOIN_FOUR(t, join), JOIN_FOUR(t + EIGHT, join));                               \
        __syncthreads();                                                                           \
        r = join(join(join(s[0], s[4]), join(s[2], s[6])),                                         \
                 join(join(s[1], s[5]), join(s[3], s[7])));                                        \
        __syncthreads();                                                                           \
        return r;                                                                                  \
    }
#define PLUS(a, b) ((a) + (b))

JOIN_RUNS(join_runs_sum, PLUS)
JOIN_RUNS(join_runs_max, s_max_number)
