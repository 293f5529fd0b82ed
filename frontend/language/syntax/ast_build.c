/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Builds the nodes of the tree.  Every node knows the height of its subtree; a tree higher than
 * AST_MAX_DEPTH is reported once.  The file then has no tree, so no walk ever meets one. */
#include "frontend/language/syntax/parse_internal.h"

#include <string.h>

/* ---- depth ---- */

static int depth_of(const Expr *e)
{
    return e ? e->depth : 0;
}

static int max_int(int a, int b)
{
    return a > b ? a : b;
}

static int body_depth(Body body)
{
    int depth = 0;
    for (int i = 0; i < body.len; i++)
        depth = max_int(depth, body.stmts[i]->depth);
    return depth;
}

static bool depth_allowed(ParseState *ps, Span span, int depth)
{
    if (depth <= AST_MAX_DEPTH)
        return true;
    if (!ps->too_deep) {
        diag_error(ps->diag, span, "E013", "nested more than %d levels deep", AST_MAX_DEPTH);
        diag_help(ps->diag, "give parts of it names of their own");
    }
    ps->too_deep = true;
    return false;
}

/* Of a node above children of height `below`. */
static uint16_t node_depth(ParseState *ps, Span span, int below)
{
    return (uint16_t)(depth_allowed(ps, span, below + 1) ? below + 1 : 1);
}

static Expr *new_expr(ParseState *ps, ExprKind kind, Span span, int below)
{
    Expr *e = POOL_NEW(ps->pool, Expr);
    e->kind = kind;
    e->span = span;
    e->depth = node_depth(ps, span, below);
    return e;
}

static Stmt *new_stmt(ParseState *ps, StmtKind kind, Span span, int below)
{
    Stmt *s = POOL_NEW(ps->pool, Stmt);
    s->kind = kind;
    s->span = span;
    s->depth = node_depth(ps, span, below);
    return s;
}

/* ---- arrays ---- */

/* Room for one more element in an array of `len` that is full when len is 0 or a power of two. */
static void *chain_room(ParseState *ps, void *data, int len, size_t size)
{
    if (len & (len - 1))
        return data;
    return pool_grow(ps->pool, data, (size_t)len * size, (len ? 2 * (size_t)len : 1) * size);
}

static ExprList expr_list(const ExprVec *v)
{
    return v ? (ExprList){v->data, (int)v->len} : (ExprList){0};
}

static NameList name_list(const NameVec *v)
{
    return (NameList){v->data, (int)v->len};
}

static int list_depth(ExprList list)
{
    int depth = 0;
    for (int i = 0; i < list.len; i++)
        depth = max_int(depth, list.data[i]->depth);
    return depth;
}

static int args_depth(const ArgVec *args)
{
    int depth = 0;
    for (size_t i = 0; i < args->len; i++)
        depth = max_int(depth, args->data[i].value->depth);
    return depth;
}

static int items_depth(const IndexVec *items)
{
    int depth = 0;
    for (size_t i = 0; i < items->len; i++) {
        const Index *item = &items->data[i];
        depth = max_int(depth, depth_of(item->at));
        depth = max_int(depth, max_int(depth_of(item->lo), depth_of(item->hi)));
    }
    return depth;
}

/* ---- expressions ---- */

Expr *build_expr(ParseState *ps, ExprKind kind, Span span)
{
    return new_expr(ps, kind, span, 0);
}

Expr *build_name(ParseState *ps, Span span, const char *name)
{
    Expr *e = new_expr(ps, EXPR_NAME, span, 0);
    e->name = name;
    return e;
}

Expr *build_interp(ParseState *ps, Span span, const InterpVec *parts)
{
    int depth = 0;
    for (size_t i = 0; i < parts->len; i++)
        depth = max_int(depth, depth_of(parts->data[i].expr));
    Expr *e = new_expr(ps, EXPR_INTERP, span, depth);
    e->interp.parts = parts->data;
    e->interp.len = (int)parts->len;
    return e;
}

Expr *build_list(ParseState *ps, Span span, const ExprVec *items)
{
    ExprList list = expr_list(items);
    Expr *e = new_expr(ps, EXPR_LIST, span, list_depth(list));
    e->list = list;
    return e;
}

