/* Their gradients from dy and the result y: y (dy - sum of dy y), and dy - e^y sum of dy.  The
 * gradient may lie on either. */
DEVICE void softmax_grad(const Args a)
{
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const float *dy = BUF(const float, 0) + line_start(line);
        const float *y = BUF(const float, 1) + line_start(line);
        float *out = BUF(float, 2) + line_start(line);
        float sum = 0.0f;
        for (k = FIRST; k < LENGTH; k += STEP)
            sum = sum + (IS_LOG ? dy[k * INNER] : dy[k * INNER] * y[k * INNER]);
        sum = LINE_SUM(sum);
        for (k = FIRST; k < LENGTH; k += STEP) {
            const float g = dy[k * INNER], at = y[k * INNER];
            out[k * INNER] = IS_LOG ? g - s_exp(at) * sum : at * (g - sum);
        }
    }
}
