/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Groups of parameters: group(...), and the key `groups` of the train section. */
#include "frontend/language/elaborate/train_internal.h"

#include "ir/support/strbuf.h"

#include <math.h>
#include <string.h>

/* ---- group(...) ---- */

enum { PATTERN, ON, LR, WEIGHT_DECAY, CLIP, CLIP_VALUE, FROZEN, OPTIM };

const char *arg_patterns(BuiltinCall *c, int arg)
{
    const Val single = c->arg[arg];
    ValList list = single.kind == VAL_LIST ? single.list : (ValList){&single, 1};
    StrBuf text = strbuf_new(c->l->pool);
    for (int i = 0; i < list.len; i++) {
        if (list.data[i].kind != VAL_STRING || strchr(list.data[i].s, '\n')) {
            if (elab_error(c->l, c->arg_span[arg], "E205", "a pattern is a string, got %s",
                           val_kind_name(list.data[i].kind)))
                diag_help(c->l->diag, "\"*.bias\", or a list of such: `*` stands for any text");
            return NULL;
        }
        strbuf_printf(&text, "%s%s", i ? "\n" : "", list.data[i].s);
    }
    return text.text ? text.text : "";
}

/* lr = 0.1, 10%, or a schedule. */
static bool group_rate(BuiltinCall *c, GroupSpec *s)
{
    const Val v = c->arg[LR];
    s->lr_span = c->arg_span[LR];
    if (v.kind == VAL_SCHEDULE) {
        s->schedule = v.schedule;
        return true;
    }
    s->has_lr = val_is_number(v);
    s->has_lr_part = v.kind == VAL_PERCENT;
    s->lr = s->has_lr ? val_number(v) : s->has_lr_part ? v.f / 100 : 0;
    if (s->lr < 0) {
        elab_error(c->l, s->lr_span, "E105", "`lr` is at least 0, got %s",
                   number_text(c->l->pool, s->lr));
        return false;
    }
    if (!s->has_lr && !s->has_lr_part && v.kind != VAL_NONE) {
        if (elab_error(c->l, s->lr_span, "E205", "`lr` is a number, a percentage or a schedule"))
            diag_help(c->l->diag, "0.01 in place of the optimizer's, 10%% of it, or cosine(0.01)");
        return false;
    }
    return true;
}

static bool group_numbers(BuiltinCall *c, GroupSpec *s)
{
    static const char *const names[] = {"weight_decay", "clip", "clip_value"};
    bool *const has[] = {&s->has_weight_decay, &s->has_clip, &s->has_clip_value};
    double *const value[] = {&s->weight_decay, &s->clip, &s->clip_value};
    for (int i = 0; i < 3; i++) {
        *has[i] = arg_given(c, WEIGHT_DECAY + i);
        if (*has[i] && !arg_in_bounds(c, WEIGHT_DECAY + i, names[i], 0, (double)INFINITY))
            return false;
        *value[i] = *has[i] ? arg_float(c, WEIGHT_DECAY + i) : 0;
    }
    return true;
}

static bool group_optim(BuiltinCall *c, GroupSpec *s)
{
    const Val v = c->arg[OPTIM];
    if (v.kind == VAL_OPTIM)
        s->optim = v.optim;
    if (v.kind != VAL_NONE && v.kind != VAL_OPTIM) {
        elab_error(c->l, c->arg_span[OPTIM], "E205", "`optim` is an optimizer, got %s",
                   val_kind_name(v.kind));
        return false;
    }
    return true;
}

static bool says_something(BuiltinCall *c, const GroupSpec *s)
{
    bool settings = s->schedule || s->has_lr || s->has_lr_part || s->has_weight_decay ||
                    s->has_clip || s->has_clip_value || s->optim;
    if (s->frozen && settings)
        elab_error(c->l, c->span, "E206", "a frozen group has no other settings");
    else if (!s->frozen && !settings)
        elab_error(c->l, c->span, "E206",
                   "the group changes nothing: give it lr, weight_decay, clip, clip_value, optim "
                   "or frozen = true");
    return s->frozen != settings;
}

Val builtin_group(BuiltinCall *c)
{
    GroupSpec *s = POOL_NEW(c->l->pool, GroupSpec);
    *s = (GroupSpec){.span = c->span, .pattern_span = c->arg_span[PATTERN]};
    s->pattern = arg_patterns(c, PATTERN);
    s->matrices_only = call_word_is(c, ON, "matrices");
    s->vectors_only = call_word_is(c, ON, "vectors");
    s->frozen = arg_bool(c, FROZEN);
    if (!s->pattern || !group_rate(c, s) || !group_numbers(c, s) || !group_optim(c, s) ||
        !says_something(c, s))
        return val_poison();
    return (Val){.kind = VAL_GROUP, .group = s};
}