Expr *build_comp(ParseState *ps, Span span, Expr *element, const NameVec *names, Expr *iterable)
{
    Expr *e = new_expr(ps, EXPR_COMP, span, max_int(element->depth, iterable->depth));
    e->comp.element = element;
    e->comp.names = name_list(names);
    e->comp.iterable = iterable;
    return e;
}

Expr *build_call(ParseState *ps, Span span, Expr *callee, const ArgVec *args)
{
    Expr *e = new_expr(ps, EXPR_CALL, span, max_int(callee->depth, args_depth(args)));
    e->call.callee = callee;
    e->call.args = args->data;
    e->call.n_args = (int)args->len;
    return e;
}

Expr *build_index(ParseState *ps, Span span, Expr *base, const IndexVec *items)
{
    Expr *e = new_expr(ps, EXPR_INDEX, span, max_int(base->depth, items_depth(items)));
    e->index.base = base;
    e->index.items = items->data;
    e->index.len = (int)items->len;
    return e;
}

Expr *build_field(ParseState *ps, Span span, Expr *base, Name name)
{
    Expr *e = new_expr(ps, EXPR_FIELD, span, base->depth);
    e->field.base = base;
    e->field.name = name;
    return e;
}

Expr *build_seq(ParseState *ps, Span span, Body body)
{
    Expr *e = new_expr(ps, EXPR_SEQ, span, body_depth(body));
    e->seq.body = body;
    return e;
}

Expr *build_unary(ParseState *ps, Span span, UnaryOp op, Expr *operand)
{
    Expr *e = new_expr(ps, EXPR_UNARY, span, operand->depth);
    e->unary.op = op;
    e->unary.operand = operand;
    return e;
}

/* Operators of one level share a chain; 0: never. */
static const char chain_level[] = {
    [BINARY_OR] = 1,     [BINARY_AND] = 2,    [BINARY_ADD] = 3, [BINARY_SUB] = 3,
    [BINARY_CONCAT] = 3, [BINARY_MATMUL] = 4, [BINARY_MUL] = 4, [BINARY_DIV] = 4,
    [BINARY_IDIV] = 4,   [BINARY_MOD] = 4,    [BINARY_POW] = 0,
};

static bool extends_chain(const Expr *lhs, BinaryOp op)
{
    return lhs->kind == EXPR_BINARY && !lhs->parens && chain_level[op] &&
           chain_level[lhs->binary.links[0].op] == chain_level[op];
}

/* Counts one more child in a chain's depth. */
static void extend_node(ParseState *ps, Expr *e, Span span, const Expr *child)
{
    e->span = span;
    if (child->depth >= e->depth && depth_allowed(ps, span, child->depth + 1))
        e->depth = (uint16_t)(child->depth + 1);
}

Expr *build_binary(ParseState *ps, Span span, Expr *lhs, BinaryOp op, Span op_span, Expr *rhs)
{
    Expr *e = lhs;
    if (!extends_chain(lhs, op)) {
        e = new_expr(ps, EXPR_BINARY, span, lhs->depth);
        e->binary.first = lhs;
    }
    extend_node(ps, e, span, rhs);
    e->binary.links = chain_room(ps, e->binary.links, e->binary.len, sizeof *e->binary.links);
    e->binary.links[e->binary.len++] = (BinaryLink){op, op_span, rhs};
    return e;
}

Expr *build_pipe(ParseState *ps, Span span, Expr *head, PipeStage stage)
{
    Expr *e = head;
    if (head->kind != EXPR_PIPE || head->parens) {
        e = new_expr(ps, EXPR_PIPE, span, head->depth);
        e->pipe.head = head;
    }
    extend_node(ps, e, span, stage.call);
    e->pipe.stages = chain_room(ps, e->pipe.stages, e->pipe.len, sizeof *e->pipe.stages);
    e->pipe.stages[e->pipe.len++] = stage;
    return e;
}

Expr *build_range(ParseState *ps, Span span, Expr *lo, Expr *hi, bool inclusive)
{
    Expr *e = new_expr(ps, EXPR_RANGE, span, max_int(lo->depth, hi->depth));
    e->range.lo = lo;
    e->range.hi = hi;
    e->range.inclusive = inclusive;
    return e;
}

