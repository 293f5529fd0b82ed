/* A line of logits; with_all: as smoothing needs it. */
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
        sum = sum + s_exp_below(d);
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
