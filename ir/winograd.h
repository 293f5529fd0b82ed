/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Winograd's minimal filtering for 3x3 convolutions of stride 1 (Lavin and Gray, "Fast Algorithms
 * for Convolutional Neural Networks", 2015): F(m, 3) makes tiles of m x m results from patches of
 * (m + 2) x (m + 2) with (m + 2)^2 products of matrices.  It rounds otherwise than the direct form,
 * so the model asks for it (`winograd = true` of the train section), and the shape alone says which
 * convolutions have it, and with which m: never the machine, the threads or the budget.
 *
 * The order of its sums, and with it every bit, is fixed here: winograd_chain, WINOGRAD_TILES and
 * winograd_chunks. */
#ifndef SCRIMP_IR_WINOGRAD_H
#define SCRIMP_IR_WINOGRAD_H

#include "ir/graph.h"

enum {
    WINOGRAD_TAPS = 3,
    WINOGRAD_MOST = 4,             /* m */
    WINOGRAD_POINTS_MOST = 6 * 6,  /* (m + 2)^2 */
    WINOGRAD_LEAST_CHANNELS = 16,  /* the widest vectors */
    WINOGRAD_MOST_CHANNELS = 2048, /* that are summed over: a patch has to fit into scratch */
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

/* Results and data gradients: a point's sum over its rows, so many channels, is equal chains of at
 * most 64, each from zero, added in order. */
int64_t winograd_chain(int64_t rows);

/* Results and data gradients have their transformed weights in the workspace, as panels of columns,
 * [panel][point][rows + WINOGRAD_SPARE_ROWS][columns of the panel, padded to a multiple of
 * WINOGRAD_LEAST_CHANNELS at most]; or, where there are fewer tiles than columns, their transformed
 * patches instead, as [chain][point][winograd_kept_tiles][winograd_chain]. */
enum { WINOGRAD_GAP = 16, WINOGRAD_SPARE_ROWS = 4 }; /* so that points do not meet in cache sets */
bool winograd_keeps_patches(const WinogradShape *s);
/* Then a panel of weights is multiplied with so many tiles at once, and the last ones of the last
 * block may be none. */
int64_t winograd_block(const WinogradShape *s);
int64_t winograd_kept_tiles(const WinogradShape *s);
/* Floats between points, of so many rows of them. */
int64_t winograd_plane(int64_t floats);

#endif
