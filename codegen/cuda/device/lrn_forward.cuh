#include "real.cuh"
DEVICE void lrn_forward(const Args a)
{
    SHARED float squares[ELEMENTS];
    const REAL(0) *x = BUF(const REAL(0), 0);
    put_squares(squares, x);
    EACH_ELEMENT(e)
    {
        const i64 at = place_of(e);
        if (at >= 0)
            BUF(REAL(1), 1)[at] = OF(1, VALUE(0, x[at]) / power(normaliser(squares, e)));
    }
}
