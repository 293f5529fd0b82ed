/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise functions, reductions, losses. */
#include "frontend/language/elaborate/builtins_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- element-wise, one operand ---- */

static Val unary(BuiltinCall *c, OpKind op, double (*number)(double))
{
    const Val x = c->arg[0];
    if (x.kind == VAL_TENSOR)
        return call_node(c, op, &x.tensor, 1, NULL);
    double r = number(val_number(x));
    if (isfinite(r))
        return val_float(r);
    elab_error(c->l, c->arg_span[0], "E209", "%s(%s) is not a number", c->fn->name,
               val_text(c->l->pool, x));
    return val_poison();
}

Val builtin_unary(BuiltinCall *c)
{
    return unary(c, c->fn->op, c->fn->number);
}

/* An int stays an int. */
Val builtin_abs(BuiltinCall *c)
{
    if (c->arg[0].kind == VAL_INT && c->arg[0].i != INT64_MIN)
        return val_int(c->arg[0].i < 0 ? -c->arg[0].i : c->arg[0].i);
    return unary(c, OP_abs, fabs);
}

Val builtin_gelu(BuiltinCall *c)
{
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_approx, call_word_is(c, 1, "tanh"));
    ValueId x = arg_tensor(c, 0);
    return call_node(c, OP_gelu, &x, 1, &attrs);
}

static Val with_number(BuiltinCall *c, OpKind op, AttrKey key)
{
    AttrList attrs = {.n = 0};
    attrs_float(&attrs, key, arg_float(c, 1));
    ValueId x = arg_tensor(c, 0);
    return call_node(c, op, &x, 1, &attrs);
}

Val builtin_leaky_relu(BuiltinCall *c)
{
    return with_number(c, OP_leaky_relu, ATTR_alpha);
}

Val builtin_elu(BuiltinCall *c)
{
    return with_number(c, OP_elu, ATTR_alpha);
}

Val builtin_softplus(BuiltinCall *c)
{
    return with_number(c, OP_softplus, ATTR_beta);
}

Val builtin_relu6(BuiltinCall *c)
{
    AttrList attrs = {.n = 0};
    attrs_float(&attrs, ATTR_min, 0);
    attrs_float(&attrs, ATTR_max, 6);
    attrs_int(&attrs, ATTR_open, 1);
    ValueId x = arg_tensor(c, 0);
    return call_node(c, OP_clamp, &x, 1, &attrs);
}

/* ---- conversion ---- */

static ValueId cast_to(BuiltinCall *c, ValueId x, DType dtype)
{
    if (x == VALUE_NONE || elab_type(c->l, x)->dtype == dtype)
        return x;
    AttrList attrs = {.n = 0};
    attrs_string(&attrs, ATTR_dtype, dtype_name(dtype));
    return elab_node1(c->l, OP_cast, x, &attrs, NULL, c->span);
}

Val builtin_cast(BuiltinCall *c)
{
    DType dtype = DTYPE_F32;
    dtype_from_name(c->arg[1].s, &dtype);
    return val_tensor(cast_to(c, arg_tensor(c, 0), dtype));
}

Val builtin_to_f32(BuiltinCall *c)
{
    Val x = val_tensor(cast_to(c, arg_tensor(c, 0), DTYPE_F32));
    if (arg_float(c, 1) == 1.0)
        return x;
    return elab_elementwise(c->l, OP_mul, x, c->arg[1], c->span, c->arg_span[1], c->span);
}

/* ---- element-wise, two and three operands ---- */

static Val binary(BuiltinCall *c, BinaryOp op)
{
    return eval_binary(c->l, op, c->arg[0], c->arg[1], c->arg_span[0], c->arg_span[1], c->span);
}

Val builtin_matmul(BuiltinCall *c)
{
    return binary(c, BINARY_MATMUL);
}

Val builtin_pow(BuiltinCall *c)
{
    return binary(c, BINARY_POW);
}

