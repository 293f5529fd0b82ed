/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cases past what a block of a device has at a time: tiles, chains, panels, bands and lists.  They
 * are small, so that every run has them. */
#include "op_cases.h"

#include "ir/workspace.h"

static void edge_chains(OpCase *c)
{
    op_normal(c, DIMS(5, 300));
    op_normal(c, DIMS(300, 70));
    op_done(c, OP_matmul, NULL);
}

/* Few results of so many chains that a block makes 8 or 16 of them at once. */
static void edge_many_chains(OpCase *c, int64_t chains)
{
    AttrList attrs = {0};
    int64_t k = op_int(c, 256 * chains + 1, 256 * chains + 100), n = op_coin(c) ? 8 : 9;
    attrs_int(&attrs, ATTR_ta, 1);
    op_normal(c, DIMS(k, n));
    op_normal(c, DIMS(k, 20));
    op_done(c, OP_matmul, &attrs);
}
static void edge_chains_8(OpCase *c)
{
    edge_many_chains(c, 8);
}
static void edge_chains_16(OpCase *c)
{
    edge_many_chains(c, 16);
}

enum { HEADS = 2, ROWS = 70, KEYS = 130, HEAD_WIDTH = 8, MANY_ROWS = 290, MANY_KEYS = 300 };

static void attention_done(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_scale, 0.125);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_causal, 1);
    op_done(c, op, &attrs);
}

static void edge_attention(OpCase *c)
{
    op_normal(c, DIMS(HEADS, ROWS, HEAD_WIDTH));
    op_normal(c, DIMS(HEADS, KEYS, HEAD_WIDTH));
    op_normal(c, DIMS(HEADS, KEYS, HEAD_WIDTH));
    attention_done(c, OP_attention);
}

static void edge_attention_grad(OpCase *c)
{
    enum { SHARING = 2 * HEADS };
    c->bf16 = 0;
    op_normal(c, DIMS(SHARING, ROWS, HEAD_WIDTH));
    op_normal(c, DIMS(SHARING, ROWS, HEAD_WIDTH));
    op_normal(c, DIMS(HEADS, KEYS, HEAD_WIDTH));
    op_normal(c, DIMS(HEADS, KEYS, HEAD_WIDTH));
    op_floats(c, DIMS(SHARING, ROWS), 1, 3);
    op_floats(c, DIMS(SHARING, ROWS), 2, 30);
    attention_done(c, OP_attention_grad);
}

/* Sums of two chains, the first of which ends within a tile; values in two parts of columns. */
static void edge_attention_chains(OpCase *c)
{
    int64_t width = op_coin(c) ? 8 : 5, value_width = op_coin(c) ? 68 : 66;
    op_normal(c, DIMS(1, MANY_ROWS, width));
    op_normal(c, DIMS(1, MANY_KEYS, width));
    op_normal(c, DIMS(1, MANY_KEYS, value_width));
    attention_done(c, OP_attention);
}

static void edge_attention_grad_chains(OpCase *c)
{
    int64_t width = op_coin(c) ? 8 : 5;
    c->bf16 = 0;
    op_normal(c, DIMS(1, MANY_ROWS, 9));
    op_normal(c, DIMS(1, MANY_ROWS, width));
    op_normal(c, DIMS(1, MANY_KEYS, width));
    op_normal(c, DIMS(1, MANY_KEYS, 9));
    op_floats(c, DIMS(1, MANY_ROWS), 1, 3);
    op_floats(c, DIMS(1, MANY_ROWS), 2, 30);
    attention_done(c, OP_attention_grad);
}

static void wgrad_3x3(OpCase *c, Type dy, Type x)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_padding, (const int64_t[]){1, 1}, 2);
    attrs_int(&attrs, ATTR_nhwc, 1);
    attrs_ints(&attrs, ATTR_hw, (const int64_t[]){3, 3}, 2);
    op_normal(c, dy);
    op_normal(c, x);
    op_done(c, OP_conv2d_wgrad, &attrs);
}

