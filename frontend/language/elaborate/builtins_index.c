/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Elements by number, and order. */
#include "frontend/language/elaborate/builtins_table.h"

#include <inttypes.h>

static Type type_of(const BuiltinCall *c, ValueId v)
{
    return *elab_type(c->l, v);
}

/* The part of x that an index numbers: torch.gather takes one that is shorter along other axes. */
static ValueId beside_index(BuiltinCall *c, ValueId x, const Type *index, int axis)
{
    AttrList attrs = {.n = 0};
    const int64_t start[TYPE_MAX_RANK] = {0};
    Type t = type_of(c, x), part = t;
    for (int i = 0; i < t.rank && t.rank == index->rank; i++)
        if (i != axis && index->dim[i] < t.dim[i])
            part.dim[i] = index->dim[i];
    if (type_same_shape(&part, &t))
        return x;
    attrs_ints(&attrs, ATTR_start, start, t.rank);
    attrs_ints(&attrs, ATTR_limit, part.dim, t.rank);
    return elab_node1(c->l, OP_slice, x, &attrs, NULL, c->span);
}

static Val gathered(BuiltinCall *c, ValueId x, ValueId index, int axis)
{
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_axis, axis);
    const ValueId in[] = {x, index};
    return x == VALUE_NONE || index == VALUE_NONE ? val_poison()
                                                  : call_node(c, OP_gather, in, 2, &attrs);
}

Val builtin_gather(BuiltinCall *c)
{
    int axis;
    ValueId x = arg_tensor(c, 0), index = arg_tensor(c, 1);
    if (!call_axis(c, 2, type_of(c, x).rank, &axis))
        return val_poison();
    Type shape = type_of(c, index);
    return gathered(c, beside_index(c, x, &shape, axis), index, axis);
}

/* What was added to the part of x that an index numbers, with zeros for the rest. */
static ValueId padded(BuiltinCall *c, ValueId v, const Type *to)
{
    AttrList attrs = {.n = 0};
    const int64_t lo[TYPE_MAX_RANK] = {0};
    int64_t hi[TYPE_MAX_RANK];
    if (v == VALUE_NONE)
        return v;
    Type t = type_of(c, v);
    if (type_same_shape(&t, to))
        return v;
    for (int i = 0; i < t.rank; i++)
        hi[i] = to->dim[i] - t.dim[i];
    attrs_ints(&attrs, ATTR_lo, lo, t.rank);
    attrs_ints(&attrs, ATTR_hi, hi, t.rank);
    return elab_node1(c->l, OP_pad, v, &attrs, NULL, c->span);
}

static bool index_fits(BuiltinCall *c, const Type *x, const Type *index, int axis)
{
    bool fits = index->rank == x->rank;
    for (int i = 0; i < x->rank && fits; i++)
        fits = i == axis || index->dim[i] <= x->dim[i];
    if (!fits)
        elab_error(c->l, c->arg_span[1], "E101", "an index %s does not fit %s along axis %d",
                   type_shape_text(c->l->pool, index), type_shape_text(c->l->pool, x), axis);
    return fits;
}

/* The sums of src in the order of the index, then x and those. */
Val builtin_scatter_add(BuiltinCall *c)
{
    int axis;
    AttrList attrs = {.n = 0};
    Type x = type_of(c, arg_tensor(c, 0)), index = type_of(c, arg_tensor(c, 1)), part = index;
    if (!call_axis(c, 3, x.rank, &axis) || !index_fits(c, &x, &index, axis))
        return val_poison();
    part.dim[axis] = x.dim[axis];
    attrs_int(&attrs, ATTR_axis, axis);
    attrs_ints(&attrs, ATTR_shape, part.dim, part.rank);
    ValueId src = beside_index(c, arg_tensor(c, 2), &index, -1);
    if (src == VALUE_NONE)
        return val_poison();
    ValueId sums = elab_node2(c->l, OP_scatter_add, arg_tensor(c, 1), src, &attrs, NULL, c->span);
    sums = padded(c, sums, &x);
    if (sums == VALUE_NONE)
        return val_poison();
    return elab_elementwise(c->l, OP_add, c->arg[0], val_tensor(sums), c->arg_span[0],
                            c->arg_span[2], c->span);
}

/* ---- slices by number ---- */

/* i32 [outer, ids]: the rows of [outer * length, inner] that ids number in each of the outer parts.
 */
static ValueId row_numbers(BuiltinCall *c, int64_t outer, int64_t length)
{
    Elab *l = c->l;
    AttrList attrs = {.n = 0};
    const int64_t column[] = {outer, 1};
    ValueId ids = arg_tensor(c, 1);
    ids = elab_node2(l, OP_maximum, ids, elab_constant(l, DTYPE_I32, 0, c->span), NULL, NULL,
                     c->span);
    if (ids == VALUE_NONE)
        return ids;
    ids = elab_node2(l, OP_minimum, ids, elab_constant(l, DTYPE_I32, (double)(length - 1), c->span),
                     NULL, NULL, c->span);
    attrs_ints(&attrs, ATTR_shape, column, 2);
    attrs_int(&attrs, ATTR_axis, 0);
    attrs_string(&attrs, ATTR_dtype, "i32");
    ValueId part = elab_node(l, OP_iota, NULL, 0, &attrs, NULL, c->span);
    ValueId first = elab_node2(
        l, OP_mul, part, elab_constant(l, DTYPE_I32, (double)length, c->span), NULL, NULL, c->span);
    return elab_node2(l, OP_add, first, ids, NULL, NULL, c->span);
}

