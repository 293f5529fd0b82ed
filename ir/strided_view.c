/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/strided_view.h"

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

/* Views */

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

static StridedView view_of_part(const Graph *g, ValueId v)
{
    ValueId whole = graph_value(g, v)->part_of;
    const Node *concat = value_node(g, whole);
    int axis = concat_axis(g, concat), number = part_number(concat, v);
    StridedView view = value_view(g, whole);
    for (int i = 0; i < number; i++)
        view.base += view.stride[axis] * value_type(g, concat->in[i])->dim[axis];
    return view;
}

static StridedView view_of_subview(const Graph *g, const Node *n)
{
    StridedView view = value_view(g, n->in[0]);
    for (int i = 0; i < value_type(g, n->out[0])->rank; i++) {
        view.base += view.stride[i] * node_ints_at(n, ATTR_start, i, 0);
        view.stride[i] *= node_ints_at(n, ATTR_step, i, 1);
    }
    return view;
}

StridedView value_view(const Graph *g, ValueId v)
{
    if (graph_value(g, v)->part_of != VALUE_NONE)
        return view_of_part(g, v);
    if (value_node(g, v)->op == OP_subview)
        return view_of_subview(g, value_node(g, v));
    StridedView view = {.root = v};
    row_major(value_type(g, v), view.stride);
    return view;
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

/* The attribute `joined` is these n inputs. */
static void set_joined(Graph *g, Node *concat, const int64_t *joined, int n)
{
    AttrList attrs = {0};
    for (int k = 0; k < concat->n_attr; k++)
        if (concat->attr[k].key != ATTR_joined)
            attrs.items[attrs.n++] = concat->attr[k];
    if (n)
        attrs_ints(&attrs, ATTR_joined, joined, n);
    concat->attr = attrs_copy(g->pool, attrs.items, attrs.n);
    concat->n_attr = attrs.n;
}

void concat_join(Graph *g, NodeId concat, int i)
{
    Node *n = graph_node(g, concat);
    int count;
    const int64_t *old = node_ints(n, ATTR_joined, &count);
    int64_t *joined = POOL_ARRAY(g->pool, (size_t)count + 1, int64_t);
    if (count)
        memcpy(joined, old, (size_t)count * sizeof *joined);
    int at = count;
    for (; at > 0 && joined[at - 1] > i; at--)
        joined[at] = joined[at - 1];
    joined[at] = i;
    set_joined(g, n, joined, count + 1);
    concat_note_parts(g, concat);
}

void concat_separate(Graph *g, NodeId concat, int i)
{
    Node *n = graph_node(g, concat);
    int count, kept = 0;
    const int64_t *old = node_ints(n, ATTR_joined, &count);
    int64_t *joined = POOL_ARRAY(g->pool, (size_t)count + 1, int64_t);
    for (int k = 0; k < count; k++)
        if (old[k] != i)
            joined[kept++] = old[k];
    set_joined(g, n, joined, kept);
    graph_value(g, n->in[i])->part_of = VALUE_NONE;
}
