#include "real.cuh"
/* Their gradients from dy and the result y: y (dy - sum of dy y), and dy - e^y sum of dy.  The
 * gradient may lie on either. */
DEVICE void softmax_grad(const Args a)
{
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const REAL(0) *dy = BUF(const REAL(0), 0) + line_start(line);
        const REAL(1) *y = BUF(const REAL(1), 1) + line_start(line);
        REAL(2) *out = BUF(REAL(2), 2) + line_start(line);
        float sum = 0.0f;
        for (k = FIRST; k < LENGTH; k += STEP)
            sum = sum + (IS_LOG ? VALUE(0, dy[k * INNER])
                                : VALUE(0, dy[k * INNER]) * VALUE(1, y[k * INNER]));
        sum = LINE_SUM(sum);
        for (k = FIRST; k < LENGTH; k += STEP) {
            const float g = VALUE(0, dy[k * INNER]), at = VALUE(1, y[k * INNER]);
            out[k * INNER] = OF(2, IS_LOG ? g - s_exp(at) * sum : at * (g - sum));
        }
    }
}