/* Of a and an argument. */
static Val extreme(BuiltinCall *c, OpKind op, Val a, int arg)
{
    const Val b = c->arg[arg];
    if (a.kind == VAL_TENSOR || b.kind == VAL_TENSOR)
        return elab_elementwise(c->l, op, a, b, c->arg_span[0], c->arg_span[arg], c->span);
    bool first = (val_number(a) >= val_number(b)) == (op == OP_maximum);
    return first ? a : b;
}

Val builtin_maximum(BuiltinCall *c)
{
    return extreme(c, OP_maximum, c->arg[0], 1);
}

Val builtin_minimum(BuiltinCall *c)
{
    return extreme(c, OP_minimum, c->arg[0], 1);
}

static Val clamp_floats(BuiltinCall *c)
{
    AttrList attrs = {.n = 0};
    if (arg_given(c, 1))
        attrs_float(&attrs, ATTR_min, arg_float(c, 1));
    if (arg_given(c, 2))
        attrs_float(&attrs, ATTR_max, arg_float(c, 2));
    ValueId x = arg_tensor(c, 0);
    return call_node(c, OP_clamp, &x, 1, &attrs);
}

/* Of integers and numbers: the larger of x and lo, then the smaller of that and hi. */
Val builtin_clamp(BuiltinCall *c)
{
    Val x = c->arg[0];
    if (!arg_given(c, 1) && !arg_given(c, 2)) {
        elab_error(c->l, c->span, "E105", "clamp needs lo, hi or both");
        return val_poison();
    }
    if (x.kind == VAL_TENSOR && dtype_is_float(elab_type(c->l, x.tensor)->dtype))
        return clamp_floats(c);
    for (int i = 1; i < 3 && x.kind != VAL_POISON; i++)
        if (arg_given(c, i))
            x = extreme(c, i == 1 ? OP_maximum : OP_minimum, x, i);
    return x;
}

Val builtin_select(BuiltinCall *c)
{
    Elab *l = c->l;
    DType dtype = DTYPE_F32;
    for (int i = 1; i < 3; i++)
        if (c->arg[i].kind == VAL_TENSOR)
            dtype = elab_type(l, c->arg[i].tensor)->dtype;
    ValueId in[3] = {arg_tensor(c, 0)};
    for (int i = 1; i < 3; i++)
        if (!elab_operand(l, c->arg[i], c->arg_span[i], dtype, &in[i]))
            return val_poison();
    return call_node(c, OP_select, in, 3, NULL);
}

/* ---- along one axis ---- */

static Val along_axis(BuiltinCall *c, OpKind op, bool keepdims)
{
    int axis;
    if (!call_axis(c, 1, elab_type(c->l, arg_tensor(c, 0))->rank, &axis))
        return val_poison();
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_axis, axis);
    attrs_int(&attrs, ATTR_keepdims, keepdims);
    ValueId x = arg_tensor(c, 0);
    return call_node(c, op, &x, 1, &attrs);
}

Val builtin_softmax(BuiltinCall *c)
{
    return along_axis(c, OP_softmax, false);
}

Val builtin_log_softmax(BuiltinCall *c)
{
    return along_axis(c, OP_log_softmax, false);
}

Val builtin_argmax(BuiltinCall *c)
{
    return along_axis(c, OP_argmax, arg_bool(c, 2));
}

/* ---- reductions ---- */

/* Ascending axes without repetition from argument `arg`; all when it is absent.  -1 after a
 * message. */
static int reduction_axes(BuiltinCall *c, int arg, int rank, int64_t axes[TYPE_MAX_RANK])
{
    bool used[TYPE_MAX_RANK] = {false};
    int64_t given[TYPE_MAX_RANK];
    int n = arg_given(c, arg) ? call_ints(c, arg, given, TYPE_MAX_RANK) : 0, count = 0;
    for (int i = 0; i < n; i++) {
        int64_t a = given[i] < 0 ? given[i] + rank : given[i];
        if (a < 0 || a >= rank || used[a]) {
            elab_error(c->l, c->arg_span[arg], "E105",
                       a >= 0 && a < rank ? "axis %" PRId64 " is given twice"
                                          : "axis %" PRId64 " is outside the tensor",
                       given[i]);
            return -1;
        }
        used[a] = true;
    }
    for (int i = 0; i < rank && n >= 0; i++)
        if (used[i] || !arg_given(c, arg))
            axes[count++] = i;
    return n < 0 ? -1 : count;
}

