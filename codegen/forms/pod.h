/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls of kernels whose description is plain data. */
#ifndef SCRIMP_CODEGEN_FORMS_POD_H
#define SCRIMP_CODEGEN_FORMS_POD_H

#include "codegen/build/kernel.h"

KERNEL_DESC_BEGIN
/* [outer, length, inner] around an axis. */
typedef struct AxisShape {
    int64_t outer, length, inner;
} AxisShape;
KERNEL_DESC(AxisShape)
AxisShape axis_shape(const Type *t, int64_t axis); /* negative counts from the end */

/* A node's inputs, then its results, as the buffers of a call; their number. */
int node_bufs(const Node *n, CallBuf *bufs);
/* A call without code; bytes: DESC_BYTES of the description, which is copied. */
CallDraft pod_call(const Lowering *l, const char *name, const void *desc, size_t bytes,
                   int64_t n_tasks, const CallBuf *bufs, int n_bufs);
/* What the call computes and moves: all of the node's work, or, for the second call of a chunked
 * reduction, whose work was counted with the first, the workspace that it reads. */
void pod_count_work(const Lowering *l, CallDraft *call);
void pod_count_join(const Lowering *l, CallDraft *call);

#endif
