#include "real.cuh"
/* y, or, where TRANSPOSED, the gradient of x, for NHWC: tiles of pixels x channels of one group, as
 * in tile.cuh.  A stride cuts the gradient into phases of pixels that the same places of the kernel
 * reach; a tile is of one phase.  A pixel's step is one tap of the source and one of its channels;
 * outside of the source there are zeros. */
#include "conv_sides.cuh"
#if ROW_CHAINS || PLACE_CHAINS
#include "tile_chains.cuh"
#else
#define TOTAL(i, j) chain[i][j]
#endif

#define FAR_OUTSIDE  (-(1 << 30))
/* Elements of a panel that a thread brings. */
#define LOADS_A (TILE_ROWS * STEPS / TEAM)
#define LOADS_B (TILE_COLUMNS * STEPS / TEAM)

/* The channels of the source under one tap: the tap's place, and the channel. */
typedef struct Step {
    int y, x;       /* places from the pixel's first tap */
    int r, s;       /* in the kernel */
    int c, is_real; /* of the group; the chain has that many steps */
} Step;

/* Step k; its chain ends before step `end`. */
DEVICE Step step_at(const Axis *ay, const Axis *ax, int k, int end)
{
    const int tap = k / SOURCE_GROUP, ty = ax->taps ? tap / ax->taps : 0, tx = tap - ty * ax->taps;
    Step step;
    step.y = ty * ay->tap_step;
    step.x = tx * ax->tap_step;
    step.r = ay->weight_first + ty * ay->weight_step;
    step.s = ax->weight_first + tx * ax->weight_step;
    step.c = k % SOURCE_GROUP;
    step.is_real = k < end;
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
                         const Axis *ax, int k0, int end, int group, int column0)
{
    (void)ay, (void)ax, (void)k0, (void)end;
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
                         const Axis *ax, int k0, int end, int group, int column0)
{
    const int column = column0 + WEIGHT_COLUMN(0);
    (void)unused;
    for (int i = 0; i < LOADS_B; i++) {
        const Step step = step_at(ay, ax, k0 + WEIGHT_STEP(i), end);
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

/* The pixels of which this thread brings elements, and what it brings. */
typedef struct Pixels {
    PLACE image[LOADS_A];
    int top[LOADS_A], left[LOADS_A];
} Pixels;
typedef struct Next {
    float a[LOADS_A], b[LOADS_B];
} Next;

/* The panels at step k of a chain that ends before step `end`. */
DEVICE void load_panels(Next *next, const Args a, const Pixels *pixels, const Axis *ay, const Axis *ax,
                        int k, int end, int group, int column0)
{
    const Step step = step_at(ay, ax, k + PIXEL_STEP, end);
    load_pixels(next->a, BUF(const REAL(A_BUF), A_BUF), &step, pixels->image, pixels->top,
                pixels->left);
    load_weights(next->b, BUF(const REAL(B_BUF), B_BUF), &step, ay, ax, k, end, group, column0);
}

DEVICE void conv_tile(const Args a)
{
#if ROW_CHAINS || PLACE_CHAINS
    SHARED Totals total;
#endif
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
    const int chain_steps = steps == 0     ? 0 /* a phase that no place of the kernel reaches */
                            : PLACE_CHAINS ? SOURCE_GROUP
                            : ROW_CHAINS   ? ax.taps * SOURCE_GROUP
                                           : steps;
    Pixels of_thread;
    Next next;
    int k = 0, end = chain_steps, turn = 0; /* k: the step of what `next` has; end: of its chain */
    Sums chain;
    if (first >= pixels)
        return;
    sums_zero(chain);
    find_pixels(&ay, &ax, first, group, of_thread.image, of_thread.top, of_thread.left);
    load_panels(&next, a, &of_thread, &ay, &ax, 0, chain_steps, group, column0);
    do {
        for (; k < end; turn ^= 1) {
            for (int i = 0; i < LOADS_A; i++)
                panel_a[turn][PIXEL_STEP][PIXEL_ROW(i)] = next.a[i];
            for (int i = 0; i < LOADS_B; i++)
                panel_b[turn][WEIGHT_STEP(i)][WEIGHT_COLUMN(i)] = next.b[i];
            __syncthreads();
            k = k + STEPS < end ? k + STEPS : end;
            if (k < steps)
                load_panels(&next, a, &of_thread, &ay, &ax, k, k < end ? end : end + chain_steps, group,
                            column0);
            add_steps(chain, panel_a[turn], panel_b[turn]);
        }
#if ROW_CHAINS || PLACE_CHAINS
        add_chains(total, chain, 1, end == chain_steps);
#endif
        end += chain_steps;
    } while (k < steps);
    for (int i = 0; i < OWN_ROWS; i++) {
        const i64 p = first + OWN_ROW(i);
        const i64 row = result_row(&ay, &ax, p);
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const int column = column0 + OWN_COLUMN(j);
            if (p < pixels && column < RESULT_GROUP)
                epilogue(a, row, group * RESULT_GROUP + column,
                         ADD_BIAS(TOTAL(i, j), group * RESULT_GROUP + column));
        }
    }
}
