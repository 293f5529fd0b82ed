/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Entry of the elaborator: options, the three modes, messages and bounds. */
#include "frontend/language/elaborate/elaborate.h"

#include "ir/support/strbuf.h"

#include <stdarg.h>
#include <string.h>

/* ---- messages ---- */

Span elab_user_span(const Elab *l, Span span)
{
    bool inside = l->library_call.file && ast_in_library(l->ast, span);
    return inside ? l->library_call : span;
}

/* What goes wrong inside of the library is the user's call of it that does not fit. */
bool elab_error(Elab *l, Span place, const char *code, const char *format, ...)
{
    Span span = elab_user_span(l, place);
    const char *key = pool_printf(l->pool, "%u:%u:%s", span.file, span.begin, code);
    if (span.file && map_find(&l->reported, key))
        return false;
    map_set(&l->reported, key, 1);
    va_list args;
    va_start(args, format);
    const char *text = pool_vprintf(l->pool, format, args);
    va_end(args);
    diag_error(l->diag, span, code, "%s", text);
    if (span.file != place.file && !diag_is_full(l->diag))
        diag_note(l->diag, place, "in the library");
    return !diag_is_full(l->diag);
}

const char *elab_where(Elab *l, OpKind op)
{
    if (!*l->path)
        return pool_printf(l->pool, "(in %s)", op_name(op));
    return pool_printf(l->pool, "(in %s, %s)", l->path, op_name(op));
}

void elab_exhaust(Elab *l, Span span, const char *what)
{
    if (!l->exhausted)
        elab_error(l, span, "E208", "%s", what);
    l->exhausted = true;
}

/* The address of the frame measures the C stack whatever mixture of constructs is nested in it. */
bool elab_step(Elab *l, Span span)
{
    if (l->exhausted)
        return false;
    ptrdiff_t used = l->stack_base - (const char *)__builtin_frame_address(0);
    if (used < 0)
        used = -used;
    if (used > ELAB_MAX_STACK)
        elab_exhaust(l, span, "this is nested too deeply");
    else if (++l->n_steps > ELAB_MAX_STEPS)
        elab_exhaust(l, span,
                     "the model is too large: it takes more than 20 million steps to unroll");
    return !l->exhausted;
}

/* ---- options ---- */

static const char *option_def(const FrontendOptions *options, const char *name)
{
    const char *value = NULL;
    for (int i = 0; i < options->n_defs; i++)
        if (strcmp(options->defs[i].name, name) == 0)
            value = options->defs[i].value;
    return value;
}

static bool option_kind(Elab *l, const OptionDecl *decl, ValKind *kind)
{
    static const struct {
        const char *name;
        ValKind kind;
    } kinds[] = {{"int", VAL_INT},
                 {"float", VAL_FLOAT},
                 {"bool", VAL_BOOL},
                 {"string", VAL_STRING},
                 {"list", VAL_LIST}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (decl->type->name && !decl->type->has_dims &&
            strcmp(decl->type->name, kinds[i].name) == 0) {
            *kind = kinds[i].kind;
            return true;
        }
    }
    if (elab_error(l, decl->type->span, "E302", "an option is an int, float, bool, string or list"))
        diag_help(l->diag, "option %s: int = ...", decl->name.text);
    return false;
}

/* A range is an interval: of a float option both ends belong to it. */
static bool in_range(Elab *l, Frame *f, const Expr *range, Val v)
{
    Val lo = eval_expr(l, f, range->range.lo), hi = eval_expr(l, f, range->range.hi);
    if (!val_is_number(lo) || !val_is_number(hi) || !val_is_number(v)) {
        if (lo.kind != VAL_POISON && hi.kind != VAL_POISON)
            elab_error(l, range->span, "E302", "a range of values goes with a number");
        return true;
    }
    double x = val_number(v), last = val_number(hi);
    bool closed = range->range.inclusive || v.kind == VAL_FLOAT;
    return x >= val_number(lo) && (closed ? x <= last : x < last);
}

static const char *allowed_text(Elab *l, Frame *f, const OptionDecl *decl)
{
    if (decl->domain->kind == EXPR_RANGE)
        return decl->domain_text;
    Val domain = eval_expr(l, f, decl->domain);
    return domain.kind == VAL_LIST ? option_allowed_text(l->pool, domain) : decl->domain_text;
}

static bool in_domain(Elab *l, Frame *f, const OptionDecl *decl, Val v)
{
    if (!decl->domain)
        return true;
    if (decl->domain->kind == EXPR_RANGE)
        return in_range(l, f, decl->domain, v);
    Val domain = eval_expr(l, f, decl->domain);
    return !want_list(l, domain, decl->domain->span, "the domain of an option") ||
           option_in_domain(v, domain);
}

static void report_domain(Elab *l, Frame *f, const OptionDecl *decl, Val v, const char *typed)
{
    bool fresh = typed ? elab_error(l, (Span){0}, "E301", "-D %s=%s: not one of the allowed values",
                                    decl->name.text, typed)
                       : elab_error(l, decl->default_value->span, "E301",
                                    "the default of `%s`, %s, is not in its domain",
                                    decl->name.text, val_text(l->pool, v));
    if (fresh)
        diag_help(l->diag, "allowed: %s", allowed_text(l, f, decl));
}

