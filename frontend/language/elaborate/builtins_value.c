/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions of compile-time values, and initial values of parameters. */
#include "frontend/language/elaborate/train_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- lists ---- */

Val builtin_len(BuiltinCall *c)
{
    Val x = c->arg[0];
    if (x.kind == VAL_LIST)
        return val_int(x.list.len);
    if (x.kind == VAL_STRING)
        return val_int((int64_t)strlen(x.s));
    if (x.kind == VAL_TENSOR && elab_type(c->l, x.tensor)->rank > 0)
        return val_int(elab_type(c->l, x.tensor)->dim[0]);
    elab_error(c->l, c->arg_span[0], "E205", "%s has no length", val_kind_name(x.kind));
    return val_poison();
}

/* How many of lo, lo+step, ... lie before hi; -1 when too many for a list. */
static int64_t range_count(int64_t lo, int64_t hi, int64_t step)
{
    __extension__ typedef __int128 Wide;
    Wide distance = step > 0 ? (Wide)hi - lo : (Wide)lo - hi;
    Wide stride = step > 0 ? (Wide)step : -(Wide)step;
    Wide n = distance > 0 ? (distance + stride - 1) / stride : 0;
    return n > ELAB_MAX_RANGE ? -1 : (int64_t)n;
}

Val builtin_range(BuiltinCall *c)
{
    bool two = arg_given(c, 1);
    int64_t lo = two ? arg_int(c, 0) : 0, hi = arg_int(c, two ? 1 : 0), step = arg_int(c, 2);
    int64_t n = step ? range_count(lo, hi, step) : -1;
    if (n < 0) {
        elab_error(c->l, c->span, step ? "E208" : "E209",
                   step ? "a range may have at most %d elements" : "a range's step cannot be 0",
                   ELAB_MAX_RANGE);
        return val_poison();
    }
    c->l->n_steps += n;
    Val *items = POOL_ARRAY(c->l->pool, (size_t)n + 1, Val);
    for (int64_t i = 0; i < n; i++)
        items[i] = val_int(lo + i * step);
    return val_list(items, (int)n);
}

Val builtin_ntuple(BuiltinCall *c)
{
    Val x = c->arg[0];
    int64_t n = arg_int(c, 1);
    if (x.kind == VAL_LIST && x.list.len == n)
        return x;
    if (x.kind == VAL_LIST) {
        elab_error(c->l, c->arg_span[0], "E105", "a number or a list of %" PRId64 ", got %d values",
                   n, x.list.len);
        return val_poison();
    }
    if (n < 0 || n > ELAB_MAX_RANGE) {
        elab_error(c->l, c->arg_span[1], "E208", "a list has 0 to %d elements, not %" PRId64,
                   ELAB_MAX_RANGE, n);
        return val_poison();
    }
    c->l->n_steps += n;
    Val *items = POOL_ARRAY(c->l->pool, (size_t)n + 1, Val);
    for (int64_t i = 0; i < n; i++)
        items[i] = x;
    return val_list(items, (int)n);
}

Val builtin_zip(BuiltinCall *c)
{
    int n = 0;
    for (int k = 0; k < c->n_rest; k++)
        if (c->rest[k].kind == VAL_SOURCE)
            return source_zip(c);
    for (int k = 0; k < c->n_rest; k++) {
        if (!want_list(c->l, c->rest[k], c->rest_span[k], "an argument of zip"))
            return val_poison();
        if (k && c->rest[k].list.len != n) {
            elab_error(c->l, c->rest_span[k], "E206",
                       "zip wants lists of equal length, got %d and %d", n, c->rest[k].list.len);
            return val_poison();
        }
        n = c->rest[k].list.len;
    }
    Val *rows = POOL_ARRAY(c->l->pool, (size_t)n + 1, Val);
    for (int i = 0; i < n; i++) {
        Val *row = POOL_ARRAY(c->l->pool, (size_t)c->n_rest, Val);
        for (int k = 0; k < c->n_rest; k++)
            row[k] = c->rest[k].list.data[i];
        rows[i] = val_list(row, c->n_rest);
    }
    return val_list(rows, n);
}

