/* dq: a block has TILE rows of one head and goes through the keys twice: for the sum of probabilities
 * times their gradients, which the workspace keeps for the kernel that makes dk and dv, and for dq. */

DEVICE void attention_grad_rows(const Args a)
{
    SHARED Panels panels_memory;
    SHARED Tile tile;
    SHARED Totals total;
    SHARED float max[TILE], scale[TILE], dot[TILE];
    Panels *panels = &panels_memory;
    const Place at = place_of_block(ROWS, PARTS(WIDTH));
    const int row0 = at.first, c0 = at.c0, end = keys_seen(row0);
    Sums p, dp, part, chain;

    load_statistics(a, at.head, row0, max, scale);
    sums_zero(part);
    for (int s0 = 0; s0 < end; s0 += TILE) {
        tile_probabilities(a, p, panels, at.head, row0, s0, max, scale);
        tile_gradients(a, dp, panels, at.head, row0, s0);
        EACH_SCORE
            part[i][j] = part[i][j] + dp[i][j] * p[i][j];
    }
    share(tile, part, TILE);
    fold_columns(tile, dot);
    store_numbers(BUF(float, WORKSPACE), at, dot);
    sums_zero(chain);
    for (int s0 = 0; s0 < end; s0 += TILE) {
        tile_probabilities(a, p, panels, at.head, row0, s0, max, scale);
        tile_gradients(a, dp, panels, at.head, row0, s0);
        score_gradients(dp, p, row0, s0, dot);
        share(tile, dp, KEYS - s0);
        add_rows(total, chain, panels, tile, ROW_OF(K_BUF, at.head / GROUP, KEYS, s0, WIDTH),
                 IS_BF16(K_BUF), WIDTH, c0, AT_MOST(end - s0, TILE), s0, end, KEY_BLOCK);
    }
    WRITE_ROWS(total, WIDTH, DQ_BUF, at.head, row0, ROWS)
}
