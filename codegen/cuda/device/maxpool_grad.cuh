#include "real.cuh"
/* The sum of dy of the windows that take an element.  A block has a tile of pixels of TILE_CHANNELS
 * channels, a thread EACH of these pixels.  Of the MOST_WINDOWS that may reach the tile, a part of
 * WINDOWS at a time, all first keep dy and what each window takes - which buffer 1 says, or the image
 * there -, then each thread adds what its pixels get, in order.  Where one part has all of them, the
 * compiler sees so, and sums need no registers before. */
#define GROUPS (TILE_CHANNELS / WIDE)
#define EACH   (TILE_H * TILE_W * GROUPS / THREADS)
#define TAKEN  REAL_JOIN(Wide_, NUMBER)

DEVICE TAKEN taken_by(const Args a, PLACE image, int oh, int ow, int channel)
{
#if IS_INDEX
    return read_u8(BUF(const u8, 1) + ((image * OH + oh) * OW + ow) * CHANNELS + channel);
#else
    float best[WIDE];
    int number[WIDE], j;
    TAKEN r;
    largest(BUF(const REAL(IMAGE), 1) + image * ((PLACE)H * W * CHANNELS) + channel,
            window_at(oh, ow), best, number);
    for (j = 0; j < WIDE; j++)
        r.x[j] = (NUMBER)number[j];
    return r;
#endif
}

DEVICE void maxpool_grad(const Args a)
{
    SHARED TAKEN taken[WINDOWS * GROUPS];
    SHARED WIDE_OF(0) dy[WINDOWS * GROUPS];
    const int tiles_w = (W + TILE_W - 1) / TILE_W, tiles_h = (H + TILE_H - 1) / TILE_H;
    const int tiles_c = (CHANNELS + TILE_CHANNELS - 1) / TILE_CHANNELS;
    const PLACE tile = (PLACE)blockIdx.x / tiles_c, image = tile / (tiles_w * tiles_h);
    const int group = threadIdx.x % GROUPS;
    const int channel = (int)((PLACE)blockIdx.x % tiles_c) * TILE_CHANNELS + group * WIDE;
    const int tile_h = (int)(tile / tiles_w % tiles_h) * TILE_H;
    const int tile_w = (int)(tile % tiles_w) * TILE_W;
    const int top = first_window(tile_h, KERNEL_H, STRIDE_H, PADDING_H, OH);
    const int left = first_window(tile_w, KERNEL_W, STRIDE_W, PADDING_W, OW);
    const int columns = end_window(tile_w + TILE_W - 1, STRIDE_W, PADDING_W, OW) - left;
    const int windows =
        columns * (end_window(tile_h + TILE_H - 1, STRIDE_H, PADDING_H, OH) - top);
    float sum[EACH][WIDE];
    int part, e, j;
    for (e = 0; e < EACH; e++)
        for (j = 0; j < WIDE; j++)
            sum[e][j] = 0.0f;
#pragma unroll 1
    for (part = 0; part < least(windows, MOST_WINDOWS); part += WINDOWS) {
        int k = threadIdx.x / GROUPS;
#pragma unroll 1
        for (; k < least(WINDOWS, windows - part) && channel < CHANNELS; k += THREADS / GROUPS) {
            const int oh = top + (part + k) / columns, ow = left + (part + k) % columns;
            const PLACE y = ((image * OH + oh) * OW + ow) * CHANNELS + channel;
            dy[k * GROUPS + group] = READ_WIDE(0, BUF(const REAL(0), 0) + y);
            taken[k * GROUPS + group] = taken_by(a, image, oh, ow, channel);
        }
        __syncthreads();
        UNROLL for (e = 0; e < EACH; e++) {
            const int pixel = (e * THREADS + (int)threadIdx.x) / GROUPS;
            const int h = tile_h + pixel / TILE_W, w = tile_w + pixel % TILE_W;
            const int inside = h < H && w < W && channel < CHANNELS;
            const int oh1 = inside ? end_window(h, STRIDE_H, PADDING_H, OH) : 0;
            const int ow1 = end_window(w, STRIDE_W, PADDING_W, OW);
            int oh, ow;
#pragma unroll 1
            for (oh = first_window(h, KERNEL_H, STRIDE_H, PADDING_H, OH); oh < oh1; oh++)
#pragma unroll 1
                for (ow = first_window(w, KERNEL_W, STRIDE_W, PADDING_W, OW); ow < ow1; ow++) {
                    const Window s = window_at(oh, ow);
                    const int number = (h - s.h0) * KERNEL_W + (w - s.w0);
                    const int window = (oh - top) * columns + (ow - left) - part;
                    if (window >= 0 && window < WINDOWS) {
                        const TAKEN t = taken[window * GROUPS + group];
                        const WIDE_OF(0) v = dy[window * GROUPS + group];
                        for (j = 0; j < WIDE; j++)
                            if (t.x[j] == number)
                                sum[e][j] = sum[e][j] + VALUE(0, v.x[j]);
                    }
                }
        }
        __syncthreads();
    }
    UNROLL for (e = 0; e < EACH; e++) {
        const int pixel = (e * THREADS + (int)threadIdx.x) / GROUPS;
        const int h = tile_h + pixel / TILE_W, w = tile_w + pixel % TILE_W;
        WIDE_OF(2) dx;
        for (j = 0; j < WIDE; j++)
            dx.x[j] = OF(2, sum[e][j]);
        if (h < H && w < W && channel < CHANNELS)
            WRITE_WIDE(2, BUF(REAL(2), 2) + ((image * H + h) * W + w) * CHANNELS + channel, dx);
    }
}
