/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products: out[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], with any element strides
 * of A and B.
 *
 * A task is a block of row tiles times a group of column panels of one batch element; the tasks of
 * a block of rows, or of all panels, that a thread does one after another are a run.  For every
 * block of K a run packs B panel by panel into scratch, or reads it in place, and sweeps the row
 * tiles; A is read in place unless its strides collide in the cache, or it is bf16 or added by
 * pairs: then it is packed, once for the run.  The order of an element's sum is that of
 * codegen/forms/product.h, whatever the blocking, and whether the product or its transpose is
 * computed. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_H

#include "codegen/cpu/gemm/gemm_desc.h"

/* The variants of products. */
extern const KernelFamily gemm_family;
/* Decides tiles, blocks and tasks for the target, by a variant of the family, or the default where
 * that one needs more scratch memory than there is, without packing A if that does, too; merges
 * batch dims into rows where the strides allow. */
void gemm_plan(Gemm *g, const Target *target, int variant);
int64_t gemm_tasks(const Gemm *g);
KernelEmit gemm_emit;
/* Plans g and adds its call; call->buf is filled, g->epilogue set.  `what`: for the label, if call
 * has none; call->flops: 0: those of the product. */
void gemm_lower(Lowering *l, Gemm *g, CallDraft *call, const char *what);
/* A node that is the product p of its first two operands. */
void gemm_lower_product(const MatrixNode *m, const Product *p, const char *what);

#endif
