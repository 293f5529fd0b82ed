/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Activations in bf16, where the train section says so.  With tf32 nothing changes here: libraries
 * round the factors of their products (codegen/cuda/library/).
 *
 * Operations that choose their result's type (products, convolutions, embeddings) make bf16;
 * everything that is computed of it follows by the shape rules: bf16 beside f32 gives bf16, sums
 * and statistics are f32.  Parameters, running statistics and the data themselves, or views of
 * them, stay f32 and are read whole; what is computed of them is an activation where a product
 * reads it. An operation without code for bf16 gets its operands cast up and its results cast down.
 */
#include "ir/loop.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include "ir/support/bug.h"

#include <string.h>

enum { MAX_RESULTS = 16 };

typedef struct Precision {
    PassContext *ctx;
    Graph *g;
    Rewrite r;
} Precision;

static DType dtype_of(const Precision *p, ValueId v)
{
    return value_type(p->g, v)->dtype;
}

static void cast_operands(Precision *p, NodeId id, DType from, DType to)
{
    for (int i = 0; i < graph_node(p->g, id)->n_in; i++) {
        ValueId v = graph_node(p->g, id)->in[i];
        if (dtype_of(p, v) != from)
            continue;
        ValueId cast = graph_add_cast(p->g, v, to, graph_node(p->g, id)->hint);
        graph_node(p->g, id)->in[i] = cast;
    }
}

static bool reads_bf16(const Precision *p, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (dtype_of(p, n->in[i]) == DTYPE_BF16)
            return true;
    return false;
}

/* Gives the results the types that follow from the operands; false when these do not fit, or there
 * is no code for them. */
static bool retyped(const Precision *p, NodeId id)
{
    Node *n = graph_node(p->g, id);
    Type types[MAX_RESULTS];
    int n_out = n->n_out;
    ShapeError err = {0};
    if (node_is_loop(n) || n->op == OP_minimize) /* its body computes in f32; the loss is f32 */
        return !reads_bf16(p, n);
    if (n_out > MAX_RESULTS || !op_table[n->op].shape(p->g, n, types, &n_out, &err))
        return false;
    for (int i = 0; i < n->n_out; i++)
        graph_value(p->g, n->out[i])->type = types[i];
    return !p->ctx->supports || p->ctx->supports(p->g, n, &err);
}

/* Given from outside, whatever its shape is said to be. */
static bool is_given(const Graph *g, ValueId v)
{
    const Node *n = value_node(g, v);
    while (op_table[n->op].op_class == OP_CLASS_VIEW)
        n = value_node(g, n->in[0]);
    return op_table[n->op].op_class == OP_CLASS_SOURCE || n->op == OP_minimize;
}

/* v in bf16.  What a view shows is cast where it was made, whose kernel can take the cast in. */
static ValueId lowered(Precision *p, ValueId v, RematHint hint)
{
    const Node view = *value_node(p->g, v);
    if (view.op != OP_reshape)
        return graph_add_cast(p->g, v, DTYPE_BF16, hint);
    ValueId whole = graph_add_cast(p->g, view.in[0], DTYPE_BF16, hint);
    AttrList attrs = {.n = view.n_attr};
    memcpy(attrs.items, view.attr, (size_t)view.n_attr * sizeof *view.attr);
    return graph_add(p->g, OP_reshape, &whole, 1, &attrs, NULL, view.loc);
}

/* The two operands of a product; a bias is f32.  Data and parameters are read as they are; anything
 * else is an activation, which is kept for the gradient. */
static void lower_factors(Precision *p, NodeId id)
{
    for (int i = 0; i < 2; i++) {
        ValueId v = graph_node(p->g, id)->in[i];
        if (i < graph_node(p->g, id)->n_in && dtype_of(p, v) == DTYPE_F32 && !is_given(p->g, v)) {
            ValueId cast = lowered(p, v, graph_node(p->g, id)->hint);
            graph_node(p->g, id)->in[i] = cast;
        }
    }
}

/* Results as large as the largest operand are activations again; what is smaller (a loss,
 * statistics) stays f32. */
static bool is_activation(const Graph *g, const Node *n, int out)
{
    int64_t size = type_elements(value_type(g, n->out[out])), most = 0;
    for (int i = 0; i < n->n_in; i++)
        if (type_elements(value_type(g, n->in[i])) > most)
            most = type_elements(value_type(g, n->in[i]));
    return value_type(g, n->out[out])->dtype == DTYPE_F32 && size >= most;
}

