/* dk and dv, or one of them: a block has TILE keys of one head and goes through the rows that see
 * them. */
#define MADE_PARTS PARTS(MAKES_DK ? WIDTH : VALUE_WIDTH)
#define DROPPED_AT(s, r) kept[r][s]
#define GRADIENT_AT(s, r) gradient[r][s]

DEVICE void attention_grad_keys(const Args a)
{
    SHARED Panels panels_memory;
#if MAKES_DV
    SHARED Tile kept;
    SUMS_OF(dv, VALUE_WIDTH);
    SUMS_OF(dv_chain, VALUE_WIDTH);
#endif
#if MAKES_DK
    SHARED Tile gradient;
    SUMS_OF(dk, WIDTH);
    SUMS_OF(dk_chain, WIDTH);
    Sums dp;
#endif
    SHARED float max[TILE], scale[TILE];
    Panels *panels = &panels_memory;
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    const int c0 = blockIdx.x % MADE_PARTS * PART_MOST;
    const i64 block = (i64)blockIdx.x / MADE_PARTS;
    const i64 head = block / TILES_OF(KEYS), s0 = block % TILES_OF(KEYS) * TILE;
    const Heads h = heads_at(a, head);
    Sums p;
    i64 row0;
#if MAKES_DV
    SUMS_CLEAR(dv, VALUE_WIDTH)
    SUMS_CLEAR(dv_chain, VALUE_WIDTH)
#endif
#if MAKES_DK
    SUMS_CLEAR(dk, WIDTH)
    SUMS_CLEAR(dk_chain, WIDTH)
#endif
    for (row0 = CAUSAL ? s0 : 0; row0 < ROWS; row0 += TILE) {
        const int n = (int)AT_MOST(ROWS - row0, (i64)TILE);
        load_statistics(a, head, row0, max, scale);
        tile_probabilities(a, p, panels, h, head, row0, s0, max, scale);
#if MAKES_DK
        tile_gradients(a, dp, panels, h, head, row0, s0);
#endif
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++) {
                const int r = OWN(ty, i), s = OWN(tx, j), open = is_open(row0 + r, s0 + s);
#if MAKES_DV
                kept[r][s] = open ? dropped(a, head, row0 + r, s0 + s, p[i][j]) : 0.0f;
#endif
#if MAKES_DK
                gradient[r][s] =
                    score_gradient(open, p[i][j], dp[i][j],
                                   open ? BUF(const float, WORKSPACE)[head * ROWS + row0 + r] : 0.0f);
#endif
                (void)open;
            }
        __syncthreads();
#if MAKES_DV
        ADD_ROWS(dv, dv_chain, VALUE_WIDTH, DROPPED_AT, DOUT_BUF, h.dout + row0 * VALUE_WIDTH, n, row0, ROWS,
                 ROW_BLOCK)
#endif
#if MAKES_DK
        ADD_ROWS(dk, dk_chain, WIDTH, GRADIENT_AT, Q_BUF, h.q + row0 * WIDTH, n, row0, ROWS, ROW_BLOCK)
#endif
    }
#if MAKES_DV
    WRITE_ROWS(dv, VALUE_WIDTH, DV_BUF, BUF(REAL(DV_BUF), DV_BUF) + head * KEYS * VALUE_WIDTH, s0, KEYS)
#endif
#if MAKES_DK
    WRITE_ROWS(dk, WIDTH, DK_BUF, BUF(REAL(DK_BUF), DK_BUF) + head * KEYS * WIDTH, s0, KEYS)
#endif
}
