/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of the element-wise and reducing operations and updates.  Messages follow docs/ir.md:
 * E101 dims that disagree, E102 concat, E103 rank, E104 element type, E105 axis or attribute out of
 * range, E106 window, E107 other element count, E108 empty or too large, E109 number of inputs,
 * E110 not an operation to be built like this. */
#include "ir/shape_rules.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool want_float(const Graph *g, const Node *n, int i, ShapeError *err)
{
    const Type *t = shape_in(g, n, i);
    if (dtype_is_real(t->dtype))
        return true;
    shape_fail(err, "E104", i, "%s needs f32, got %s%s", op_name(n->op), dtype_name(t->dtype),
               SHOW(t));
    return shape_help(err, "|> to_f32()");
}

DType real_result(DType a, DType b)
{
    return a == DTYPE_BF16 || b == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
}

bool want_result(const Graph *g, const Node *n, Type *out, ShapeError *err)
{
    DType own = real_result(shape_in(g, n, 0)->dtype, shape_in(g, n, 1)->dtype);
    return shape_dtype(n, own, &out->dtype, err) &&
           (dtype_is_real(out->dtype) ||
            shape_fail(err, "E105", -1, "%s: dtype is f32 or bf16, not %s", op_name(n->op),
                       dtype_name(out->dtype)));
}

bool want_integer(const Graph *g, const Node *n, int i, ShapeError *err)
{
    const Type *t = shape_in(g, n, i);
    if (t->dtype == DTYPE_I32 || t->dtype == DTYPE_I64 || t->dtype == DTYPE_U8)
        return true;
    return shape_fail(err, "E104", i, "%s needs integers here, got %s%s", op_name(n->op),
                      dtype_name(t->dtype), SHOW(t));
}

bool want_rank(const Graph *g, const Node *n, int i, int low, int high, ShapeError *err)
{
    const Type *t = shape_in(g, n, i);
    if (t->rank >= low && t->rank <= high)
        return true;
    if (low == high)
        return shape_fail(err, "E103", i, "%s needs %d dims here, got %s", op_name(n->op), low,
                          SHOW(t));
    return shape_fail(err, "E103", i, "%s needs at least %d dim%s here, got %s", op_name(n->op),
                      low, low == 1 ? "" : "s", SHOW(t));
}

static bool want_named(const Graph *g, const Node *n, int i, const char *name, const Type *expected,
                       ShapeError *err)
{
    const Type *t = shape_in(g, n, i);
    if (type_equal(t, expected))
        return true;
    return shape_fail(err, t->dtype == expected->dtype ? "E101" : "E104", i,
                      "%s: %s is %s%s, expected %s%s", op_name(n->op), name, dtype_name(t->dtype),
                      SHOW(t), dtype_name(expected->dtype), SHOW(expected));
}

bool want_type(const Graph *g, const Node *n, int i, const Type *expected, ShapeError *err)
{
    char name[24];
    snprintf(name, sizeof name, "input %d", i + 1);
    return want_named(g, n, i, name, expected, err);
}

bool want_vectors(const Graph *g, const Node *n, int first, const char *const *names, int64_t c,
                  ShapeError *err)
{
    Type expected = type_make(DTYPE_F32, 1, &c);
    for (int i = first; i < n->n_in; i++)
        if (!want_named(g, n, i, names[i - first], &expected, err))
            return false;
    return true;
}

bool want_bias_vector(const Graph *g, const Node *n, int64_t features, ShapeError *err)
{
    Type expected = type_make(DTYPE_F32, 1, &features);
    if (n->n_in > 2 && node_attr(n, ATTR_library) && shape_in(g, n, 2)->dtype == DTYPE_BF16)
        expected.dtype = DTYPE_BF16;
    return n->n_in <= 2 || want_named(g, n, 2, "bias", &expected, err);
}

bool want_axis(const Node *n, int rank, int otherwise, int *axis, ShapeError *err)
{
    int64_t a = node_int(n, ATTR_axis, otherwise);
    *axis = (int)a;
    if (a >= 0 && a < rank)
        return true;
    return shape_fail(err, "E105", n->n_in ? 0 : -1,
                      "%s: axis %" PRId64 " is outside a tensor of %d dim%s", op_name(n->op), a,
                      rank, rank == 1 ? "" : "s");
}

bool want_ints(const Node *n, AttrKey key, int count, int64_t low, int64_t otherwise, int64_t *out,
               ShapeError *err)
{
    const Attr *a = node_attr(n, key);
    if (a ? a->n != count : otherwise < low)
        return shape_fail(err, "E105", -1, "%s needs %d value%s for %s, got %d", op_name(n->op),
                          count, count == 1 ? "" : "s", attr_name(key), a ? a->n : 0);
    for (int i = 0; i < count; i++) {
        out[i] = a ? a->u.ints[i] : otherwise;
        if (out[i] < low)
            return shape_fail(err, "E105", -1, "%s: %s = %" PRId64 " is less than %" PRId64,
                              op_name(n->op), attr_name(key), out[i], low);
    }
    return true;
}

