#include "real.cuh"
#include "wide.cuh"
/* Windows of pooling.  Images are [H, W, CHANNELS]; a pixel's number in a window counts row by row,
 * KERNEL_W a row, from the first pixel inside the image.  A thread has WIDE neighbouring channels.
 * PLACE is a type for elements of a buffer.  Buffer IMAGE is what windows look at. */
#define GROUPS_OF_PIXEL (CHANNELS / WIDE)
#define AHEAD           (KERNEL_W < 3 ? KERNEL_W : 3) /* pixels that are read before one is used */
#define WIDE_OF(k)      REAL_JOIN(Wide_, REAL(k))
#define READ_WIDE(k, p) REAL_JOIN(read_, REAL(k))(p)
#define WRITE_WIDE(k, p, v) REAL_JOIN(write_, REAL(k))(p, v)

#define WIDE_READ(type)                                                                            \
    DEVICE Wide_##type read_##type(const type *p)                                                  \
    {                                                                                              \
        Wide_##type r;                                                                             \
        int j;                                                                                     \
        if (((i64)p & 15) == 0)                                                                    \
            return *(const Wide_##type *)p;                                                        \
        for (j = 0; j < WIDE; j++)                                                                 \
            r.x[j] = p[j];                                                                         \
        return r;                                                                                  \
    }                                                                                              \
                                                                                                   \
    DEVICE void write_##type(type *p, const Wide_##type v)                                         \
    {                                                                                              \
        int j;                                                                                     \
        if (((i64)p & 15) == 0)                                                                    \
            *(Wide_##type *)p = v;                                                                 \
        else                                                                                       \
            for (j = 0; j < WIDE; j++)                                                             \
                p[j] = v.x[j];                                                                     \
    }

WIDE_TYPE(float, 2 * WIDE)
WIDE_TYPE(u16, 2 * WIDE)
WIDE_TYPE(u8, WIDE)
WIDE_TYPE(int, WIDE)
WIDE_READ(float)
WIDE_READ(u16)
WIDE_READ(u8)

typedef struct Window {
    int h0, h1, w0, w1; /* inside the image: rows [h0, h1), columns [w0, w1) */
} Window;

DEVICE int least(int a, int b)
{
    return a < b ? a : b;
}

DEVICE int most(int a, int b)
{
    return a > b ? a : b;
}

DEVICE Window window_at(int oh, int ow)
{
    const int h = oh * STRIDE_H - PADDING_H, w = ow * STRIDE_W - PADDING_W;
    Window s;
    s.h0 = most(h, 0);
    s.h1 = least(h + KERNEL_H, H);
    s.w0 = most(w, 0);
    s.w1 = least(w + KERNEL_W, W);
    return s;
}

/* Along an axis, the first window that ends behind `place`, and the first that begins behind it:
 * those between reach it. */
DEVICE int first_window(int place, int kernel, int stride, int padding, int windows)
{
    const int before = place + padding - kernel + 1;
    return before > 0 ? least((before + stride - 1) / stride, windows) : 0;
}

DEVICE int end_window(int place, int stride, int padding, int windows)
{
    return least((place + padding) / stride + 1, windows);
}

/* AHEAD pixels of a row from w on, of which the last is end - 1: that instead of those behind it. */
DEVICE void read_pixels(const REAL(IMAGE) *row, int w, int end, WIDE_OF(IMAGE) *pixel)
{
    int u, j;
    if (((i64)row & 15) == 0) {
        UNROLL for (u = 0; u < AHEAD; u++)
            pixel[u] = *(const WIDE_OF(IMAGE) *)(row + (PLACE)least(w + u, end - 1) * CHANNELS);
        return;
    }
    UNROLL for (u = 0; u < AHEAD; u++)
        for (j = 0; j < WIDE; j++)
            pixel[u].x[j] = row[(PLACE)least(w + u, end - 1) * CHANNELS + j];
}

/* The largest elements of a window of channels, and their numbers: of equal ones the first, else the
 * last NaN; 0 where nothing is larger than -infinity.  x is the image's first pixel. */
DEVICE void largest(const REAL(IMAGE) *x, const Window s, float *best, int *number)
{
    int h, w, u, j;
    for (j = 0; j < WIDE; j++) {
        best[j] = -INFINITE;
        number[j] = 0;
    }
#pragma unroll 1
    for (h = s.h0; h < s.h1; h++)
#pragma unroll 1
        for (w = s.w0; w < s.w1; w += AHEAD) {
            WIDE_OF(IMAGE) pixel[AHEAD];
            read_pixels(x + (PLACE)h * W * CHANNELS, w, s.w1, pixel);
            UNROLL for (u = 0; u < AHEAD; u++)
                for (j = 0; j < WIDE; j++) {
                    const float v = VALUE(IMAGE, pixel[u].x[j]);
                    const int taken = v > best[j] || v != v, column = least(w + u, s.w1 - 1) - s.w0;
                    number[j] = taken ? (h - s.h0) * KERNEL_W + column : number[j];
                    best[j] = taken ? v : best[j];
                }
        }
}
