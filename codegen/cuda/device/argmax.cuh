/* The first of the largest elements of every line; a NaN is larger than any number. */
typedef struct Best {
    float value;
    i64 at; /* -1: none */
} Best;

DEVICE int is_better(Best b, Best than)
{
    const int fresh = b.value != b.value, old = than.value != than.value;
    if (b.at < 0 || than.at < 0)
        return than.at < 0;
    if (fresh || old)
        return fresh && (!old || b.at < than.at);
    return b.value > than.value || (b.value == than.value && b.at < than.at);
}

DEVICE Best join_best(Best mine)
{
#if INNER == 1
    SHARED Best s[PARTIALS];
    const int t = threadIdx.x;
    int half;
    s[t] = mine;
    __syncthreads();
    for (half = PARTIALS / 2; half > 0; half /= 2) {
        if (t < half && is_better(s[t + half], s[t]))
            s[t] = s[t + half];
        __syncthreads();
    }
    mine = s[0];
    __syncthreads();
#endif
    return mine;
}

DEVICE void argmax(const Args a)
{
    i64 line, k;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const float *x = BUF(const float, 0) + line_start(line);
        Best best = {0.0f, -1};
        for (k = FIRST; k < LENGTH; k += STEP) {
            Best b;
            b.value = x[k * INNER];
            b.at = k;
            if (is_better(b, best))
                best = b;
        }
        best = join_best(best);
        if (WRITES_FOR_LINE)
            BUF(int, 1)[line] = (int)best.at;
    }
}
