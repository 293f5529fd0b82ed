/* Cross-entropy, its gradient and accuracy for logits whose classes lie side by side, with the bits
 * of codegen/cpu/reduce/loss.c and loss_grad.c.  A block of PARTIALS threads takes a line at a time;
 * all threads of it compute what is the same for the line. */
typedef struct Line {
    const float *x; /* logits */
    i64 label;      /* -1: takes no part */
    float max, sum; /* largest logit; sum of e^(x - max) */
    float all;      /* sum of w (x - max), where smoothing needs it */
} Line;

DEVICE i64 label_of(const Args a, i64 line)
{
    const i64 label = (i64)BUF(const LABEL, 1)[line];
    return label == IGNORE || label < 0 || label >= CLASSES ? -1 : label;
}

#if WEIGHTED
#define WEIGHT(k) (BUF(const float, WEIGHT_BUF)[k])
#endif

/* The sum of all class weights. */
DEVICE float all_weights(const Args a)
{
    double sum = 0;
#if WEIGHTED
    i64 k;
    for (k = 0; k < CLASSES; k++)
        sum = sum + (double)WEIGHT(k);
#else
    (void)a;
#endif
    return (float)sum;
}

DEVICE Line scan_line(const Args a, i64 line, int with_all)
{
    Line l;
    float max = -INFINITE, sum = 0.0f, all = 0.0f;
    i64 k;
    l.x = BUF(const float, 0) + line * CLASSES;
    l.label = label_of(a, line);
    for (k = threadIdx.x; k < CLASSES; k += PARTIALS)
        max = s_max_keep(l.x[k], max);
    l.max = join_line_max_keep(max);
    for (k = threadIdx.x; k < CLASSES; k += PARTIALS) {
        const float d = l.x[k] - l.max;
        sum = sum + s_exp(d);
#if WEIGHTED
        all = all + d * WEIGHT(k);
#else
        all = all + d;
#endif
    }
    l.sum = join_line_sum(sum);
    l.all = with_all ? join_line_sum(all) : 0.0f;
    return l;
}

/* (1-e) w[label] (log sum - (x[label] - max)) + e mean(w (log sum - (x - max))) */
DEVICE float loss_of_line(const Args a, const Line l, float weights)
{
    const float log_sum = s_log(l.sum), picked = l.x[l.label] - l.max;
    float loss = (log_sum - picked) * ONE_MINUS_SMOOTHING;
#if WEIGHTED
    loss = loss * WEIGHT(l.label);
#if SMOOTHED
    loss = loss + (log_sum * weights - l.all) * SMOOTHING_SHARE;
#endif
#elif SMOOTHED
    loss = loss + (log_sum - l.all * ONE_OVER_CLASSES) * SMOOTHING;
#endif
    (void)a;
    (void)weights;
    return loss;
}
