/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions in Winograd's form (ir/winograd.h): transforms of patches of pixels, the points'
 * matrix products by the register tile, and the transform back, with the epilogue.
 *
 * A patch is a square of m + 2 pixels, a tile the m x m results that it gives.  Points are numbered
 * row by row; point p of everything transformed is a plane of its own. */
#ifndef SCRIMP_CODEGEN_CPU_CONV_WINOGRAD_H
#define SCRIMP_CODEGEN_CPU_CONV_WINOGRAD_H

#include "codegen/cpu/conv/conv.h"
#include "ir/winograd.h"

/* --- transforms (winograd_transform.c) --- */

/* Squares of vectors that become squares of another size. */
typedef enum WinogradStage {
    WINOGRAD_PATCH,    /* pixels of x or dy, m + 2, to points */
    WINOGRAD_WEIGHTS,  /* taps, 3, to points */
    WINOGRAD_RESULT,   /* sums of the points to results, m */
    WINOGRAD_GRADIENT, /* pixels of dy, m, to points: the transpose of WINOGRAD_RESULT */
    WINOGRAD_SUMS      /* sums of the points to taps, 3: the transpose of WINOGRAD_WEIGHTS */
} WinogradStage;

int winograd_stage_from(WinogradStage s, int m); /* side of the square that is read */
int winograd_stage_to(WinogradStage s, int m);   /* and of the one that is made */

/* Where the vectors of a square lie: row r, column c at p[r * row + c * column]. */
typedef struct WinogradSquare {
    JitValue p;
    int64_t row, column;
} WinogradSquare;
/* One vector of channels; lanes: how many of them may be read, NULL = all.  The squares may be the
 * same. */
void winograd_transform(Jit *j, WinogradStage s, int m, const WinogradSquare *from,
                        const WinogradSquare *to, JitValue lanes);

/* --- patches (winograd_patch.c) --- */

/* Channels of the patches of an image, or of dy's tiles, to points. */
typedef struct WinogradPatch {
    WinogradStage stage;       /* WINOGRAD_PATCH or WINOGRAD_GRADIENT */
    int m, buf;                /* the image's buffer */
    int64_t size[2], channels; /* of the image */
    int64_t origin[2];         /* of the first patch */
    int64_t tiles[2];
    int64_t most; /* channels of one call */
    /* Channel c of tile i lies at c / panel * panel_step + i * row + c % panel.  0: no panels; then
     * every call has at least a vector of channels. */
    int64_t panel, panel_step, row;
    int64_t plane;
} WinogradPatch;
/* Tiles [first, first + n) of all images, channels [channel, channel + channels), to points at
 * `to`; room: for a patch at a border, side * side * most floats. */
typedef struct WinogradPatchArgs {
    JitValue first, n, channel, channels, to, room;
} WinogradPatchArgs;
void winograd_patches(Jit *j, const WinogradPatch *p, const WinogradPatchArgs *a);

/* Where tile number `tile` of all images lies. */
typedef struct WinogradTile {
    JitValue image, place[2]; /* of its first result */
} WinogradTile;
WinogradTile winograd_tile(Jit *j, int m, const int64_t tiles[2], JitValue tile);

/* --- forward, data gradient (winograd.c) --- */

KERNEL_DESC_BEGIN
typedef struct Winograd {
    ConvAxis axis[2];
    int64_t rows, columns; /* channels summed over and made */
    int64_t chain, chains; /* of rows */
    int64_t tiles[2], count;
    int64_t block, blocks; /* tiles of a task; decided by winograd_plan unless patches are kept */
    bool transposed;       /* the data gradient: weights [3, 3, columns, rows] */
    bool keeps_patches;    /* in the workspace; else it has the weights */
    char unused[6];
    int m, points;
    int source_buf, weight_buf, work_buf, out_buf;
    /* decided by winograd_plan */
    TileShape shape;
    int64_t panels, panel_groups;
    Epilogue epilogue;
} Winograd;
KERNEL_DESC(Winograd)

void winograd_plan(Winograd *w, const Target *target);
int64_t winograd_side(const Winograd *w);             /* of a patch */
int64_t winograd_panel(const Winograd *w, int lanes); /* floats of a whole one */
int64_t winograd_patches_plane(const Winograd *w);    /* of those that a product reads */
/* Patches lie as [chain][point][tile][row of the chain].  Tiles [first, first + n); `to` and its
 * plane: of tile `first`. */
void winograd_transform_patches(const Winograd *w, Jit *j, JitValue first, JitValue n, JitValue to,
                                int64_t plane, JitValue room);
int64_t winograd_room(const Winograd *w); /* floats */
/* Rows [row, row + rows), at most a chain, of a panel of `columns` columns; taps: room for
 * winograd_taps floats, where vectors are aligned. */
typedef struct WinogradWeights {
    JitValue panel, row, rows;
    int64_t columns;
    JitValue to;
    int64_t plane;
    JitValue taps;
} WinogradWeights;
void winograd_transform_weights(const Winograd *w, Jit *j, const WinogradWeights *a);
int64_t winograd_taps(const Winograd *w, int64_t width);
/* Transformed weights in the workspace: floats between points of a panel, and the panel. */
int64_t winograd_weights_plane(const Winograd *w, int64_t width);
JitValue winograd_weights_panel(const Winograd *w, Jit *j, JitValue panel);
int64_t winograd_tasks(const Winograd *w);
/* KernelEmit of the first call, which fills the workspace, and of the second. */
int64_t winograd_work_floats(const Winograd *w, int lanes);
int64_t winograd_work_tasks(const Winograd *w);
void winograd_work_emit(Jit *j, const void *desc);
void winograd_emit(Jit *j, const void *desc);

/* --- weight gradient (winograd_wgrad.c) --- */

KERNEL_DESC_BEGIN
typedef struct WinogradWgrad {
    ConvGeometry q;
    int64_t tiles[2], count, chunks;
    int m, points;
    int x_buf, dy_buf, partial_buf, out_buf;
    /* decided by winograd_wgrad_plan */
    TileShape shape;
    int64_t x_blocks, x_block, dy_blocks;
    Epilogue epilogue;
} WinogradWgrad;
KERNEL_DESC(WinogradWgrad)

void winograd_wgrad_plan(WinogradWgrad *w, const Target *target);
int64_t winograd_wgrad_tasks(const WinogradWgrad *w);
void winograd_wgrad_emit(Jit *j, const void *desc);
void winograd_wgrad_join(ConvJoin *join, const WinogradWgrad *w);

#endif
