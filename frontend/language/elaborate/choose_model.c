/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which model of a file is meant, and how its train section calls it. */
#include "frontend/language/elaborate/elaborate.h"

#include <string.h>

typedef struct ModelSearch {
    const Ast *ast;
    const BlockDecl *wanted; /* NULL: any */
    const BlockDecl *found;
    const LabelPath *label; /* of the call, so that parameters have the same names everywhere */
} ModelSearch;

static bool search_expr(void *context, Expr *e);

static bool search_body(ModelSearch *s, const Body *body);

static bool search_stmt(ModelSearch *s, const Stmt *st)
{
    switch (st->kind) {
    case STMT_ASSIGN:
        return search_expr(s, st->assign.value);
    case STMT_EXPR:
        return search_expr(s, st->expr);
    case STMT_FOR:
        return search_body(s, &st->loop.body);
    case STMT_WITH:
        return search_body(s, &st->with.body);
    case STMT_IF:
        for (int i = 0; i < st->branch.len; i++)
            if (!search_body(s, &st->branch.arms[i].body))
                return false;
        return !st->branch.has_else || search_body(s, &st->branch.else_body);
    case STMT_RETURN:
    case STMT_PARAM:
    case STMT_BUFFER:
    case STMT_ASSERT:
        return true;
    }
    return true;
}

static bool search_body(ModelSearch *s, const Body *body)
{
    for (int i = 0; i < body->len; i++)
        if (!search_stmt(s, body->stmts[i]))
            return false;
    return true;
}

static bool calls_model(const Expr *call, const BlockDecl *model)
{
    return call->kind == EXPR_CALL && call->call.callee->kind == EXPR_NAME &&
           strcmp(call->call.callee->name, model->name.text) == 0;
}

/* ast_each_child's form: false stops, with the model found. */
static bool search_expr(void *context, Expr *e)
{
    ModelSearch *s = context;
    if (e->kind == EXPR_NAME) {
        const BlockDecl *b = ast_find_block(s->ast, e->name);
        if (b && b->is_model && (!s->wanted || b == s->wanted))
            s->found = b;
    } else {
        ast_each_child(e, search_expr, s);
        if (s->found && !s->label && e->kind == EXPR_LABEL && calls_model(e->label.call, s->found))
            s->label = &e->label.path;
    }
    return !s->found;
}

static const BlockDecl *named_model(Elab *l, const char *name)
{
    const BlockDecl *b = ast_find_block(l->ast, name);
    if (b && b->is_model)
        return b;
    diag_error(l->diag, (Span){0}, "E211", "there is no model `%s` in %s", name, l->ast->name);
    VEC(const char *) names = {0};
    for (int i = 0; i < l->ast->n_blocks; i++)
        if (l->ast->blocks[i].is_model)
            vec_push(l->pool, &names, l->ast->blocks[i].name.text);
    const char *near = nearest_word(name, names.data, names.len);
    if (near)
        diag_help(l->diag, "did you mean `%s`?", near);
    return NULL;
}

const BlockDecl *elab_choose_model(Elab *l, const FrontendOptions *options, ModelCall *call)
{
    ModelSearch s = {.ast = l->ast};
    if (options->model && !(s.wanted = named_model(l, options->model)))
        return NULL;
    if (l->ast->train)
        search_body(&s, &l->ast->train->body);
    *call = (ModelCall){s.found != NULL, s.label};
    if (s.wanted)
        return s.wanted;
    int n = 0;
    const BlockDecl *only = NULL;
    for (int i = 0; i < l->ast->n_blocks; i++) {
        if (l->ast->blocks[i].is_model) {
            only = &l->ast->blocks[i];
            n++;
        }
    }
    if (s.found || n == 1)
        return s.found ? s.found : only;
    diag_error(l->diag, (Span){0}, "E211",
               n ? "%s has several models and no train section that uses one" : "%s has no model",
               l->ast->name);
    diag_help(l->diag, n ? "name one on the command line" : "model net(x: f32[N, 784]) { ... }");
    return NULL;
}