Expr *build_cond(ParseState *ps, Span span, Expr *then_value, Expr *condition, Expr *else_value)
{
    int depth = max_int(then_value->depth, max_int(condition->depth, else_value->depth));
    Expr *e = new_expr(ps, EXPR_COND, span, depth);
    e->cond.then_value = then_value;
    e->cond.condition = condition;
    e->cond.else_value = else_value;
    return e;
}

Expr *build_match(ParseState *ps, Span span, Expr *subject, const MatchArmVec *arms)
{
    int depth = subject->depth;
    for (size_t i = 0; i < arms->len; i++) {
        depth = max_int(depth, list_depth(arms->data[i].values));
        depth = max_int(depth, arms->data[i].result->depth);
    }
    Expr *e = new_expr(ps, EXPR_MATCH, span, depth);
    e->match.subject = subject;
    e->match.arms = arms->data;
    e->match.len = (int)arms->len;
    return e;
}

Index build_index_item(Span span, Expr *e)
{
    if (e->kind != EXPR_RANGE || e->parens)
        return (Index){.span = span, .kind = INDEX_AT, .at = e};
    return (Index){.span = span,
                   .kind = INDEX_SLICE,
                   .lo = e->range.lo,
                   .hi = e->range.hi,
                   .inclusive = e->range.inclusive};
}

static void name_argument(ParseState *ps, ArgVec *args, const Arg *arg)
{
    if (!args->names.pool)
        args->names = map_new(ps->pool);
    const uint64_t *first = map_find(&args->names, arg->name);
    if (first) {
        diag_error(ps->diag, arg->span, "E015", "argument '%.60s' is given twice", arg->name);
        diag_note(ps->diag, args->data[*first].span, "first here");
    } else {
        map_set(&args->names, arg->name, args->len);
    }
}

void build_add_arg(ParseState *ps, ArgVec *args, Arg arg)
{
    if (arg.name)
        name_argument(ps, args, &arg);
    if (!arg.name && args->len && args->data[args->len - 1].name) {
        diag_error(ps->diag, arg.span, "E015", "a positional argument follows a named one");
        diag_help(ps->diag, "put positional arguments first");
    }
    vec_push(ps->pool, args, arg);
}

/* ---- labels ---- */

typedef VEC(LabelPart) LabelVec;

static void push_indices(ParseState *ps, LabelVec *parts, const Expr *e)
{
    for (int i = e->index.len - 1; i >= 0; i--) {
        const Index *item = &e->index.items[i];
        if (item->kind == INDEX_SLICE)
            diag_error(ps->diag, item->span, "E014", "a label cannot hold a slice");
        vec_push(ps->pool, parts, (LabelPart){.span = item->span, .expr = item->at});
    }
}

/* The parts from last to first; false when e is no label. */
static bool collect_parts(ParseState *ps, LabelVec *parts, Expr *e)
{
    for (;;) {
        switch ((int)e->kind) {
        case EXPR_NAME:
            vec_push(ps->pool, parts, (LabelPart){.span = e->span, .name = e->name});
            return true;
        case EXPR_STRING:
            vec_push(ps->pool, parts, (LabelPart){.span = e->span, .name = e->string.text});
            return true;
        case EXPR_INTERP:
            vec_push(ps->pool, parts, (LabelPart){.span = e->span, .expr = e});
            return true;
        case EXPR_INDEX:
            push_indices(ps, parts, e);
            e = e->index.base;
            break;
        case EXPR_FIELD:
            vec_push(ps->pool, parts,
                     (LabelPart){.span = e->field.name.span, .name = e->field.name.text});
            e = e->field.base;
            break;
        default:
            return false;
        }
    }
}

static LabelPath label_path(ParseState *ps, Expr *label)
{
    LabelVec reversed = {0};
    if (!collect_parts(ps, &reversed, label)) {
        diag_error(ps->diag, label->span, "E014", "this cannot be a label");
        diag_help(ps->diag, "a label is a name, `name[i]`, `name.part` or a string such as "
                            "\"layer{i}\"; slices are written `a..b`");
    }
    LabelPart *parts = POOL_ARRAY(ps->pool, reversed.len, LabelPart);
    for (size_t i = 0; i < reversed.len; i++)
        parts[i] = reversed.data[reversed.len - 1 - i];
    return (LabelPath){label->span, parts, (int)reversed.len};
}

