/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `dump --stage=ast`: the tree as indented S-expressions, the same text on every run.  Expressions
 * stay on one line except for pipe stages, seq bodies and match arms. */
#include "frontend/language/syntax/ast.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void print_expr(const Expr *e, FILE *out, int indent);
static void print_stmts(Body body, FILE *out, int indent);

static void new_line(FILE *out, int indent)
{
    fprintf(out, "\n%*s", 2 * indent, "");
}

static void print_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const char *p = text; *p; p++) {
        if (*p == '\n' || *p == '\t')
            fprintf(out, "\\%c", *p == '\n' ? 'n' : 't');
        else
            fprintf(out, strchr("\"\\{}", *p) ? "\\%c" : "%c", *p);
    }
    fputc('"', out);
}

/* The shortest decimal that reads back as the same double. */
static void print_double(double value, FILE *out)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fprintf(out, strpbrk(text, ".e") ? "%s" : "%s.0", text);
}

static void print_names(NameList names, FILE *out)
{
    fputc('(', out);
    for (int i = 0; i < names.len; i++)
        fprintf(out, "%s%s", i ? " " : "", names.data[i].text);
    fputc(')', out);
}

static void print_annots(AnnotList annots, FILE *out)
{
    for (int i = 0; i < annots.len; i++)
        fputs(annots.data[i].kind == ANNOT_KEEP ? "@keep " : "@recompute ", out);
}

/* ---- types ---- */

static void print_dim(const DimExpr *dim, FILE *out, int indent)
{
    if (dim->kind == DIM_EXPR)
        print_expr(dim->expr, out, indent);
    else
        fputs(dim->kind == DIM_ANY ? "_" : "..", out);
}

static void print_type(const TypeExpr *type, FILE *out, int indent)
{
    fprintf(out, "(type %s", type->name ? type->name : "any");
    if (type->has_dims)
        fputs(" [", out);
    for (int i = 0; i < type->n_dims; i++) {
        fputs(i ? " " : "", out);
        print_dim(&type->dims[i], out, indent);
    }
    fputs(type->has_dims ? "])" : ")", out);
}

/* ---- expressions ---- */

static void print_items(ExprList list, FILE *out, int indent)
{
    for (int i = 0; i < list.len; i++) {
        fputc(' ', out);
        print_expr(list.data[i], out, indent);
    }
}

static void print_interp(const Expr *e, FILE *out, int indent)
{
    fputs("(interp", out);
    for (int i = 0; i < e->interp.len; i++) {
        fputc(' ', out);
        if (e->interp.parts[i].expr)
            print_expr(e->interp.parts[i].expr, out, indent);
        else
            print_string(e->interp.parts[i].text, out);
    }
    fputc(')', out);
}

static void print_call(const Expr *e, FILE *out, int indent)
{
    fputs("(call ", out);
    print_expr(e->call.callee, out, indent);
    for (int i = 0; i < e->call.n_args; i++) {
        const Arg *arg = &e->call.args[i];
        fputc(' ', out);
        if (arg->name)
            fprintf(out, "%s=", arg->name);
        print_expr(arg->value, out, indent);
    }
    fputc(')', out);
}

static void print_index(const Index *item, FILE *out, int indent)
{
    if (item->kind == INDEX_AT) {
        print_expr(item->at, out, indent);
        return;
    }
    fputs(item->inclusive ? "(slice=" : "(slice", out);
    for (int i = 0; i < 2; i++) {
        const Expr *end = i ? item->hi : item->lo;
        fputs(end ? " " : " _", out);
        if (end)
            print_expr(end, out, indent);
    }
    fputc(')', out);
}

static void print_indexed(const Expr *e, FILE *out, int indent)
{
    fputs("(index ", out);
    print_expr(e->index.base, out, indent);
    for (int i = 0; i < e->index.len; i++) {
        fputc(' ', out);
        print_index(&e->index.items[i], out, indent);
    }
    fputc(')', out);
}

static void print_label(const Expr *e, FILE *out, int indent)
{
    fputs(e->label.shared ? "(shared (" : "(label (", out);
    for (int i = 0; i < e->label.path.len; i++) {
        const LabelPart *part = &e->label.path.parts[i];
        fputs(i ? " " : "", out);
        if (part->expr)
            print_expr(part->expr, out, indent);
        else
            print_string(part->name, out);
    }
    fputs(") ", out);
    print_expr(e->label.call, out, indent);
    fputc(')', out);
}