Val builtin_enumerate(BuiltinCall *c)
{
    ValList list = c->arg[0].list;
    Val *rows = POOL_ARRAY(c->l->pool, (size_t)list.len + 1, Val);
    for (int i = 0; i < list.len; i++) {
        Val *row = POOL_ARRAY(c->l->pool, 2, Val);
        row[0] = val_int(i);
        row[1] = list.data[i];
        rows[i] = val_list(row, 2);
    }
    return val_list(rows, list.len);
}

Val builtin_reversed(BuiltinCall *c)
{
    ValList list = c->arg[0].list;
    Val *items = POOL_ARRAY(c->l->pool, (size_t)list.len + 1, Val);
    for (int i = 0; i < list.len; i++)
        items[i] = list.data[list.len - 1 - i];
    return val_list(items, list.len);
}

Val value_sum(BuiltinCall *c)
{
    ValList list = c->arg[0].list;
    Val sum = list.len ? list.data[0] : val_int(0);
    for (int i = 1; i < list.len; i++)
        sum = eval_binary(c->l, BINARY_ADD, sum, list.data[i], c->arg_span[0], c->arg_span[0],
                          c->span);
    return sum;
}

Val value_extreme(BuiltinCall *c, bool largest)
{
    ValList list = {&c->arg[0], 1};
    if (c->arg[0].kind == VAL_LIST && !c->n_rest)
        list = c->arg[0].list;
    Val best = list.len ? list.data[0] : val_none();
    for (int i = 0; i < list.len + c->n_rest; i++) {
        Val v = i < list.len ? list.data[i] : c->rest[i - list.len];
        if (v.kind == VAL_POISON)
            return v;
        if (!val_is_number(v)) {
            if (elab_error(c->l, c->span, "E205", "%s compares numbers, got %s", c->fn->name,
                           val_kind_name(v.kind)) &&
                v.kind == VAL_TENSOR)
                diag_help(c->l->diag, "%s(a, b) compares two tensors",
                          largest ? "maximum" : "minimum");
            return val_poison();
        }
        if (largest ? val_number(v) > val_number(best) : val_number(v) < val_number(best))
            best = v;
    }
    if (list.len)
        return best;
    elab_error(c->l, c->span, "E206", "%s of an empty list", c->fn->name);
    return val_poison();
}

/* ---- numbers ---- */

static Val to_int(BuiltinCall *c, double f)
{
    if (fabs(f) < 9.2e18)
        return val_int((int64_t)f);
    elab_error(c->l, c->span, "E209", "%s is no int", number_text(c->l->pool, f));
    return val_poison();
}

Val builtin_int(BuiltinCall *c)
{
    Val x = c->arg[0];
    if (x.kind == VAL_INT)
        return x;
    if (x.kind == VAL_BOOL)
        return val_int(x.b);
    if (x.kind == VAL_FLOAT)
        return to_int(c, x.f);
    elab_error(c->l, c->arg_span[0], "E205", "%s is no int", val_kind_name(x.kind));
    return val_poison();
}

Val builtin_float(BuiltinCall *c)
{
    if (val_is_number(c->arg[0]))
        return val_float(arg_float(c, 0));
    elab_error(c->l, c->arg_span[0], "E205", "%s is no number", val_kind_name(c->arg[0].kind));
    return val_poison();
}

Val builtin_round(BuiltinCall *c)
{
    return to_int(c, nearbyint(arg_float(c, 0)));
}

Val builtin_floor(BuiltinCall *c)
{
    return to_int(c, floor(arg_float(c, 0)));
}

Val builtin_ceil(BuiltinCall *c)
{
    return to_int(c, ceil(arg_float(c, 0)));
}

/* ---- initial values ---- */

static Val init_value(BuiltinCall *c, InitSpec spec)
{
    InitSpec *p = POOL_NEW(c->l->pool, InitSpec);
    *p = spec;
    return (Val){.kind = VAL_INIT, .init = p};
}

