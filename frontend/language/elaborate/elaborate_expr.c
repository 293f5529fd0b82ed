/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Expressions: names, literals, lists, conditions; calls are in elaborate_call.c, arithmetic in
 * elaborate_math.c, indexing in elaborate_index.c. */
#include "frontend/language/elaborate/elaborate.h"

#include "frontend/language/elaborate/builtins.h"
#include "ir/support/strbuf.h"

#include <math.h>
#include <string.h>

/* ---- what a place wants ---- */

static void report_kind(Elab *l, Val v, Span span, const char *what, const char *wanted)
{
    if (v.kind == VAL_POISON)
        return;
    if (val_is_callable(v)) {
        const char *name = v.kind == VAL_BUILTIN ? v.builtin->name
                           : v.kind == VAL_BLOCK ? v.block->name.text
                                                 : "seq";
        if (elab_error(l, span, "E204", "'%s' is a %s", name,
                       v.kind == VAL_BLOCK ? "block" : "function"))
            diag_help(l->diag, "fix: `%s()`", name);
        return;
    }
    elab_error(l, span, "E205", "%s must be %s, got %s", what, wanted, val_kind_name(v.kind));
}

bool want_tensor(Elab *l, Val v, Span span, const char *what)
{
    if (v.kind != VAL_TENSOR)
        report_kind(l, v, span, what, "a tensor");
    return v.kind == VAL_TENSOR;
}

bool want_int(Elab *l, Val v, Span span, const char *what, int64_t *out)
{
    if (v.kind != VAL_INT)
        report_kind(l, v, span, what, "an int");
    else
        *out = v.i;
    return v.kind == VAL_INT;
}

bool want_bool(Elab *l, Val v, Span span, const char *what, bool *out)
{
    if (v.kind != VAL_BOOL)
        report_kind(l, v, span, what, "true or false");
    else
        *out = v.b;
    return v.kind == VAL_BOOL;
}

bool want_list(Elab *l, Val v, Span span, const char *what)
{
    if (v.kind != VAL_LIST)
        report_kind(l, v, span, what, "a list");
    return v.kind == VAL_LIST;
}

/* ---- names ---- */

/* Element types and infinity: names that are always there, unless bound otherwise. */
static bool constant_name(const char *name, Val *out)
{
    DType dtype;
    if (strcmp(name, "inf") == 0)
        *out = val_float(INFINITY);
    else if (strcmp(name, "none") == 0)
        *out = val_none();
    else if (dtype_from_name(name, &dtype))
        *out = val_string(dtype_name(dtype));
    else
        return false;
    return true;
}

static Val eval_name(Elab *l, Frame *f, const Expr *e)
{
    const Binding *b = scope_find(f->scope, e->name);
    const Builtin *fn = b ? NULL : builtin_find(e->name);
    const char *wanted = l->wanted;
    l->wanted = NULL; /* arguments are of other kinds */
    if (b) {
        train_reads(l, b);
        return b->value;
    }
    if (fn)
        return (Val){.kind = VAL_BUILTIN, .builtin = fn};
    Val v;
    if (constant_name(e->name, &v))
        return v;
    if (report_unset(l, e))
        return val_poison();
    if (elab_error(l, e->span, "E203", "unknown name '%.60s'", e->name))
        elab_suggest_name(l, f->scope, e->name, wanted);
    return val_poison();
}

/* "$a.b.c" without its last component; false at the root. */
static bool parent_path(Elab *l, const char **path)
{
    const char *dot = strrchr(*path, '.');
    bool inside = **path != 0;
    *path = dot ? pool_strndup(l->pool, *path, (size_t)(dot - *path)) : "";
    return inside;
}

/* Whether the parameter would belong to a call that failed: its absence is no second mistake. */
static bool belongs_to_failed(Elab *l, const char *path)
{
    while (parent_path(l, &path))
        if (map_find(&l->failed, path))
            return true;
    return false;
}

/* Looked up like a name: in the current path first, then in the paths around it. */
static Val eval_param(Elab *l, const Expr *e)
{
    const char *path = l->path;
    do {
        const char *full = pool_printf(l->pool, "$%s%s%s", path, *path ? "." : "", e->name);
        ValueId v = elab_find(l, full, e->span);
        if (v != VALUE_NONE || belongs_to_failed(l, full + 1))
            return val_tensor(v);
    } while (parent_path(l, &path));
    if (!elab_error(l, e->span, "E203", "unknown parameter '$%.60s'", e->name))
        return val_poison();
    VEC(const char *) names = {0};
    for (size_t i = 0; i < l->g->nodes.len; i++)
        if (node_is_persistent(&l->g->nodes.data[i]))
            vec_push(l->pool, &names, graph_value(l->g, l->g->nodes.data[i].out[0])->name + 1);
    const char *near = nearest_word(e->name, names.data, names.len);
    if (near)
        diag_help(l->diag, "did you mean `$%s`?", near);
    return val_poison();
}

