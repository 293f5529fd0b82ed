/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What kernels that compare logits with labels share: cross-entropy (loss.c, loss_grad.c)
 * and accuracy.c. */
#ifndef SCRIMP_CODEGEN_CPU_REDUCE_LOSS_TOTALS_H
#define SCRIMP_CODEGEN_CPU_REDUCE_LOSS_TOTALS_H

#include "codegen/cpu/point/vector_loops.h"
#include "codegen/forms/loss.h"

/* Label of line i as i64, -1 when it takes no part; labels are buffer 1. */
JitValue loss_label(Jit *j, const LossDesc *d, JitValue i);
JitValue loss_label_is_valid(Jit *j, JitValue label);

/* Partial results: a sum, and the number of labels (i64), or with class weights theirs (f64). */
typedef struct LossTotals {
    JitVar sum, count;
} LossTotals;

JitType loss_count_type(Jit *j, const LossDesc *d);
LossTotals loss_totals(Jit *j, const LossDesc *d, JitType sum_type);
void loss_add(Jit *j, JitVar var, JitValue v);
/* Into the workspace, the buffer behind the inputs. */
void loss_store_totals(Jit *j, const LossDesc *d, JitValue chunk, const LossTotals *s,
                       JitType type);
/* workspace -> sum / count, 0 without labels, or the sum; type: of the sums */
void loss_emit_ratio(Jit *j, const LossDesc *d, JitType type);
/* A task of emit for each chunk, and join over what they left. */
void loss_lower_chunked(Lowering *l, const Node *n, KernelEmit *emit, KernelEmit *join,
                        const char *join_name);

#endif
