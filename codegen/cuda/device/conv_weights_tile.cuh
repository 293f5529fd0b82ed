#include "real.cuh"
/* The gradient of the weights, for NHWC: tiles of places of one group's kernel x channels of y, as in
 * tile.cuh, of a chunk of the rows of dy, images after one another.  Steps are pixels of dy; every
 * BAND_ROWS rows a new chain begins.  Outside of x there are zeros. */
#define ROWS  (TAP_ROWS * TAP_COLUMNS * GROUP_IN)

/* Both panels are as wide: TILE_ROWS == TILE_COLUMNS.  Pixels from p0 on of the rows of dy from `band` on; row: a place of the kernel and a channel. */
DEVICE void load_band(PanelA panel_a, PanelB panel_b, const REAL(A_BUF) *x, const REAL(B_BUF) *dy,
                      i64 band, int pixels, int p0, int row, int group, int column)
{
    const int at = threadIdx.x % TILE_COLUMNS, c = row % GROUP_IN;
    const int s = row / GROUP_IN % TAP_COLUMNS, r = row / GROUP_IN / TAP_COLUMNS;
    for (int i = 0; i < LOADS_B; i++) {
        const int k = threadIdx.x / TILE_COLUMNS + 256 / TILE_COLUMNS * i, p = p0 + k;
        const i64 dy_row = band + p / OUT_WIDTH, n = dy_row / OUT_HEIGHT;
        const int oy = (int)(dy_row - n * OUT_HEIGHT), ox = p % OUT_WIDTH;
        const int at_y = oy * STRIDE_Y - PAD_Y + r * DILATION_Y;
        const int at_x = ox * STRIDE_X - PAD_X + s * DILATION_X;
        const int inside = p < pixels && row < ROWS && at_y >= 0 && at_y < HEIGHT && at_x >= 0 &&
                           at_x < WIDTH;
        panel_a[k][at] = inside ? VALUE(A_BUF, x[x_at(n, group * GROUP_IN + c, at_y, at_x)]) : 0.0f;
        panel_b[k][at] = p < pixels && column < GROUP_OUT
                             ? VALUE(B_BUF, dy[y_at(n, group * GROUP_OUT + column, oy, ox)])
                             : 0.0f;
    }
}

DEVICE void conv_weights_tile(const Args a)
{
    SHARED PanelA panel_a;
    SHARED PanelB panel_b;
    const i64 column_tiles = (GROUP_OUT + TILE_COLUMNS - 1) / TILE_COLUMNS, row_tiles = (ROWS + TILE_ROWS - 1) / TILE_ROWS;
    const i64 rest = (i64)blockIdx.x / column_tiles;
    const int column0 = (int)((i64)blockIdx.x % column_tiles) * TILE_COLUMNS;
    const int row0 = (int)(rest % row_tiles) * TILE_ROWS, group = (int)(rest / row_tiles % GROUPS);
    const i64 chunk = rest / row_tiles / GROUPS;
    const i64 from = part_start(chunk, DY_ROWS, CHUNKS), to = part_start(chunk + 1, DY_ROWS, CHUNKS);
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16, at = threadIdx.x % TILE_COLUMNS;
    Sums total, chain;
    sums_zero(total);
    sums_zero(chain);
    for (i64 band = from; band < to; band += BAND_ROWS) {
        const int pixels = (int)(to - band < BAND_ROWS ? to - band : BAND_ROWS) * OUT_WIDTH;
        for (int p0 = 0; p0 < pixels; p0 += STEPS) {
            load_band(panel_a, panel_b, BUF(const REAL(A_BUF), A_BUF), BUF(const REAL(B_BUF), B_BUF), band,
                      pixels, p0, row0 + at, group, column0 + at);
            __syncthreads();
            add_steps(chain, panel_a, panel_b, pixels - p0 < STEPS ? pixels - p0 : STEPS);
            __syncthreads();
        }
        end_chain(total, chain, band == from);
    }
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const int row = row0 + OWN(ty, i), column = column0 + OWN(tx, j);
            if (row < ROWS && column < GROUP_OUT)
                STORE_SUM(chunk, row, group * GROUP_OUT + column, total[i][j]);
        }
}
