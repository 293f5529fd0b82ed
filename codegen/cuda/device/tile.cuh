/* A block of 16 x 16 threads makes TILE x TILE results, a thread 4 x 4 of them; panels of STEPS steps
 * of both operands lie in shared memory. */
#define TILE       64
#define STEPS      16
#define PER_THREAD 4

typedef float Panel[STEPS][TILE + 1];
typedef float Sums[PER_THREAD][PER_THREAD];

DEVICE void sums_zero(Sums sums)
{
    for (int i = 0; i < PER_THREAD; i++)
        for (int j = 0; j < PER_THREAD; j++)
            sums[i][j] = 0.0f;
}

DEVICE void add_steps(Sums sums, Panel panel_a, Panel panel_b, int steps)
{
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    for (int k = 0; k < steps; k++)
        for (int i = 0; i < PER_THREAD; i++) {
            const float x = panel_a[k][ty + 16 * i];
            for (int j = 0; j < PER_THREAD; j++)
                sums[i][j] = fmaf(x, panel_b[k][tx + 16 * j], sums[i][j]);
        }
}

/* The sum of all chains so far; the next one begins from zero. */
DEVICE void end_chain(Sums total, Sums chain, int is_first)
{
    for (int i = 0; i < PER_THREAD; i++)
        for (int j = 0; j < PER_THREAD; j++)
            total[i][j] = is_first ? chain[i][j] : total[i][j] + chain[i][j];
    sums_zero(chain);
}
