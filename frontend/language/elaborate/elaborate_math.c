/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Operators on compile-time values and on tensors. */
#include "frontend/language/elaborate/train_rate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- compile-time numbers ---- */

static Val overflow(Elab *l, Span span)
{
    elab_error(l, span, "E209", "this integer is too large");
    return val_poison();
}

static Val divide_by_zero(Elab *l, Span span)
{
    elab_error(l, span, "E209", "division by zero");
    return val_poison();
}

static Val int_power(Elab *l, int64_t base, int64_t exponent, Span span)
{
    int64_t r = 1;
    if (exponent < 0)
        return base ? val_float(pow((double)base, (double)exponent)) : divide_by_zero(l, span);
    if (base == 0 || base == 1 || base == -1)
        return val_int(base == -1 && exponent % 2 == 0 ? 1 : exponent ? base : 1);
    while (exponent-- > 0)
        if (__builtin_mul_overflow(r, base, &r))
            return overflow(l, span);
    return val_int(r);
}

/* Floor division and the modulo that goes with it, as Python has them. */
static Val int_divide(Elab *l, BinaryOp op, int64_t a, int64_t b, Span span)
{
    if (b == 0)
        return divide_by_zero(l, span);
    if (b == -1)
        return op == BINARY_MOD ? val_int(0) : a == INT64_MIN ? overflow(l, span) : val_int(-a);
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    return val_int(op == BINARY_MOD ? r : q);
}

static Val int_binary(Elab *l, BinaryOp op, int64_t a, int64_t b, Span span)
{
    int64_t r = 0;
    if (op == BINARY_DIV)
        return b ? val_float((double)a / (double)b) : divide_by_zero(l, span);
    if (op == BINARY_IDIV || op == BINARY_MOD)
        return int_divide(l, op, a, b, span);
    if (op == BINARY_POW)
        return int_power(l, a, b, span);
    bool over = op == BINARY_ADD   ? __builtin_add_overflow(a, b, &r)
                : op == BINARY_SUB ? __builtin_sub_overflow(a, b, &r)
                                   : __builtin_mul_overflow(a, b, &r);
    return over ? overflow(l, span) : val_int(r);
}

/* Infinity comes from `inf` alone, and NaN from nothing. */
static Val float_result(Elab *l, double a, double b, double r, Span span)
{
    if (isnan(r) ? !isnan(a) && !isnan(b) : isinf(r) && isfinite(a) && isfinite(b)) {
        elab_error(l, span, "E209", isnan(r) ? "this is not a number" : "this number is too large");
        return val_poison();
    }
    return val_float(r);
}

static Val float_binary(Elab *l, BinaryOp op, double a, double b, Span span)
{
    bool divides = op == BINARY_DIV || op == BINARY_IDIV || op == BINARY_MOD;
    if (divides && b == 0)
        return divide_by_zero(l, span);
    double r = op == BINARY_ADD    ? a + b
               : op == BINARY_SUB  ? a - b
               : op == BINARY_MUL  ? a * b
               : op == BINARY_DIV  ? a / b
               : op == BINARY_IDIV ? floor(a / b)
               : op == BINARY_MOD  ? a - b * floor(a / b)
                                   : pow(a, b);
    return float_result(l, a, b, r, span);
}

/* Of two numbers; those of two ints are not rounded. */
static Val compare(BinaryOp op, Val a, Val b)
{
    bool ints = a.kind == VAL_INT && b.kind == VAL_INT, equal = val_equal(a, b);
    bool less = ints ? a.i < b.i : val_number(a) < val_number(b);
    bool more = ints ? a.i > b.i : val_number(a) > val_number(b);
    return val_bool(op == BINARY_LT   ? less
                    : op == BINARY_GT ? more
                    : op == BINARY_LE ? less || equal
                                      : more || equal);
}

/* ---- lists and strings ---- */

static Val list_concat(Elab *l, ValList a, ValList b, Span span)
{
    int64_t len = (int64_t)a.len + b.len;
    l->n_steps += len;
    if (len > ELAB_MAX_RANGE) {
        elab_exhaust(l, span, "this list grows too long");
        return val_poison();
    }
    Val *items = POOL_ARRAY(l->pool, (size_t)len + 1, Val);
    if (a.len)
        memcpy(items, a.data, (size_t)a.len * sizeof *items);
    if (b.len)
        memcpy(items + a.len, b.data, (size_t)b.len * sizeof *items);
    return val_list(items, (int)len);
}

