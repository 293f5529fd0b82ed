/* rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma; the gradient may lie on dy. */
#if HAS_GAMMA
#define G(k) (dy[k] * BUF(const float, 4)[k])
#else
#define G(k) (dy[k])
#endif
#define XHAT(k) ((x[k] - mean) * rstd)

DEVICE void layernorm_grad(const Args a)
{
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const float *dy = BUF(const float, 0) + line * LENGTH;
        const float *x = BUF(const float, 1) + line * LENGTH;
        const float mean = BUF(const float, 2)[line], rstd = BUF(const float, 3)[line];
        float *out = BUF(float, OUT_BUF) + line * LENGTH;
        float sum = 0.0f, dot = 0.0f;
        for (k = FIRST; k < LENGTH; k += STEP) {
            sum = sum + G(k);
            dot = dot + G(k) * XHAT(k);
        }
        sum = join_line_sum(sum) * ONE_OVER_LENGTH;
        dot = join_line_sum(dot) * ONE_OVER_LENGTH;
        for (k = FIRST; k < LENGTH; k += STEP)
            out[k] = (G(k) - sum - XHAT(k) * dot) * rstd;
    }
}