/* ---- what a group's rule is ---- */

/* A number takes the place of the rate that the schedule falls from: the whole is scaled. */
static bool scale_rate(Elab *l, const GroupSpec *s, LrSchedule *lr)
{
    double scale = lr->scale != 0 ? lr->scale : 1;
    if (s->has_lr && lr->base == 0) {
        if (elab_error(l, s->lr_span, "E206",
                       "the optimizer's rate has no number that this one could take the place of"))
            diag_help(l->diag, "give a part of it, lr = 10%%, or a schedule, lr = constant(%g)",
                      s->lr);
        return false;
    }
    if (s->lr == 0)
        *lr = (LrSchedule){.kind = LR_CONSTANT};
    else if (s->has_lr)
        lr->scale = s->lr / lr->base;
    else
        lr->scale = scale * s->lr;
    return true;
}

/* base: the rule of those in no group. */
static bool make_rule(Elab *l, const GroupSpec *s, const UpdateRule *base, ParamGroup *out)
{
    UpdateRule *rule = &out->rule;
    *rule = s->optim ? *s->optim : *base;
    out->own_lr = s->optim || s->schedule || s->has_lr || s->has_lr_part;
    out->own_clip = s->has_clip || (s->optim && s->optim->clip > 0);
    if (s->schedule)
        rule->lr = *s->schedule;
    rule->lr.in_epochs = base->lr.in_epochs;
    if ((s->has_lr || s->has_lr_part) && !scale_rate(l, s, &rule->lr))
        return false;
    if (s->has_weight_decay) {
        rule->weight_decay = s->weight_decay;
        rule->decay_matrices_only = false;
    }
    if (s->has_clip)
        rule->clip = s->clip;
    if (s->has_clip_value)
        rule->clip_value = s->clip_value;
    bool clips = out->own_clip || rule->clip_value > 0;
    if (rule->gradient_free != base->gradient_free || (rule->gradient_free && clips)) {
        elab_error(l, s->span, "E206",
                   "gradient_free is for all parameters of a step, and excludes clipping");
        return false;
    }
    return true;
}

/* ---- which parameters it has ---- */

Paths elab_paths(Elab *l)
{
    Paths paths = {0};
    for (size_t i = 0; i < l->g->nodes.len; i++) {
        const Node *n = &l->g->nodes.data[i];
        if (n->op == OP_param)
            vec_push(
                l->pool, &paths,
                ((Path){graph_value(l->g, n->out[0])->name + 1, value_type(l->g, n->out[0])->rank,
                        n->out[0], elab_value_span(l, n->out[0])}));
    }
    return paths;
}

/* A path, and patterns of what begins or ends as it does, nearest to what was written. */
static const char *nearest_pattern(Elab *l, const Paths *paths, const char *pattern)
{
    VEC(const char *) words = {0};
    for (size_t i = 0; i < paths->len; i++) {
        const char *path = paths->data[i].text;
        vec_push(l->pool, &words, path);
        for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.')) {
            vec_push(l->pool, &words, pool_printf(l->pool, "%.*s.*", (int)(dot - path), path));
            vec_push(l->pool, &words, pool_printf(l->pool, "*%s", dot));
        }
    }
    return nearest_word(pattern, words.data, words.len);
}

void report_no_path(Elab *l, Span span, const Paths *paths, const char *pattern, const char *which)
{
    enum { SHOWN = 4 };
    if (l->incomplete) /* it may be called like one that a mistake in the model has cost */
        return;
    if (!elab_error(l, span, "E203", "no parameter is called like \"%s\"%s", pattern, which))
        return;
    if (paths->len == 0) {
        diag_help(l->diag, "the model has no parameters at all");
        return;
    }
    const char *near = nearest_pattern(l, paths, pattern);
    if (near && !train_pattern_fits(near, pattern)) {
        diag_help(l->diag, "did you mean \"%s\"?", near);
        return;
    }
    StrBuf list = strbuf_new(l->pool);
    for (size_t i = 0; i < paths->len && i < SHOWN; i++)
        strbuf_printf(&list, "%s%s", i ? ", " : "", paths->data[i].text);
    diag_help(l->diag, "there are %s%s; `*` stands for any text, dots included", list.text,
              paths->len > SHOWN ? ", ..." : "");
}

