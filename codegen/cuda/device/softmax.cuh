#include "real.cuh"
/* Softmax and log-softmax.  The result may lie on the input: a thread writes what it alone reads. */
DEVICE void softmax(const Args a)
{
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const REAL(0) *x = BUF(const REAL(0), 0) + line_start(line);
        REAL(1) *out = BUF(REAL(1), 1) + line_start(line);
        float max = -INFINITE, sum = 0.0f;
        for (k = FIRST; k < LENGTH; k += STEP)
            max = s_max_keep(VALUE(0, x[k * INNER]), max);
        max = LINE_MAX(max);
        for (k = FIRST; k < LENGTH; k += STEP)
            sum = sum + s_exp(VALUE(0, x[k * INNER]) - max);
        sum = LINE_SUM(sum);
#if IS_LOG
        sum = s_log(sum);
        for (k = FIRST; k < LENGTH; k += STEP)
            out[k * INNER] = OF(1, VALUE(0, x[k * INNER]) - max - sum);
#else
        sum = 1.0f / sum;
        for (k = FIRST; k < LENGTH; k += STEP)
            out[k * INNER] = OF(1, s_exp(VALUE(0, x[k * INNER]) - max) * sum);
#endif
    }
}
