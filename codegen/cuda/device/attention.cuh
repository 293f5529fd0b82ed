#include "real.cuh"
/* What attention and its gradient share: tiles of TILE x TILE scores, rows by keys, of one head, and
 * what follows from them.  A thread has the scores of rows OWN(ty, i) and keys OWN(tx, j), as in tile.cuh.
 * Scores are made again in every pass over the keys: they lie nowhere. */
#define TILE        TILE_ROWS
#define TILES_OF(n) (((n) + TILE - 1) / TILE)
#define AT_MOST(a, b) ((a) < (b) ? (a) : (b))
/* Elements between rows of a panel of whole rows: 16 threads share a row, element t, t + 16, ... are
 * thread t's. */
#define PITCH(width) (((width) + 15) / 16 * 16)
/* Results have columns by parts, of which a block makes one: sums of more do not fit into registers. */
#define PART_MOST      128
#define PART(width)    AT_MOST(width, PART_MOST)
#define PARTS(width)   (((width) + PART_MOST - 1) / PART_MOST)
#define PER_ROW(width) (PITCH(PART(width)) / 16)

typedef float Tile[TILE][TILE + 1];
typedef union Panels {
    struct {
        PanelA a;
        PanelB b;
    } by_step;
    float row[STEPS][PITCH(PART(WIDTH > VALUE_WIDTH ? WIDTH : VALUE_WIDTH))];
} Panels;

/* sums[i][j] = row OWN(ty, i) of x times row OWN(tx, j) of y: one chain over the width. */
DEVICE void rows_times_rows(Sums sums, Panels *p, const void *x, int x_bf16, i64 x_rows, const void *y,
                            int y_bf16, i64 y_rows, int width)
{
    int k0;
    sums_zero(sums);
    for (k0 = 0; k0 < width; k0 += STEPS) {
        int e;
        for (e = threadIdx.x; e < TILE * STEPS; e += 256) {
            const int k = e % STEPS, r = e / STEPS, in = k0 + k < width;
            p->by_step.a[k][r] = in && r < x_rows ? real_at(x, x_bf16, (i64)r * width + k0 + k) : 0.0f;
            p->by_step.b[k][r] = in && r < y_rows ? real_at(y, y_bf16, (i64)r * width + k0 + k) : 0.0f;
        }
        __syncthreads();
        add_steps(sums, p->by_step.a, p->by_step.b, AT_MOST(width - k0, STEPS));
        __syncthreads();
    }
}

DEVICE int is_open(i64 row, i64 key)
{
    return key < KEYS && row < ROWS && (!CAUSAL || key <= row);
}

/* The score of a key that the row sees, finished. */
DEVICE float finished_score(const Args a, i64 head, i64 key, float x)
{
#if SCALED
    x = x * SCALE;
#endif
#if BIASED
    x = x + VALUE(BIAS_BUF, BUF(const REAL(BIAS_BUF), BIAS_BUF)[bias_batch(head) + key]);
#endif
    return x;
}

/* x after dropout of element (row, key) of the head's scores. */
DEVICE float dropped(const Args a, i64 head, i64 row, i64 key, float x)
{
#if DROPS
    const int *word = BUF(const int, RNG_BUF);
    const unsigned long long seed = (u32)word[0] | (unsigned long long)(u32)word[1] << 32;
    const unsigned long long k = seed + (unsigned long long)a.word[KEY_NUMBER];
    const i64 at = (head * ROWS + row) * KEYS + key;
    x = s_dropout(x, (int)(u32)k, (int)(u32)(k >> 32), word[2], word[3], (int)(u32)at,
                  (int)(u32)((unsigned long long)at >> 32), THRESHOLD, KEPT_SCALE);
#endif
    return x;
}

/* The sums of a row's 64 partial sums, which are its elements of t, into sum[row]: line.cuh's order. */
DEVICE void fold_rows(Tile t, float *sum)
{
    const int r = threadIdx.x;
    __syncthreads();
    if (r < TILE) {
        int i, half;
        for (i = 0; i < 16; i++)
            t[r][i] = (t[r][i] + t[r][i + 16]) + (t[r][i + 32] + t[r][i + 48]);
        for (half = 8; half > 0; half /= 2)
            for (i = 0; i < half; i++)
                t[r][i] = t[r][i] + t[r][i + half];
        sum[r] = t[r][0];
    }
    __syncthreads();
}

/* Columns from c0 on of STEPS rows of `width` elements, of which `rows` are there. */
DEVICE void load_rows(Panels *p, const void *x, int bf16, int rows, int width, int c0)
{
    const int pitch = PITCH(PART(width));
    int e;
    for (e = threadIdx.x; e < STEPS * pitch; e += 256) {
        const int k = e / pitch, c = c0 + e % pitch;
        p->row[k][c - c0] = k < rows && c < width ? real_at(x, bf16, (i64)k * width + c) : 0.0f;
    }
}

/* What a thread has of TILE rows of results: rows ty + 16 i, columns c0 + tx + 16 j. */
#define SUMS_OF(name, width) float name[OWN_ROWS][PER_ROW(width)]
#define SUMS_CLEAR(name, width)                                                                    \
    for (int i = 0; i < OWN_ROWS; i++)                                                           \
        for (int j = 0; j < PER_ROW(width); j++)                                                   \
            name[i][j] = 0.0f;

/* total[r][c] goes on with x[r][k] * y[k][c] for k in [0, n): chains of `block` steps, each from zero,
 * added in order; step 0 is step `at` of `last` in all.  X(r, k) reads x in shared memory, y is in
 * buffer B. */
#define ADD_ROWS(total, chain, width, X, B, y, n, at, last, block)                                 \
    for (int k0 = 0; k0 < (n); k0 += STEPS) {                                                      \
        const int steps = AT_MOST((n) - k0, STEPS);                                                \
        load_rows(panels, (y) + (i64)k0 * (width), IS_BF16(B), steps, width, c0);                  \
        __syncthreads();                                                                           \
        for (int k = 0; k < steps; k++)                                                            \
            for (int i = 0; i < OWN_ROWS; i++) {                                                 \
                const float x = X(ty + 16 * i, k0 + k);                                            \
                for (int j = 0; j < PER_ROW(width); j++)                                           \
                    chain[i][j] = fmaf(x, panels->row[k][tx + 16 * j], chain[i][j]);               \
            }                                                                                      \
        __syncthreads();                                                                           \
        if ((at) + k0 + steps >= (last) || ((at) + k0 + steps) % (block) == 0) {                   \
            for (int i = 0; i < OWN_ROWS; i++)                                                   \
                for (int j = 0; j < PER_ROW(width); j++) {                                         \
                    total[i][j] = (at) + k0 < (block) ? chain[i][j] : total[i][j] + chain[i][j];   \
                    chain[i][j] = 0.0f;                                                            \
                }                                                                                  \
        }                                                                                          \
    }

/* Rows [first, first + TILE) of a tensor of `rows` rows, at `to` in buffer B. */
#define WRITE_ROWS(total, width, B, to, first, rows)                                               \
    for (int i = 0; i < OWN_ROWS; i++)                                                           \
        for (int j = 0; j < PER_ROW(width); j++) {                                                 \
            const i64 r = (first) + ty + 16 * i;                                                   \
            const int c = c0 + tx + 16 * j;                                                        \
            if (r < (rows) && c < (width))                                                         \
                (to)[r * (width) + c] = OF(B, total[i][j]);                                        \
        }
