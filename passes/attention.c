/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention that is written as products and a softmax becomes one operation, whose scores are no
 * tensor:
 *
 *     matmul(dropout?(softmax(causal_mask?(matmul(q, k^T) [* constant] [+ bias]))), v)
 *
 * Where k and v are copies of fewer heads, one for each head of q in a group, it reads these:
 *
 *     k = reshape(broadcast([.., heads of k, 1, S, D]  ->  [.., heads of k, group, S, D]))
 *
 * The operation has the bits of those it replaces, and so do all gradients, but for sums over
 * groups of more than three heads (codegen/forms/attention.h): where the order in which parts of a
 * gradient are added could change, it is left alone, as it is where something else reads what lies
 * between. For cuDNN, which reads bf16, copies stay. */
#include "ir/attention.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

typedef struct Finder {
    Graph *g;
    const NodeId *order; /* as it was */
    size_t n_values;     /* that were there */
    const int *uses;
    size_t *position;  /* by node: place in the order */
    bool *learns;      /* by value: depends on a parameter */
    bool keeps_copies; /* of keys and values */
} Finder;

/* Keys or values; fewer: copies of these are read, which the operation does without. */
typedef struct Keys {
    ValueId v;
    const Node *reader;
    bool has_dim; /* of 1 behind the heads */
} Keys;

typedef struct Found {
    ValueId q, bias, rng; /* VALUE_NONE: none */
    Keys k, v;
    const Node *first; /* the product that makes the scores */
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
    out->q = n->in[0];
    out->k = (Keys){.v = n->in[1], .reader = n};
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
    const Type *q = value_type(g, f->q), *k = value_type(g, f->k.v), *v = value_type(g, f->v.v);
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

/* Of [.., heads, 1, S, D] and [.., heads, group, S, D], which is [.., heads * group, S, D]. */
static bool are_copies(const Type *from, const Type *copies, const Type *heads)
{
    int head = heads->rank - 3;
    bool fits = head >= 0 && from->rank == heads->rank + 1 && copies->rank == from->rank &&
                from->dim[head + 1] == 1;
    for (int d = 0; fits && d < copies->rank; d++)
        fits = d == head + 1 || from->dim[d] == copies->dim[d];
    for (int d = 0; fits && d < heads->rank; d++)
        fits = d == head || heads->dim[d] == copies->dim[d < head ? d : d + 1];
    return fits;
}

static Type without_dim(const Type *from)
{
    Type t = *from;
    t.rank--;
    for (int d = t.rank - 2; d < t.rank; d++)
        t.dim[d] = from->dim[d + 1];
    t.dim[t.rank] = 0;
    return t;
}

/* What *k are copies of, in its place. */
static bool take_copied(const Finder *f, Keys *k)
{
    const Graph *g = f->g;
    const Node *heads = only_for_this(f, k->v, OP_reshape);
    const Node *copies = heads ? only_for_this(f, heads->in[0], OP_broadcast) : NULL;
    if (!copies || !are_copies(value_type(g, copies->in[0]), value_type(g, copies->out[0]),
                               value_type(g, heads->out[0])))
        return false;
    *k = (Keys){.v = copies->in[0], .reader = copies, .has_dim = true};
    Type without = without_dim(value_type(g, k->v));
    const Node *dim = only_for_this(f, k->v, OP_reshape);
    if (dim && type_same_shape(value_type(g, dim->in[0]), &without))
        *k = (Keys){.v = dim->in[0], .reader = dim};
    return true;
}

/* Whether something reads v behind `reader` and before `last`. */
static bool read_between(const Finder *f, ValueId v, const Node *reader, const Node *last)
{
    const Graph *g = f->g;
    for (size_t i = f->position[graph_value(g, reader->out[0])->def] + 1;
         i < f->position[graph_value(g, last->out[0])->def]; i++) {
        const Node *n = graph_node(g, f->order[i]);
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] == v)
                return true;
    }
    return false;
}

/* Gradients are added in the order in which the operations come, so those of q, k and v must have
 * no other part that comes between what reads these now and the last product. */
static bool sums_keep_order(const Finder *f, const Found *found, const Node *last)
{
    return found->v.v != found->q && found->v.v != found->k.v &&
           !read_between(f, found->q, found->first, last) &&
           !read_between(f, found->k.v, found->k.reader, last) &&
           !read_between(f, found->v.v, found->v.reader, last);
}

/* Reads the heads that k and v are copies of, where both are, of as many. */
static void take_fewer_heads(const Finder *f, const Node *last, Found *out)
{
    Found fewer = *out;
    if (f->keeps_copies || !take_copied(f, &fewer.k) || !take_copied(f, &fewer.v))
        return;
    const Type k = *value_type(f->g, fewer.k.v), v = *value_type(f->g, fewer.v.v);
    int head = value_type(f->g, out->q)->rank - 3;
    if (k.dim[head] == v.dim[head] && sums_keep_order(f, &fewer, last))
        *out = fewer;
}

static bool find(const Finder *f, const Node *last, Found *out)
{
    *out = (Found){.bias = VALUE_NONE, .rng = VALUE_NONE};
    if (last->op != OP_matmul || last->hint != REMAT_AUTO || node_flag(last, ATTR_ta) ||
        node_flag(last, ATTR_tb))
        return false;
    out->v = (Keys){.v = last->in[1], .reader = last};
    const Node *softmax = only_for_this(f, take_dropout(f, last->in[0], out), OP_softmax);
    bool found = softmax && along_last_axis(f->g, softmax) &&
                 take_scores(f, take_mask(f, softmax->in[0], out), out) && sizes_fit(f->g, out) &&
                 sums_keep_order(f, out, last);
    if (found)
        take_fewer_heads(f, last, out);
    return found;
}

static ValueId add_keys(Graph *g, const Keys *k, Loc loc)
{
    AttrList attrs = {0};
    if (!k->has_dim)
        return k->v;
    Type t = without_dim(value_type(g, k->v));
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    return graph_add(g, OP_reshape, &k->v, 1, &attrs, NULL, loc);
}

static ValueId add_attention(Graph *g, const Found *f, Loc loc)
{
    AttrList attrs = {0};
    ValueId in[5] = {f->q};
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
    in[1] = add_keys(g, &f->k, loc), in[2] = add_keys(g, &f->v, loc); /* moves the graph's nodes */
    return graph_add(g, OP_attention, in, n, &attrs, NULL, loc);
}

static bool is_for_cudnn(const PassContext *ctx)
{
    const char *precision = ctx->graph->train.precision;
    return ctx->library && precision && strcmp(precision, "bf16") == 0;
}

bool pass_attention(PassContext *ctx)
{
    Graph *g = ctx->graph;
    if (ctx->request.no_attention)
        return true;
    Pool *scratch = pool_new_child(ctx->pool);
    Finder f = {.g = g, .keeps_copies = is_for_cudnn(ctx)};
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
