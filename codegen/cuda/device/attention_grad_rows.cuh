/* dq: a block has TILE rows of one head and goes through the keys twice: for the sum of probabilities
 * times their gradients, which the workspace keeps for the kernel that makes dk and dv, and for dq. */
#define DS_AT(r, k) tile[r][k]

DEVICE void attention_grad_rows(const Args a)
{
    SHARED Panels panels_memory;
    SHARED Tile tile;
    SHARED float max[TILE], scale[TILE], dot[TILE];
    Panels *panels = &panels_memory;
    const Place at = PLACE_OF_BLOCK(ROWS, PARTS(WIDTH));
    const int ty = TY, tx = TX, c0 = at.c0;
    const i64 end = keys_seen(at.first);
    Sums p, dp, part;

    load_statistics(a, at.head, at.first, max, scale);
    sums_zero(part);
    for (i64 s0 = 0; s0 < end; s0 += TILE) {
        tile_probabilities(a, p, panels, at.head, at.first, s0, max, scale);
        tile_gradients(a, dp, panels, at.head, at.first, s0);
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++)
                part[i][j] = part[i][j] + dp[i][j] * p[i][j];
    }
    share(tile, part);
    fold_rows(tile, dot);
    store_numbers(BUF(float, WORKSPACE), at, dot);
    SUMS_OF(total, WIDTH);
    SUMS_OF(chain, WIDTH);
    for (i64 s0 = 0; s0 < end; s0 += TILE) {
        const int n = (int)AT_MOST(end - s0, (i64)TILE);
        tile_probabilities(a, p, panels, at.head, at.first, s0, max, scale);
        tile_gradients(a, dp, panels, at.head, at.first, s0);
        share_gradients(tile, p, dp, at.first, s0, dot);
        __syncthreads();
        ADD_ROWS(total, chain, WIDTH, DS_AT, K_BUF, ROW_OF(K_BUF, at.head / GROUP, KEYS, s0, WIDTH), n, s0, end,
                 KEY_BLOCK)
    }
    END_ROWS(total, WIDTH)
    WRITE_ROWS(total, WIDTH, DQ_BUF, at.head, at.first, ROWS)
}
