/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Winograd's transforms of squares of vectors: the same one-dimensional transform of every column
 * and then of every row.
 *
 * F(2, 3) has the points 0, 1, -1 and infinity.  F(4, 3) has 0, a, -a, b, -b and infinity with a =
 * 5/8 and b = 11/8, whose constants are exact but for those of the weights; with the usual 1 and 2
 * the rounding errors of results are twice as large.  With M(x) = x (x^2 - a^2) (x^2 - b^2), row p
 * of the patch's transform is M(x) / (x - p), of the weights' 1, p, p^2 over the derivative of M at
 * p, of the result's 1, p, p^2, p^3.
 *
 * Multiply-adds are fused by name, so that they are the same on every target that has them. */
#include "codegen/cpu/conv/winograd.h"
#include "codegen/jit/jit_short.h"

static const double A = 0.625, B = 1.375;

enum { SIDE_MOST = 6 };

int winograd_stage_from(WinogradStage s, int m)
{
    return s == WINOGRAD_WEIGHTS    ? WINOGRAD_TAPS
           : s == WINOGRAD_GRADIENT ? m
                                    : m + WINOGRAD_TAPS - 1;
}

int winograd_stage_to(WinogradStage s, int m)
{
    return s == WINOGRAD_RESULT ? m : s == WINOGRAD_SUMS ? WINOGRAD_TAPS : m + WINOGRAD_TAPS - 1;
}

/* k * a + c */
static JitValue fused(Jit *j, double k, JitValue a, JitValue c)
{
    return jit_vfma(j, vf(j, k), a, c);
}

static JitValue times(Jit *j, double k, JitValue a)
{
    return mul(j, vf(j, k), a);
}

/* --- F(2, 3) --- */

static void patch_2(Jit *j, const JitValue *d, JitValue *o)
{
    o[0] = sub(j, d[0], d[2]);
    o[1] = add(j, d[1], d[2]);
    o[2] = sub(j, d[2], d[1]);
    o[3] = sub(j, d[1], d[3]);
}

static void weights_2(Jit *j, const JitValue *w, JitValue *o)
{
    JitValue even = times(j, 0.5, add(j, w[0], w[2]));
    o[0] = w[0];
    o[1] = fused(j, 0.5, w[1], even);
    o[2] = fused(j, -0.5, w[1], even);
    o[3] = w[2];
}

static void result_2(Jit *j, const JitValue *p, JitValue *o)
{
    o[0] = add(j, p[0], add(j, p[1], p[2]));
    o[1] = sub(j, sub(j, p[1], p[2]), p[3]);
}

static void gradient_2(Jit *j, const JitValue *d, JitValue *o)
{
    o[0] = d[0];
    o[1] = add(j, d[0], d[1]);
    o[2] = sub(j, d[0], d[1]);
    o[3] = neg(j, d[1]);
}

static void sums_2(Jit *j, const JitValue *p, JitValue *o)
{
    JitValue even = add(j, p[1], p[2]);
    o[0] = fused(j, 0.5, even, p[0]);
    o[1] = times(j, 0.5, sub(j, p[1], p[2]));
    o[2] = fused(j, 0.5, even, p[3]);
}

/* --- F(4, 3) --- */

static void patch_4(Jit *j, const JitValue *d, JitValue *o)
{
    const double a = A * A, b = B * B;
    JitValue even_a = fused(j, -b, d[2], d[4]), odd_a = fused(j, -b, d[1], d[3]);
    JitValue even_b = fused(j, -a, d[2], d[4]), odd_b = fused(j, -a, d[1], d[3]);
    o[0] = fused(j, a * b, d[0], fused(j, -(a + b), d[2], d[4]));
    o[1] = fused(j, A, odd_a, even_a);
    o[2] = fused(j, -A, odd_a, even_a);
    o[3] = fused(j, B, odd_b, even_b);
    o[4] = fused(j, -B, odd_b, even_b);
    o[5] = fused(j, a * b, d[1], fused(j, -(a + b), d[3], d[5]));
}

/* One over the derivative of M at 0, at p = +-A and at p = +-B. */
static const double AT_ZERO = 1 / (A * A * B * B);
static double at_pair(double p, double other)
{
    return 1 / (2 * p * p * (p * p - other * other));
}