/* ---- strings and lists ---- */

static Val eval_interp(Elab *l, Frame *f, const Expr *e)
{
    StrBuf text = strbuf_new(l->pool);
    bool ok = true;
    for (int i = 0; i < e->interp.len; i++) {
        const InterpPart *part = &e->interp.parts[i];
        if (!part->expr) {
            strbuf_put(&text, part->text);
            continue;
        }
        Val v = eval_expr(l, f, part->expr);
        if (v.kind == VAL_INT || v.kind == VAL_FLOAT || v.kind == VAL_BOOL || v.kind == VAL_STRING)
            strbuf_put(&text, v.kind == VAL_STRING ? v.s : val_text(l->pool, v));
        else
            ok = false, report_kind(l, v, part->expr->span, "a value in a string",
                                    "an int, float, bool or string");
        if (text.len > ELAB_MAX_TEXT)
            elab_exhaust(l, e->span, "this string grows too long");
    }
    return ok && !l->exhausted ? val_string(text.text ? text.text : "") : val_poison();
}

static Val eval_list(Elab *l, Frame *f, const Expr *e)
{
    Val *items = POOL_ARRAY(l->pool, (size_t)e->list.len + 1, Val);
    for (int i = 0; i < e->list.len; i++)
        items[i] = eval_expr(l, f, e->list.data[i]);
    return val_list(items, e->list.len);
}

bool bind_names(Elab *l, Scope *scope, const NameList *names, Val v, Span span)
{
    if (names->len == 1) {
        scope_set(l->pool, scope, names->data[0].text, v, names->data[0].span);
        return true;
    }
    bool fits = v.kind == VAL_LIST && v.list.len == names->len;
    if (v.kind != VAL_LIST)
        report_kind(l, v, span, "the right side", "a list, to be taken apart");
    else if (!fits)
        elab_error(l, span, "E205", "%d names take apart a list of %d", names->len, v.list.len);
    for (int i = 0; i < names->len; i++)
        scope_set(l->pool, scope, names->data[i].text, fits ? v.list.data[i] : val_poison(),
                  names->data[i].span);
    return fits;
}

static Val eval_comp(Elab *l, Frame *f, const Expr *e)
{
    Val over = eval_expr(l, f, e->comp.iterable);
    if (!want_list(l, over, e->comp.iterable->span, "what a comprehension goes over"))
        return val_poison();
    Val *items = POOL_ARRAY(l->pool, (size_t)over.list.len + 1, Val);
    for (int i = 0; i < over.list.len && elab_step(l, e->span); i++) {
        Frame inner = *f;
        inner.scope = scope_new(l->pool, f->scope);
        bind_names(l, inner.scope, &e->comp.names, over.list.data[i], e->comp.iterable->span);
        items[i] = eval_expr(l, &inner, e->comp.element);
    }
    return l->exhausted ? val_poison() : val_list(items, over.list.len);
}

static Val eval_range(Elab *l, Frame *f, const Expr *e)
{
    int64_t lo = 0, hi = 0, count;
    bool ok = want_int(l, eval_expr(l, f, e->range.lo), e->range.lo->span, "a range's start", &lo);
    ok &= want_int(l, eval_expr(l, f, e->range.hi), e->range.hi->span, "a range's end", &hi);
    if (!ok)
        return val_poison();
    bool huge = __builtin_sub_overflow(hi, lo, &count) ||
                __builtin_add_overflow(count, e->range.inclusive ? 1 : 0, &count);
    if (huge || count > ELAB_MAX_RANGE) {
        elab_error(l, e->span, "E208", "a range may have at most %d elements", ELAB_MAX_RANGE);
        return val_poison();
    }
    count = count < 0 ? 0 : count;
    l->n_steps += count;
    Val *items = POOL_ARRAY(l->pool, (size_t)count + 1, Val);
    for (int64_t i = 0; i < count; i++)
        items[i] = val_int(lo + i);
    return val_list(items, (int)count);
}

/* ---- conditions ---- */

static Val eval_cond(Elab *l, Frame *f, const Expr *e)
{
    bool c;
    Val v = eval_expr(l, f, e->cond.condition);
    if (!want_bool(l, v, e->cond.condition->span, "a condition", &c))
        return val_poison();
    return eval_expr(l, f, c ? e->cond.then_value : e->cond.else_value);
}

static bool arm_matches(Elab *l, Frame *f, const MatchArm *arm, Val subject)
{
    for (int i = 0; i < arm->values.len; i++)
        if (val_equal(subject, eval_expr(l, f, arm->values.data[i])))
            return true;
    return arm->values.len == 0;
}

