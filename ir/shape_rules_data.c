/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shapes of constants and of operations that move data. */
#include "ir/random.h"
#include "ir/shape_rules.h"

#include <inttypes.h>
#include <math.h>

bool shape_dtype(const Node *n, DType otherwise, DType *out, ShapeError *err)
{
    const char *name = node_string(n, ATTR_dtype, NULL);
    *out = otherwise;
    if (!name || dtype_from_name(name, out))
        return true;
    return shape_fail(err, "E105", -1, "%s: '%.32s' is no element type", op_name(n->op), name);
}

static bool shape_attr(const Node *n, Type *out, ShapeError *err)
{
    int rank;
    const int64_t *dims = node_ints(n, ATTR_shape, &rank);
    if (!dims && !node_attr(n, ATTR_shape))
        return shape_fail(err, "E105", -1, "%s needs the attribute shape", op_name(n->op));
    if (rank > TYPE_MAX_RANK)
        return shape_fail(err, "E103", -1, "%s: %d dims, the limit is %d", op_name(n->op), rank,
                          TYPE_MAX_RANK);
    *out = type_make(out->dtype, rank, dims);
    if (type_valid(out))
        return true;
    return shape_fail(err, "E108", -1, "%s: the shape %s is negative or too large", op_name(n->op),
                      SHOW(out));
}

/* full: f32 unless dtype says otherwise; iota counts along `axis` (default: the last), i32. */
SHAPE_RULE(full)
{
    int axis;
    if (!shape_dtype(node, node->op == OP_iota ? DTYPE_I32 : DTYPE_F32, &out->dtype, err) ||
        !shape_attr(node, out, err))
        return false;
    return node->op != OP_iota || want_axis(node, out->rank, out->rank - 1, &axis, err);
}

SHAPE_RULE(random)
{
    const int64_t four = 4, below = node_int(node, ATTR_below, 0);
    const Type rng = type_make(DTYPE_I32, 1, &four);
    RandomKind kind = random_kind(node);
    if (kind == RANDOM_KINDS)
        return shape_fail(err, "E105", -1, "random: '%.32s' is no kind of numbers",
                          node_string(node, ATTR_kind, ""));
    if (kind == RANDOM_INTEGERS && (below < 1 || below > RANDOM_MOST))
        return shape_fail(err, "E105", -1, "random: integers below %" PRId64 ", not 1 to %" PRId64,
                          below, RANDOM_MOST);
    out->dtype = kind == RANDOM_INTEGERS ? DTYPE_I32 : DTYPE_F32;
    return shape_attr(node, out, err) && want_type(g, node, 0, &rng, err);
}

/* Numbers that f32 holds exactly, so that code and reference start from the same. */
SHAPE_RULE(literal)
{
    int n;
    const double *values = node_floats(node, ATTR_values, &n);
    if (n < 1 || n > LITERAL_MAX_VALUES)
        return shape_fail(err, "E108", -1, "a literal has 1 to %d values, not %d",
                          LITERAL_MAX_VALUES, n);
    for (int i = 0; i < n; i++)
        if (!isnan(values[i]) && (double)(float)values[i] != values[i])
            return shape_fail(err, "E105", -1, "literal: %.17g is no f32", values[i]);
    *out = type_make(DTYPE_F32, 1, (const int64_t[]){n});
    return true;
}

SHAPE_RULE(reshape)
{
    const Type *x = shape_in(g, node, 0);
    out->dtype = x->dtype;
    if (!shape_attr(node, out, err))
        return false;
    if (type_elements(x) == type_elements(out))
        return true;
    return shape_fail(err, "E107", 0, "reshape of %s (%" PRId64 " elements) to %s (%" PRId64 ")",
                      SHOW(x), type_elements(x), SHOW(out), type_elements(out));
}

