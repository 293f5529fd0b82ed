/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions that rearrange, join, cut and make tensors. */
#include "frontend/language/elaborate/builtins_table.h"

#include <inttypes.h>
#include <string.h>

/* ---- the same elements in another shape ---- */

static bool infer_dim(BuiltinCall *c, const Type *x, int64_t *dims, int rank)
{
    int64_t known = 1;
    int hole = -1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == -1 && hole < 0)
            hole = i;
        else if (dims[i] <= 0 || !size_mul(known, dims[i], &known)) {
            elab_error(c->l, c->arg_span[1], "E105",
                       "a size must be at least 1 (one may be -1), got %" PRId64, dims[i]);
            return false;
        }
    }
    if (hole >= 0 && type_elements(x) % known == 0)
        dims[hole] = type_elements(x) / known;
    if (hole >= 0 ? dims[hole] > 0 : known == type_elements(x))
        return true;
    elab_error(c->l, c->span, "E107", "%s has %" PRId64 " elements, which is not %s%" PRId64,
               type_text(c->l->pool, x), type_elements(x), hole >= 0 ? "a multiple of " : "",
               known);
    return false;
}

Val builtin_reshape(BuiltinCall *c)
{
    int64_t dims[TYPE_MAX_RANK];
    int rank = call_ints(c, 1, dims, TYPE_MAX_RANK);
    Type x = *elab_type(c->l, arg_tensor(c, 0));
    if (rank < 0 || !infer_dim(c, &x, dims, rank))
        return val_poison();
    return val_tensor(elab_reshape(c->l, arg_tensor(c, 0), dims, rank,
                                   elab_label_name(c->l, c->labelled), c->span));
}

/* A reshape to the same shape, which pass fold removes. */
Val builtin_identity(BuiltinCall *c)
{
    const Type *x = elab_type(c->l, arg_tensor(c, 0));
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_shape, x->dim, x->rank);
    ValueId in = arg_tensor(c, 0);
    return call_node(c, OP_reshape, &in, 1, &attrs);
}

Val builtin_flatten(BuiltinCall *c)
{
    Type x = *elab_type(c->l, arg_tensor(c, 0));
    int from;
    if (!call_axis(c, 1, x.rank, &from))
        return val_poison();
    int64_t joined = 1;
    for (int i = from; i < x.rank; i++)
        joined *= x.dim[i];
    x.dim[from] = joined;
    return val_tensor(elab_reshape(c->l, arg_tensor(c, 0), x.dim, from + 1,
                                   elab_label_name(c->l, c->labelled), c->span));
}

static bool is_permutation(BuiltinCall *c, int64_t *perm, int n, int rank)
{
    bool seen[TYPE_MAX_RANK] = {false}, ok = n == rank;
    for (int i = 0; i < n && ok; i++) {
        perm[i] += perm[i] < 0 ? rank : 0;
        ok = perm[i] >= 0 && perm[i] < rank && !seen[perm[i]];
        if (ok)
            seen[perm[i]] = true;
    }
    if (!ok)
        elab_error(c->l, c->arg_span[1], "E105", "not a permutation of %d dimensions", rank);
    return ok;
}

Val builtin_transpose(BuiltinCall *c)
{
    int rank = elab_type(c->l, arg_tensor(c, 0))->rank, a, b;
    int64_t perm[TYPE_MAX_RANK];
    if (arg_given(c, 2)) {
        if (c->arg[1].kind != VAL_INT) {
            elab_error(c->l, c->arg_span[1], "E206",
                       "either a permutation, or two dimensions to exchange");
            return val_poison();
        }
        if (!call_axis(c, 1, rank, &a) || !call_axis(c, 2, rank, &b))
            return val_poison();
        for (int i = 0; i < rank; i++)
            perm[i] = i == a ? b : i == b ? a : i;
    } else if (!is_permutation(c, perm, call_ints(c, 1, perm, TYPE_MAX_RANK), rank)) {
        return val_poison();
    }
    return val_tensor(elab_permutation(c->l, arg_tensor(c, 0), perm, rank,
                                       elab_label_name(c->l, c->labelled), c->span));
}

