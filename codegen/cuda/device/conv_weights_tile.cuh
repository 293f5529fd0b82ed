#include "real.cuh"
/* The gradient of the weights, for NHWC: tiles of places of one group's kernel x channels of y, as in
 * tile.cuh, of a chunk of the rows of dy, images after one another.  Steps are pixels of dy; every
 * BAND_ROWS rows a new chain begins.  Outside of x there are zeros. */
#include "tile_load.cuh"
#include "tile_chains.cuh"
#define ROWS         (TAP_ROWS * TAP_COLUMNS * GROUP_IN)
#define RUN          (GROUP_IN % 4 == 0 ? 4 : 1) /* rows that are neighbours in x */
#define BAND_PANELS  ((BAND_ROWS * OUT_WIDTH + STEPS - 1) / STEPS)

/* Four rows of the tile, at pixel p of rows of dy from `band` on. */
DEVICE Quad load_x(const REAL(A_BUF) *x, int wide, PLACE band, int p, int row, int group, int is_there)
{
    const PLACE dy_row = band + p / OUT_WIDTH, n = dy_row / OUT_HEIGHT;
    const int oy = (int)(dy_row - n * OUT_HEIGHT), ox = p % OUT_WIDTH;
    const float none = is_there ? 0.0f : NO_STEP_A;
    Quad q = {{none, none, none, none}};
    for (int i = 0; i < 4 && is_there; i += RUN) {
        const int tap = (row + i) / GROUP_IN, c = (row + i) % GROUP_IN;
        const int at_y = oy * STRIDE_Y - PAD_Y + tap / TAP_COLUMNS * DILATION_Y;
        const int at_x = ox * STRIDE_X - PAD_X + tap % TAP_COLUMNS * DILATION_X;
        const PLACE at = ((n * HEIGHT + at_y) * WIDTH + at_x) * CHANNELS + group * GROUP_IN + c;
        const int inside = row + i < ROWS && at_y >= 0 && at_y < HEIGHT && at_x >= 0 && at_x < WIDTH;
        if (RUN == 4)
            q = load_quad(x, IS_BF16(A_BUF), wide, at, 1, inside ? 4 : 0, 0.0f);
        else if (inside)
            q.x[i] = VALUE(A_BUF, x[at]);
    }
    return q;
}

typedef struct Next {
    Quad a[QUADS(TILE_ROWS)], b[QUADS(TILE_COLUMNS)];
} Next;

/* Pixels from p0 on of the rows of dy from `band` on, which are `pixels`. */
DEVICE void load_band(Next *next, const Args a, int wide_a, int wide_b, PLACE band, int pixels, int p0,
                      int row0, int group, int column0)
{
    const int columns = GROUP_OUT - column0;
    for (int e = 0; e < QUADS(TILE_ROWS); e++) {
        const int p = p0 + QUAD_STEP(e, 0, TILE_ROWS), row = row0 + QUAD_ROW(e, 0, TILE_ROWS);
        next->a[e] = load_x(BUF(const REAL(A_BUF), A_BUF), wide_a, band, p, row, group, p < pixels);
    }
    load_panel(next->b, TILE_COLUMNS,
               BUF(const REAL(B_BUF), B_BUF) + ((i64)band * OUT_WIDTH + p0) * OUT_CHANNELS +
                   group * GROUP_OUT + column0,
               IS_BF16(B_BUF), wide_b, 1, OUT_CHANNELS, columns, pixels - p0, NO_STEP_B);
}

DEVICE void conv_weights_tile(const Args a)
{
    SHARED Totals total;
    SHARED PanelA panel_a[TEAMS][2];
    SHARED PanelB panel_b[TEAMS][2];
    const i64 column_tiles = (GROUP_OUT + TILE_COLUMNS - 1) / TILE_COLUMNS;
    const i64 row_tiles = (ROWS + TILE_ROWS - 1) / TILE_ROWS;
    const i64 rest = (i64)blockIdx.x / column_tiles;
    const int column0 = (int)((i64)blockIdx.x % column_tiles) * TILE_COLUMNS;
    const int row0 = (int)(rest % row_tiles) * TILE_ROWS, group = (int)(rest / row_tiles % GROUPS);
    const i64 chunk = rest / row_tiles / GROUPS;
    const PLACE from = (PLACE)part_start(chunk, DY_ROWS, CHUNKS);
    const PLACE to = (PLACE)part_start(chunk + 1, DY_ROWS, CHUNKS);
    const int wide_a = IS_WIDE(BUF(char, A_BUF), IS_BF16(A_BUF));
    const int wide_b = GROUP_OUT % 4 == 0 && IS_WIDE(BUF(char, B_BUF), IS_BF16(B_BUF));
    Next next;
    Sums chain;
    sums_zero(chain);
    /* Every team has a band of the rows from `bands` on. */
    for (PLACE bands = from; bands < to; bands += TEAMS * BAND_ROWS) {
        const PLACE band = bands + TEAM_NUMBER * BAND_ROWS;
        const int rows = band < to ? (int)(to - band < BAND_ROWS ? to - band : BAND_ROWS) : 0;
        const int pixels = rows * OUT_WIDTH;
        for (int i = -1; i < BAND_PANELS; i++) {
            const int turn = i & 1, p0 = i * STEPS;
            if (i >= 0) {
                store_panel(&panel_a[TEAM_NUMBER][turn][0][0], TILE_ROWS, 0, next.a);
                store_panel(&panel_b[TEAM_NUMBER][turn][0][0], TILE_COLUMNS, 0, next.b);
                __syncthreads();
            }
            if (i + 1 < BAND_PANELS)
                load_band(&next, a, wide_a, wide_b, band, pixels, p0 + STEPS, row0, group, column0);
            if (i >= 0)
                add_steps(chain, panel_a[TEAM_NUMBER][turn], panel_b[TEAM_NUMBER][turn]);
        }
        add_chains(total, chain, band < to, band == from);
        if (TEAMS == 1)
            __syncthreads();
    }
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++) {
            const int row = row0 + OWN_ROW(i), column = column0 + OWN_COLUMN(j);
            if (IS_OURS(i, j) && row < ROWS && column < GROUP_OUT)
                STORE_SUM(chunk, row, group * GROUP_OUT + column,
                          from < to ? TOTAL(i, j) : 0.0f);
        }
}