static Val eval_match(Elab *l, Frame *f, const Expr *e)
{
    Val subject = eval_expr(l, f, e->match.subject);
    if (subject.kind == VAL_POISON)
        return subject;
    for (int i = 0; i < e->match.len; i++)
        if (arm_matches(l, f, &e->match.arms[i], subject))
            return eval_expr(l, f, e->match.arms[i].result);
    if (elab_error(l, e->span, "E205", "no arm of this match fits %s", val_text(l->pool, subject)))
        diag_help(l->diag, "add an arm `_ => ...`");
    return val_poison();
}

/* ---- operators ---- */

/* `and` and `or` stop early when the left side decides. */
static bool decides(BinaryOp op, Val v)
{
    return v.kind == VAL_BOOL && ((op == BINARY_AND && !v.b) || (op == BINARY_OR && v.b));
}

static Val eval_chain(Elab *l, Frame *f, const Expr *e)
{
    Span left = e->binary.first->span;
    Val v = eval_expr(l, f, e->binary.first);
    for (int i = 0; i < e->binary.len; i++) {
        const BinaryLink *link = &e->binary.links[i];
        if (decides(link->op, v))
            return v;
        Val rhs = eval_expr(l, f, link->rhs);
        Span whole = ast_span_join(left, link->rhs->span);
        v = eval_binary(l, link->op, v, rhs, left, link->rhs->span, whole);
        left = whole;
    }
    return v;
}

static Val eval_pipe(Elab *l, Frame *f, const Expr *e)
{
    const Expr *head = e->pipe.head;
    Val v = eval_expr(l, f, head);
    Span span = head->span;
    for (int i = 0; i < e->pipe.len; i++) {
        v = eval_stage(l, f, &e->pipe.stages[i], v, span);
        span = e->pipe.stages[i].span;
    }
    return v;
}

/* ---- fields ---- */

static Val shape_list(Elab *l, const Type *t)
{
    Val *dims = POOL_ARRAY(l->pool, (size_t)t->rank + 1, Val);
    for (int i = 0; i < t->rank; i++)
        dims[i] = val_int(t->dim[i]);
    return val_list(dims, t->rank);
}

static Val eval_field(Elab *l, Frame *f, const Expr *e)
{
    Val base = eval_expr(l, f, e->field.base);
    const char *name = e->field.name.text;
    if (base.kind == VAL_SOURCE)
        return source_field(l, base.source, e->field.name, e->span);
    if (base.kind == VAL_TENSOR && strcmp(name, "shape") == 0)
        return shape_list(l, elab_type(l, base.tensor));
    if (base.kind == VAL_TENSOR && strcmp(name, "rank") == 0)
        return val_int(elab_type(l, base.tensor)->rank);
    if (base.kind == VAL_TENSOR && strcmp(name, "dtype") == 0)
        return val_string(dtype_name(elab_type(l, base.tensor)->dtype));
    if (base.kind != VAL_POISON &&
        elab_error(l, e->field.name.span, "E203", "%s has no field '%s'", val_kind_name(base.kind),
                   name) &&
        base.kind == VAL_TENSOR)
        elab_suggest_method(l, name);
    return val_poison();
}

static Val eval_seq_value(Elab *l, Frame *f, const Expr *e)
{
    SeqClosure *s = POOL_NEW(l->pool, SeqClosure);
    *s = (SeqClosure){e, f->scope};
    return (Val){.kind = VAL_SEQ, .seq = s};
}

Val eval_expr(Elab *l, Frame *f, const Expr *e)
{
    if (!elab_step(l, e->span))
        return val_poison();
    switch (e->kind) {
    case EXPR_INT:
    case EXPR_SIZE:
        return val_int(e->int_value);
    case EXPR_FLOAT:
        return val_float(e->float_value);
    case EXPR_BOOL:
        return val_bool(e->bool_value);
    case EXPR_STRING:
        return val_string(e->string.text);
    case EXPR_INTERP:
        return eval_interp(l, f, e);
    case EXPR_PERCENT:
        return (Val){.kind = VAL_PERCENT, .f = e->float_value};
    case EXPR_NAME:
        return eval_name(l, f, e);
    case EXPR_PARAM:
        return eval_param(l, e);
    case EXPR_LIST:
        return eval_list(l, f, e);
    case EXPR_COMP:
        return eval_comp(l, f, e);
    case EXPR_CALL:
    case EXPR_LABEL:
        return eval_call(l, f, e, NULL, (Span){0});
    case EXPR_INDEX:
        return eval_index(l, f, e);
    case EXPR_FIELD:
        return eval_field(l, f, e);
    case EXPR_SEQ:
        return eval_seq_value(l, f, e);
    case EXPR_UNARY:
        return eval_unary(l, e->unary.op, eval_expr(l, f, e->unary.operand), e->span);
    case EXPR_BINARY:
        return eval_chain(l, f, e);
    case EXPR_RANGE:
        return eval_range(l, f, e);
    case EXPR_COND:
        return eval_cond(l, f, e);
    case EXPR_MATCH:
        return eval_match(l, f, e);
    case EXPR_PIPE:
        return eval_pipe(l, f, e);
    }
    return val_poison();
}
