/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Declared types: sizes that are evaluated, sizes that a block's parameters bind. */
#include "frontend/language/elaborate/elaborate.h"

#include <inttypes.h>
#include <string.h>

static bool dtype_known(Elab *l, const TypeExpr *type, DType *out)
{
    if (dtype_from_name(type->name, out))
        return true;
    static const char *const names[] = {"f32",  "f16", "bf16",  "i32",    "i64", "u8",
                                        "bool", "int", "float", "string", "list"};
    enum { ELEMENTS = 7, ALL = sizeof names / sizeof names[0] };
    if (elab_error(l, type->span, "E203", "unknown type `%s`", type->name)) {
        const char *near = nearest_word(type->name, names, type->has_dims ? ELEMENTS : ALL);
        if (near)
            diag_help(l->diag, "did you mean `%s`?", near);
        else if (type->has_dims)
            diag_help(l->diag, "a tensor is of f32, f16, bf16, i32, i64, u8 or bool");
    }
    return false;
}

bool eval_type(Elab *l, Frame *f, const TypeExpr *type, Type *out)
{
    DType dtype = DTYPE_F32;
    if (type->name && !dtype_known(l, type, &dtype))
        return false;
    *out = (Type){.dtype = dtype};
    bool ok = true;
    for (int i = 0; i < type->n_dims; i++) {
        const DimExpr *d = &type->dims[i];
        int64_t size = 1;
        if (d->kind != DIM_EXPR) {
            elab_error(l, d->span, "E105", "every size must be given here");
            return false;
        }
        bool known = want_int(l, eval_expr(l, f, d->expr), d->span, "a size", &size);
        if (known && size <= 0)
            elab_error(l, d->span, "E105", "a size must be at least 1, got %" PRId64, size);
        if (i >= TYPE_MAX_RANK) {
            elab_error(l, d->span, "E105", "a tensor has at most %d dimensions", TYPE_MAX_RANK);
            return false;
        }
        ok &= known && size > 0;
        out->dim[out->rank++] = size;
    }
    return ok;
}

typedef struct DimCheck {
    Elab *l;
    Frame *f;
    const char *param;
    Span value_span;
    bool bind;
} DimCheck;

static void report_dim(DimCheck *c, const DimExpr *d, const char *name, int64_t got, int64_t want,
                       Span bound)
{
    Elab *l = c->l;
    uint32_t line = 0, column = 0;
    const char *where = "";
    if (bound.file) {
        diag_line_column(l->diag, bound, &line, &column);
        const char *file = strrchr(diag_source_name(l->diag, bound.file), '/');
        file = file ? file + 1 : diag_source_name(l->diag, bound.file);
        where = pool_printf(l->pool, " at %s:%u", file, line);
    }
    if (!elab_error(l, c->value_span, "E101",
                    "dim %s is %" PRId64 " here but %" PRId64 "%s (in %s%s`%s`)", name, got, want,
                    where, l->path, *l->path ? ", " : "", c->param))
        return;
    diag_note(l->diag, d->span, "`%s` is declared here", c->param);
    if (bound.file)
        diag_note(l->diag, bound, "%s = %" PRId64 " comes from here", name, want);
}

/* A block's bare name binds (or must agree); a model's is an option; any other expression must have
 * that value. */
static bool check_dim(DimCheck *c, const DimExpr *d, int at, int64_t got)
{
    Elab *l = c->l;
    int64_t want = 0;
    if (d->kind == DIM_ANY)
        return true;
    if (d->expr->kind != EXPR_NAME) {
        if (!want_int(l, eval_expr(l, c->f, d->expr), d->span, "a size", &want))
            return false;
        if (want == got)
            return true;
        report_dim(c, d, pool_printf(l->pool, "%d", at), got, want, (Span){0});
        return false;
    }
    const char *name = d->expr->name;
    const Binding *b = c->bind ? scope_own(c->f->scope, name) : scope_find(c->f->scope, name);
    if (!b && !c->bind) {
        if (elab_error(l, d->span, "E203", "unknown size `%s`", name))
            diag_help(l->diag,
                      "sizes of a model's inputs are numbers and options: `option %s = "
                      "%" PRId64 "`",
                      name, got);
        return false;
    }
    if (!b) {
        scope_set(l->pool, c->f->scope, name, val_int(got), c->value_span);
        return true;
    }
    Span bound = b->span;
    if (!want_int(l, b->value, d->span, name, &want))
        return false;
    if (want != got)
        report_dim(c, d, name, got, want, bound);
    return want == got;
}

