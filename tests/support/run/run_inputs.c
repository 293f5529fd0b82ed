/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/run/run_inputs.h"

void run_fill_inputs(const KernelRun *r, EvalState *s, RunElement *element)
{
    for (size_t k = 0; k < r->graph->order.len; k++) {
        const Node *n = graph_node(r->graph, r->graph->order.data[k]);
        if (n->op != OP_input)
            continue;
        int64_t count = type_elements(value_type(r->graph, n->out[0]));
        double *exact = POOL_ARRAY(r->pool, (size_t)count, double);
        float *data = (float *)(void *)r->data[n->out[0]];
        for (int64_t i = 0; i < count; i++)
            data[i] = (float)(exact[i] = element(k, i));
        eval_set(s, n->out[0], exact);
    }
}
