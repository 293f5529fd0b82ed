/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/train_spec.h"

#include "ir/lr_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double decay(const LrSchedule *lr, double t, double u, double every, double warmup)
{
    switch (lr->kind) {
    case LR_COSINE:
        return lr->min + (lr->base - lr->min) * (1 + cos(acos(-1.0) * u)) / 2;
    case LR_LINEAR:
        if (lr->power > 0 && lr->power != 1)
            return lr->min + (lr->base - lr->min) * pow(1 - u, lr->power);
        return lr->base + (lr->min - lr->base) * u;
    case LR_STEP:
        return every > 0 ? lr->base * pow(lr->factor, floor(fmax(t, 0) / every)) : lr->base;
    case LR_INVERSE_SQRT:
        return lr->base * sqrt(fmax(warmup, 1) / (t + 1));
    case LR_CONSTANT:
    case LR_FORMULA:
        break;
    }
    return lr->base;
}

/* NaN where the formula is none. */
static double formula_at(const LrSchedule *lr, double t, double total, double per_epoch)
{
    double unit = lr->in_epochs ? per_epoch : 1, value = (double)NAN;
    const LrVariables v = {.step = t,
                           .total = total,
                           .progress = total > 0 ? t / total : 0,
                           .epoch = t / per_epoch,
                           .now = t / unit,
                           .end = total / unit};
    if (lr->formula)
        lr_formula_eval(lr->formula, &v, &value);
    return value;
}

static double unscaled(const LrSchedule *lr, int64_t t, int64_t total, int64_t updates_per_epoch)
{
    double unit = lr->in_epochs ? (double)updates_per_epoch : 1.0;
    /* Whole updates: a fraction would overshoot the base in the last one. */
    double warmup = floor(lr->warmup * unit + 0.5), now = (double)t;
    if (now < warmup)
        return lr->base * (now + 1) / warmup;
    if (lr->kind == LR_FORMULA)
        return formula_at(lr, now, (double)total, fmax(1, (double)updates_per_epoch));
    double length = (double)total - warmup;
    double u = length > 0 ? (now - warmup) / length : 1.0;
    if (lr->kind == LR_STEP)
        now -= floor(lr->start * unit + 0.5);
    return decay(lr, now, u < 1.0 ? u : 1.0, lr->every * unit, warmup);
}

double lr_at(const LrSchedule *lr, int64_t t, int64_t total, int64_t updates_per_epoch)
{
    double rate = unscaled(lr, t, total, updates_per_epoch);
    return lr->scale != 0 ? rate * lr->scale : rate;
}

/* --- groups --- */

/* One pattern, of n characters.  Where a character does not fit, the last `*` takes one more. */
static bool glob(const char *pattern, size_t n, const char *text)
{
    size_t p = 0, star = n; /* n: none so far */
    const char *after_star = text;
    while (*text) {
        if (p < n && pattern[p] == '*') {
            star = p++;
            after_star = text;
        } else if (p < n && (pattern[p] == '?' || pattern[p] == *text)) {
            p++;
            text++;
        } else if (star < n) {
            p = star + 1;
            text = ++after_star;
        } else {
            return false;
        }
    }
    while (p < n && pattern[p] == '*')
        p++;
    return p == n;
}

bool train_pattern_fits(const char *pattern, const char *path)
{
    for (;;) {
        size_t n = strcspn(pattern, "\n");
        if (glob(pattern, n, path))
            return true;
        if (!pattern[n])
            return false;
        pattern += n + 1;
    }
}

bool train_group_fits(const ParamGroup *group, const char *path, int rank)
{
    return (!group->matrices_only || rank >= 2) && (!group->vectors_only || rank < 2) &&
           train_pattern_fits(group->pattern, path);
}

int train_goal_of(const TrainSpec *t, const char *path)
{
    for (int i = 0; i < t->n_goals; i++)
        if (train_pattern_fits(t->goal[i].pattern, path))
            return i;
    return -1;
}

int train_goal_group(const TrainSpec *t, int goal)
{
    return goal > 0 ? t->n_groups - t->n_goals + goal : -1;
}

const char *train_loss(const TrainSpec *t)
{
    return t->n_goals ? t->goal[0].loss : "loss";
}

int train_group_of(const TrainSpec *t, const char *path, int rank)
{
    int goal = train_goal_of(t, path);
    for (int i = 0; i < t->n_groups; i++)
        if ((t->n_goals == 0 || t->group[i].goal == goal) &&
            train_group_fits(&t->group[i], path, rank))
            return i;
    return -1;
}

bool train_counts_steps(const UpdateRule *rule)
{
    switch (rule->optim) {
    case OPTIM_SGD:
    case OPTIM_RMSPROP:
    case OPTIM_LION:
    case OPTIM_MUON:
        return false;
    case OPTIM_ADAGRAD:
        return rule->lr_decay > 0;
    case OPTIM_ADAM:
    case OPTIM_ADAMW:
    case OPTIM_LAMB:
    case OPTIM_ADAFACTOR:
        break;
    }
    return true;
}

bool train_is_rate(const char *role)
{
    return strcmp(role, "lr") == 0 || strncmp(role, "lr.", 3) == 0;
}

int train_rate_group(const char *role)
{
    return strncmp(role, "lr.", 3) == 0 ? atoi(role + 3) : -1;
}
