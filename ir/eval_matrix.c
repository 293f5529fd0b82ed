/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of matrix products and convolutions. */
#include "ir/eval_internal.h"

#include <string.h>

/* A matrix inside a tensor: element (i, j) at data[i * row + j * column]. */
typedef struct Matrix {
    const double *data;
    int64_t row, column;
} Matrix;

static Matrix matrix(const double *data, int64_t stored_columns, bool transposed)
{
    Matrix m = {data, transposed ? 1 : stored_columns, transposed ? stored_columns : 1};
    return m;
}

/* c[m,n] = a[m,k] b[k,n].  Loops j inside k unless b is stored by columns. */
static void multiply(double *c, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k)
{
    for (int64_t i = 0; i < m; i++) {
        double *row = c + i * n;
        const double *left = a.data + i * a.row;
        memset(row, 0, (size_t)n * sizeof *row);
        if (b.column == 1) {
            for (int64_t l = 0; l < k; l++)
                for (int64_t j = 0; j < n; j++)
                    row[j] += left[l * a.column] * b.data[l * b.row + j];
            continue;
        }
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++)
                row[j] += left[l * a.column] * b.data[l * b.row + j * b.column];
    }
}

/* Factor i, in bf16 where the product wants that. */
static double *factor(EvalState *s, const Node *n, int i)
{
    if (!node_flag(n, ATTR_pairs) || eval_in_type(s, n, i)->dtype == DTYPE_BF16)
        return s->data[n->in[i]];
    int64_t count = eval_in_count(s, n, i);
    double *rounded = POOL_ARRAY(s->pool, (size_t)count, double);
    for (int64_t k = 0; k < count; k++)
        rounded[k] = eval_round_bf16(eval_in(s, n, i)[k]);
    return rounded;
}

/* Leading dims of a matmul operand, with its two matrix dims dropped; strides in elements. */
static void batch_strides(const Type *t, const Type *out, int64_t *stride)
{
    int64_t own[TYPE_MAX_RANK];
    eval_strides(t, own);
    int shift = out->rank - t->rank;
    memset(stride, 0, TYPE_MAX_RANK * sizeof *stride);
    for (int i = 0; i < t->rank - 2; i++)
        stride[i + shift] = t->dim[i] == 1 ? 0 : own[i];
}

void eval_matmul(EvalState *s, const Node *n)
{
    const Type *a = eval_in_type(s, n, 0), *b = eval_in_type(s, n, 1), *c = eval_out_type(s, n, 0);
    bool ta = node_flag(n, ATTR_ta), tb = node_flag(n, ATTR_tb);
    int64_t rows = c->dim[c->rank - 2], columns = c->dim[c->rank - 1];
    int64_t inner = a->dim[ta ? a->rank - 2 : a->rank - 1];
    Type batch = *c;
    batch.rank = c->rank - 2;
    EvalWalk w = eval_walk(&batch);
    int64_t stride[TYPE_MAX_RANK];
    batch_strides(a, c, stride);
    eval_walk_strided(&w, stride, 0);
    batch_strides(b, c, stride);
    eval_walk_strided(&w, stride, 0);
    const double *as = factor(s, n, 0), *bs = factor(s, n, 1);
    for (int64_t i = 0; i < type_elements(&batch); i++, eval_walk_next(&w)) {
        Matrix left = matrix(as + w.at[0], a->dim[a->rank - 1], ta);
        Matrix right = matrix(bs + w.at[1], b->dim[b->rank - 1], tb);
        multiply(eval_out(s, n, 0) + i * rows * columns, left, right, rows, columns, inner);
    }
}

/* y[r,o] = sum_k x[r,k] w[o,k] + bias[o] */
void eval_linear(EvalState *s, const Node *n)
{
    const Type *x = eval_in_type(s, n, 0), *w = eval_in_type(s, n, 1), *y = eval_out_type(s, n, 0);
    int64_t inner = x->dim[x->rank - 1], outer = y->dim[y->rank - 1];
    int64_t rows = outer ? type_elements(y) / outer : 0;
    double *out = eval_out(s, n, 0);
    Matrix weight = matrix(factor(s, n, 1), w->dim[1], !node_flag(n, ATTR_in_out));
    multiply(out, matrix(factor(s, n, 0), inner, false), weight, rows, outer, inner);
    if (n->n_in > 2)
        for (int64_t i = 0; i < rows * outer; i++)
            out[i] += eval_in(s, n, 2)[i % outer];
}

/* One convolution seen from all three of its directions. */
typedef struct Conv {
    EvalImage x, y;               /* input and output images */
    int64_t r, s, sk, sc, sr, ss; /* kernel size; weight strides by output channel, channel, r, s */
    int64_t stride[2], padding[2], dilation[2], groups;
} Conv;

