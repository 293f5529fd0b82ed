/* What both kernels of the gradient make of a tile of probabilities. */

/* The largest score and 1 / the sum of exponentials of rows [row0, row0 + TILE). */
DEVICE void load_statistics(const Args a, i64 head, int row0, float *max, float *scale)
{
    const int r = row0 + (int)threadIdx.x;
    if (threadIdx.x < TILE) {
        max[threadIdx.x] = r < ROWS ? BUF(const float, MAX_BUF)[head * ROWS + r] : 0.0f;
        scale[threadIdx.x] = r < ROWS ? 1.0f / BUF(const float, SUM_BUF)[head * ROWS + r] : 0.0f;
    }
    __syncthreads();
}

/* dp: gradients of probabilities; 0 where a key is not seen. */
DEVICE void tile_gradients(const Args a, Sums dp, Panels *panels, i64 head, int row0, int s0)
{
    ROWS_TIMES_KEYS(dp, DOUT_BUF, V_BUF, VALUE_WIDTH)
    EACH_SCORE {
        SCORE_PLACE
        dp[i][j] = open ? dropped(a, head, row0 + r, s, dp[i][j]) : 0.0f;
    }
}

/* dp = gradients of scores before these were scaled; dot: of rows, the sum of probabilities times their
 * gradients.  Nothing is read conditionally: branches would cost registers. */
DEVICE void score_gradients(Sums dp, Sums p, int row0, int s0, const float *dot)
{
    EACH_SCORE {
        SCORE_PLACE
        const float ds = p[i][j] * (dp[i][j] - dot[r]);
        dp[i][j] = (open ? ds : 0.0f) * SCALE;
    }
}
