/* SPDX-License-Identifier: GPL-3.0-or-later */
/* minimize(...): losses with optimizers of their own, in the order in which the section says them.
 * Each becomes a node whose results are the weights as its update leaves them; layers that are
 * called behind it read these. */
#include "frontend/language/elaborate/train_internal.h"

#include <string.h>

enum { LOSS, OPTIM, PARAMS };

/* ---- the call ---- */

/* The variable of the section that holds the loss. */
static const char *variable_of(const TrainState *t, ValueId loss)
{
    const char *name = "loss";
    for (size_t i = 0; i < t->scope->items.len; i++) {
        const Binding *b = &t->scope->items.data[i];
        if (b->value.kind == VAL_TENSOR && b->value.tensor == loss)
            name = b->name;
    }
    return name;
}

/* No other goal has the name. */
static const char *loss_name(Elab *l, ValueId loss)
{
    const char *variable = variable_of(l->train, loss), *name = variable;
    for (int number = 2;; number++) {
        size_t i = 0;
        while (i < l->train->goals.len && strcmp(l->train->goals.data[i].goal.loss, name) != 0)
            i++;
        if (i == l->train->goals.len)
            return name;
        name = pool_printf(l->pool, "%s%d", variable, number);
    }
}

/* A statement that runs several times is one goal. */
static size_t goal_of(BuiltinCall *c)
{
    TrainState *t = c->l->train;
    for (size_t i = 0; i < t->goals.len; i++) {
        Span span = t->goals.data[i].span;
        if (span.file == c->span.file && span.begin == c->span.begin)
            return i;
    }
    const GoalSpec made = {
        .goal = {.loss = loss_name(c->l, arg_tensor(c, LOSS)),
                 .pattern = arg_given(c, PARAMS) ? arg_patterns(c, PARAMS) : "*"},
        .optim = c->arg[OPTIM].optim,
        .span = c->span,
        .pattern_span = arg_given(c, PARAMS) ? c->arg_span[PARAMS] : c->span};
    vec_push(c->l->pool, &t->goals, made);
    return t->goals.len - 1;
}

static bool check_arguments(BuiltinCall *c)
{
    Elab *l = c->l;
    const Type *t = elab_type(l, arg_tensor(c, LOSS));
    if (!l->train || l->block_depth > 0) {
        if (elab_error(l, c->span, "E206", "minimize() stands in the train section itself"))
            diag_help(l->diag, "train { ...; loss = ...; minimize(loss, sgd(lr = 0.1)) }");
        return false;
    }
    if (t->dtype != DTYPE_F32 || t->rank != 0) {
        if (elab_error(l, c->arg_span[LOSS], "E211", "the loss must be one f32 number, got %s",
                       type_text(l->pool, t)))
            diag_help(l->diag, "|> mean()");
        return false;
    }
    if (c->arg[OPTIM].kind != VAL_OPTIM) {
        if (elab_error(l, c->arg_span[OPTIM], "E205", "`optim` is an optimizer, got %s",
                       val_kind_name(c->arg[OPTIM].kind)))
            diag_help(l->diag, "sgd(...), adamw(...), ...");
        return false;
    }
    if (!c->arg[OPTIM].optim->gradient_free)
        return true;
    elab_error(l, c->arg_span[OPTIM], "E206",
               "gradient_free is for the only loss of a section, not for minimize()");
    return false;
}

/* What the loss depends on, but for what stop_gradient hides. */
static const bool *find_reached(Elab *l, ValueId loss)
{
    bool *reached = POOL_ARRAY(l->pool, l->g->values.len, bool);
    reached[loss] = true;
    for (size_t i = l->g->order.len; i-- > 0;) {
        const Node *n = graph_node(l->g, l->g->order.data[i]);
        bool any = false;
        for (int k = 0; k < n->n_out; k++)
            any |= reached[n->out[k]];
        for (int k = 0; any && k < n->n_in && n->op != OP_stop_gradient && n->op != OP_minimize;
             k++)
            reached[n->in[k]] = true;
    }
    return reached;
}

/* The parameters of the goal among all. */
static Paths goal_paths(Elab *l, const GoalSpec *s)
{
    Paths all = elab_paths(l), own = {0};
    for (size_t i = 0; i < all.len; i++)
        if (train_pattern_fits(s->goal.pattern, all.data[i].text))
            vec_push(l->pool, &own, all.data[i]);
    if (own.len == 0)
        report_no_path(l, s->pattern_span, &all, s->goal.pattern, "");
    return own;
}