/* Sources carry a declared type: graph_add_source. */
SHAPE_RULE(declared)
{
    return shape_fail(err, "E110", -1, "%s has a declared type and no shape rule",
                      op_name(node->op));
}

static bool keeps_integers(OpKind op)
{
    return op == OP_neg || op == OP_abs || op == OP_sign || op == OP_relu || op == OP_stop_gradient;
}

static bool row_shapes(const Graph *g, const Node *node, ShapeError *err)
{
    const Type *x = shape_in(g, node, 0);
    int axis;
    if (node->op == OP_cross_entropy_grad) {
        Type loss;
        int n = 1;
        return shape_cross_entropy(g, node, &loss, &n, err) && want_type(g, node, 2, &loss, err);
    }
    return want_axis(node, x->rank, x->rank - 1, &axis, err) &&
           (node->n_in == 1 || want_type(g, node, 1, x, err));
}

static bool is_finite_attr(const Node *n, AttrKey key, double otherwise, ShapeError *err)
{
    double v = node_float(n, key, otherwise);
    return isfinite(v) || shape_fail(err, "E105", -1, "%s: %s = %g is not a finite number",
                                     op_name(n->op), attr_name(key), v);
}

static bool has_bounds(const Node *n, ShapeError *err)
{
    if (!node_attr(n, ATTR_min) && !node_attr(n, ATTR_max))
        return shape_fail(err, "E105", -1, "%s needs min or max", op_name(n->op));
    return is_finite_attr(n, ATTR_min, 0, err) && is_finite_attr(n, ATTR_max, 0, err);
}

/* The numbers of an activation and its gradient.  elu's gradient finds in y whether x > 0, which it
 * cannot where alpha < 0. */
static bool want_numbers(const Node *n, ShapeError *err)
{
    if (n->op == OP_clamp || n->op == OP_clamp_grad)
        return has_bounds(n, err);
    if ((n->op == OP_elu || n->op == OP_elu_grad) && node_float(n, ATTR_alpha, -1) < 0)
        return shape_fail(err, "E105", -1, "%s needs alpha, not below 0", op_name(n->op));
    if ((n->op == OP_softplus || n->op == OP_softplus_grad) && node_float(n, ATTR_beta, 0) == 0)
        return shape_fail(err, "E105", -1, "%s needs beta, not 0", op_name(n->op));
    if (n->op == OP_leaky_relu && !node_attr(n, ATTR_alpha))
        return shape_fail(err, "E105", -1, "leaky_relu needs alpha");
    return is_finite_attr(n, ATTR_alpha, 0, err) && is_finite_attr(n, ATTR_beta, 0, err);
}

/* Operations whose result has the type of the first input. */
SHAPE_RULE(unary)
{
    const Type *x = shape_in(g, node, 0), scalar = type_scalar(DTYPE_F32);
    *out = *x;
    if (keeps_integers(node->op)) {
        if (x->dtype == DTYPE_BOOL && node->op != OP_stop_gradient)
            return want_float(g, node, 0, err);
        return true;
    }
    if (!want_float(g, node, 0, err))
        return false;
    if (node->op == OP_clip_scale)
        return want_type(g, node, 0, &scalar, err);
    if (node->op == OP_causal_mask)
        return want_rank(g, node, 0, 2, TYPE_MAX_RANK, err);
    if (op_table[node->op].op_class == OP_CLASS_REDUCE)
        return row_shapes(g, node, err);
    return want_numbers(node, err);
}

SHAPE_RULE(cast)
{
    *out = *shape_in(g, node, 0);
    if (!node_attr(node, ATTR_dtype))
        return shape_fail(err, "E105", -1, "cast needs the attribute dtype");
    return shape_dtype(node, DTYPE_F32, &out->dtype, err);
}

/* Which dim (counted from the last, 1-based) keeps a and b apart. */
static int first_clash(const Type *a, const Type *b)
{
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        int64_t da = a->dim[a->rank - i], db = b->dim[b->rank - i];
        if (da != db && da != 1 && db != 1)
            return i;
    }
    return 0;
}

