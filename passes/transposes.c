/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A weight that many products of few rows read against its rows is transposed once.
 *
 * A recurrence, written out, multiplies by the same weights at every step.  A product packs a
 * weight [out, in] with its rows and columns exchanged, which takes as long for 20 rows as for
 * 1,000; one that is [in, out] is read as it lies.  The sums, and so the bits, are the same.  It is
 * behind remat, and is kept where no plan of the step as it was needs less memory. */
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/views.h"

enum {
    ROWS_MOST = 32, /* more of them make up for the packing */
    USES_LEAST = 8  /* that make up for the transposition */
};

/* A product of few rows, and which input of the step's node is its weight. */
typedef struct Reader {
    const Node *node; /* NULL: it is none */
    Graph *graph;     /* the step, or the body of a group */
    NodeId product;
    int input;
} Reader;

static bool is_product(const Graph *g, const Node *n)
{
    if (n->op != OP_linear || node_flag(n, ATTR_in_out) || node_attr(n, ATTR_library) ||
        n->in[0] == n->in[1])
        return false;
    const Type *x = value_type(g, n->in[0]);
    return type_elements(x) <= ROWS_MOST * x->dim[x->rank - 1];
}

static int count_reads(const Graph *g, ValueId v)
{
    int n = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *node = graph_node(g, g->order.data[k]);
        for (int i = 0; i < node->n_in; i++)
            n += node->in[i] == v;
    }
    return n;
}

static Reader reader_of(Graph *g, NodeId id)
{
    const Node *n = graph_node(g, id);
    if (n->op != OP_fused)
        return is_product(g, n) ? (Reader){n, g, id, 1} : (Reader){0};
    for (size_t k = 0; k < n->body->order.len; k++) {
        NodeId inner = n->body->order.data[k];
        const Node *product = graph_node(n->body, inner);
        int input = is_product(n->body, product) ? group_input(n, product->in[1]) : -1;
        if (input >= 0 && count_reads(n->body, product->in[1]) == 1)
            return (Reader){n, n->body, inner, input};
    }
    return (Reader){0};
}

/* How many products read each value so, by ValueId. */
static int *count_readers(Graph *g, Pool *scratch)
{
    int *readers = POOL_ARRAY(scratch, g->values.len + 1, int);
    for (size_t k = 0; k < g->order.len; k++) {
        Reader r = reader_of(g, g->order.data[k]);
        if (r.node)
            readers[r.node->in[r.input]]++;
    }
    return readers;
}

static ValueId transpose(Graph *g, ValueId weight)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_perm, (const int64_t[]){1, 0}, 2);
    const char *name = pool_printf(g->pool, "%%%s.t", graph_value(g, weight)->name + 1);
    return graph_add(g, OP_transpose, &weight, 1, &attrs, name, (Loc){0});
}

static void read_transposed(Graph *g, NodeId id, const Reader *r, ValueId transposed)
{
    Node *product = graph_node(r->graph, r->product);
    node_set_attr(r->graph, product, (Attr){.key = ATTR_in_out, .u.i = 1});
    if (r->graph != g)
        graph_value(r->graph, product->in[1])->type = *value_type(g, transposed);
    graph_node(g, id)->in[r->input] = transposed;
}

/* A copy of the graph with weights transposed; NULL: there are none. */
static Graph *with_transposes(Pool *pool, Pool *scratch, const Graph *old)
{
    Graph *g = graph_copy(pool, old);
    int *readers = count_readers(g, scratch);
    bool changed = false;
    ValueId *transposed = POOL_ARRAY(scratch, g->values.len + 1, ValueId); /* + 1 */
    Rewrite rewrite = rewrite_begin(g, scratch);
    for (size_t k = 0; k < rewrite.n_old; k++) {
        NodeId id = rewrite.old_order[k];
        Reader r = reader_of(g, id);
        ValueId weight = r.node ? r.node->in[r.input] : 0;
        if (r.node && readers[weight] >= USES_LEAST) {
            if (!transposed[weight])
                transposed[weight] = transpose(g, weight) + 1;
            r = reader_of(g, id); /* the nodes may have moved */
            read_transposed(g, id, &r, transposed[weight] - 1);
            changed = true;
        }
        rewrite_keep(&rewrite, id);
    }
    rewrite_end(&rewrite);
    return changed ? g : NULL;
}

bool pass_transposes(PassContext *ctx)
{
    change_no_larger(ctx, with_transposes, MEMPLAN_FINAL);
    return true;
}
