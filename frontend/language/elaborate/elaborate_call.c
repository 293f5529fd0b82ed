/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Calls: labels and paths, blocks, seq, pipe stages. */
#include "frontend/language/elaborate/elaborate.h"

#include "frontend/language/elaborate/builtins.h"
#include "ir/support/strbuf.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* ---- labels ---- */

static bool put_part(Elab *l, Frame *f, const LabelPart *part, StrBuf *text)
{
    if (part->name) {
        strbuf_put(text, part->name);
        return true;
    }
    Val v = eval_expr(l, f, part->expr);
    if (v.kind == VAL_INT && v.i >= 0)
        strbuf_printf(text, "%" PRId64, v.i);
    else if (v.kind == VAL_STRING)
        strbuf_put(text, v.s);
    else if (v.kind != VAL_POISON)
        elab_error(l, part->span, "E205", "an index in a label is an int or a string, got %s",
                   v.kind == VAL_INT ? "a negative int" : val_kind_name(v.kind));
    return (v.kind == VAL_INT && v.i >= 0) || v.kind == VAL_STRING;
}

/* Labels become names in files that others read. */
static bool label_valid(const char *text)
{
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.' && *c != '-')
            return false;
    size_t n = strlen(text);
    return n > 0 && text[0] != '.' && text[n - 1] != '.' && !strstr(text, "..");
}

static const char *label_text(Elab *l, Frame *f, const LabelPath *path)
{
    StrBuf text = strbuf_new(l->pool);
    bool ok = true;
    for (int i = 0; i < path->len; i++) {
        strbuf_put(&text, i ? "." : "");
        ok &= put_part(l, f, &path->parts[i], &text);
    }
    if (ok && !label_valid(text.text)) {
        elab_error(l, path->span, "E205",
                   "'%s' is no label: letters, digits, `_`, `-` and single dots only", text.text);
        ok = false;
    }
    return ok ? text.text : NULL;
}

static void report_twice(Elab *l, const char *label, Span span, Span first)
{
    uint32_t line = 0, column = 0;
    diag_line_column(l->diag, first, &line, &column);
    if (!elab_error(l, span, "E202", "label '%s' used twice (first %u:%u)", label, line, column))
        return;
    if (first.begin != span.begin || first.file != span.file)
        diag_note(l->diag, first, "first used here");
    diag_help(l->diag, "rename it, or share its parameters with `shared %s:`", label);
}

/* Records the use of full at this place; false and E202 when it is taken in this invocation. */
static bool label_use(Elab *l, const char *full, const char *label, Span span, bool shared)
{
    const uint64_t *found = map_find(&l->labels, full);
    if (!found) {
        map_set(&l->labels, full, l->label_uses.len);
        vec_push(l->pool, &l->label_uses, (LabelUse){span, l->invocation});
        return true;
    }
    LabelUse *use = &l->label_uses.data[*found];
    if (!shared && use->invocation == l->invocation) {
        report_twice(l, label, span, use->span);
        return false;
    }
    use->invocation = l->invocation;
    return true;
}

static bool enter(Elab *l, const char *label, Span span, bool shared, LabelState *saved)
{
    *saved = (LabelState){l->path, l->invocation};
    const char *full = *l->path ? pool_printf(l->pool, "%s.%s", l->path, label) : label;
    if (strlen(full) > ELAB_MAX_TEXT) {
        elab_exhaust(l, span, "labels are nested too deeply");
        return false;
    }
    bool ok = label_use(l, full, label, span, shared);
    l->path = full;
    if (shared)
        l->invocation = ++l->n_invocations;
    return ok;
}

bool label_enter(Elab *l, Frame *f, const LabelPath *path, bool shared, LabelState *saved)
{
    *saved = (LabelState){l->path, l->invocation};
    const char *text = label_text(l, f, path);
    return text && enter(l, text, path->span, shared, saved);
}

bool label_enter_text(Elab *l, const char *text, Span span, LabelState *saved)
{
    return enter(l, text, span, false, saved);
}

void label_leave(Elab *l, const LabelState *saved)
{
    l->path = saved->path;
    l->invocation = saved->invocation;
}

LabelState label_arguments(Elab *l, const CallSite *site)
{
    LabelState own = {l->path, l->invocation};
    if (site->labelled)
        label_leave(l, &site->outer);
    return own;
}

