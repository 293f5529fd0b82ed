/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient of a value that is read in slices.  Called by autodiff_gradients. */
#ifndef SCRIMP_PASSES_AUTODIFF_SLICE_GRADIENTS_H
#define SCRIMP_PASSES_AUTODIFF_SLICE_GRADIENTS_H

#include "ir/graph.h"

/* The gradient of one slice of step 1: of elements [lo, hi) of the value, by dim. */
typedef struct SlicePart {
    ValueId gradient;
    int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK];
} SlicePart;

/* False when the slice leaves elements out between those that it takes. */
bool slice_part(const Graph *g, const Node *slice, ValueId gradient, SlicePart *part);
/* Appends the nodes that put n > 0 parts together to a gradient of type t, zero where no slice has
 * been.  Parts beside each other become one concatenation, so that the bytes moved are those of the
 * parts and of t, not of t for every part; parts that overlap are added.  Reorders parts. */
ValueId slices_gradient(Graph *g, Pool *scratch, const Type *t, SlicePart *parts, int n,
                        const char *name, Loc loc);

#endif