/* Rows of dy: two bands and a part of one. */
static void edge_wgrad(OpCase *c, int64_t channels)
{
    wgrad_3x3(c, op_image(true, 3, 20, 12, 12), op_image(true, 3, channels, 12, 12));
}
static void edge_wgrad_tiles(OpCase *c)
{
    edge_wgrad(c, 40);
}
static void edge_wgrad_sums(OpCase *c)
{
    edge_wgrad(c, 8);
}

/* The same of bands, which are a row each. */
static void edge_wgrad_bands(OpCase *c, int64_t rows)
{
    int64_t channels = op_coin(c) ? 8 : 5;
    wgrad_3x3(c, op_image(true, 1, channels, rows, 170), op_image(true, 1, 17, rows, 170));
}
static void edge_wgrad_bands_8(OpCase *c)
{
    edge_wgrad_bands(c, 9);
}
static void edge_wgrad_bands_16(OpCase *c)
{
    edge_wgrad_bands(c, 18);
}

/* With ties. */
static void maxpool_grad(OpCase *c, int64_t kernel, int64_t stride, Type dy, Type x)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_kernel, (const int64_t[]){kernel, kernel}, 2);
    attrs_ints(&attrs, ATTR_stride, (const int64_t[]){stride, stride}, 2);
    attrs_ints(&attrs, ATTR_padding, (const int64_t[]){kernel / 2, kernel / 2}, 2);
    attrs_int(&attrs, ATTR_nhwc, 1);
    op_normal(c, dy);
    op_integers(c, x, DTYPE_F32, -9, 9);
    op_done(c, OP_maxpool_grad, &attrs);
}

/* More windows reach a tile of pixels than a block looks at together. */
static void edge_maxpool_grad(OpCase *c, int64_t channels)
{
    Type image = op_image(true, 1, channels, 21, 22);
    maxpool_grad(c, 17, 1, image, image);
}
static void edge_maxpool_grad_17(OpCase *c)
{
    edge_maxpool_grad(c, 17);
}
static void edge_maxpool_grad_40(OpCase *c)
{
    edge_maxpool_grad(c, 40);
}
/* Several tiles of pixels and of channels, whose windows overlap. */
static void edge_maxpool_tiles(OpCase *c)
{
    maxpool_grad(c, 3, 2, op_image(true, 2, 24, 18, 20), op_image(true, 2, 24, 35, 39));
}

/* More taps of both axes than one chain adds. */
static void edge_resample(OpCase *c)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_nhwc, 1);
    attrs_ints(&attrs, ATTR_hw, (const int64_t[]){1, 2}, 2);
    op_normal(c, op_image(true, 1, 3, 70, 90));
    op_done(c, OP_adaptive_avgpool, &attrs);
}

/* Losses of lines that do not lie densely; more of them than a block folds at once. */
static void edge_loss(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 1);
    op_normal(c, DIMS(9, 5, 35));
    op_integers(c, DIMS(9, 35), DTYPE_I32, 0, 4);
    if (op == OP_cross_entropy_grad)
        op_scalar(c, 0.5, 2);
    op_done(c, op, &attrs);
}
/* The loss of every line is kept; lines begin anywhere, some have no label. */
static void edge_many_losses(OpCase *c)
{
    AttrList attrs = {0};
    op_normal(c, DIMS(KEPT_LOSSES + 3, KEPT_LOSS_CLASSES + 5));
    op_integers(c, DIMS(KEPT_LOSSES + 3), DTYPE_I32, -2, KEPT_LOSS_CLASSES + 4);
    op_done(c, OP_cross_entropy, &attrs);
}
static void edge_cross_entropy(OpCase *c)
{
    edge_loss(c, OP_cross_entropy);
}
static void edge_cross_entropy_grad(OpCase *c)
{
    edge_loss(c, OP_cross_entropy_grad);
}

/* Lines that are read by runs: several batches, beginnings at any address, labels that take no
 * part; more lines than a block has. */
