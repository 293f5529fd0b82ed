/* dloss / count * (softmax - (1-e) onehot - e / classes), e the smoothing; with class weights as
 * codegen/cpu/reduce/loss_grad.c says.  The gradient may lie on the logits. */
DEVICE float label_count(const Args a)
{
    i64 line;
#if WEIGHTED
    double count = 0;
    for (line = 0; line < LINES; line++) {
        const i64 label = label_of(a, line);
        if (label >= 0)
            count = count + (double)WEIGHT(label);
    }
#else
    i64 mine = 0, count;
    for (line = threadIdx.x; line < LINES; line += PARTIALS)
        mine += label_of(a, line) >= 0;
    count = join_line_count(mine);
#endif
    return count > 0 ? (float)count : INFINITE;
}

DEVICE void loss_grad(const Args a)
{
    const float *dloss = BUF(const float, 2);
    const float weights = SMOOTHED && WEIGHTED ? all_weights(a) : 0.0f;
    const float common = EACH ? 0.0f : MEAN ? *dloss / label_count(a) : *dloss;
    i64 line, k;
    for (line = blockIdx.x; line < LINES; line += gridDim.x) {
        const Line l = scan_line(a, line, 0);
        float *out = BUF(float, OUT_BUF) + line * CLASSES;
        float scale = EACH ? dloss[line] : common, factor = 1.0f / l.sum, target = OWN_TARGET;
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
        for (k = threadIdx.x; k < CLASSES; k += PARTIALS) {
            float p = s_exp(l.x[k] - l.max) * factor;
            if (k == l.label)
                p = p - target;
#if SMOOTHED && WEIGHTED
            else
                p = p - WEIGHT(k) * SMOOTHING_SHARE;
#elif SMOOTHED
            else
                p = p - SMOOTHING_SHARE;
#endif
            out[k] = l.label < 0 ? 0.0f : p * scale;
        }
        __syncthreads();
    }
}
