/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one register-tile generator: matrix products, convolutions and their gradients all end in it.
 *
 * A tile is `rows` x `vectors` vector registers of sums.  In every step of the reduction it loads
 * `vectors` vectors of B and broadcasts one element of A per row.  How A and B move from step to
 * step is a loop nest, so that one generator serves matrix rows, image windows and sums over
 * pixels. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_TILE_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_TILE_H

#include "codegen/forms/epilogue.h"
#include "codegen/jit/jit.h"

enum { TILE_MAX_ROWS = 28, TILE_MAX_VECTORS = 4, TILE_MAX_LOOPS = 4 };
enum { TILE_LINE = 16 }; /* floats of a line of the cache */

/* One loop of the reduction; A and B advance by these many elements per iteration. */
typedef struct TileLoop {
    int64_t count; /* TILE_STEPS: the argument of that name */
    int64_t a_step, b_step;
} TileLoop;
enum { TILE_STEPS = -1 };

/* What becomes of the sums. */
typedef enum TileEnd {
    TILE_RESULT,  /* they are finished and written to the result */
    TILE_PARTIAL, /* they become partial sums, added to those before unless first */
    TILE_CHAIN /* they begin with the partial sums, go on with them, and are partial sums again */
} TileEnd;

typedef struct Tile {
    int rows, vectors;
    TileEnd end;
    int last_lanes;                 /* lanes of the last vector that belong to the result */
    bool b_packed;                  /* B is aligned and padded to whole vectors */
    bool single;                    /* the whole reduction in one call: no partial sums */
    bool partial_padded;            /* partial sums have room for whole vectors */
    int ahead_lines;                /* of the cache, asked for in every step: what B is read next */
    int64_t a_row[TILE_MAX_ROWS];   /* elements from A to row i's first element */
    int64_t out_row[TILE_MAX_ROWS]; /* rows of the result from the first to row i */
    int64_t turned; /* elements between columns of a result whose rows are not dense; else 0 */
    int64_t partial_stride; /* elements between rows of the partial sums, dense */
    int n_loops;            /* outermost first */
    int chain_loops;        /* of these; what is inside is a sum from zero, added in order */
    bool chain_parts;       /* added to the partial sums; the first one of all is taken as it is */
    bool by_pairs;          /* a chain is two, over even and over odd steps (ir/product.h); the last
                               loop is that of one, and the first of all is added to +0 */
    TileLoop loop[TILE_MAX_LOOPS];
    int out_buf;              /* the result's buffer */
    const Epilogue *epilogue; /* of a TILE_RESULT */
} Tile;

/* Arguments of one tile at run time. */
typedef struct TileArgs {
    JitValue a, b;     /* first elements */
    JitValue partial;  /* sums so far (added unless first, written unless last); NULL when single */
    JitValue row, col; /* of the result, for the epilogue */
    JitValue steps;    /* count of the TILE_STEPS loop, or NULL */
    JitValue ahead;    /* elements from B to the lines asked for; NULL without ahead_lines */
    JitValue first, last; /* booleans; NULL when single */
} TileArgs;

/* Rows and vectors that fill the target's registers for a result of n_vectors vectors per row and
 * at most max_rows rows. */
typedef struct TileShape {
    int rows, vectors;
} TileShape;
TileShape tile_shape(const Target *target, int64_t n_vectors, int64_t max_rows);
/* The same with so many vectors, where the result has them; 0: as above. */
TileShape tile_shape_of(const Target *target, int64_t n_vectors, int64_t max_rows, int vectors);
/* The most vectors of a tile that has so many rows; 0: no tile of two vectors or more has. */
int tile_wide_vectors(const Target *target, int64_t n_vectors, int64_t rows);

/* Runs the tile; equal tiles share one function. */
void tile_call(Jit *j, const Tile *tile, const TileArgs *args);

/* n rows over ceil(n / most) tiles of base + 1 (the first `extra` of them) or base rows. */
typedef struct TileSplit {
    int64_t tiles, base, extra;
} TileSplit;
TileSplit tile_split(int64_t n, int64_t most);
/* The first row of a tile. */
int64_t tile_row(const TileSplit *s, int64_t tile);
/* The rows of a tile at most. */
int64_t tile_rows_most(const TileSplit *s);

#endif
