/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Adding nodes: messages for what does not fit, names from labels, parameters, constants. */
#include "frontend/language/elaborate/elaborate.h"

#include "frontend/language/elaborate/builtins.h"
#include "ir/loop.h"

#include <float.h>
#include <math.h>
#include <string.h>

static Loc elab_loc(Elab *l, Span place)
{
    Span span = elab_user_span(l, place);
    Loc loc = {.path = l->path};
    if (span.file)
        diag_line_column(l->diag, span, &loc.line, &loc.column);
    if (span.file > 1) { /* imported: the model's own is the first */
        const char *name = diag_source_name(l->diag, span.file), *slash = strrchr(name, '/');
        loc.file = slash ? slash + 1 : name;
    }
    return loc;
}

const Type *elab_type(const Elab *l, ValueId v)
{
    return value_type(l->g, v);
}

Span elab_value_span(const Elab *l, ValueId v)
{
    NodeId n = graph_value(l->g, v)->def;
    return n < l->node_spans.len ? l->node_spans.data[n] : (Span){0};
}

static void remember_span(Elab *l, Span span)
{
    while (l->node_spans.len < l->g->nodes.len)
        vec_push(l->pool, &l->node_spans, elab_user_span(l, span));
}

static void report_shape(Elab *l, OpKind op, const ValueId *in, int n_in, const ShapeError *err,
                         Span span)
{
    if (!elab_error(l, span, err->code, "%s%s%s", err->message, *l->path ? " " : "",
                    *l->path ? elab_where(l, op) : ""))
        return;
    if (err->operand >= 0 && err->operand < n_in) {
        Span made = elab_value_span(l, in[err->operand]);
        if (made.file && (made.file != span.file || made.begin != span.begin))
            diag_note(l->diag, made, "operand %d, %s, was made here", err->operand + 1,
                      type_text(l->pool, elab_type(l, in[err->operand])));
    }
    if (*err->help)
        diag_help(l->diag, "%s", err->help);
}

static bool room_for_node(Elab *l, Span span)
{
    if (l->g->nodes.len >= ELAB_MAX_NODES)
        elab_exhaust(l, span, "the model is too large: more than 500,000 operations");
    return !l->exhausted;
}

/* The node just added, which nothing uses yet. */
static bool supported(Elab *l, NodeId n, Span span)
{
    ShapeError err = {.operand = -1};
    const Node *node = graph_node(l->g, n);
    if (!l->supports || l->supports(l->g, node, &err))
        return true;
    report_shape(l, node->op, node->in, node->n_in, &err, span);
    return false;
}

/* Numbers of an operation, such as eps, are computed with in f32. */
static bool numbers_fit(Elab *l, OpKind op, const AttrList *attrs, Span span)
{
    for (int i = 0; attrs && i < attrs->n; i++) {
        const Attr *a = &attrs->items[i];
        if (attr_kind(a->key) != ATTR_KIND_FLOAT || !isfinite(a->u.f) ||
            fabs(a->u.f) <= (double)FLT_MAX)
            continue;
        elab_error(l, span, "E105", "%s: %s = %s is too large for f32", op_name(op),
                   attr_name(a->key), number_text(l->pool, a->u.f));
        return false;
    }
    return true;
}

ValueId elab_node(Elab *l, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                  const char *name, Span span)
{
    ShapeError err = {.operand = -1};
    for (int i = 0; i < n_in; i++)
        if (in[i] == VALUE_NONE)
            return VALUE_NONE;
    if (!room_for_node(l, span) || !numbers_fit(l, op, attrs, span))
        return VALUE_NONE;
    NodeId n = graph_try_add(l->g, op, in, n_in, attrs, name, elab_loc(l, span), &err);
    if (n == NODE_NONE) {
        report_shape(l, op, in, n_in, &err, span);
        return VALUE_NONE;
    }
    remember_span(l, span);
    graph_node(l->g, n)->hint = l->hint;
    return supported(l, n, span) ? graph_node(l->g, n)->out[0] : VALUE_NONE;
}

ValueId elab_node1(Elab *l, OpKind op, ValueId in, const AttrList *attrs, const char *name,
                   Span span)
{
    return elab_node(l, op, &in, 1, attrs, name, span);
}

