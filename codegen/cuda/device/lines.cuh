/* Lines of [OUTER, LENGTH, INNER].  Where the elements of a line lie side by side, a block of
 * PARTIALS threads takes a line at a time, and its sums are those of line.cuh; else every thread
 * takes lines of its own, one element after the other.
 *
 * for (line = FIRST_LINE; line < LINES; line += LINE_STEP)
 *     for (k = FIRST; k < LENGTH; k += STEP)
 *         x[line_start(line) + k * INNER] */
#define LINES (OUTER * INNER)
#if INNER == 1
#define FIRST_LINE ((i64)blockIdx.x)
#define LINE_STEP ((i64)gridDim.x)
#define FIRST ((i64)threadIdx.x)
#define STEP PARTIALS
#define WRITES_FOR_LINE (threadIdx.x == 0)
#define LINE_SUM(mine) join_line_sum(mine)
#define LINE_MAX(mine) join_line_max_keep(mine)
#else
#define FIRST_LINE ((i64)blockIdx.x * PARTIALS + threadIdx.x)
#define LINE_STEP ((i64)gridDim.x * PARTIALS)
#define FIRST 0
#define STEP 1
#define WRITES_FOR_LINE 1
#define LINE_SUM(mine) (mine)
#define LINE_MAX(mine) (mine)
#endif

DEVICE i64 line_start(i64 line)
{
    return line / INNER * LENGTH * INNER + line % INNER;
}
