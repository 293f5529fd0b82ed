/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Constants, counting, broadcast, slice, concat and pad: element-wise programs of one instruction
 * whose accesses have the strides of the operation.  Transposition has its own file. */
#include "codegen/forms/point.h"
#include "ir/strided_view.h"

#include <string.h>

static int64_t count(const Graph *g, ValueId v)
{
    return type_elements(value_type(g, v));
}

static void row_major(const Type *t, int64_t *stride)
{
    int64_t step = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= t->dim[i];
    }
}

/* Whole buffer `buf` with the type of the program's space. */
static PointAccess whole(const Type *t, int buf)
{
    PointAccess a = {.buf = buf, .dtype = t->dtype};
    row_major(t, a.stride);
    return a;
}

static void fill_call(Lowering *l, const Node *node, double value)
{
    const Type *t = value_type(l->graph, node->out[0]);
    PointProgram *p = point_program(l->pool, t);
    point_store(p, point_number(p, t->dtype, value), whole(t, 0));
    const CallBuf buf = {node->out[0], 0};
    point_call(l, p, "fill", &buf, 1, 0);
}

void point_fill(Lowering *l, const Node *node)
{
    fill_call(l, node, node_float(node, ATTR_value, 0));
}

void point_iota(Lowering *l, const Node *node)
{
    const Type *t = value_type(l->graph, node->out[0]);
    PointProgram *p = point_program(l->pool, t);
    PointAccess place = {.buf = -1};
    int64_t axis = node_int(node, ATTR_axis, t->rank - 1);
    if (t->rank)
        place.stride[axis < 0 ? axis + t->rank : axis] = 1;
    int reg = point_coordinate(p, place, false);
    if (t->dtype != DTYPE_I32) {
        reg = point_unary(p, OP_cast, reg);
        p->instr.data[reg].dtype = t->dtype;
    }
    point_store(p, reg, whole(t, 0));
    const CallBuf buf = {node->out[0], 0};
    point_call(l, p, "iota", &buf, 1, 0);
}

/* All of value v, where it lies, as buffer `buf` of a program. */
static PointAccess placed(const Graph *g, ValueId v, int buf)
{
    StridedView view = value_view(g, v);
    PointAccess a = {.buf = buf, .dtype = value_type(g, v)->dtype};
    memcpy(a.stride, view.stride, sizeof a.stride);
    return a;
}

/* to[space] = from[space] for two accesses to buffers 1 and 0 */
static void copy_call(Lowering *l, const Type *space, PointAccess from, PointAccess to,
                      const char *label, ValueId in, ValueId out)
{
    PointProgram *p = point_program(l->pool, space);
    point_store(p, point_load(p, from), to);
    const CallBuf bufs[] = {point_buf(l->graph, in), point_buf(l->graph, out)};
    point_call(l, p, label, bufs, 2, 0);
}

void point_broadcast(Lowering *l, const Node *node)
{
    const Type *in = value_type(l->graph, node->in[0]), *out = value_type(l->graph, node->out[0]);
    PointProgram *p = point_program(l->pool, out);
    point_store(p, point_load(p, point_access(p, 0, in, -1)), whole(out, 1));
    const CallBuf bufs[] = {{node->in[0], 0}, {node->out[0], 0}};
    point_call(l, p, "broadcast", bufs, 2, 0);
}

void point_slice(Lowering *l, const Node *node)
{
    const Type *in = value_type(l->graph, node->in[0]), *out = value_type(l->graph, node->out[0]);
    PointAccess from = placed(l->graph, node->in[0], 0);
    for (int i = 0; i < in->rank; i++) {
        from.base += from.stride[i] * node_ints_at(node, ATTR_start, i, 0);
        from.stride[i] *= node_ints_at(node, ATTR_step, i, 1);
    }
    copy_call(l, out, from, placed(l->graph, node->out[0], 1), "slice", node->in[0], node->out[0]);
}

/* Parts are there already. */
void point_concat(Lowering *l, const Node *node)
{
    PointAccess to = placed(l->graph, node->out[0], 1);
    int axis = concat_axis(l->graph, node);
    for (int i = 0; i < node->n_in; i++) {
        const Type *in = value_type(l->graph, node->in[i]);
        if (!concat_has_joined(node, i))
            copy_call(l, in, placed(l->graph, node->in[i], 0), to, "concat", node->in[i],
                      node->out[0]);
        to.base += to.stride[axis] * in->dim[axis];
    }
}

/* The border and the inside are written by two calls: everything is filled first. */
void point_pad(Lowering *l, const Node *node)
{
    const Type *in = value_type(l->graph, node->in[0]), *out = value_type(l->graph, node->out[0]);
    PointAccess to = whole(out, 1);
    for (int i = 0; i < in->rank; i++)
        to.base += to.stride[i] * node_ints_at(node, ATTR_lo, i, 0);
    if (count(l->graph, node->in[0]) != count(l->graph, node->out[0]))
        fill_call(l, node, node_float(node, ATTR_value, 0));
    copy_call(l, in, whole(in, 0), to, "pad", node->in[0], node->out[0]);
}
