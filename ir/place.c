#include "ir/place.h"

#include "ir/graph_internal.h"
#include "ir/support/bug.h"

#include <string.h>

bool value_is_dense(const Graph *g, ValueId v)
{
    return graph_value(g, v)->part_of == VALUE_NONE && value_node(g, v)->op != OP_subview;
}

ValueId value_root(const Graph *g, ValueId v)
{
    for (;;) {
        if (graph_value(g, v)->part_of != VALUE_NONE)
            v = graph_value(g, v)->part_of;
        else if (node_is_view(value_node(g, v)))
            v = value_node(g, v)->in[0];
        else
            return v;
    }
}

/* Places */

static void row_major(const Type *t, int64_t *stride)
{
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= t->dim[i];
    }
}

int concat_axis(const Graph *g, const Node *n)
{
    int64_t axis = node_int(n, ATTR_axis, 0);
    return (int)(axis < 0 ? axis + value_type(g, n->out[0])->rank : axis);
}

/* The joined input that v is. */
static int part_number(const Node *concat, ValueId v)
{
    for (int i = 0; i < concat->n_in; i++)
        if (concat->in[i] == v && concat_has_joined(concat, i))
            return i;
    BUG("a part is no joined input of its concat");
}

static Place part_place(const Graph *g, ValueId v)
{
    ValueId whole = graph_value(g, v)->part_of;
    const Node *concat = value_node(g, whole);
    int axis = concat_axis(g, concat), number = part_number(concat, v);
    Place p = value_place(g, whole);
    for (int i = 0; i < number; i++)
        p.base += p.stride[axis] * value_type(g, concat->in[i])->dim[axis];
    return p;
}

static Place subview_place(const Graph *g, const Node *n)
{
    Place p = value_place(g, n->in[0]);
    for (int i = 0; i < value_type(g, n->out[0])->rank; i++) {
        p.base += p.stride[i] * node_ints_at(n, ATTR_start, i, 0);
        p.stride[i] *= node_ints_at(n, ATTR_step, i, 1);
    }
    return p;
}

/* As deep as concatenations and subviews nest. */
Place value_place(const Graph *g, ValueId v)
{
    if (graph_value(g, v)->part_of != VALUE_NONE)
        return part_place(g, v);
    if (value_node(g, v)->op == OP_subview)
        return subview_place(g, value_node(g, v));
    Place p = {.root = v};
    row_major(value_type(g, v), p.stride);
    return p;
}

/* Parts */

bool concat_has_joined(const Node *concat, int i)
{
    int n;
    const int64_t *joined = node_ints(concat, ATTR_joined, &n);
    for (int k = 0; k < n; k++)
        if (joined[k] == i)
            return true;
    return false;
}

void concat_note_parts(Graph *g, NodeId concat)
{
    const Node *n = graph_node(g, concat);
    for (int i = 0; n->op == OP_concat && i < n->n_in; i++)
        if (concat_has_joined(n, i))
            graph_value(g, n->in[i])->part_of = n->out[0];
}

void concat_join(Graph *g, NodeId concat, int i)
{
    Node *n = graph_node(g, concat);
    int count;
    const int64_t *old = node_ints(n, ATTR_joined, &count);
    int64_t *joined = POOL_ARRAY(g->pool, (size_t)count + 1, int64_t);
    AttrList attrs = {0};
    for (int k = 0; k < n->n_attr; k++)
        if (n->attr[k].key != ATTR_joined)
            attrs.items[attrs.n++] = n->attr[k];
    if (count)
        memcpy(joined, old, (size_t)count * sizeof *joined);
    int at = count;
    for (; at > 0 && joined[at - 1] > i; at--)
        joined[at] = joined[at - 1];
    joined[at] = i;
    attrs_ints(&attrs, ATTR_joined, joined, count + 1);
    n->attr = attrs_copy(g->pool, attrs.items, attrs.n);
    n->n_attr = attrs.n;
    concat_note_parts(g, concat);
}

/* Who reads and writes at a place */

/* Rows of the last dim lie evenly: a matrix with a pitch. */
static bool has_pitch(const Graph *g, ValueId v)
{
    const Type *t = value_type(g, v);
    Place p = value_place(g, v);
    for (int d = 0; d + 2 < t->rank; d++)
        if (p.stride[d] != p.stride[d + 1] * t->dim[d + 1])
            return false;
    return t->rank >= 2 && p.stride[t->rank - 1] == 1;
}

/* Statistics of channels that are the last dim. */
static bool reads_rows(const Graph *g, const Node *n, int i)
{
    int images = n->op == OP_bn_stats ? 1 : 2;
    const Type *x = value_type(g, n->in[0]);
    int64_t axis = node_int(n, ATTR_axis, node_flag(n, ATTR_nhwc) ? -1 : 1);
    return i < images && (axis < 0 || axis == x->rank - 1) && has_pitch(g, n->in[i]);
}

/* Bits of 16 elements at a time: as many as any vector has, and half a word. */
static bool reads_runs(const Graph *g, const Node *n)
{
    const Type *x = value_type(g, n->in[0]);
    return has_pitch(g, n->in[0]) && x->dim[x->rank - 1] % 16 == 0;
}

bool node_writes_at_place(const Node *n)
{
    OpKind op = n->op;
    if (op == OP_fused)
        return n->body && !graph_has_matrix(n->body);
    return op_table[op].op_class == OP_CLASS_POINT || op == OP_slice || op == OP_concat;
}

static bool body_reads_elsewhere(const Graph *body, ValueId v)
{
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == v && point_reads_elsewhere(n, i))
                return true;
    }
    return false;
}

/* Element-wise kernels read through strides. */
bool node_reads_at_place(const Graph *g, const Node *n, int i)
{
    if (n->op == OP_subview)
        return true;
    if (n->op == OP_bn_stats || n->op == OP_bn_grad_sums)
        return reads_rows(g, n, i);
    if (n->op == OP_relu_mask)
        return reads_runs(g, n);
    return node_writes_at_place(n) && !point_reads_elsewhere(n, i) &&
           !(n->body && body_reads_elsewhere(n->body, body_input(n->body, i)));
}