/* ---- blocks ---- */

static bool too_deep(Elab *l, Span span)
{
    if (l->block_depth >= ELAB_MAX_BLOCK_DEPTH)
        elab_exhaust(
            l, span,
            "blocks call each other more than 1,000 deep; is there an end to the recursion?");
    return l->exhausted;
}

/* Arguments by parameter; kind VAL_NONE with given false: the default. */
typedef struct BlockArgs {
    Val *value;
    Span *span;
    bool *given;
} BlockArgs;

static BlockArgs block_args_new(Pool *pool, const BlockDecl *block)
{
    size_t n = (size_t)block->n_params + 1;
    return (BlockArgs){POOL_ARRAY(pool, n, Val), POOL_ARRAY(pool, n, Span),
                       POOL_ARRAY(pool, n, bool)};
}

/* Words stand bare where one is wanted, as among the arguments of a builtin. */
static Val eval_block_arg(Elab *l, Frame *f, const ParamDecl *p, const Expr *e)
{
    bool word = p && p->type && p->type->words && e->kind == EXPR_NAME;
    return word && !scope_find(f->scope, e->name) ? val_string(e->name) : eval_expr(l, f, e);
}

static void bind_param(Elab *l, Frame *f, const BlockDecl *block, int i, const BlockArgs *args,
                       Span span)
{
    const ParamDecl *p = &block->params[i];
    Val v = args->value[i];
    Span at = args->span[i];
    if (!args->given[i] && p->default_value) {
        v = eval_block_arg(l, f, p, p->default_value);
        at = p->default_value->span;
    } else if (!args->given[i]) {
        if (elab_error(l, span, "E206", "'%s' wants an argument `%s`", block->name.text,
                       p->name.text))
            diag_note(l->diag, p->span, "declared here");
        v = val_poison();
    }
    bool absent = v.kind == VAL_NONE && p->default_value && p->default_value->kind == EXPR_NAME &&
                  strcmp(p->default_value->name, "none") == 0;
    if (p->type && !absent && !bind_type(l, f, p->type, v, at, p->name.text, !block->is_model))
        v = val_poison();
    scope_set(l->pool, f->scope, p->name.text, v, at);
}

/* What models return, as outputs "logits", "out1", "out2", ... over all their calls. */
static void results_as_outputs(Elab *l, Val result)
{
    const Val single = result;
    ValList list = result.kind == VAL_LIST ? result.list : (ValList){&single, 1};
    for (int i = 0, n = (int)l->g->outputs.len; i < list.len; i++)
        if (list.data[i].kind == VAL_TENSOR && list.data[i].tensor != VALUE_NONE)
            graph_add_output(l->g, n + i ? pool_printf(l->pool, "out%d", n + i) : "logits",
                             list.data[i].tensor);
}

/* What the body named last is most likely meant. */
static const char *last_name(const BlockDecl *block)
{
    for (int i = block->body.len - 1; i >= 0; i--) {
        const Stmt *s = block->body.stmts[i];
        if (s->kind == STMT_ASSIGN && s->assign.targets.len == 1)
            return s->assign.targets.data[0].text;
    }
    return "x";
}

void elab_no_return(Elab *l, const BlockDecl *block)
{
    if (elab_error(l, block->name.span, "E210", "'%s' ends without `return`", block->name.text))
        diag_help(l->diag, "return %s", last_name(block));
}

static Val run_block(Elab *l, const BlockDecl *block, const BlockArgs *args, Span span)
{
    if (too_deep(l, span))
        return val_poison();
    Frame f = {.scope = scope_new(l->pool, block->library ? l->library : l->globals),
               .may_return = true,
               .result = val_none()};
    const Span outer = l->library_call;
    l->library_call = elab_user_span(l, span);
    l->block_depth++;
    for (int i = 0; i < block->n_params; i++)
        bind_param(l, &f, block, i, args, span);
    exec_body(l, &f, &block->body);
    l->block_depth--;
    l->library_call = outer;
    if (l->exhausted)
        return val_poison();
    if (!f.returned && f.result.kind != VAL_POISON) {
        elab_no_return(l, block);
        return val_poison();
    }
    Val first = f.result.kind == VAL_LIST && f.result.list.len ? f.result.list.data[0] : f.result;
    if (block->is_model && l->count && l->train)
        results_as_outputs(l, f.result);
    if (block == l->predicted && l->train && l->results.kind == VAL_POISON)
        l->results = f.result;
    if (block->is_model)
        l->last_logits = first.kind == VAL_TENSOR ? first.tensor : VALUE_NONE;
    return f.result;
}