static ValueId reduce(BuiltinCall *c, OpKind op, ValueId x, int axis_arg, bool keepdims, bool named)
{
    int64_t axes[TYPE_MAX_RANK];
    int n = reduction_axes(c, axis_arg, elab_type(c->l, x)->rank, axes);
    if (n < 0)
        return VALUE_NONE;
    if (n == 0)
        return x;
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_axes, axes, n);
    attrs_int(&attrs, ATTR_keepdims, keepdims);
    return elab_node1(c->l, op, x, &attrs, elab_label_name(c->l, named && c->labelled), c->span);
}

Val builtin_mean(BuiltinCall *c)
{
    return val_tensor(reduce(c, OP_mean, arg_tensor(c, 0), 1, arg_bool(c, 2), true));
}

Val builtin_sum(BuiltinCall *c)
{
    if (c->arg[0].kind == VAL_LIST)
        return value_sum(c);
    if (!want_tensor(c->l, c->arg[0], c->arg_span[0], "what is summed"))
        return val_poison();
    ValueId x = arg_tensor(c, 0);
    if (elab_type(c->l, x)->dtype == DTYPE_U8)
        x = cast_to(c, x, DTYPE_I32);
    return x == VALUE_NONE ? val_poison()
                           : val_tensor(reduce(c, OP_sum, x, 1, arg_bool(c, 2), true));
}

Val builtin_max(BuiltinCall *c)
{
    if (c->arg[0].kind != VAL_TENSOR || c->n_rest)
        return value_extreme(c, true);
    return val_tensor(reduce(c, OP_reduce_max, arg_tensor(c, 0), 2, arg_bool(c, 3), true));
}

/* Products and running sums of small integers are i32. */
static ValueId summable(BuiltinCall *c)
{
    ValueId x = arg_tensor(c, 0);
    DType dtype = elab_type(c->l, x)->dtype;
    return dtype == DTYPE_U8 || dtype == DTYPE_BOOL ? cast_to(c, x, DTYPE_I32) : x;
}

static Val cumulated(BuiltinCall *c, OpKind op, bool reverse, bool exclusive)
{
    int axis;
    if (!call_axis(c, 1, elab_type(c->l, arg_tensor(c, 0))->rank, &axis))
        return val_poison();
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_axis, axis);
    if (reverse)
        attrs_int(&attrs, ATTR_reverse, 1);
    if (exclusive)
        attrs_int(&attrs, ATTR_exclusive, 1);
    ValueId x = summable(c);
    return x == VALUE_NONE ? val_poison() : call_node(c, op, &x, 1, &attrs);
}

Val builtin_cumsum(BuiltinCall *c)
{
    return cumulated(c, OP_cumsum, arg_bool(c, 2), arg_bool(c, 3));
}

Val builtin_cumprod(BuiltinCall *c)
{
    return cumulated(c, OP_cumprod, false, false);
}

