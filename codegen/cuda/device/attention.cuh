#include "real.cuh"
/* What attention and its gradient share: tiles of TILE x TILE scores of one head, and what follows from
 * them.  Results are sums over keys, or, in the kernels of dk and dv (OF_KEYS), over rows: these are the
 * tile's rows as tile.cuh counts them, `steps`; the tile's columns are what there are results for.
 * Scores are made again in every pass: they lie nowhere. */
#include "tile_load.cuh"
#define TILE          TILE_ROWS /* and columns */
#define TILES_OF(n)   (((n) + TILE - 1) / TILE)
#define AT_MOST(a, b) ((a) < (b) ? (a) : (b))
#define OF_KEYS       (MAKES_DK || MAKES_DV)
/* Of score (i, j) of a thread's, within the tile: */
#define ROW_OF_SCORE(i, j) (OF_KEYS ? OWN_ROW(i) : OWN_COLUMN(j))
#define KEY_OF_SCORE(i, j) (OF_KEYS ? OWN_COLUMN(j) : OWN_ROW(i))

/* Results have columns by parts, of which a block makes one: sums of more do not fit into registers. */
#define PARTS(width) (((width) + TILE - 1) / TILE)

/* Row `row` of a head in buffer B, which has `length` rows of `width` elements a head.  GROUP heads of
 * rows read one of keys and values. */
#define ROW_OF(B, head, length, row, width)                                                        \
    (BUF(REAL(B), B) + (head) * (length) * (width) + (i64)(row) * (width))

typedef ALIGNED(16) PanelRowA Tile[TILE]; /* a row for every step */
typedef struct Panels {
    PanelA a[2];
    PanelB b[2];
} Panels;

DEVICE const void *element_of(const void *p, int bf16, i64 i)
{
    return bf16 ? (const void *)((const u16 *)p + i) : (const void *)((const float *)p + i);
}

/* A thread's part of a panel of up to TILE rows, at step k of their `width`. */
DEVICE void load_steps(Quad *next, const void *x, int bf16, int rows, int width, int k, float none)
{
    load_panel(next, TILE, element_of(x, bf16, k), bf16, width % 4 == 0 && IS_WIDE(x, bf16), width, 1, rows,
               width - k, none);
}

/* sums[i][j] = row OWN_ROW(i) of x times row OWN_COLUMN(j) of y: one chain over the width. */
DEVICE void rows_times_rows(Sums sums, Panels *p, const void *x, int x_bf16, int x_rows, const void *y,
                            int y_bf16, int y_rows, int width)
{
    Quad next_x[QUADS(TILE)], next_y[QUADS(TILE)];
    sums_zero(sums);
    load_steps(next_x, x, x_bf16, x_rows, width, 0, NO_STEP_A);
    load_steps(next_y, y, y_bf16, y_rows, width, 0, NO_STEP_B);
    for (int k = 0; k < width; k += STEPS) {
        const int turn = k / STEPS & 1;
        store_panel(&p->a[turn][0][0], TILE, 1, next_x);
        store_panel(&p->b[turn][0][0], TILE, 1, next_y);
        __syncthreads();
        load_steps(next_x, x, x_bf16, x_rows, width, k + STEPS, NO_STEP_A);
        load_steps(next_y, y, y_bf16, y_rows, width, k + STEPS, NO_STEP_B);
        add_steps(sums, p->a[turn], p->b[turn]);
    }
    __syncthreads();
}

/* What a block makes: TILE rows, or TILE keys, of one head, and a part of their results' columns. */
typedef struct Place {
    i64 head;
    int first, c0;
} Place;

/* length: rows or keys of a head, whose results have so many parts.  Blocks that have the most to do
 * are a head's first: the last rows see the most keys. */
DEVICE Place place_of_block(int length, int parts)
{
    const i64 tiles = TILES_OF(length), tile = (i64)blockIdx.x / parts % tiles;
    const Place at = {(i64)blockIdx.x / parts / tiles, (int)(OF_KEYS ? tile : tiles - 1 - tile) * TILE,
                      (int)(blockIdx.x % parts) * TILE};
    return at;
}

DEVICE int is_open(int row, int key)
{
    return key < KEYS && row < ROWS && (!CAUSAL || key <= row);
}

/* Keys that some of rows [row0, row0 + TILE) see. */
DEVICE int keys_seen(int row0)
{
    return CAUSAL ? AT_MOST(row0 + TILE, KEYS) : KEYS;
}

/* x: a product of each row of X's buffer with each key of K's. */
#define ROWS_TIMES_KEYS(x, X, K, width)                                                            \
    if (OF_KEYS)                                                                                   \
        rows_times_rows(x, panels, ROW_OF(X, head, ROWS, row0, width), IS_BF16(X), ROWS - row0,    \
                        ROW_OF(K, head / GROUP, KEYS, s0, width), IS_BF16(K), KEYS - s0, width);   \
    else                                                                                           \
        rows_times_rows(x, panels, ROW_OF(K, head / GROUP, KEYS, s0, width), IS_BF16(K),           \
                        KEYS - s0, ROW_OF(X, head, ROWS, row0, width), IS_BF16(X), ROWS - row0,    \
                        width);

/* Scores as they come out of the product. */
DEVICE void tile_scores(const Args a, Sums x, Panels *panels, i64 head, int row0, int s0)
{
    ROWS_TIMES_KEYS(x, Q_BUF, K_BUF, WIDTH)
}

/* The score of a key that the row sees, finished. */
DEVICE float finished_score(const Args a, i64 head, int key, float x)
{
    x = x * SCALE;
#if BIASED
    x = x + VALUE(BIAS_BUF, BUF(const REAL(BIAS_BUF), BIAS_BUF)[bias_batch(head) + key]);
#endif
    return x;
}

