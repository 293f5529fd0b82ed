#include "real.cuh"
/* out[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], finished by epilogue().  Every result is the
 * sum that codegen/forms/product.h describes: chains of K_BLOCK fused multiply-adds, each from zero,
 * added in order.  While a panel is multiplied, the next one is on its way from memory. */

/* Where element i of those that this thread brings lies in a panel of so many rows: along the side on
 * which neighbouring threads find neighbours in memory. */
#define ELEMENT(i)                  ((int)threadIdx.x + 256 * (i))
#define PANEL_K(i, along_k, rows)   ((along_k) == 1 ? ELEMENT(i) % STEPS : ELEMENT(i) / (rows))
#define PANEL_ROW(i, along_k, rows) ((along_k) == 1 ? ELEMENT(i) / STEPS : ELEMENT(i) % (rows))

DEVICE void load_a(float *mine, const REAL(A_BUF) *source, i64 first, i64 k0)
{
    for (int i = 0; i < LOADS_A; i++) {
        const i64 row = first + PANEL_ROW(i, A_K, TILE_ROWS), k = k0 + PANEL_K(i, A_K, TILE_ROWS);
        mine[i] = row < M && k < K ? VALUE(A_BUF, source[row * A_ROW + k * A_K]) : 0.0f;
    }
}

DEVICE void load_b(float *mine, const REAL(B_BUF) *source, i64 first, i64 k0)
{
    for (int i = 0; i < LOADS_B; i++) {
        const i64 column = first + PANEL_ROW(i, B_K, TILE_COLUMNS);
        const i64 k = k0 + PANEL_K(i, B_K, TILE_COLUMNS);
        mine[i] = column < N && k < K ? VALUE(B_BUF, source[column * B_N + k * B_K]) : 0.0f;
    }
}

DEVICE void store_panels(PanelA panel_a, PanelB panel_b, const float *a, const float *b)
{
    for (int i = 0; i < LOADS_A; i++)
        panel_a[PANEL_K(i, A_K, TILE_ROWS)][PANEL_ROW(i, A_K, TILE_ROWS)] = a[i];
    for (int i = 0; i < LOADS_B; i++)
        panel_b[PANEL_K(i, B_K, TILE_COLUMNS)][PANEL_ROW(i, B_K, TILE_COLUMNS)] = b[i];
}

#if K > K_BLOCK
/* The sum of all chains so far has no room in registers; it is touched once a chain. */
typedef float Totals[OWN_ROWS * OWN_COLUMNS][256];

DEVICE void add_chain(Totals total, Sums chain, int is_first)
{
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            float *at = &total[i * OWN_COLUMNS + j][threadIdx.x];
            *at = is_first ? chain[i][j] : *at + chain[i][j];
        }
    sums_zero(chain);
}
#define RESULT(i, j) total[(i) * OWN_COLUMNS + (j)][threadIdx.x]
#else
#define RESULT(i, j) chain[i][j]
#endif

DEVICE void product(const Args a)
{
#if K > K_BLOCK
    SHARED Totals total;
#endif
    SHARED PanelA panel_a[2];
    SHARED PanelB panel_b[2];
    const i64 tiles_m = (M + TILE_ROWS - 1) / TILE_ROWS, tiles_n = (N + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const i64 tile = (i64)blockIdx.x % (tiles_n * tiles_m), batch = (i64)blockIdx.x / (tiles_n * tiles_m);
    const i64 row0 = tile / tiles_n * TILE_ROWS, column0 = tile % tiles_n * TILE_COLUMNS;
    const REAL(A_BUF) *A = BUF(const REAL(A_BUF), A_BUF) + a_batch(batch);
    const REAL(B_BUF) *B = BUF(const REAL(B_BUF), B_BUF) + b_batch(batch);
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    float next_a[LOADS_A], next_b[LOADS_B];
    Sums chain;
    sums_zero(chain);
    load_a(next_a, A, row0, 0);
    load_b(next_b, B, column0, 0);
    for (i64 k0 = 0; k0 < K; k0 += STEPS) {
        const int steps = K - k0 < STEPS ? (int)(K - k0) : STEPS, turn = (int)(k0 / STEPS % 2);
        store_panels(panel_a[turn], panel_b[turn], next_a, next_b);
        __syncthreads();
        if (k0 + STEPS < K) {
            load_a(next_a, A, row0, k0 + STEPS);
            load_b(next_b, B, column0, k0 + STEPS);
        }
        add_steps(chain, panel_a[turn], panel_b[turn], steps);
#if K > K_BLOCK
        if (k0 + STEPS >= K || (k0 + STEPS) % K_BLOCK == 0)
            add_chain(total, chain, k0 < K_BLOCK);
#endif
    }
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const i64 row = row0 + OWN(ty, i), column = column0 + OWN(tx, j);
            if (row < M && column < N)
                epilogue(a, batch * M + row, column, RESULT(i, j));
        }
}
