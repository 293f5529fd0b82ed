/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient of a value that is read in slices is put together from the gradients of the slices,
 * dim by dim.  Along the first dim that not all of them fill, parts of one range make a slot, which
 * is put together by the dims behind; slots that do not overlap make a layer, a concatenation with
 * zeros in its gaps; layers are added. */
#include "passes/autodiff/slice_gradients.h"

#include <stdlib.h>
#include <string.h>

typedef struct Assembly {
    Graph *g;
    Pool *scratch;
    Type type;                     /* of what is being put together */
    int64_t origin[TYPE_MAX_RANK]; /* where in the whole it begins */
    const char *name;
    Loc loc;
} Assembly;

/* Parts [first, end) of the list; elements [lo, hi) of the dim. */
typedef struct Slot {
    int first, end, layer;
    int64_t lo, hi;
} Slot;

typedef VEC(Slot) IncrementalSchedule;

bool slice_part(const Graph *g, const Node *slice, ValueId gradient, SlicePart *part)
{
    const Type *y = value_type(g, slice->out[0]);
    *part = (SlicePart){.gradient = gradient};
    for (int d = 0; d < y->rank; d++) {
        if (y->dim[d] > 1 && node_ints_at(slice, ATTR_step, d, 1) != 1)
            return false;
        part->lo[d] = node_ints_at(slice, ATTR_start, d, 0);
        part->hi[d] = part->lo[d] + y->dim[d];
    }
    return true;
}

static ValueId add_node(const Assembly *a, OpKind op, const ValueId *in, int n,
                        const AttrList *attrs, const char *suffix)
{
    const char *name = pool_printf(a->g->pool, "%s.%s", a->name, suffix);
    return graph_add(a->g, op, in, n, attrs, name, a->loc);
}

static ValueId sum_of(const Assembly *a, ValueId sum, ValueId term)
{
    const ValueId in[] = {sum, term};
    return sum == VALUE_NONE ? term : add_node(a, OP_add, in, 2, NULL, "sum");
}

static ValueId zeros(const Assembly *a, int dim, int64_t size)
{
    Type t = a->type;
    AttrList attrs = {0};
    t.dim[dim] = size;
    attrs_float(&attrs, ATTR_value, 0);
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    if (t.dtype != DTYPE_F32)
        attrs_string(&attrs, ATTR_dtype, dtype_name(t.dtype));
    return add_node(a, OP_full, NULL, 0, &attrs, "zeros");
}

/* v with lo[d] zeros before and hi[d] behind it. */
static ValueId padded(const Assembly *a, ValueId v, const int64_t *lo, const int64_t *hi)
{
    AttrList attrs = {0};
    bool any = false;
    for (int d = 0; d < a->type.rank; d++)
        any |= lo[d] > 0 || hi[d] > 0;
    attrs_ints(&attrs, ATTR_lo, lo, a->type.rank);
    attrs_ints(&attrs, ATTR_hi, hi, a->type.rank);
    return any ? add_node(a, OP_pad, &v, 1, &attrs, "pad") : v;
}

static ValueId joined(const Assembly *a, const ValueId *in, int n, int dim)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, dim);
    return n == 1 ? in[0] : add_node(a, OP_concat, in, n, &attrs, "concat");
}

/* A part by its range along the dim at hand. */
typedef struct Range {
    int64_t lo, hi;
    int index;
} Range;

