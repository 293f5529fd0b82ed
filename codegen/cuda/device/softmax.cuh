/* Softmax and log-softmax.  The result may lie on the input: a thread writes what it alone reads. */
DEVICE void softmax(const Args a)
{
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const float *x = BUF(const float, 0) + line_start(line);
        float *out = BUF(float, 1) + line_start(line);
        float max = -INFINITE, sum = 0.0f;
        for (k = FIRST; k < LENGTH; k += STEP)
            max = s_max_keep(x[k * INNER], max);
        max = LINE_MAX(max);
        for (k = FIRST; k < LENGTH; k += STEP)
            sum = sum + s_exp(x[k * INNER] - max);
        sum = LINE_SUM(sum);
#if IS_LOG
        sum = s_log(sum);
        for (k = FIRST; k < LENGTH; k += STEP)
            out[k * INNER] = x[k * INNER] - max - sum;
#else
        sum = 1.0f / sum;
        for (k = FIRST; k < LENGTH; k += STEP)
            out[k * INNER] = s_exp(x[k * INNER] - max) * sum;
#endif
    }
}
