/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/matrix.h"

#include "codegen/forms/point.h"

#include "ir/support/bug.h"

const Type *matrix_operand_type(const MatrixNode *m, int i)
{
    return value_type(m->graph, m->node->in[i]);
}

const Type *matrix_result_type(const MatrixNode *m)
{
    return value_type(m->graph, m->node->out[0]);
}

/* Of the node, or of the group that it is in. */
static ValueId stored(const MatrixNode *m)
{
    return m->fused ? m->fused->out[0] : m->node->out[0];
}

double matrix_bytes(const MatrixNode *m)
{
    return (double)type_bytes(matrix_operand_type(m, 0)) +
           (double)type_bytes(matrix_operand_type(m, 1)) +
           (double)type_bytes(value_type(m->l->graph, stored(m)));
}

CallDraft matrix_call(const MatrixNode *m)
{
    CallDraft call = {.n_bufs = 1};
    call.buf[0] = (CallBuf){stored(m), 0};
    return call;
}

/* Input i of a fused node is the i-th `input` node of its body. */
static ValueId outer_value(const MatrixNode *m, ValueId inner)
{
    int index = 0;
    for (size_t i = 0; i < m->graph->order.len; i++) {
        const Node *n = graph_node(m->graph, m->graph->order.data[i]);
        if (n->op != OP_input)
            continue;
        if (n->out[0] == inner)
            return m->fused->in[index];
        index++;
    }
    BUG("a fused matrix operation reads a value made inside its group");
}

int matrix_add_operand(const MatrixNode *m, CallDraft *call, int i)
{
    ValueId v = m->node->in[i];
    if (m->fused && v == group_prologue(m->graph)) {
        call->made = call->n_bufs + 1;
        return call_add_numbers(call);
    }
    call->buf[call->n_bufs] = (CallBuf){m->fused ? outer_value(m, v) : v, 0};
    return call->n_bufs++;
}

Epilogue matrix_epilogue(const MatrixNode *m, CallDraft *call, int bias)
{
    Epilogue e = epilogue_none(value_type(m->l->graph, stored(m)));
    if (bias >= 0 && bias < m->node->n_in)
        e.bias_buf = matrix_add_operand(m, call, bias);
    if (m->fused)
        epilogue_add_body(&e, m->l->graph, m->fused, call);
    return e;
}

static void lower_fused(Lowering *l, const Node *fused, MatrixLower *const rules[OP_COUNT])
{
    const Graph *body = fused->body;
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        if (!rules[n->op])
            continue;
        rules[n->op](&(MatrixNode){l, body, n, fused});
        return;
    }
    BUG("a fused group without a matrix operation");
}

void lower_matrix(Lowering *l, const Node *node, MatrixLower *const rules[OP_COUNT])
{
    if (node->op == OP_fused)
        lower_fused(l, node, rules);
    else
        rules[node->op](&(MatrixNode){l, l->graph, node, NULL});
}

void lower_group(Lowering *l, const Node *node, MatrixLower *const rules[OP_COUNT])
{
    if (graph_has_matrix(node->body))
        lower_matrix(l, node, rules);
    else
        lower_point_group(l, node);
}
