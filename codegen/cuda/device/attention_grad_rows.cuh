/* dq: a block has TILE rows of one head and goes through the keys twice: for the sum of probabilities
 * times their gradients, which the workspace keeps for the kernel that makes dk and dv, and for dq. */
#define DS_AT(r, k) tile[r][k]

DEVICE void attention_grad_rows(const Args a)
{
    SHARED Panels panels_memory;
    SHARED Tile tile;
    SHARED float max[TILE], scale[TILE], dot[TILE];
    Panels *panels = &panels_memory;
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    const int c0 = blockIdx.x % PARTS(WIDTH) * PART_MOST;
    const i64 block = (i64)blockIdx.x / PARTS(WIDTH);
    const i64 head = block / TILES_OF(ROWS), row0 = block % TILES_OF(ROWS) * TILE;
    const i64 end = CAUSAL ? AT_MOST(row0 + TILE, (i64)KEYS) : KEYS;
    const Heads h = heads_at(a, head);
    REAL(DQ_BUF) *dq = BUF(REAL(DQ_BUF), DQ_BUF) + head * ROWS * WIDTH;
    SUMS_OF(total, WIDTH);
    SUMS_OF(chain, WIDTH);
    Sums p, dp, part;
    i64 s0;

    load_statistics(a, head, row0, max, scale);
    sums_zero(part);
    for (s0 = 0; s0 < end; s0 += TILE) {
        tile_probabilities(a, p, panels, h, head, row0, s0, max, scale);
        tile_gradients(a, dp, panels, h, head, row0, s0);
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++)
                part[i][j] = part[i][j] + dp[i][j] * p[i][j];
    }
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            tile[OWN(ty, i)][OWN(tx, j)] = part[i][j];
    fold_rows(tile, dot);
    if (c0 == 0 && threadIdx.x < TILE && row0 + threadIdx.x < ROWS)
        BUF(float, WORKSPACE)[head * ROWS + row0 + threadIdx.x] = dot[threadIdx.x];

    SUMS_CLEAR(total, WIDTH)
    SUMS_CLEAR(chain, WIDTH)
    for (s0 = 0; s0 < end; s0 += TILE) {
        const int n = (int)AT_MOST(end - s0, (i64)TILE);
        tile_probabilities(a, p, panels, h, head, row0, s0, max, scale);
        tile_gradients(a, dp, panels, h, head, row0, s0);
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++) {
                const int r = OWN(ty, i), s = OWN(tx, j);
                tile[r][s] = score_gradient(is_open(row0 + r, s0 + s), p[i][j], dp[i][j], dot[r]);
            }
        __syncthreads();
        ADD_ROWS(total, chain, WIDTH, DS_AT, K_BUF, h.k + s0 * WIDTH, n, s0, end, KEY_BLOCK)
    }
    if (CAUSAL)
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < PER_ROW(WIDTH); j++)
                total[i][j] = total[i][j] + 0.0f;
    WRITE_ROWS(total, WIDTH, DQ_BUF, dq, row0, ROWS)
}