static Val string_concat(Elab *l, const char *a, const char *b, Span span)
{
    if (strlen(a) + strlen(b) > ELAB_MAX_TEXT) {
        elab_exhaust(l, span, "this string grows too long");
        return val_poison();
    }
    return val_string(pool_printf(l->pool, "%s%s", a, b));
}

/* ---- tensors ---- */

static const char *dim_name(Elab *l, const Type *t, int at)
{
    static const char *const image[] = {"N", "C", "H", "W"};
    return t->rank == 4 ? image[at] : pool_printf(l->pool, "%d", at);
}

/* The dim that does not broadcast; its index in a and b. */
static bool broadcast_fault(const Type *a, const Type *b, int *at_a, int *at_b)
{
    for (int i = 1; i <= a->rank && i <= b->rank; i++) {
        *at_a = a->rank - i;
        *at_b = b->rank - i;
        int64_t da = a->dim[*at_a], db = b->dim[*at_b];
        if (da != db && da != 1 && db != 1)
            return true;
    }
    return false;
}

static const char *line_of(Elab *l, Span span)
{
    uint32_t line = 0, column = 0;
    if (!span.file)
        return "";
    diag_line_column(l->diag, span, &line, &column);
    const char *name = diag_source_name(l->diag, span.file), *slash = strrchr(name, '/');
    return pool_printf(l->pool, " at %s:%u", slash ? slash + 1 : name, line);
}

/* E101: dim C is 64 here but 256 at resnet.scrimp:18 (in layer1.0, add) */
static void report_broadcast(Elab *l, OpKind op, ValueId a, ValueId b, Span span)
{
    const Type *ta = elab_type(l, a), *tb = elab_type(l, b);
    int at_a = 0, at_b = 0;
    Span made_a = elab_value_span(l, a), made_b = elab_value_span(l, b);
    if (!broadcast_fault(ta, tb, &at_a, &at_b))
        return;
    const char *dim = dim_name(l, ta, at_a);
    if (!elab_error(l, span, "E101", "dim %s is %" PRId64 " here but %" PRId64 "%s %s", dim,
                    ta->dim[at_a], tb->dim[at_b], line_of(l, made_b), elab_where(l, op)))
        return;
    diag_note(l->diag, made_a, "%s made here", type_text(l->pool, ta));
    diag_note(l->diag, made_b, "%s made here", type_text(l->pool, tb));
    if (ta->rank == 4 && tb->rank == 4 && at_a == 1)
        diag_help(l->diag, "add a `downsample`: seq { conv(%" PRId64 ", 1, bias = false); bn() }",
                  ta->dim[1] > tb->dim[1] ? ta->dim[1] : tb->dim[1]);
    else if (ta->rank == 4 && tb->rank == 4 && at_a > 1)
        diag_help(l->diag, "check `stride` and `pad` on the two paths");
    else
        diag_help(l->diag, "sizes must be equal, or one of them 1");
}

bool elab_operand(Elab *l, Val v, Span span, DType dtype, ValueId *out)
{
    *out = VALUE_NONE;
    if (v.kind == VAL_TENSOR)
        *out = v.tensor;
    else if (v.kind == VAL_BOOL && dtype == DTYPE_BOOL)
        *out = elab_constant(l, DTYPE_BOOL, v.b, span);
    else if (!val_is_number(v))
        return want_tensor(l, v, span, "an operand");
    else if (v.kind == VAL_FLOAT && !dtype_is_float(dtype)) {
        if (elab_error(l, span, "E104", "%s does not fit a tensor of %s", number_text(l->pool, v.f),
                       dtype_name(dtype)))
            diag_help(l->diag, "|> to_f32()");
    } else if (elab_number_fits(l, dtype, val_number(v), span))
        *out = elab_constant(l, dtype, val_number(v), span);
    return *out != VALUE_NONE;
}

Val elab_elementwise(Elab *l, OpKind op, Val a, Val b, Span a_span, Span b_span, Span span)
{
    ValueId in[2];
    const Type *type = a.kind == VAL_TENSOR   ? elab_type(l, a.tensor)
                       : b.kind == VAL_TENSOR ? elab_type(l, b.tensor)
                                              : NULL;
    if (!type || a.kind == VAL_POISON || b.kind == VAL_POISON) {
        if (!type && want_tensor(l, a, a_span, "an operand"))
            want_tensor(l, b, b_span, "an operand");
        return val_poison();
    }
    DType dtype = type->dtype; /* constants grow the graph and would move the type */
    if (!elab_operand(l, a, a_span, dtype, &in[0]) || !elab_operand(l, b, b_span, dtype, &in[1]))
        return val_poison();
    Type joint;
    if (!type_broadcast(elab_type(l, in[0]), elab_type(l, in[1]), &joint)) {
        report_broadcast(l, op, in[0], in[1], span);
        return val_poison();
    }
    return val_tensor(elab_node(l, op, in, 2, NULL, NULL, span));
}

