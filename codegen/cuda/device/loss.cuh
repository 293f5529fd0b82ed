#include "real.cuh"
/* Cross-entropy, its gradient and accuracy, with the bits of codegen/cpu/reduce/loss.c and
 * loss_grad.c: a line is the logits of one label (lines.cuh).  All threads of a line compute what is
 * the same for it. */
typedef struct Line {
    const REAL(0) *x; /* logits; class k at x[k * INNER] */
    i64 label;        /* -1: takes no part */
    float max, sum;   /* largest logit; sum of e^(x - max) */
    float all;        /* sum of w (x - max), where smoothing needs it */
} Line;

DEVICE i64 label_of(const Args a, i64 line)
{
    const i64 label = (i64)BUF(const LABEL, 1)[line];
    return label == IGNORE || label < 0 || label >= LENGTH ? -1 : label;
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

DEVICE Line scan_line(const Args a, i64 line, int with_all)
{
    Line l;
    float max = -INFINITE, sum = 0.0f, all = 0.0f;
    i64 k;
    l.x = BUF(const REAL(0), 0) + line_start(line);
    for (k = FIRST; k < LENGTH; k += STEP)
        max = s_max_keep(VALUE(0, l.x[k * INNER]), max);
    l.max = LINE_MAX(max);
    for (k = FIRST; k < LENGTH; k += STEP) {
        const float d = VALUE(0, l.x[k * INNER]) - l.max;
        sum = sum + s_exp(d);
#if WEIGHTED
        all = all + d * WEIGHT(k);
#else
        all = all + d;
#endif
    }
    l.sum = LINE_SUM(sum);
    l.all = with_all ? LINE_SUM(all) : 0.0f;
    l.label = label_of(a, line); /* here: in no register while the line is read */
    return l;
}

/* (1-e) w[label] (log sum - (x[label] - max)) + e mean(w (log sum - (x - max))) */
DEVICE float loss_of_line(const Args a, const Line l, float weights)
{
    const float log_sum = s_log(l.sum), picked = VALUE(0, l.x[l.label * INNER]) - l.max;
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
