/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention that is written as products and a softmax becomes one operation, whose scores are no
 * tensor:
 *
 *     matmul(dropout?(softmax(causal_mask?(matmul(q, k^T) [* constant] [+ bias]))), v)
 *
 * The operation has the bits of those it replaces (codegen/forms/attention.h), and so do all
 * gradients: where the order in which parts of a gradient are added could change, it is left alone,
 * as it is where something else reads what lies between. */
#include "ir/attention.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <math.h>

typedef struct Finder {
    Graph *g;
    const NodeId *order; /* as it was */
    size_t n_values;     /* that were there */
    const int *uses;
    size_t *position; /* by node: place in the order */
    bool *learns;     /* by value: depends on a parameter */
} Finder;

typedef struct Found {
    ValueId q, k, v, bias, rng; /* VALUE_NONE: none */
    const Node *first;          /* the product that makes the scores */
    const Node *mask, *scale, *dropout;
    double factor;
} Found;

static void look_at_graph(Finder *f, Pool *scratch)
{
    const Graph *g = f->g;
    f->n_values = g->values.len;
    f->uses = count_uses(g, scratch);
    f->position = POOL_ARRAY(scratch, g->nodes.len, size_t);
    f->learns = POOL_ARRAY(scratch, g->values.len, bool);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        bool learns = n->op == OP_param;
        for (int k = 0; k < n->n_in; k++)
            learns |= f->learns[n->in[k]];
        for (int k = 0; k < n->n_out; k++)
            f->learns[n->out[k]] = learns;
        f->position[g->order.data[i]] = i;
    }
}

/* The node that makes v if it is of this kind and nothing else reads v. */
static const Node *only_for_this(const Finder *f, ValueId v, OpKind op)
{
    const Node *n = value_node(f->g, v);
    bool plain = n->op == op && n->hint == REMAT_AUTO && v < f->n_values && f->uses[v] == 1;
    return plain ? n : NULL;
}

static bool along_last_axis(const Graph *g, const Node *softmax)
{
    int64_t axis = node_int(softmax, ATTR_axis, -1);
    return axis == -1 || axis == value_type(g, softmax->in[0])->rank - 1;
}

/* v = x * constant, else v is x itself. */
static ValueId take_scale(const Finder *f, ValueId v, Found *out)
{
    const Node *n = only_for_this(f, v, OP_mul);
    for (int i = 0; n && i < 2; i++)
        if (const_value(f->g, n->in[1 - i], &out->factor)) {
            out->scale = n;
            return n->in[i];
        }
    return v;
}

static bool take_product(const Finder *f, ValueId v, Found *out)
{
    out->scale = NULL; /* of another operand, which was no product */
    const Node *n = only_for_this(f, take_scale(f, v, out), OP_matmul);
    if (!n || node_flag(n, ATTR_ta) || !node_flag(n, ATTR_tb))
        return false;
    out->q = n->in[0], out->k = n->in[1];
    out->first = n;
    return true;
}

/* A number for every key, the same for all rows, which nothing learns. */
static bool is_bias(const Finder *f, ValueId v, const Type *scores)
{
    const Type *t = value_type(f->g, v);
    if (v >= f->n_values || f->learns[v] || t->dtype != DTYPE_F32 || t->rank < 1 ||
        t->rank > scores->rank || t->dim[t->rank - 1] != scores->dim[scores->rank - 1])
        return false;
    return t->rank < 2 || t->dim[t->rank - 2] == 1;
}

static bool take_scores(const Finder *f, ValueId v, Found *out)
{
    const Node *n = only_for_this(f, v, OP_add);
    const Type *scores = value_type(f->g, v);
    for (int i = 0; n && i < 2; i++)
        if (is_bias(f, n->in[1 - i], scores) &&
            type_same_shape(value_type(f->g, n->in[i]), scores) && take_product(f, n->in[i], out)) {
            out->bias = n->in[1 - i];
            return true;
        }
    return take_product(f, v, out);
}

static ValueId take_mask(const Finder *f, ValueId v, Found *out)
{
    const double all = -(double)INFINITY;
    const Node *n = only_for_this(f, v, OP_causal_mask);
    if (!n || node_float(n, ATTR_value, all) != all)
        return v;
    out->mask = n;
    return n->in[0];
}