/* (+ a b c) when all operators are the same, (infix a + b - c) otherwise. */
static void print_binary(const Expr *e, FILE *out, int indent)
{
    bool mixed = false;
    for (int i = 1; i < e->binary.len; i++)
        mixed |= e->binary.links[i].op != e->binary.links[0].op;
    fprintf(out, "(%s ", mixed ? "infix" : ast_binary_name(e->binary.links[0].op));
    print_expr(e->binary.first, out, indent);
    for (int i = 0; i < e->binary.len; i++) {
        fprintf(out, mixed ? " %s " : " ", ast_binary_name(e->binary.links[i].op));
        print_expr(e->binary.links[i].rhs, out, indent);
    }
    fputc(')', out);
}

static void print_three(const char *head, const Expr *a, const Expr *b, const Expr *c, FILE *out,
                        int indent)
{
    fprintf(out, "(%s ", head);
    print_expr(a, out, indent);
    fputc(' ', out);
    print_expr(b, out, indent);
    if (c) {
        fputc(' ', out);
        print_expr(c, out, indent);
    }
    fputc(')', out);
}

static void print_match(const Expr *e, FILE *out, int indent)
{
    fputs("(match ", out);
    print_expr(e->match.subject, out, indent);
    for (int i = 0; i < e->match.len; i++) {
        const MatchArm *arm = &e->match.arms[i];
        new_line(out, indent + 1);
        fputs(arm->values.len ? "(case" : "(default", out);
        print_items(arm->values, out, indent + 1);
        fputs(" => ", out);
        print_expr(arm->result, out, indent + 1);
        fputc(')', out);
    }
    fputc(')', out);
}

static void print_pipe(const Expr *e, FILE *out, int indent)
{
    fputs("(pipe ", out);
    print_expr(e->pipe.head, out, indent + 1);
    for (int i = 0; i < e->pipe.len; i++) {
        new_line(out, indent + 1);
        print_annots(e->pipe.stages[i].annots, out);
        print_expr(e->pipe.stages[i].call, out, indent + 1);
    }
    fputc(')', out);
}

static void print_comp(const Expr *e, FILE *out, int indent)
{
    fputs("(for ", out);
    print_names(e->comp.names, out);
    fputc(' ', out);
    print_expr(e->comp.iterable, out, indent);
    fputc(' ', out);
    print_expr(e->comp.element, out, indent);
    fputc(')', out);
}

static void print_composite(const Expr *e, FILE *out, int indent)
{
    switch ((int)e->kind) {
    case EXPR_INTERP:
        print_interp(e, out, indent);
        break;
    case EXPR_LIST:
        fputs("(list", out);
        print_items(e->list, out, indent);
        fputc(')', out);
        break;
    case EXPR_COMP:
        print_comp(e, out, indent);
        break;
    case EXPR_CALL:
        print_call(e, out, indent);
        break;
    case EXPR_INDEX:
        print_indexed(e, out, indent);
        break;
    case EXPR_FIELD:
        fputs("(field ", out);
        print_expr(e->field.base, out, indent);
        fprintf(out, " %s)", e->field.name.text);
        break;
    case EXPR_SEQ:
        fputs("(seq", out);
        print_stmts(e->seq.body, out, indent + 1);
        fputc(')', out);
        break;
    case EXPR_LABEL:
        print_label(e, out, indent);
        break;
    case EXPR_UNARY:
        fprintf(out, "(%s ", ast_unary_name(e->unary.op));
        print_expr(e->unary.operand, out, indent);
        fputc(')', out);
        break;
    case EXPR_BINARY:
        print_binary(e, out, indent);
        break;
    case EXPR_RANGE:
        print_three(e->range.inclusive ? "..=" : "..", e->range.lo, e->range.hi, NULL, out, indent);
        break;
    case EXPR_COND:
        print_three("if", e->cond.condition, e->cond.then_value, e->cond.else_value, out, indent);
        break;
    case EXPR_MATCH:
        print_match(e, out, indent);
        break;
    case EXPR_PIPE:
        print_pipe(e, out, indent);
        break;
    default:
        break;
    }
}

static void print_expr(const Expr *e, FILE *out, int indent)
{
    switch ((int)e->kind) {
    case EXPR_INT:
        fprintf(out, "%" PRId64, e->int_value);
        break;
    case EXPR_FLOAT:
        print_double(e->float_value, out);
        break;
    case EXPR_BOOL:
        fputs(e->bool_value ? "true" : "false", out);
        break;
    case EXPR_STRING:
        print_string(e->string.text, out);
        break;
    case EXPR_PERCENT:
        fputs("(percent ", out);
        print_double(e->float_value, out);
        fputc(')', out);
        break;
    case EXPR_SIZE:
        fprintf(out, "(bytes %" PRId64 ")", e->int_value);
        break;
    case EXPR_NAME:
        fputs(e->name, out);
        break;
    case EXPR_PARAM:
        fprintf(out, "$%s", e->name);
        break;
    default:
        print_composite(e, out, indent);
    }
}