static bool fail_broadcast(const Node *node, const Type *a, const Type *b, int operand,
                           ShapeError *err)
{
    int i = first_clash(a, b);
    int64_t da = a->dim[a->rank - i], db = b->dim[b->rank - i];
    shape_fail(err, "E101", operand, "dim %d is %" PRId64 " here but %" PRId64 ": %s of %s and %s",
               b->rank - i, db, da, op_name(node->op), SHOW(a), SHOW(b));
    bool images = a->rank == 4 && b->rank == 4;
    if (images && i == 3)
        return shape_help(
            err, "give the shortcut as many channels, e.g. `downsample: conv(%" PRId64 ", 1)`",
            da > db ? da : db);
    if (images)
        return shape_help(err, "use the same stride and padding on both sides");
    return shape_help(err, "shapes broadcast from the last dim: equal, or one of them 1");
}

static bool broadcast_pair(const Graph *g, const Node *node, int ia, int ib, Type *out,
                           ShapeError *err)
{
    const Type *a = shape_in(g, node, ia), *b = shape_in(g, node, ib);
    bool real = dtype_is_real(a->dtype) && dtype_is_real(b->dtype);
    if (a->dtype != b->dtype && !real) {
        shape_fail(err, "E104", ib, "%s of %s%s and %s%s", op_name(node->op), dtype_name(a->dtype),
                   SHOW(a), dtype_name(b->dtype), SHOW(b));
        return shape_help(err, "convert one of them, e.g. |> to_f32()");
    }
    if (!type_broadcast(a, b, out))
        return fail_broadcast(node, a, b, ib, err);
    if (real)
        out->dtype = real_result(a->dtype, b->dtype);
    return true;
}

static bool works_on_bools(OpKind op)
{
    return op == OP_mul || op == OP_maximum || op == OP_minimum;
}

static bool floats_only(OpKind op)
{
    return op == OP_div || op == OP_pow || op == OP_relu_grad || op == OP_tanh_grad ||
           op == OP_sigmoid_grad || op == OP_gelu_grad || op == OP_silu_grad || op == OP_elu_grad ||
           op == OP_softplus_grad || op == OP_mish_grad || op == OP_hardswish_grad ||
           op == OP_clamp_grad;
}

SHAPE_RULE(binary)
{
    const Type *a = shape_in(g, node, 0);
    if (floats_only(node->op) || (a->dtype == DTYPE_BOOL && !works_on_bools(node->op)))
        if (!want_float(g, node, 0, err))
            return false;
    return want_numbers(node, err) && broadcast_pair(g, node, 0, 1, out, err);
}

/* A bit of each element of t in 32-bit words. */
static Type mask_type(const Type *t)
{
    int64_t n = type_elements(t), words = n / 32 + (n % 32 > 0);
    return type_make(DTYPE_I32, 1, &words);
}

SHAPE_RULE(relu_mask)
{
    *out = mask_type(shape_in(g, node, 0));
    return want_float(g, node, 0, err);
}

SHAPE_RULE(relu_mask_grad)
{
    const Type mask = mask_type(shape_in(g, node, 0));
    *out = *shape_in(g, node, 0);
    return want_float(g, node, 0, err) && want_type(g, node, 1, &mask, err);
}

SHAPE_RULE(compare)
{
    if (!broadcast_pair(g, node, 0, 1, out, err))
        return false;
    out->dtype = DTYPE_BOOL;
    return true;
}

/* (condition, a, b), all three broadcast. */
SHAPE_RULE(select)
{
    const Type *c = shape_in(g, node, 0);
    Type branches;
    if (c->dtype != DTYPE_BOOL)
        return shape_fail(err, "E104", 0, "select needs a bool condition, got %s",
                          dtype_name(c->dtype));
    if (!broadcast_pair(g, node, 1, 2, &branches, err))
        return false;
    return type_broadcast(&branches, c, out) || fail_broadcast(node, c, &branches, 1, err);
}

SHAPE_RULE(dropout)
{
    const int64_t four = 4;
    const Type rng = type_make(DTYPE_I32, 1, &four);
    double p = node_float(node, ATTR_p, 0.0);
    if (!(p >= 0.0 && p < 1.0))
        return shape_fail(err, "E105", -1, "dropout: p = %g is not in 0 <= p < 1", p);
    *out = *shape_in(g, node, 0);
    return want_float(g, node, 0, err) && want_type(g, node, 1, &rng, err);
}

/* axes: ascending, without repetition; all of them when absent. */
static bool reduced_axes(const Node *node, int rank, bool *reduced, ShapeError *err)
{
    int n;
    const int64_t *axes = node_ints(node, ATTR_axes, &n);
    for (int i = 0; i < TYPE_MAX_RANK; i++)
        reduced[i] = !node_attr(node, ATTR_axes);
    for (int i = 0; i < n; i++) {
        if (axes[i] < 0 || axes[i] >= rank)
            return shape_fail(err, "E105", 0,
                              "%s: axis %" PRId64 " is outside a tensor of %d dim%s",
                              op_name(node->op), axes[i], rank, rank == 1 ? "" : "s");
        if (i && axes[i] <= axes[i - 1])
            return shape_fail(err, "E105", -1, "%s: axes must ascend", op_name(node->op));
        reduced[axes[i]] = true;
    }
    return true;
}