/* Every single pattern fits something. */
static bool patterns_fit(Elab *l, const GroupSpec *s, const ParamGroup *group, const Paths *paths)
{
    for (const char *at = group->pattern;;) {
        size_t n = strcspn(at, "\n"), i = 0;
        ParamGroup one = {.pattern = pool_strndup(l->pool, at, n),
                          .matrices_only = group->matrices_only,
                          .vectors_only = group->vectors_only};
        while (i < paths->len && !train_group_fits(&one, paths->data[i].text, paths->data[i].rank))
            i++;
        if (i == paths->len) {
            report_no_path(l, s->pattern_span, paths, one.pattern,
                           s->matrices_only  ? " and has two dimensions or more"
                           : s->vectors_only ? " and has less than two dimensions"
                                             : "");
            return false;
        }
        if (!at[n])
            return true;
        at += n + 1;
    }
}

static bool has_members(const TrainSpec *t, const Paths *paths, int group)
{
    for (size_t i = 0; i < paths->len; i++)
        if (train_group_of(t, paths->data[i].text, paths->data[i].rank) == group)
            return true;
    return false;
}

/* Muon is for matrices.  A parameter that is none needs a group with another optimizer. */
void check_muon(Elab *l, const TrainSpec *t, Span span)
{
    Paths paths = elab_paths(l);
    for (size_t i = 0; i < paths.len; i++) {
        const Path *p = &paths.data[i];
        int group = train_group_of(t, p->text, p->rank);
        const UpdateRule *rule = group < 0 ? &t->rule : &t->group[group].rule;
        if (rule->optim != OPTIM_MUON || p->rank >= 2)
            continue;
        if (elab_error(l, span, "E206", "muon is for matrices, and %s has %d dimension%s", p->text,
                       p->rank, p->rank == 1 ? "" : "s"))
            diag_help(l->diag, "groups = [group(\"*\", on = vectors, optim = adamw(lr = 3e-4))]");
        return;
    }
}

/* The parameters of each loss that fit: groups of their own, since their rules follow from its
 * optimizer's. */
static bool add_group(Elab *l, const GroupSpec *s, const Paths *paths, TrainSpec *t,
                      ParamGroup *group)
{
    ParamGroup made = {.pattern = s->pattern,
                       .matrices_only = s->matrices_only,
                       .vectors_only = s->vectors_only,
                       .frozen = s->frozen};
    bool any = false;
    if (!patterns_fit(l, s, &made, paths))
        return false;
    for (int goal = 0; goal == 0 || goal < t->n_goals; goal++) {
        const UpdateRule *base = goal ? l->train->goals.data[goal].optim : &t->rule;
        UpdateRule timed = *base;
        timed.lr.in_epochs = t->rule.lr.in_epochs;
        made.goal = goal;
        if (!s->frozen && !make_rule(l, s, &timed, &made))
            return false;
        group[t->n_groups++] = made;
        if (has_members(t, paths, t->n_groups - 1))
            any = true;
        else
            t->n_groups--;
    }
    if (!any && (!s->frozen || t->n_goals == 0))
        elab_error(l, s->pattern_span, "E206",
                   "every parameter that fits belongs to a group before this one");
    return true;
}

static const GroupSpec *group_of(Elab *l, Val v, Span span)
{
    if (v.kind == VAL_GROUP)
        return v.group;
    if (v.kind != VAL_POISON &&
        elab_error(l, span, "E205", "`groups` is a list of groups, got %s", val_kind_name(v.kind)))
        diag_help(l->diag, "groups = [group(\"*.bias\", weight_decay = 0)]");
    return NULL;
}

/* Of the losses but the first: their parameters that are in no group so far. */
static void add_goal_groups(Elab *l, TrainSpec *t, ParamGroup *group)
{
    for (int goal = 1; goal < t->n_goals; goal++) {
        group[t->n_groups] = (ParamGroup){.pattern = t->goal[goal].pattern,
                                          .own_lr = true,
                                          .goal = goal,
                                          .rule = *l->train->goals.data[goal].optim};
        group[t->n_groups++].rule.lr.in_epochs = t->rule.lr.in_epochs;
    }
}

void read_groups(Elab *l, const Binding *groups, TrainSpec *t)
{
    const Val single = groups ? groups->value : val_none();
    ValList list = single.kind == VAL_LIST ? single.list : (ValList){&single, groups ? 1 : 0};
    size_t goals = (size_t)t->n_goals + 1;
    ParamGroup *group = POOL_ARRAY(l->pool, ((size_t)list.len + 1) * goals, ParamGroup);
    Paths paths = elab_paths(l);
    t->group = group;
    for (int i = 0; i < list.len; i++) {
        const GroupSpec *s = group_of(l, list.data[i], groups->span);
        if (!s || !add_group(l, s, &paths, t, group))
            return;
    }
    add_goal_groups(l, t, group);
}
