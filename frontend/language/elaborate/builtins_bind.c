/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signatures of builtins, and binding a call's arguments to them. */
#include "frontend/language/elaborate/builtins.h"
#include "frontend/language/elaborate/builtins_table.h"
#include "frontend/language/elaborate/train_internal.h"
#include "frontend/language/elaborate/train_rate.h"
#include "ir/support/bug.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- signatures ---- */

static const struct {
    const char *name;
    ArgKind kind;
} arg_kinds[] = {
    {"any", ARG_ANY},       {"tensor", ARG_TENSOR}, {"operand", ARG_OPERAND}, {"int", ARG_INT},
    {"float", ARG_FLOAT},   {"bool", ARG_BOOL},     {"string", ARG_STRING},   {"ints", ARG_INTS},
    {"floats", ARG_FLOATS}, {"list", ARG_LIST},     {"init", ARG_INIT},       {"rate", ARG_RATE},
    {"rest", ARG_REST},     {"named", ARG_NAMED},
};

static Val default_value(Pool *pool, const BuiltinParam *p, const char *text)
{
    Val v;
    if (p->kind == ARG_WORD)
        return val_string(text);
    if (strcmp(text, "none") == 0)
        return val_none();
    if (p->kind == ARG_BOOL)
        return val_bool(strcmp(text, "true") == 0);
    if (p->kind == ARG_INT || p->kind == ARG_INTS)
        return option_parse(pool, text, VAL_INT, &v) ? v : val_none();
    return val_float(strtod(text, NULL));
}

/* "name: kind" or "name: kind = default" */
static BuiltinParam parse_param(Pool *pool, char *text)
{
    char *colon = strstr(text, ": "), *equals = strstr(text, " = ");
    BuiltinParam p = {.name = text, .kind = ARG_WORD, .required = !equals};
    *colon = 0;
    if (equals)
        *equals = 0;
    p.words = colon + 2;
    for (size_t i = 0; i < sizeof arg_kinds / sizeof arg_kinds[0]; i++)
        if (strcmp(p.words, arg_kinds[i].name) == 0)
            p.kind = arg_kinds[i].kind;
    if (p.kind == ARG_REST || p.kind == ARG_NAMED)
        p.required = false;
    if (equals)
        p.fallback = default_value(pool, &p, equals + 3);
    return p;
}

static Signature parse_signature(Pool *pool, const Builtin *fn)
{
    Signature s = {POOL_ARRAY(pool, BUILTIN_MAX_PARAMS, BuiltinParam), 0};
    for (const char *at = fn->signature; *at && s.n_params < BUILTIN_MAX_PARAMS;) {
        const char *end = strstr(at, ", ");
        size_t n = end ? (size_t)(end - at) : strlen(at);
        s.params[s.n_params++] = parse_param(pool, pool_strndup(pool, at, n));
        at += end ? n + 2 : n;
    }
    return s;
}

static const Signature *signature_of(Elab *l, const Builtin *fn)
{
    if (!l->signatures)
        l->signatures = POOL_ARRAY(l->pool, (size_t)builtin_count, Signature);
    Signature *s = &l->signatures[fn - builtin_table];
    if (!s->params)
        *s = parse_signature(l->pool, fn);
    return s;
}

/* ---- binding ---- */

typedef struct Binder {
    Elab *l;
    Frame *f;
    BuiltinCall *call;
    const Signature *sig;
    bool given[BUILTIN_MAX_PARAMS];
    VEC(Val) rest;
    VEC(Span) rest_span;
    VEC(NamedArg) named;
    bool ok;
} Binder;

static int slot_by_name(const Binder *b, const char *name)
{
    int named = -1;
    for (int i = 0; i < b->sig->n_params; i++) {
        const BuiltinParam *p = &b->sig->params[i];
        if (p->kind == ARG_NAMED)
            named = i;
        else if (p->kind != ARG_REST && strcmp(p->name, name) == 0)
            return i;
    }
    return named;
}

