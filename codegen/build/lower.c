/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The walk over a planned graph. */
#include "codegen/build/kernel.h"

#include "ir/support/bug.h"

void desc_key(StrBuf *key, const char *what, const void *desc, size_t bytes)
{
    static const char digit[] = "0123456789abcdef";
    const unsigned char *byte = desc;
    strbuf_printf(key, "%s ", what);
    for (size_t i = 0; i < bytes; i++)
        strbuf_putn(key, (const char[]){digit[byte[i] / 16], digit[byte[i] % 16]}, 2);
}

void lower_call(Lowering *l, CallDraft draft)
{
    size_t n = (size_t)draft.n_bufs;
    if (draft.n_bufs > CALL_MAX_BUFS)
        BUG("kernel %s takes %d buffers", draft.label, draft.n_bufs);
    Call call = {.key = draft.key,
                 .label = draft.label,
                 .emit = draft.emit,
                 .text = draft.text,
                 .desc = draft.desc,
                 .n_tasks = draft.n_tasks,
                 .threads = draft.threads,
                 .buf = pool_grow(l->pool, draft.buf, n * sizeof *draft.buf, n * sizeof *draft.buf),
                 .n_bufs = draft.n_bufs,
                 .flops = draft.flops,
                 .bytes = draft.bytes,
                 .loc = graph_node(l->graph, l->node)->loc,
                 .node = l->node,
                 .contract = draft.contract};
    vec_push(l->pool, &l->calls, call);
}

void lower_none(Lowering *l, const Node *node)
{
    (void)l;
    (void)node;
}

void lower_graph(Lowering *l)
{
    for (size_t i = 0; i < l->graph->order.len; i++) {
        l->node = l->graph->order.data[i];
        const Node *node = graph_node(l->graph, l->node);
        l->backend->rules[node->op](l, node);
    }
}
