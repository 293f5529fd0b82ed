/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of reductions. */
#include "ir/eval_internal.h"

#include <math.h>

/* A walk over the input whose operand 0 is the output element it is reduced into (stride 0 along
 * the reduced axes, whether or not the output keeps them). */
static EvalWalk reduce_walk(const EvalState *s, const Node *n, int64_t *per_output)
{
    const Type *t = eval_in_type(s, n, 0);
    int count;
    const int64_t *axes = node_ints(n, ATTR_axes, &count);
    bool reduced[TYPE_MAX_RANK] = {false};
    for (int i = 0; i < t->rank; i++)
        reduced[i] = node_attr(n, ATTR_axes) == NULL;
    for (int i = 0; i < count; i++)
        reduced[axes[i]] = true;
    int64_t stride[TYPE_MAX_RANK] = {0}, step = 1;
    *per_output = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = reduced[i] ? 0 : step;
        *(reduced[i] ? per_output : &step) *= t->dim[i];
    }
    EvalWalk w = eval_walk(t);
    eval_walk_strided(&w, stride, 0);
    return w;
}

static double join_sum(double a, double b)
{
    return a + b;
}
static double join_max(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

/* Returns how many elements each output joins. */
static int64_t reduce(EvalState *s, const Node *n, double start, double (*join)(double, double))
{
    int64_t per_output;
    EvalWalk w = reduce_walk(s, n, &per_output);
    const double *x = eval_in(s, n, 0);
    double *y = eval_out(s, n, 0);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++)
        y[i] = start;
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++, eval_walk_next(&w))
        y[w.at[0]] = join(y[w.at[0]], x[i]);
    return per_output;
}

void eval_sum(EvalState *s, const Node *n)
{
    reduce(s, n, 0, join_sum);
}

void eval_mean(EvalState *s, const Node *n)
{
    double count = (double)reduce(s, n, 0, join_sum);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++)
        eval_out(s, n, 0)[i] /= count;
}

void eval_reduce_max(EvalState *s, const Node *n)
{
    reduce(s, n, -(double)INFINITY, join_max);
}

void eval_sumsq(EvalState *s, const Node *n)
{
    const double *x = eval_in(s, n, 0);
    double sum = 0;
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++)
        sum += x[i] * x[i];
    eval_out(s, n, 0)[0] = sum;
}

/* The first largest along the axis (a NaN counts as largest). */
void eval_argmax(EvalState *s, const Node *n)
{
    EvalAxis a = eval_axis(eval_in_type(s, n, 0), n, -1);
    for (int64_t o = 0; o < a.outer; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const double *x = eval_in(s, n, 0) + o * a.length * a.inner + i;
            int64_t best = 0;
            for (int64_t k = 1; k < a.length; k++)
                if (x[k * a.inner] > x[best * a.inner] ||
                    (isnan(x[k * a.inner]) && !isnan(x[best * a.inner])))
                    best = k;
            eval_out(s, n, 0)[o * a.inner + i] = (double)best;
        }
}

/* Where element 0 of line i of [outer, length, inner] is. */
static int64_t line_start(const EvalAxis *a, int64_t i)
{
    return i / a->inner * a->length * a->inner + i % a->inner;
}

static double round_to_output(EvalState *s, const Node *n, double v)
{
    return eval_to_dtype(eval_out_type(s, n, 0)->dtype, v);
}

/* Integers that grow too large wrap around, as they do in compiled code. */
static double wrapped(uint32_t bits)
{
    return (double)(int32_t)bits;
}

static uint32_t word(double integer)
{
    return (uint32_t)(int32_t)integer;
}

static double join_sum_i32(double a, double b)
{
    return wrapped(word(a) + word(b));
}

static double join_product_i32(double a, double b)
{
    return wrapped(word(a) * word(b));
}

/* Every result from its own elements: those before it, those behind it, itself or not. */
static void cumulate(EvalState *s, const Node *n, double start, double (*join)(double, double))
{
    EvalAxis a = eval_axis(eval_in_type(s, n, 0), n, -1);
    bool reverse = node_flag(n, ATTR_reverse), exclusive = node_flag(n, ATTR_exclusive);
    for (int64_t line = 0; line < a.outer * a.inner; line++) {
        const double *x = eval_in(s, n, 0) + line_start(&a, line);
        double *y = eval_out(s, n, 0) + line_start(&a, line), sum = start;
        for (int64_t i = 0; i < a.length; i++) {
            int64_t k = (reverse ? a.length - 1 - i : i) * a.inner;
            double with = join(sum, x[k]);
            y[k] = round_to_output(s, n, exclusive ? sum : with);
            sum = with;
        }
    }
}

static double join_product(double a, double b)
{
    return a * b;
}

void eval_cumsum(EvalState *s, const Node *n)
{
    cumulate(s, n, 0, eval_out_type(s, n, 0)->dtype == DTYPE_I32 ? join_sum_i32 : join_sum);
}

static double (*product_join(EvalState *s, const Node *n))(double, double)
{
    return eval_out_type(s, n, 0)->dtype == DTYPE_I32 ? join_product_i32 : join_product;
}

void eval_cumprod(EvalState *s, const Node *n)
{
    cumulate(s, n, 1, product_join(s, n));
}

/* (dy, x, y): dx[i] is what of y[j] = y[i-1] x[i] x[i+1] .. x[j] remains without x[i]. */
void eval_cumprod_grad(EvalState *s, const Node *n)
{
    EvalAxis a = eval_axis(eval_in_type(s, n, 0), n, -1);
    for (int64_t line = 0; line < a.outer * a.inner; line++) {
        int64_t start = line_start(&a, line);
        const double *dy = eval_in(s, n, 0) + start, *x = eval_in(s, n, 1) + start;
        const double *y = eval_in(s, n, 2) + start;
        for (int64_t i = 0; i < a.length; i++) {
            double product = i > 0 ? y[(i - 1) * a.inner] : 1, sum = 0;
            for (int64_t j = i; j < a.length; j++) {
                product *= j > i ? x[j * a.inner] : 1;
                sum += dy[j * a.inner] * product;
            }
            eval_out(s, n, 0)[start + i * a.inner] = sum;
        }
    }
}

static double product_of(const double *x, const EvalAxis *a, int64_t but,
                         double (*join)(double, double))
{
    double product = 1;
    for (int64_t k = 0; k < a->length; k++)
        product = k != but ? join(product, x[k * a->inner]) : product;
    return product;
}

void eval_prod(EvalState *s, const Node *n)
{
    EvalAxis a = eval_axis(eval_in_type(s, n, 0), n, -1);
    for (int64_t line = 0; line < a.outer * a.inner; line++)
        eval_out(s, n, 0)[line] = round_to_output(
            s, n, product_of(eval_in(s, n, 0) + line_start(&a, line), &a, -1, product_join(s, n)));
}

/* (dy, x): dy times the product of the other elements */
void eval_prod_grad(EvalState *s, const Node *n)
{
    EvalAxis a = eval_axis(eval_in_type(s, n, 1), n, -1);
    for (int64_t line = 0; line < a.outer * a.inner; line++) {
        int64_t start = line_start(&a, line);
        for (int64_t k = 0; k < a.length; k++)
            eval_out(s, n, 0)[start + k * a.inner] =
                eval_in(s, n, 0)[line] * product_of(eval_in(s, n, 1) + start, &a, k, join_product);
    }
}