Expr *build_label(ParseState *ps, Span span, bool shared, Expr *label, Expr *call)
{
    if (call->kind == EXPR_LABEL)
        diag_error(ps->diag, call->span, "E014", "a label cannot name another label");
    Expr *e = new_expr(ps, EXPR_LABEL, span, max_int(label->depth, call->depth));
    e->label.shared = shared;
    e->label.path = label_path(ps, label);
    e->label.call = call;
    return e;
}

/* ---- types ---- */

TypeExpr *build_type(ParseState *ps, Span span, const char *name, const DimVec *dims)
{
    TypeExpr *type = POOL_NEW(ps->pool, TypeExpr);
    *type = (TypeExpr){.span = span, .name = name, .has_dims = dims != NULL};
    if (dims) {
        type->dims = dims->data;
        type->n_dims = (int)dims->len;
    }
    return type;
}

TypeExpr *build_words(ParseState *ps, Span span, const char *words)
{
    TypeExpr *type = build_type(ps, span, words, NULL);
    type->words = true;
    return type;
}

static int type_depth(const TypeExpr *type)
{
    int depth = 0;
    for (int i = 0; type && i < type->n_dims; i++)
        depth = max_int(depth, depth_of(type->dims[i].expr));
    return depth;
}

/* ---- statements ---- */

Body build_body(Span span, const StmtVec *stmts)
{
    return (Body){span, stmts->data, (int)stmts->len};
}

Stmt *build_assign(ParseState *ps, Span span, const NameVec *targets, Expr *value)
{
    Stmt *s = new_stmt(ps, STMT_ASSIGN, span, value->depth);
    s->assign.targets = name_list(targets);
    s->assign.value = value;
    return s;
}

Stmt *build_expr_stmt(ParseState *ps, Span span, Expr *e)
{
    Stmt *s = new_stmt(ps, STMT_EXPR, span, e->depth);
    s->expr = e;
    return s;
}

Stmt *build_return(ParseState *ps, Span span, const ExprVec *values)
{
    ExprList list = expr_list(values);
    Stmt *s = new_stmt(ps, STMT_RETURN, span, list_depth(list));
    s->returned = list;
    return s;
}

Stmt *build_for(ParseState *ps, Span span, const NameVec *names, Expr *iterable, Body body)
{
    Stmt *s = new_stmt(ps, STMT_FOR, span, max_int(iterable->depth, body_depth(body)));
    s->loop.names = name_list(names);
    s->loop.iterable = iterable;
    s->loop.body = body;
    return s;
}

Stmt *build_if(ParseState *ps, Span span, const IfArmVec *arms, const Body *else_body)
{
    int depth = else_body ? body_depth(*else_body) : 0;
    for (size_t i = 0; i < arms->len; i++) {
        depth = max_int(depth, arms->data[i].condition->depth);
        depth = max_int(depth, body_depth(arms->data[i].body));
    }
    Stmt *s = new_stmt(ps, STMT_IF, span, depth);
    s->branch.arms = arms->data;
    s->branch.len = (int)arms->len;
    s->branch.has_else = else_body != NULL;
    if (else_body)
        s->branch.else_body = *else_body;
    return s;
}

Stmt *build_with(ParseState *ps, Span span, Expr *setting, Body body)
{
    Stmt *s = new_stmt(ps, STMT_WITH, span, max_int(setting->depth, body_depth(body)));
    s->with.setting = setting;
    s->with.body = body;
    return s;
}

Stmt *build_declare(ParseState *ps, Span span, StmtKind kind, Name name, TypeExpr *type, Expr *init)
{
    Stmt *s = new_stmt(ps, kind, span, max_int(type_depth(type), depth_of(init)));
    s->declare.name = name;
    s->declare.type = type;
    s->declare.init = init;
    return s;
}

Stmt *build_assert(ParseState *ps, Span span, Expr *condition, Expr *message)
{
    Stmt *s = new_stmt(ps, STMT_ASSERT, span, max_int(condition->depth, depth_of(message)));
    s->assertion.condition = condition;
    s->assertion.message = message;
    return s;
}

Stmt *build_annotated(Stmt *stmt, Span span, const AnnotVec *annots)
{
    stmt->span = span;
    stmt->annots = (AnnotList){annots->data, (int)annots->len};
    return stmt;
}
