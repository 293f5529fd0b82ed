/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/transpose.h"
#include "codegen/forms/point.h"
#include "ir/support/divide.h"

static void drop(TransposeDesc *d, int64_t k)
{
    for (; k + 1 < d->rank; k++) {
        d->dim[k] = d->dim[k + 1];
        d->in[k] = d->in[k + 1];
        d->out[k] = d->out[k + 1];
    }
    d->rank--;
    d->dim[d->rank] = d->in[d->rank] = d->out[d->rank] = 0;
}

static void collapse(TransposeDesc *d)
{
    for (int64_t k = d->rank - 1; k >= 0; k--)
        if (d->dim[k] == 1)
            drop(d, k);
    for (int64_t k = d->rank - 2; k >= 0; k--)
        if (d->in[k] == d->in[k + 1] * d->dim[k + 1]) {
            d->dim[k + 1] *= d->dim[k];
            drop(d, k);
        }
}

TransposeDesc transpose_describe(const Lowering *l, const Node *n)
{
    const Type *in = value_type(l->graph, n->in[0]), *out = value_type(l->graph, n->out[0]);
    TransposeDesc d = {.rank = out->rank, .bytes = dtype_bytes(in->dtype)};
    int64_t own[TYPE_MAX_RANK], step = 1, out_step = 1;
    for (int i = in->rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= in->dim[i];
    }
    for (int i = out->rank - 1; i >= 0; i--) {
        d.dim[i] = out->dim[i];
        d.out[i] = out_step;
        d.in[i] = own[node_ints_at(n, ATTR_perm, i, in->rank - 1 - i)];
        out_step *= out->dim[i];
    }
    collapse(&d);
    for (int64_t i = 0; i < d.rank; i++)
        if (d.in[i] == 1)
            d.lead = i;
    return d;
}

bool transpose_keeps_rows(const TransposeDesc *d)
{
    return d->rank < 2 || d->lead == d->rank - 1;
}

void transpose_copy(Lowering *l, const Node *n, const TransposeDesc *d)
{
    DType t = value_type(l->graph, n->in[0])->dtype;
    Type space = type_make(t, (int)d->rank, d->dim);
    PointProgram *p = point_program(l->pool, &space);
    PointAccess from = {.buf = 0, .dtype = t}, to = {.buf = 1, .dtype = t};
    for (int64_t k = 0; k < d->rank; k++) {
        from.stride[k] = d->in[k];
        to.stride[k] = d->out[k];
    }
    point_store(p, point_load(p, from), to);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    point_call(l, p, "transpose", bufs, 2, 0);
}

int64_t transpose_squares(const TransposeDesc *d, int64_t k, int64_t side)
{
    return k == d->lead || k == d->rank - 1 ? divide_up(d->dim[k], side) : d->dim[k];
}

int64_t transpose_all_squares(const TransposeDesc *d, int64_t side)
{
    int64_t n = 1;
    for (int64_t k = 0; k < d->rank; k++)
        n *= transpose_squares(d, k, side);
    return n;
}
