/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizers and learning-rate schedules. */
#include "frontend/language/elaborate/train_internal.h"

#include <math.h>
#include <string.h>

static bool in_bounds(BuiltinCall *c, int arg, const char *name, double lo, double hi)
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
    if (!in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !in_bounds(c, 1, "warmup", 0, (double)INFINITY) ||
        !in_bounds(c, 2, "min", 0, (double)INFINITY))
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
    if (!in_bounds(c, 3, "power", 1e-9, (double)INFINITY))
        return val_poison();
    double power = arg_float(c, 3);
    return falling(c, LR_LINEAR, power == 1 ? 0 : power);
}

Val builtin_constant(BuiltinCall *c)
{
    if (!in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !in_bounds(c, 1, "warmup", 0, (double)INFINITY))
        return val_poison();
    return schedule_value(
        c, (LrSchedule){.kind = LR_CONSTANT, .base = arg_float(c, 0), .warmup = arg_float(c, 1)});
}

Val builtin_step(BuiltinCall *c)
{
    if (!in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !in_bounds(c, 1, "every", 1e-9, (double)INFINITY) ||
        !in_bounds(c, 2, "factor", 0, (double)INFINITY) ||
        !in_bounds(c, 3, "warmup", 0, (double)INFINITY) ||
        !in_bounds(c, 4, "start", 0, (double)INFINITY))
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
    if (!in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !in_bounds(c, 1, "warmup", 1e-9, (double)INFINITY))
        return val_poison();
    return schedule_value(
        c,
        (LrSchedule){.kind = LR_INVERSE_SQRT, .base = arg_float(c, 0), .warmup = arg_float(c, 1)});
}

/* ---- optimizers ---- */

static OptimSpec *optim_new(BuiltinCall *c, OptimKind kind)
{
    OptimSpec *o = POOL_NEW(c->l->pool, OptimSpec);
    o->spec.optim = kind;
    if (c->arg[0].kind == VAL_SCHEDULE)
        o->spec.lr = *c->arg[0].schedule;
    else
        o->spec.lr = (LrSchedule){.kind = LR_CONSTANT, .base = arg_float(c, 0)};
    return o;
}

static bool rate_ok(BuiltinCall *c)
{
    return c->arg[0].kind == VAL_SCHEDULE || in_bounds(c, 0, "lr", 0, (double)INFINITY);
}

static Val optim_value(const OptimSpec *o)
{
    return (Val){.kind = VAL_OPTIM, .optim = o};
}

Val builtin_sgd(BuiltinCall *c)
{
    if (!rate_ok(c) || !in_bounds(c, 1, "momentum", 0, 1) ||
        !in_bounds(c, 3, "weight_decay", 0, (double)INFINITY) ||
        !in_bounds(c, 4, "dampening", 0, 1) || !in_bounds(c, 5, "clip", 0, (double)INFINITY))
        return val_poison();
    OptimSpec *o = optim_new(c, OPTIM_SGD);
    o->spec.momentum = arg_float(c, 1);
    o->spec.nesterov = arg_bool(c, 2);
    o->spec.weight_decay = arg_float(c, 3);
    o->spec.dampening = arg_float(c, 4);
    o->spec.clip = arg_float(c, 5);
    o->spec.gradient_free = arg_bool(c, 6);
    if (o->spec.nesterov && (o->spec.momentum <= 0 || o->spec.dampening > 0)) {
        elab_error(c->l, c->span, "E206", "nesterov needs a momentum and no dampening");
        return val_poison();
    }
    if (o->spec.gradient_free &&
        (o->spec.momentum <= 0 || o->spec.nesterov || o->spec.dampening > 0 || o->spec.clip > 0)) {
        elab_error(c->l, c->span, "E206",
                   "gradient_free needs a momentum, and no nesterov, dampening or clip");
        return val_poison();
    }
    return optim_value(o);
}

static bool betas(BuiltinCall *c, OptimSpec *o)
{
    o->spec.beta1 = 0.9;
    o->spec.beta2 = 0.999;
    if (!arg_given(c, 1))
        return true;
    ValList b = c->arg[1].list;
    if (b.len == 2) {
        o->spec.beta1 = val_number(b.data[0]);
        o->spec.beta2 = val_number(b.data[1]);
    }
    if (b.len == 2 && o->spec.beta1 >= 0 && o->spec.beta1 < 1 && o->spec.beta2 >= 0 &&
        o->spec.beta2 < 1)
        return true;
    elab_error(c->l, c->arg_span[1], "E105",
               "betas are two numbers in 0 <= beta < 1, such as [0.9, 0.999]");
    return false;
}

static Val adam(BuiltinCall *c, OptimKind kind)
{
    OptimSpec *o = optim_new(c, kind);
    if (!rate_ok(c) || !betas(c, o) || !in_bounds(c, 2, "eps", 0, (double)INFINITY) ||
        !in_bounds(c, 3, "weight_decay", 0, (double)INFINITY) ||
        !in_bounds(c, 5, "clip", 0, (double)INFINITY))
        return val_poison();
    o->spec.eps = arg_float(c, 2);
    o->spec.weight_decay = arg_float(c, 3);
    o->spec.decay_matrices_only = call_word_is(c, 4, "matrices");
    o->spec.clip = arg_float(c, 5);
    return optim_value(o);
}

Val builtin_adam(BuiltinCall *c)
{
    return adam(c, OPTIM_ADAM);
}

Val builtin_adamw(BuiltinCall *c)
{
    return adam(c, OPTIM_ADAMW);
}
