#include "real.cuh"
/* sum, mean, reduce_max and sumsq, with the order of codegen/cpu/reduce/reduce.c.  Along a reduced
 * last dim the partial sums of line.cuh: an element belongs to the sum of its place modulo PARTIALS
 * while whole rounds last, behind them modulo LANES where ROUNDS_GO_ON is 0.  A column has four
 * sums. */
#if IS_MAX
#define START        (-INFINITE)
#define FOLD(sum, x) s_max(x, sum)
#define JOIN(a, b)   s_max(a, b)
#define JOIN_PARTIALS(sum) join_line_max(sum)
#elif IS_SQUARE
#define START        0.0f
#define FOLD(sum, x) ((sum) + (x) * (x))
#define JOIN(a, b)   ((a) + (b))
#define JOIN_PARTIALS(sum) join_line_sum(sum)
#else
#define START        0.0f
#define FOLD(sum, x) ((sum) + (x))
#define JOIN(a, b)   ((a) + (b))
#define JOIN_PARTIALS(sum) join_line_sum(sum)
#endif

/* Elements [from, to) of the last dim.  rounds_end: where whole rounds end. */
DEVICE float fold_line(float sum, const REAL(0) *x, i64 from, i64 to, i64 rounds_end)
{
    i64 i;
    for (i = from + threadIdx.x; i < rounds_end; i += PARTIALS)
        sum = FOLD(sum, VALUE(0, x[i]));
    if (ROUNDS_GO_ON) {
        if (rounds_end + threadIdx.x < to)
            sum = FOLD(sum, VALUE(0, x[rounds_end + threadIdx.x]));
    } else if (threadIdx.x < LANES) {
        for (i = rounds_end + threadIdx.x; i < to; i += LANES)
            sum = FOLD(sum, VALUE(0, x[i]));
    }
    return sum;
}

/* One result of a reduced last dim: outer reduced elements [r0, r1), of each [from, to). */
DEVICE float line_result(const REAL(0) *x, i64 kept, i64 r0, i64 r1, i64 from, i64 to)
{
    float sum = START;
    i64 r;
    for (r = r0; r < r1; r++)
        sum = fold_line(sum, x + kept_place(kept) + reduced_place(r), from, to,
                        from + (to - from) / PARTIALS * PARTIALS);
    return JOIN_PARTIALS(sum);
}

DEVICE float column_result(const REAL(0) *x, i64 r0, i64 r1)
{
    float s0 = START, s1 = START, s2 = START, s3 = START;
    i64 r = r0;
    for (; r < r1 - 3; r += 4) {
        s0 = FOLD(s0, VALUE(0, x[reduced_place(r)]));
        s1 = FOLD(s1, VALUE(0, x[reduced_place(r + 1)]));
        s2 = FOLD(s2, VALUE(0, x[reduced_place(r + 2)]));
        s3 = FOLD(s3, VALUE(0, x[reduced_place(r + 3)]));
    }
    for (; r < r1; r++)
        s0 = FOLD(s0, VALUE(0, x[reduced_place(r)]));
    return JOIN(JOIN(s0, s1), JOIN(s2, s3));
}
