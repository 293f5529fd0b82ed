/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/pod.h"

#include "ir/support/bug.h"
#include "ir/support/strbuf.h"

#include <string.h>

AxisShape axis_shape(const Type *t, int64_t axis)
{
    AxisShape a = {1, 1, 1};
    if (axis < 0)
        axis += t->rank;
    for (int i = 0; i < t->rank; i++)
        *(i < axis ? &a.outer : i == axis ? &a.length : &a.inner) *= t->dim[i];
    return a;
}

int node_bufs(const Node *n, CallBuf *bufs)
{
    int n_bufs = 0;
    for (int i = 0; i < n->n_in; i++)
        bufs[n_bufs++] = (CallBuf){n->in[i], 0};
    for (int i = 0; i < n->n_out; i++)
        bufs[n_bufs++] = (CallBuf){n->out[i], 0};
    return n_bufs;
}

CallDraft pod_call(const Lowering *l, const char *name, const void *desc, size_t bytes,
                   int64_t n_tasks, const CallBuf *bufs, int n_bufs)
{
    if (n_bufs > CALL_MAX_BUFS)
        BUG("%s takes %d buffers", name, n_bufs);
    void *copy = pool_alloc(l->pool, bytes);
    memcpy(copy, desc, bytes);
    StrBuf key = strbuf_new(l->pool);
    desc_key(&key, name, desc, bytes);
    CallDraft call = {.key = key.text, .label = name};
    call.desc = copy;
    call.n_tasks = n_tasks;
    call.n_bufs = n_bufs;
    memcpy(call.buf, bufs, (size_t)n_bufs * sizeof *bufs);
    return call;
}

void pod_count_work(const Lowering *l, CallDraft *call)
{
    const Node *node = graph_node(l->graph, l->node);
    call->flops = node_flops(l->graph, node);
    call->bytes = (double)node_bytes_moved(l->graph, node);
}

void pod_count_join(const Lowering *l, CallDraft *call)
{
    call->bytes = (double)node_workspace_bytes(l->graph, graph_node(l->graph, l->node));
}
