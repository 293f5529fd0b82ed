/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the elements of a value lie in memory.
 *
 * Most values have storage of their own, dense and row-major.  Two kinds lie inside the storage of
 * another value, at constant strides: a `subview`, which names a piece of its input, and a part, an
 * input of a `concat` that is computed where the concatenation has it (attribute `joined`).  Only
 * some operations read or write such values; the verifier holds every graph to it.  Made by
 * pass_views, behind which only the plan and the code generator come. */
#ifndef SCRIMP_IR_STRIDED_VIEW_H
#define SCRIMP_IR_STRIDED_VIEW_H

#include "ir/graph.h"

/* Element (i0, i1, ...) of the value is element base + sum of i[d] * stride[d] of `root`'s storage.
 */
typedef struct StridedView {
    ValueId root; /* dense; may itself be a view of the same shape or another (reshape) */
    int64_t base, stride[TYPE_MAX_RANK];
} StridedView;

/* Of any value: a dense one begins at element 0 of its own storage.  Takes time as deep as
 * concatenations and subviews nest. */
StridedView value_view(const Graph *g, ValueId v);
/* False for subviews and parts. */
bool value_is_dense(const Graph *g, ValueId v);
/* The value in whose storage v lies, through views of any kind and concatenations. */
ValueId value_root(const Graph *g, ValueId v);

/* The dim along which a concat joins. */
int concat_axis(const Graph *g, const Node *concat);
/* Input i of a concat lies in its result. */
bool concat_has_joined(const Node *concat, int i);
/* Makes input i of a concat a part of its result. */
void concat_join(Graph *g, NodeId concat, int i);
/* The other way: input i, which was joined, has storage of its own and is copied. */
void concat_separate(Graph *g, NodeId concat, int i);
/* Tells the inputs named by `joined` whose parts they are; for readers of text. */
void concat_note_parts(Graph *g, NodeId concat);

/* Input i of a fused group, in its body: the i-th `input` node of its order; VALUE_NONE = none. */
ValueId body_input(const Graph *body, int i);

/* The operation can read input i, which is not dense, where it lies (ops.def, column access):
 * element-wise kernels at any strides; the statistics of batch norm rows of the last dim at a
 * pitch; relu_mask the same where rows have a multiple of 16 elements; attention by a library rows
 * of heads that begin at multiples of 16 bytes. */
bool node_reads_strided(const Graph *g, const Node *n, int i);
/* Its operation can write v where it lies; v dense: also inside of something else, at some strides.
 */
bool value_is_written_strided(const Graph *g, ValueId v);

#endif