static bool depends_on_some(BuiltinCall *c, const Paths *own)
{
    Elab *l = c->l;
    const bool *reached = find_reached(l, arg_tensor(c, LOSS));
    for (size_t i = 0; i < own->len; i++) {
        if (reached[own->data[i].value])
            return true;
        for (size_t k = 0; k < l->moved.len; k += 2) /* also as it is by now */
            if (l->moved.data[k] == own->data[i].value && reached[l->moved.data[k + 1]])
                return true;
    }
    if (own->len && elab_error(l, c->span, "E206", "the loss depends on none of its parameters"))
        diag_help(l->diag, "its gradient ends at stop_gradient(); `params` names what it trains");
    return false;
}

static void note_moved(Elab *l, ValueId param, ValueId now)
{
    for (size_t i = 0; i < l->moved.len; i += 2)
        if (l->moved.data[i] == param) {
            l->moved.data[i + 1] = now;
            return;
        }
    vec_push(l->pool, &l->moved, param);
    vec_push(l->pool, &l->moved, now);
}

static void add_node(BuiltinCall *c, size_t goal, const Paths *own)
{
    Elab *l = c->l;
    ValueId *in = POOL_ARRAY(l->pool, own->len + 1, ValueId);
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_goal, (int64_t)goal);
    in[0] = arg_tensor(c, LOSS);
    for (size_t i = 0; i < own->len; i++)
        in[i + 1] = elab_newest(l, own->data[i].value);
    ValueId first = elab_node(l, OP_minimize, in, (int)own->len + 1, &attrs, NULL, c->span);
    if (first == VALUE_NONE)
        return;
    const Node *n = value_node(l->g, first);
    for (size_t i = 0; i < own->len; i++) {
        graph_value(l->g, n->out[i])->writes = own->data[i].value;
        note_moved(l, own->data[i].value, n->out[i]);
    }
}

Val builtin_minimize(BuiltinCall *c)
{
    if (c->l->train)
        c->l->train->minimizes = true;
    if (!check_arguments(c))
        return val_poison();
    size_t goal = goal_of(c);
    GoalSpec *s = &c->l->train->goals.data[goal];
    if (!s->goal.pattern) {
        s->goal.pattern = "*";
        return val_poison();
    }
    Paths own = goal_paths(c->l, s);
    if (!depends_on_some(c, &own))
        return val_poison();
    s->loss = arg_tensor(c, LOSS);
    s->goal.per_step++;
    if (c->l->mode == FRONTEND_TRAIN)
        add_node(c, goal, &own);
    return val_none();
}

/* ---- all of them ---- */

static bool is_frozen(const Elab *l, const Path *p)
{
    const Binding *groups = scope_own(l->train->scope, "groups");
    if (!groups)
        return false;
    const Val single = groups->value;
    ValList list = single.kind == VAL_LIST ? single.list : (ValList){&single, 1};
    for (int i = 0; i < list.len; i++) {
        const GroupSpec *s = list.data[i].kind == VAL_GROUP ? list.data[i].group : NULL;
        const ParamGroup group = {.pattern = s ? s->pattern : "",
                                  .matrices_only = s && s->matrices_only,
                                  .vectors_only = s && s->vectors_only};
        if (s && train_group_fits(&group, p->text, p->rank))
            return s->frozen;
    }
    return false;
}

/* A parameter belongs to one goal, unless it is frozen. */
static bool check_goals(Elab *l, const Path *p)
{
    const GoalSpec *first = NULL;
    for (size_t i = 0; i < l->train->goals.len; i++) {
        const GoalSpec *s = &l->train->goals.data[i];
        if (!train_pattern_fits(s->goal.pattern, p->text))
            continue;
        if (!first) {
            first = s;
            continue;
        }
        if (elab_error(l, s->pattern_span, "E206", "`%s` is trained by two losses, %s and %s",
                       p->text, first->goal.loss, s->goal.loss)) {
            diag_note(l->diag, first->pattern_span, "the other one");
            diag_help(l->diag, "minimize their sum, or name in `params` what each one trains");
        }
        return false;
    }
    if (first || is_frozen(l, p) || diag_error_count(l->diag)) /* which may be of a minimize */
        return true;
    if (elab_error(l, p->span, "E206", "no `minimize` trains `%s`", p->text))
        diag_help(l->diag,
                  "name it in `params`, or freeze it: groups = group(\"%s\", frozen = true)",
                  p->text);
    return false;
}

void read_goals(Elab *l, TrainSpec *t)
{
    size_t n = l->train->goals.len;
    if (n == 0)
        return;
    TrainGoal *goal = POOL_ARRAY(l->pool, n, TrainGoal);
    for (size_t i = 0; i < n; i++)
        goal[i] = l->train->goals.data[i].goal;
    t->goal = goal;
    t->n_goals = (int)n;
    t->rule = *l->train->goals.data[0].optim;
    Paths paths = elab_paths(l);
    for (size_t i = 0; i < paths.len; i++)
        if (!check_goals(l, &paths.data[i]))
            return;
}
