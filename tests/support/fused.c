/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/fused.h"

#include "ir/graph_internal.h"
#include "ir/shape_error.h"
#include "ir/support/bug.h"

static const char **fused_names(Graph *g, const char *name, int n_out)
{
    const char **names = POOL_ARRAY(g->pool, (size_t)n_out, const char *);
    names[0] = graph_unique_name(g, name ? name : "%fused");
    for (int i = 1; i < n_out; i++)
        names[i] = graph_unique_name(g, pool_printf(g->pool, "%s#%d", names[0], i));
    return names;
}

NodeId graph_add_fused(Graph *g, Graph *body, const ValueId *in, int n_in, const char *name,
                       Loc loc)
{
    Node n = {.op = OP_fused, .n_in = n_in, .loc = loc, .body = body, .remat_of = NODE_NONE};
    n.in = pool_grow(g->pool, in, (size_t)n_in * sizeof *in, (size_t)n_in * sizeof *in);
    Type *types = POOL_ARRAY(g->pool, (size_t)node_max_results(&n), Type);
    ShapeError err;
    int n_out;
    if (!node_infer(g, &n, types, &n_out, &err))
        BUG("fused (%s): %s", name ? name : "unnamed", err.message);
    return graph_append(g, &n, types, fused_names(g, name, n_out), n_out);
}
