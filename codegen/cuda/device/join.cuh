/* Partial results of a chunked reduction, in order, as codegen/cpu/reduce/reduce.c joins them. */
DEVICE float join_max(const float *x, i64 chunks, i64 stride)
{
    float max = -INFINITE;
    i64 k;
    for (k = 0; k < chunks; k++)
        max = s_max(x[k * stride], max);
    return max;
}

/* Knuth's two-sum (The Art of Computer Programming, volume 2, 4.2.2).  Where the sum overflowed,
 * what was lost is NaN: then the sum alone counts. */
DEVICE float join_sum(const float *x, i64 chunks, i64 stride)
{
    float sum = 0.0f, lost = 0.0f;
    i64 k;
    for (k = 0; k < chunks; k++) {
        const float term = x[k * stride], old = sum;
        const float fresh = old + term, part = fresh - old;
        const float lost_of_old = old - (fresh - part);
        lost = lost + (lost_of_old + (term - part));
        sum = fresh;
    }
    return lost == lost ? sum + lost : sum;
}