static ValueId take_dropout(const Finder *f, ValueId v, Found *out)
{
    const Node *n = only_for_this(f, v, OP_dropout);
    if (!n)
        return v;
    out->dropout = n;
    out->rng = n->in[1];
    return n->in[0];
}

/* All batch dims are equal: nothing is broadcast. */
static bool sizes_fit(const Graph *g, const Found *f)
{
    const Type *q = value_type(g, f->q), *k = value_type(g, f->k), *v = value_type(g, f->v);
    int last = q->rank - 1;
    if (k->rank != q->rank || v->rank != q->rank || q->dtype != DTYPE_F32 ||
        k->dtype != DTYPE_F32 || v->dtype != DTYPE_F32)
        return false;
    for (int d = 0; d < last - 1; d++)
        if (k->dim[d] != q->dim[d] || v->dim[d] != q->dim[d])
            return false;
    return q->dim[last - 1] <= INT32_MAX && k->dim[last - 1] <= INT32_MAX && q->dim[last] >= 1 &&
           q->dim[last] <= ATTENTION_WIDTH_MOST && v->dim[last] >= 1 &&
           v->dim[last] <= ATTENTION_WIDTH_MOST;
}

/* Gradients are added in the order in which the operations come, so those of q and k must have no
 * other part that comes between the two products. */
static bool sums_keep_order(const Finder *f, const Found *found, const Node *last)
{
    const Graph *g = f->g;
    if (found->v == found->q || found->v == found->k)
        return false;
    for (size_t i = f->position[graph_value(g, found->first->out[0])->def] + 1;
         i < f->position[graph_value(g, last->out[0])->def]; i++) {
        const Node *n = graph_node(g, f->order[i]);
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] == found->q || n->in[k] == found->k)
                return false;
    }
    return true;
}

static bool find(const Finder *f, const Node *last, Found *out)
{
    *out = (Found){.bias = VALUE_NONE, .rng = VALUE_NONE};
    if (last->op != OP_matmul || last->hint != REMAT_AUTO || node_flag(last, ATTR_ta) ||
        node_flag(last, ATTR_tb))
        return false;
    out->v = last->in[1];
    const Node *softmax = only_for_this(f, take_dropout(f, last->in[0], out), OP_softmax);
    return softmax && along_last_axis(f->g, softmax) &&
           take_scores(f, take_mask(f, softmax->in[0], out), out) && sizes_fit(f->g, out) &&
           sums_keep_order(f, out, last);
}

static ValueId add_attention(Graph *g, const Found *f, Loc loc)
{
    AttrList attrs = {0};
    ValueId in[5] = {f->q, f->k, f->v};
    int n = 3;
    if (f->scale)
        attrs_float(&attrs, ATTR_scale, f->factor);
    if (f->mask)
        attrs_int(&attrs, ATTR_causal, 1);
    if (f->bias != VALUE_NONE)
        in[n++] = f->bias;
    if (f->dropout) {
        attrs_float(&attrs, ATTR_p, node_float(f->dropout, ATTR_p, 0));
        attrs_int(&attrs, ATTR_key, node_int(f->dropout, ATTR_key, 0));
        in[n++] = f->rng;
    }
    return graph_add(g, OP_attention, in, n, &attrs, NULL, loc);
}

bool pass_attention(PassContext *ctx)
{
    Graph *g = ctx->graph;
    if (ctx->request.no_attention)
        return true;
    Pool *scratch = pool_new_child(ctx->pool);
    Finder f = {.g = g};
    look_at_graph(&f, scratch);
    Rewrite r = rewrite_begin(g, scratch);
    f.order = r.old_order;
    for (size_t i = 0; i < r.n_old; i++) {
        Found found;
        rewrite_inputs(&r, r.old_order[i]);
        const Node n = *graph_node(g, r.old_order[i]);
        if (find(&f, &n, &found))
            rewrite_replace(&r, n.out[0], add_attention(g, &found, n.loc));
        else
            rewrite_keep(&r, r.old_order[i]);
    }
    rewrite_end(&r);
    pool_free(scratch);
    return pass_dce(ctx);
}
