#include "real.cuh"
/* The first of the largest elements of a line; a NaN is larger than any number. */
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

DEVICE Best better(Best a, Best b)
{
    return is_better(b, a) ? b : a;
}

#if INNER == 1
JOIN_LINE(join_best, Best, better)
#else
#define join_best(mine) (mine)
#endif

/* with_nan: NaNs count. */
DEVICE i64 first_largest(const REAL(0) *x, int with_nan)
{
    Best best = {0.0f, -1};
    i64 k;
    for (k = FIRST; k < LENGTH; k += STEP) {
        const Best b = {VALUE(0, x[k * INNER]), k};
        if ((with_nan || b.value == b.value) && is_better(b, best))
            best = b;
    }
    return join_best(best).at;
}
