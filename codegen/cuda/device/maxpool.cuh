#include "real.cuh"
/* What each window takes, or its number: a thread a window of a channel. */
DEVICE void maxpool(const Args a)
{
    const i64 at = (i64)blockIdx.x * 256 + threadIdx.x;
    const i64 channel = at % CHANNELS, place = at / CHANNELS, image = place / (OH * OW);
    const POOLED *x = BUF(const POOLED, 0) + image * ((i64)H * W * CHANNELS) + channel;
    float best;
    int number;
    if (image >= IMAGES)
        return;
    number = largest(x, window_at(place / OW % OH, place % OW), &best);
    (void)number;
    BUF(TAKEN, 1)[at] = TAKE(best, number);
}
