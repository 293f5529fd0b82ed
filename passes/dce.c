/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dead code elimination: keeps what the outputs and the persistent tensors need. */
#include "ir/loop.h"
#include "ir/support/bitset.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

/* Effects on persistent tensors, and everything the host reads or writes by name. */
static bool is_root(const Graph *g, const Node *n)
{
    return node_is_persistent(n) || n->op == OP_input ||
           op_table[n->op].op_class == OP_CLASS_UPDATE || node_writes(g, n);
}

/* Results of loops that nothing reads are not kept step by step. */
static void drop_results(Graph *g, Pool *scratch, NodeId loop, const Bitset *live)
{
    const Node *n = graph_node(g, loop);
    bool *keep = POOL_ARRAY(scratch, (size_t)n->n_out + 1, bool);
    for (int k = 0; k < n->n_out; k++)
        keep[k] = bitset_has(live, n->out[k]);
    loop_keep_results(g, loop, keep);
}

bool pass_dce(PassContext *ctx)
{
    Graph *g = ctx->graph;
    Pool *scratch = pool_new_child(ctx->pool);
    Bitset live = bitset_new(scratch, g->values.len);
    for (size_t i = 0; i < g->outputs.len; i++)
        bitset_add(&live, g->outputs.data[i].value);
    size_t kept = g->order.len;
    NodeId *order = g->order.data;
    for (size_t i = g->order.len; i-- > 0;) {
        const Node *n = graph_node(g, order[i]);
        bool needed = is_root(g, n);
        for (int k = 0; k < n->n_out; k++)
            needed = needed || bitset_has(&live, n->out[k]);
        if (!needed)
            continue;
        for (int k = 0; k < n->n_in; k++)
            bitset_add(&live, n->in[k]);
        if (node_is_loop(n))
            drop_results(g, scratch, order[i], &live);
        order[--kept] = order[i];
    }
    size_t n_live = g->order.len - kept;
    for (size_t i = 0; i < n_live; i++)
        order[i] = order[kept + i];
    g->order.len = n_live;
    pool_free(scratch);
    return true;
}
