DEVICE void lrn_forward(const Args a)
{
    SHARED float squares[ELEMENTS];
    const float *x = BUF(const float, 0);
    put_squares(squares, x);
    EACH_ELEMENT(e)
    {
        const i64 at = place_of(e);
        if (at >= 0)
            BUF(float, 1)[at] = x[at] / power(normaliser(squares, e));
    }
}