static Conv conv_of(const Node *n, const Type *x, const Type *w, const Type *y)
{
    bool nhwc = node_flag(n, ATTR_nhwc);
    Conv c = {.x = eval_image(x, nhwc), .y = eval_image(y, nhwc)};
    EvalImage k = eval_image(w, false); /* OIHW: n = K, c = C/groups */
    c.r = k.h, c.s = k.w, c.sk = k.sn, c.sc = k.sc, c.sr = k.sh, c.ss = k.sw;
    if (nhwc) { /* RSCK */
        const int64_t *d = w->dim;
        c.r = d[0], c.s = d[1];
        c.sr = d[1] * d[2] * d[3], c.ss = d[2] * d[3], c.sc = d[3], c.sk = 1;
    }
    for (int i = 0; i < 2; i++) {
        c.stride[i] = node_ints_at(n, ATTR_stride, i, 1);
        c.padding[i] = node_ints_at(n, ATTR_padding, i, 0);
        c.dilation[i] = node_ints_at(n, ATTR_dilation, i, 1);
    }
    c.groups = node_int(n, ATTR_groups, 1);
    return c;
}

/* What one product of the convolution does to the three elements that it joins:
 * y[b,k,i,j] += x[b,c,h,v] w[k,c,r,q] and its two gradients. */
typedef void ConvTerm(double *x, double *w, double *y);

/* The products of one row of the image with one element of the kernel; columns that fall into the
 * padding are left out. */
static inline void conv_row(const Conv *c, double *x, double *w, double *y, int64_t q,
                            ConvTerm *term)
{
    int64_t v = q * c->dilation[1] - c->padding[1];
    for (int64_t j = 0; j < c->y.w; j++, v += c->stride[1])
        if (v >= 0 && v < c->x.w)
            term(x + v * c->x.sw, w, y + j * c->y.sw);
}

/* Everything that enters row i of output channel k. */
static inline void conv_output_row(const Conv *c, int64_t b, int64_t k, int64_t i, double *x,
                                   double *w, double *y, ConvTerm *term)
{
    int64_t per_group = c->x.c / c->groups, first = k / (c->y.c / c->groups) * per_group;
    for (int64_t ch = 0; ch < per_group; ch++)
        for (int64_t r = 0; r < c->r; r++) {
            int64_t h = i * c->stride[0] - c->padding[0] + r * c->dilation[0];
            for (int64_t q = 0; q < c->s && h >= 0 && h < c->x.h; q++)
                conv_row(c, x + eval_image_at(&c->x, b, first + ch, h, 0),
                         w + k * c->sk + ch * c->sc + r * c->sr + q * c->ss,
                         y + eval_image_at(&c->y, b, k, i, 0), q, term);
        }
}

static inline void conv_each(const Conv *c, double *x, double *w, double *y, ConvTerm *term)
{
    for (int64_t b = 0; b < c->y.n; b++)
        for (int64_t k = 0; k < c->y.c; k++)
            for (int64_t i = 0; i < c->y.h; i++)
                conv_output_row(c, b, k, i, x, w, y, term);
}

static void term_y(double *x, double *w, double *y)
{
    *y += *x * *w;
}
static void term_x(double *x, double *w, double *y)
{
    *x += *y * *w;
}
static void term_w(double *x, double *w, double *y)
{
    *w += *y * *x;
}

static void clear_output(EvalState *s, const Node *n)
{
    memset(eval_out(s, n, 0), 0, (size_t)eval_out_count(s, n, 0) * sizeof(double));
}

/* Adds the third input, if there is one, to every pixel of the result. */
static void add_bias(EvalState *s, const Node *n)
{
    if (n->n_in < 3)
        return;
    EvalImage y = eval_image(eval_out_type(s, n, 0), node_flag(n, ATTR_nhwc));
    for (int64_t b = 0; b < y.n; b++)
        for (int64_t k = 0; k < y.c; k++)
            for (int64_t i = 0; i < y.h; i++)
                for (int64_t j = 0; j < y.w; j++)
                    eval_out(s, n, 0)[eval_image_at(&y, b, k, i, j)] += eval_in(s, n, 2)[k];
}

void eval_conv2d(EvalState *s, const Node *n)
{
    Conv c = conv_of(n, eval_in_type(s, n, 0), eval_in_type(s, n, 1), eval_out_type(s, n, 0));
    clear_output(s, n);
    conv_each(&c, factor(s, n, 0), factor(s, n, 1), eval_out(s, n, 0), term_y);
    add_bias(s, n);
}

/* (dy, w) -> dx */
void eval_conv2d_dgrad(EvalState *s, const Node *n)
{
    Conv c = conv_of(n, eval_out_type(s, n, 0), eval_in_type(s, n, 1), eval_in_type(s, n, 0));
    clear_output(s, n);
    conv_each(&c, eval_out(s, n, 0), factor(s, n, 1), factor(s, n, 0), term_x);
}

/* The convolution whose data gradient it is makes images at least as large as x when there is
 * output padding; their further pixels meet nothing. */
void eval_deconv2d(EvalState *s, const Node *n)
{
    eval_conv2d_dgrad(s, n);
    add_bias(s, n);
}

/* (x, dy) -> dw */
void eval_conv2d_wgrad(EvalState *s, const Node *n)
{
    Conv c = conv_of(n, eval_in_type(s, n, 0), eval_out_type(s, n, 0), eval_in_type(s, n, 1));
    clear_output(s, n);
    conv_each(&c, factor(s, n, 0), eval_out(s, n, 0), factor(s, n, 1), term_w);
}
