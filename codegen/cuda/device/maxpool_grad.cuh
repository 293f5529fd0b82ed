#include "real.cuh"
/* The sum of dy of the windows that take an element.  A block has a tile of pixels of some channels,
 * a thread an element: first all find what the windows that reach the tile take, a part of these
 * windows at a time, then each adds its own, in order. */
#define PIXELS  (TILE_H * TILE_W)
#define WINDOWS (2048 / TILE_CHANNELS) /* of a part */

DEVICE void maxpool_grad(const Args a)
{
    SHARED int taken[WINDOWS][TILE_CHANNELS];
    const i64 tiles_w = (W + TILE_W - 1) / TILE_W, tiles_h = (H + TILE_H - 1) / TILE_H;
    const i64 tiles_c = (CHANNELS + TILE_CHANNELS - 1) / TILE_CHANNELS;
    const i64 tile = (i64)blockIdx.x / tiles_c, image = tile / (tiles_w * tiles_h);
    const int c = threadIdx.x % TILE_CHANNELS, pixel = threadIdx.x / TILE_CHANNELS;
    const i64 channel = (i64)blockIdx.x % tiles_c * TILE_CHANNELS + c;
    const i64 tile_h = tile / tiles_w % tiles_h * TILE_H, tile_w = tile % tiles_w * TILE_W;
    const i64 h = tile_h + pixel / TILE_W, w = tile_w + pixel % TILE_W;
    const int inside = channel < CHANNELS && h < H && w < W;
    const REAL(0) *dy = BUF(const REAL(0), 0) + image * ((i64)OH * OW * CHANNELS) + channel;
    const POOLED *x = BUF(const POOLED, 1) + image * ((i64)H * W * CHANNELS) + channel;
    /* of the tile, and of the element */
    const i64 top = first_window(tile_h, KERNEL_H, STRIDE_H, PADDING_H, OH);
    const i64 left = first_window(tile_w, KERNEL_W, STRIDE_W, PADDING_W, OW);
    const int rows = (int)(end_window(tile_h + TILE_H - 1, STRIDE_H, PADDING_H, OH) - top);
    const int columns = (int)(end_window(tile_w + TILE_W - 1, STRIDE_W, PADDING_W, OW) - left);
    const i64 oh0 = first_window(h, KERNEL_H, STRIDE_H, PADDING_H, OH);
    const i64 ow0 = first_window(w, KERNEL_W, STRIDE_W, PADDING_W, OW);
    const i64 oh1 = inside ? end_window(h, STRIDE_H, PADDING_H, OH) : 0;
    const i64 ow1 = inside ? end_window(w, STRIDE_W, PADDING_W, OW) : 0;
    float sum = 0.0f;
    for (int part = 0; part < rows * columns; part += WINDOWS) {
        for (int k = pixel; k < WINDOWS && part + k < rows * columns; k += PIXELS) {
            const i64 oh = top + (part + k) / columns, ow = left + (part + k) % columns;
            float best;
            if (channel < CHANNELS)
                taken[k][c] = largest(x, window_at(oh, ow), &best);
        }
        __syncthreads();
        for (i64 oh = oh0; oh < oh1; oh++)
            for (i64 ow = ow0; ow < ow1; ow++) {
                const int k = (int)((oh - top) * columns + (ow - left)) - part;
                const Window s = window_at(oh, ow);
                if (k >= 0 && k < WINDOWS && taken[k][c] == (h - s.h0) * KERNEL_W + (w - s.w0))
                    sum = sum + VALUE(0, dy[(oh * OW + ow) * CHANNELS]);
            }
        __syncthreads();
    }
    if (inside)
        BUF(REAL(2), 2)[((image * H + h) * W + w) * CHANNELS + channel] = OF(2, sum);
}
