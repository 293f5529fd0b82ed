#include "real.cuh"
/* rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma, for IS_RMS without mean(g); the gradient may
 * lie on dy. */
#if HAS_GAMMA
#define G(k) (VALUE(0, dy[k]) * BUF(const float, 4)[k])
#else
#define G(k) VALUE(0, dy[k])
#endif
#define XHAT(k) ((VALUE(1, x[k]) - mean) * rstd)

DEVICE void layernorm_grad(const Args a)
{
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const REAL(0) *dy = BUF(const REAL(0), 0) + line * LENGTH;
        const REAL(1) *x = BUF(const REAL(1), 1) + line * LENGTH;
        const float mean = BUF(const float, 2)[line], rstd = BUF(const float, 3)[line];
        REAL(OUT_BUF) *out = BUF(REAL(OUT_BUF), OUT_BUF) + line * LENGTH;
        float sum = 0.0f, dot = 0.0f;
        for (k = FIRST; k < LENGTH; k += STEP) {
            sum = sum + G(k);
            dot = dot + G(k) * XHAT(k);
        }
        sum = IS_RMS ? 0.0f : join_line_sum(sum) * ONE_OVER_LENGTH;
        dot = join_line_sum(dot) * ONE_OVER_LENGTH;
        for (k = FIRST; k < LENGTH; k += STEP)
            out[k] = OF(OUT_BUF, (G(k) - sum - XHAT(k) * dot) * rstd);
    }
}
