/* Partial results of a chunked reduction, in order, as codegen/cpu/reduce/reduce.c joins them. */
DEVICE float join_max(const float *x, i64 chunks, i64 stride)
{
    float max = -INFINITE;
    i64 k;
    for (k = 0; k < chunks; k++)
        max = s_max(x[k * stride], max);
    return max;
}

/* Knuth's two-sum (The Art of Computer Programming, volume 2, 4.2.2): what additions round off is
 * kept.  Where the sum overflowed, what was lost is NaN: then the sum alone counts. */
typedef struct Total {
    float sum, lost;
} Total;

DEVICE Total total_plus(const Total t, float term)
{
    const float sum = t.sum + term, part = sum - t.sum;
    const float lost_of_old = t.sum - (sum - part);
    const Total r = {sum, t.lost + (lost_of_old + (term - part))};
    return r;
}

DEVICE float total_of(const Total t)
{
    return t.lost == t.lost ? t.sum + t.lost : t.sum;
}

DEVICE float join_sum(const float *x, i64 chunks, i64 stride)
{
    Total t = {0.0f, 0.0f};
    i64 k;
    for (k = 0; k < chunks; k++)
        t = total_plus(t, x[k * stride]);
    return total_of(t);
}