static bool check_rank(DimCheck *c, const TypeExpr *type, const Type *t, int rest)
{
    int fixed = rest >= 0 ? type->n_dims - 1 : type->n_dims;
    if (rest >= 0 ? t->rank >= fixed : t->rank == fixed)
        return true;
    if (elab_error(c->l, c->value_span, "E103", "`%s` wants %s%d dimension%s, got %s", c->param,
                   rest >= 0 ? "at least " : "", fixed, fixed == 1 ? "" : "s",
                   type_text(c->l->pool, t)))
        diag_note(c->l->diag, type->span, "declared here");
    return false;
}

static int rest_index(Elab *l, const TypeExpr *type)
{
    int rest = -1;
    for (int i = 0; i < type->n_dims; i++) {
        if (type->dims[i].kind != DIM_REST)
            continue;
        if (rest >= 0)
            elab_error(l, type->dims[i].span, "E105", "`..` may stand once in a type");
        rest = i;
    }
    return rest;
}

static bool bind_tensor(DimCheck *c, const TypeExpr *type, ValueId v)
{
    Type t = *elab_type(c->l, v);
    DType dtype;
    if (type->name && !dtype_known(c->l, type, &dtype))
        return false;
    if (type->name && dtype != t.dtype) {
        if (elab_error(c->l, c->value_span, "E104", "`%s` wants %s, got %s", c->param, type->name,
                       type_text(c->l->pool, &t))) {
            diag_note(c->l->diag, type->span, "declared here");
            if (dtype == DTYPE_F32)
                diag_help(c->l->diag, "|> to_f32()");
        }
        return false;
    }
    if (!type->has_dims)
        return true;
    int rest = rest_index(c->l, type);
    if (!check_rank(c, type, &t, rest))
        return false;
    bool ok = true;
    for (int i = 0; i < type->n_dims; i++) {
        int at = rest >= 0 && i > rest ? t.rank - (type->n_dims - i) : i;
        if (i != rest)
            ok &= check_dim(c, &type->dims[i], at, t.dim[at]);
    }
    return ok;
}

/* A type that no tensor has. */
static bool is_value_type(const TypeExpr *type)
{
    static const char *const value_types[] = {"int", "ints", "float", "string", "list", "block"};
    for (size_t i = 0; type->name && i < sizeof value_types / sizeof value_types[0]; i++)
        if (!type->has_dims && strcmp(type->name, value_types[i]) == 0)
            return true;
    return type->words;
}

static bool value_type_fits(const TypeExpr *type, Val v)
{
    const char *name = type->name;
    if (type->words)
        return val_is_word(v, name);
    if (strcmp(name, "ints") == 0)
        return v.kind == VAL_INT || val_is_number_list(v, true);
    if (strcmp(name, "int") == 0)
        return v.kind == VAL_INT;
    if (strcmp(name, "float") == 0)
        return val_is_number(v);
    if (strcmp(name, "bool") == 0)
        return v.kind == VAL_BOOL;
    if (strcmp(name, "string") == 0)
        return v.kind == VAL_STRING;
    if (strcmp(name, "list") == 0)
        return v.kind == VAL_LIST;
    return strcmp(name, "block") == 0 && val_is_callable(v);
}

/* So that a block whose argument was wrong is still checked without "unknown name" for its sizes.
 */
static void poison_dims(Elab *l, Frame *f, const TypeExpr *type, bool bind)
{
    for (int i = 0; i < type->n_dims; i++) {
        const DimExpr *d = &type->dims[i];
        if (d->kind != DIM_EXPR || d->expr->kind != EXPR_NAME)
            continue;
        const char *name = d->expr->name;
        if (!(bind ? scope_own(f->scope, name) : scope_find(f->scope, name)))
            scope_set(l->pool, f->scope, name, val_poison(), d->span);
    }
}

bool bind_type(Elab *l, Frame *f, const TypeExpr *type, Val value, Span value_span,
               const char *param_name, bool bind)
{
    DimCheck c = {l, f, param_name, value_span, bind};
    bool ok = true;
    if (value.kind == VAL_TENSOR && !is_value_type(type))
        ok = bind_tensor(&c, type, value.tensor);
    else if (value.kind == VAL_POISON)
        ok = false;
    else if (type->has_dims || !type->name || !value_type_fits(type, value)) {
        ok = false;
        const char *got = type->words && value.kind == VAL_STRING ? val_text(l->pool, value)
                                                                  : val_kind_name(value.kind);
        if (elab_error(l, value_span, "E205", "`%s` wants %s, got %s", param_name,
                       type->has_dims || !type->name ? "a tensor" : type->name, got))
            diag_note(l->diag, type->span, "declared here");
    }
    if (!ok)
        poison_dims(l, f, type, bind);
    return ok;
}
