/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/mask_rewrite.h"

#include "ir/strided_view.h"
#include "passes/rewrite.h"

#include <string.h>

enum { INDEX_MOST = 256 }; /* elements of a window that a byte numbers */

static bool reads_bits_of(const Graph *g, const Node *n, ValueId y)
{
    return n->op == OP_relu_grad && n->in[1] == y && n->in[0] != y &&
           type_same_shape(value_type(g, n->in[0]), value_type(g, y));
}

/* Of the result's shape: an epilogue finds bits at the places of the result. */
static bool body_reads_bits(const Graph *g, const Node *fused, int in)
{
    const Graph *body = fused->body;
    ValueId y = body_input(body, in);
    if (!type_same_shape(value_type(body, y), value_type(g, fused->out[0])))
        return false;
    for (size_t i = 0; i < body->outputs.len; i++)
        if (body->outputs.data[i].value == y)
            return false;
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == y && !reads_bits_of(body, n, y))
                return false;
    }
    return true;
}

static bool has_small_window(const Node *n)
{
    int64_t elements;
    return size_mul(node_ints_at(n, ATTR_kernel, 0, 1), node_ints_at(n, ATTR_kernel, 1, 1),
                    &elements) &&
           elements <= INDEX_MOST;
}

MaskKind mask_kind(const Graph *g, const Node *n, int in)
{
    if (n->op == OP_fused)
        return body_reads_bits(g, n, in) ? MASK_RELU : MASK_NONE;
    if (in == 1 && reads_bits_of(g, n, n->in[1]))
        return MASK_RELU;
    if (in == 1 && n->op == OP_maxpool_grad && n->in[0] != n->in[1] && has_small_window(n))
        return MASK_POOL;
    return MASK_NONE;
}

/* Finding */

typedef struct Finder {
    Pool *pool;
    const Graph *g;
    ValueId *root;    /* by value: what it views */
    size_t *needed;   /* by root: the last node that needs the elements, or makes them */
    bool *read_whole; /* by root: some node needs the elements */
    bool *never;      /* by root: no mask */
    int *tensor_of;   /* by root: its index in the list + 1 */
    MaskTensors found;
} Finder;

/* A read that a mask can stand for; its root is the value itself. */
static MaskKind read_kind(const Finder *f, const Node *n, int in)
{
    return f->root[n->in[in]] == n->in[in] ? mask_kind(f->g, n, in) : MASK_NONE;
}

static void note_node(Finder *f, size_t at)
{
    const Node *n = graph_node(f->g, f->g->order.data[at]);
    for (int o = 0; o < n->n_out; o++) {
        ValueId v = n->out[o];
        f->root[v] = node_is_view(n) ? f->root[n->in[0]] : v;
        if (node_is_view(n))
            continue;
        f->needed[v] = at;
        f->never[v] = node_is_source(n) || value_storage(f->g, v) != VALUE_NONE;
    }
    for (int i = 0; i < n->n_in && !node_is_view(n); i++)
        if (read_kind(f, n, i) == MASK_NONE) {
            f->needed[f->root[n->in[i]]] = at;
            f->read_whole[f->root[n->in[i]]] = true;
        }
}

static MaskTensor *tensor_of(Finder *f, ValueId v)
{
    if (!f->tensor_of[v]) {
        size_t from = f->needed[v] + 1, made = f->read_whole[v] ? from - 1 : from;
        MaskTensor t = {.value = v, .made = made, .from = from};
        t.bytes = type_bytes(value_type(f->g, v));
        vec_push(f->pool, &f->found, t);
        f->tensor_of[v] = (int)f->found.len;
    }
    return &f->found.data[f->tensor_of[v] - 1];
}

static void note_reader(Finder *f, size_t at, int in)
{
    const Node *n = graph_node(f->g, f->g->order.data[at]);
    ValueId v = n->in[in];
    MaskKind kind = read_kind(f, n, in);
    if (kind == MASK_NONE || f->never[v] || at <= f->needed[v])
        return;
    MaskTensor *t = tensor_of(f, v);
    MaskReader reader = {f->g->order.data[at], in, kind};
    vec_push(f->pool, &t->readers, reader);
    t->last = at;
}

/* Bits, and an index for each maxpool_grad. */
static int64_t mask_bytes(const Graph *g, const MaskTensor *t)
{
    int64_t bytes = 0, bits = 0;
    for (size_t i = 0; i < t->readers.len; i++) {
        const MaskReader *r = &t->readers.data[i];
        if (r->kind == MASK_POOL)
            bytes += type_elements(value_type(g, graph_node(g, r->node)->in[0]));
        else
            bits = type_elements(value_type(g, t->value)) / 8 + 4;
    }
    return bytes + bits;
}

static void drop_small(Finder *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->found.len; i++) {
        const MaskTensor *t = &f->found.data[i];
        if (mask_bytes(f->g, t) < t->bytes)
            f->found.data[kept++] = *t;
    }
    f->found.len = kept;
}

