#include "real.cuh"
/* y, or, where TRANSPOSED, the gradient of x, for NHWC: tiles of pixels x channels of one group, as
 * in tile.cuh.  A stride cuts the gradient into phases of pixels that the same places of the kernel
 * reach; a tile is of one phase.  A pixel's step is one tap of the source and one of its channels;
 * outside of the source there are zeros. */
#include "conv_sides.cuh"

#define FAR_OUTSIDE  (-(1 << 30))
/* Elements of a panel that a thread brings. */
#define LOADS_A (TILE_ROWS * STEPS / TEAM)
#define LOADS_B (TILE_COLUMNS * STEPS / TEAM)

/* The channels of the source under one tap: the tap's place, and the channel. */
typedef struct Step {
    int y, x;       /* places from the pixel's first tap */
    int r, s;       /* in the kernel */
    int c, is_real; /* of the group; there are that many steps */
} Step;

DEVICE Step step_at(const Axis *ay, const Axis *ax, int k)
{
    const int tap = k / SOURCE_GROUP, ty = ax->taps ? tap / ax->taps : 0, tx = tap - ty * ax->taps;
    Step step;
    step.y = ty * ay->tap_step;
    step.x = tx * ax->tap_step;
    step.r = ay->weight_first + ty * ay->weight_step;
    step.s = ax->weight_first + tx * ax->weight_step;
    step.c = k % SOURCE_GROUP;
    step.is_real = k < ay->taps * ax->taps * SOURCE_GROUP;
    return step;
}

/* Where element i of those that this thread brings lies in the panel of pixels: neighbouring threads
 * take neighbouring steps of a pixel. */
#define PIXEL_STEP    ((int)threadIdx.x % STEPS)
#define PIXEL_ROW(i)  ((int)threadIdx.x / STEPS + TEAM / STEPS * (i))

DEVICE void load_pixels(float *mine, const REAL(A_BUF) *source, const Step *step, const PLACE *image,
                        const int *top, const int *left)
{
    for (int i = 0; i < LOADS_A; i++) {
        const int y = top[i] + step->y, x = left[i] + step->x;
        const int inside =
            step->is_real && y >= 0 && y < SOURCE_HEIGHT && x >= 0 && x < SOURCE_WIDTH;
        const PLACE at = image[i] + ((PLACE)y * SOURCE_WIDTH + x) * SOURCE_CHANNELS + step->c;
        mine[i] = inside ? VALUE(A_BUF, source[at]) : step->is_real ? 0.0f : NO_STEP_A;
    }
}

#if TRANSPOSED
/* Weights of one group and channel of the result lie one after another along the steps. */
#define WEIGHT_STEP(i)   PIXEL_STEP
#define WEIGHT_COLUMN(i) PIXEL_ROW(i)

DEVICE void load_weights(float *mine, const REAL(B_BUF) *weights, const Step *step, const Axis *ay,
                         const Axis *ax, int k0, int group, int column0)
{
    (void)ay, (void)ax, (void)k0;
    for (int i = 0; i < LOADS_B; i++) {
        const int column = column0 + WEIGHT_COLUMN(i);
        mine[i] = step->is_real && column < RESULT_GROUP
                      ? VALUE(B_BUF, weights[weight_at(step->r, step->s, column,
                                                       group * GROUP_OUT + step->c)])
                      : NO_STEP_B;
    }
}
#else
/* Along the channels of the result. */
#define WEIGHT_STEP(i)   ((int)threadIdx.x / TILE_COLUMNS + TEAM / TILE_COLUMNS * (i))
#define WEIGHT_COLUMN(i) ((int)threadIdx.x % TILE_COLUMNS)

DEVICE void load_weights(float *mine, const REAL(B_BUF) *weights, const Step *unused, const Axis *ay,
                         const Axis *ax, int k0, int group, int column0)
{
    const int column = column0 + WEIGHT_COLUMN(0);
    (void)unused;
    for (int i = 0; i < LOADS_B; i++) {
        const Step step = step_at(ay, ax, k0 + WEIGHT_STEP(i));
        mine[i] = step.is_real && column < RESULT_GROUP
                      ? VALUE(B_BUF, weights[weight_at(step.r, step.s, step.c,
                                                       group * GROUP_OUT + column)])
                      : NO_STEP_B;
    }
}
#endif