Val call_block(Elab *l, const BlockDecl *block, const Val *args, const Span *arg_spans, int n_args,
               Span span)
{
    BlockArgs bound = block_args_new(l->pool, block);
    for (int i = 0; i < n_args && i < block->n_params; i++) {
        bound.value[i] = args[i];
        bound.span[i] = arg_spans[i];
        bound.given[i] = true;
    }
    return run_block(l, block, &bound, span);
}

static int find_param(const BlockDecl *block, const char *name)
{
    const uint64_t *at = map_find(&block->param_index, name);
    return at ? (int)*at : -1;
}

static int report_no_param(Elab *l, const BlockDecl *block, const Arg *arg)
{
    if (!elab_error(l, arg->name_span, "E206", "'%s' has no parameter `%s`", block->name.text,
                    arg->name))
        return -1;
    const char **names = POOL_ARRAY(l->pool, (size_t)block->n_params + 1, const char *);
    for (int i = 0; i < block->n_params; i++)
        names[i] = block->params[i].name.text;
    elab_suggest_argument(l, arg->name, names, (size_t)block->n_params);
    return -1;
}

static void place(Elab *l, const BlockDecl *block, BlockArgs *bound, int at, Val v, Span span)
{
    if (at >= block->n_params) {
        if (elab_error(l, span, "E206", "'%s' takes %d argument%s", block->name.text,
                       block->n_params, block->n_params == 1 ? "" : "s"))
            diag_note(l->diag, block->name.span, "declared here");
        return;
    }
    if (bound->given[at])
        elab_error(l, span, "E206", "argument `%s` is given twice", block->params[at].name.text);
    bound->value[at] = v;
    bound->span[at] = span;
    bound->given[at] = true;
}

static Val apply_block(Elab *l, Frame *f, const BlockDecl *block, const Expr *e,
                       const CallSite *site)
{
    BlockArgs bound = block_args_new(l->pool, block);
    int at = 0;
    if (site->piped)
        place(l, block, &bound, at++, site->input, site->input_span);
    LabelState own = label_arguments(l, site);
    for (int i = 0; i < e->call.n_args; i++) {
        const Arg *arg = &e->call.args[i];
        int to = !arg->name ? at++ : find_param(block, arg->name);
        if (to < 0) {
            report_no_param(l, block, arg);
            continue;
        }
        const ParamDecl *p = to < block->n_params ? &block->params[to] : NULL;
        place(l, block, &bound, to, eval_block_arg(l, f, p, arg->value), arg->value->span);
    }
    label_leave(l, &own);
    const BlockDecl *outer = l->unlabelled;
    if (!ast_in_library(l->ast, site->span))
        l->unlabelled = site->labelled ? NULL : block;
    Val v = run_block(l, block, &bound, site->span);
    l->unlabelled = outer;
    return v;
}

/* ---- seq ---- */

static Val call_seq(Elab *l, const SeqClosure *seq, Val input, Span span)
{
    if (too_deep(l, span))
        return val_poison();
    SeqRun run = {input, 0};
    Frame f = {.scope = scope_new(l->pool, seq->scope), .seq = &run};
    l->block_depth++;
    exec_body(l, &f, &seq->expr->seq.body);
    l->block_depth--;
    return l->exhausted ? val_poison() : run.value;
}

static Val apply_seq(Elab *l, Frame *f, const SeqClosure *seq, const Expr *e, const CallSite *site)
{
    int n = (site->piped ? 1 : 0) + (e ? e->call.n_args : 0);
    if (n != 1 || (e && e->call.n_args && e->call.args[0].name)) {
        if (elab_error(l, site->span, "E206", "a seq takes one input"))
            diag_help(l->diag, "x |> seq { ... }");
        return val_poison();
    }
    LabelState own = label_arguments(l, site);
    Val input = site->piped ? site->input : eval_expr(l, f, e->call.args[0].value);
    label_leave(l, &own);
    return call_seq(l, seq, input, site->span);
}

/* ---- any call ---- */