ValueId elab_node2(Elab *l, OpKind op, ValueId a, ValueId b, const AttrList *attrs,
                   const char *name, Span span)
{
    const ValueId in[] = {a, b};
    return elab_node(l, op, in, 2, attrs, name, span);
}

ValueId elab_source(Elab *l, OpKind op, Type type, const AttrList *attrs, const char *name,
                    Span span)
{
    if (!room_for_node(l, span))
        return VALUE_NONE;
    bool empty = false;
    for (int i = 0; i < type.rank; i++)
        empty |= type.dim[i] <= 0;
    if (empty || !type_valid(&type)) {
        elab_error(l, span, "E108", "a tensor of type %s is %s", type_text(l->pool, &type),
                   empty ? "empty" : "too large");
        return VALUE_NONE;
    }
    ValueId v = graph_add_source(l->g, op, type, attrs, name, elab_loc(l, span));
    remember_span(l, span);
    return supported(l, graph_value(l->g, v)->def, span) ? v : VALUE_NONE;
}

/* The integers of an element type; false for floats. */
static bool integer_range(DType dtype, double *low, double *high)
{
    *low = dtype == DTYPE_I32 ? INT32_MIN : dtype == DTYPE_I64 ? -0x1p63 : 0;
    *high = dtype == DTYPE_I32   ? INT32_MAX
            : dtype == DTYPE_I64 ? 0x1p63
            : dtype == DTYPE_U8  ? UINT8_MAX
                                 : 1;
    return !dtype_is_float(dtype);
}

bool elab_number_fits(Elab *l, DType dtype, double value, Span span)
{
    double low, high;
    bool integer = integer_range(dtype, &low, &high), whole = value == trunc(value);
    if (integer ? value >= low && value <= high && whole
                : !isfinite(value) || fabs(value) <= (double)FLT_MAX) {
        if (!integer && value != 0 && (float)value == 0)
            diag_warning(l->diag, span, "W203", "%s is 0 in f32", number_text(l->pool, value));
        return true;
    }
    if (!elab_error(l, span, "E104", "%s does not fit a tensor of %s", number_text(l->pool, value),
                    dtype_name(dtype)))
        return false;
    if (!integer)
        diag_help(l->diag, "f32 ends at 3.4e38; `inf` is infinity");
    else if (isfinite(value) && !whole)
        diag_help(l->diag, "|> to_f32()");
    else
        diag_help(l->diag, "%s holds %.0f to %.0f", dtype_name(dtype), low, high);
    return false;
}

ValueId elab_constant(Elab *l, DType dtype, double value, Span span)
{
    const char *key = pool_printf(l->pool, "%s %a", dtype_name(dtype), value);
    const uint64_t *found = map_find(&l->constants, key);
    if (found)
        return (ValueId)*found;
    AttrList attrs = {.n = 0};
    attrs_float(&attrs, ATTR_value, value);
    ValueId v = elab_source(l, OP_const, type_scalar(dtype), &attrs, NULL, span);
    if (v != VALUE_NONE)
        map_set(&l->constants, key, v);
    return v;
}

const char *elab_label_name(Elab *l, bool labelled)
{
    return labelled && *l->path ? pool_printf(l->pool, "%%%s", l->path) : NULL;
}

static const char *bounds_text(Elab *l, double bound)
{
    const char *text = number_text(l->pool, bound);
    return pool_printf(l->pool, "uniform(-%s,%s)", text, text);
}

/* Fans as PyTorch's kaiming and xavier initializers take them. */
static const char *init_text(Elab *l, const InitSpec *init, int64_t fan_in, int64_t fan_out)
{
    double a = init->a, fan = (double)(init->fan_out ? fan_out : fan_in);
    switch (init->kind) {
    case INIT_ZEROS:
        return "zeros";
    case INIT_ONES:
        return "ones";
    case INIT_NORMAL:
        if (init->b != 0)
            return pool_printf(l->pool, "normal(%s,%s)", number_text(l->pool, a),
                               number_text(l->pool, init->b));
        return pool_printf(l->pool, "normal(%s)", number_text(l->pool, a));
    case INIT_UNIFORM:
        return pool_printf(l->pool, "uniform(%s,%s)", number_text(l->pool, a),
                           number_text(l->pool, init->b));
    case INIT_FAN_IN:
        return bounds_text(l, 1 / sqrt((double)fan_in));
    case INIT_HE:
        a = init->a / sqrt(fan);
        break;
    case INIT_XAVIER:
        a = init->a * sqrt(2.0 / (double)(fan_in + fan_out));
        break;
    }
    if (!init->uniform)
        return pool_printf(l->pool, "normal(%s)", number_text(l->pool, a));
    return bounds_text(l, a * sqrt(3.0));
}