/* Pixels of the phase from `first` on: rows, columns, images. */
DEVICE void find_pixels(const Axis *ay, const Axis *ax, i64 first, int group, PLACE *image, int *top,
                        int *left)
{
    for (int i = 0; i < LOADS_A; i++) {
        const i64 p = first + PIXEL_ROW(i);
        const i64 row = p / ax->count, n = row / ay->count;
        const int y = (int)(row - n * ay->count), x = (int)(p - row * ax->count);
        image[i] = (PLACE)(n < IMAGES ? n : 0) * SOURCE_HEIGHT * SOURCE_WIDTH * SOURCE_CHANNELS +
                   group * SOURCE_GROUP;
        top[i] = n < IMAGES ? y * ay->source_step + ay->origin : FAR_OUTSIDE;
        left[i] = x * ax->source_step + ax->origin;
    }
}

DEVICE i64 result_row(const Axis *ay, const Axis *ax, i64 p)
{
    const i64 row = p / ax->count, n = row / ay->count;
    const i64 y = ay->first + (row - n * ay->count) * ay->step;
    const i64 x = ax->first + (p - row * ax->count) * ax->step;
    return (n * RESULT_HEIGHT + y) * RESULT_WIDTH + x;
}

DEVICE void conv_tile(const Args a)
{
    SHARED PanelA panel_a[2];
    SHARED PanelB panel_b[2];
    const i64 column_tiles = (RESULT_GROUP + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const i64 tile = (i64)blockIdx.x / column_tiles;
    const int column0 = (int)((i64)blockIdx.x % column_tiles) * TILE_COLUMNS;
    const i64 first = tile % PIXEL_TILES * TILE_ROWS;
    const int group = (int)(tile / PIXEL_TILES % GROUPS), phase = (int)(tile / PIXEL_TILES / GROUPS);
    const Axis ay = axis_y(phase / PHASES_X), ax = axis_x(phase % PHASES_X);
    const i64 pixels = (i64)IMAGES * ay.count * ax.count;
    const int steps = ay.taps * ax.taps * SOURCE_GROUP;
    PLACE image[LOADS_A];
    int top[LOADS_A], left[LOADS_A];
    float next_a[LOADS_A], next_b[LOADS_B];
    Sums sums;
    if (first >= pixels)
        return;
    sums_zero(sums);
    find_pixels(&ay, &ax, first, group, image, top, left);
    for (int k0 = -STEPS; k0 < steps; k0 += STEPS) {
        const int turn = k0 / STEPS & 1;
        if (k0 >= 0) {
            for (int i = 0; i < LOADS_A; i++)
                panel_a[turn][PIXEL_STEP][PIXEL_ROW(i)] = next_a[i];
            for (int i = 0; i < LOADS_B; i++)
                panel_b[turn][WEIGHT_STEP(i)][WEIGHT_COLUMN(i)] = next_b[i];
            __syncthreads();
        }
        if (k0 + STEPS < steps) {
            const Step step = step_at(&ay, &ax, k0 + STEPS + PIXEL_STEP);
            load_pixels(next_a, BUF(const REAL(A_BUF), A_BUF), &step, image, top, left);
            load_weights(next_b, BUF(const REAL(B_BUF), B_BUF), &step, &ay, &ax, k0 + STEPS, group,
                         column0);
        }
        if (k0 >= 0)
            add_steps(sums, panel_a[turn], panel_b[turn]);
    }
    for (int i = 0; i < OWN_ROWS; i++) {
        const i64 p = first + OWN_ROW(i);
        const i64 row = result_row(&ay, &ax, p);
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const int column = column0 + OWN_COLUMN(j);
            if (p < pixels && column < RESULT_GROUP)
                epilogue(a, row, group * RESULT_GROUP + column,
                         ADD_BIAS(sums[i][j], group * RESULT_GROUP + column));
        }
    }
}
