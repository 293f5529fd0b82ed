#include "words.cuh"
#include "two_sums.cuh"
/* Sums along columns that lie side by side: of a chunk of ROWS rows a block has COLUMNS columns of
 * WIDTH, and WAYS sums of each.  Way k takes row k of every four, way 0 also those behind the last
 * four.  Tiles of TILE_ROWS rows of IMAGES buffers are brought into shared memory, 16 bytes at a
 * time; the next tile is on its way while one is summed.
 *
 * FOLD_ROW(m, r, row, start) adds to m row r of the tile, which is `row` of all; HERE(k, r) is what
 * buffer k has there. */
#define WAYS       4
#define THREADS    (WAYS * COLUMNS)
#define BLOCKS     ((WIDTH + COLUMNS - 1) / COLUMNS) /* of a chunk */
#define WAY        ((int)threadIdx.x / COLUMNS)
#define COLUMN     ((int)threadIdx.x % COLUMNS)
#define ALL_BF16   (IS_BF16(0) && (IMAGES == 1 || IS_BF16(1)))
#define TILE_ROWS  (32768 / IMAGES / COLUMNS / (ALL_BF16 ? 2 : 4))
#define VECTOR(k)  (16 / (int)sizeof(REAL(k)))
#define VECTORS(k) (COLUMNS / VECTOR(k)) /* of a row */
#define LOADS(k)   (TILE_ROWS * VECTORS(k) / THREADS)
#define HERE(k, r) VALUE(k, ((const REAL(k) *)tile_##k())[(r) * COLUMNS + COLUMN])

/* Of buffer k: its tile; what of the next one is on its way, which look_ahead_k sends for, rows
 * row..to-1 of `columns` columns from x on, and put_tile_k puts there. */
#define COLUMN_TILE(k)                                                                             \
    typedef struct ALIGNED(16) Vector_##k {                                                        \
        u32 w[4];                                                                                  \
    } Vector_##k;                                                                                  \
    typedef struct Ahead_##k {                                                                     \
        Vector_##k v[LOADS(k)];                                                                    \
    } Ahead_##k;                                                                                   \
                                                                                                   \
    DEVICE Vector_##k *tile_##k(void)                                                              \
    {                                                                                              \
        SHARED Vector_##k tile[TILE_ROWS * VECTORS(k)];                                            \
        return tile;                                                                               \
    }                                                                                              \
                                                                                                   \
    DEVICE void look_ahead_##k(const REAL(k) *x, i64 row, i64 to, int columns, Ahead_##k *ahead)   \
    {                                                                                              \
        const int aligned = ((i64)x & 15) == 0;                                                    \
        int u, j;                                                                                  \
        UNROLL for (u = 0; u < LOADS(k); u++) {                                                    \
            const int at = u * THREADS + (int)threadIdx.x;                                         \
            const int c = at % VECTORS(k) * VECTOR(k);                                             \
            const i64 r = row + at / VECTORS(k);                                                   \
            const REAL(k) *from = x + r * PITCH_##k + c;                                           \
            if (r < to && c < columns && aligned)                                                  \
                ahead->v[u] = *(const Vector_##k *)from;                                           \
            else if (r < to && c < columns)                                                        \
                for (j = 0; j < 4; j++)                                                            \
                    ahead->v[u].w[j] =                                                             \
                        WORD(k, from[j * PER_WORD(k)], from[j * PER_WORD(k) + PER_WORD(k) - 1]);   \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    DEVICE void put_tile_##k(const Ahead_##k *ahead)                                               \
    {                                                                                              \
        int u;                                                                                     \
        UNROLL for (u = 0; u < LOADS(k); u++)                                                      \
            tile_##k()[u * THREADS + threadIdx.x] = ahead->v[u];                                   \
    }

COLUMN_TILE(0)
#if IMAGES == 2
COLUMN_TILE(1)
#endif

typedef struct Ahead {
    Ahead_0 of_0;
#if IMAGES == 2
    Ahead_1 of_1;
#endif
} Ahead;

DEVICE void look_ahead(const Args a, i64 column, i64 row, i64 to, Ahead *ahead)
{
    const int columns = (int)(WIDTH - column < COLUMNS ? WIDTH - column : COLUMNS);
    look_ahead_0(BUF(const REAL(0), 0) + column, row, to, columns, &ahead->of_0);
#if IMAGES == 2
    look_ahead_1(BUF(const REAL(1), 1) + column, row, to, columns, &ahead->of_1);
#endif
}

DEVICE void put_tile(const Ahead *ahead)
{
    put_tile_0(&ahead->of_0);
#if IMAGES == 2
    put_tile_1(&ahead->of_1);
#endif
}

/* What this thread adds to m of a chunk of the columns from `column` on. */
DEVICE TwoSums sum_way(const Args a, i64 chunk, i64 column, float start, TwoSums m)
{
    const i64 from = part_start(chunk, ROWS, CHUNKS), to = part_start(chunk + 1, ROWS, CHUNKS);
    Ahead ahead;
    i64 tile;
    look_ahead(a, column, from, to, &ahead);
    for (tile = from; tile < to; tile += TILE_ROWS) {
        const int rows = (int)(to - tile < TILE_ROWS ? to - tile : TILE_ROWS);
        const int fours = rows / WAYS * WAYS;
        int r;
        put_tile(&ahead);
        __syncthreads();
        look_ahead(a, column, tile + TILE_ROWS, to, &ahead);
#pragma unroll 8
        for (r = WAY; r < fours; r += WAYS)
            FOLD_ROW(m, r, tile + r, start)
        for (r = fours; r < rows && WAY == 0; r++)
            FOLD_ROW(m, r, tile + r, start)
        __syncthreads();
    }
    (void)start;
    return m;
}

/* The WAYS of a column, to all of them. */
DEVICE TwoSums join_ways(TwoSums m)
{
    SHARED TwoSums all[WAYS][COLUMNS];
    const int c = COLUMN;
    all[WAY][c] = m;
    __syncthreads();
    m.first = JOIN_WAYS(JOIN_WAYS(all[0][c].first, all[1][c].first),
                        JOIN_WAYS(all[2][c].first, all[3][c].first));
    m.second = JOIN_WAYS(JOIN_WAYS(all[0][c].second, all[1][c].second),
                         JOIN_WAYS(all[2][c].second, all[3][c].second));
    return m;
}
