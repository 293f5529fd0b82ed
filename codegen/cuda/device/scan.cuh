#include "real.cuh"
/* Sums and products along the lines of [OUTER, LENGTH, INNER], a thread a line, in the order and
 * with the bits of codegen/cpu/reduce/scan.c. */
#if INTEGER
typedef i64 Sum;
#define ELEMENT(k)  int
#define LOADED(k, x) ((Sum)(x))
#define STORED(k, v) ((int)(v))
#else
typedef double Sum;
#define ELEMENT(k)  REAL(k)
#define LOADED(k, x) ((Sum)VALUE(k, x))
#define STORED(k, v) OF(k, (float)(v))
#endif

#define LINE  ((i64)blockIdx.x * THREADS + threadIdx.x)
#define LINES ((i64)OUTER * INNER)
#define START (LINE / INNER * LENGTH * INNER + LINE % INNER)

/* x, y */
DEVICE void cumulate(const Args a)
{
    const ELEMENT(0) *x = BUF(const ELEMENT(0), 0) + START;
    ELEMENT(1) *y = BUF(ELEMENT(1), 1) + START;
    Sum sum = PRODUCT;
    i64 i;
    if (LINE >= LINES)
        return;
    for (i = 0; i < LENGTH; i++) {
        const i64 at = (REVERSE ? LENGTH - 1 - i : i) * INNER;
        const Sum before = sum, v = LOADED(0, x[at]);
        sum = PRODUCT ? before * v : before + v;
        y[at] = STORED(1, EXCLUSIVE ? before : sum);
    }
}

#if !INTEGER
/* dy, x, y, dx */
DEVICE void cumprod_grad(const Args a)
{
    const REAL(0) *dy = BUF(const REAL(0), 0) + START;
    const REAL(1) *x = BUF(const REAL(1), 1) + START;
    const REAL(2) *y = BUF(const REAL(2), 2) + START;
    REAL(3) *dx = BUF(REAL(3), 3) + START;
    Sum rest = 0;
    i64 i;
    if (LINE >= LINES)
        return;
    for (i = LENGTH - 1; i >= 0; i--) {
        const Sum sum = LOADED(0, dy[i * INNER]) + rest;
        const Sum before = i > 0 ? LOADED(2, y[(i - 1) * INNER]) : 1;
        rest = LOADED(1, x[i * INNER]) * sum;
        dx[i * INNER] = STORED(3, sum * before);
    }
}

/* dy, x, dx */
DEVICE void prod_grad(const Args a)
{
    const REAL(1) *x = BUF(const REAL(1), 1) + START;
    REAL(2) *dx = BUF(REAL(2), 2) + START;
    Sum product = 1;
    i64 zeros = 0, i;
    if (LINE >= LINES)
        return;
    for (i = 0; i < LENGTH; i++) {
        const Sum v = LOADED(1, x[i * INNER]);
        zeros += v == 0;
        product = v == 0 ? product : product * v;
    }
    product = LOADED(0, BUF(const REAL(0), 0)[LINE]) * product;
    for (i = 0; i < LENGTH; i++) {
        const Sum v = LOADED(1, x[i * INNER]), own = zeros == 1 && v == 0 ? product : 0;
        dx[i * INNER] = STORED(2, zeros == 0 ? product / v : own);
    }
}
#endif

/* x, y */
DEVICE void prod(const Args a)
{
    const ELEMENT(0) *x = BUF(const ELEMENT(0), 0) + START;
    Sum product = 1;
    i64 i;
    if (LINE >= LINES)
        return;
    for (i = 0; i < LENGTH; i++)
        product = product * LOADED(0, x[i * INNER]);
    BUF(ELEMENT(1), 1)[LINE] = STORED(1, product);
}