Val builtin_broadcast(BuiltinCall *c)
{
    int64_t dims[TYPE_MAX_RANK];
    int rank = call_ints(c, 1, dims, TYPE_MAX_RANK);
    AttrList attrs = {.n = 0};
    if (rank < 0)
        return val_poison();
    attrs_ints(&attrs, ATTR_shape, dims, rank);
    ValueId x = arg_tensor(c, 0);
    return call_node(c, OP_broadcast, &x, 1, &attrs);
}

/* ---- joining ---- */

static ValueId *tensor_list(BuiltinCall *c, int *n)
{
    ValList list = c->arg[0].list;
    ValueId *in = POOL_ARRAY(c->l->pool, (size_t)list.len + 1, ValueId);
    bool ok = list.len > 0;
    if (!ok)
        elab_error(c->l, c->arg_span[0], "E206", "%s needs at least one tensor", c->fn->name);
    for (int i = 0; i < list.len; i++) {
        ok &= want_tensor(c->l, list.data[i], c->arg_span[0], "an element of the list");
        in[i] = list.data[i].tensor;
    }
    *n = list.len;
    return ok ? in : NULL;
}

static Val concat(BuiltinCall *c, const ValueId *in, int n, int axis)
{
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_axis, axis);
    return call_node(c, OP_concat, in, n, &attrs);
}

Val builtin_concat(BuiltinCall *c)
{
    int n, axis;
    ValueId *in = tensor_list(c, &n);
    if (!in || !call_axis(c, 1, elab_type(c->l, in[0])->rank, &axis))
        return val_poison();
    return concat(c, in, n, axis); /* of one tensor, too: `summary` counts what was written */
}

Val builtin_stack(BuiltinCall *c)
{
    int n, axis;
    ValueId *in = tensor_list(c, &n);
    if (!in || !call_axis(c, 1, elab_type(c->l, in[0])->rank + 1, &axis))
        return val_poison();
    if (elab_type(c->l, in[0])->rank == TYPE_MAX_RANK) {
        elab_error(c->l, c->span, "E103", "a tensor has at most %d dimensions", TYPE_MAX_RANK);
        return val_poison();
    }
    for (int i = 0; i < n; i++) {
        Type t = *elab_type(c->l, in[i]);
        if (axis > t.rank)
            continue; /* concat reports the ranks */
        memmove(&t.dim[axis + 1], &t.dim[axis], (size_t)(t.rank - axis) * sizeof t.dim[0]);
        t.dim[axis] = 1;
        in[i] = elab_reshape(c->l, in[i], t.dim, t.rank + 1, NULL, c->span);
    }
    return n == 1 ? val_tensor(in[0]) : concat(c, in, n, axis);
}

/* ---- cutting ---- */

/* Sizes along the axis from a count or a list. */
static int64_t *split_sizes(BuiltinCall *c, int64_t size, int *n)
{
    Val parts = c->arg[1];
    bool even = parts.kind == VAL_INT;
    int64_t sum = 0, count = even ? parts.i : parts.list.len;
    if (count < 1 || count > size || (even && size % count)) {
        elab_error(c->l, c->arg_span[1], "E105",
                   "%" PRId64 " elements cannot be split into %" PRId64 "%s parts", size, count,
                   even ? " equal" : "");
        return NULL;
    }
    int64_t *sizes = POOL_ARRAY(c->l->pool, (size_t)count, int64_t);
    for (int i = 0; i < count; i++) {
        sizes[i] = even ? size / count : parts.list.data[i].i;
        if (sizes[i] < 1 || !size_add(sum, sizes[i], &sum))
            sum = -1;
        if (sum < 0)
            break;
    }
    *n = (int)count;
    if (sum == size)
        return sizes;
    elab_error(c->l, c->arg_span[1], "E105", "the parts must be positive and sum to %" PRId64,
               size);
    return NULL;
}