/* The parameter of positional argument `at`: past a rest parameter all go to it. */
static int slot_by_position(const Binder *b, int at)
{
    for (int i = 0; i < b->sig->n_params && i <= at; i++)
        if (b->sig->params[i].kind == ARG_REST)
            return i;
    return at < b->sig->n_params && b->sig->params[at].kind != ARG_NAMED ? at : -1;
}

/* Words stand bare: layout = in_out.  `linear` as a learning rate is the schedule, not the layer.
 */
static Val eval_arg(Binder *b, int slot, const Expr *e)
{
    ArgKind kind = slot >= 0 ? b->sig->params[slot].kind : ARG_ANY;
    if (kind == ARG_WORD && e->kind == EXPR_NAME && !scope_find(b->f->scope, e->name))
        return val_string(e->name);
    if (kind == ARG_RATE && e->kind == EXPR_CALL && e->call.callee->kind == EXPR_NAME &&
        strcmp(e->call.callee->name, "linear") == 0) {
        CallSite site = {.span = e->span};
        return builtin_call(b->l, b->f, builtin_find("linear_decay"), e, &site);
    }
    return eval_expr(b->l, b->f, e);
}

static void store(Binder *b, int slot, Val v, Span span, const char *name)
{
    const BuiltinParam *p = &b->sig->params[slot];
    if (v.kind == VAL_POISON)
        b->ok = false;
    if (p->kind == ARG_REST) {
        vec_push(b->l->pool, &b->rest, v);
        vec_push(b->l->pool, &b->rest_span, span);
        return;
    }
    if (p->kind == ARG_NAMED) {
        vec_push(b->l->pool, &b->named, (NamedArg){name, v, span});
        return;
    }
    if (b->given[slot]) {
        elab_error(b->l, span, "E206", "argument `%s` is given twice", p->name);
        b->ok = false;
    }
    b->given[slot] = true;
    b->call->arg[slot] = v;
    b->call->arg_span[slot] = span;
}

static void report_slot(Binder *b, const Arg *arg)
{
    const char *fn = b->call->fn->name;
    b->ok = false;
    if (!arg->name) {
        if (elab_error(b->l, arg->span, "E206", "too many arguments for '%s'", fn))
            diag_help(b->l->diag, "%s(%s)", fn, b->call->fn->signature);
        return;
    }
    if (!elab_error(b->l, arg->name_span, "E206", "'%s' has no argument `%s`", fn, arg->name))
        return;
    const char *names[BUILTIN_MAX_PARAMS];
    for (int i = 0; i < b->sig->n_params; i++)
        names[i] = b->sig->params[i].name;
    if (!elab_suggest_argument(b->l, arg->name, names, (size_t)b->sig->n_params))
        diag_help(b->l->diag, "%s(%s)", fn, b->call->fn->signature);
}

static void bind_args(Binder *b, const Expr *e, const CallSite *site)
{
    int at = 0;
    if (site->piped)
        store(b, slot_by_position(b, at++), site->input, site->input_span, NULL);
    LabelState own = label_arguments(b->l, site);
    for (int i = 0; i < e->call.n_args; i++) {
        const Arg *arg = &e->call.args[i];
        int slot = arg->name ? slot_by_name(b, arg->name) : slot_by_position(b, at++);
        if (slot < 0) /* its value may be a word that means nothing here */
            report_slot(b, arg);
        else
            store(b, slot, eval_arg(b, slot, arg->value), arg->value->span, arg->name);
    }
    label_leave(b->l, &own);
}

/* ---- conversion ---- */

static const char *wanted(ArgKind kind)
{
    switch (kind) {
    case ARG_TENSOR:
        return "a tensor";
    case ARG_OPERAND:
        return "a tensor or a number";
    case ARG_INT:
        return "an int";
    case ARG_FLOAT:
        return "a number";
    case ARG_BOOL:
        return "true or false";
    case ARG_STRING:
        return "a string";
    case ARG_INTS:
        return "an int or a list of ints";
    case ARG_FLOATS:
        return "a list of numbers";
    case ARG_LIST:
        return "a list";
    case ARG_INIT:
        return "an initial value such as normal(0.02)";
    case ARG_RATE:
        return "a number or a schedule";
    case ARG_ANY:
    case ARG_WORD:
    case ARG_REST:
    case ARG_NAMED:
        return "a value";
    }
    return "a value";
}

