/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products of bf16 whose sums are added by pairs (ir/product.h), as matrix registers do: they are
 * marked.  The types and the shape alone decide, before anything is known of a budget, so that
 * operations that run again add in the same order. */
#include "ir/product.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

enum { SIDE_LEAST = 16 }; /* rows and columns: of fewer, registers would be mostly empty */

static DType factor_type(const Graph *g, const Node *n, int i)
{
    return value_type(g, n->in[i])->dtype;
}

static bool has_sides(const Graph *g, const Node *n)
{
    ProductSides s;
    return product_sides(g, n, &s) && s.rows >= SIDE_LEAST && s.columns >= SIDE_LEAST &&
           s.steps >= PRODUCT_PAIRS_STEPS;
}

/* A term of a sum of products of few rows, which pass sums makes one product. */
static bool is_term(const Graph *g, const Node *n, const bool *added)
{
    const Type *a = value_type(g, n->in[0]);
    return n->op == OP_matmul && node_flag(n, ATTR_ta) && !node_flag(n, ATTR_tb) && a->rank == 2 &&
           a->dim[0] <= PRODUCT_CHAIN && value_type(g, n->out[0])->dtype == DTYPE_F32 &&
           added[n->out[0]];
}

/* Values that an addition reads. */
static bool *find_added(const Graph *g, Pool *pool)
{
    bool *added = POOL_ARRAY(pool, g->values.len + 1, bool);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; n->op == OP_add && k < n->n_in; k++)
            added[n->in[k]] = true;
    }
    return added;
}

static bool adds_by_pairs(const Graph *g, const Node *n)
{
    if (!has_sides(g, n) || node_attr(n, ATTR_library) || node_attr(n, ATTR_chain))
        return false;
    return factor_type(g, n, 0) == DTYPE_BF16 || factor_type(g, n, 1) == DTYPE_BF16;
}

bool pass_pairs(PassContext *ctx)
{
    Graph *g = ctx->graph;
    if (ctx->exact || ctx->for_device)
        return true;
    Pool *scratch = pool_new_child(ctx->pool);
    const bool *added = find_added(g, scratch);
    for (size_t i = 0; i < g->order.len; i++) {
        Node *n = graph_node(g, g->order.data[i]);
        if (adds_by_pairs(g, n) && !is_term(g, n, added))
            node_set_attr(g, n, (Attr){.key = ATTR_pairs, .u.i = 1});
    }
    pool_free(scratch);
    return true;
}
