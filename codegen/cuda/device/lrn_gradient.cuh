/* scale: s^-beta; slopes: dy x s^(-beta - 1). */
DEVICE void lrn_gradient(const Args a)
{
    SHARED float squares[ELEMENTS], slopes[ELEMENTS], scale[ELEMENTS];
    const float *dy = BUF(const float, 0), *x = BUF(const float, 1);
    put_squares(squares, x);
    EACH_ELEMENT(e)
    {
        const i64 at = place_of(e);
        const float s = normaliser(squares, e), one = 1.0f / power(s);
        scale[e] = one;
        if (at >= 0)
            slopes[e] = dy[at] * x[at] * one / s;
    }
    __syncthreads();
    EACH_ELEMENT(e)
    {
        const i64 at = place_of(e);
        if (at >= 0)
            BUF(float, 2)[at] = dy[at] * scale[e] - FACTOR * x[at] * window_sum(slopes, e, AFTER, BEFORE);
    }
}