ValueId elab_newest(const Elab *l, ValueId param)
{
    for (size_t i = 0; i < l->moved.len; i += 2)
        if (l->moved.data[i] == param)
            return l->moved.data[i + 1];
    return param;
}

ValueId elab_parameter(Elab *l, OpKind op, const char *name, Type type, const InitSpec *init,
                       int64_t fan_in, int64_t fan_out, Span span)
{
    if (l->loop)
        return loop_outer_parameter(l, op, name, type, init, fan_in, fan_out, span);
    const char *full = pool_printf(l->pool, "$%s%s%s", l->path, *l->path ? "." : "", name);
    ValueId old = graph_find(l->g, full);
    if (old == VALUE_NONE) {
        AttrList attrs = {.n = 0};
        attrs_string(&attrs, ATTR_init, init_text(l, init, fan_in, fan_out));
        return elab_source(l, op, type, &attrs, full, span);
    }
    if (!l->invocation) {
        if (elab_error(l, span, "E202", "parameter `%s` is declared twice", full + 1))
            diag_note(l->diag, elab_value_span(l, old), "first declared here");
        return VALUE_NONE;
    }
    if (type_equal(elab_type(l, old), &type))
        return elab_newest(l, old);
    if (elab_error(l, span, "E101", "shared parameter `%s` is %s here but %s before", full + 1,
                   type_text(l->pool, &type), type_text(l->pool, elab_type(l, old))))
        diag_note(l->diag, elab_value_span(l, old), "first used here");
    return VALUE_NONE;
}

ValueId elab_find(Elab *l, const char *full, Span span)
{
    return l->loop ? loop_outer_find(l, full, span) : elab_newest(l, graph_find(l->g, full));
}

NodeId elab_loop(Elab *l, const ValueId *in, int n_in, const LoopShape *shape, Graph *body,
                 const char *name, Span span)
{
    ShapeError err = {.operand = -1};
    if (!room_for_node(l, span))
        return NODE_NONE;
    NodeId n = graph_try_add_loop(l->g, in, n_in, shape, body, name, elab_loc(l, span), &err);
    if (n == NODE_NONE) {
        report_shape(l, OP_loop, in, n_in, &err, span);
        return NODE_NONE;
    }
    remember_span(l, span);
    graph_node(l->g, n)->hint = l->hint;
    return supported(l, n, span) ? n : NODE_NONE;
}

ValueId elab_rng(Elab *l, Span span)
{
    if (l->loop)
        return loop_rng(l, span);
    if (l->rng == VALUE_NONE) {
        AttrList attrs = {.n = 0};
        attrs_string(&attrs, ATTR_role, "rng");
        const int64_t dims[] = {4};
        l->rng = elab_source(l, OP_input, type_make(DTYPE_I32, 1, dims), &attrs, "%rng", span);
    }
    return l->rng;
}

ValueId elab_reshape(Elab *l, ValueId x, const int64_t *dims, int rank, const char *name, Span span)
{
    if (x == VALUE_NONE)
        return x;
    Type to = type_make(elab_type(l, x)->dtype, rank, dims);
    if (type_same_shape(elab_type(l, x), &to))
        return x;
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_shape, dims, rank);
    return elab_node1(l, OP_reshape, x, &attrs, name, span);
}

ValueId elab_permutation(Elab *l, ValueId x, const int64_t *perm, int rank, const char *name,
                         Span span)
{
    bool identity = true;
    for (int i = 0; i < rank; i++)
        identity &= perm[i] == i;
    if (x == VALUE_NONE || identity)
        return x;
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_perm, perm, rank);
    return elab_node1(l, OP_transpose, x, &attrs, name, span);
}
