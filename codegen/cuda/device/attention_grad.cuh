/* What both kernels of the gradient make of a tile of probabilities. */

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

/* dp: gradients of probabilities; 0 where a key is not seen. */
DEVICE void tile_gradients(const Args a, Sums dp, Panels *panels, i64 head, i64 row0, i64 s0)
{
    const int ty = TY, tx = TX;
    rows_times_rows(dp, panels, ROW_OF(DOUT_BUF, head, ROWS, row0, VALUE_WIDTH), IS_BF16(DOUT_BUF),
                    ROWS - row0, ROW_OF(V_BUF, head / GROUP, KEYS, s0, VALUE_WIDTH), IS_BF16(V_BUF), KEYS - s0,
                    VALUE_WIDTH);
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const i64 r = row0 + OWN_ROW(i), s = s0 + OWN_COLUMN(j);
            dp[i][j] = is_open(r, s) ? dropped(a, head, r, s, dp[i][j]) : 0.0f;
        }
}

/* t = gradients of scores before these were scaled; dot: of rows, the sum of probabilities times their
 * gradients.  Nothing is read conditionally: branches would cost registers. */
DEVICE void share_gradients(Tile t, Sums p, Sums dp, i64 row0, i64 s0, const float *dot)
{
    const int ty = TY, tx = TX;
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const int r = OWN_ROW(i), s = OWN_COLUMN(j);
            const float ds = p[i][j] * (dp[i][j] - dot[r]);
            t[r][s] = (is_open(row0 + r, s0 + s) ? ds : 0.0f) * SCALE;
        }
}
