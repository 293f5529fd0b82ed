/* A block has TILE rows of one head and goes through the keys three times: for the largest score, for
 * the sum of exponentials, for the result. */
#define P_AT(r, k) tile[r][k]

DEVICE void find_maxima(const Args a, Panels *panels, Tile tile, const Place at, float *max)
{
    const int ty = TY, tx = TX, r = threadIdx.x;
    Sums x, most;
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            most[i][j] = -INFINITE;
    for (i64 s0 = 0; s0 < keys_seen(at.first); s0 += TILE) {
        tile_scores(a, x, panels, at.head, at.first, s0);
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++)
                if (is_open(at.first + OWN_ROW(i), s0 + OWN_COLUMN(j)))
                    most[i][j] =
                        s_max_keep(finished_score(a, at.head, s0 + OWN_COLUMN(j), x[i][j]), most[i][j]);
    }
    share(tile, most);
    __syncthreads();
    if (r < TILE) {
        max[r] = tile[r][0];
        for (int i = 1; i < TILE; i++)
            max[r] = s_max_keep(tile[r][i], max[r]);
    }
    __syncthreads();
}

DEVICE void add_exponentials(const Args a, Panels *panels, Tile tile, const Place at, const float *max,
                             float *sum)
{
    const int ty = TY, tx = TX;
    Sums x, part;
    sums_zero(part);
    for (i64 s0 = 0; s0 < keys_seen(at.first); s0 += TILE) {
        tile_scores(a, x, panels, at.head, at.first, s0);
        for (int i = 0; i < OWN_ROWS; i++)
            for (int j = 0; j < OWN_COLUMNS; j++)
                if (is_open(at.first + OWN_ROW(i), s0 + OWN_COLUMN(j)))
                    part[i][j] =
                        part[i][j] + s_exp(finished_score(a, at.head, s0 + OWN_COLUMN(j), x[i][j]) -
                                           max[OWN_ROW(i)]);
    }
    share(tile, part);
    fold_rows(tile, sum);
}

DEVICE void attention_forward(const Args a)
{
    SHARED Panels panels_memory;
    SHARED Tile tile;
    SHARED float max[TILE], sum[TILE];
    Panels *panels = &panels_memory;
    const Place at = PLACE_OF_BLOCK(ROWS, PARTS(VALUE_WIDTH));
    const int ty = TY, tx = TX, c0 = at.c0;
    const i64 end = keys_seen(at.first);
    Sums p;

    find_maxima(a, panels, tile, at, max);
    add_exponentials(a, panels, tile, at, max, sum);
    store_numbers(BUF(float, MAX_BUF), at, max);
    store_numbers(BUF(float, SUM_BUF), at, sum);
    if (threadIdx.x < TILE)
        sum[threadIdx.x] = 1.0f / sum[threadIdx.x];
    __syncthreads();
    SUMS_OF(total, VALUE_WIDTH);
    SUMS_OF(chain, VALUE_WIDTH);
    for (i64 s0 = 0; s0 < end; s0 += TILE) {
        const int n = (int)AT_MOST(end - s0, (i64)TILE);
        tile_probabilities(a, p, panels, at.head, at.first, s0, max, sum);
        share_dropped(a, tile, p, at.head, at.first, s0);
        __syncthreads();
        ADD_ROWS(total, chain, VALUE_WIDTH, P_AT, V_BUF, ROW_OF(V_BUF, at.head / GROUP, KEYS, s0, VALUE_WIDTH), n,
                 s0, end, KEY_BLOCK)
    }
    END_ROWS(total, VALUE_WIDTH)
    WRITE_ROWS(total, VALUE_WIDTH, OUT_BUF, at.head, at.first, ROWS)
}