MaskTensors mask_find(Pool *pool, const Graph *g)
{
    size_t n = g->values.len + 1;
    Finder f = {.pool = pool, .g = g};
    f.root = POOL_ARRAY(pool, n, ValueId);
    f.needed = POOL_ARRAY(pool, n, size_t);
    f.read_whole = POOL_ARRAY(pool, n, bool);
    f.never = POOL_ARRAY(pool, n, bool);
    f.tensor_of = POOL_ARRAY(pool, n, int);
    for (size_t at = 0; at < g->order.len; at++)
        note_node(&f, at);
    for (size_t i = 0; i < g->outputs.len; i++)
        f.never[f.root[g->outputs.data[i].value]] = true;
    for (size_t at = 0; at < g->order.len; at++) {
        const Node *node = graph_node(g, g->order.data[at]);
        for (int i = 0; i < node->n_in && !node_is_view(node); i++)
            note_reader(&f, at, i);
    }
    drop_small(&f);
    return f.found;
}

/* Rewriting */

static ValueId add_mask(Graph *g, OpKind op, ValueId v, const Node *pool_grad, const char *suffix)
{
    AttrList attrs = {0};
    if (pool_grad) {
        attrs.n = pool_grad->n_attr;
        memcpy(attrs.items, pool_grad->attr, (size_t)attrs.n * sizeof(Attr));
    }
    const char *name = pool_printf(g->pool, "%s.%s", graph_value(g, v)->name, suffix);
    return graph_add(g, op, &v, 1, &attrs, name, value_node(g, v)->loc);
}

/* The reader's inputs and body may be shared with a clone's. */
static void set_input(Graph *g, Node *n, int in, ValueId v)
{
    ValueId *inputs = POOL_ARRAY(g->pool, (size_t)n->n_in, ValueId);
    memcpy(inputs, n->in, (size_t)n->n_in * sizeof *inputs);
    inputs[in] = v;
    n->in = inputs;
}

static Graph *body_with_mask(Graph *g, const Graph *old, int in, const Type *mask)
{
    Graph *body = graph_copy(g->pool, old);
    ValueId y = body_input(body, in);
    graph_value(body, y)->type = *mask;
    for (size_t k = 0; k < body->order.len; k++) {
        Node *n = graph_node(body, body->order.data[k]);
        if (n->op == OP_relu_grad && n->in[1] == y)
            n->op = OP_relu_mask_grad;
    }
    return body;
}

static void read_bits(Graph *g, const MaskReader *r, ValueId mask)
{
    Node *n = graph_node(g, r->node);
    set_input(g, n, r->in, mask);
    if (n->op == OP_fused) {
        n->body = body_with_mask(g, n->body, r->in, value_type(g, mask));
        return;
    }
    n->op = OP_relu_mask_grad;
    node_retype(g, r->node);
}

static void read_index(Graph *g, const MaskReader *r, ValueId index)
{
    Node *n = graph_node(g, r->node);
    const int64_t *hw = &value_type(g, n->in[1])->dim[node_flag(n, ATTR_nhwc) ? 1 : 2];
    int64_t *size = POOL_ARRAY(g->pool, 2, int64_t);
    memcpy(size, hw, 2 * sizeof *size);
    node_set_attr(g, n, (Attr){.key = ATTR_hw, .n = 2, .u.ints = size});
    set_input(g, n, 1, index);
    n->op = OP_maxpool_index_grad;
    node_retype(g, r->node);
}

static void make_masks(Graph *g, const MaskTensor *t)
{
    ValueId bits = VALUE_NONE;
    for (size_t i = 0; i < t->readers.len; i++) {
        const MaskReader *r = &t->readers.data[i];
        if (r->kind == MASK_POOL) {
            Node reader = *graph_node(g, r->node);
            read_index(g, r, add_mask(g, OP_maxpool_index, t->value, &reader, "index"));
            continue;
        }
        if (bits == VALUE_NONE)
            bits = add_mask(g, OP_relu_mask, t->value, NULL, "mask");
        read_bits(g, r, bits);
    }
}

void mask_apply(Graph *g, const MaskTensors *tensors)
{
    Pool *scratch = pool_new_child(g->pool);
    Rewrite w = rewrite_begin(g, scratch);
    size_t *first = POOL_ARRAY(scratch, w.n_old + 1, size_t); /* by place: index + 1, 0 = none */
    size_t *next = POOL_ARRAY(scratch, tensors->len + 1, size_t);
    for (size_t i = tensors->len; i-- > 0;) {
        next[i] = first[tensors->data[i].made];
        first[tensors->data[i].made] = i + 1;
    }
    for (size_t at = 0; at < w.n_old; at++) {
        for (size_t i = first[at]; i > 0; i = next[i - 1])
            make_masks(g, &tensors->data[i - 1]);
        rewrite_keep(&w, w.old_order[at]);
    }
    rewrite_end(&w);
    pool_free(scratch);
}
