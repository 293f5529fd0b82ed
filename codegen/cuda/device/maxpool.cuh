#include "real.cuh"
/* What each window takes, or its number: a thread a window. */
DEVICE void maxpool(const Args a)
{
    const PLACE at = (PLACE)blockIdx.x * THREADS + threadIdx.x;
    const PLACE place = at / GROUPS_OF_PIXEL, image = place / (OH * OW);
    const REAL(IMAGE) *x = BUF(const REAL(IMAGE), 0) + image * ((PLACE)H * W * CHANNELS);
    float best[WIDE];
    int number[WIDE], j;
    if (image >= IMAGES)
        return;
    largest(x + at % GROUPS_OF_PIXEL * WIDE, window_at((int)(place / OW % OH), (int)(place % OW)),
            best, number);
#if IS_INDEX
    Wide_u8 y;
    for (j = 0; j < WIDE; j++)
        y.x[j] = (u8)number[j];
    write_u8(BUF(u8, 1) + at * WIDE, y);
#else
    WIDE_OF(1) y;
    for (j = 0; j < WIDE; j++)
        y.x[j] = OF(1, best[j]);
    WRITE_WIDE(1, BUF(REAL(1), 1) + at * WIDE, y);
#endif
}