SHAPE_RULE(transpose)
{
    const Type *x = shape_in(g, node, 0);
    int64_t perm[TYPE_MAX_RANK];
    bool seen[TYPE_MAX_RANK] = {0};
    if (!want_ints(node, ATTR_perm, x->rank, 0, -1, perm, err))
        return false;
    *out = *x;
    for (int i = 0; i < x->rank; i++) {
        if (perm[i] >= x->rank || seen[perm[i]])
            return shape_fail(err, "E105", -1, "transpose: perm is no permutation of %d dims",
                              x->rank);
        seen[perm[i]] = true;
        out->dim[i] = x->dim[perm[i]];
    }
    return true;
}

SHAPE_RULE(broadcast)
{
    const Type *x = shape_in(g, node, 0);
    Type to;
    out->dtype = x->dtype;
    if (!shape_attr(node, out, err))
        return false;
    if (type_broadcast(x, out, &to) && type_same_shape(&to, out))
        return true;
    return shape_fail(err, "E101", 0, "broadcast of %s to %s", SHOW(x), SHOW(out));
}

/* out dim = ceil((limit - start) / step) */
SHAPE_RULE(slice)
{
    const Type *x = shape_in(g, node, 0);
    int64_t start[TYPE_MAX_RANK], limit[TYPE_MAX_RANK], step[TYPE_MAX_RANK];
    if (!want_ints(node, ATTR_start, x->rank, 0, -1, start, err) ||
        !want_ints(node, ATTR_limit, x->rank, 0, -1, limit, err) ||
        !want_ints(node, ATTR_step, x->rank, 1, 1, step, err))
        return false;
    *out = *x;
    for (int i = 0; i < x->rank; i++) {
        if (start[i] >= limit[i] || limit[i] > x->dim[i])
            return shape_fail(err, "E107", 0,
                              "slice %" PRId64 "..%" PRId64 " of axis %d, which has %" PRId64
                              " elements",
                              start[i], limit[i], i, x->dim[i]);
        out->dim[i] = (limit[i] - start[i] - 1) / step[i] + 1;
    }
    return true;
}

static bool fail_concat(const Graph *g, const Node *node, int i, int axis, ShapeError *err)
{
    const Type *first = shape_in(g, node, 0), *t = shape_in(g, node, i);
    shape_fail(err, "E102", i, "concat axis %d: operand %d is %s, the first is %s", axis, i + 1,
               SHOW(t), SHOW(first));
    if (t->rank == 4 && first->rank == 4 && axis == 1)
        return shape_help(err, "pad = 1 or ceil = true, so that all branches keep one size");
    return shape_help(err, "operands may differ in dim %d only", axis);
}

SHAPE_RULE(concat)
{
    const Type *first = shape_in(g, node, 0);
    int axis;
    if (!want_axis(node, first->rank, 0, &axis, err))
        return false;
    *out = *first;
    for (int i = 1; i < node->n_in; i++) {
        Type t = *shape_in(g, node, i);
        int64_t extent = t.rank > axis ? t.dim[axis] : 0;
        if (t.dtype != first->dtype)
            return shape_fail(err, "E104", i, "concat: operand %d is %s, the first is %s", i + 1,
                              dtype_name(t.dtype), dtype_name(first->dtype));
        if (t.rank == first->rank)
            t.dim[axis] = first->dim[axis];
        if (!type_same_shape(&t, first))
            return fail_concat(g, node, i, axis, err);
        if (!size_add(out->dim[axis], extent, &out->dim[axis]))
            return shape_fail(err, "E108", i, "concat: the result is too large");
    }
    return true;
}

SHAPE_RULE(pad)
{
    const Type *x = shape_in(g, node, 0);
    int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK];
    if (!want_ints(node, ATTR_lo, x->rank, 0, 0, lo, err) ||
        !want_ints(node, ATTR_hi, x->rank, 0, 0, hi, err))
        return false;
    *out = *x;
    for (int i = 0; i < x->rank; i++)
        if (!size_add(out->dim[i], lo[i], &out->dim[i]) ||
            !size_add(out->dim[i], hi[i], &out->dim[i]))
            return shape_fail(err, "E108", 0, "pad: the result is too large");
    return true;
}
