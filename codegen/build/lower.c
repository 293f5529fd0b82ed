/* The table of lowering rules, and the walk over a planned graph. */
#include "codegen/build/kernel.h"

#include "ir/support/bug.h"

/* Sources and views cost nothing. */
void lower_none(Lowering *l, const Node *node)
{
    (void)l;
    (void)node;
}

static LowerRule *const lower_table[OP_COUNT] = {
#define OP(name, in0, in1, n_out, op_class, shape, flops, grad, eval, lower)                       \
    [OP_##name] = lower_##lower,
#include "ir/ops.def"
#undef OP
};

void lower_call(Lowering *l, Call call)
{
    if (call.n_bufs > CALL_MAX_BUFS)
        BUG("kernel %s takes %d buffers", call.label, call.n_bufs);
    call.node = l->node;
    call.loc = graph_node(l->graph, l->node)->loc;
    vec_push(l->pool, &l->calls, call);
}

void lower_graph(Lowering *l)
{
    for (size_t i = 0; i < l->graph->order.len; i++) {
        l->node = l->graph->order.data[i];
        const Node *node = graph_node(l->graph, l->node);
        lower_table[node->op](l, node);
    }
}
