/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products: out[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], with any element strides
 * of A and B.
 *
 * A task is a block of row tiles times a group of column panels of one batch element; the tasks of
 * a block of rows, or of all panels, that a thread does one after another are a run.  For every
 * block of K a run packs B panel by panel into scratch, or reads it in place, and sweeps the row
 * tiles; A is read in place unless its strides collide in the cache, or it is bf16: then it is
 * packed, once for the run.  The order of an element's sum is that of codegen/forms/product.h,
 * whatever the blocking, and whether the product or its transpose is computed. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_H

#include "codegen/cpu/gemm/gemm_tile.h"
#include "codegen/forms/product.h"

enum {
    GEMM_A_PAD = 16,     /* floats behind a packed row or strip of A */
    GEMM_PACK_PANELS = 4 /* panels of B packed together */
};

KERNEL_DESC_BEGIN
typedef struct Gemm {
    int64_t m, n, k;
    int64_t chain; /* steps of a chain of its own (codegen/forms/product.h); else 0 */
    int64_t a_row, a_k, b_k, b_n; /* strides in elements; out is dense */
    int64_t batch[TYPE_MAX_RANK], a_batch[TYPE_MAX_RANK], b_batch[TYPE_MAX_RANK];
    int n_batch; /* outermost first */
    int a_buf, b_buf, out_buf;
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
    bool a_bf16, b_bf16;  /* element types; packed panels are f32 */
    bool no_prefetch;     /* of what tiles or packing read next */
    bool inner_chains;    /* several to a block of K; else a block is one */
    bool turned;          /* A, B, m and n have changed places: columns of the result are dense */
    Epilogue epilogue;
} Gemm;
KERNEL_DESC(Gemm)

/* The variants of products. */
extern const KernelFamily gemm_family;
/* Decides tiles, blocks and tasks for the target, by a variant of the family, or the default where
 * that one needs more scratch memory than there is, without packing A if that does, too; merges
 * batch dims into rows where the strides allow. */
void gemm_plan(Gemm *g, const Target *target, int variant);
int64_t gemm_tasks(const Gemm *g);
/* Plans g and adds its call; call->buf is filled, g->epilogue set.  `what`: for the label, if call
 * has none. */
void gemm_lower(Lowering *l, Gemm *g, CallDraft *call, const char *what);
/* A node that is the product p of its first two operands. */
void gemm_lower_product(const MatrixNode *m, const Product *p, const char *what);

#endif