Val builtin_split(BuiltinCall *c)
{
    Elab *l = c->l;
    Type x = *elab_type(l, arg_tensor(c, 0));
    int axis, n;
    if (!call_axis(c, 2, x.rank, &axis))
        return val_poison();
    int64_t *sizes = split_sizes(c, x.dim[axis], &n), start[TYPE_MAX_RANK] = {0};
    if (!sizes)
        return val_poison();
    Val *out = POOL_ARRAY(l->pool, (size_t)n, Val);
    for (int i = 0; i < n; i++) {
        Type limit = x;
        limit.dim[axis] = start[axis] + sizes[i];
        AttrList attrs = {.n = 0};
        attrs_ints(&attrs, ATTR_start, start, x.rank);
        attrs_ints(&attrs, ATTR_limit, limit.dim, x.rank);
        out[i] = val_tensor(elab_node1(l, OP_slice, arg_tensor(c, 0), &attrs, NULL, c->span));
        start[axis] += sizes[i];
    }
    return val_list(out, n);
}

/* start and end of a slice of `size` elements, negative ones from the end; false after a message
 * when it leaves the axis or is empty. */
static bool slice_range(BuiltinCall *c, int64_t size, int64_t *start, int64_t *end)
{
    int64_t from = arg_int(c, 2), to = arg_given(c, 3) ? arg_int(c, 3) : size;
    *start = from < 0 ? from + size : from;
    *end = to < 0 ? to + size : to;
    if (*start >= 0 && *start < *end && *end <= size)
        return true;
    bool empty = *start >= 0 && *start <= size && *end >= 0 && *end <= size;
    Span at = c->arg_span[arg_given(c, 3) ? 3 : 2];
    if (elab_error(c->l, at, "E105", "slice %" PRId64 "..%" PRId64 " is %s 0..%" PRId64, from, to,
                   empty ? "empty; there are elements" : "outside", size))
        diag_help(c->l->diag, "0 <= start < end <= %" PRId64 "; -1 is the last element", size);
    return false;
}

Val builtin_slice(BuiltinCall *c)
{
    Type x = *elab_type(c->l, arg_tensor(c, 0));
    int64_t first[TYPE_MAX_RANK] = {0}, step[TYPE_MAX_RANK], start, end;
    int axis;
    if (!call_axis(c, 1, x.rank, &axis) || !slice_range(c, x.dim[axis], &start, &end))
        return val_poison();
    if (arg_int(c, 4) < 1) {
        if (elab_error(c->l, c->arg_span[4], "E105", "a step must be at least 1, got %" PRId64,
                       arg_int(c, 4)))
            diag_help(c->l->diag, "there are no slices backwards");
        return val_poison();
    }
    if (end - start == x.dim[axis] && arg_int(c, 4) == 1)
        return c->arg[0];
    for (int i = 0; i < x.rank; i++)
        step[i] = i == axis ? arg_int(c, 4) : 1;
    first[axis] = start;
    x.dim[axis] = end;
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_start, first, x.rank);
    attrs_ints(&attrs, ATTR_limit, x.dim, x.rank);
    if (arg_int(c, 4) > 1)
        attrs_ints(&attrs, ATTR_step, step, x.rank);
    ValueId in = arg_tensor(c, 0);
    return call_node(c, OP_slice, &in, 1, &attrs);
}

/* The size that a crop is to have. */
static bool crop_size(BuiltinCall *c, int64_t size[2])
{
    if (arg_given(c, 1) == arg_given(c, 2)) {
        if (elab_error(c->l, c->span, "E206", "center_crop takes a size or a tensor `like` it%s",
                       arg_given(c, 1) ? ", not both" : ""))
            diag_help(c->l->diag, "center_crop(224), center_crop([h, w]) or center_crop(like = y)");
        return false;
    }
    if (arg_given(c, 1))
        return call_pair(c, 1, 1, size);
    const Type *like = elab_type(c->l, arg_tensor(c, 2));
    if (like->rank < 2) {
        elab_error(c->l, c->arg_span[2], "E103", "`like` needs two dimensions at least, got %s",
                   type_shape_text(c->l->pool, like));
        return false;
    }
    memcpy(size, &like->dim[like->rank - 2], 2 * sizeof *size);
    return true;
}

