/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The walk over a planned graph. */
#include "codegen/build/kernel.h"

#include "codegen/jit/jit.h"
#include "ir/support/bug.h"

void desc_key(StrBuf *key, const char *what, const void *desc, size_t bytes)
{
    static const char digit[] = "0123456789abcdef";
    const unsigned char *byte = desc;
    strbuf_printf(key, "%s ", what);
    for (size_t i = 0; i < bytes; i++)
        strbuf_putn(key, (const char[]){digit[byte[i] / 16], digit[byte[i] % 16]}, 2);
}

static uint64_t bf16_buffers(const Graph *g, const CallDraft *draft)
{
    uint64_t bits = 0;
    for (int i = 0; i < draft->n_bufs && i < 64; i++) {
        ValueId v = draft->buf[i].value;
        if (v != VALUE_NONE && v != CALL_NUMBER && value_type(g, v)->dtype == DTYPE_BF16)
            bits |= (uint64_t)1 << i;
    }
    return bits;
}

void call_emit(const Call *call, Jit *jit)
{
    jit_set_bf16(jit, call->bf16);
    call->emit(jit, call->desc);
}

void call_text(const Call *call, StrBuf *out, const char *symbol)
{
    for (int i = 0; i < 64 && !call->library; i++)
        if (call->bf16 >> i & 1)
            strbuf_printf(out, "#define BF16_%d 1\n", i);
    call->text(out, symbol, call->desc);
}

static CallSpans few_spans(CallSpans s)
{
    return s.spans && s.spans->n > TASK_SPANS_MOST ? (CallSpans){0} : s;
}

void lower_call(Lowering *l, CallDraft draft)
{
    uint64_t bf16 = bf16_buffers(l->graph, &draft);
    if (bf16)
        draft.key = pool_printf(l->pool, "%s bf16:%llx", draft.key, (unsigned long long)bf16);
    size_t n = (size_t)draft.n_bufs;
    if (draft.n_bufs > CALL_MAX_BUFS)
        BUG("kernel %s takes %d buffers", draft.label, draft.n_bufs);
    Call call = {.key = draft.key,
                 .label = draft.label,
                 .emit = draft.emit,
                 .text = draft.text,
                 .amx = draft.amx,
                 .library = draft.library,
                 .problem = l->problem,
                 .desc = draft.desc,
                 .n_tasks = draft.n_tasks,
                 .threads = draft.threads,
                 .buf = pool_grow(l->pool, draft.buf, n * sizeof *draft.buf, n * sizeof *draft.buf),
                 .n_bufs = draft.n_bufs,
                 .bf16 = bf16,
                 .flops = draft.flops,
                 .bytes = draft.bytes,
                 .writes = few_spans(draft.writes),
                 .reads = few_spans(draft.reads),
                 .made = draft.made,
                 .pieces = draft.pieces,
                 .loc = graph_node(l->graph, l->node)->loc,
                 .node = l->node,
                 .contract = draft.contract};
    vec_push(l->pool, &l->calls, call);
}

int lower_variant(Lowering *l, const KernelFamily *f, const char *key)
{
    l->problem = tuning_problem(l->pool, f, key);
    return tuning_variant(l->tuning, f, l->problem);
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
        l->problem = NULL;
        l->backend->rules[node->op](l, node);
    }
}
