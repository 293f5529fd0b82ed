/* out[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], finished by epilogue().  Every result is the
 * sum that codegen/forms/product.h describes: chains of K_BLOCK fused multiply-adds, each from zero,
 * added in order. */

/* A panel is read along the side on which neighbouring threads find neighbours. */
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
    SHARED Panel panel_a, panel_b;
    const i64 tiles_n = (N + TILE - 1) / TILE, tiles_m = (M + TILE - 1) / TILE;
    const i64 tile = (i64)blockIdx.x % (tiles_n * tiles_m), batch = (i64)blockIdx.x / (tiles_n * tiles_m);
    const i64 row0 = tile / tiles_n * TILE, column0 = tile % tiles_n * TILE;
    const float *A = BUF(const float, A_BUF) + a_batch(batch);
    const float *B = BUF(const float, B_BUF) + b_batch(batch);
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    Sums total, chain;
    sums_zero(total);
    sums_zero(chain);
    for (i64 k0 = 0; k0 < K; k0 += STEPS) {
        const int steps = K - k0 < STEPS ? (int)(K - k0) : STEPS;
        LOAD_PANEL(panel_a, A, row0, M, A_ROW, A_K, k0)
        LOAD_PANEL(panel_b, B, column0, N, B_N, B_K, k0)
        __syncthreads();
        add_steps(chain, panel_a, panel_b, steps);
        __syncthreads();
        if (k0 + STEPS >= K || (k0 + STEPS) % K_BLOCK == 0)
            end_chain(total, chain, k0 < K_BLOCK);
    }
    for (int i = 0; i < PER_THREAD; i++)
        for (int j = 0; j < PER_THREAD; j++) {
            const i64 row = row0 + ty + 16 * i, column = column0 + tx + 16 * j;
            if (row < M && column < N)
                epilogue(a, batch * M + row, column, total[i][j]);
        }
}