/* Along one axis after the other, the last first, so that the others keep their numbers. */
Val builtin_prod(BuiltinCall *c)
{
    int64_t axes[TYPE_MAX_RANK];
    ValueId x = arg_tensor(c, 0);
    const int rank = elab_type(c->l, x)->rank;
    int n = reduction_axes(c, 1, rank, axes);
    if (n < 0)
        return val_poison();
    x = summable(c);
    if (n == rank && n > 1 && !arg_bool(c, 2) && x != VALUE_NONE) {
        const int64_t all = type_elements(elab_type(c->l, x));
        x = elab_reshape(c->l, x, &all, 1, NULL, c->span);
        axes[0] = 0;
        n = 1;
    }
    for (int i = n - 1; i >= 0 && x != VALUE_NONE; i--) {
        AttrList attrs = {.n = 0};
        attrs_int(&attrs, ATTR_axis, axes[i]);
        attrs_int(&attrs, ATTR_keepdims, arg_bool(c, 2));
        const char *name = i == 0 ? elab_label_name(c->l, c->labelled) : NULL;
        x = elab_node1(c->l, OP_prod, x, &attrs, name, c->span);
    }
    return x == VALUE_NONE ? val_poison() : val_tensor(x);
}

/* What turns the order around and is its own inverse: -x of floats; of integers -1 - x and 255 - x,
 * which do not leave their range. */
static ValueId mirrored(BuiltinCall *c, ValueId x, const char *name)
{
    DType dtype = elab_type(c->l, x)->dtype;
    if (dtype_is_float(dtype))
        return elab_node1(c->l, OP_neg, x, NULL, name, c->span);
    ValueId top = elab_constant(c->l, dtype, dtype == DTYPE_U8 ? 255 : -1, c->span);
    return elab_node2(c->l, OP_sub, top, x, NULL, name, c->span);
}

/* min x = -max(-x) */
Val builtin_min(BuiltinCall *c)
{
    if (c->arg[0].kind != VAL_TENSOR || c->n_rest)
        return value_extreme(c, false);
    if (elab_type(c->l, arg_tensor(c, 0))->dtype == DTYPE_BOOL)
        return val_tensor(reduce(c, OP_reduce_max, arg_tensor(c, 0), 2, false, false));
    ValueId x = mirrored(c, arg_tensor(c, 0), NULL);
    if (x != VALUE_NONE)
        x = reduce(c, OP_reduce_max, x, 2, arg_bool(c, 3), false);
    return x == VALUE_NONE ? val_poison()
                           : val_tensor(mirrored(c, x, elab_label_name(c->l, c->labelled)));
}

/* ---- losses ---- */

/* The class axis as PyTorch has it: [N,C,...] with labels [N,...]; but the last axis when labels
 * have the shape of logits without it, so that language models need no transpose. */
static bool class_axis(BuiltinCall *c, int *axis)
{
    Type logits = *elab_type(c->l, arg_tensor(c, 0)), labels = *elab_type(c->l, arg_tensor(c, 1)),
         first = logits;
    if (logits.rank < 2) {
        elab_error(c->l, c->span, "E103", "%s needs logits [N,C], got %s", c->fn->name,
                   type_shape_text(c->l->pool, &logits));
        return false;
    }
    *axis = logits.rank - 1;
    first.rank--;
    if (type_same_shape(&first, &labels))
        return true;
    for (int i = 1; i < first.rank; i++)
        first.dim[i] = logits.dim[i + 1];
    *axis = 1;
    if (type_same_shape(&first, &labels))
        return true;
    if (elab_error(c->l, c->span, "E101", "%s: labels %s do not fit logits %s", c->fn->name,
                   type_shape_text(c->l->pool, &labels), type_shape_text(c->l->pool, &logits)))
        diag_note(c->l->diag, elab_value_span(c->l, arg_tensor(c, 0)), "logits made here");
    return false;
}

static Val against_labels(BuiltinCall *c, OpKind op, AttrList *attrs, int ignore_arg,
                          ValueId weight)
{
    int axis;
    const int64_t ignore = arg_int(c, ignore_arg);
    if (!class_axis(c, &axis) ||
        !elab_number_fits(c->l, DTYPE_I32, (double)ignore, c->arg_span[ignore_arg]))
        return val_poison();
    attrs_int(attrs, ATTR_axis, axis);
    attrs_int(attrs, ATTR_ignore_index, arg_int(c, ignore_arg));
    const ValueId in[] = {arg_tensor(c, 0), arg_tensor(c, 1), weight};
    return call_node(c, op, in, weight == VALUE_NONE ? 2 : 3, attrs);
}

