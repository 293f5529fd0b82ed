/* Squares of SQUARE x SQUARE elements.  Along `lead` elements are neighbours in the input, along
 * `last` in the output. */
#define SQUARE 32

typedef struct Square {
    i64 from, to;   /* first element */
    i64 lead, last; /* places of the first element in the two dims */
} Square;

DEVICE void transpose(const Args a, const Square s)
{
    SHARED ELEMENT tile[SQUARE][SQUARE + 1];
    const int x = threadIdx.x % SQUARE, y = threadIdx.x / SQUARE, rows = 256 / SQUARE;
    const ELEMENT *from = BUF(const ELEMENT, 0) + s.from;
    ELEMENT *to = BUF(ELEMENT, 1) + s.to;
    for (int i = y; i < SQUARE; i += rows)
        if (s.lead + x < LEAD && s.last + i < LAST)
            tile[i][x] = from[x + i * (i64)IN_STEP];
    __syncthreads();
    for (int i = y; i < SQUARE; i += rows)
        if (s.last + x < LAST && s.lead + i < LEAD)
            to[x + i * (i64)OUT_STEP] = tile[x][i];
}

