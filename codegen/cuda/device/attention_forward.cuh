/* A block has TILE rows of one head and goes through the keys three times: for the largest score, for
 * the sum of exponentials, for the result. */
#define P_AT(r, k) tile[r][k]

DEVICE void attention(const Args a)
{
    SHARED Panels panels_memory;
    SHARED Tile tile;
    SHARED float max[TILE], sum[TILE];
    Panels *panels = &panels_memory;
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    const int c0 = blockIdx.x % PARTS(VALUE_WIDTH) * PART_MOST;
    const i64 block = (i64)blockIdx.x / PARTS(VALUE_WIDTH);
    const i64 head = block / TILES_OF(ROWS), row0 = block % TILES_OF(ROWS) * TILE;
    const i64 end = CAUSAL ? AT_MOST(row0 + TILE, (i64)KEYS) : KEYS;
    const REAL(Q_BUF) *q = BUF(const REAL(Q_BUF), Q_BUF) + (head * ROWS + row0) * WIDTH;
    const REAL(K_BUF) *k = BUF(const REAL(K_BUF), K_BUF) + head * KEYS * WIDTH;
    const REAL(V_BUF) *v = BUF(const REAL(V_BUF), V_BUF) + head * KEYS * VALUE_WIDTH;
    REAL(OUT_BUF) *out = BUF(REAL(OUT_BUF), OUT_BUF) + head * ROWS * VALUE_WIDTH;
    SUMS_OF(total, VALUE_WIDTH);
    SUMS_OF(chain, VALUE_WIDTH);
    Sums x, part;
    i64 s0;

    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            part[i][j] = -INFINITE;
    for (s0 = 0; s0 < end; s0 += TILE) {
        rows_times_rows(x, panels, q, IS_BF16(Q_BUF), ROWS - row0, k + s0 * WIDTH, IS_BF16(K_BUF), end - s0,
                        WIDTH);
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++)
                if (is_open(row0 + OWN(ty, i), s0 + OWN(tx, j)))
                    part[i][j] = s_max_keep(finished_score(a, head, s0 + OWN(tx, j), x[i][j]), part[i][j]);
    }
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            tile[OWN(ty, i)][OWN(tx, j)] = part[i][j];
    __syncthreads();
    if (threadIdx.x < TILE) {
        float most = tile[threadIdx.x][0];
        for (int i = 1; i < TILE; i++)
            most = s_max_keep(tile[threadIdx.x][i], most);
        max[threadIdx.x] = most;
    }
    __syncthreads();

    sums_zero(part);
    for (s0 = 0; s0 < end; s0 += TILE) {
        rows_times_rows(x, panels, q, IS_BF16(Q_BUF), ROWS - row0, k + s0 * WIDTH, IS_BF16(K_BUF), end - s0,
                        WIDTH);
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++)
                if (is_open(row0 + OWN(ty, i), s0 + OWN(tx, j)))
                    part[i][j] = part[i][j] + s_exp(finished_score(a, head, s0 + OWN(tx, j), x[i][j]) -
                                                    max[OWN(ty, i)]);
    }
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            tile[OWN(ty, i)][OWN(tx, j)] = part[i][j];
    fold_rows(tile, sum);
    if (c0 == 0 && threadIdx.x < TILE && row0 + threadIdx.x < ROWS) {
        BUF(float, MAX_BUF)[head * ROWS + row0 + threadIdx.x] = max[threadIdx.x];
        BUF(float, SUM_BUF)[head * ROWS + row0 + threadIdx.x] = sum[threadIdx.x];
    }
    __syncthreads();
    if (threadIdx.x < TILE)
        sum[threadIdx.x] = 1.0f / sum[threadIdx.x];
    __syncthreads();

    SUMS_CLEAR(total, VALUE_WIDTH)
    SUMS_CLEAR(chain, VALUE_WIDTH)
    for (s0 = 0; s0 < end; s0 += TILE) {
        const int n = (int)AT_MOST(end - s0, (i64)TILE);
        rows_times_rows(x, panels, q, IS_BF16(Q_BUF), ROWS - row0, k + s0 * WIDTH, IS_BF16(K_BUF), n,
                        WIDTH);
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++) {
                const int r = OWN(ty, i), s = OWN(tx, j);
                float p = 0.0f;
                if (is_open(row0 + r, s0 + s)) {
                    p = s_exp(finished_score(a, head, s0 + s, x[i][j]) - max[r]) * sum[r];
                    p = dropped(a, head, row0 + r, s0 + s, p);
                }
                tile[r][s] = p;
            }
        __syncthreads();
        ADD_ROWS(total, chain, VALUE_WIDTH, P_AT, V_BUF, v + s0 * VALUE_WIDTH, n, s0, end, KEY_BLOCK)
    }
    if (CAUSAL)
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < PER_ROW(VALUE_WIDTH); j++)
                total[i][j] = total[i][j] + 0.0f;
    WRITE_ROWS(total, VALUE_WIDTH, OUT_BUF, out, row0, ROWS)
}
