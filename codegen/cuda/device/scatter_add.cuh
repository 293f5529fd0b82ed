#include "real.cuh"
/* out[o, index[o, m, i], i] is the sum of src[o, m, i], in the order of m: a thread has part of the
 * elements of a line, and looks at all numbers of that line. */
#if INTEGER
#define SUM          int
#define LOADED(x)    (x)
#define SOURCE       int
#define PLUS_OF(a, b) ((int)((u32)(a) + (u32)(b)))
#else
#define SUM          float
#define LOADED(x)    VALUE(1, x)
#define SOURCE       REAL(1)
#define PLUS_OF(a, b) ((a) + (b))
#endif

DEVICE void scatter_add(const Args a)
{
    const i64 thread = (i64)blockIdx.x * THREADS + threadIdx.x, lines = (i64)OUTER * INNER;
    const i64 line = thread % lines, part = thread / lines;
    const i64 from = part_start(part, LENGTH, PARTS), to = part_start(part + 1, LENGTH, PARTS);
    const i64 own = line / INNER * COUNT * INNER + line % INNER;
    SUM *out = BUF(SUM, 2) + line / INNER * LENGTH * INNER + line % INNER;
    i64 k;
    if (part >= PARTS)
        return;
    for (k = from; k < to; k++)
        out[k * INNER] = 0;
    for (k = 0; k < COUNT; k++) {
        const i64 i = (i64)BUF(const INDEX, 0)[own + k * INNER];
        if (i >= from && i < to)
            out[i * INNER] = PLUS_OF(out[i * INNER], LOADED(BUF(const SOURCE, 1)[own + k * INNER]));
    }
}
