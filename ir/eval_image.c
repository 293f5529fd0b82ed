/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of pooling. */
#include "ir/eval_internal.h"

#include <math.h>
#include <string.h>

/* Forward input x and output y of a pooling, and its window. */
typedef struct PoolWindow {
    EvalImage x, y;
    int64_t kernel[2], stride[2], padding[2];
    bool count_pad;
} PoolWindow;

static PoolWindow window_of(const Node *n, const Type *x, const Type *y)
{
    bool nhwc = node_flag(n, ATTR_nhwc);
    PoolWindow p = {.x = eval_image(x, nhwc),
                    .y = eval_image(y, nhwc),
                    .count_pad = node_flag(n, ATTR_count_pad)};
    for (int i = 0; i < 2; i++) {
        p.kernel[i] = node_ints_at(n, ATTR_kernel, i, 1);
        p.stride[i] = node_ints_at(n, ATTR_stride, i, p.kernel[i]);
        p.padding[i] = node_ints_at(n, ATTR_padding, i, 0);
    }
    return p;
}

/* The part of the image under output (i, j): rows [h0, h1), columns [w0, w1); and the size of the
 * window with its padding, which in ceil mode ends at the padded border. */
typedef struct Span2 {
    int64_t h0, h1, w0, w1, padded_size;
} Span2;

static void span1(const PoolWindow *p, int axis, int64_t size, int64_t i, int64_t *begin,
                  int64_t *end, int64_t *padded)
{
    int64_t first = i * p->stride[axis] - p->padding[axis];
    int64_t last = first + p->kernel[axis];
    if (last > size + p->padding[axis])
        last = size + p->padding[axis];
    *padded = last - first;
    *begin = first < 0 ? 0 : first;
    *end = last > size ? size : last;
}

static Span2 span_of(const PoolWindow *p, int64_t i, int64_t j)
{
    Span2 a;
    int64_t rows, columns;
    span1(p, 0, p->x.h, i, &a.h0, &a.h1, &rows);
    span1(p, 1, p->x.w, j, &a.w0, &a.w1, &columns);
    a.padded_size = rows * columns;
    return a;
}

/* Where the window of one output lies. */
typedef struct WindowPlace {
    int64_t b, c;
    Span2 span;
    int64_t at_y; /* offset of the output */
} WindowPlace;

static int64_t at_x(const PoolWindow *p, const WindowPlace *a, int64_t h, int64_t w)
{
    return eval_image_at(&p->x, a->b, a->c, h, w);
}

/* Visits the outputs; each rule says what one window does. */
typedef void WindowRule(const PoolWindow *p, const WindowPlace *a, const double *const *in,
                        double *out);

static void each_window(const PoolWindow *p, const double *const *in, double *out, WindowRule *rule)
{
    for (int64_t b = 0; b < p->y.n; b++)
        for (int64_t c = 0; c < p->y.c; c++)
            for (int64_t i = 0; i < p->y.h; i++)
                for (int64_t j = 0; j < p->y.w; j++) {
                    WindowPlace a = {b, c, span_of(p, i, j), eval_image_at(&p->y, b, c, i, j)};
                    rule(p, &a, in, out);
                }
}

/* Offset of the first maximum under the window, or, as PyTorch, of the last NaN; -1 when it is all
 * padding. */
static int64_t window_argmax(const PoolWindow *p, const WindowPlace *a, const double *x)
{
    int64_t best = -1;
    for (int64_t h = a->span.h0; h < a->span.h1; h++)
        for (int64_t w = a->span.w0; w < a->span.w1; w++) {
            int64_t at = at_x(p, a, h, w);
            if (best < 0 || x[at] > x[best] || isnan(x[at]))
                best = at;
        }
    return best;
}

static void max_window(const PoolWindow *p, const WindowPlace *a, const double *const *in,
                       double *out)
{
    int64_t best = window_argmax(p, a, in[0]);
    out[a->at_y] = best < 0 ? -(double)INFINITY : in[0][best];
}

