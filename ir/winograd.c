/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/winograd.h"

#include "ir/support/divide.h"

enum {
    /* In multiply-adds of a product of one tile, point and pair of channels: */
    TRANSFORM_COST = 6, /* the transform of a patch, a point and a channel */
    WEIGHTS_COST = 4,   /* that of the weights, a point and a pair */
    TASKS_WANTED = 16   /* of a weight gradient */
};
/* The direct form has to be so many times slower. */
static const double GAIN = 1.2;

int winograd_of(const Node *n)
{
    return (int)node_int(n, ATTR_winograd, 0);
}

WinogradShape winograd_shape(const Graph *g, const Node *n, int m)
{
    bool weights = n->op == OP_conv2d_wgrad;
    const Type *a = value_type(g, n->in[0]), *b = value_type(g, n->in[weights]);
    const Type *tiled = weights ? b : value_type(g, n->out[0]);
    WinogradShape s = {.m = m,
                       .points = (m + WINOGRAD_TAPS - 1) * (m + WINOGRAD_TAPS - 1),
                       .images = tiled->dim[0],
                       .rows = a->dim[3],
                       .columns = tiled->dim[3]};
    for (int i = 0; i < 2; i++)
        s.tiles[i] = divide_up(tiled->dim[1 + i], m);
    s.count = s.images * s.tiles[0] * s.tiles[1];
    return s;
}

double winograd_work(const WinogradShape *s)
{
    double pairs = (double)s->rows * (double)s->columns;
    double transforms = TRANSFORM_COST * ((double)s->rows + (double)s->columns);
    return s->points * ((double)s->count * (pairs + transforms) + WEIGHTS_COST * pairs);
}

bool winograd_fits(const Graph *g, const Node *n)
{
    if ((n->op != OP_conv2d && n->op != OP_conv2d_dgrad && n->op != OP_conv2d_wgrad) ||
        !node_flag(n, ATTR_nhwc) || node_int(n, ATTR_groups, 1) != 1)
        return false;
    const Type *w = n->op == OP_conv2d_wgrad ? value_type(g, n->out[0]) : value_type(g, n->in[1]);
    bool fits = w->dim[2] >= WINOGRAD_LEAST_CHANNELS && w->dim[3] >= WINOGRAD_LEAST_CHANNELS;
    if (n->op != OP_conv2d_wgrad)
        fits &= w->dim[n->op == OP_conv2d ? 2 : 3] <= WINOGRAD_MOST_CHANNELS;
    fits &= type_elements(value_type(g, n->in[0])) && type_elements(value_type(g, n->out[0]));
    for (int i = 0; i < 2; i++)
        fits &= w->dim[i] == WINOGRAD_TAPS && node_ints_at(n, ATTR_stride, i, 1) == 1 &&
                node_ints_at(n, ATTR_dilation, i, 1) == 1;
    return fits;
}

int winograd_choice(const Graph *g, const Node *n)
{
    if (!winograd_fits(g, n))
        return 0;
    double best = node_flops(g, n) / 2 / GAIN;
    int choice = 0;
    for (int m = WINOGRAD_MOST; m >= 2; m -= 2) {
        WinogradShape s = winograd_shape(g, n, m);
        double work = winograd_work(&s);
        if (work < best) {
            best = work;
            choice = m;
        }
    }
    return choice;
}

int64_t winograd_chunks(const WinogradShape *s)
{
    int64_t blocks =
        divide_up(s->rows, WINOGRAD_X_BLOCK) * divide_up(s->columns, WINOGRAD_DY_BLOCK);
    int64_t wanted = divide_up(TASKS_WANTED, blocks), most = divide_up(s->count, WINOGRAD_TILES);
    return most < wanted ? (most ? most : 1) : wanted;
}

bool winograd_keeps_patches(const WinogradShape *s)
{
    return s->count < s->columns;
}

/* More would not stay in a second-level cache; for fewer the weights are transformed again. */
int64_t winograd_block(const WinogradShape *s)
{
    enum { BLOCK_MOST = 56 };
    return divide_up(s->count, divide_up(s->count, BLOCK_MOST));
}

int64_t winograd_kept_tiles(const WinogradShape *s)
{
    return divide_up(s->count, winograd_block(s)) * winograd_block(s);
}

int64_t winograd_chain(int64_t rows)
{
    enum { CHAIN_MOST = 64 }; /* what of all points' weights fits near the core */
    int64_t even = divide_up(rows, divide_up(rows, CHAIN_MOST));
    return divide_up(even, WINOGRAD_LEAST_CHANNELS) * WINOGRAD_LEAST_CHANNELS;
}

int64_t winograd_plane(int64_t floats)
{
    return (divide_up(floats, WINOGRAD_GAP) + 1) * WINOGRAD_GAP;
}
