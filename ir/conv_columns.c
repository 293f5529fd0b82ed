/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/conv_columns.h"

#include "ir/op_rules.h"
#include "ir/winograd.h"

enum {
    CHANNELS_LEAST = 256, /* summed over: a place of the kernel is a chain of its own then */
    CHANNELS_MOST = 1024, /* a chain is a block of the product's sums */
    MOVE = 25 /* multiply-adds in the time that moving a float takes: packing U-Net's weights takes
                 0.5 to 0.6 ns a float on a Zen 4 with AVX2, whose core does 46 in a ns */
};
static const double GAIN = 1.1; /* the other form has to be so many times slower */

static double pixels(const Type *image)
{
    return (double)image->dim[0] * (double)image->dim[1] * (double)image->dim[2];
}

/* In multiply-adds for each place and channel of x: columns save the packing of the weights, and in
 * a data gradient have a product for each pixel of dy instead of each of x. */
static bool is_faster(double few, double window, double k)
{
    return GAIN * few * (k + MOVE) < (window + MOVE) * k;
}

static bool is_fit(const Graph *g, const Node *n)
{
    bool forward = n->op == OP_conv2d, strided = false;
    const Type *w = value_type(g, n->in[1]);
    for (int i = 0; i < 2; i++)
        strided |= node_ints_at(n, ATTR_stride, i, 1) > 1;
    return node_flag(n, ATTR_nhwc) && !winograd_of(n) && node_int(n, ATTR_groups, 1) == 1 &&
           (forward || !strided) && w->dim[0] * w->dim[1] > 1 &&
           value_type(g, n->in[0])->dtype == DTYPE_F32 && w->dtype == DTYPE_F32 &&
           w->dim[forward ? 2 : 3] >= CHANNELS_LEAST && w->dim[forward ? 2 : 3] <= CHANNELS_MOST;
}

int64_t conv_columns_floats(const Graph *g, const Node *n)
{
    if (!is_fit(g, n))
        return 0;
    const Type *w = value_type(g, n->in[1]), *y = value_type(g, n->out[0]), *x = y;
    if (n->op != OP_conv2d)
        y = value_type(g, n->in[0]);
    double few = pixels(y), window = n->op == OP_conv2d ? few : pixels(x);
    if (few == 0 || few > (double)w->dim[3] || !is_faster(few, window, (double)w->dim[3]))
        return 0;
    return (int64_t)few * (w->dim[0] * w->dim[1] * w->dim[2] + CONV_COLUMNS_PAD);
}
