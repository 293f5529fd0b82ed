/* The table of lowering rules, and the walk over a planned graph. */
#include "codegen/kernel.h"

#include "ir/support/bug.h"

/* Sources and views cost nothing. */
static void lower_none(Lowering *l, const Node *node)
{
    (void)l;
    (void)node;
}

LowerRule lower_fill, lower_iota, lower_pointwise, lower_reduce, lower_argmax, lower_matmul,
    lower_linear, lower_conv2d, lower_conv2d_dgrad, lower_conv2d_wgrad, lower_maxpool,
    lower_maxpool_grad, lower_avgpool, lower_avgpool_grad, lower_bn_stats, lower_bn_grad_sums,
    lower_bn_running, lower_layernorm, lower_layernorm_grad, lower_layernorm_grad_sums,
    lower_softmax, lower_softmax_grad, lower_log_softmax, lower_log_softmax_grad,
    lower_cross_entropy, lower_cross_entropy_grad, lower_accuracy, lower_embedding,
    lower_embedding_grad, lower_transpose, lower_broadcast, lower_slice, lower_concat, lower_pad,
    lower_sgd_step, lower_adam_step, lower_clip_scale, lower_checksum, lower_fused;

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
