/* A block has TILE rows of one head and goes through the keys three times: for the largest score, for
 * the sum of exponentials, for the result. */

DEVICE void find_maxima(const Args a, Panels *panels, Tile tile, const Place at, float *max)
{
    const int row0 = at.first, c = threadIdx.x;
    Sums x, most;
    EACH_SCORE
        most[i][j] = -INFINITE;
    for (int s0 = 0; s0 < keys_seen(row0); s0 += TILE) {
        tile_scores(a, x, panels, at.head, row0, s0);
        EACH_SCORE {
            SCORE_PLACE
            if (open)
                most[i][j] = s_max_keep(finished_score(a, at.head, s, x[i][j]), most[i][j]);
        }
    }
    share(tile, most, TILE);
    __syncthreads();
    if (c < TILE) {
        max[c] = tile[0][c];
        for (int i = 1; i < TILE; i++)
            max[c] = s_max_keep(tile[i][c], max[c]);
    }
    __syncthreads();
}

DEVICE void add_exponentials(const Args a, Panels *panels, Tile tile, const Place at, const float *max,
                             float *sum)
{
    const int row0 = at.first;
    Sums x, part;
    sums_zero(part);
    for (int s0 = 0; s0 < keys_seen(row0); s0 += TILE) {
        tile_scores(a, x, panels, at.head, row0, s0);
        EACH_SCORE {
            SCORE_PLACE
            if (open)
                part[i][j] = part[i][j] + s_exp(finished_score(a, at.head, s, x[i][j]) - max[r]);
        }
    }
    share(tile, part, TILE);
    fold_columns(tile, sum);
}

DEVICE void attention_forward(const Args a)
{
    SHARED Panels panels_memory;
    SHARED Tile tile;
    SHARED Totals total;
    SHARED float max[TILE], sum[TILE];
    Panels *panels = &panels_memory;
    const Place at = place_of_block(ROWS, PARTS(VALUE_WIDTH));
    const int row0 = at.first, c0 = at.c0, end = keys_seen(row0);
    Sums p, chain;

    find_maxima(a, panels, tile, at, max);
    add_exponentials(a, panels, tile, at, max, sum);
    store_numbers(BUF(float, MAX_BUF), at, max);
    store_numbers(BUF(float, SUM_BUF), at, sum);
    if (threadIdx.x < TILE)
        sum[threadIdx.x] = 1.0f / sum[threadIdx.x];
    __syncthreads();
    sums_zero(chain);
    for (int s0 = 0; s0 < end; s0 += TILE) {
        tile_probabilities(a, p, panels, at.head, row0, s0, max, sum);
        tile_dropped(a, p, p, at.head, row0, s0);
        share(tile, p, KEYS - s0);
        add_rows(total, chain, panels, tile, ROW_OF(V_BUF, at.head / GROUP, KEYS, s0, VALUE_WIDTH),
                 IS_BF16(V_BUF), VALUE_WIDTH, c0, AT_MOST(end - s0, TILE), s0, end, KEY_BLOCK);
    }
    WRITE_ROWS(total, VALUE_WIDTH, OUT_BUF, at.head, row0, ROWS)
}
