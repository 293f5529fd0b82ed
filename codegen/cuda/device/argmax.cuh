#include "real.cuh"
/* The first of the largest elements of every line. */
DEVICE void argmax(const Args a)
{
    i64 line;
    for (line = FIRST_LINE; line < LINES; line += LINE_STEP) {
        const i64 best = first_largest(BUF(const REAL(0), 0) + line_start(line), 1);
        if (WRITES_FOR_LINE)
            BUF(int, 1)[line] = (int)best;
    }
}