static bool kind_fits(const BuiltinParam *p, Val v)
{
    switch (p->kind) {
    case ARG_TENSOR:
        return v.kind == VAL_TENSOR;
    case ARG_OPERAND:
        return v.kind == VAL_TENSOR || val_is_number(v);
    case ARG_INT:
        return v.kind == VAL_INT;
    case ARG_FLOAT:
        return val_is_number(v);
    case ARG_BOOL:
        return v.kind == VAL_BOOL;
    case ARG_STRING:
        return v.kind == VAL_STRING;
    case ARG_INTS:
        return v.kind == VAL_INT || val_is_number_list(v, true);
    case ARG_FLOATS:
        return val_is_number_list(v, false);
    case ARG_LIST:
        return v.kind == VAL_LIST;
    case ARG_RATE:
        return val_is_number(v) || v.kind == VAL_SCHEDULE;
    case ARG_WORD:
        return val_is_word(v, p->words);
    case ARG_INIT:
    case ARG_ANY:
    case ARG_REST:
    case ARG_NAMED:
        return true;
    }
    return true;
}

/* A list of which an element is a mistake that has been reported. */
static bool holds_poison(Val v)
{
    for (int i = 0; v.kind == VAL_LIST && i < v.list.len; i++)
        if (v.list.data[i].kind == VAL_POISON)
            return true;
    return false;
}

static bool check_arg(Binder *b, int i)
{
    const BuiltinParam *p = &b->sig->params[i];
    BuiltinCall *c = b->call;
    Val *v = &c->arg[i];
    if (v->kind == VAL_POISON ||
        (v->kind == VAL_NONE && !p->required && p->fallback.kind == VAL_NONE))
        return v->kind == VAL_NONE;
    const InitSpec *init;
    if (p->kind == ARG_INIT) {
        if (!builtin_as_init(b->l, *v, c->arg_span[i], &init))
            return false;
        *v = (Val){.kind = VAL_INIT, .init = init};
        return true;
    }
    if (kind_fits(p, *v))
        return true;
    if (holds_poison(*v))
        return false;
    if (p->kind == ARG_WORD && v->kind == VAL_STRING)
        elab_error(b->l, c->arg_span[i], "E205", "`%s` of '%s' is one of %s, not '%s'", p->name,
                   c->fn->name, p->words, v->s);
    else if (val_is_callable(*v))
        want_tensor(b->l, *v, c->arg_span[i], p->name);
    else
        elab_error(b->l, c->arg_span[i], "E205", "`%s` of '%s' must be %s, got %s", p->name,
                   c->fn->name, p->kind == ARG_WORD ? p->words : wanted(p->kind),
                   val_kind_name(v->kind));
    return false;
}

static void fill_defaults(Binder *b)
{
    for (int i = 0; i < b->sig->n_params; i++) {
        const BuiltinParam *p = &b->sig->params[i];
        if (b->given[i])
            continue;
        b->call->arg[i] = p->fallback;
        b->call->arg_span[i] = b->call->span;
        if (p->kind == ARG_REST || p->kind == ARG_NAMED)
            b->call->arg[i] = val_none();
        else if (p->required) {
            if (elab_error(b->l, b->call->span, "E206", "'%s' wants an argument `%s`",
                           b->call->fn->name, p->name))
                diag_help(b->l->diag, "%s(%s)", b->call->fn->name, b->call->fn->signature);
            b->ok = false;
            b->call->arg[i] = val_poison();
        }
    }
}

/* Whether a layer's call makes parameters, as far as its arguments tell, some of which are
 * mistakes: one that brings its weight, or wants none, needs no label. */