static Val report_not_callable(Elab *l, Val v, const Expr *e)
{
    if (v.kind != VAL_POISON)
        elab_error(l, e->span, "E205", "%s cannot be called", val_kind_name(v.kind));
    return val_poison();
}

/* What a call names.  A number, string, list or tensor of the same name does not hide a function
 * here: `option concat = "layer"` and `concat(xs, axis = 1)` go together. */
static Val eval_callee(Elab *l, Frame *f, const Expr *e)
{
    Val v = eval_expr(l, f, e);
    const Builtin *fn = e->kind == EXPR_NAME ? builtin_find(e->name) : NULL;
    bool plain = v.kind == VAL_INT || v.kind == VAL_FLOAT || v.kind == VAL_BOOL ||
                 v.kind == VAL_STRING || v.kind == VAL_PERCENT || v.kind == VAL_LIST ||
                 v.kind == VAL_TENSOR || v.kind == VAL_SCHEDULE;
    return plain && fn ? (Val){.kind = VAL_BUILTIN, .builtin = fn} : v;
}

static Val apply_call(Elab *l, Frame *f, const Expr *e, const CallSite *site)
{
    Val callee = eval_callee(l, f, e->call.callee);
    if (callee.kind == VAL_BUILTIN)
        return builtin_call(l, f, callee.builtin, e, site);
    if (callee.kind == VAL_BLOCK)
        return apply_block(l, f, callee.block, e, site);
    if (callee.kind == VAL_SEQ)
        return apply_seq(l, f, callee.seq, e, site);
    for (int i = 0; i < e->call.n_args; i++)
        eval_expr(l, f, e->call.args[i].value);
    return report_not_callable(l, callee, e->call.callee);
}

/* `x |> relu` without parentheses. */
static Val report_not_call(Elab *l, Frame *f, const Expr *e, bool piped)
{
    Val v = eval_expr(l, f, e);
    if (val_is_callable(v))
        want_tensor(l, v, e->span, "a stage");
    else if (v.kind != VAL_POISON)
        elab_error(l, e->span, "E205",
                   piped ? "a stage must be a call, this is %s"
                         : "a label names a call, this is %s",
                   val_kind_name(v.kind));
    return val_poison();
}

static Val apply(Elab *l, Frame *f, const Expr *e, const CallSite *site)
{
    if (!elab_step(l, e->span))
        return val_poison();
    if (e->kind == EXPR_CALL)
        return apply_call(l, f, e, site);
    if (e->kind == EXPR_SEQ) {
        SeqClosure seq = {e, f->scope};
        return apply_seq(l, f, &seq, NULL, site);
    }
    return report_not_call(l, f, e, site->piped);
}

static CallSite make_site(const Expr *e, const Val *piped, Span piped_span)
{
    CallSite s = {.span = e->span, .piped = piped != NULL, .input_span = piped_span};
    if (piped)
        s.input = *piped;
    return s;
}

Val eval_labelled(Elab *l, Frame *f, const Expr *e, const Val *piped, Span piped_span,
                  const LabelState *outer)
{
    CallSite site = make_site(e, piped, piped_span);
    site.labelled = true;
    site.outer = *outer;
    Val v = apply(l, f, e, &site);
    if (v.kind == VAL_POISON) {
        map_set(&l->failed, l->path, 1);
        l->incomplete = true;
    }
    return v;
}

Val eval_call(Elab *l, Frame *f, const Expr *e, const Val *piped, Span piped_span)
{
    if (e->kind != EXPR_LABEL) {
        CallSite site = make_site(e, piped, piped_span);
        return apply(l, f, e, &site);
    }
    LabelState saved;
    Val v = val_poison();
    if (label_enter(l, f, &e->label.path, e->label.shared, &saved))
        v = eval_labelled(l, f, e->label.call, piped, piped_span, &saved);
    label_leave(l, &saved);
    return v;
}

Val eval_stage(Elab *l, Frame *f, const PipeStage *stage, Val input, Span input_span)
{
    RematHint saved = l->hint;
    for (int i = 0; i < stage->annots.len; i++)
        l->hint = stage->annots.data[i].kind == ANNOT_KEEP ? REMAT_KEEP : REMAT_RECOMPUTE;
    Val v = eval_call(l, f, stage->call, &input, input_span);
    l->hint = saved;
    return v;
}
