/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a matrix product is, and how it is cut into tiles, blocks and tasks: gemm.h says how they
 * are used, gemm_amx.h where matrix registers compute it. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_DESC_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_DESC_H

#include "codegen/cpu/gemm/gemm_tile.h"
#include "codegen/forms/convolution.h"

enum {
    GEMM_A_PAD = 16,     /* floats behind a packed row or strip of A */
    GEMM_PACK_PANELS = 4 /* panels of B packed together */
};

/* Where A is an image [images, y.source, x.source, channels], its rows are the places of y.count
 * times x.count windows, and a step is a channel of a place of a window (gemm_image.h). */
typedef struct GemmImage {
    int64_t channels; /* 0: A is a matrix */
    ConvAxis y, x;
    int64_t b_tap, b_origin; /* elements of B from a place to the next one; to the first one */
} GemmImage;

KERNEL_DESC_BEGIN
typedef struct Gemm {
    int64_t m, n, k;
    int64_t chain; /* steps of a chain of its own (codegen/forms/product.h); else 0 */
    int64_t pairs; /* PRODUCT_PAIRS_STEPS where the sum is added by pairs (ir/product.h); else 0 */
    int64_t a_row, a_k, b_k, b_n; /* strides in elements; out is dense */
    int64_t batch[TYPE_MAX_RANK], a_batch[TYPE_MAX_RANK], b_batch[TYPE_MAX_RANK];
    GemmImage image;
    int n_batch; /* outermost first */
    int a_buf, b_buf, out_buf;
    int a_made; /* flag: A is made for the kernel piece by piece (codegen/cpu/point/prologue.h):
                   rows of it, or, where steps are rows, */
    int steps;  /* of K blocks between those that this number of the call and the next one say */
    /* decided by gemm_plan */
    TileShape shape;
    TileSplit rows; /* m over row tiles */
    int64_t k_block, k_blocks;
    int64_t panels; /* of shape.vectors vectors; the last one may be narrower */
    int64_t row_blocks, panel_groups, batches;
    int64_t run_groups; /* groups of panels of a run at most; */
    int64_t run_blocks; /* blocks of rows, where one group has all panels */
    bool pack_a;
    bool direct_b;        /* whole panels are read in place */
    bool private_partial; /* sums between K blocks stay in scratch */
    bool a_bf16, b_bf16;  /* element types; packed panels are f32, but for matrix registers */
    bool no_prefetch;     /* of what tiles or packing read next */
    bool inner_chains;    /* several to a block of K; else a block is one */
    bool turned;          /* A, B, m and n have changed places: columns of the result are dense */
    Epilogue epilogue;
} Gemm;
KERNEL_DESC(Gemm)

#endif
