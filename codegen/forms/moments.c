/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/moments.h"
#include "codegen/forms/pod.h"
#include "codegen/forms/point.h"
#include "ir/strided_view.h"
#include "ir/workspace.h"

int moments_images(const MomentsDesc *d)
{
    return d->op == OP_bn_stats ? 1 : 2;
}

/* Elements from one row of channels to the next, where inner is 1.  In a value that lies elsewhere
 * the channels are the last dim (ir/strided_view.c); in others dims of 1 may follow them. */
static int64_t row_pitch(const Graph *g, ValueId v, int64_t channels)
{
    int rank = value_type(g, v)->rank;
    return value_is_dense(g, v) ? channels : value_view(g, v).stride[rank - 2];
}

MomentsDesc moments_describe(const Lowering *l, const Node *n)
{
    const Type *x = value_type(l->graph, n->in[0]);
    AxisShape a = axis_shape(x, n->op == OP_layernorm_grad_sums ? -1 : channel_axis(x, n));
    MomentsDesc d = {.op = n->op, .outer = a.outer, .channels = a.length, .inner = a.inner};
    d.chunks = reduce_chunks(l->graph, n);
    d.partial_bytes = reduce_partial_bytes(l->graph, n);
    d.eps = node_float(n, ATTR_eps, 1e-5);
    for (int i = 0; i < moments_images(&d); i++)
        d.pitch[i] = row_pitch(l->graph, n->in[i], d.channels);
    return d;
}

int moments_bufs(const Lowering *l, const Node *n, CallBuf *bufs)
{
    for (int i = 0; i < n->n_in; i++)
        bufs[i] = point_buf(l->graph, n->in[i]);
    bufs[n->n_in] = (CallBuf){VALUE_NONE, 0};
    bufs[n->n_in + 1] = (CallBuf){n->out[0], 0};
    bufs[n->n_in + 2] = (CallBuf){n->out[1], 0};
    return n->n_in;
}
