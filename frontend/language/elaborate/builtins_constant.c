/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tensors whose numbers are known when the file is compiled. */
#include "frontend/language/elaborate/builtins_table.h"

#include <inttypes.h>
#include <math.h>

static ValueId literal(BuiltinCall *c, const double *values, int64_t n, const char *name)
{
    double *rounded = POOL_ARRAY(c->l->pool, (size_t)n, double);
    for (int64_t i = 0; i < n; i++)
        rounded[i] = (double)(float)values[i];
    AttrList attrs = {.n = 0};
    attrs_floats(&attrs, ATTR_values, rounded, (int)n);
    return elab_node(c->l, OP_literal, NULL, 0, &attrs, name, c->span);
}

ValueId call_literal(BuiltinCall *c, int arg)
{
    const Val list = c->arg[arg];
    Span span = c->arg_span[arg];
    if (list.list.len < 1 || list.list.len > LITERAL_MAX_VALUES) {
        elab_error(c->l, span, "E105", "a tensor of 1 to %d numbers, got %d", LITERAL_MAX_VALUES,
                   list.list.len);
        return VALUE_NONE;
    }
    double *values = POOL_ARRAY(c->l->pool, (size_t)list.list.len, double);
    for (int i = 0; i < list.list.len; i++) {
        if (!val_is_number(list.list.data[i])) {
            elab_error(c->l, span, "E205", "a list of numbers, got %s in it",
                       val_kind_name(list.list.data[i].kind));
            return VALUE_NONE;
        }
        values[i] = val_number(list.list.data[i]);
        if (isfinite(values[i]) && !isfinite((float)values[i])) {
            elab_error(c->l, span, "E105", "%g is too large for f32", values[i]);
            return VALUE_NONE;
        }
    }
    return literal(c, values, list.list.len, NULL);
}

Val builtin_tensor(BuiltinCall *c)
{
    ValueId v = call_literal(c, 0);
    return v == VALUE_NONE ? val_poison() : val_tensor(v);
}

/* ---- sinusoid ---- */

enum { SINUSOID_MAX_LENGTH = 1 << 16 };

/* Turns (of 2 pi) that a column's angle advances from one position to the next. */
static double turns_per_position(int64_t column, int64_t dim, double base, bool halves)
{
    double half = (double)(dim / 2);
    if (!halves)
        return pow(base, -2 * (double)(column / 2) / (double)dim) / 6.283185307179586477;
    double span = half > 1 ? half - 1 : 1;
    return pow(base, -(double)(column % (dim / 2)) / span) / 6.283185307179586477;
}

/* x with no more than `bits` bits. */
static double leading_bits(double x, int bits)
{
    int exponent;
    double fraction = frexp(x, &exponent);
    return ldexp(trunc(ldexp(fraction, bits)), exponent - bits);
}

static ValueId by_number(BuiltinCall *c, OpKind op, ValueId x, double number)
{
    ValueId k = elab_constant(c->l, DTYPE_F32, number, c->span);
    return elab_node2(c->l, op, x, k, NULL, NULL, c->span);
}

static ValueId cast(BuiltinCall *c, ValueId x, DType dtype)
{
    AttrList attrs = {.n = 0};
    attrs_string(&attrs, ATTR_dtype, dtype_name(dtype));
    return elab_node1(c->l, OP_cast, x, &attrs, NULL, c->span);
}

/* 0 .. length-1 as f32[length, 1] */
static ValueId positions(BuiltinCall *c, int64_t length)
{
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_shape, (const int64_t[]){length, 1}, 2);
    attrs_int(&attrs, ATTR_axis, 0);
    attrs_string(&attrs, ATTR_dtype, "f32");
    return elab_node(c->l, OP_iota, NULL, 0, &attrs, NULL, c->span);
}

/* Takes `bits` bits of every column's turns (all that f32 holds when 0): position times that. */
static ValueId turned(BuiltinCall *c, ValueId position, double *turns, int64_t dim, int bits)
{
    double *part = POOL_ARRAY(c->l->pool, (size_t)dim, double);
    for (int64_t d = 0; d < dim; d++) {
        part[d] = bits ? leading_bits(turns[d], bits) : turns[d];
        turns[d] -= part[d];
    }
    ValueId rate = literal(c, part, dim, NULL);
    return elab_node2(c->l, OP_mul, position, rate, NULL, NULL, c->span);
}

static ValueId fraction(BuiltinCall *c, ValueId x)
{
    ValueId whole = cast(c, cast(c, x, DTYPE_I32), DTYPE_F32);
    return elab_node2(c->l, OP_sub, x, whole, NULL, NULL, c->span);
}

/* position * rate has more bits than f32, and what is lost is lost from the angle.  So the rate, in
 * turns, is cut into parts whose products with every position are exact, and of these products only
 * the fractions of a turn are kept; the rest of the rate is too small to matter.  A quarter of a
 * turn makes a cosine of a sine.  The error is 1e-6 at all positions. */
static ValueId sinusoid_angles(BuiltinCall *c, int64_t length, int64_t dim, double *turns,
                               double *phase)
{
    int bits = 0; /* of a position */
    while ((length - 1) >> bits)
        bits++;
    ValueId position = positions(c, length), angle = literal(c, phase, dim, NULL);
    for (int part = 0; part < (bits <= 12 ? 1 : 2); part++) {
        ValueId t = fraction(c, turned(c, position, turns, dim, 24 - bits));
        angle = elab_node2(c->l, OP_add, t, angle, NULL, NULL, c->span);
    }
    ValueId rest = turned(c, position, turns, dim, 0);
    angle = elab_node2(c->l, OP_add, angle, rest, NULL, NULL, c->span);
    return by_number(c, OP_mul, angle, 6.283185307179586477);
}

static bool sinusoid_fits(BuiltinCall *c)
{
    if (arg_int(c, 0) < 1 || arg_int(c, 0) > SINUSOID_MAX_LENGTH)
        elab_error(c->l, c->arg_span[0], "E105", "length lies between 1 and %d, got %" PRId64,
                   SINUSOID_MAX_LENGTH, arg_int(c, 0));
    else if (arg_int(c, 1) < 2 || arg_int(c, 1) % 2 || arg_int(c, 1) > LITERAL_MAX_VALUES)
        elab_error(c->l, c->arg_span[1], "E105",
                   "dim is an even number between 2 and %d, got %" PRId64, LITERAL_MAX_VALUES,
                   arg_int(c, 1));
    else if (!(arg_float(c, 2) >= 1 && arg_float(c, 2) <= 1e30))
        elab_error(c->l, c->arg_span[2], "E105", "base lies between 1 and 1e30, got %g",
                   arg_float(c, 2));
    else
        return true;
    return false;
}

Val builtin_sinusoid(BuiltinCall *c)
{
    if (!sinusoid_fits(c))
        return val_poison();
    int64_t length = arg_int(c, 0), dim = arg_int(c, 1);
    bool halves = call_word_is(c, 3, "halves");
    double *turns = POOL_ARRAY(c->l->pool, (size_t)dim, double);
    double *phase = POOL_ARRAY(c->l->pool, (size_t)dim, double);
    for (int64_t d = 0; d < dim; d++) {
        turns[d] = turns_per_position(d, dim, arg_float(c, 2), halves);
        phase[d] = (halves ? d >= dim / 2 : d % 2) ? 0.25 : 0;
    }
    ValueId angle = sinusoid_angles(c, length, dim, turns, phase);
    return angle == VALUE_NONE ? val_poison() : call_node(c, OP_sin, &angle, 1, NULL);
}