/* in: dy, x */
static void max_grad_window(const PoolWindow *p, const WindowPlace *a, const double *const *in,
                            double *out)
{
    int64_t best = window_argmax(p, a, in[1]);
    if (best >= 0)
        out[best] += in[0][a->at_y];
}

/* The window's elements are numbered from the first one inside the image, kernel[1] a row. */
static void index_window(const PoolWindow *p, const WindowPlace *a, const double *const *in,
                         double *out)
{
    int64_t best = window_argmax(p, a, in[0]);
    out[a->at_y] = 0;
    for (int64_t h = a->span.h0; h < a->span.h1; h++)
        for (int64_t w = a->span.w0; w < a->span.w1; w++)
            if (at_x(p, a, h, w) == best)
                out[a->at_y] = (double)((h - a->span.h0) * p->kernel[1] + w - a->span.w0);
}

/* in: dy, index */
static void index_grad_window(const PoolWindow *p, const WindowPlace *a, const double *const *in,
                              double *out)
{
    int64_t index = (int64_t)in[1][a->at_y];
    int64_t h = a->span.h0 + index / p->kernel[1], w = a->span.w0 + index % p->kernel[1];
    if (h < a->span.h1 && w < a->span.w1)
        out[at_x(p, a, h, w)] += in[0][a->at_y];
}

static double window_divisor(const PoolWindow *p, Span2 a)
{
    return (double)(p->count_pad ? a.padded_size : (a.h1 - a.h0) * (a.w1 - a.w0));
}

static void avg_window(const PoolWindow *p, const WindowPlace *a, const double *const *in,
                       double *out)
{
    double sum = 0;
    for (int64_t h = a->span.h0; h < a->span.h1; h++)
        for (int64_t w = a->span.w0; w < a->span.w1; w++)
            sum += in[0][at_x(p, a, h, w)];
    out[a->at_y] = sum / window_divisor(p, a->span);
}

static void avg_grad_window(const PoolWindow *p, const WindowPlace *a, const double *const *in,
                            double *out)
{
    double part = in[0][a->at_y] / window_divisor(p, a->span);
    for (int64_t h = a->span.h0; h < a->span.h1; h++)
        for (int64_t w = a->span.w0; w < a->span.w1; w++)
            out[at_x(p, a, h, w)] += part;
}

static void pool_forward(EvalState *s, const Node *n, WindowRule *rule)
{
    PoolWindow p = window_of(n, eval_in_type(s, n, 0), eval_out_type(s, n, 0));
    const double *in[1] = {eval_in(s, n, 0)};
    each_window(&p, in, eval_out(s, n, 0), rule);
}

static void pool_backward(EvalState *s, const Node *n, WindowRule *rule)
{
    PoolWindow p = window_of(n, eval_out_type(s, n, 0), eval_in_type(s, n, 0));
    const double *in[2] = {eval_in(s, n, 0), n->n_in > 1 ? eval_in(s, n, 1) : NULL};
    memset(eval_out(s, n, 0), 0, (size_t)eval_out_count(s, n, 0) * sizeof(double));
    each_window(&p, in, eval_out(s, n, 0), rule);
}

void eval_maxpool(EvalState *s, const Node *n)
{
    pool_forward(s, n, max_window);
}
void eval_avgpool(EvalState *s, const Node *n)
{
    pool_forward(s, n, avg_window);
}
void eval_maxpool_grad(EvalState *s, const Node *n)
{
    pool_backward(s, n, max_grad_window);
}
void eval_maxpool_index(EvalState *s, const Node *n)
{
    pool_forward(s, n, index_window);
}
void eval_maxpool_index_grad(EvalState *s, const Node *n)
{
    pool_backward(s, n, index_grad_window);
}
void eval_avgpool_grad(EvalState *s, const Node *n)
{
    pool_backward(s, n, avg_grad_window);
}