/* x ** 2 and roots have cheaper forms than pow. */
static Val tensor_power(Elab *l, Val a, Val b, Span a_span, Span b_span, Span span)
{
    if (a.kind == VAL_TENSOR && val_is_number(b)) {
        double e = val_number(b);
        if (e == 1.0)
            return a;
        if (e == 2.0)
            return elab_elementwise(l, OP_mul, a, a, a_span, a_span, span);
        if (e == 0.5)
            return val_tensor(elab_node1(l, OP_sqrt, a.tensor, NULL, NULL, span));
        if (e == -0.5)
            return val_tensor(elab_node1(l, OP_rsqrt, a.tensor, NULL, NULL, span));
    }
    return elab_elementwise(l, OP_pow, a, b, a_span, b_span, span);
}

/* On tensors of bool: a and b = a ? b : a;  a or b = a ? a : b. */
static Val tensor_logic(Elab *l, BinaryOp op, Val a, Val b, Span a_span, Span b_span, Span span)
{
    if (!want_tensor(l, a, a_span, "an operand") || !want_tensor(l, b, b_span, "an operand"))
        return val_poison();
    const ValueId in[] = {a.tensor, op == BINARY_AND ? b.tensor : a.tensor,
                          op == BINARY_AND ? a.tensor : b.tensor};
    return val_tensor(elab_node(l, OP_select, in, 3, NULL, NULL, span));
}

static const OpKind tensor_op[] = {
    [BINARY_ADD] = OP_add, [BINARY_SUB] = OP_sub, [BINARY_MUL] = OP_mul, [BINARY_DIV] = OP_div,
    [BINARY_EQ] = OP_eq,   [BINARY_NE] = OP_ne,   [BINARY_LT] = OP_lt,   [BINARY_GT] = OP_gt,
    [BINARY_LE] = OP_le,   [BINARY_GE] = OP_ge,
};

/* A vector as a matrix of one row or column; rank 0 is an error. */
static ValueId as_matrix(Elab *l, ValueId v, bool row, Span span)
{
    const Type *t = elab_type(l, v);
    if (t->rank == 0 && elab_error(l, span, "E103", "a matrix product of a single number"))
        diag_help(l->diag, "`*` multiplies by a number");
    if (t->rank != 1)
        return t->rank ? v : VALUE_NONE;
    const int64_t dims[2] = {row ? 1 : t->dim[0], row ? t->dim[0] : 1};
    return elab_reshape(l, v, dims, 2, NULL, span);
}

/* As in NumPy: a vector on the left is a row, on the right a column, and its axis of size 1 does
 * not stay. */
static Val tensor_product(Elab *l, Val a, Val b, Span a_span, Span b_span, Span span)
{
    if (!want_tensor(l, a, a_span, "an operand") || !want_tensor(l, b, b_span, "an operand"))
        return val_poison();
    bool row = elab_type(l, a.tensor)->rank == 1, column = elab_type(l, b.tensor)->rank == 1;
    ValueId left = as_matrix(l, a.tensor, true, a_span);
    ValueId right = as_matrix(l, b.tensor, false, b_span);
    if (left == VALUE_NONE || right == VALUE_NONE)
        return val_poison();
    ValueId product = elab_node2(l, OP_matmul, left, right, NULL, NULL, span);
    if (product == VALUE_NONE || !(row || column))
        return val_tensor(product);
    const Type *t = elab_type(l, product);
    int64_t dims[TYPE_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < t->rank; i++)
        if (!(row && i == t->rank - 2) && !(column && i == t->rank - 1))
            dims[rank++] = t->dim[i];
    return val_tensor(elab_reshape(l, product, dims, rank, NULL, span));
}

