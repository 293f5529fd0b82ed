/* out[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], finished by epilogue().  A block of 16 x 16
 * threads makes TILE x TILE results, a thread 4 x 4 of them; panels of STEPS values of k lie in
 * shared memory.  Every result is the sum that codegen/forms/product.h describes: chains of K_BLOCK
 * fused multiply-adds, each from zero, added in order. */
#define TILE  64
#define STEPS 16
#define PER_THREAD 4

/* PANEL_STEP says along which of its sides a panel is read by neighbouring threads. */
#define LOAD_PANEL(panel, source, first, count, along_row, along_k, k0)                            \
    for (i64 e = threadIdx.x; e < TILE * STEPS; e += 256) {                                        \
        const int k = (along_k) == 1 ? (int)(e % STEPS) : (int)(e / TILE);                         \
        const int r = (along_k) == 1 ? (int)(e / STEPS) : (int)(e % TILE);                         \
        const int in = (first) + r < (count) && (k0) + k < K;                                      \
        panel[k][r] = in ? (source)[((first) + r) * (i64)(along_row) + ((k0) + k) * (i64)(along_k)] \
                         : 0.0f;                                                                   \
    }

DEVICE void product(const Args a)
{
    SHARED float panel_a[STEPS][TILE + 1];
    SHARED float panel_b[STEPS][TILE + 1];
    const i64 tiles_n = (N + TILE - 1) / TILE, tiles_m = (M + TILE - 1) / TILE;
    const i64 tile = (i64)blockIdx.x % (tiles_n * tiles_m), batch = (i64)blockIdx.x / (tiles_n * tiles_m);
    const i64 row0 = tile / tiles_n * TILE, column0 = tile % tiles_n * TILE;
    const float *A = BUF(const float, A_BUF) + a_batch(batch);
    const float *B = BUF(const float, B_BUF) + b_batch(batch);
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    float total[PER_THREAD][PER_THREAD], chain[PER_THREAD][PER_THREAD];
    for (int i = 0; i < PER_THREAD; i++)
        for (int j = 0; j < PER_THREAD; j++)
            total[i][j] = chain[i][j] = 0.0f;
    for (i64 k0 = 0; k0 < K; k0 += STEPS) {
        const int steps = K - k0 < STEPS ? (int)(K - k0) : STEPS;
        LOAD_PANEL(panel_a, A, row0, M, A_ROW, A_K, k0)
        LOAD_PANEL(panel_b, B, column0, N, B_N, B_K, k0)
        __syncthreads();
        for (int k = 0; k < steps; k++)
            for (int i = 0; i < PER_THREAD; i++) {
                const float x = panel_a[k][ty + 16 * i];
                for (int j = 0; j < PER_THREAD; j++)
                    chain[i][j] = fmaf(x, panel_b[k][tx + 16 * j], chain[i][j]);
            }
        __syncthreads();
        if (k0 + STEPS >= K || (k0 + STEPS) % K_BLOCK == 0)
            for (int i = 0; i < PER_THREAD; i++)
                for (int j = 0; j < PER_THREAD; j++) {
                    total[i][j] = k0 < K_BLOCK ? chain[i][j] : total[i][j] + chain[i][j];
                    chain[i][j] = 0.0f;
                }
    }
    for (int i = 0; i < PER_THREAD; i++)
        for (int j = 0; j < PER_THREAD; j++) {
            const i64 row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
            if (row < M && column < N)
                epilogue(a, batch * M + row, column, total[i][j]);
        }
}
