#include "block_sum.cuh"

/* Lines of [OUTER, LENGTH, INNER].  Where the elements of a line lie side by side, LINE_THREADS
 * threads share a line, whose sums are those of line.cuh or runs.cuh; else every thread has a line
 * of its own, one element after the other.  A block has LINES_AT_ONCE lines, this thread that of
 * LINE_OF_BLOCK; as long as BLOCK_LINES is 1, all threads of a block go through
 *
 * for (line = FIRST_LINE; line < LINES; line += LINE_STEP)
 *     for (k = FIRST; k < LENGTH; k += STEP)
 *         x[line_start(line) + k * INNER]
 *
 * and may join sums. */
#define LINES   ((i64)OUTER * INNER)
#define THREADS (BLOCK_LINES * LINE_THREADS)
#if INNER == 1
#define LINES_AT_ONCE   BLOCK_LINES
#define LINE_OF_BLOCK   ((int)threadIdx.x / LINE_THREADS)
#define FIRST           ((i64)LINE_THREAD)
#define STEP            PARTIALS
#define WRITES_FOR_LINE (LINE_THREAD == 0)
#define LINE_SUM(mine)  join_line_sum(mine)
#define LINE_MAX(mine)  join_line_max_keep(mine)
#else
#define LINES_AT_ONCE   THREADS
#define LINE_OF_BLOCK   ((int)threadIdx.x)
#define FIRST           0
#define STEP            1
#define WRITES_FOR_LINE 1
#define LINE_SUM(mine)  (mine)
#define LINE_MAX(mine)  (mine)
#endif
/* Or, for any BLOCK_LINES, through tiles of LINES_AT_ONCE lines; the last may have fewer. */
#define FIRST_TILE ((i64)blockIdx.x * LINES_AT_ONCE)
#define TILE_STEP  ((i64)gridDim.x * LINES_AT_ONCE)
#define FIRST_LINE ((i64)blockIdx.x * LINES_AT_ONCE + LINE_OF_BLOCK)
#define LINE_STEP  ((i64)gridDim.x * LINES_AT_ONCE)

DEVICE i64 line_start(i64 line)
{
    return line / INNER * LENGTH * INNER + line % INNER;
}

BLOCK_SUM(block_count, i64)
