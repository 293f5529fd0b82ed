/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Statements. */
#include "frontend/language/elaborate/elaborate.h"

#include "frontend/language/elaborate/builtins.h"

#include <string.h>

/* Names that a skipped body would have set become poison, so that they are not "unknown" later. */
static void poison_assigned(Elab *l, Frame *f, const Body *body)
{
    for (int i = 0; i < body->len; i++) {
        const Stmt *s = body->stmts[i];
        if (s->kind == STMT_ASSIGN)
            for (int k = 0; k < s->assign.targets.len; k++)
                scope_set(l->pool, f->scope, s->assign.targets.data[k].text, val_poison(), s->span);
        else if (s->kind == STMT_FOR)
            poison_assigned(l, f, &s->loop.body);
        else if (s->kind == STMT_WITH)
            poison_assigned(l, f, &s->with.body);
        else if (s->kind == STMT_RETURN)
            f->returned = true;
        else if (s->kind == STMT_IF) {
            for (int k = 0; k < s->branch.len; k++)
                poison_assigned(l, f, &s->branch.arms[k].body);
            if (s->branch.has_else)
                poison_assigned(l, f, &s->branch.else_body);
        }
    }
}

static void exec_skipped(Elab *l, Frame *f, const Body *body)
{
    poison_assigned(l, f, body);
    l->incomplete = true;
    f->result = val_poison();
    if (f->seq)
        f->seq->value = val_poison();
}

static RematHint hint_of(Elab *l, const AnnotList *annots)
{
    RematHint hint = l->hint;
    for (int i = 0; i < annots->len; i++) {
        RematHint next = annots->data[i].kind == ANNOT_KEEP ? REMAT_KEEP : REMAT_RECOMPUTE;
        if (i > 0 && next != hint)
            elab_error(l, annots->data[i].span, "E210",
                       "@keep and @recompute contradict each other");
        hint = next;
    }
    return hint;
}

/* ---- stages of a seq ---- */

static void run_stage(Elab *l, Frame *f, const Expr *e)
{
    SeqRun *run = f->seq;
    int64_t number = run->n_stages++;
    LabelState saved;
    if (e->kind == EXPR_LABEL) {
        run->value = eval_call(l, f, e, &run->value, e->span);
        return;
    }
    Val v = val_poison();
    if (label_enter_text(l, pool_printf(l->pool, "%lld", (long long)number), e->span, &saved))
        v = eval_labelled(l, f, e, &run->value, e->span, &saved);
    run->value = v;
    label_leave(l, &saved);
}

static void exec_stage(Elab *l, Frame *f, const Expr *e)
{
    if (e->kind != EXPR_PIPE) {
        run_stage(l, f, e);
        return;
    }
    run_stage(l, f, e->pipe.head);
    for (int i = 0; i < e->pipe.len; i++) {
        RematHint hint = l->hint;
        l->hint = hint_of(l, &e->pipe.stages[i].annots);
        run_stage(l, f, e->pipe.stages[i].call);
        l->hint = hint;
    }
}

/* ---- single statements ---- */

static void exec_return(Elab *l, Frame *f, const Stmt *s)
{
    if (!f->may_return || f->seq) {
        elab_error(l, s->span, "E210",
                   f->seq ? "`return` cannot stand in a seq"
                          : "`return` can only stand in a block or model");
        return;
    }
    Val *items = POOL_ARRAY(l->pool, (size_t)s->returned.len + 1, Val);
    for (int i = 0; i < s->returned.len; i++)
        items[i] = eval_expr(l, f, s->returned.data[i]);
    f->returned = true;
    f->result = s->returned.len == 1 ? items[0] : val_list(items, s->returned.len);
}

static void exec_for(Elab *l, Frame *f, const Stmt *s)
{
    Val over = eval_expr(l, f, s->loop.iterable);
    if (!want_list(l, over, s->loop.iterable->span, "what `for` goes over")) {
        exec_skipped(l, f, &s->loop.body);
        return;
    }
    for (int i = 0; i < over.list.len && !f->returned && elab_step(l, s->span); i++) {
        bind_names(l, f->scope, &s->loop.names, over.list.data[i], s->loop.iterable->span);
        exec_body(l, f, &s->loop.body);
    }
}

static void exec_if(Elab *l, Frame *f, const Stmt *s)
{
    for (int i = 0; i < s->branch.len; i++) {
        const IfArm *arm = &s->branch.arms[i];
        bool c;
        if (!want_bool(l, eval_expr(l, f, arm->condition), arm->condition->span, "a condition",
                       &c)) {
            for (int k = i; k < s->branch.len; k++)
                exec_skipped(l, f, &s->branch.arms[k].body);
            if (s->branch.has_else)
                exec_skipped(l, f, &s->branch.else_body);
            return;
        }
        if (c) {
            exec_body(l, f, &arm->body);
            return;
        }
    }
    if (s->branch.has_else)
        exec_body(l, f, &s->branch.else_body);
}

static void exec_with(Elab *l, Frame *f, const Stmt *s)
{
    const InitSetting *saved = l->init;
    Val v = eval_expr(l, f, s->with.setting);
    if (v.kind == VAL_SETTING)
        l->init = v.setting;
    else if (v.kind != VAL_POISON)
        elab_error(l, s->with.setting->span, "E205", "`with` wants init(...), got %s",
                   val_kind_name(v.kind));
    exec_body(l, f, &s->with.body);
    l->init = saved;
}