static bool makes_parameters(const Binder *b)
{
    if (!b->call->fn->layer)
        return false;
    for (int i = 0; i < b->sig->n_params; i++) {
        const char *name = b->sig->params[i].name;
        const Val v = b->call->arg[i];
        if ((strcmp(name, "weight") == 0 && v.kind != VAL_NONE) ||
            (strcmp(name, "affine") == 0 && (v.kind != VAL_BOOL || !v.b)))
            return false;
    }
    return true;
}

Val builtin_call(Elab *l, Frame *f, const Builtin *fn, const Expr *e, const CallSite *site)
{
    BuiltinCall call = {.l = l, .fn = fn, .span = site->span, .labelled = site->labelled};
    Binder b = {.l = l, .f = f, .call = &call, .sig = signature_of(l, fn), .ok = true};
    bind_args(&b, e, site);
    fill_defaults(&b);
    call.rest = b.rest.data;
    call.rest_span = b.rest_span.data;
    call.n_rest = (int)b.rest.len;
    if (b.ok && rate_takes_call(&call))
        return rate_call(&call);
    for (int i = 0; i < b.sig->n_params; i++)
        if (b.sig->params[i].kind != ARG_REST && b.sig->params[i].kind != ARG_NAMED)
            b.ok &= check_arg(&b, i);
    call.named = b.named.data;
    call.n_named = (int)b.named.len;
    if (b.ok && !l->exhausted)
        return fn->run(&call);
    if (makes_parameters(&b))
        call_needs_label(&call);
    if (fn->run == builtin_minimize && l->train)
        l->train->minimizes = true; /* nobody shall ask for `optim` */
    return val_poison();
}

/* ---- helpers for the functions ---- */

bool call_needs_label(BuiltinCall *c)
{
    if (c->labelled)
        return true;
    c->l->incomplete = true;
    if (elab_error(c->l, c->span, "E201", "layer has parameters but no label"))
        diag_help(c->l->diag, "fix: `%s1: %s(...)`", c->fn->name, c->fn->name);
    return false;
}

bool call_axis(BuiltinCall *c, int arg, int rank, int *axis)
{
    int64_t a = arg_int(c, arg);
    *axis = (int)(a < 0 ? a + rank : a);
    if (a >= -(int64_t)rank && a < rank)
        return true;
    elab_error(c->l, c->arg_span[arg], "E105",
               "axis %" PRId64 " is outside a tensor of %d dimension%s", a, rank,
               rank == 1 ? "" : "s");
    return false;
}

int call_ints(BuiltinCall *c, int arg, int64_t *out, int max)
{
    Val v = c->arg[arg];
    if (v.kind == VAL_INT) {
        out[0] = v.i;
        return 1;
    }
    if (v.list.len > max) {
        elab_error(c->l, c->arg_span[arg], "E105", "at most %d values here, got %d", max,
                   v.list.len);
        return -1;
    }
    for (int i = 0; i < v.list.len; i++)
        out[i] = v.list.data[i].i;
    return v.list.len;
}

bool call_pair(BuiltinCall *c, int arg, int64_t least, int64_t out[2])
{
    int n = call_ints(c, arg, out, 2);
    if (n == 1 && c->arg[arg].kind == VAL_INT)
        out[1] = out[0];
    else if (n != 2) {
        if (n >= 0)
            elab_error(c->l, c->arg_span[arg], "E105", "a number or [height, width], got %d values",
                       n);
        return false;
    }
    if (out[0] >= least && out[1] >= least)
        return true;
    elab_error(c->l, c->arg_span[arg], "E105", "must be at least %" PRId64 ", got %" PRId64, least,
               out[0] < least ? out[0] : out[1]);
    return false;
}

bool call_word_is(const BuiltinCall *c, int arg, const char *word)
{
    return c->arg[arg].kind == VAL_STRING && strcmp(c->arg[arg].s, word) == 0;
}

Val call_node(BuiltinCall *c, OpKind op, const ValueId *in, int n_in, const AttrList *attrs)
{
    return val_tensor(
        elab_node(c->l, op, in, n_in, attrs, elab_label_name(c->l, c->labelled), c->span));
}