Val builtin_center_crop(BuiltinCall *c)
{
    Type x = *elab_type(c->l, arg_tensor(c, 0)), limit = x;
    int64_t size[2], start[TYPE_MAX_RANK] = {0};
    if (!crop_size(c, size))
        return val_poison();
    if (x.rank < 2 || size[0] > x.dim[x.rank - 2] || size[1] > x.dim[x.rank - 1]) {
        elab_error(c->l, c->span, x.rank < 2 ? "E103" : "E105",
                   "a crop of [%" PRId64 ",%" PRId64 "] does not fit into %s", size[0], size[1],
                   type_shape_text(c->l->pool, &x));
        return val_poison();
    }
    for (int i = 0; i < 2; i++) {
        int axis = x.rank - 2 + i;
        start[axis] = (x.dim[axis] - size[i]) / 2;
        limit.dim[axis] = start[axis] + size[i];
    }
    if (memcmp(size, &x.dim[x.rank - 2], sizeof size) == 0)
        return c->arg[0];
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_start, start, x.rank);
    attrs_ints(&attrs, ATTR_limit, limit.dim, x.rank);
    attrs_int(&attrs, ATTR_crop, 1);
    ValueId in = arg_tensor(c, 0);
    return call_node(c, OP_slice, &in, 1, &attrs);
}

Val builtin_pad(BuiltinCall *c)
{
    int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK];
    int rank = elab_type(c->l, arg_tensor(c, 0))->rank, n = call_ints(c, 1, lo, TYPE_MAX_RANK);
    int m = arg_given(c, 2) ? call_ints(c, 2, hi, TYPE_MAX_RANK) : n;
    if (!arg_given(c, 2))
        memcpy(hi, lo, sizeof hi);
    if (n < 0 || m < 0)
        return val_poison();
    if (n != rank || m != rank) {
        elab_error(c->l, c->span, "E105", "pad needs one number for each of the %d dimensions",
                   rank);
        return val_poison();
    }
    AttrList attrs = {.n = 0};
    if (!elab_number_fits(c->l, elab_type(c->l, arg_tensor(c, 0))->dtype, arg_float(c, 3),
                          c->arg_span[3]))
        return val_poison();
    attrs_ints(&attrs, ATTR_lo, lo, rank);
    attrs_ints(&attrs, ATTR_hi, hi, rank);
    attrs_float(&attrs, ATTR_value, arg_float(c, 3));
    ValueId x = arg_tensor(c, 0);
    return call_node(c, OP_pad, &x, 1, &attrs);
}

/* ---- making ---- */

Val builtin_iota(BuiltinCall *c)
{
    const int64_t n = arg_int(c, 0);
    if (n < 1 || n > INT32_MAX) {
        elab_error(c->l, c->arg_span[0], "E105", "iota has 1 to %d elements, not %" PRId64,
                   INT32_MAX, n);
        return val_poison();
    }
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_shape, &n, 1);
    attrs_string(&attrs, ATTR_dtype, "i32");
    return call_node(c, OP_iota, NULL, 0, &attrs);
}

static Val full(BuiltinCall *c, double value, int value_arg, int dtype_arg)
{
    int64_t dims[TYPE_MAX_RANK];
    int rank = call_ints(c, 0, dims, TYPE_MAX_RANK);
    DType dtype = DTYPE_F32;
    dtype_from_name(c->arg[dtype_arg].s, &dtype);
    if (rank < 0 || !elab_number_fits(c->l, dtype, value, c->arg_span[value_arg]))
        return val_poison();
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_shape, dims, rank);
    attrs_float(&attrs, ATTR_value, value);
    attrs_string(&attrs, ATTR_dtype, c->arg[dtype_arg].s);
    return call_node(c, OP_full, NULL, 0, &attrs);
}

Val builtin_zeros(BuiltinCall *c)
{
    return full(c, 0, 0, 1);
}

Val builtin_ones(BuiltinCall *c)
{
    return full(c, 1, 0, 1);
}

Val builtin_full(BuiltinCall *c)
{
    return full(c, arg_float(c, 1), 1, 2);
}
