#include "real.cuh"
/* The sum of dy of the windows that took an element: a thread an element, windows in order. */
DEVICE void maxpool_index_grad(const Args a)
{
    const i64 at = (i64)blockIdx.x * 256 + threadIdx.x;
    const i64 channel = at % CHANNELS, place = at / CHANNELS, image = place / ((i64)H * W);
    const i64 h = place / W % H, w = place % W;
    const i64 oh1 = end_window(h, STRIDE_H, PADDING_H, OH);
    const i64 ow1 = end_window(w, STRIDE_W, PADDING_W, OW);
    float sum = 0.0f;
    if (image >= IMAGES)
        return;
    for (i64 oh = first_window(h, KERNEL_H, STRIDE_H, PADDING_H, OH); oh < oh1; oh++)
        for (i64 ow = first_window(w, KERNEL_W, STRIDE_W, PADDING_W, OW); ow < ow1; ow++) {
            const Window s = window_at(oh, ow);
            const i64 y = ((image * OH + oh) * OW + ow) * CHANNELS + channel;
            if (BUF(const u8, 1)[y] == (h - s.h0) * KERNEL_W + (w - s.w0))
                sum = sum + VALUE(0, BUF(const REAL(0), 0)[y]);
        }
    BUF(REAL(2), 2)[at] = OF(2, sum);
}
