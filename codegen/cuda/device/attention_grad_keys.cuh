/* dk and dv, or one of them: a block has TILE keys of one head of keys and goes through the rows that
 * see them, of each head that reads these. */
#define DROPPED_AT(s, r)  kept[r][s]
#define GRADIENT_AT(s, r) gradient[r][s]

/* all = the first head's, then all + those of the others. */
#define ADD_HEAD(all, of_head, width)                                                              \
    for (int i = 0; i < OWN_ROWS; i++)                                                             \
        for (int j = 0; j < PER_ROW(width); j++)                                                   \
            all[i][j] = member ? all[i][j] + of_head[i][j] : of_head[i][j];

DEVICE void attention_grad_keys(const Args a)
{
    SHARED Panels panels_memory;
    SHARED float max[TILE], scale[TILE];
    Panels *panels = &panels_memory;
    const Place at = PLACE_OF_BLOCK(KEYS, PARTS(MAKES_DK ? WIDTH : VALUE_WIDTH));
    const int ty = TY, tx = TX, c0 = at.c0;
    const i64 s0 = at.first;
    Sums p;
#if MAKES_DV
    SHARED Tile kept;
    SUMS_OF(dv_all, VALUE_WIDTH);
#endif
#if MAKES_DK
    SHARED Tile gradient;
    SHARED float dot[TILE];
    SUMS_OF(dk_all, WIDTH);
    Sums dp;
#endif
    for (int member = 0; member < GROUP; member++) {
        const i64 head = at.head * GROUP + member;
#if MAKES_DV
        SUMS_OF(dv, VALUE_WIDTH);
        SUMS_OF(dv_chain, VALUE_WIDTH);
#endif
#if MAKES_DK
        SUMS_OF(dk, WIDTH);
        SUMS_OF(dk_chain, WIDTH);
#endif
        for (i64 row0 = CAUSAL ? s0 : 0; row0 < ROWS; row0 += TILE) {
            const int n = (int)AT_MOST(ROWS - row0, (i64)TILE);
#if MAKES_DK
            if (threadIdx.x < n)
                dot[threadIdx.x] = BUF(const float, WORKSPACE)[head * ROWS + row0 + threadIdx.x];
#endif
            load_statistics(a, head, row0, max, scale);
            tile_probabilities(a, p, panels, head, row0, s0, max, scale);
#if MAKES_DV
            share_dropped(a, kept, p, head, row0, s0);
#endif
#if MAKES_DK
            tile_gradients(a, dp, panels, head, row0, s0);
            share_gradients(gradient, p, dp, row0, s0, dot);
#endif
            __syncthreads();
#if MAKES_DV
            ADD_ROWS(dv, dv_chain, VALUE_WIDTH, DROPPED_AT, DOUT_BUF,
                     ROW_OF(DOUT_BUF, head, ROWS, row0, VALUE_WIDTH), n, row0, ROWS, ROW_BLOCK)
#endif
#if MAKES_DK
            ADD_ROWS(dk, dk_chain, WIDTH, GRADIENT_AT, Q_BUF, ROW_OF(Q_BUF, head, ROWS, row0, WIDTH), n,
                     row0, ROWS, ROW_BLOCK)
#endif
        }
#if MAKES_DV
        ADD_HEAD(dv_all, dv, VALUE_WIDTH)
#endif
#if MAKES_DK
        ADD_HEAD(dk_all, dk, WIDTH)
#endif
    }
#if MAKES_DV
    WRITE_ROWS(dv_all, VALUE_WIDTH, DV_BUF, at.head, s0, KEYS)
#endif
#if MAKES_DK
    WRITE_ROWS(dk_all, WIDTH, DK_BUF, at.head, s0, KEYS)
#endif
}
