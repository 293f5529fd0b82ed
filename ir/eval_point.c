/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of element-wise operations, from their mathematical definitions. */
#include "ir/eval_internal.h"

#include <math.h>

/* y[i] = expr in x */
#define UNARY(name, expr)                                                                          \
    void eval_##name(EvalState *s, const Node *n)                                                  \
    {                                                                                              \
        const double *in = eval_in(s, n, 0);                                                       \
        double *out = eval_out(s, n, 0);                                                           \
        for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++) {                         \
            double x = in[i];                                                                      \
            out[i] = expr;                                                                         \
        }                                                                                          \
    }

/* out = expr in a and b, with broadcasting */
#define BINARY(name, expr)                                                                         \
    void eval_##name(EvalState *s, const Node *n)                                                  \
    {                                                                                              \
        const double *in0 = eval_in(s, n, 0), *in1 = eval_in(s, n, 1);                             \
        double *out = eval_out(s, n, 0);                                                           \
        DType dtype = eval_out_type(s, n, 0)->dtype;                                               \
        EvalWalk w = eval_walk(eval_out_type(s, n, 0));                                            \
        eval_walk_broadcast(&w, eval_in_type(s, n, 0));                                            \
        eval_walk_broadcast(&w, eval_in_type(s, n, 1));                                            \
        for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++, eval_walk_next(&w)) {     \
            double a = in0[w.at[0]], b = in1[w.at[1]];                                             \
            out[i] = eval_to_dtype(dtype, expr);                                                   \
        }                                                                                          \
    }

static const double half_sqrt2 = 0.70710678118654752440; /* sqrt(1/2) */
static const double sqrt_2_over_pi = 0.79788456080286535588;
static const double gelu_cubic = 0.044715; /* Hendrycks and Gimpel 2016, tanh form */

static double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static double gelu(double x, bool approx)
{
    if (approx)
        return 0.5 * x * (1 + tanh(sqrt_2_over_pi * (x + gelu_cubic * x * x * x)));
    return 0.5 * x * erfc(-x * half_sqrt2);
}

static double gelu_slope(double x, bool approx)
{
    if (approx) {
        double t = tanh(sqrt_2_over_pi * (x + gelu_cubic * x * x * x));
        return 0.5 * (1 + t) +
               0.5 * x * (1 - t * t) * sqrt_2_over_pi * (1 + 3 * gelu_cubic * x * x);
    }
    return 0.5 * erfc(-x * half_sqrt2) + x * exp(-0.5 * x * x) * 0.5 * sqrt_2_over_pi;
}

static double silu_slope(double x)
{
    double y = sigmoid(x);
    return y * (1 + x * (1 - y));
}

static double softplus(double x, double beta)
{
    return (fmax(beta * x, 0) + log1p(exp(-fabs(beta * x)))) / beta;
}

static double mish_slope(double x)
{
    double t = tanh(softplus(x, 1));
    return t + x * sigmoid(x) * (1 - t * t);
}

/* As in PyTorch since 2.8; before, x/3 + 1/2 held at -3 and 3, too. */
static double hardswish_slope(double x)
{
    return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1;
}

/* NaN stays. */
static double clamp(double x, double least, double most)
{
    x = x < least ? least : x;
    return x > most ? most : x;
}

static double least_of(const Node *n)
{
    return node_float(n, ATTR_min, -(double)INFINITY);
}

static double most_of(const Node *n)
{
    return node_float(n, ATTR_max, (double)INFINITY);
}

static bool is_inside(double x, const Node *n)
{
    double least = least_of(n), most = most_of(n);
    return node_flag(n, ATTR_open) ? x > least && x < most : x >= least && x <= most;
}

/* dy where x > 0, else alpha dy; 0 without alpha, whatever dy is. */
static double relu_grad(double dy, bool positive, const Node *n)
{
    return positive ? dy : node_attr(n, ATTR_alpha) ? dy * node_float(n, ATTR_alpha, 0) : 0;
}