static void weights_4(Jit *j, const JitValue *w, JitValue *o)
{
    double a = at_pair(A, B), b = at_pair(B, A);
    JitValue even_a = fused(j, a * A * A, w[2], times(j, a, w[0]));
    JitValue even_b = fused(j, b * B * B, w[2], times(j, b, w[0]));
    o[0] = times(j, AT_ZERO, w[0]);
    o[1] = fused(j, a * A, w[1], even_a);
    o[2] = fused(j, -a * A, w[1], even_a);
    o[3] = fused(j, b * B, w[1], even_b);
    o[4] = fused(j, -b * B, w[1], even_b);
    o[5] = w[2];
}

static void result_4(Jit *j, const JitValue *p, JitValue *o)
{
    JitValue even_a = add(j, p[1], p[2]), odd_a = sub(j, p[1], p[2]);
    JitValue even_b = add(j, p[3], p[4]), odd_b = sub(j, p[3], p[4]);
    o[0] = add(j, p[0], add(j, even_a, even_b));
    o[1] = fused(j, B, odd_b, times(j, A, odd_a));
    o[2] = fused(j, B * B, even_b, times(j, A * A, even_a));
    o[3] = fused(j, B * B * B, odd_b, fused(j, A * A * A, odd_a, p[5]));
}

static void gradient_4(Jit *j, const JitValue *d, JitValue *o)
{
    JitValue even_a = fused(j, A * A, d[2], d[0]), odd_a = fused(j, A * A, d[3], d[1]);
    JitValue even_b = fused(j, B * B, d[2], d[0]), odd_b = fused(j, B * B, d[3], d[1]);
    o[0] = d[0];
    o[1] = fused(j, A, odd_a, even_a);
    o[2] = fused(j, -A, odd_a, even_a);
    o[3] = fused(j, B, odd_b, even_b);
    o[4] = fused(j, -B, odd_b, even_b);
    o[5] = d[3];
}

static void sums_4(Jit *j, const JitValue *p, JitValue *o)
{
    double a = at_pair(A, B), b = at_pair(B, A);
    JitValue even_a = add(j, p[1], p[2]), odd_a = sub(j, p[1], p[2]);
    JitValue even_b = add(j, p[3], p[4]), odd_b = sub(j, p[3], p[4]);
    o[0] = fused(j, AT_ZERO, p[0], fused(j, a, even_a, times(j, b, even_b)));
    o[1] = fused(j, a * A, odd_a, times(j, b * B, odd_b));
    o[2] = fused(j, a * A * A, even_a, fused(j, b * B * B, even_b, p[5]));
}

/* --- squares --- */

typedef void Line(Jit *j, const JitValue *from, JitValue *to);

static Line *line_of(WinogradStage s, int m)
{
    static Line *const of_2[] = {patch_2, weights_2, result_2, gradient_2, sums_2};
    static Line *const of_4[] = {patch_4, weights_4, result_4, gradient_4, sums_4};
    return m == 2 ? of_2[s] : of_4[s];
}

static JitValue load(Jit *j, const WinogradSquare *q, int row, int column, JitValue lanes)
{
    JitValue at = jit_i64(j, row * q->row + column * q->column);
    return lanes ? jit_vload_partial(j, q->p, at, lanes, 0) : jit_vload(j, q->p, at);
}

void winograd_transform(Jit *j, WinogradStage s, int m, const WinogradSquare *from,
                        const WinogradSquare *to, JitValue lanes)
{
    int n_from = winograd_stage_from(s, m), n_to = winograd_stage_to(s, m);
    Line *line = line_of(s, m);
    JitValue half[SIDE_MOST][SIDE_MOST]; /* by row and column */
    for (int c = 0; c < n_from; c++) {
        JitValue in[SIDE_MOST], out[SIDE_MOST];
        for (int r = 0; r < n_from; r++)
            in[r] = load(j, from, r, c, lanes);
        line(j, in, out);
        for (int r = 0; r < n_to; r++)
            half[r][c] = out[r];
    }
    for (int r = 0; r < n_to; r++) {
        JitValue out[SIDE_MOST];
        line(j, half[r], out);
        for (int c = 0; c < n_to; c++)
            jit_vstore(j, to->p, jit_i64(j, r * to->row + c * to->column), out[c]);
    }
}
