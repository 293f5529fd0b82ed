/* Layer norm of lines by runs.  The variance is taken around the mean, and how much the mean was
 * rounded is found in the same pass (codegen/cpu/reduce/layernorm.c).  IS_RMS: around 0. */
STORE_RUN(OUT_BUF)

DEVICE void layernorm_line(const Args a, i64 line, int exists)
{
    const REAL(0) *x = BUF(const REAL(0), 0) + line * LENGTH;
    REAL(OUT_BUF) *out = BUF(REAL(OUT_BUF), OUT_BUF) + line * LENGTH;
    const PLACE first = first_run(x);
    Run_0 run[AHEAD];
    float sum[EIGHT], squares[EIGHT], mean = 0.0f, rest = 0.0f, var, rstd;
    PLACE i;
    int u, j;
    for (j = 0; j < EIGHT; j++)
        sum[j] = squares[j] = 0.0f;
    for (i = first; i < LENGTH && !IS_RMS; i += BATCH) {
        load_runs_0(x, i, 0.0f, run);
        UNROLL for (u = 0; u < AHEAD; u++)
            for (j = 0; j < EIGHT; j++)
                sum[j] = sum[j] + IN_WORDS(0, run[u].w, j);
    }
    if (!IS_RMS)
        mean = join_runs_sum(sum, first) * ONE_OVER_LENGTH;
    for (j = 0; j < EIGHT; j++)
        sum[j] = 0.0f;
    for (i = first; i < LENGTH; i += BATCH) {
        load_runs_0(x, i, 0.0f, run);
        UNROLL for (u = 0; u < AHEAD; u++)
            for (j = 0; j < EIGHT; j++) {
                const float d = IN_LINE(i + u * PARTIALS + j)
                                    ? IN_WORDS(0, run[u].w, j) - mean
                                    : 0.0f;
                squares[j] = squares[j] + d * d;
                sum[j] = sum[j] + d;
            }
    }
    if (!IS_RMS)
        rest = join_runs_sum(sum, first) * ONE_OVER_LENGTH;
    var = join_runs_sum(squares, first) * ONE_OVER_LENGTH - rest * rest;
    rstd = 1.0f / sqrtf(s_max(var, 0.0f) + EPS);
    for (i = first; i < LENGTH && exists; i += BATCH) {
        load_runs_0(x, i, 0.0f, run);
        UNROLL for (u = 0; u < AHEAD; u++) {
            const PLACE k = i + u * PARTIALS;
            float y[EIGHT], gamma[EIGHT], beta[EIGHT];
            if (HAS_GAMMA)
                load_floats(BUF(const float, 1), k, gamma);
            if (HAS_BETA)
                load_floats(BUF(const float, 2), k, beta);
            for (j = 0; j < EIGHT; j++) {
                y[j] = (IN_WORDS(0, run[u].w, j) - mean - rest) * rstd;
                y[j] = HAS_GAMMA ? y[j] * gamma[j] : y[j];
                y[j] = HAS_BETA ? y[j] + beta[j] : y[j];
            }
            store_run(out, k, y);
        }
    }
    if (WRITES_FOR_LINE && exists) {
        BUF(float, OUT_BUF + 1)[line] = mean + rest;
        BUF(float, OUT_BUF + 2)[line] = rstd;
    }
}

DEVICE void layernorm(const Args a)
{
    i64 tile;
    for (tile = FIRST_TILE; tile < LINES; tile += TILE_STEP) {
        const int exists = tile + LINE_OF_BLOCK < LINES;
        layernorm_line(a, exists ? tile + LINE_OF_BLOCK : LINES - 1, exists);
    }
}
