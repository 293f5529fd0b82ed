#include "real.cuh"
/* What attention and its gradient share: tiles of TILE x TILE scores, rows by keys, of one head, and
 * what follows from them.  A thread has the scores of rows OWN_ROW(i) and keys OWN_COLUMN(j), as in tile.cuh.
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

/* Row `row` of a head in buffer B, which has `length` rows of `width` elements a head.  GROUP heads of
 * rows read one of keys and values. */
#define ROW_OF(B, head, length, row, width)                                                        \
    (BUF(REAL(B), B) + (head) * (length) * (width) + (row) * (width))

typedef float Tile[TILE][TILE + 1];
typedef union Panels {
    struct {
        PanelA a;
        PanelB b;
    } by_step;
    float row[STEPS][PITCH(PART(WIDTH > VALUE_WIDTH ? WIDTH : VALUE_WIDTH))];
} Panels;

/* sums[i][j] = row OWN_ROW(i) of x times row OWN_COLUMN(j) of y: one chain over the width. */
DEVICE void rows_times_rows(Sums sums, Panels *p, const void *x, int x_bf16, i64 x_rows, const void *y,
                            int y_bf16, i64 y_rows, int width)
{
    int k0;
    sums_zero(sums);
    for (k0 = 0; k0 < width; k0 += STEPS) {
        int e;
        for (e = threadIdx.x; e < TILE * STEPS; e += 256) {
            const int k = e % STEPS, r = e / STEPS, in = k0 + k < width;
            p->by_step.a[k][r] = in && r < x_rows ? real_at(x, x_bf16, (i64)r * width + k0 + k) : NO_STEP_A;
            p->by_step.b[k][r] = in && r < y_rows ? real_at(y, y_bf16, (i64)r * width + k0 + k) : 0.0f;
        }
        __syncthreads();
        add_steps(sums, p->by_step.a, p->by_step.b);
        __syncthreads();
    }
}

/* What a block makes: TILE rows, or TILE keys, of one head, and a part of their results' columns. */
typedef struct Place {
    i64 head, first;
    int c0;
} Place;

/* length: rows or keys of a head, whose results have so many parts.  A function would cost registers. */
#define PLACE_OF_BLOCK(length, parts)                                                              \
    {(i64)blockIdx.x / (parts) / TILES_OF(length),                                                 \
     (i64)blockIdx.x / (parts) % TILES_OF(length) * TILE,                                          \
     (int)(blockIdx.x % (parts)) * PART_MOST}

DEVICE int is_open(i64 row, i64 key)
{
    return key < KEYS && row < ROWS && (!CAUSAL || key <= row);
}

/* Keys that some of rows [row0, row0 + TILE) see. */
DEVICE i64 keys_seen(i64 row0)
{
    return CAUSAL ? AT_MOST(row0 + TILE, (i64)KEYS) : KEYS;
}

/* Scores as they come out of the product. */
DEVICE void tile_scores(const Args a, Sums x, Panels *panels, i64 head, i64 row0, i64 s0)
{
    rows_times_rows(x, panels, ROW_OF(Q_BUF, head, ROWS, row0, WIDTH), IS_BF16(Q_BUF), ROWS - row0,
                    ROW_OF(K_BUF, head / GROUP, KEYS, s0, WIDTH), IS_BF16(K_BUF), KEYS - s0, WIDTH);
}

/* The score of a key that the row sees, finished. */
DEVICE float finished_score(const Args a, i64 head, i64 key, float x)
{
    x = x * SCALE;
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

/* Probabilities before dropout, 0 where a key is not seen; of every row max, the largest score, and
 * scale, 1 / the sum of exponentials. */
DEVICE void tile_probabilities(const Args a, Sums p, Panels *panels, i64 head, i64 row0, i64 s0,
                               const float *max, const float *scale)
{
    const int ty = TY, tx = TX;
    tile_scores(a, p, panels, head, row0, s0);
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const int r = OWN_ROW(i);
            const i64 s = s0 + OWN_COLUMN(j);
            p[i][j] = is_open(row0 + r, s)
                          ? s_exp(finished_score(a, head, s, p[i][j]) - max[r]) * scale[r]
                          : 0.0f;
        }
}