static void edge_long_loss(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_ignore_index, 7);
    op_normal(c, DIMS(69, 717));
    op_integers(c, DIMS(69), DTYPE_I32, 0, 720);
    if (op == OP_cross_entropy_grad)
        op_scalar(c, 0.5, 2);
    op_done(c, op, &attrs);
}
static void edge_long_cross_entropy(OpCase *c)
{
    edge_long_loss(c, OP_cross_entropy);
}
static void edge_long_cross_entropy_grad(OpCase *c)
{
    edge_long_loss(c, OP_cross_entropy_grad);
}

/* The mean is rounded by more than a part in 2^24 of the variance's root. */
static void edge_layernorm(OpCase *c)
{
    op_floats(c, DIMS(4, 70), 10000, 10001);
    op_done(c, OP_layernorm, NULL);
}

/* Rows of whole runs, several batches of them; of whole columns of tiles, several tiles of a chunk.
 */
static void edge_long_layernorm(OpCase *c)
{
    op_normal(c, DIMS(19, 768));
    op_floats(c, DIMS(768), 0.5, 2);
    op_normal(c, DIMS(768));
    op_done(c, OP_layernorm, NULL);
}
static void edge_long_layernorm_grad(OpCase *c)
{
    op_normal(c, DIMS(19, 768));
    op_normal(c, DIMS(19, 768));
    op_normal(c, DIMS(19));
    op_floats(c, DIMS(19), 0.5, 2);
    op_floats(c, DIMS(768), 0.5, 2);
    op_done(c, OP_layernorm_grad, NULL);
}
static void edge_long_layernorm_sums(OpCase *c)
{
    op_normal(c, DIMS(20003, 40));
    op_normal(c, DIMS(20003, 40));
    op_normal(c, DIMS(20003));
    op_floats(c, DIMS(20003), 0.5, 2);
    op_done(c, OP_layernorm_grad_sums, NULL);
}
static void edge_long_moments(OpCase *c)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_nhwc, 1);
    op_normal(c, DIMS(40003, 32));
    op_done(c, OP_bn_stats, &attrs);
}
static void edge_long_sum(OpCase *c)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_axes, (const int64_t[]){0}, 1);
    op_normal(c, DIMS(40003, 40));
    op_done(c, OP_sum, &attrs);
}

const OpRow op_edges[] = {
    {OP_matmul, edge_chains},
    {OP_matmul, edge_chains_8},
    {OP_matmul, edge_chains_16},
    {OP_attention, edge_attention},
    {OP_attention_grad, edge_attention_grad},
    {OP_attention, edge_attention_chains},
    {OP_attention_grad, edge_attention_grad_chains},
    {OP_conv2d_wgrad, edge_wgrad_tiles},
    {OP_conv2d_wgrad, edge_wgrad_sums},
    {OP_conv2d_wgrad, edge_wgrad_bands_8},
    {OP_conv2d_wgrad, edge_wgrad_bands_16},
    {OP_maxpool_grad, edge_maxpool_grad_17},
    {OP_maxpool_grad, edge_maxpool_grad_40},
    {OP_maxpool_grad, edge_maxpool_tiles},
    {OP_adaptive_avgpool, edge_resample},
    {OP_cross_entropy, edge_cross_entropy},
    {OP_cross_entropy, edge_many_losses},
    {OP_cross_entropy_grad, edge_cross_entropy_grad},
    {OP_cross_entropy, edge_long_cross_entropy},
    {OP_cross_entropy_grad, edge_long_cross_entropy_grad},
    {OP_layernorm, edge_layernorm},
    {OP_layernorm, edge_long_layernorm},
    {OP_layernorm_grad, edge_long_layernorm_grad},
    {OP_layernorm_grad_sums, edge_long_layernorm_sums},
    {OP_bn_stats, edge_long_moments},
    {OP_sum, edge_long_sum},
};
const int op_edges_n = sizeof op_edges / sizeof *op_edges;
