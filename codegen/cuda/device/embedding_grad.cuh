#include "real.cuh"
/* The gradient of a table: row r is the sum of the rows of dy whose number is r, in their order,
 * behind the sum so far where there is one (SO_FAR).  A block has OWN_ROWS rows of the table, of
 * which each thread sums a column; it looks at TILE numbers at a time, lists those of its rows, in
 * order, and adds what they stand for. */
#define EACH 4
#define TILE (EACH * THREADS)

typedef struct Listed {
    int id;   /* of the block's rows */
    int place; /* in the tile */
} Listed;

/* Lists the numbers of a tile that are rows from..to-1; their number. */
DEVICE int list_tile(const Args a, i64 tile, i64 from, i64 to, Listed *list, int *count)
{
    const int t = threadIdx.x;
    int row[EACH], mine = 0, before = 0, all = 0, k;
    for (k = 0; k < EACH; k++) {
        const i64 at = tile + t * EACH + k;
        const i64 id = at < IDS ? (i64)BUF(const ID, 0)[at] : -1;
        row[k] = id >= from && id < to ? (int)(id - from) : -1;
        mine += row[k] >= 0;
    }
    count[t] = mine;
    __syncthreads();
    if (t % GROUP == 0) {
        int sum = 0;
        for (k = 0; k < GROUP; k++)
            sum += count[t + k];
        count[THREADS + t / GROUP] = sum;
    }
    __syncthreads();
    for (k = 0; k < THREADS / GROUP; k++) {
        before += k < t / GROUP ? count[THREADS + k] : 0;
        all += count[THREADS + k];
    }
    for (k = t / GROUP * GROUP; mine && k < t; k++)
        before += count[k];
    for (k = 0; k < EACH; k++)
        if (row[k] >= 0) {
            list[before].id = row[k];
            list[before].place = t * EACH + k;
            before++;
        }
    __syncthreads();
    return all;
}

/* Loads go ahead of the sums, AHEAD at a time. */
DEVICE void add_listed(const REAL(1) *dy, const Listed *list, int n, float *sum)
{
    int i, k;
    for (i = 0; i < n; i += AHEAD) {
        float x[AHEAD];
        for (k = 0; k < AHEAD; k++)
            x[k] = i + k < n ? VALUE(1, dy[(i64)list[i + k].place * WIDTH]) : 0.0f;
        for (k = 0; k < AHEAD; k++)
            if (i + k < n)
                sum[list[i + k].id * THREADS] = sum[list[i + k].id * THREADS] + x[k];
    }
}

DEVICE void embedding_grad(const Args a)
{
    SHARED float sums[OWN_ROWS * THREADS];
    SHARED Listed list[TILE];
    SHARED int count[THREADS + THREADS / GROUP];
    const i64 from = (i64)blockIdx.x / COLUMN_BLOCKS * OWN_ROWS;
    const i64 to = from + OWN_ROWS < ROWS ? from + OWN_ROWS : ROWS;
    const i64 column = (i64)blockIdx.x % COLUMN_BLOCKS * THREADS + threadIdx.x;
    float *sum = sums + threadIdx.x;
    i64 tile, row;
    for (row = 0; row < OWN_ROWS; row++)
        sum[row * THREADS] = SO_FAR && from + row < to && column < WIDTH
                                 ? BUF(const float, 2)[(from + row) * WIDTH + column]
                                 : 0.0f;
    for (tile = 0; tile < IDS; tile += TILE) {
        const int n = list_tile(a, tile, from, to, list, count);
        if (column < WIDTH)
            add_listed(BUF(const REAL(1), 1) + tile * WIDTH + column, list, n, sum);
        __syncthreads();
    }
    for (row = from; row < to && column < WIDTH; row++)
        BUF(float, 2 + SO_FAR)[row * WIDTH + column] = sum[(row - from) * THREADS];
}
