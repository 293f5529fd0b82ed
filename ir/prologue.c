/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/prologue.h"

#include "ir/conv_columns.h"
#include "ir/product.h"
#include "ir/winograd.h"
#include "ir/workspace.h"

/* Of an image, and rows of all: what a kernel reads of them is a table in its code. */
static const int64_t ELEMENTS_MOST = (int64_t)1 << 31, ROWS_MOST = 1 << 20;

enum {
    CHANNELS_LEAST = 8,
    COLUMNS_MOST = 1024, /* of an image; wider ones may be left to the simple kernel */
    STRIDE_MOST = 2,
    WINDOW_MOST = 256 * 1024, /* of a place's window, so that it is no simple kernel, */
    COPY_PAD = 16,            /* with so many floats more for each of its pixels */
    TAPS_MOST = 32            /* of a row of a depthwise kernel */
};

/* What all of a convolution's parts have. */
typedef struct Window {
    const Type *x, *w;
    int64_t stride[2], pad[2], rows, columns; /* of x that the taps of one place reach over */
} Window;

static Window window_of(const Graph *g, const Node *n)
{
    Window v = {.x = value_type(g, n->in[0]),
                .w = value_type(g, n->op == OP_conv2d ? n->in[1] : n->out[0])};
    for (int i = 0; i < 2; i++) {
        v.stride[i] = node_ints_at(n, ATTR_stride, i, 1);
        v.pad[i] = node_ints_at(n, ATTR_padding, i, 0);
    }
    v.rows = (v.w->dim[0] - 1) * node_ints_at(n, ATTR_dilation, 0, 1) + 1;
    v.columns = (v.w->dim[1] - 1) * node_ints_at(n, ATTR_dilation, 1, 1) + 1;
    return v;
}

static bool is_f32(const Graph *g, const Node *n)
{
    bool f32 = value_type(g, n->out[0])->dtype == DTYPE_F32;
    for (int i = 0; i < n->n_in; i++)
        f32 = f32 && value_type(g, n->in[i])->dtype == DTYPE_F32;
    return f32;
}

static bool is_depthwise(const Window *v, int64_t groups)
{
    return groups == v->x->dim[3] && groups == v->w->dim[3] && v->w->dim[1] <= TAPS_MOST;
}

/* Rows of x, images one behind another, from the first to the last that `rows` rows of dy read,
 * wherever in an image they begin. */
static int64_t rows_read(const Window *v, const Type *dy, int64_t rows)
{
    int64_t h = v->x->dim[1], oh = dy->dim[1], most = 0;
    for (int64_t from = 0; from < oh; from++) {
        int64_t last = from + rows - 1;
        int64_t top = from * v->stride[0] - v->pad[0];
        int64_t below = last % oh * v->stride[0] - v->pad[0] + v->rows;
        int64_t n = last / oh * h + (below < h ? below : h) - (top > 0 ? top : 0);
        most = n > most ? n : most;
    }
    return most;
}

/* It reads a padded copy, which bounds what it reads at a time, and no columns. */
static bool is_padded(const Graph *g, const Node *n, const Window *v, int64_t groups)
{
    int64_t c = v->x->dim[3], columns = v->x->dim[2];
    if (groups > 1 || (v->pad[0] == 0 && v->pad[1] == 0) ||
        v->rows * v->columns * (c + COPY_PAD) > WINDOW_MOST)
        return false;
    if (n->op == OP_conv2d)
        return !conv_columns_floats(g, n);
    const Type *dy = value_type(g, n->in[1]);
    int64_t rows = conv_wgrad_band(dy->dim[2], v->stride[1] * (dy->dim[2] - 1) + v->columns, c);
    return dy->dim[2] <= COLUMNS_MOST && rows_read(v, dy, rows) * columns * c <= PROLOGUE_ELEMENTS;
}

bool conv_takes_prologue(const Graph *g, const Node *n)
{
    if ((n->op != OP_conv2d && n->op != OP_conv2d_wgrad) || !node_flag(n, ATTR_nhwc) ||
        winograd_of(n) || node_attr(n, ATTR_library) || node_flag(n, ATTR_pairs) || !is_f32(g, n))
        return false;
    Window v = window_of(g, n);
    int64_t c = v.x->dim[3], columns = v.x->dim[2], groups = node_int(n, ATTR_groups, 1);
    if (type_elements(v.x) > ELEMENTS_MOST || v.x->dim[0] * v.x->dim[1] > ROWS_MOST ||
        type_elements(v.x) < 2 * c || type_elements(value_type(g, n->in[1])) == 0 ||
        type_elements(value_type(g, n->out[0])) == 0 || c < CHANNELS_LEAST)
        return false;
    if (conv_is_pointwise(g, n))
        return PRODUCT_CHAIN * c <= PROLOGUE_ELEMENTS;
    return v.rows * columns * c <= PROLOGUE_TOGETHER && columns <= COLUMNS_MOST &&
           v.stride[0] <= STRIDE_MOST && v.stride[1] <= STRIDE_MOST &&
           (is_depthwise(&v, groups) || is_padded(g, n, &v, groups));
}
