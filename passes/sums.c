/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums of matrix products become one product.
 *
 * The gradient of a weight that is read at every step of a recurrence, written out, is a sum of
 * products of few rows each,  A1^T B1 + A2^T B2 + ... , and every one of them reads and writes the
 * whole sum.  [A1; A2; ...]^T [B1; B2; ...] is the same sum, kept in registers; the attribute
 * `chain` keeps its order, so that no bit changes.  It is behind remat, as the rows live to the
 * last product: it is kept where no plan of the step as it was needs less memory. */
#include "ir/product.h"
#include "ir/strided_view.h"
#include "ir/support/strbuf.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/views.h"

/* A term of a sum, and what it is added to. */
typedef struct Term {
    const Node *product; /* NULL: this is none */
    ValueId a, b;        /* its operands in the step */
    ValueId before;      /* the sum of the terms before it; VALUE_NONE: it is the first */
} Term;

typedef VEC(ValueId) Values;

typedef struct Sums {
    Graph *g;
    Pool *scratch;
    Rewrite r;
    int *uses;     /* by value */
    bool *dropped; /* by node: its term is in a sum further on */
    Map concats;   /* of these values -> value */
    bool changed;
} Sums;

/* A^T B of a few rows, in f32. */
static bool is_term(const Graph *g, const Node *n)
{
    if (n->op != OP_matmul || !node_flag(n, ATTR_ta) || node_flag(n, ATTR_tb) ||
        node_attr(n, ATTR_library) || node_attr(n, ATTR_chain) || node_attr(n, ATTR_pairs))
        return false;
    const Type *a = value_type(g, n->in[0]), *b = value_type(g, n->in[1]);
    return a->rank == 2 && b->rank == 2 && a->dim[0] > 0 && a->dim[0] <= PRODUCT_CHAIN &&
           value_type(g, n->out[0])->dtype == DTYPE_F32;
}

/* The value that a group reads as `inner`; VALUE_NONE: that is made in the group. */
static ValueId outer_value(const Node *group, ValueId inner)
{
    int i = group_input(group, inner);
    return i < 0 ? VALUE_NONE : group->in[i];
}

/* A group of a product, and an addition of what it reads to that. */
static Term term_of_group(const Graph *g, const Node *n)
{
    const Graph *body = n->body;
    const Term none = {0};
    if (body->order.len != (size_t)n->n_in + 2 || body->outputs.len != 1)
        return none;
    const Node *sum = value_node(body, body->outputs.data[0].value);
    if (sum->op != OP_add)
        return none;
    for (int i = 0; i < 2; i++) {
        const Node *product = value_node(body, sum->in[i]);
        ValueId before = outer_value(n, sum->in[1 - i]);
        if (before == VALUE_NONE || !is_term(body, product) ||
            !type_equal(value_type(g, before), value_type(g, n->out[0])))
            continue;
        Term t = {.product = product,
                  .a = outer_value(n, product->in[0]),
                  .b = outer_value(n, product->in[1]),
                  .before = before};
        return t.a != VALUE_NONE && t.b != VALUE_NONE ? t : none;
    }
    return none;
}

static Term term_of(const Graph *g, const Node *n)
{
    if (n->op == OP_fused)
        return term_of_group(g, n);
    if (!is_term(g, n))
        return (Term){0};
    return (Term){.product = n, .a = n->in[0], .b = n->in[1], .before = VALUE_NONE};
}

static bool same_types(const Graph *g, const Term *a, const Term *b)
{
    return type_equal(value_type(g, a->a), value_type(g, b->a)) &&
           type_equal(value_type(g, a->b), value_type(g, b->b));
}

/* It can be read where the sum ends: a persistent tensor may have been overwritten by then. */
static bool lasts(const Graph *g, ValueId v)
{
    return value_storage(g, value_root(g, v)) == VALUE_NONE;
}

/* The operands of all terms of the sum that ends with n, the last one first.  false: it is no sum
 * of products alone. */
