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
            const PLACE label = label_of(a, line);
            if (label >= 0)
                mine = mine + (double)WEIGHT(label);
        }
        s[k] = mine;
    }
    __syncthreads();
    for (k = 0; k < WEIGHT_SUMS; k++)
        count = count + s[k];
#else
#pragma unroll 8
    for (line = threadIdx.x; line < LINES; line += THREADS)
        count += label_of(a, line) >= 0;
    count = block_count(count);
#endif
    return count > 0 ? (float)count : INFINITE;
}

/* What the gradients of a line have in common. */
typedef struct Common {
    float factor, target, scale;
} Common;

DEVICE Common common_of(const Args a, const Line l, float scale, float weights)
{
    Common c;
    c.factor = 1.0f / l.sum;
    c.target = INNER > 1 ? ONE_MINUS_SMOOTHING : OWN_TARGET;
    c.scale = scale;
    (void)a;
    (void)weights;
#if WEIGHTED
    const float weight = l.label < 0 ? 0.0f : WEIGHT(l.label);
#if SMOOTHED
    c.factor = (weight * ONE_MINUS_SMOOTHING + weights * SMOOTHING_SHARE) / l.sum;
    c.target = c.target * weight;
#else
    c.scale = scale * weight;
#endif
#endif
    return c;
}

/* The gradient of class k, whose logit is x, in a line with a label; is_label: it is k.  Across
 * lines the label's class has its share of the smoothing like all others. */
DEVICE float grad_of_class(const Args a, const Line l, const Common c, PLACE k, int is_label,
                           float x)
{
    float p = s_exp_below(x - l.max) * c.factor;
#if SMOOTHED && WEIGHTED
    const float share = (k >= 0 && k < LENGTH ? WEIGHT(k) : 0.0f) * SMOOTHING_SHARE;
#elif SMOOTHED
    const float share = SMOOTHING_SHARE;
#else
    const float share = 0.0f;
#endif
    (void)a;
    if (SMOOTHED && (INNER > 1 || !is_label))
        p = p - share;
    if (is_label)
        p = p - c.target;
    return p * c.scale;
}

#if INNER == 1
STORE_RUN(OUT_BUF)

DEVICE void write_line(const Args a, const Line l, const Common c, REAL(OUT_BUF) *out)
{
    PLACE i;
    int u, j;
    for (i = first_run(l.x); i < LENGTH; i += BATCH) {
        Run_0 run[AHEAD];
        load_runs_0(l.x, i, -INFINITE, run);
        UNROLL for (u = 0; u < AHEAD; u++) {
            const PLACE k = i + u * PARTIALS, own = l.label - k;
            float g[EIGHT];
            for (j = 0; j < EIGHT; j++)
                g[j] = 0.0f;
            for (j = 0; j < EIGHT && l.label >= 0; j++)
                g[j] = grad_of_class(a, l, c, k + j, j == own, IN_WORDS(0, run[u].w, j));
            store_run(out, k, g);
        }
    }
}
#else
DEVICE void write_line(const Args a, const Line l, const Common c, REAL(OUT_BUF) *out)
{
    i64 k;
    for (k = 0; k < LENGTH; k++) {
        const float g = grad_of_class(a, l, c, (PLACE)k, k == l.label, VALUE(0, l.x[k * INNER]));
        out[k * INNER] = OF(OUT_BUF, l.label < 0 ? 0.0f : g);
    }
}
#endif

DEVICE void loss_grad(const Args a)
{
    const float *dloss = BUF(const float, 2);
    const float weights = SMOOTHED && WEIGHTED ? all_weights(a) : 0.0f;
    const float common = EACH ? 0.0f : MEAN ? *dloss / label_count(a) : *dloss;
    i64 tile;
    for (tile = FIRST_TILE; tile < LINES; tile += TILE_STEP) {
        const int exists = tile + LINE_OF_BLOCK < LINES;
        const i64 line = exists ? tile + LINE_OF_BLOCK : LINES - 1;
        const Line l = scan_line(a, line, 0);
        if (exists)
            write_line(a, l, common_of(a, l, EACH ? dloss[line] : common, weights),
                       BUF(REAL(OUT_BUF), OUT_BUF) + line_start(line));
    }
}
