#include "real.cuh"
/* Layer norm of rows; a block a row.  The variance is taken around the mean, and how much the mean
 * was rounded is found in the same pass (codegen/cpu/reduce/layernorm.c).  IS_RMS: around 0. */
DEVICE void layernorm(const Args a)
{
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const REAL(0) *x = BUF(const REAL(0), 0) + line * LENGTH;
        REAL(OUT_BUF) *out = BUF(REAL(OUT_BUF), OUT_BUF) + line * LENGTH;
        float sum = 0.0f, squares = 0.0f, mean = 0.0f, rest = 0.0f, var, rstd;
        if (!IS_RMS) {
            for (k = FIRST; k < LENGTH; k += STEP)
                sum = sum + VALUE(0, x[k]);
            mean = join_line_sum(sum) * ONE_OVER_LENGTH;
            sum = 0.0f;
        }
        for (k = FIRST; k < LENGTH; k += STEP) {
            const float d = VALUE(0, x[k]) - mean;
            squares = squares + d * d;
            sum = sum + d;
        }
        if (!IS_RMS)
            rest = join_line_sum(sum) * ONE_OVER_LENGTH;
        var = join_line_sum(squares) * ONE_OVER_LENGTH - rest * rest;
        rstd = 1.0f / sqrtf(s_max(var, 0.0f) + EPS);
        for (k = FIRST; k < LENGTH; k += STEP) {
            float y = (VALUE(0, x[k]) - mean - rest) * rstd;
#if HAS_GAMMA
            y = y * BUF(const float, 1)[k];
#endif
#if HAS_BETA
            y = y + BUF(const float, 2)[k];
#endif
            out[k] = OF(OUT_BUF, y);
        }
        if (WRITES_FOR_LINE) {
            BUF(float, OUT_BUF + 1)[line] = mean + rest;
            BUF(float, OUT_BUF + 2)[line] = rstd;
        }
    }
}