static bool no_negative(BuiltinCall *c, int arg)
{
    const Val list = c->arg[arg];
    for (int i = 0; i < list.list.len; i++)
        if (!(val_number(list.list.data[i]) >= 0)) {
            elab_error(c->l, c->arg_span[arg], "E105",
                       "a class weight is not negative, got %g for class %d",
                       val_number(list.list.data[i]), i);
            return false;
        }
    return true;
}

/* Class weights, a tensor or a list of numbers; false after a message. */
static bool class_weights(BuiltinCall *c, int arg, ValueId *weight)
{
    const Val v = c->arg[arg];
    *weight = VALUE_NONE;
    if (v.kind == VAL_NONE)
        return true;
    if (v.kind == VAL_LIST)
        *weight = call_literal(c, arg);
    else if (want_tensor(c->l, v, c->arg_span[arg], "weight"))
        *weight = v.tensor;
    return *weight != VALUE_NONE && (v.kind != VAL_LIST || no_negative(c, arg));
}

Val builtin_cross_entropy(BuiltinCall *c)
{
    double smoothing = arg_float(c, 2);
    if (!(smoothing >= 0 && smoothing <= 1)) {
        elab_error(c->l, c->arg_span[2], "E105", "label_smoothing lies between 0 and 1");
        return val_poison();
    }
    AttrList attrs = {.n = 0};
    if (smoothing > 0)
        attrs_float(&attrs, ATTR_smoothing, smoothing);
    if (!call_word_is(c, 5, "mean"))
        attrs_string(&attrs, ATTR_reduction, c->arg[5].s);
    ValueId weight;
    if (!class_weights(c, 4, &weight))
        return val_poison();
    return against_labels(c, OP_cross_entropy, &attrs, 3, weight);
}

Val builtin_accuracy(BuiltinCall *c)
{
    AttrList attrs = {.n = 0};
    return against_labels(c, OP_accuracy, &attrs, 2, VALUE_NONE);
}

/* A prediction [N,1] and a target [N] broadcast to [N,N] pairs: allowed, as in PyTorch, and hardly
 * ever meant. */
static void warn_of_pairs(BuiltinCall *c)
{
    if (c->arg[0].kind != VAL_TENSOR || c->arg[1].kind != VAL_TENSOR)
        return;
    const Type *a = elab_type(c->l, c->arg[0].tensor), *b = elab_type(c->l, c->arg[1].tensor);
    if (a->rank == 0 || b->rank == 0 || type_same_shape(a, b))
        return;
    diag_warning(c->l->diag, c->span, "W202", "mse of %s and %s, which broadcast",
                 type_shape_text(c->l->pool, a), type_shape_text(c->l->pool, b));
    diag_help(c->l->diag, "reshape one to the shape of the other");
}

Val builtin_mse(BuiltinCall *c)
{
    Val d = elab_elementwise(c->l, OP_sub, c->arg[0], c->arg[1], c->arg_span[0], c->arg_span[1],
                             c->span);
    if (d.kind == VAL_TENSOR && !dtype_is_float(elab_type(c->l, d.tensor)->dtype)) {
        if (elab_error(c->l, c->span, "E104", "mse needs f32, got %s",
                       type_text(c->l->pool, elab_type(c->l, d.tensor))))
            diag_help(c->l->diag, "|> to_f32()");
        return val_poison();
    }
    if (d.kind == VAL_TENSOR)
        warn_of_pairs(c);
    Val square = elab_elementwise(c->l, OP_mul, d, d, c->span, c->span, c->span);
    if (square.kind != VAL_TENSOR)
        return val_poison();
    ValueId x = square.tensor;
    if (call_word_is(c, 2, "none"))
        return square;
    return call_node(c, call_word_is(c, 2, "sum") ? OP_sum : OP_mean, &x, 1, NULL);
}
