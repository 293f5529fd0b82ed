/* What both kernels of the gradient make of a tile: probabilities again, and their gradients. */
typedef struct Heads { /* of the head */
    const REAL(Q_BUF) *q;
    const REAL(K_BUF) *k;
    const REAL(V_BUF) *v;
    const REAL(DOUT_BUF) *dout;
} Heads;

DEVICE Heads heads_at(const Args a, i64 head)
{
    const Heads h = {BUF(const REAL(Q_BUF), Q_BUF) + head * ROWS * WIDTH,
                     BUF(const REAL(K_BUF), K_BUF) + head * KEYS * WIDTH,
                     BUF(const REAL(V_BUF), V_BUF) + head * KEYS * VALUE_WIDTH,
                     BUF(const REAL(DOUT_BUF), DOUT_BUF) + head * ROWS * VALUE_WIDTH};
    return h;
}

/* The largest score and 1 / the sum of exponentials of rows [row0, row0 + TILE). */
DEVICE void load_statistics(const Args a, i64 head, i64 row0, float *max, float *scale)
{
    const i64 r = row0 + threadIdx.x;
    if (threadIdx.x < TILE) {
        max[threadIdx.x] = r < ROWS ? BUF(const float, MAX_BUF)[head * ROWS + r] : 0.0f;
        scale[threadIdx.x] = r < ROWS ? 1.0f / BUF(const float, SUM_BUF)[head * ROWS + r] : 0.0f;
    }
    __syncthreads();
}

/* p: probabilities before dropout, 0 where a key is not seen. */
DEVICE void tile_probabilities(const Args a, Sums p, Panels *panels, const Heads h, i64 head, i64 row0,
                               i64 s0, const float *max, const float *scale)
{
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    rows_times_rows(p, panels, h.q + row0 * WIDTH, IS_BF16(Q_BUF), ROWS - row0, h.k + s0 * WIDTH,
                    IS_BF16(K_BUF), KEYS - s0, WIDTH);
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const int r = OWN(ty, i);
            const i64 s = s0 + OWN(tx, j);
            p[i][j] = is_open(row0 + r, s)
                          ? s_exp(finished_score(a, head, s, p[i][j]) - max[r]) * scale[r]
                          : 0.0f;
        }
}

/* dp: their gradients; 0 where a key is not seen. */
DEVICE void tile_gradients(const Args a, Sums dp, Panels *panels, const Heads h, i64 head, i64 row0, i64 s0)
{
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    rows_times_rows(dp, panels, h.dout + row0 * VALUE_WIDTH, IS_BF16(DOUT_BUF), ROWS - row0,
                    h.v + s0 * VALUE_WIDTH, IS_BF16(V_BUF), KEYS - s0, VALUE_WIDTH);
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const i64 r = row0 + OWN(ty, i), s = s0 + OWN(tx, j);
            dp[i][j] = is_open(r, s) ? dropped(a, head, r, s, dp[i][j]) : 0.0f;
        }
}

/* The gradient of a score before it was scaled. */
DEVICE float score_gradient(int open, float p, float dp, float dot)
{
    float ds = open ? p * (dp - dot) : 0.0f;
#if SCALED
    ds = ds * SCALE;
#endif
    return ds;
}
