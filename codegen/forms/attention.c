/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/attention.h"

#include "codegen/forms/point.h"
#include "ir/strided_view.h"

#include <string.h>

static const char letters[] = "qkvogQKV";

const AttentionStrides *attention_at(const AttentionDesc *d, char tensor)
{
    return &d->at[strchr(letters, tensor) - letters];
}

static void describe_tensors(const Graph *g, const Node *n, AttentionDesc *d)
{
    for (int i = 0; i < ATTENTION_TENSORS; i++) {
        const char tensor = letters[i];
        const ValueId v = attention_tensor(n, tensor);
        if (v != VALUE_NONE)
            d->at[i] = attention_strides(n, tensor, value_type(g, v), value_view(g, v).stride);
    }
}

AttentionDesc attention_describe(const Lowering *l, const Node *n)
{
    AttentionShape a = attention_shape(l->graph, n);
    AttentionDesc d = {.heads = a.heads,
                       .group = a.group,
                       .rows = a.rows,
                       .keys = a.keys,
                       .width = a.width,
                       .value_width = a.value_width,
                       .grad = a.grad,
                       .causal = a.causal,
                       .biased = a.bias >= 0,
                       .drops = a.drops,
                       .scale = a.scale,
                       .p = a.p,
                       .blocks = attention_blocks(&a)};
    if (a.bias >= 0) { /* else kernels of any batch dims are equal */
        d.n_batch = a.n_batch;
        memcpy(d.batch, a.batch, sizeof d.batch);
        memcpy(d.bias_batch, a.bias_batch, sizeof d.bias_batch);
    }
    describe_tensors(l->graph, n, &d);
    return d;
}

AttentionBuffers attention_buffers(const AttentionDesc *d)
{
    int q = d->grad ? 1 : 0, bias = d->grad ? 6 : 3, rng = bias + (int)d->biased;
    AttentionBuffers b = {.q = q, .k = q + 1, .v = q + 2, .bias = bias, .rng = rng};
    b.result = rng + (int)d->drops;
    b.max = d->grad ? 4 : b.result + 1;
    b.sum = b.max + 1;
    b.key = b.result + 3;
    b.workspace = b.key + (int)d->drops;
    return b;
}

int attention_bufs(const Lowering *l, const Node *n, CallBuf *bufs)
{
    int n_bufs = node_bufs(n, bufs);
    for (int i = 0; i < n_bufs; i++)
        bufs[i] = point_buf(l->graph, bufs[i].value);
    if (node_attr(n, ATTR_p))
        bufs[n_bufs++] = (CallBuf){CALL_NUMBER, (int64_t)random_key(n)};
    if (node_workspace_bytes(l->graph, n))
        bufs[n_bufs++] = (CallBuf){VALUE_NONE, 0};
    return n_bufs;
}
