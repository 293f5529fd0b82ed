#include "real.cuh"
/* Lines of buffer 0 whose elements lie side by side, EIGHT threads a line.  A thread has every eighth
 * run of EIGHT neighbours, which it reads 16 bytes at a time: of the PARTIALS partial sums of
 * line.cuh, to which element i belongs by i modulo PARTIALS, those are always the same EIGHT.  Runs
 * begin where their addresses are whole multiples: the first of a line may begin before the line.
 * A block has BLOCK_LINES lines at a time; all of its threads join at once. */
#define EIGHT        8
#define PARTIALS     64
#define LINE_THREADS EIGHT
#define LINE_THREAD  ((int)threadIdx.x % EIGHT)
/* Elements between the batches of a thread: AHEAD runs are read before the first is used. */
#define BATCH        (AHEAD * PARTIALS)
#define IN_LINE(k)   ((k) >= 0 && (k) < LENGTH)

typedef struct ALIGNED(16) Run_0 {
    float x[EIGHT];
} Run_0;
typedef struct ALIGNED(16) Run_1 {
    u16 x[EIGHT];
} Run_1;
#define RUN(k) REAL_JOIN(Run_, IS_BF16(k))

/* Where this thread's first run of the line x begins. */
DEVICE PLACE first_run(const REAL(0) *x)
{
    return EIGHT * LINE_THREAD - (PLACE)((i64)x / (i64)sizeof *x % PARTIALS);
}

/* AHEAD runs of the line x; -infinity outside of it. */
DEVICE void load_runs(const REAL(0) *x, PLACE i, RUN(0) *run)
{
    int u, j;
    if (i >= 0 && i + (BATCH - PARTIALS + EIGHT) <= LENGTH) {
        for (u = 0; u < AHEAD; u++)
            run[u] = *(const RUN(0) *)(x + i + u * PARTIALS);
        return;
    }
    for (u = 0; u < AHEAD; u++)
        for (j = 0; j < EIGHT; j++) {
            const PLACE k = i + u * PARTIALS + j;
            run[u].x[j] = IN_LINE(k) ? x[k] : OF(0, -INFINITE);
        }
}

/* Writes floats value[] as a run of the line out, of buffer k: what of it is in the line. */
#define STORE_RUN(k, out, i, value)                                                                   \
    {                                                                                              \
        int j_;                                                                                    \
        if ((i) >= 0 && (i) + EIGHT <= LENGTH && ((i64)((out) + (i)) & 15) == 0) {                 \
            RUN(k) run_;                                                                           \
            for (j_ = 0; j_ < EIGHT; j_++)                                                         \
                run_.x[j_] = OF(k, (value)[j_]);                                                       \
            *(RUN(k) *)((out) + (i)) = run_;                                                       \
        } else {                                                                                   \
            for (j_ = 0; j_ < EIGHT; j_++)                                                         \
                if (IN_LINE((i) + j_))                                                             \
                    (out)[(i) + j_] = OF(k, (value)[j_]);                                              \
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