static void set_result(Precision *p, NodeId id)
{
    node_set_attr(p->g, graph_node(p->g, id),
                  (Attr){.key = ATTR_dtype, .u.s = dtype_name(DTYPE_BF16)});
}

/* Operands that have to be of one type (the parts of a concatenation): all of them bf16, unless
 * that does not fit either. */
static bool lower_all(Precision *p, NodeId id)
{
    Node *n = graph_node(p->g, id);
    size_t order = p->g->order.len;
    int n_in = n->n_in;
    ValueId *before = POOL_ARRAY(p->r.scratch, (size_t)n_in, ValueId);
    memcpy(before, n->in, (size_t)n_in * sizeof *before);
    cast_operands(p, id, DTYPE_F32, DTYPE_BF16);
    if (retyped(p, id))
        return true;
    memcpy(graph_node(p->g, id)->in, before, (size_t)n_in * sizeof *before);
    p->g->order.len = order;
    return false;
}

/* Nothing of it in bf16: operands are cast up, activations down again. */
static void leave_f32(Precision *p, NodeId id)
{
    cast_operands(p, id, DTYPE_BF16, DTYPE_F32);
    if (!retyped(p, id))
        BUG("precision: %s has no code", op_name(graph_node(p->g, id)->op));
    rewrite_keep(&p->r, id);
    for (int i = 0; i < graph_node(p->g, id)->n_out; i++) {
        const Node *n = graph_node(p->g, id);
        ValueId v = n->out[i];
        if (is_activation(p->g, n, i) && graph_value(p->g, v)->writes == VALUE_NONE)
            rewrite_replace(&p->r, v, graph_add_cast(p->g, v, DTYPE_BF16, n->hint));
    }
}

/* A product and the like, unless the model says what it makes. */
static bool makes_activation(const Node *n)
{
    return op_chooses_result(n->op) && !node_attr(n, ATTR_dtype);
}

/* Whether n now makes bf16.  It says so only where this does not follow from its operands. */
static bool made_bf16(Precision *p, NodeId id)
{
    set_result(p, id);
    bool fits = retyped(p, id);
    if (fits)
        lower_factors(p, id);
    node_drop_attr(graph_node(p->g, id), ATTR_dtype);
    if (!fits || (retyped(p, id) && dtype_of(p, graph_node(p->g, id)->out[0]) == DTYPE_BF16))
        return fits;
    set_result(p, id);
    return retyped(p, id);
}

static void visit(Precision *p, NodeId id)
{
    rewrite_inputs(&p->r, id);
    const Node *n = graph_node(p->g, id);
    bool makes = makes_activation(n);
    if ((!makes && !reads_bf16(p, n)) || (makes && made_bf16(p, id)) ||
        (!makes && (retyped(p, id) || lower_all(p, id))))
        rewrite_keep(&p->r, id);
    else
        leave_f32(p, id);
}

/* Results are read by whoever runs the model. */
static void raise_outputs(Precision *p)
{
    for (size_t i = 0; i < p->g->outputs.len; i++) {
        ValueId v = p->g->outputs.data[i].value;
        if (dtype_of(p, v) == DTYPE_BF16)
            p->g->outputs.data[i].value = graph_add_cast(p->g, v, DTYPE_F32, REMAT_AUTO);
    }
}

bool pass_precision(PassContext *ctx)
{
    const char *wanted = ctx->graph->train.precision;
    if (!wanted || strcmp(wanted, "f32") == 0 || strcmp(wanted, "tf32") == 0)
        return true;
    if (strcmp(wanted, "bf16") != 0)
        return pass_fail(ctx, "E616", pool_printf(ctx->pool, "there is no precision '%s'", wanted),
                         "precision = f32, tf32 or bf16");
    Pool *scratch = pool_new_child(ctx->pool);
    Precision p = {.ctx = ctx, .g = ctx->graph, .r = rewrite_begin(ctx->graph, scratch)};
    for (size_t i = 0; i < p.r.n_old; i++)
        visit(&p, p.r.old_order[i]);
    rewrite_end(&p.r);
    raise_outputs(&p);
    pool_free(scratch);
    return true;
}
