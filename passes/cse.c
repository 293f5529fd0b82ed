/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Common subexpression elimination: equal operations on equal values are computed once.  So is the
 * common beginning of two concatenations: concat(a, b, c, d) after concat(a, b, c) becomes
 * concat(concat(a, b, c), d).
 *
 * Models that keep a list of features (DenseNet as torchvision writes it) join all of it again in
 * front of every layer.  Left alone, every join is a copy of everything, whose gradient is cut into
 * as many slices as it has inputs, each slice added to those of the other joins.  Nested, the
 * gradient of the shared part is one sum, and pass_views lets one join lie inside of the next. */
#include "ir/strided_view.h"
#include "ir/support/strbuf.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <stdio.h>

static bool may_merge(const Graph *g, const Node *n)
{
    OpClass c = op_table[n->op].op_class;
    if (c == OP_CLASS_UPDATE || c == OP_CLASS_REGION || n->hint != REMAT_AUTO)
        return false;
    if (c == OP_CLASS_SOURCE && n->op != OP_const)
        return false;
    for (int i = 0; i < n->n_out; i++)
        if (graph_value(g, n->out[i])->writes != VALUE_NONE)
            return false;
    return true;
}

static void put_attr(StrBuf *b, const Attr *a)
{
    strbuf_printf(b, ";%d=", (int)a->key);
    switch (attr_kind(a->key)) {
    case ATTR_KIND_INT:
    case ATTR_KIND_BOOL:
        strbuf_printf(b, "%lld", (long long)a->u.i);
        break;
    case ATTR_KIND_FLOAT:
        strbuf_printf(b, "%a", a->u.f);
        break;
    case ATTR_KIND_FLOATS:
        for (int i = 0; i < a->n; i++)
            strbuf_printf(b, "%a,", a->u.floats[i]);
        break;
    case ATTR_KIND_STRING:
        strbuf_put(b, a->u.s);
        break;
    case ATTR_KIND_INTS:
        for (int i = 0; i < a->n; i++)
            strbuf_printf(b, "%lld,", (long long)a->u.ints[i]);
        break;
    }
}

/* Text that equal nodes share. */
static const char *node_key(const Graph *g, const Node *n, Pool *scratch)
{
    StrBuf b = strbuf_new(scratch);
    strbuf_printf(&b, "%d", (int)n->op);
    for (int i = 0; i < n->n_in; i++)
        strbuf_printf(&b, ",%u", n->in[i]);
    for (int i = 0; i < n->n_attr; i++)
        put_attr(&b, &n->attr[i]);
    /* Sources carry their type themselves. */
    const Type *t = value_type(g, n->out[0]);
    strbuf_printf(&b, ":%d%s", (int)t->dtype, type_shape_text(scratch, t));
    return b.text;
}

/* The concatenations so far as paths of a trie: an axis, then one edge an input.  So an earlier one
 * with the same first inputs is found on the way, without looking at the others.  Where the first
 * input is itself a concatenation along the axis, the path goes on from that one's: concat(a, b, c)
 * and concat(concat(a, b), c) end at the same node. */
typedef struct Concats {
    Pool *pool;
    Map edges;           /* "axis" or "node,input" -> node */
    VEC(ValueId) joined; /* by node: the concatenation that ends there, or VALUE_NONE */
    size_t *end;         /* by value: the node where it ends; 0, which is no end: not in the trie */
} Concats;

static Concats concats_new(const Graph *g, Pool *pool)
{
    Concats c = {.pool = pool, .edges = map_new(pool)};
    c.end = POOL_ARRAY(pool, g->values.len, size_t);
    vec_push(pool, &c.joined, VALUE_NONE);
    return c;
}

static size_t concats_follow(Concats *c, const char *edge)
{
    const uint64_t *node = map_find(&c->edges, edge);
    if (node)
        return (size_t)*node;
    map_set(&c->edges, edge, c->joined.len);
    vec_push(c->pool, &c->joined, VALUE_NONE);
    return c->joined.len - 1;
}

static bool continues_concat(const Graph *g, const Concats *c, const Node *n)
{
    return c->end[n->in[0]] && concat_axis(g, value_node(g, n->in[0])) == concat_axis(g, n);
}

/* Nests n around the longest earlier concatenation of at least its first two inputs.  The value of
 * n when that is all of them, else VALUE_NONE.  Linear in the inputs of n. */
static ValueId nest_concat(const Graph *g, Concats *c, Node *n)
{
    char edge[48];
    snprintf(edge, sizeof edge, "%d", concat_axis(g, n));
    bool on = continues_concat(g, c, n);
    size_t at = on ? c->end[n->in[0]] : concats_follow(c, edge);
    ValueId longest = VALUE_NONE;
    int covered = 1;
    for (int i = on ? 1 : 0; i < n->n_in; i++) {
        snprintf(edge, sizeof edge, "%zu,%u", at, n->in[i]);
        at = concats_follow(c, edge);
        if (i > 0 && c->joined.data[at] != VALUE_NONE) {
            longest = c->joined.data[at];
            covered = i + 1;
        }
    }
    if (covered == n->n_in && longest != VALUE_NONE)
        return longest;
    c->joined.data[at] = n->out[0];
    c->end[n->out[0]] = at;
    if (longest == VALUE_NONE)
        return VALUE_NONE;
    n->in[0] = longest;
    for (int i = covered; i < n->n_in; i++)
        n->in[i - covered + 1] = n->in[i];
    n->n_in -= covered - 1;
    return VALUE_NONE;
}

/* The value that the first output of n has already, or VALUE_NONE. */
static ValueId known_value(const Graph *g, Map *seen, Concats *concats, NodeId id, Pool *scratch)
{
    Node *n = graph_node(g, id);
    const char *key = node_key(g, n, scratch);
    const uint64_t *first = map_find(seen, key);
    if (first)
        return graph_node(g, (NodeId)*first)->out[0];
    map_set(seen, key, id);
    return n->op == OP_concat ? nest_concat(g, concats, n) : VALUE_NONE;
}

static void replace_outputs(Rewrite *r, const Node *n, const Node *with)
{
    for (int i = 0; i < n->n_out; i++)
        rewrite_replace(r, n->out[i], with->out[i]);
}

bool pass_cse(PassContext *ctx)
{
    Graph *g = ctx->graph;
    Pool *scratch = pool_new_child(ctx->pool);
    Rewrite r = rewrite_begin(g, scratch);
    Map seen = map_new(scratch);
    Concats concats = concats_new(g, scratch);
    for (size_t i = 0; i < r.n_old; i++) {
        NodeId id = r.old_order[i];
        rewrite_inputs(&r, id);
        const Node *n = graph_node(g, id);
        ValueId known = may_merge(g, n) ? known_value(g, &seen, &concats, id, scratch) : VALUE_NONE;
        if (known != VALUE_NONE)
            replace_outputs(&r, n, value_node(g, known));
        else
            rewrite_keep(&r, id);
    }
    rewrite_end(&r);
    pool_free(scratch);
    return true;
}