/* x after dropout of element (row, key) of the head's scores. */
DEVICE float dropped(const Args a, i64 head, int row, int key, float x)
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

/* For every score of a thread's: row r of the tile and key s, whether the row sees it. */
#define EACH_SCORE                                                                                 \
    for (int i = 0; i < OWN_ROWS; i++)                                                             \
        for (int j = 0; j < OWN_COLUMNS; j++)
#define SCORE_PLACE                                                                                \
    const int r = ROW_OF_SCORE(i, j), s = s0 + KEY_OF_SCORE(i, j), open = is_open(row0 + r, s);    \
    (void)r, (void)s, (void)open;

/* Probabilities before dropout, 0 where a key is not seen; of every row max, the largest score, and
 * scale, 1 / the sum of exponentials. */
DEVICE void tile_probabilities(const Args a, Sums p, Panels *panels, i64 head, int row0, int s0,
                               const float *max, const float *scale)
{
    tile_scores(a, p, panels, head, row0, s0);
    EACH_SCORE {
        SCORE_PLACE
        p[i][j] = open ? s_exp(finished_score(a, head, s, p[i][j]) - max[r]) * scale[r] : 0.0f;
    }
}

/* t = x, of which each thread has its elements, and no steps but those there are. */
DEVICE void share(Tile t, Sums x, int steps)
{
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            t[OWN_ROW(i)][OWN_COLUMN(j)] = OWN_ROW(i) < steps ? x[i][j] : NO_STEP_A;
}

/* x = probabilities p after dropout. */
DEVICE void tile_dropped(const Args a, Sums x, Sums p, i64 head, int row0, int s0)
{
    EACH_SCORE {
        SCORE_PLACE
        x[i][j] = DROPS && open ? dropped(a, head, row0 + r, s, p[i][j]) : p[i][j];
    }
}

/* A number for each row, x, in a tensor of them: by the block that makes the first columns. */
DEVICE void store_numbers(float *to, const Place at, const float *x)
{
    const int r = at.first + (int)threadIdx.x;
    if (at.c0 == 0 && threadIdx.x < TILE && r < ROWS)
        to[at.head * ROWS + r] = x[threadIdx.x];
}

/* The sums of a column's 64 partial sums, which are its elements of t, into sum[column]: line.cuh's
 * order. */
DEVICE void fold_columns(Tile t, float *sum)
{
    const int r = threadIdx.x;
    __syncthreads();
    if (r < TILE) {
        int i, half;
        for (i = 0; i < 16; i++)
            t[i][r] = (t[i][r] + t[i + 16][r]) + (t[i + 32][r] + t[i + 48][r]);
        for (half = 8; half > 0; half /= 2)
            for (i = 0; i < half; i++)
                t[i][r] = t[i][r] + t[i + half][r];
        sum[r] = t[0][r];
    }
    __syncthreads();
}

/* Results so far: of rows in shared memory; for those of keys, which may be two, there is no room. */
#if OF_KEYS
typedef Sums Results;
#define RESULT(total, i, j) total[i][j]
#else
#include "tile_chains.cuh"
typedef Totals Results;
#define RESULT(total, i, j) (KEYS ? TOTAL(i, j) : 0.0f)
#endif

/* total goes on with a chain; the next begins from zero. */
DEVICE void end_chain(Results total, Sums chain, int is_first)
{
#if OF_KEYS
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            total[i][j] = is_first ? chain[i][j] : total[i][j] + chain[i][j];
    sums_zero(chain);
#else
    add_chains(total, chain, 1, is_first);
#endif
}

/* total[r][c] goes on with t[k][r] * y[k][c0 + c] for steps k of t, n of which are there: chains of
 * `block` steps, each from zero, added in order; step 0 is step `at` of `last` in all. */
DEVICE void add_rows(Results total, Sums chain, Panels *panels, Tile t, const void *y, int bf16, int width,
                     int c0, int n, int at, int last, int block)
{
    const int wide = width % 4 == 0 && IS_WIDE(y, bf16);
    Quad next[QUADS(TILE)];
    load_panel(next, TILE, element_of(y, bf16, c0), bf16, wide, 1, width, width - c0, n, NO_STEP_B);
    for (int k = 0; k < n;) {
        const int end = AT_MOST(n, k + block - (at + k) % block);
        for (; k < end; k += STEPS) {
            const int turn = k / STEPS & 1;
            store_panel(&panels->b[turn][0][0], TILE, width == 1, next);
            __syncthreads();
            load_panel(next, TILE, element_of(y, bf16, c0 + (i64)(k + STEPS) * width), bf16, wide, 1, width,
                       width - c0, n - k - STEPS, NO_STEP_B);
            add_steps(chain, t + k, panels->b[turn]);
        }
        if (at + end >= last || (at + end) % block == 0)
            end_chain(total, chain, at + end <= block);
    }
    __syncthreads();
}

/* Rows [first, first + TILE) of the head's, of which buffer B has `rows`.  Causal results of rows get
 * + 0 (codegen/forms/attention.h). */
#define WRITE_ROWS(total, width, B, head, first, rows)                                             \
    for (int i = 0; i < OWN_ROWS; i++)                                                             \
        for (int j = 0; j < OWN_COLUMNS; j++) {                                                    \
            const int r = (first) + OWN_ROW(i), c = c0 + OWN_COLUMN(j);                            \
            if (r < (rows) && c < (width))                                                         \
                ROW_OF(B, head, rows, r, width)[c] =                                               \
                    OF(B, CAUSAL && !OF_KEYS ? RESULT(total, i, j) + 0.0f : RESULT(total, i, j));                   \
        }