static Val tensor_binary(Elab *l, BinaryOp op, Val a, Val b, Span a_span, Span b_span, Span span)
{
    if (op == BINARY_MATMUL)
        return tensor_product(l, a, b, a_span, b_span, span);
    if (op == BINARY_POW)
        return tensor_power(l, a, b, a_span, b_span, span);
    if (op == BINARY_AND || op == BINARY_OR)
        return tensor_logic(l, op, a, b, a_span, b_span, span);
    if (op == BINARY_CONCAT) {
        if (elab_error(l, span, "E205", "`++` joins lists, not tensors"))
            diag_help(l->diag, "concat([a, b], axis = 1)");
        return val_poison();
    }
    if (op == BINARY_IDIV || op == BINARY_MOD) {
        elab_error(l, span, "E205", "`%s` is for compile-time numbers, not for tensors",
                   ast_binary_name(op));
        return val_poison();
    }
    return elab_elementwise(l, tensor_op[op], a, b, a_span, b_span, span);
}

/* ---- dispatch ---- */

static Val mismatch(Elab *l, BinaryOp op, Val a, Val b, Span a_span, Span b_span, Span span)
{
    if (val_is_callable(a))
        want_tensor(l, a, a_span, "an operand");
    else if (val_is_callable(b))
        want_tensor(l, b, b_span, "an operand");
    else
        elab_error(l, span, "E205", "`%s` does not go with %s and %s", ast_binary_name(op),
                   val_kind_name(a.kind), val_kind_name(b.kind));
    return val_poison();
}

static bool is_equality(BinaryOp op)
{
    return op == BINARY_EQ || op == BINARY_NE;
}

static bool is_order(BinaryOp op)
{
    return op == BINARY_LT || op == BINARY_GT || op == BINARY_LE || op == BINARY_GE;
}

static bool is_arithmetic(BinaryOp op)
{
    return op != BINARY_AND && op != BINARY_OR && op != BINARY_MATMUL && op != BINARY_CONCAT &&
           !is_equality(op) && !is_order(op);
}

Val eval_binary(Elab *l, BinaryOp op, Val a, Val b, Span a_span, Span b_span, Span span)
{
    if (a.kind == VAL_POISON || b.kind == VAL_POISON)
        return val_poison();
    if ((a.kind == VAL_SCHEDULE || b.kind == VAL_SCHEDULE) && !is_equality(op))
        return rate_binary(l, op, a, b, span);
    bool against_none = is_equality(op) && (a.kind == VAL_NONE || b.kind == VAL_NONE);
    if (!against_none && (a.kind == VAL_TENSOR || b.kind == VAL_TENSOR))
        return tensor_binary(l, op, a, b, a_span, b_span, span);
    if (is_equality(op))
        return val_bool(val_equal(a, b) == (op == BINARY_EQ));
    if (a.kind == VAL_BOOL && b.kind == VAL_BOOL && (op == BINARY_AND || op == BINARY_OR))
        return val_bool(op == BINARY_AND ? a.b && b.b : a.b || b.b);
    if (a.kind == VAL_LIST && b.kind == VAL_LIST && op == BINARY_CONCAT)
        return list_concat(l, a.list, b.list, span);
    if (a.kind == VAL_STRING && b.kind == VAL_STRING && op == BINARY_CONCAT)
        return string_concat(l, a.s, b.s, span);
    bool numbers = val_is_number(a) && val_is_number(b);
    if (numbers && is_order(op))
        return compare(op, a, b);
    if (numbers && is_arithmetic(op))
        return a.kind == VAL_INT && b.kind == VAL_INT
                   ? int_binary(l, op, a.i, b.i, span)
                   : float_binary(l, op, val_number(a), val_number(b), span);
    return mismatch(l, op, a, b, a_span, b_span, span);
}

Val eval_unary(Elab *l, UnaryOp op, Val a, Span span)
{
    if (a.kind == VAL_POISON)
        return a;
    if (op == UNARY_NEG && a.kind == VAL_SCHEDULE)
        return rate_binary(l, BINARY_SUB, val_int(0), a, span);
    if (op == UNARY_NOT && a.kind == VAL_BOOL)
        return val_bool(!a.b);
    if (op == UNARY_NEG && a.kind == VAL_INT)
        return a.i == INT64_MIN ? overflow(l, span) : val_int(-a.i);
    if (op == UNARY_NEG && a.kind == VAL_FLOAT)
        return val_float(-a.f);
    if (op == UNARY_NEG && a.kind == VAL_TENSOR)
        return val_tensor(elab_node1(l, OP_neg, a.tensor, NULL, NULL, span));
    if (op == UNARY_NOT && a.kind == VAL_TENSOR)
        return elab_elementwise(l, OP_eq, a, val_bool(false), span, span, span);
    if (!val_is_callable(a))
        elab_error(l, span, "E205", "`%s` does not go with %s", ast_unary_name(op),
                   val_kind_name(a.kind));
    else
        want_tensor(l, a, span, "an operand");
    return val_poison();
}
