/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/reduction.h"

#include "ir/workspace.h"

void reduce_add_digit(Digits *set, int64_t dim, int64_t stride)
{
    set->dim[set->n] = dim;
    set->stride[set->n++] = stride;
    set->count *= dim;
}

static void reduced_axes(const Node *n, int rank, bool *reduced)
{
    int count;
    const int64_t *axes = node_ints(n, ATTR_axes, &count);
    for (int i = 0; i < rank; i++)
        reduced[i] = n->op == OP_sumsq || !node_attr(n, ATTR_axes);
    for (int i = 0; i < count; i++)
        reduced[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
}

/* Dims from the last to the first, neighbours of one kind merged; digits are stored first dim
 * first. */
static void split_dims(const Type *t, const bool *reduced, ReduceDesc *d)
{
    int64_t dim[TYPE_MAX_RANK], stride[TYPE_MAX_RANK], step = 1;
    bool kind[TYPE_MAX_RANK];
    int n = 0;
    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->dim[i] == 1)
            continue;
        if (n && kind[n - 1] == reduced[i]) {
            dim[n - 1] *= t->dim[i];
        } else {
            dim[n] = t->dim[i];
            stride[n] = step;
            kind[n++] = reduced[i];
        }
        step *= t->dim[i];
    }
    d->inner = n ? dim[0] : 1;
    d->inner_kept = n ? !kind[0] : 1;
    for (int i = n - 1; i >= 1; i--)
        reduce_add_digit(kind[i] ? &d->reduced : &d->kept, dim[i], stride[i]);
}

ReduceDesc reduce_describe(const Lowering *l, const Node *n)
{
    const Type *t = value_type(l->graph, n->in[0]);
    bool reduced[TYPE_MAX_RANK];
    ReduceDesc d = {.kept = {.count = 1}, .reduced = {.count = 1}, .op = n->op, .scale = 1};
    reduced_axes(n, t->rank, reduced);
    split_dims(t, reduced, &d);
    d.dtype = dtype_is_real(t->dtype) ? DTYPE_F32 : t->dtype; /* computed in */
    d.results = type_elements(value_type(l->graph, n->out[0]));
    if (n->op == OP_mean)
        d.scale = (double)d.results / (double)type_elements(t);
    if (d.dtype == DTYPE_F32) {
        d.chunks = reduce_chunks(l->graph, n);
        d.partial_bytes = reduce_partial_bytes(l->graph, n);
    }
    return d;
}
