/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizers and learning-rate schedules. */
#include "frontend/language/elaborate/train_internal.h"

#include <math.h>
#include <string.h>

bool arg_in_bounds(BuiltinCall *c, int arg, const char *name, double lo, double hi)
{
    double v = arg_float(c, arg);
    if (v >= lo && v <= hi)
        return true;
    if (isfinite(hi))
        elab_error(c->l, c->arg_span[arg], "E105", "`%s` lies between %g and %g, got %g", name, lo,
                   hi, v);
    else
        elab_error(c->l, c->arg_span[arg], "E105", "`%s` is at least %g, got %g", name, lo, v);
    return false;
}

/* ---- schedules ---- */

static Val schedule_value(BuiltinCall *c, LrSchedule s)
{
    LrSchedule *p = POOL_NEW(c->l->pool, LrSchedule);
    *p = s;
    return (Val){.kind = VAL_SCHEDULE, .schedule = p};
}

static Val falling(BuiltinCall *c, LrKind kind, double power)
{
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "warmup", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 2, "min", 0, (double)INFINITY))
        return val_poison();
    return schedule_value(c, (LrSchedule){.kind = kind,
                                          .base = arg_float(c, 0),
                                          .warmup = arg_float(c, 1),
                                          .min = arg_float(c, 2),
                                          .power = power});
}

Val builtin_cosine(BuiltinCall *c)
{
    return falling(c, LR_COSINE, 0);
}

Val builtin_linear_decay(BuiltinCall *c)
{
    if (!arg_in_bounds(c, 3, "power", 1e-9, (double)INFINITY))
        return val_poison();
    double power = arg_float(c, 3);
    return falling(c, LR_LINEAR, power == 1 ? 0 : power);
}

Val builtin_constant(BuiltinCall *c)
{
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "warmup", 0, (double)INFINITY))
        return val_poison();
    return schedule_value(
        c, (LrSchedule){.kind = LR_CONSTANT, .base = arg_float(c, 0), .warmup = arg_float(c, 1)});
}

Val builtin_step(BuiltinCall *c)
{
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "every", 1e-9, (double)INFINITY) ||
        !arg_in_bounds(c, 2, "factor", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 3, "warmup", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 4, "start", 0, (double)INFINITY))
        return val_poison();
    return schedule_value(c, (LrSchedule){.kind = LR_STEP,
                                          .base = arg_float(c, 0),
                                          .every = arg_float(c, 1),
                                          .factor = arg_float(c, 2),
                                          .warmup = arg_float(c, 3),
                                          .start = arg_float(c, 4)});
}

/* The least warmup is far below one update of any data; lr_at counts at least one. */
Val builtin_inverse_sqrt(BuiltinCall *c)
{
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "warmup", 1e-9, (double)INFINITY))
        return val_poison();
    return schedule_value(
        c,
        (LrSchedule){.kind = LR_INVERSE_SQRT, .base = arg_float(c, 0), .warmup = arg_float(c, 1)});
}

/* ---- optimizers ---- */

static UpdateRule *rule_new(BuiltinCall *c, OptimKind kind)
{
    UpdateRule *o = POOL_NEW(c->l->pool, UpdateRule);
    o->optim = kind;
    if (c->arg[0].kind == VAL_SCHEDULE)
        o->lr = *c->arg[0].schedule;
    else
        o->lr = (LrSchedule){.kind = LR_CONSTANT, .base = arg_float(c, 0)};
    return o;
}

static bool rate_ok(BuiltinCall *c)
{
    return c->arg[0].kind == VAL_SCHEDULE || arg_in_bounds(c, 0, "lr", 0, (double)INFINITY);
}

static Val optim_value(BuiltinCall *c, int clip_value, UpdateRule *o)
{
    if (!arg_in_bounds(c, clip_value, "clip_value", 0, (double)INFINITY))
        return val_poison();
    o->clip_value = arg_float(c, clip_value);
    return (Val){.kind = VAL_OPTIM, .optim = o};
}

Val builtin_sgd(BuiltinCall *c)
{
    if (!rate_ok(c) || !arg_in_bounds(c, 1, "momentum", 0, 1) ||
        !arg_in_bounds(c, 3, "weight_decay", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 4, "dampening", 0, 1) ||
        !arg_in_bounds(c, 5, "clip", 0, (double)INFINITY))
        return val_poison();
    UpdateRule *o = rule_new(c, OPTIM_SGD);
    o->momentum = arg_float(c, 1);
    o->nesterov = arg_bool(c, 2);
    o->weight_decay = arg_float(c, 3);
    o->dampening = arg_float(c, 4);
    o->clip = arg_float(c, 5);
    o->gradient_free = arg_bool(c, 7);
    if (o->nesterov && (o->momentum <= 0 || o->dampening > 0)) {
        elab_error(c->l, c->span, "E206", "nesterov needs a momentum and no dampening");
        return val_poison();
    }
    if (o->gradient_free && (o->momentum <= 0 || o->nesterov || o->dampening > 0 || o->clip > 0 ||
                             arg_float(c, 6) > 0)) {
        elab_error(c->l, c->span, "E206",
                   "gradient_free needs a momentum, and no nesterov, dampening or clip");
        return val_poison();
    }
    return optim_value(c, 6, o);
}

static bool betas(BuiltinCall *c, UpdateRule *o)
{
    o->beta1 = 0.9;
    o->beta2 = 0.999;
    if (!arg_given(c, 1))
        return true;
    ValList b = c->arg[1].list;
    if (b.len == 2) {
        o->beta1 = val_number(b.data[0]);
        o->beta2 = val_number(b.data[1]);
    }
    if (b.len == 2 && o->beta1 >= 0 && o->beta1 < 1 && o->beta2 >= 0 && o->beta2 < 1)
        return true;
    elab_error(c->l, c->arg_span[1], "E105",
               "betas are two numbers in 0 <= beta < 1, such as [0.9, 0.999]");
    return false;
}

static Val adam(BuiltinCall *c, OptimKind kind)
{
    UpdateRule *o = rule_new(c, kind);
    if (!rate_ok(c) || !betas(c, o) || !arg_in_bounds(c, 2, "eps", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 3, "weight_decay", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 5, "clip", 0, (double)INFINITY))
        return val_poison();
    o->eps = arg_float(c, 2);
    o->weight_decay = arg_float(c, 3);
    o->decay_matrices_only = call_word_is(c, 4, "matrices");
    o->clip = arg_float(c, 5);
    return optim_value(c, 6, o);
}

Val builtin_adam(BuiltinCall *c)
{
    return adam(c, OPTIM_ADAM);
}

Val builtin_adamw(BuiltinCall *c)
{
    return adam(c, OPTIM_ADAMW);
}