/* Sums of bf16 are f32, which they are made in. */
SHAPE_RULE(reduce)
{
    const Type *x = shape_in(g, node, 0);
    bool reduced[TYPE_MAX_RANK], keep = node_flag(node, ATTR_keepdims);
    if ((node->op == OP_mean || x->dtype == DTYPE_BOOL) && !want_float(g, node, 0, err))
        return false;
    if (node->op == OP_sum && x->dtype == DTYPE_U8) {
        shape_fail(err, "E104", 0, "sum needs f32 or i32, got u8%s, which cannot hold a sum",
                   SHOW(x));
        return shape_help(err, "|> cast(i32)");
    }
    if (!reduced_axes(node, x->rank, reduced, err))
        return false;
    *out = type_scalar(node->op != OP_reduce_max && x->dtype == DTYPE_BF16 ? DTYPE_F32 : x->dtype);
    for (int i = 0; i < x->rank; i++)
        if (keep || !reduced[i])
            out->dim[out->rank++] = reduced[i] ? 1 : x->dim[i];
    return true;
}

SHAPE_RULE(scalar_of)
{
    *out = type_scalar(DTYPE_F32);
    return want_float(g, node, 0, err);
}

/* (running, statistic) -> running */
SHAPE_RULE(update1)
{
    *out = *shape_in(g, node, 0);
    return want_float(g, node, 0, err) && want_type(g, node, 1, out, err);
}

SHAPE_RULE(minimize)
{
    const Type scalar = type_scalar(DTYPE_F32);
    *n_out = node->n_in - 1;
    for (int i = 1; i < node->n_in; i++) {
        out[i - 1] = *shape_in(g, node, i);
        if (!want_float(g, node, i, err))
            return false;
    }
    return want_type(g, node, 0, &scalar, err);
}

static bool want_scalars(const Graph *g, const Node *node, int first, int last, ShapeError *err)
{
    const Type scalar = type_scalar(DTYPE_F32);
    for (int i = first; i < last; i++)
        if (!want_type(g, node, i, &scalar, err))
            return false;
    return true;
}

/* (w, g, m, lr, clip) or, without momentum, (w, g, lr, clip) */
SHAPE_RULE(sgd_step)
{
    *n_out = node->n_in == 5 ? 2 : 1;
    out[0] = out[1] = *shape_in(g, node, 0);
    if (!want_float(g, node, 0, err) || !want_type(g, node, 1, out, err))
        return false;
    if (*n_out == 2 && !want_type(g, node, 2, out, err))
        return false;
    return want_scalars(g, node, node->n_in - 2, node->n_in, err);
}

/* (w, g, m, v, lr, clip, step); step is an f32 or i32 scalar */
SHAPE_RULE(adam_step)
{
    const Type *step = shape_in(g, node, 6);
    out[0] = out[1] = out[2] = *shape_in(g, node, 0);
    if (!want_float(g, node, 0, err))
        return false;
    for (int i = 1; i < 4; i++)
        if (!want_type(g, node, i, out, err))
            return false;
    if (step->rank != 0 || (step->dtype != DTYPE_F32 && step->dtype != DTYPE_I32))
        return shape_fail(err, "E104", 6, "adam_step: step is %s%s, expected i32[] or f32[]",
                          dtype_name(step->dtype), SHOW(step));
    return want_scalars(g, node, 4, 6, err);
}

SHAPE_RULE(checksum)
{
    const int64_t two = 2;
    *out = type_make(DTYPE_I32, 1, &two);
    return true;
}

/* The body's `input` nodes, in order, have the types of the inputs; its outputs are the results. */
SHAPE_RULE(fused)
{
    const Graph *body = node->body;
    int seen = 0;
    if (!body || !body->outputs.len)
        return shape_fail(err, "E110", -1, "fused needs a body with results");
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        if (n->op != OP_input)
            continue;
        if (seen < node->n_in && !want_type(g, node, seen, value_type(body, n->out[0]), err))
            return false;
        seen++;
    }
    if (seen != node->n_in)
        return shape_fail(err, "E109", -1, "fused: the body has %d inputs, the node %d", seen,
                          node->n_in);
    *n_out = (int)body->outputs.len;
    for (int i = 0; i < *n_out; i++)
        out[i] = *value_type(body, body->outputs.data[i].value);
    return true;
}