static bool collect(const Sums *s, const Node *n, Values *a, Values *b)
{
    Term t = term_of(s->g, n);
    if (!t.product || t.before == VALUE_NONE)
        return false;
    for (;;) {
        vec_push(s->scratch, a, t.a);
        vec_push(s->scratch, b, t.b);
        if (t.before == VALUE_NONE)
            return true;
        Term before = term_of(s->g, value_node(s->g, t.before));
        if (!before.product || !same_types(s->g, &t, &before) || s->uses[t.before] != 1 ||
            !lasts(s->g, before.a) || !lasts(s->g, before.b))
            return false;
        t = before;
    }
}

/* Terms are dropped from the sum that they are part of. */
static void drop_terms(Sums *s, const Node *n)
{
    for (Term t = term_of(s->g, n); t.before != VALUE_NONE;
         t = term_of(s->g, value_node(s->g, t.before)))
        s->dropped[graph_value(s->g, t.before)->def] = true;
}

/* In the order of the sum.  Sums that read the same rows share them. */
static ValueId join(Sums *s, const Values *last_first, const char *name)
{
    ValueId *in = POOL_ARRAY(s->scratch, last_first->len, ValueId);
    StrBuf key = strbuf_new(s->scratch);
    for (size_t i = 0; i < last_first->len; i++) {
        in[i] = last_first->data[last_first->len - 1 - i];
        strbuf_printf(&key, "%u,", in[i]);
    }
    const uint64_t *known = map_find(&s->concats, key.text);
    if (known)
        return (ValueId)*known;
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 0);
    ValueId v = graph_add(s->g, OP_concat, in, (int)last_first->len, &attrs, name, (Loc){0});
    map_set(&s->concats, key.text, v);
    return v;
}

/* The last term's node becomes the product: the sum keeps its identity and its name. */
static void make_product(Sums *s, NodeId id, const Values *a, const Values *b)
{
    Graph *g = s->g;
    ValueId out = graph_node(g, id)->out[0];
    const Node *product = term_of(g, graph_node(g, id)).product;
    int64_t chain = value_type(g, a->data[0])->dim[0];
    const char *name = graph_value(g, out)->name;
    ValueId *in = POOL_ARRAY(g->pool, 2, ValueId);
    in[0] = join(s, a, pool_printf(g->pool, "%%%s.a", name + 1));
    in[1] = join(s, b, pool_printf(g->pool, "%%%s.b", name + 1));
    Node *n = graph_node(g, id);
    n->op = OP_matmul;
    n->attr = product->attr;
    n->n_attr = product->n_attr;
    n->body = NULL;
    n->in = in;
    n->n_in = 2;
    node_set_attr(g, n, (Attr){.key = ATTR_chain, .u.i = chain});
    rewrite_keep(&s->r, id);
    s->changed = true;
}

/* From the end: a sum is found at its last term. */
static void find_sums(Sums *s, bool *is_sum)
{
    for (size_t i = s->r.n_old; i-- > 0;) {
        NodeId id = s->r.old_order[i];
        Values a = {0}, b = {0};
        if (s->dropped[id] || !collect(s, graph_node(s->g, id), &a, &b))
            continue;
        is_sum[id] = true;
        drop_terms(s, graph_node(s->g, id));
    }
}

/* A copy of the graph with its sums as products; NULL: there are none. */
static Graph *with_products(Pool *pool, Pool *scratch, const Graph *old)
{
    Graph *g = graph_copy(pool, old);
    Sums s = {.g = g, .scratch = scratch, .concats = map_new(scratch)};
    s.uses = count_uses(g, scratch);
    s.r = rewrite_begin(g, scratch);
    s.dropped = POOL_ARRAY(scratch, g->nodes.len + 1, bool);
    bool *is_sum = POOL_ARRAY(scratch, g->nodes.len + 1, bool);
    find_sums(&s, is_sum);
    for (size_t i = 0; i < s.r.n_old; i++) {
        NodeId id = s.r.old_order[i];
        Values a = {0}, b = {0};
        if (is_sum[id] && collect(&s, graph_node(g, id), &a, &b))
            make_product(&s, id, &a, &b);
        else if (!s.dropped[id])
            rewrite_keep(&s.r, id);
    }
    rewrite_end(&s.r);
    return s.changed ? g : NULL;
}

bool pass_sums(PassContext *ctx)
{
    change_no_larger(ctx, with_products, MEMPLAN_FINAL);
    return true;
}
