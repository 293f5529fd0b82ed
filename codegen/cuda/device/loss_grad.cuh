#include "real.cuh"
/* dloss / count * (softmax - (1-e) onehot - e / classes), e the smoothing; with class weights as
 * codegen/cpu/reduce/loss_grad.c says.  The gradient may lie on the logits. */

/* What all labels count. */
DEVICE float label_count(const Args a)
{
    COUNT count = 0;
    i64 line;
#if WEIGHTED
    SHARED double s[WEIGHT_SUMS];
    int k;
    for (k = threadIdx.x; k < WEIGHT_SUMS; k += THREADS) {
        double mine = 0;
        for (line = k; line < LINES; line += WEIGHT_SUMS) {
            const i64 label = label_of(a, line);
            if (label >= 0)
                mine = mine + (double)WEIGHT(label);
        }
        s[k] = mine;
    }
    __syncthreads();
    for (k = 0; k < WEIGHT_SUMS; k++)
        count = count + s[k];
#else
    for (line = threadIdx.x; line < LINES; line += THREADS)
        count += label_of(a, line) >= 0;
    count = block_count(count);
#endif
    return count > 0 ? (float)count : INFINITE;
}

/* The gradient of class k but for the scale, from the softmax.  Across lines the label's class has
 * its share of the smoothing like all others. */
DEVICE float grad_of_class(const Args a, const Line l, i64 k, float p, float target)
{
#if SMOOTHED && WEIGHTED
    const float share = WEIGHT(k) * SMOOTHING_SHARE;
#elif SMOOTHED
    const float share = SMOOTHING_SHARE;
#else
    const float share = 0.0f;
#endif
    (void)a;
    if (SMOOTHED && (INNER > 1 || k != l.label))
        p = p - share;
    return k == l.label ? p - target : p;
}

DEVICE void loss_grad(const Args a)
{
    const float *dloss = BUF(const float, 2);
    const float weights = SMOOTHED && WEIGHTED ? all_weights(a) : 0.0f;
    const float common = EACH ? 0.0f : MEAN ? *dloss / label_count(a) : *dloss;
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const Line l = scan_line(a, line, 0);
        REAL(OUT_BUF) *out = BUF(REAL(OUT_BUF), OUT_BUF) + line_start(line);
        float scale = EACH ? dloss[line] : common, factor = 1.0f / l.sum;
        float target = INNER > 1 ? ONE_MINUS_SMOOTHING : OWN_TARGET;
        (void)weights;
#if WEIGHTED
        const float weight = l.label < 0 ? 0.0f : WEIGHT(l.label);
#if SMOOTHED
        factor = (weight * ONE_MINUS_SMOOTHING + weights * SMOOTHING_SHARE) / l.sum;
        target = target * weight;
#else
        scale = scale * weight;
#endif
#endif
        for (k = FIRST; k < LENGTH; k += STEP) {
            const float p = s_exp(VALUE(0, l.x[k * INNER]) - l.max) * factor;
            const float g = l.label < 0 ? 0.0f : grad_of_class(a, l, k, p, target) * scale;
            out[k * INNER] = OF(OUT_BUF, g);
        }
    }
}
