#include "real.cuh"
/* Windows of pooling.  Images are [H, W, CHANNELS]; a pixel's number in a window counts row by row,
 * KERNEL_W a row, from the first pixel inside the image. */
typedef struct Window {
    i64 h0, h1, w0, w1; /* inside the image: rows [h0, h1), columns [w0, w1) */
} Window;

DEVICE i64 least(i64 a, i64 b)
{
    return a < b ? a : b;
}

DEVICE i64 most(i64 a, i64 b)
{
    return a > b ? a : b;
}

DEVICE Window window_at(i64 oh, i64 ow)
{
    const i64 h = oh * STRIDE_H - PADDING_H, w = ow * STRIDE_W - PADDING_W;
    Window s;
    s.h0 = most(h, 0);
    s.h1 = least(h + KERNEL_H, H);
    s.w0 = most(w, 0);
    s.w1 = least(w + KERNEL_W, W);
    return s;
}

/* Along an axis, the first window that ends behind `place`, and the first that begins behind it:
 * those between reach it. */
DEVICE i64 first_window(i64 place, i64 kernel, i64 stride, i64 padding, i64 windows)
{
    const i64 before = place + padding - kernel + 1;
    return before > 0 ? least((before + stride - 1) / stride, windows) : 0;
}

DEVICE i64 end_window(i64 place, i64 stride, i64 padding, i64 windows)
{
    return least((place + padding) / stride + 1, windows);
}

/* The largest element of a window of the channel x, and its number: of equal ones the first, else
 * the last NaN; 0 where nothing is larger than -infinity. */
DEVICE int largest(const POOLED *x, const Window s, float *best)
{
    int index = 0;
    *best = -INFINITE;
    for (i64 h = s.h0; h < s.h1; h++)
        for (i64 w = s.w0; w < s.w1; w++) {
            const float v = POOLED_VALUE(x[(h * W + w) * CHANNELS]);
            const int number = (int)((h - s.h0) * KERNEL_W + (w - s.w0));
            index = v > *best || v != v ? number : index;
            *best = s_max(v, *best);
        }
    return index;
}
