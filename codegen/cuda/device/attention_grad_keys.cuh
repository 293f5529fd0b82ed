/* dk and dv, or one of them: a block has TILE keys of one head of keys and goes through the rows that
 * see them, of each head that reads these. */

/* all = the first head's, then all + those of the others. */
DEVICE void add_head(Sums all, Sums of_head, int member)
{
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            all[i][j] = member ? all[i][j] + of_head[i][j] : of_head[i][j];
}

DEVICE void attention_grad_keys(const Args a)
{
    SHARED Panels panels_memory;
    SHARED Tile tile;
    SHARED float max[TILE], scale[TILE], dot[TILE];
    Panels *panels = &panels_memory;
    const Place at = place_of_block(KEYS, PARTS(MAKES_DK ? WIDTH : VALUE_WIDTH));
    const int c0 = at.c0, s0 = at.first;
    Sums p, dp, dv_all, dk_all;
    for (int member = 0; member < GROUP; member++) {
        const i64 head = at.head * GROUP + member;
        Sums dv, dv_chain, dk, dk_chain;
        sums_zero(dv);
        sums_zero(dv_chain);
        sums_zero(dk);
        sums_zero(dk_chain);
        for (int row0 = CAUSAL ? s0 : 0; row0 < ROWS; row0 += TILE) {
            const int n = AT_MOST(ROWS - row0, TILE);
            if (MAKES_DK && threadIdx.x < n)
                dot[threadIdx.x] = BUF(const float, WORKSPACE)[head * ROWS + row0 + threadIdx.x];
            load_statistics(a, head, row0, max, scale);
            tile_probabilities(a, p, panels, head, row0, s0, max, scale);
#if MAKES_DV
            tile_dropped(a, dp, p, head, row0, s0);
            share(tile, dp, n);
            add_rows(dv, dv_chain, panels, tile, ROW_OF(DOUT_BUF, head, ROWS, row0, VALUE_WIDTH),
                     IS_BF16(DOUT_BUF), VALUE_WIDTH, c0, n, row0, ROWS, ROW_BLOCK);
#endif
#if MAKES_DK
            tile_gradients(a, dp, panels, head, row0, s0);
            score_gradients(dp, p, row0, s0, dot);
            share(tile, dp, n);
            add_rows(dk, dk_chain, panels, tile, ROW_OF(Q_BUF, head, ROWS, row0, WIDTH), IS_BF16(Q_BUF),
                     WIDTH, c0, n, row0, ROWS, ROW_BLOCK);
#endif
        }
        add_head(dv_all, dv, member);
        add_head(dk_all, dk, member);
    }
#if MAKES_DV
    WRITE_ROWS(dv_all, VALUE_WIDTH, DV_BUF, at.head, s0, KEYS)
#endif
#if MAKES_DK
    WRITE_ROWS(dk_all, WIDTH, DK_BUF, at.head, s0, KEYS)
#endif
}
