/* SPDX-License-Identifier: GPL-3.0-or-later */
/* x[...]: elements and slices of lists, slices of tensors. */
#include "frontend/language/elaborate/elaborate.h"

#include <inttypes.h>
#include <string.h>

/* Bounds of one slice over `size` elements, Python's way with negative indices but never clamped:
 * a slice that leaves the tensor is a mistake. */
static bool slice_bounds(Elab *l, Frame *f, const Index *item, int64_t size, int64_t *lo,
                         int64_t *hi)
{
    *lo = 0;
    *hi = size;
    bool ok = true;
    if (item->lo)
        ok &= want_int(l, eval_expr(l, f, item->lo), item->lo->span, "a slice's start", lo);
    if (item->hi)
        ok &= want_int(l, eval_expr(l, f, item->hi), item->hi->span, "a slice's end", hi);
    if (!ok)
        return false;
    int64_t from = *lo, to = *hi;
    bool inclusive = item->hi && item->inclusive;
    if (item->lo && *lo < 0)
        *lo += size;
    if (item->hi && *hi < 0)
        *hi += size;
    if (inclusive && *hi < INT64_MAX)
        ++*hi;
    if (*lo >= 0 && *lo <= *hi && *hi <= size)
        return true;
    elab_error(l, item->span, "E105", "slice %" PRId64 "..%s%" PRId64 " is outside 0..%" PRId64,
               from, inclusive ? "=" : "", to, size);
    return false;
}

static bool element_index(Elab *l, Frame *f, const Index *item, int64_t size, int64_t *at)
{
    int64_t given = 0;
    if (!want_int(l, eval_expr(l, f, item->at), item->at->span, "an index", &given))
        return false;
    *at = given < 0 ? given + size : given;
    if (*at >= 0 && *at < size)
        return true;
    elab_error(l, item->span, "E105", "index %" PRId64 " is outside 0..%" PRId64, given, size);
    return false;
}

static Val index_list(Elab *l, Frame *f, const Expr *e, ValList list)
{
    const Index *item = &e->index.items[0];
    int64_t lo, hi;
    if (e->index.len != 1) {
        elab_error(l, e->span, "E205", "a list takes one index");
        return val_poison();
    }
    if (item->kind == INDEX_AT)
        return element_index(l, f, item, list.len, &lo) ? list.data[lo] : val_poison();
    if (!slice_bounds(l, f, item, list.len, &lo, &hi))
        return val_poison();
    return val_list(list.data + lo, (int)(hi - lo));
}

typedef struct SliceSpec {
    int64_t start[TYPE_MAX_RANK], limit[TYPE_MAX_RANK];
    int64_t left[TYPE_MAX_RANK]; /* dims that remain */
    int rank;
    bool whole; /* nothing is cut off */
} SliceSpec;

static bool slice_axis(Elab *l, Frame *f, const Index *item, int64_t size, int axis, SliceSpec *s)
{
    int64_t lo = 0, hi = size;
    bool at = item && item->kind == INDEX_AT;
    if (at) {
        if (!element_index(l, f, item, size, &lo))
            return false;
        hi = lo + 1;
    } else if (item && !slice_bounds(l, f, item, size, &lo, &hi)) {
        return false;
    }
    s->start[axis] = lo;
    s->limit[axis] = hi;
    s->whole &= lo == 0 && hi == size;
    if (!at)
        s->left[s->rank++] = hi - lo;
    return true;
}

static Val index_tensor(Elab *l, Frame *f, const Expr *e, ValueId x)
{
    Type t = *elab_type(l, x);
    SliceSpec s = {.whole = true};
    if (e->index.len > t.rank) {
        elab_error(l, e->span, "E105", "%d indices for %s", e->index.len, type_text(l->pool, &t));
        return val_poison();
    }
    bool ok = true;
    for (int i = 0; i < t.rank; i++)
        ok &= slice_axis(l, f, i < e->index.len ? &e->index.items[i] : NULL, t.dim[i], i, &s);
    if (!ok)
        return val_poison();
    if (!s.whole) {
        AttrList attrs = {.n = 0};
        attrs_ints(&attrs, ATTR_start, s.start, t.rank);
        attrs_ints(&attrs, ATTR_limit, s.limit, t.rank);
        x = elab_node1(l, OP_slice, x, &attrs, NULL, e->span);
    }
    return val_tensor(elab_reshape(l, x, s.left, s.rank, NULL, e->span));
}

/* f32[N, 3, 32, 32] as a value. */
static Val type_value(Elab *l, Frame *f, const Expr *e, DType dtype)
{
    Type *t = POOL_NEW(l->pool, Type);
    *t = type_scalar(dtype);
    for (int i = 0; i < e->index.len; i++) {
        const Index *item = &e->index.items[i];
        int64_t size = 0;
        if (item->kind != INDEX_AT || i == TYPE_MAX_RANK) {
            elab_error(l, item->span, "E105", "a type has up to %d sizes", TYPE_MAX_RANK);
            return val_poison();
        }
        if (!want_int(l, eval_expr(l, f, item->at), item->at->span, "a size", &size))
            return val_poison();
        if (size < 1) {
            elab_error(l, item->span, "E105", "a size must be at least 1, got %" PRId64, size);
            return val_poison();
        }
        t->dim[t->rank++] = size;
    }
    return (Val){.kind = VAL_TYPE, .type = t};
}

Val eval_index(Elab *l, Frame *f, const Expr *e)
{
    Val base = eval_expr(l, f, e->index.base);
    if (base.kind == VAL_LIST)
        return index_list(l, f, e, base.list);
    if (base.kind == VAL_TENSOR)
        return index_tensor(l, f, e, base.tensor);
    DType dtype;
    if (base.kind == VAL_STRING && e->index.base->kind == EXPR_NAME &&
        dtype_from_name(base.s, &dtype))
        return type_value(l, f, e, dtype);
    want_tensor(l, base, e->index.base->span, "what is indexed");
    return val_poison();
}
