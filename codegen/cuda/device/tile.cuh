/* A block has TEAMS teams of ROW_THREADS x COLUMN_THREADS threads.  A team makes the sums of a tile of
 * TILE_ROWS x TILE_COLUMNS results, a thread OWN_ROWS x OWN_COLUMNS of them: quads of four neighbours.
 * Panels of STEPS steps of both operands lie in shared memory.  Several teams make different chains of
 * the same results. */
#define STEPS        8
#define TEAM         (ROW_THREADS * COLUMN_THREADS)
#define OWN_ROWS     (4 * ROW_QUADS)
#define OWN_COLUMNS  (4 * COLUMN_QUADS)
#define TILE_ROWS    (ROW_THREADS * OWN_ROWS)
#define TILE_COLUMNS (COLUMN_THREADS * OWN_COLUMNS)

/* The threads of a warp are 4 x 8 of a tile's, which read the fewest numbers at once. */
#define MEMBER       ((int)threadIdx.x % TEAM)
#define TEAM_NUMBER  ((int)threadIdx.x / TEAM)
#if COLUMN_THREADS == 16
#define TY (MEMBER / 64 * 4 + MEMBER % 32 / 8)
#define TX (MEMBER / 32 % 2 * 8 + MEMBER % 8)
#else
#define TY (MEMBER / COLUMN_THREADS)
#define TX (MEMBER % COLUMN_THREADS)
#endif
/* Row i and column j of a thread's. */
#define OWN_ROW(i)    ((i) / 4 * (4 * ROW_THREADS) + TY * 4 + (i) % 4)
#define OWN_COLUMN(j) ((j) / 4 * (4 * COLUMN_THREADS) + TX * 4 + (j) % 4)

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
    Quad a[ROW_QUADS], b[COLUMN_QUADS];
    for (int q = 0; q < ROW_QUADS; q++)
        a[q] = *(const Quad *)(row_a + OWN_ROW(4 * q));
    for (int q = 0; q < COLUMN_QUADS; q++)
        b[q] = *(const Quad *)(row_b + OWN_COLUMN(4 * q));
    for (int i = 0; i < OWN_ROWS; i++)
        for (int j = 0; j < OWN_COLUMNS; j++)
            sums[i][j] = fmaf(a[i / 4].x[i % 4], b[j / 4].x[j % 4], sums[i][j]);
}

/* A step that is not there has -0 in one panel and 0 in the other: their product, -0, changes no sum. */
#define NO_STEP_A (-0.0f)
#define NO_STEP_B 0.0f

DEVICE void add_steps(Sums sums, PanelA panel_a, PanelB panel_b)
{
    UNROLL
    for (int k = 0; k < STEPS; k++)
        add_step(sums, panel_a[k], panel_b[k]);
}
