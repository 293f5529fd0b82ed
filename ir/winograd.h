/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Winograd's minimal filtering for 3x3 convolutions of stride 1 (Lavin and Gray, "Fast Algorithms
 * for Convolutional Neural Networks", 2015): F(m, 3) makes tiles of m x m results from patches of
 * (m + 2) x (m + 2) with (m + 2)^2 products of matrices.  It rounds otherwise than the direct form,
 * so the model asks for it (`winograd = true` of the train section), and the shape alone says which
 * convolutions have it, and with which m: never the machine, the threads or the budget.
 *
 * The order of its sums, and with it every bit, is fixed here: WINOGRAD_CHAIN and the chunks. */
#ifndef SCRIMP_IR_WINOGRAD_H
#define SCRIMP_IR_WINOGRAD_H

#include "ir/graph.h"

enum {
    WINOGRAD_TAPS = 3,
    WINOGRAD_MOST = 4,             /* m */
    WINOGRAD_POINTS_MOST = 6 * 6,  /* (m + 2)^2 */
    WINOGRAD_LEAST_CHANNELS = 16,  /* the widest vectors */
    WINOGRAD_MOST_CHANNELS = 2048, /* that are summed over: a patch has to fit into scratch */
    /* Results and data gradients: a point's sum over channels is chains of so many, each from zero,
     * added in order. */
    WINOGRAD_CHAIN = 64,
    /* Weight gradients: a point's sum over tiles is chunks of the tiles in order, joined as those
     * of other weight gradients; in a chunk, chains of so many tiles, added in order. */
    WINOGRAD_TILES = 32,
    /* A task of a weight gradient has about so many channels of x times so many of dy. */
    WINOGRAD_X_BLOCK = 64,
    WINOGRAD_DY_BLOCK = 32
};

typedef struct WinogradShape {
    int m, points;
    int64_t images, tiles[2]; /* of an image: down, across */
    int64_t count;            /* of all tiles */
    int64_t rows, columns;    /* channels that are summed over and made, or of x and dy */
} WinogradShape;

/* Whether there is a Winograd form: a 3x3 convolution of stride 1 of channels-last images, or a
 * gradient of one, with enough channels and any elements. */
bool winograd_fits(const Graph *g, const Node *n);
/* m of one that gains by the form, or 0. */
int winograd_choice(const Graph *g, const Node *n);
/* m of a node that has the form, or 0. */
int winograd_of(const Node *n);
WinogradShape winograd_shape(const Graph *g, const Node *n, int m);
/* What it computes, in multiply-adds: products, and transforms as many as take their time. */
double winograd_work(const WinogradShape *s);
int64_t winograd_chunks(const WinogradShape *s); /* of a weight gradient */

#endif