/* ---- statements ---- */

static void print_block(const char *head, Body body, FILE *out, int indent)
{
    fprintf(out, "(%s", head);
    print_stmts(body, out, indent + 1);
    fputc(')', out);
}

static void print_if(const Stmt *s, FILE *out, int indent)
{
    fputs("(if", out);
    for (int i = 0; i < s->branch.len; i++) {
        new_line(out, indent + 1);
        fputs("(when ", out);
        print_expr(s->branch.arms[i].condition, out, indent + 2);
        print_stmts(s->branch.arms[i].body, out, indent + 2);
        fputc(')', out);
    }
    if (s->branch.has_else) {
        new_line(out, indent + 1);
        print_block("else", s->branch.else_body, out, indent + 1);
    }
    fputc(')', out);
}

static void print_for(const Stmt *s, FILE *out, int indent)
{
    fputs("(for ", out);
    print_names(s->loop.names, out);
    fputc(' ', out);
    print_expr(s->loop.iterable, out, indent + 1);
    print_stmts(s->loop.body, out, indent + 1);
    fputc(')', out);
}

static void print_declare(const Stmt *s, FILE *out, int indent)
{
    fprintf(out, "(%s %s ", s->kind == STMT_PARAM ? "param" : "buffer", s->declare.name.text);
    print_type(s->declare.type, out, indent);
    if (s->declare.init) {
        fputc(' ', out);
        print_expr(s->declare.init, out, indent);
    }
    fputc(')', out);
}

static void print_stmt(const Stmt *s, FILE *out, int indent)
{
    print_annots(s->annots, out);
    switch (s->kind) {
    case STMT_ASSIGN:
        fputs("(let ", out);
        print_names(s->assign.targets, out);
        fputc(' ', out);
        print_expr(s->assign.value, out, indent);
        fputc(')', out);
        break;
    case STMT_EXPR:
        print_expr(s->expr, out, indent);
        break;
    case STMT_RETURN:
        fputs("(return", out);
        print_items(s->returned, out, indent);
        fputc(')', out);
        break;
    case STMT_FOR:
        print_for(s, out, indent);
        break;
    case STMT_IF:
        print_if(s, out, indent);
        break;
    case STMT_WITH:
        fputs("(with ", out);
        print_expr(s->with.setting, out, indent);
        print_stmts(s->with.body, out, indent + 1);
        fputc(')', out);
        break;
    case STMT_PARAM:
    case STMT_BUFFER:
        print_declare(s, out, indent);
        break;
    case STMT_ASSERT:
        fputs("(assert ", out);
        print_expr(s->assertion.condition, out, indent);
        if (s->assertion.message) {
            fputc(' ', out);
            print_expr(s->assertion.message, out, indent);
        }
        fputc(')', out);
        break;
    }
}

static void print_stmts(Body body, FILE *out, int indent)
{
    for (int i = 0; i < body.len; i++) {
        new_line(out, indent);
        print_stmt(body.stmts[i], out, indent);
    }
}

/* ---- the file ---- */

static void print_option(const OptionDecl *o, FILE *out)
{
    fprintf(out, "(option %s ", o->name.text);
    if (o->type) {
        print_type(o->type, out, 0);
        fputc(' ', out);
    }
    print_expr(o->default_value, out, 0);
    if (o->domain) {
        fputs(" in ", out);
        print_expr(o->domain, out, 0);
    }
    if (o->doc) {
        fputc(' ', out);
        print_string(o->doc, out);
    }
    fputs(")\n", out);
}

static void print_decl(const BlockDecl *block, FILE *out)
{
    fprintf(out, "(%s %s", block->is_model ? "model" : "block", block->name.text);
    for (int i = 0; i < block->n_params; i++) {
        const ParamDecl *param = &block->params[i];
        new_line(out, 1);
        fprintf(out, "(arg %s", param->name.text);
        if (param->type) {
            fputc(' ', out);
            print_type(param->type, out, 1);
        }
        if (param->default_value) {
            fputs(" = ", out);
            print_expr(param->default_value, out, 1);
        }
        fputc(')', out);
    }
    print_stmts(block->body, out, 1);
    fputs(")\n", out);
}

void frontend_print_ast(const Ast *ast, FILE *out)
{
    for (int i = 0; i < ast->n_options; i++)
        print_option(&ast->options[i], out);
    for (int i = 0; i < ast->n_blocks; i++)
        print_decl(&ast->blocks[i], out);
    if (ast->train) {
        print_block("train", ast->train->body, out, 0);
        fputc('\n', out);
    }
    if (ast->remat) {
        print_block("remat", ast->remat->body, out, 0);
        fputc('\n', out);
    }
}
