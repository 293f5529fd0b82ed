/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "op_run.h"

#include "codegen/build/supports.h"
#include "ir/eval.h"
#include "ir/support/strbuf.h"

#include <string.h>

enum { ATTEMPTS = 40 };

static bool reads_or_makes_bf16(const OpCase *c)
{
    for (size_t v = 0; v < c->g->values.len; v++)
        if (c->g->values.data[v].type.dtype == DTYPE_BF16)
            return true;
    return false;
}

/* One tensor, a pair, all but the first, the last of three, all. */
static const unsigned masks[] = {1, 3, 2, 6, 4, 7, 0xffff, 5};

/* Some generators write numbers of their own. */
static void round_inputs(OpCase *c)
{
    for (int i = 0; i < c->n_in; i++) {
        const Type *t = value_type(c->g, c->in[i]);
        for (int64_t k = 0; t->dtype == DTYPE_BF16 && k < type_elements(t); k++)
            c->data[i][k] = eval_round_bf16(c->data[i][k]);
    }
}

static bool draw(Pool *pool, OpKind op, OpCaseMake *make, uint64_t seed, bool bf16, OpCase *c)
{
    uint64_t name = hash_bytes(op_name(op), strlen(op_name(op)), 0);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        *c = (OpCase){.pool = pool, .node = NODE_NONE};
        c->bf16 = bf16 ? masks[(seed + (uint64_t)attempt) % (sizeof masks / sizeof *masks)] : 0;
        c->rng = seed * 1000003u + (uint64_t)attempt * 7919u + name;
        c->g = graph_new(pool, "case");
        make(c);
        round_inputs(c);
        if (c->node != NODE_NONE &&
            (!bf16 || (reads_or_makes_bf16(c) &&
                       codegen_supports(c->g, graph_node(c->g, c->node), &(ShapeError){0}))))
            return true;
    }
    return false;
}

bool op_run_draw(Pool *pool, OpKind op, OpCaseMake *make, uint64_t seed, OpCase *c)
{
    return draw(pool, op, make, seed, false, c);
}

bool op_run_draw_bf16(Pool *pool, OpKind op, OpCaseMake *make, uint64_t seed, OpCase *c)
{
    return draw(pool, op, make, seed, true, c);
}

const char *op_run_text(const OpRun *r)
{
    StrBuf b = strbuf_new(r->c.pool);
    const Node *n = graph_node(r->c.g, r->c.node);
    strbuf_put(&b, op_name(r->op));
    for (int i = 0; i < n->n_in; i++)
        strbuf_printf(&b, " %s", type_text(r->c.pool, value_type(r->c.g, n->in[i])));
    strbuf_put(&b, " ->");
    for (int i = 0; i < n->n_out; i++)
        strbuf_printf(&b, " %s", type_text(r->c.pool, value_type(r->c.g, n->out[i])));
    for (int i = 0; i < n->n_attr; i++) {
        strbuf_printf(&b, " %s=", attr_name(n->attr[i].key));
        if (attr_kind(n->attr[i].key) == ATTR_KIND_INTS)
            for (int k = 0; k < n->attr[i].n; k++)
                strbuf_printf(&b, "%lld,", (long long)n->attr[i].u.ints[k]);
        else if (attr_kind(n->attr[i].key) == ATTR_KIND_FLOAT)
            strbuf_printf(&b, "%g", n->attr[i].u.f);
        else if (attr_kind(n->attr[i].key) != ATTR_KIND_STRING)
            strbuf_printf(&b, "%lld", (long long)n->attr[i].u.i);
    }
    return b.text;
}

void op_run_buffers(OpRun *r)
{
    const Graph *g = r->c.g;
    bool aligned = op_table[r->op].op_class == OP_CLASS_MATRIX;
    r->value = POOL_ARRAY(r->c.pool, g->values.len, Fenced);
    r->work = POOL_ARRAY(r->c.pool, g->nodes.len, Fenced);
    for (size_t v = 0; v < g->values.len; v++)
        r->value[v] = fenced_new(type_bytes(&g->values.data[v].type), aligned);
    for (size_t n = 0; n < g->nodes.len; n++)
        r->work[n] = fenced_new(node_workspace_bytes(g, &g->nodes.data[n]), true);
}

void op_run_free_buffers(OpRun *r)
{
    for (size_t v = 0; v < r->c.g->values.len; v++)
        fenced_free(&r->value[v]);
    for (size_t n = 0; n < r->c.g->nodes.len; n++)
        fenced_free(&r->work[n]);
}

void op_run_fill(const OpRun *r)
{
    const Graph *g = r->c.g;
    for (size_t v = 0; v < g->values.len; v++)
        memset(r->value[v].data, 0x7f, (size_t)type_bytes(&g->values.data[v].type));
    for (int i = 0; i < r->c.n_in; i++)
        op_case_bytes(value_type(g, r->c.in[i]), r->c.data[i], r->value[r->c.in[i]].data);
}

/* Updates write where the persistent tensor is. */
void op_run_calls(const Farm *f, const OpRun *r, int64_t group, bool backward, char *scratch)
{
    op_run_fill(r);
    for (size_t i = 0; i < r->calls->calls.len; i++) {
        const Call *c = &r->calls->calls.data[i];
        ScrimpKernel *kernel = f->kernels.data[*map_find(&f->index, c->key)].run;
        char *buf[CALL_MAX_BUFS];
        for (int k = 0; k < c->n_bufs; k++) {
            ValueId v = c->buf[k].value;
            char *base = v == VALUE_NONE    ? r->work[c->node].data
                         : v == CALL_NUMBER ? NULL
                                            : r->value[v].data;
            buf[k] = call_argument(&c->buf[k], base);
        }
        int64_t size = group < c->n_tasks ? group : c->n_tasks,
                groups = (c->n_tasks + size - 1) / size;
        for (int64_t q = 0; q < groups; q++) {
            int64_t begin = (backward ? groups - 1 - q : q) * size;
            int64_t end = begin + size < c->n_tasks ? begin + size : c->n_tasks;
            kernel(buf, begin, end, scratch);
        }
    }
}

int64_t op_first_difference(const Type *t, const char *a, const char *b)
{
    int64_t size = (int64_t)dtype_bytes(t->dtype), n = type_elements(t);
    for (int64_t i = 0; i < n; i++) {
        float x = 0, y = 0;
        if (t->dtype == DTYPE_F32) {
            memcpy(&x, a + i * size, sizeof x);
            memcpy(&y, b + i * size, sizeof y);
        } else if (t->dtype == DTYPE_BF16) {
            memcpy((char *)&x + 2, a + i * size, 2);
            memcpy((char *)&y + 2, b + i * size, 2);
        }
        if (memcmp(a + i * size, b + i * size, (size_t)size) != 0 && !(x != x && y != y))
            return i;
    }
    return n;
}