static bool default_fits(Elab *l, const OptionDecl *decl, Val *v, ValKind kind)
{
    if (v->kind == VAL_POISON)
        return false;
    if (v->kind == VAL_INT && kind == VAL_FLOAT)
        *v = val_float((double)v->i);
    if (v->kind == kind && kind != VAL_NONE)
        return true;
    elab_error(l, decl->default_value->span, "E302", "option `%s` cannot be %s", decl->name.text,
               val_kind_name(v->kind));
    return false;
}

static Val option_value(Elab *l, Frame *f, const OptionDecl *decl, const char *typed)
{
    Val v = eval_expr(l, f, decl->default_value);
    ValKind kind = v.kind;
    if (decl->type && !option_kind(l, decl, &kind))
        return val_poison();
    if (!decl->type && kind != VAL_INT && kind != VAL_FLOAT && kind != VAL_BOOL &&
        kind != VAL_STRING && kind != VAL_LIST && kind != VAL_PERCENT)
        kind = VAL_NONE;
    if (!default_fits(l, decl, &v, kind))
        return val_poison();
    if (typed && !option_parse(l->pool, typed, kind, &v)) {
        if (elab_error(l, (Span){0}, "E301", "-D %s=%s: `%s` is %s", decl->name.text, typed,
                       decl->name.text, val_kind_name(kind)))
            diag_note(l->diag, decl->span, "declared here");
        return val_poison();
    }
    if (in_domain(l, f, decl, v))
        return v;
    report_domain(l, f, decl, v, typed);
    return val_poison(); /* what follows from a value that is not allowed is no other mistake */
}

static void report_options(Elab *l, const char *const *names, size_t n)
{
    StrBuf text = strbuf_new(l->pool);
    for (size_t i = 0; i < n; i++)
        strbuf_printf(&text, "%s%s", i ? ", " : "", names[i]);
    diag_help(l->diag, n ? "the options are %s" : "this file has no options%s", n ? text.text : "");
}

static void report_unknown_option(Elab *l, const OptionDef *def)
{
    VEC(const char *) names = {0};
    for (int i = 0; i < l->ast->n_options; i++)
        vec_push(l->pool, &names, l->ast->options[i].name.text);
    diag_error(l->diag, (Span){0}, "E301", "-D %s=%s: no such option", def->name, def->value);
    const char *near = nearest_word(def->name, names.data, names.len);
    const OptionDecl *decl = near ? ast_find_option(l->ast, near) : NULL;
    if (!decl) {
        report_options(l, names.data, names.len);
        return;
    }
    Frame f = {.scope = l->globals};
    if (decl->domain)
        diag_help(l->diag, "did you mean `%s`? allowed: %s", near, allowed_text(l, &f, decl));
    else
        diag_help(l->diag, "did you mean `%s`?", near);
}

/* The options stand on one line of the IR's header. */
static const char *option_print(Pool *pool, Val v)
{
    char *text = pool_strdup(pool, v.kind == VAL_STRING ? v.s : val_text(pool, v));
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return text;
}

static void elab_options(Elab *l, const FrontendOptions *options)
{
    StrBuf text = strbuf_new(l->pool);
    Frame f = {.scope = l->globals};
    for (int i = 0; i < l->ast->n_options; i++) {
        const OptionDecl *decl = &l->ast->options[i];
        Val v = option_value(l, &f, decl, option_def(options, decl->name.text));
        scope_set(l->pool, l->globals, decl->name.text, v, decl->name.span);
        strbuf_printf(&text, "%s%s=%s", i ? " " : "", decl->name.text, option_print(l->pool, v));
    }
    l->g->options = text.text ? text.text : "";
    for (int i = 0; i < options->n_defs; i++)
        if (!ast_find_option(l->ast, options->defs[i].name))
            report_unknown_option(l, &options->defs[i]);
}

/* ---- the model alone ---- */

static Val model_input(Elab *l, Frame *f, const ParamDecl *p)
{
    if (p->default_value && (!p->type || !p->type->has_dims))
        return eval_expr(l, f, p->default_value);
    if (!p->type) {
        if (elab_error(l, p->span, "E211", "the model's input `%s` has no type", p->name.text))
            diag_help(l->diag, "%s: f32[N, 3, 32, 32]", p->name.text);
        return val_poison();
    }
    Type type;
    DType dtype;
    if (!p->type->has_dims && !dtype_from_name(p->type->name, &dtype)) {
        if (elab_error(l, p->span, "E211", "the model's parameter `%s` has no default",
                       p->name.text))
            diag_help(l->diag, "%s: %s = ...", p->name.text, p->type->name);
        return val_poison();
    }
    if (!eval_type(l, f, p->type, &type))
        return val_poison();
    AttrList attrs = {.n = 0};
    attrs_string(&attrs, ATTR_role, pool_printf(l->pool, "input.%s", p->name.text));
    return val_tensor(elab_source(l, OP_input, type, &attrs,
                                  pool_printf(l->pool, "%%%s", p->name.text), p->span));
}

