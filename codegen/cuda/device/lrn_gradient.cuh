#include "real.cuh"
/* scale: s^-beta; slopes: dy x s^(-beta - 1). */
DEVICE void lrn_gradient(const Args a)
{
    SHARED float squares[ELEMENTS], slopes[ELEMENTS], scale[ELEMENTS];
    const REAL(0) *dy = BUF(const REAL(0), 0);
    const REAL(1) *x = BUF(const REAL(1), 1);
    put_squares(squares, x);
    EACH_ELEMENT(e)
    {
        const i64 at = place_of(e);
        const float s = normaliser(squares, e), one = 1.0f / power(s);
        scale[e] = one;
        if (at >= 0)
            slopes[e] = VALUE(0, dy[at]) * VALUE(1, x[at]) * one / s;
    }
    __syncthreads();
    EACH_ELEMENT(e)
    {
        const i64 at = place_of(e);
        if (at >= 0)
            BUF(REAL(2), 2)[at] = OF(2, VALUE(0, dy[at]) * scale[e] - FACTOR * VALUE(1, x[at]) *
                                            window_sum(slopes, e, AFTER, BEFORE));
    }
}
