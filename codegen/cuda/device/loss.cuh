#include "real.cuh"
/* Cross-entropy, its gradient and accuracy, with the bits of codegen/cpu/reduce/loss.c and
 * loss_grad.c: a line is the logits of one label (lines.cuh).  All threads of a line compute what is
 * the same for it. */
typedef struct Line {
    const REAL(0) *x; /* logits; class k at x[k * INNER] */
    PLACE label;      /* -1: takes no part */
    float max, sum;   /* largest logit; sum of e^(x - max) */
    float all;        /* sum of w (x - max), where smoothing needs it */
} Line;

DEVICE PLACE label_of(const Args a, i64 line)
{
    const i64 label = (i64)BUF(const LABEL, 1)[line];
    return label == IGNORE || label < 0 || label >= LENGTH ? -1 : (PLACE)label;
}

#if WEIGHTED
#define WEIGHT(k) (BUF(const float, WEIGHT_BUF)[k])
#else
#define WEIGHT(k) 1.0f
#endif

/* The sum of all class weights. */
DEVICE float all_weights(const Args a)
{
    double sum = 0;
#if WEIGHTED
    i64 k;
    for (k = 0; k < LENGTH; k++)
        sum = sum + (double)WEIGHT(k);
#else
    (void)a;
#endif
    return (float)sum;
}

/* (1-e) w[label] (log sum - (x[label] - max)) + e mean(w (log sum - (x - max))) */
DEVICE float loss_of_line(const Args a, const Line l, float weights)
{
    const float log_sum = s_log(l.sum), picked = VALUE(0, l.x[(i64)l.label * INNER]) - l.max;
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