void elab_results(Elab *l, Val result, Span span)
{
    const Val single = result;
    if (single.kind == VAL_TENSOR)
        result = val_list(&single, 1);
    if (result.kind == VAL_POISON)
        return;
    if (result.kind != VAL_LIST || result.list.len == 0) {
        elab_error(l, span, "E211", "the model returns %s, not a tensor",
                   val_kind_name(result.kind));
        return;
    }
    for (int i = 0; i < result.list.len; i++)
        if (want_tensor(l, result.list.data[i], span, "a model's result"))
            graph_add_output(l->g, i ? pool_printf(l->pool, "out%d", i) : "logits",
                             result.list.data[i].tensor);
}

static void elab_model(Elab *l, const BlockDecl *model, const LabelPath *label)
{
    LabelState state;
    Val *args = POOL_ARRAY(l->pool, (size_t)model->n_params + 1, Val);
    Span *spans = POOL_ARRAY(l->pool, (size_t)model->n_params + 1, Span);
    Frame f = {.scope = l->globals};
    for (int i = 0; i < model->n_params; i++) {
        args[i] = model_input(l, &f, &model->params[i]);
        spans[i] = model->params[i].span;
    }
    if (label && !label_enter(l, &f, label, false, &state))
        return;
    elab_results(l, call_block(l, model, args, spans, model->n_params, model->name.span),
                 model->name.span);
}

/* ---- entry ---- */

static Elab *elab_new(Pool *pool, Diag *diag, const Ast *ast, FrontendMode mode)
{
    Elab *l = POOL_NEW(pool, Elab);
    l->pool = pool;
    l->diag = diag;
    l->ast = ast;
    l->mode = mode;
    l->g = graph_new(pool, "");
    l->library = scope_new(pool, NULL);
    Scope *exported = scope_new(pool, NULL);
    l->globals = scope_new(pool, exported);
    l->path = "";
    l->labels = map_new(pool);
    l->failed = map_new(pool);
    l->reported = map_new(pool);
    l->constants = map_new(pool);
    l->ordinals = map_new(pool);
    l->rng = l->last_logits = VALUE_NONE;
    l->results = val_poison();
    for (int i = 0; i < ast->n_blocks; i++) {
        const BlockDecl *b = &ast->blocks[i];
        const Val v = {.kind = VAL_BLOCK, .block = b};
        scope_set(pool, b->library ? l->library : l->globals, b->name.text, v, b->name.span);
        if (b->library && *b->name.text != '_')
            scope_set(pool, exported, b->name.text, v, b->name.span);
    }
    const char *slash = strrchr(ast->name, '/');
    l->g->source = pool_strdup(pool, slash ? slash + 1 : ast->name);
    l->g->source_hash = ast->source_hash;
    return l;
}

static void report_no_section(Elab *l)
{
    diag_error(l->diag, (Span){0}, "E211", "%s has no train section", l->ast->name);
    diag_help(l->diag, "train { batch = ...; loss = ...; optim = ...; steps = ... }");
}

static bool returns(const Body *body);

static bool stmt_returns(const Stmt *s)
{
    if (s->kind == STMT_FOR)
        return returns(&s->loop.body);
    if (s->kind == STMT_WITH)
        return returns(&s->with.body);
    for (int i = 0; s->kind == STMT_IF && i < s->branch.len; i++)
        if (returns(&s->branch.arms[i].body))
            return true;
    return s->kind == STMT_RETURN ||
           (s->kind == STMT_IF && s->branch.has_else && returns(&s->branch.else_body));
}

static bool returns(const Body *body)
{
    for (int i = 0; i < body->len; i++)
        if (stmt_returns(body->stmts[i]))
            return true;
    return false;
}

/* Also of models that the train section does not use: other verbs take them. */
static void check_models_return(Elab *l)
{
    for (int i = 0; i < l->ast->n_blocks; i++) {
        const BlockDecl *b = &l->ast->blocks[i];
        if (b->is_model && !b->imported && !returns(&b->body))
            elab_no_return(l, b);
    }
}

Graph *frontend_lower(Pool *pool, Diag *diag, const Ast *ast, const FrontendOptions *options)
{
    int errors = diag_error_count(diag);
    Elab *l = elab_new(pool, diag, ast, options->mode);
    l->count = options->count;
    l->supports = options->supports;
    l->stack_base = __builtin_frame_address(0);
    elab_options(l, options);
    check_models_return(l);
    ModelCall call = {0};
    const BlockDecl *model = elab_choose_model(l, options, &call);
    if (model)
        l->g->name = pool_strdup(pool, model->name.text);
    l->predicted = options->mode == FRONTEND_PREDICT ? model : NULL;
    if (ast->train && options->mode != FRONTEND_INFER && (!l->predicted || call.in_train))
        elab_train(l);
    else if (options->mode != FRONTEND_EVAL && model)
        elab_model(l, model, call.label);
    else if (options->mode == FRONTEND_EVAL)
        report_no_section(l);
    builtin_finish(l);
    elab_remat(l);
    return diag_error_count(diag) == errors ? l->g : NULL;
}