/* t = x, of which each thread has its elements. */
DEVICE void share(Tile t, Sums x)
{
    const int ty = TY, tx = TX;
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            t[OWN_ROW(i)][OWN_COLUMN(j)] = x[i][j];
}

/* t = probabilities p after dropout. */
DEVICE void share_dropped(const Args a, Tile t, Sums p, i64 head, i64 row0, i64 s0)
{
    const int ty = TY, tx = TX;
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const int r = OWN_ROW(i), s = OWN_COLUMN(j);
            t[r][s] = is_open(row0 + r, s0 + s) ? dropped(a, head, row0 + r, s0 + s, p[i][j]) : 0.0f;
        }
}

/* A number for each row, x, in a tensor of them: by the block that makes the first columns. */
DEVICE void store_numbers(float *to, const Place at, const float *x)
{
    const i64 r = at.first + threadIdx.x;
    if (at.c0 == 0 && threadIdx.x < TILE && r < ROWS)
        to[at.head * ROWS + r] = x[threadIdx.x];
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

/* What a thread has of TILE rows of results, zeros: rows ty + 16 i, columns c0 + tx + 16 j. */
#define SUMS_OF(name, width) float name[OWN_ROWS][PER_ROW(width)] = {{0.0f}}

/* total[r][c] goes on with x[r][k] * y[k][c] for k in [0, n): chains of `block` steps, each from zero,
 * added in order; step 0 is step `at` of `last` in all.  X(r, k) reads x in shared memory, y is in
 * buffer B. */
#define ADD_ROWS(total, chain, width, X, B, y, n, at, last, block)                                 \
    for (int k0 = 0; k0 < (n); k0 += STEPS) {                                                      \
        const int steps = AT_MOST((n) - k0, STEPS);                                                \
        load_rows(panels, (y) + (i64)k0 * (width), IS_BF16(B), steps, width, c0);                  \
        __syncthreads();                                                                           \
        for (int k = 0; k < steps; k++)                                                            \
            for (int i = 0; i < OWN_ROWS; i++) {                                                   \
                const float x = X(ty + 16 * i, k0 + k);                                            \
                for (int j = 0; j < PER_ROW(width); j++)                                           \
                    chain[i][j] = fmaf(x, panels->row[k][tx + 16 * j], chain[i][j]);               \
            }                                                                                      \
        __syncthreads();                                                                           \
        if ((at) + k0 + steps >= (last) || ((at) + k0 + steps) % (block) == 0) {                   \
            for (int i = 0; i < OWN_ROWS; i++)                                                     \
                for (int j = 0; j < PER_ROW(width); j++) {                                         \
                    total[i][j] = (at) + k0 < (block) ? chain[i][j] : total[i][j] + chain[i][j];   \
                    chain[i][j] = 0.0f;                                                            \
                }                                                                                  \
        }                                                                                          \
    }

/* Rows [first, first + TILE) of the head's, of which buffer B has `rows`. */
#define WRITE_ROWS(total, width, B, head, first, rows)                                             \
    for (int i = 0; i < OWN_ROWS; i++)                                                             \
        for (int j = 0; j < PER_ROW(width); j++) {                                                 \
            const i64 r = (first) + ty + 16 * i;                                                   \
            const int c = c0 + tx + 16 * j;                                                        \
            if (r < (rows) && c < (width))                                                         \
                ROW_OF(B, head, rows, r, width)[c] = OF(B, total[i][j]);                           \
        }

/* Causal results get + 0 (codegen/forms/attention.h). */
#define END_ROWS(total, width)                                                                     \
    for (int i = 0; CAUSAL && i < OWN_ROWS; i++)                                                   \
        for (int j = 0; j < PER_ROW(width); j++)                                                   \
            total[i][j] = total[i][j] + 0.0f;