static int by_range(const void *a, const void *b)
{
    const Range *x = a, *y = b;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    if (x->hi != y->hi)
        return x->hi < y->hi ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void sort_parts(const Assembly *a, SlicePart *parts, int n, int dim)
{
    Range *range = POOL_ARRAY(a->scratch, (size_t)n, Range);
    SlicePart *old = POOL_ARRAY(a->scratch, (size_t)n, SlicePart);
    memcpy(old, parts, (size_t)n * sizeof *parts);
    for (int i = 0; i < n; i++)
        range[i] = (Range){parts[i].lo[dim], parts[i].hi[dim], i};
    qsort(range, (size_t)n, sizeof *range, by_range);
    for (int i = 0; i < n; i++)
        parts[i] = old[range[i].index];
}

/* A slot goes into the first layer that it overlaps nothing of; returns how many there are. */
static int make_slots(const Assembly *a, const SlicePart *parts, int n, int dim,
                      IncrementalSchedule *slots)
{
    int64_t *layer_end = POOL_ARRAY(a->scratch, (size_t)n, int64_t);
    int n_layers = 0;
    for (int i = 0, end; i < n; i = end) {
        Slot s = {.first = i, .lo = parts[i].lo[dim], .hi = parts[i].hi[dim]};
        for (end = i + 1; end < n && parts[end].lo[dim] == s.lo && parts[end].hi[dim] == s.hi;)
            end++;
        s.end = end;
        while (s.layer < n_layers && layer_end[s.layer] > s.lo)
            s.layer++;
        n_layers += s.layer == n_layers;
        layer_end[s.layer] = s.hi;
        vec_push(a->scratch, slots, s);
    }
    return n_layers;
}

static ValueId assemble(const Assembly *a, SlicePart *parts, int n);

/* Zeros before the first and behind the last slot are padding. */
static ValueId layer_value(const Assembly *a, SlicePart *parts, const IncrementalSchedule *slots,
                           int layer, int dim)
{
    VEC(ValueId) in = {0};
    int64_t begin = -1, end = 0;
    for (size_t i = 0; i < slots->len; i++) {
        const Slot *s = &slots->data[i];
        if (s->layer != layer)
            continue;
        if (begin >= 0 && end < s->lo)
            vec_push(a->scratch, &in, zeros(a, dim, s->lo - end));
        Assembly inner = *a;
        inner.type.dim[dim] = s->hi - s->lo;
        inner.origin[dim] = s->lo;
        ValueId v = assemble(&inner, parts + s->first, s->end - s->first);
        vec_push(a->scratch, &in, v);
        begin = begin < 0 ? s->lo : begin;
        end = s->hi;
    }
    int64_t lo[TYPE_MAX_RANK] = {0}, hi[TYPE_MAX_RANK] = {0};
    lo[dim] = begin;
    hi[dim] = a->type.dim[dim] - end;
    return padded(a, joined(a, in.data, (int)in.len, dim), lo, hi);
}

/* The first dim that not all parts fill; -1: all do. */
static int uneven_dim(const Type *t, const SlicePart *parts, int n)
{
    for (int d = 0; d < t->rank; d++)
        for (int i = 0; i < n; i++)
            if (parts[i].hi[d] - parts[i].lo[d] != t->dim[d])
                return d;
    return -1;
}

static ValueId one_part(const Assembly *a, const SlicePart *part)
{
    int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK];
    for (int d = 0; d < a->type.rank; d++) {
        lo[d] = part->lo[d] - a->origin[d];
        hi[d] = a->origin[d] + a->type.dim[d] - part->hi[d];
    }
    return padded(a, part->gradient, lo, hi);
}

static ValueId assemble(const Assembly *a, SlicePart *parts, int n)
{
    if (n == 1)
        return one_part(a, parts);
    ValueId sum = VALUE_NONE;
    int dim = uneven_dim(&a->type, parts, n);
    for (int i = 0; i < n && dim < 0; i++)
        sum = sum_of(a, sum, parts[i].gradient);
    if (dim < 0)
        return sum;
    IncrementalSchedule slots = {0};
    sort_parts(a, parts, n, dim);
    int n_layers = make_slots(a, parts, n, dim, &slots);
    for (int k = 0; k < n_layers; k++)
        sum = sum_of(a, sum, layer_value(a, parts, &slots, k, dim));
    return sum;
}

ValueId slices_gradient(Graph *g, Pool *scratch, const Type *t, SlicePart *parts, int n,
                        const char *name, Loc loc)
{
    Assembly a = {.g = g, .scratch = scratch, .type = *t, .name = name, .loc = loc};
    return assemble(&a, parts, n);
}
