/* rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma, for IS_RMS without mean(g), of lines by runs;
 * the gradient may lie on dy. */
RUN_OF(1)
LOAD_RUNS(1)
STORE_RUN(OUT_BUF)

/* g of a run of dy that begins at k. */
DEVICE void load_g(const Args a, PLACE k, const Run_0 *dy, float *g)
{
    float gamma[EIGHT];
    int j;
    if (HAS_GAMMA)
        load_floats(BUF(const float, 4), k, gamma);
    for (j = 0; j < EIGHT; j++)
        g[j] = HAS_GAMMA ? IN_WORDS(0, dy->w, j) * gamma[j] : IN_WORDS(0, dy->w, j);
    (void)a;
    (void)k;
}

DEVICE void layernorm_grad_line(const Args a, i64 line, int exists)
{
    const REAL(0) *dy = BUF(const REAL(0), 0) + line * LENGTH;
    const REAL(1) *x = BUF(const REAL(1), 1) + line * LENGTH;
    REAL(OUT_BUF) *out = BUF(REAL(OUT_BUF), OUT_BUF) + line * LENGTH;
    const float mean = BUF(const float, 2)[line], rstd = BUF(const float, 3)[line];
    const PLACE first = first_run(dy);
    Run_0 dys[AHEAD];
    Run_1 xs[AHEAD];
    float sum[EIGHT], dot[EIGHT], mean_g, mean_dot;
    PLACE i;
    int u, j;
    for (j = 0; j < EIGHT; j++)
        sum[j] = dot[j] = 0.0f;
    for (i = first; i < LENGTH; i += BATCH) {
        load_runs_0(dy, i, 0.0f, dys);
        load_runs_1(x, i, 0.0f, xs);
        UNROLL for (u = 0; u < AHEAD; u++) {
            float g[EIGHT];
            load_g(a, i + u * PARTIALS, &dys[u], g);
            for (j = 0; j < EIGHT; j++) {
                const float xhat = (IN_WORDS(1, xs[u].w, j) - mean) * rstd;
                sum[j] = sum[j] + g[j];
                if (IN_LINE(i + u * PARTIALS + j))
                    dot[j] = dot[j] + g[j] * xhat;
            }
        }
    }
    mean_g = IS_RMS ? 0.0f : join_runs_sum(sum, first) * ONE_OVER_LENGTH;
    mean_dot = join_runs_sum(dot, first) * ONE_OVER_LENGTH;
    for (i = first; i < LENGTH && exists; i += BATCH) {
        load_runs_0(dy, i, 0.0f, dys);
        load_runs_1(x, i, 0.0f, xs);
        UNROLL for (u = 0; u < AHEAD; u++) {
            const PLACE k = i + u * PARTIALS;
            float g[EIGHT];
            load_g(a, k, &dys[u], g);
            for (j = 0; j < EIGHT; j++) {
                const float xhat = (IN_WORDS(1, xs[u].w, j) - mean) * rstd;
                g[j] = (g[j] - mean_g - xhat * mean_dot) * rstd;
            }
            store_run(out, k, g);
        }
    }
}

DEVICE void layernorm_grad(const Args a)
{
    i64 tile;
    for (tile = FIRST_TILE; tile < LINES; tile += TILE_STEP) {
        const int exists = tile + LINE_OF_BLOCK < LINES;
        layernorm_grad_line(a, exists ? tile + LINE_OF_BLOCK : LINES - 1, exists);
    }
}