/* x [outer, length, inner] as a table of rows. */
static Val select_rows(BuiltinCall *c, int64_t outer, int64_t length, int64_t inner,
                       const Type *result)
{
    const int64_t table[] = {outer * length, inner};
    ValueId x = elab_reshape(c->l, arg_tensor(c, 0), table, 2, NULL, c->span);
    ValueId ids = outer == 1 ? arg_tensor(c, 1) : row_numbers(c, outer, length);
    if (x == VALUE_NONE || ids == VALUE_NONE)
        return val_poison();
    ValueId y = elab_node2(c->l, OP_embedding, ids, x, NULL, NULL, c->span);
    if (y == VALUE_NONE)
        return val_poison();
    return val_tensor(elab_reshape(c->l, y, result->dim, result->rank,
                                   elab_label_name(c->l, c->labelled), c->span));
}

/* Every element by number, where rows would be single elements, or are none of floats. */
static Val select_elements(BuiltinCall *c, const Type *result, int axis)
{
    AttrList attrs = {.n = 0};
    int64_t dims[TYPE_MAX_RANK];
    for (int i = 0; i < result->rank; i++)
        dims[i] = i == axis ? result->dim[i] : 1;
    ValueId index = elab_reshape(c->l, arg_tensor(c, 1), dims, result->rank, NULL, c->span);
    attrs_ints(&attrs, ATTR_shape, result->dim, result->rank);
    if (index != VALUE_NONE)
        index = elab_node1(c->l, OP_broadcast, index, &attrs, NULL, c->span);
    return gathered(c, arg_tensor(c, 0), index, axis);
}

Val builtin_index_select(BuiltinCall *c)
{
    int axis;
    Type x = type_of(c, arg_tensor(c, 0)), ids = type_of(c, arg_tensor(c, 1)), result = x;
    if (!call_axis(c, 2, x.rank, &axis))
        return val_poison();
    if (ids.rank != 1) {
        elab_error(c->l, c->arg_span[1], "E103", "ids have one dimension, got %s",
                   type_shape_text(c->l->pool, &ids));
        return val_poison();
    }
    result.dim[axis] = ids.dim[0];
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < x.rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : x.dim[i];
    bool rows = inner > 1 && outer * x.dim[axis] <= INT32_MAX;
    if (dtype_is_real(x.dtype) && (outer == 1 || (rows && ids.dtype == DTYPE_I32)))
        return select_rows(c, outer, x.dim[axis], inner, &result);
    return select_elements(c, &result, axis);
}

/* ---- order ---- */

static bool is_last_axis(BuiltinCall *c, int rank)
{
    int axis;
    if (!call_axis(c, 1, rank, &axis))
        return false;
    if (axis == rank - 1)
        return true;
    if (elab_error(c->l, c->arg_span[1], "E105", "%s works along the last axis", c->fn->name))
        diag_help(c->l->diag, "transpose(x, %d, -1) before and after it", axis);
    return false;
}

static ValueId order(BuiltinCall *c, bool descending, int64_t count, const char *name)
{
    AttrList attrs = {.n = 0};
    if (count)
        attrs_int(&attrs, ATTR_count, count);
    if (descending)
        attrs_int(&attrs, ATTR_descending, 1);
    return elab_node1(c->l, OP_argsort, arg_tensor(c, 0), &attrs, name, c->span);
}

Val builtin_argsort(BuiltinCall *c)
{
    if (!is_last_axis(c, type_of(c, arg_tensor(c, 0)).rank))
        return val_poison();
    ValueId index = order(c, arg_bool(c, 2), 0, elab_label_name(c->l, c->labelled));
    return index == VALUE_NONE ? val_poison() : val_tensor(index);
}

Val builtin_sort(BuiltinCall *c)
{
    int rank = type_of(c, arg_tensor(c, 0)).rank;
    if (!is_last_axis(c, rank))
        return val_poison();
    return gathered(c, arg_tensor(c, 0), order(c, arg_bool(c, 2), 0, NULL), rank - 1);
}

Val builtin_topk(BuiltinCall *c)
{
    Type x = type_of(c, arg_tensor(c, 0));
    if (x.rank == 0 || arg_int(c, 1) < 1 || arg_int(c, 1) > x.dim[x.rank - 1]) {
        elab_error(c->l, c->arg_span[1], "E105", "the %" PRId64 " largest of the last axis of %s",
                   arg_int(c, 1), type_shape_text(c->l->pool, &x));
        return val_poison();
    }
    ValueId index = order(c, true, arg_int(c, 1), NULL);
    Val values = gathered(c, arg_tensor(c, 0), index, x.rank - 1);
    Val *both = POOL_ARRAY(c->l->pool, 2, Val);
    both[0] = values;
    both[1] = val_tensor(index);
    return values.kind == VAL_POISON ? values : val_list(both, 2);
}
