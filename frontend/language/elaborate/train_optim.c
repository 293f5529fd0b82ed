/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizers. */
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

/* A number among the arguments, where it goes and what it may be. */
typedef struct Setting {
    int arg;
    const char *name;
    double *to, lo, hi;
} Setting;

static bool read_settings(BuiltinCall *c, const Setting *s, int n)
{
    if (!rate_ok(c))
        return false;
    for (int i = 0; i < n; i++) {
        if (!arg_in_bounds(c, s[i].arg, s[i].name, s[i].lo, s[i].hi))
            return false;
        *s[i].to = arg_float(c, s[i].arg);
    }
    return true;
}
#define READ_SETTINGS(c, ...)                                                                      \
    read_settings(c, (const Setting[]){__VA_ARGS__},                                               \
                  (int)(sizeof((const Setting[]){__VA_ARGS__}) / sizeof(Setting)))
#define AT_LEAST_0(arg, field)                                                                     \
    {                                                                                              \
        arg, #field, &o->field, 0, (double)INFINITY                                                \
    }
#define UP_TO_1(arg, field)                                                                        \
    {                                                                                              \
        arg, #field, &o->field, 0, 1                                                               \
    }

static Val optim_value(bool ok, const UpdateRule *o)
{
    return ok ? (Val){.kind = VAL_OPTIM, .optim = o} : val_poison();
}

Val builtin_sgd(BuiltinCall *c)
{
    UpdateRule *o = rule_new(c, OPTIM_SGD);
    if (!READ_SETTINGS(c, UP_TO_1(1, momentum), AT_LEAST_0(3, weight_decay), UP_TO_1(4, dampening),
                       AT_LEAST_0(5, clip), AT_LEAST_0(6, clip_value)))
        return val_poison();
    o->nesterov = arg_bool(c, 2);
    o->gradient_free = arg_bool(c, 7);
    if (o->nesterov && (o->momentum <= 0 || o->dampening > 0)) {
        elab_error(c->l, c->span, "E206", "nesterov needs a momentum and no dampening");
        return val_poison();
    }
    if (o->gradient_free &&
        (o->momentum <= 0 || o->nesterov || o->dampening > 0 || o->clip > 0 || o->clip_value > 0)) {
        elab_error(c->l, c->span, "E206",
                   "gradient_free needs a momentum, and no nesterov, dampening or clip");
        return val_poison();
    }
    return optim_value(true, o);
}

/* Argument 1, a list of two. */
static bool betas(BuiltinCall *c, UpdateRule *o, double beta1, double beta2)
{
    o->beta1 = beta1;
    o->beta2 = beta2;
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
               "betas are two numbers in 0 <= beta < 1, such as [%g, %g]", beta1, beta2);
    return false;
}

static Val adam(BuiltinCall *c, OptimKind kind)
{
    UpdateRule *o = rule_new(c, kind);
    o->decay_matrices_only = call_word_is(c, 4, "matrices");
    bool ok = READ_SETTINGS(c, AT_LEAST_0(2, eps), AT_LEAST_0(3, weight_decay), AT_LEAST_0(5, clip),
                            AT_LEAST_0(6, clip_value));
    return optim_value(ok && betas(c, o, 0.9, 0.999), o);
}

Val builtin_adam(BuiltinCall *c)
{
    return adam(c, OPTIM_ADAM);
}

Val builtin_adamw(BuiltinCall *c)
{
    return adam(c, OPTIM_ADAMW);
}

Val builtin_lamb(BuiltinCall *c)
{
    return adam(c, OPTIM_LAMB);
}

Val builtin_lion(BuiltinCall *c)
{
    UpdateRule *o = rule_new(c, OPTIM_LION);
    o->decay_matrices_only = call_word_is(c, 3, "matrices");
    bool ok = READ_SETTINGS(c, AT_LEAST_0(2, weight_decay), AT_LEAST_0(4, clip),
                            AT_LEAST_0(5, clip_value));
    return optim_value(ok && betas(c, o, 0.9, 0.99), o);
}

Val builtin_rmsprop(BuiltinCall *c)
{
    UpdateRule *o = rule_new(c, OPTIM_RMSPROP);
    o->centered = arg_bool(c, 5);
    bool ok = READ_SETTINGS(c, UP_TO_1(1, alpha), AT_LEAST_0(2, eps), AT_LEAST_0(3, weight_decay),
                            UP_TO_1(4, momentum), AT_LEAST_0(6, clip), AT_LEAST_0(7, clip_value));
    return optim_value(ok, o);
}

Val builtin_adagrad(BuiltinCall *c)
{
    UpdateRule *o = rule_new(c, OPTIM_ADAGRAD);
    bool ok = READ_SETTINGS(c, AT_LEAST_0(1, lr_decay), AT_LEAST_0(2, weight_decay),
                            AT_LEAST_0(3, initial), AT_LEAST_0(4, eps), AT_LEAST_0(5, clip),
                            AT_LEAST_0(6, clip_value));
    return optim_value(ok, o);
}

Val builtin_adafactor(BuiltinCall *c)
{
    UpdateRule *o = rule_new(c, OPTIM_ADAFACTOR);
    bool ok =
        READ_SETTINGS(c, {1, "beta2_decay", &o->beta2_decay, -8, 0}, AT_LEAST_0(2, eps),
                      {3, "clip_update", &o->clip_update, 1e-9, (double)INFINITY},
                      AT_LEAST_0(4, weight_decay), AT_LEAST_0(5, clip), AT_LEAST_0(6, clip_value));
    return optim_value(ok, o);
}

Val builtin_muon(BuiltinCall *c)
{
    UpdateRule *o = rule_new(c, OPTIM_MUON);
    double iterations = 0;
    o->nesterov = arg_bool(c, 2);
    o->match_rms = call_word_is(c, 6, "match_rms_adamw");
    bool ok = READ_SETTINGS(c, UP_TO_1(1, momentum), AT_LEAST_0(3, weight_decay),
                            {4, "steps", &iterations, 1, 99}, AT_LEAST_0(5, eps),
                            AT_LEAST_0(7, clip), AT_LEAST_0(8, clip_value));
    o->ns_steps = (int64_t)iterations;
    return optim_value(ok, o);
}