Val builtin_init(BuiltinCall *c)
{
    InitSetting *s = POOL_NEW(c->l->pool, InitSetting);
    s->weight = arg_given(c, 0) ? c->arg[0].init : NULL;
    s->bias = arg_given(c, 1) ? c->arg[1].init : NULL;
    return (Val){.kind = VAL_SETTING, .setting = s};
}

Val builtin_normal(BuiltinCall *c)
{
    if (arg_float(c, 0) < 0) {
        elab_error(c->l, c->arg_span[0], "E105", "a standard deviation cannot be negative");
        return val_poison();
    }
    return init_value(c,
                      (InitSpec){.kind = INIT_NORMAL, .a = arg_float(c, 0), .b = arg_float(c, 1)});
}

Val builtin_uniform(BuiltinCall *c)
{
    if (arg_float(c, 0) > arg_float(c, 1)) {
        elab_error(c->l, c->span, "E105", "uniform(lo, hi) needs lo <= hi");
        return val_poison();
    }
    return init_value(c,
                      (InitSpec){.kind = INIT_UNIFORM, .a = arg_float(c, 0), .b = arg_float(c, 1)});
}

static Val he(BuiltinCall *c, bool uniform)
{
    return init_value(c, (InitSpec){.kind = INIT_HE,
                                    .a = arg_float(c, 1),
                                    .uniform = uniform,
                                    .fan_out = call_word_is(c, 0, "out")});
}

Val builtin_he_normal(BuiltinCall *c)
{
    return he(c, false);
}

Val builtin_he_uniform(BuiltinCall *c)
{
    return he(c, true);
}

static Val xavier(BuiltinCall *c, bool uniform)
{
    return init_value(c, (InitSpec){.kind = INIT_XAVIER, .a = arg_float(c, 0), .uniform = uniform});
}

Val builtin_xavier_normal(BuiltinCall *c)
{
    return xavier(c, false);
}

Val builtin_xavier_uniform(BuiltinCall *c)
{
    return xavier(c, true);
}

/* The functions that stand for an initial value without being called. */
static const struct {
    const char *name;
    InitSpec spec;
} bare_inits[] = {
    {"zeros", {.kind = INIT_ZEROS}},
    {"ones", {.kind = INIT_ONES}},
    {"he_normal", {.kind = INIT_HE, .a = 1.4142135623730951}},
    {"he_uniform", {.kind = INIT_HE, .a = 1.4142135623730951, .uniform = true}},
    {"xavier_normal", {.kind = INIT_XAVIER, .a = 1}},
    {"xavier_uniform", {.kind = INIT_XAVIER, .a = 1, .uniform = true}},
};

static const InitSpec *number_init(Elab *l, double value)
{
    InitSpec *p = POOL_NEW(l->pool, InitSpec);
    *p = (InitSpec){.kind = INIT_UNIFORM, .a = value, .b = value};
    if (value == 0 || value == 1)
        p->kind = value == 0 ? INIT_ZEROS : INIT_ONES;
    return p;
}

bool builtin_as_init(Elab *l, Val v, Span span, const InitSpec **out)
{
    if (v.kind == VAL_INIT)
        *out = v.init;
    else if (val_is_number(v))
        *out = number_init(l, val_number(v));
    else
        *out = NULL;
    for (size_t i = 0; v.kind == VAL_BUILTIN && i < sizeof bare_inits / sizeof bare_inits[0]; i++)
        if (strcmp(bare_inits[i].name, v.builtin->name) == 0)
            *out = &bare_inits[i].spec;
    if (*out || v.kind == VAL_POISON)
        return *out != NULL;
    if (v.kind == VAL_BUILTIN)
        want_tensor(l, v, span, "an initial value");
    else if (elab_error(l, span, "E205", "an initial value cannot be %s", val_kind_name(v.kind)))
        diag_help(l->diag, "zeros, ones, a number, normal(0.02), uniform(-0.1, 0.1), he_normal(), "
                           "xavier_uniform()");
    return false;
}
