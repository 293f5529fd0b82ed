/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/language/syntax/ast.h"

#include <string.h>

const OptionDecl *ast_find_option(const Ast *ast, const char *name)
{
    const uint64_t *at = map_find(&ast->option_index, name);
    return at ? &ast->options[*at] : NULL;
}

bool ast_in_library(const Ast *ast, Span span)
{
    for (int i = 0; i < ast->n_library_files; i++)
        if (ast->library_files[i] == span.file)
            return true;
    return false;
}

const BlockDecl *ast_find_block(const Ast *ast, const char *name)
{
    const uint64_t *at = map_find(&ast->block_index, name);
    return at ? &ast->blocks[*at] : NULL;
}

const char *ast_binary_name(BinaryOp op)
{
    static const char *const names[] = {
        [BINARY_OR] = "or",    [BINARY_AND] = "and", [BINARY_EQ] = "==",     [BINARY_NE] = "!=",
        [BINARY_LT] = "<",     [BINARY_GT] = ">",    [BINARY_LE] = "<=",     [BINARY_GE] = ">=",
        [BINARY_ADD] = "+",    [BINARY_SUB] = "-",   [BINARY_CONCAT] = "++", [BINARY_MUL] = "*",
        [BINARY_MATMUL] = "@", [BINARY_DIV] = "/",   [BINARY_IDIV] = "//",   [BINARY_MOD] = "mod",
        [BINARY_POW] = "**",
    };
    return names[op];
}

const char *ast_unary_name(UnaryOp op)
{
    return op == UNARY_NEG ? "-" : "not";
}

Span ast_span_join(Span a, Span b)
{
    if (a.file != b.file)
        return a;
    Span joined = {a.file, a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
    return joined;
}

typedef bool Visit(void *context, Expr *child);

static bool visit_if(Expr *child, Visit *visit, void *context)
{
    return !child || visit(context, child);
}

static bool each_index(const Expr *e, Visit *visit, void *context)
{
    if (!visit(context, e->index.base))
        return false;
    for (int i = 0; i < e->index.len; i++) {
        const Index *item = &e->index.items[i];
        if (!visit_if(item->at, visit, context) || !visit_if(item->lo, visit, context) ||
            !visit_if(item->hi, visit, context))
            return false;
    }
    return true;
}

static bool each_call(const Expr *e, Visit *visit, void *context)
{
    if (!visit(context, e->call.callee))
        return false;
    for (int i = 0; i < e->call.n_args; i++)
        if (!visit(context, e->call.args[i].value))
            return false;
    return true;
}

static bool each_label(const Expr *e, Visit *visit, void *context)
{
    for (int i = 0; i < e->label.path.len; i++)
        if (!visit_if(e->label.path.parts[i].expr, visit, context))
            return false;
    return visit(context, e->label.call);
}

static bool each_match(const Expr *e, Visit *visit, void *context)
{
    if (!visit(context, e->match.subject))
        return false;
    for (int i = 0; i < e->match.len; i++) {
        const MatchArm *arm = &e->match.arms[i];
        for (int k = 0; k < arm->values.len; k++)
            if (!visit(context, arm->values.data[k]))
                return false;
        if (!visit(context, arm->result))
            return false;
    }
    return true;
}

static bool each_link(const Expr *e, Visit *visit, void *context)
{
    if (!visit(context, e->binary.first))
        return false;
    for (int i = 0; i < e->binary.len; i++)
        if (!visit(context, e->binary.links[i].rhs))
            return false;
    return true;
}

static bool each_stage(const Expr *e, Visit *visit, void *context)
{
    if (!visit(context, e->pipe.head))
        return false;
    for (int i = 0; i < e->pipe.len; i++)
        if (!visit(context, e->pipe.stages[i].call))
            return false;
    return true;
}

bool ast_each_child(const Expr *e, Visit *visit, void *context)
{
    switch (e->kind) {
    case EXPR_INT:
    case EXPR_FLOAT:
    case EXPR_BOOL:
    case EXPR_STRING:
    case EXPR_PERCENT:
    case EXPR_SIZE:
    case EXPR_NAME:
    case EXPR_PARAM:
    case EXPR_SEQ:
        return true;
    case EXPR_INTERP:
        for (int i = 0; i < e->interp.len; i++)
            if (!visit_if(e->interp.parts[i].expr, visit, context))
                return false;
        return true;
    case EXPR_LIST:
        for (int i = 0; i < e->list.len; i++)
            if (!visit(context, e->list.data[i]))
                return false;
        return true;
    case EXPR_COMP:
        return visit(context, e->comp.element) && visit(context, e->comp.iterable);
    case EXPR_CALL:
        return each_call(e, visit, context);
    case EXPR_INDEX:
        return each_index(e, visit, context);
    case EXPR_FIELD:
        return visit(context, e->field.base);
    case EXPR_LABEL:
        return each_label(e, visit, context);
    case EXPR_UNARY:
        return visit(context, e->unary.operand);
    case EXPR_BINARY:
        return each_link(e, visit, context);
    case EXPR_RANGE:
        return visit(context, e->range.lo) && visit(context, e->range.hi);
    case EXPR_COND:
        return visit(context, e->cond.then_value) && visit(context, e->cond.condition) &&
               visit(context, e->cond.else_value);
    case EXPR_MATCH:
        return each_match(e, visit, context);
    case EXPR_PIPE:
        return each_stage(e, visit, context);
    }
    return true;
}