UNARY(neg, -x)
UNARY(abs, fabs(x))
UNARY(sign, x > 0 ? 1.0 : x < 0 ? -1.0 : x) /* NaN and zeros stay */
UNARY(exp, exp(x))
UNARY(log, log(x))
UNARY(sqrt, sqrt(x))
UNARY(rsqrt, 1 / sqrt(x))
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(tanh, tanh(x))
UNARY(sigmoid, sigmoid(x))
UNARY(relu, x <= 0 ? 0.0 : x) /* NaN stays NaN */
UNARY(gelu, gelu(x, node_flag(n, ATTR_approx)))
UNARY(silu, (x * sigmoid(x)))
UNARY(erf, erf(x))
UNARY(leaky_relu, (x > 0 ? x : x * node_float(n, ATTR_alpha, 0)))
UNARY(elu, (x > 0 ? x : node_float(n, ATTR_alpha, 0) * expm1(x)))
UNARY(softplus, softplus(x, node_float(n, ATTR_beta, 0)))
UNARY(mish, (x * tanh(softplus(x, 1))))
UNARY(hardswish, (x * clamp(x + 3, 0, 6) / 6))
UNARY(clamp, clamp(x, least_of(n), most_of(n)))
UNARY(cast, eval_to_dtype(eval_out_type(s, n, 0)->dtype, x))
UNARY(copy, x)

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, (a * b))
BINARY(div, a / b)
BINARY(pow, pow(a, b))
BINARY(maximum, a > b || isnan(a) ? a : b) /* NaN wins, as in PyTorch */
BINARY(minimum, a < b || isnan(a) ? a : b)
BINARY(eq, a == b)
BINARY(ne, a != b)
BINARY(lt, a < b)
BINARY(le, a <= b)
BINARY(gt, a > b)
BINARY(ge, a >= b)

/* a is the gradient of the output, b what the forward saved: y for the first five, x for the rest.
 */
BINARY(relu_grad, relu_grad(a, b > 0, n))
BINARY(tanh_grad, (a * (1 - b * b)))
BINARY(sigmoid_grad, (a * b * (1 - b)))
BINARY(elu_grad, (b <= 0 ? a * (b + node_float(n, ATTR_alpha, 0)) : a))
BINARY(softplus_grad, (a * -expm1(-node_float(n, ATTR_beta, 0) * b)))
BINARY(gelu_grad, (a * gelu_slope(b, node_flag(n, ATTR_approx))))
BINARY(silu_grad, (a * silu_slope(b)))
BINARY(mish_grad, (a * mish_slope(b)))
BINARY(hardswish_grad, (b <= -3 ? 0 : a * hardswish_slope(b)))
BINARY(clamp_grad, (is_inside(b, n) ? a : 0.0))

void eval_relu_mask(EvalState *s, const Node *n)
{
    const double *x = eval_in(s, n, 0);
    int64_t elements = eval_in_count(s, n, 0);
    for (int64_t w = 0; w < eval_out_count(s, n, 0); w++) {
        uint32_t word = 0;
        for (int64_t k = 0; k < 32 && 32 * w + k < elements; k++)
            word |= (uint32_t)(x[32 * w + k] > 0) << k;
        eval_out(s, n, 0)[w] = (int32_t)word;
    }
}

void eval_relu_mask_grad(EvalState *s, const Node *n)
{
    const double *dy = eval_in(s, n, 0), *mask = eval_in(s, n, 1);
    for (int64_t i = 0; i < eval_out_count(s, n, 0); i++) {
        uint32_t word = (uint32_t)(int32_t)mask[i / 32];
        eval_out(s, n, 0)[i] = relu_grad(dy[i], word >> i % 32 & 1, n);
    }
}

void eval_select(EvalState *s, const Node *n)
{
    double *out = eval_out(s, n, 0);
    EvalWalk w = eval_walk(eval_out_type(s, n, 0));
    for (int k = 0; k < 3; k++)
        eval_walk_broadcast(&w, eval_in_type(s, n, k));
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++, eval_walk_next(&w))
        out[i] =
            eval_in(s, n, 0)[w.at[0]] != 0 ? eval_in(s, n, 1)[w.at[1]] : eval_in(s, n, 2)[w.at[2]];
}

uint64_t eval_words(double low, double high)
{
    return (uint32_t)(int32_t)low | (uint64_t)(uint32_t)(int32_t)high << 32;
}

/* Element i is kept with probability 1-p: when its 32 random bits are >= p * 2^32. */
void eval_dropout(EvalState *s, const Node *n)
{
    const double *x = eval_in(s, n, 0), *rng = eval_in(s, n, 1);
    double *y = eval_out(s, n, 0);
    double p = node_float(n, ATTR_p, 0);
    uint64_t key = (uint64_t)node_int(n, ATTR_key, 0);
    uint64_t seed = eval_words(rng[0], rng[1]), step = eval_words(rng[2], rng[3]);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++) {
        bool keep = (double)dropout_bits(seed, step, key, (uint64_t)i) >= p * 0x1p32;
        y[i] = keep ? x[i] / (1 - p) : 0;
    }
}

/* x[.., T, S]: the future (s > t) becomes `value`. */
void eval_causal_mask(EvalState *s, const Node *n)
{
    const Type *t = eval_in_type(s, n, 0);
    int64_t rows = t->dim[t->rank - 2], columns = t->dim[t->rank - 1];
    double value = node_float(n, ATTR_value, -(double)INFINITY);
    const double *x = eval_in(s, n, 0);
    double *y = eval_out(s, n, 0);
    for (int64_t i = 0; i < type_elements(t); i++) {
        int64_t row = i / columns % rows, column = i % columns;
        y[i] = column > row ? value : x[i];
    }
}