/* PyTorch's fans of a weight [out, in, ...]. */
static void fans(const Type *t, int64_t *fan_in, int64_t *fan_out)
{
    int64_t field = 1;
    for (int i = 2; i < t->rank; i++)
        field *= t->dim[i];
    *fan_out = (t->rank > 0 ? t->dim[0] : 1) * field;
    *fan_in = (t->rank > 1 ? t->dim[1] : t->rank > 0 ? t->dim[0] : 1) * field;
}

/* A layer of the library needs a label, as one of builtins.def does. */
static bool lacks_label(Elab *l, const Stmt *s)
{
    if (!l->unlabelled || !ast_in_library(l->ast, s->span))
        return false;
    const char *name = l->unlabelled->name.text;
    if (elab_error(l, s->span, "E201", "layer has parameters but no label"))
        diag_help(l->diag, "fix: `%s1: %s(...)`", name, name);
    return true;
}

static void exec_declare(Elab *l, Frame *f, const Stmt *s)
{
    static const InitSpec zeros = {.kind = INIT_ZEROS};
    static const InitSpec linear = {.kind = INIT_FAN_IN};
    Type type;
    bool ok = !lacks_label(l, s) && eval_type(l, f, s->declare.type, &type);
    const InitSpec *init = ok && s->kind == STMT_PARAM && type.rank >= 2 ? &linear : &zeros;
    if (s->declare.init)
        ok &= builtin_as_init(l, eval_expr(l, f, s->declare.init), s->declare.init->span, &init);
    if (ok && s->kind == STMT_PARAM && !dtype_is_float(type.dtype)) {
        elab_error(l, s->declare.type->span, "E104", "a parameter is f32, not %s",
                   dtype_name(type.dtype));
        ok = false;
    }
    Val v = val_poison();
    if (ok) {
        int64_t fan_in, fan_out;
        fans(&type, &fan_in, &fan_out);
        v = val_tensor(elab_parameter(l, s->kind == STMT_PARAM ? OP_param : OP_buffer,
                                      s->declare.name.text, type, init, fan_in, fan_out, s->span));
    }
    l->incomplete |= v.kind == VAL_POISON;
    scope_set(l->pool, f->scope, s->declare.name.text, v, s->declare.name.span);
}

/* What follows an assertion counts on it: one that fails ends its block, seq or section. */
static void exec_assert(Elab *l, Frame *f, const Stmt *s)
{
    bool holds;
    const Expr *e = s->assertion.condition;
    if (!want_bool(l, eval_expr(l, f, e), e->span, "what `assert` checks", &holds) || holds)
        return;
    Val text = s->assertion.message ? eval_expr(l, f, s->assertion.message) : val_none();
    bool says = text.kind == VAL_STRING, inside = *l->path;
    elab_error(l, e->span, "E207", "assertion failed%s%s%s%s%s", says ? ": " : "",
               says ? text.s : "", inside ? " (in " : "", l->path, inside ? ")" : "");
    l->incomplete = true;
    f->returned = true;
    f->result = val_poison();
    if (f->seq)
        f->seq->value = val_poison();
}

/* A key of the train section for which one kind of function is there. */
static const char *wanted_by_key(const Elab *l, const Stmt *s)
{
    const char *name = s->assign.targets.len == 1 ? s->assign.targets.data[0].text : "";
    if (!l->train || l->block_depth)
        return NULL;
    return strcmp(name, "optim") == 0 ? "sgd" : strcmp(name, "batch") == 0 ? "mnist" : NULL;
}

static void exec_assign(Elab *l, Frame *f, const Stmt *s)
{
    l->wanted = s->assign.value->kind == EXPR_CALL ? wanted_by_key(l, s) : NULL;
    Val v = eval_expr(l, f, s->assign.value);
    l->wanted = NULL;
    bind_names(l, f->scope, &s->assign.targets, v, s->assign.value->span);
}

/* A value that is not kept: a call may be there for its parameters or its messages, anything else
 * is the rest of a line that was meant to go on. */
static void exec_value(Elab *l, Frame *f, const Expr *e)
{
    bool calls = e->kind == EXPR_CALL || e->kind == EXPR_PIPE || e->kind == EXPR_LABEL ||
                 e->kind == EXPR_SEQ;
    eval_expr(l, f, e);
    if (!calls && elab_error(l, e->span, "E210", "nothing reads this value"))
        diag_help(l->diag, e->kind == EXPR_UNARY
                               ? "to go on with the line before, end that one with the operator"
                               : "name it: y = ...");
}

static void exec_stmt(Elab *l, Frame *f, const Stmt *s)
{
    switch (s->kind) {
    case STMT_ASSIGN:
        exec_assign(l, f, s);
        break;
    case STMT_EXPR:
        if (f->seq)
            exec_stage(l, f, s->expr);
        else
            exec_value(l, f, s->expr);
        break;
    case STMT_RETURN:
        exec_return(l, f, s);
        break;
    case STMT_FOR:
        exec_for(l, f, s);
        break;
    case STMT_IF:
        exec_if(l, f, s);
        break;
    case STMT_WITH:
        exec_with(l, f, s);
        break;
    case STMT_PARAM:
    case STMT_BUFFER:
        exec_declare(l, f, s);
        break;
    case STMT_ASSERT:
        exec_assert(l, f, s);
        break;
    }
}

void exec_body(Elab *l, Frame *f, const Body *body)
{
    for (int i = 0; i < body->len && !f->returned; i++) {
        const Stmt *s = body->stmts[i];
        if (!elab_step(l, s->span))
            return;
        RematHint hint = l->hint;
        l->hint = hint_of(l, &s->annots);
        exec_stmt(l, f, s);
        l->hint = hint;
    }
}
