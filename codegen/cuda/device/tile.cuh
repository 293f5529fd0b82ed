/* A block of 16 x 16 threads makes TILE_ROWS x TILE_COLUMNS results, a thread OWN_ROWS x OWN_COLUMNS
 * of them: quads of four neighbours, 64 apart.  Panels of STEPS steps of both operands lie in shared
 * memory. */
#ifndef ROW_QUADS
#define ROW_QUADS 1
#endif
#define COLUMN_QUADS 1
#define OWN_ROWS     (4 * ROW_QUADS)
#define OWN_COLUMNS  (4 * COLUMN_QUADS)
#define TILE_ROWS    (16 * OWN_ROWS)
#define TILE_COLUMNS (16 * OWN_COLUMNS)
#define STEPS        (16 / ROW_QUADS)
/* Elements of a panel that a thread brings. */
#define LOADS_A (TILE_ROWS * STEPS / 256)
#define LOADS_B (TILE_COLUMNS * STEPS / 256)
/* Row or column i of those of thread t of 16. */
#define OWN(t, i) ((i) / 4 * 64 + (t) * 4 + (i) % 4)

typedef struct ALIGNED(16) Quad {
    float x[4];
} Quad;
/* Neighbouring steps begin in other banks, quads where 16 bytes are read at once. */
typedef float PanelRowA[TILE_ROWS + 4];
typedef float PanelRowB[TILE_COLUMNS + 4];
typedef ALIGNED(16) PanelRowA PanelA[STEPS];
typedef ALIGNED(16) PanelRowB PanelB[STEPS];
typedef float Sums[OWN_ROWS][OWN_COLUMNS];

DEVICE void sums_zero(Sums sums)
{
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            sums[i][j] = 0.0f;
}

DEVICE void add_step(Sums sums, const float *row_a, const float *row_b)
{
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    Quad a[ROW_QUADS], b[COLUMN_QUADS];
    for (int q = 0; q < ROW_QUADS; q++)
        a[q] = *(const Quad *)(row_a + OWN(ty, 4 * q));
    for (int q = 0; q < COLUMN_QUADS; q++)
        b[q] = *(const Quad *)(row_b + OWN(tx, 4 * q));
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            sums[i][j] = fmaf(a[i / 4].x[i % 4], b[j / 4].x[j % 4], sums[i][j]);
}

/* No step beyond `steps`: adding zero would make 0 of -0. */
DEVICE void add_steps(Sums sums, PanelA panel_a, PanelB panel_b, int steps)
{
    if (steps == STEPS)
        for (int k = 0; k < STEPS; k++)
            add_step(sums, panel_a[k], panel_b[k]);
    else
        for (int k = 0; k < steps; k++)
            add_step(sums, panel_a[k], panel_b[k]);
}

/* The sum of all chains so far; the next one begins from zero. */
DEVICE void end_chain(Sums total, Sums chain, int is_first)
{
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            total[i][j] = is_first ? chain[i][j] : total[i][j] + chain[i][j];
    sums_zero(chain);
}
