/* A convolution: x is IMAGES x HEIGHT x WIDTH x CHANNELS, y IMAGES x OUT_HEIGHT x OUT_WIDTH x
 * OUT_CHANNELS, the weights TAP_ROWS x TAP_COLUMNS x GROUP_IN x OUT_CHANNELS; in that order in memory
 * (NHWC), or with the channels first. */
#define GROUP_IN  (CHANNELS / GROUPS)
#define GROUP_OUT (OUT_CHANNELS / GROUPS)

#if NHWC
DEVICE i64 x_at(i64 n, i64 c, i64 y, i64 x)
{
    return ((n * HEIGHT + y) * WIDTH + x) * CHANNELS + c;
}

DEVICE i64 y_at(i64 n, i64 k, i64 y, i64 x)
{
    return ((n * OUT_HEIGHT + y) * OUT_WIDTH + x) * OUT_CHANNELS + k;
}

/* c counts within the group. */
DEVICE i64 weight_at(i64 r, i64 s, i64 c, i64 k)
{
    return ((r * TAP_COLUMNS + s) * GROUP_IN + c) * OUT_CHANNELS + k;
}
#else
DEVICE i64 x_at(i64 n, i64 c, i64 y, i64 x)
{
    return ((n * CHANNELS + c) * HEIGHT + y) * WIDTH + x;
}

DEVICE i64 y_at(i64 n, i64 k, i64 y, i64 x)
{
    return ((n * OUT_CHANNELS + k) * OUT_HEIGHT + y) * OUT_WIDTH + x;
}

/* c counts within the group. */
DEVICE i64 weight_at(i64 r, i64 s, i64 c, i64 k)
{
    return ((k * GROUP_IN + c) * TAP_ROWS + r) * TAP_COLUMNS + s;
}
#endif

/* The gradient of the weights is a matrix whose columns are their last dim in memory. */
#define WEIGHTS         ((i64)TAP_ROWS * TAP_COLUMNS * GROUP_IN * OUT_CHANNELS)
#define LAST_WEIGHT_DIM (NHWC ? OUT_CHANNELS : TAP_COLUMNS)
#define DY_ROWS         ((i64)IMAGES * OUT_HEIGHT)
