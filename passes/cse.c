/* Common subexpression elimination: equal operations on equal values are computed once. */
#include "ir/support/strbuf.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

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

bool pass_cse(PassContext *ctx)
{
    Graph *g = ctx->graph;
    Pool *scratch = pool_new_child(ctx->pool);
    Rewrite r = rewrite_begin(g, scratch);
    Map seen = map_new(scratch);
    for (size_t i = 0; i < r.n_old; i++) {
        NodeId id = r.old_order[i];
        rewrite_inputs(&r, id);
        const Node *n = graph_node(g, id);
        if (may_merge(g, n)) {
            const char *key = node_key(g, n, scratch);
            const uint64_t *first = map_find(&seen, key);
            if (first) {
                for (int k = 0; k < n->n_out; k++)
                    rewrite_replace(&r, n->out[k], graph_node(g, (NodeId)*first)->out[k]);
                continue;
            }
            map_set(&seen, key, id);
        }
        rewrite_keep(&r, id);
    }
    rewrite_end(&r);
    pool_free(scratch);
    return true;
}
