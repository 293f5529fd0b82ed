/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The train and remat sections: what they say becomes outputs of the graph and its TrainSpec. */
#include "frontend/language/elaborate/train_internal.h"
#include "frontend/language/elaborate/train_rate.h"
#include "ir/support/strbuf.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const remat_keys[] = {"budget", "solver", "objective", "cost"};

/* ---- single keys ---- */

typedef struct Reader {
    Elab *l;
    Frame *f;
    Span span;
} Reader;

static const Binding *key(const Reader *r, const char *name)
{
    return scope_own(r->f->scope, name);
}

static bool poisoned(const Binding *b)
{
    return b && b->value.kind == VAL_POISON;
}

static void missing(const Reader *r, const char *what, const char *example)
{
    if (elab_error(r->l, r->span, "E211", "the train section has no %s", what))
        diag_help(r->l->diag, "%s", example);
}

/* A whole number of at least `least`; `otherwise` when the key is absent or wrong. */
static int64_t key_int(const Reader *r, const char *name, int64_t least, int64_t otherwise)
{
    const Binding *b = key(r, name);
    int64_t v = otherwise;
    if (!b || !want_int(r->l, b->value, b->span, name, &v))
        return otherwise;
    if (v >= least)
        return v;
    elab_error(r->l, b->span, "E105", "`%s` is at least %" PRId64 ", got %" PRId64, name, least, v);
    return otherwise;
}

static void read_length(const Reader *r, TrainSpec *t)
{
    const Binding *epochs = key(r, "epochs"), *steps = key(r, "steps");
    if (!epochs && !steps) {
        missing(r, "`epochs` or `steps`", "epochs = 5");
        return;
    }
    if (epochs && steps) {
        elab_error(r->l, steps->span, "E211", "give either `epochs` or `steps`");
        return;
    }
    t->steps = key_int(r, "steps", 1, 0);
    if (!epochs || poisoned(epochs))
        return;
    if (val_is_number(epochs->value) && val_number(epochs->value) > 0)
        t->epochs = val_number(epochs->value);
    else
        elab_error(r->l, epochs->span, "E205", "`epochs` is a positive number");
    t->rule.lr.in_epochs = true;
}

/* A path, or a list of them, as sources have them; NULL for anything else. */
static const char *paths_text(const Reader *r, const Val *v)
{
    ValList list = v->kind == VAL_LIST ? v->list : (ValList){v, 1};
    StrBuf text = strbuf_new(r->l->pool);
    for (int i = 0; i < list.len; i++) {
        const Val *item = &list.data[i];
        if (item->kind != VAL_STRING || !*item->s || strchr(item->s, '\n'))
            return NULL;
        strbuf_printf(&text, "%s%s", i ? "\n" : "", item->s);
    }
    return list.len ? text.text : NULL;
}

/* 1000 examples, 10%, or files of their own. */
static void read_held_out(const Reader *r, TrainSpec *t)
{
    const Binding *b = key(r, "held_out");
    if (!b || poisoned(b))
        return;
    Val v = b->value;
    if (v.kind == VAL_STRING || v.kind == VAL_LIST)
        t->data_held_path = paths_text(r, &v);
    if (t->data_held_path)
        return;
    t->held_out_is_part = v.kind == VAL_PERCENT || v.kind == VAL_FLOAT;
    t->held_out = v.kind == VAL_PERCENT ? v.f / 100 : val_is_number(v) ? val_number(v) : -1;
    if (t->held_out >= 0 && (!t->held_out_is_part || t->held_out < 1))
        return;
    if (elab_error(r->l, b->span, "E205",
                   "`held_out` is a number of examples, a part below 100%%, or the path of others"))
        diag_help(r->l->diag, "held_out = 1000, held_out = 10%%, or held_out = \"val.csv\"");
}

static void read_optim(const Reader *r, TrainSpec *t)
{
    const Binding *b = key(r, "optim");
    if (r->l->train->minimizes) {
        if (b && elab_error(r->l, b->span, "E211",
                            "the section has `optim`, and `minimize` has optimizers of its own"))
            diag_help(r->l->diag, "minimize(loss, optim, params = \"net.*\")");
        return;
    }
    if (!b) {
        missing(r, "`optim`", "optim = sgd(lr = 0.1, momentum = 0.9)");
        return;
    }
    if (b->value.kind == VAL_OPTIM)
        t->rule = *b->value.optim;
    else if (!poisoned(b) && elab_error(r->l, b->span, "E205", "`optim` is an optimizer, got %s",
                                        val_kind_name(b->value.kind)))
        diag_help(r->l->diag, "sgd(...), adamw(...), ...");
}

static void read_source(const Reader *r, TrainSpec *t)
{
    const DataSource *s = source_of_section(r->l);
    if (!s) {
        if (!key(r, "batch"))
            report_no_batch(r->l);
        return;
    }
    source_describe(r->l, s, t);
    if (t->n_data_parts && t->data_held_path &&
        elab_error(r->l, key(r, "held_out")->span, "E211",
                   "`held_out` is a path, and zip reads several sources"))
        diag_help(r->l->diag, "held_out = 10%%");
}

/* What other frameworks call types of numbers, and what to write here. */
static const struct {
    const char *word, *help;
} foreign_types[] = {
    {"f16", "precision = bf16: f16 needs its loss scaled, bf16 does not"},
    {"fp16", "precision = bf16: f16 needs its loss scaled, bf16 does not"},
    {"float16", "precision = bf16: f16 needs its loss scaled, bf16 does not"},
    {"bfloat16", "precision = bf16"},
    {"fp32", "precision = f32"},
    {"float32", "precision = f32"},
};
enum { FOREIGN_TYPES = sizeof foreign_types / sizeof *foreign_types };

static const char *precision_help(const char *word)
{
    for (int i = 0; i < FOREIGN_TYPES; i++)
        if (strcmp(word, foreign_types[i].word) == 0)
            return foreign_types[i].help;
    return "precision = bf16";
}

/* bf16, tf32, or what f32 is: nothing. */
static const char *read_precision(const Reader *r)
{
    const Binding *b = key(r, "precision");
    if (!b || poisoned(b))
        return NULL;
    const char *word = b->value.kind == VAL_STRING ? b->value.s : "";
    if (strcmp(word, "bf16") == 0 || strcmp(word, "tf32") == 0)
        return word;
    if (strcmp(word, "f32") != 0 &&
        elab_error(r->l, b->span, "E205", "`precision` is f32, tf32 or bf16, got %s",
                   *word ? word : val_kind_name(b->value.kind)))
        diag_help(r->l->diag, "%s", precision_help(word));
    return NULL;
}

static bool read_winograd(const Reader *r)
{
    const Binding *b = key(r, "winograd");
    if (!b || poisoned(b))
        return false;
    if (b->value.kind == VAL_BOOL)
        return b->value.b;
    if (elab_error(r->l, b->span, "E205", "`winograd` is true or false, got %s",
                   val_kind_name(b->value.kind)))
        diag_help(r->l->diag, "winograd = true");
    return false;
}

/* How the gradients of micro-batches are joined: true where they are added up. */
static bool read_accumulate_sum(const Reader *r)
{
    const Binding *b = key(r, "accumulate_by");
    if (!b || poisoned(b))
        return false;
    const char *word = b->value.kind == VAL_STRING ? b->value.s : "";
    bool sum = strcmp(word, "sum") == 0;
    if (!sum && strcmp(word, "mean") != 0 &&
        elab_error(r->l, b->span, "E205", "`accumulate_by` is \"mean\" or \"sum\", got %s",
                   *word ? word : val_kind_name(b->value.kind)))
        diag_help(r->l->diag, "accumulate_by = \"sum\"");
    return sum;
}

static void read_ema(const Reader *r, TrainSpec *t)
{
    const Binding *b = key(r, "ema");
    if (!b || poisoned(b))
        return;
    t->ema = val_is_number(b->value) ? val_number(b->value) : -1;
    if (t->ema >= 0 && t->ema < 1)
        return;
    if (elab_error(r->l, b->span, "E205", "`ema` is a number from 0, no mean, to below 1"))
        diag_help(r->l->diag, "ema = 0.999");
}

static void read_train(const Reader *r)
{
    TrainSpec t = {.present = true};
    read_optim(r, &t);
    read_goals(r->l, &t);
    read_length(r, &t);
    read_groups(r->l, key(r, "groups"), &t);
    if (key(r, "optim") || t.n_goals)
        check_muon(r->l, &t, key(r, "optim") ? key(r, "optim")->span : r->span);
    read_held_out(r, &t);
    read_ema(r, &t);
    read_source(r, &t);
    t.eval_every = key_int(r, "eval_every", 0, 0);
    t.patience = key_int(r, "patience", 1, 0);
    if (t.patience && t.held_out == 0 && !t.data_held_path &&
        elab_error(r->l, key(r, "patience")->span, "E211",
                   "`patience` compares losses of a held-out part, and there is none"))
        diag_help(r->l->diag, "held_out = 10%%");
    t.accumulate = key_int(r, "accumulate", 1, 1);
    t.accumulate_sum = read_accumulate_sum(r);
    t.seed = (uint64_t)key_int(r, "seed", 0, 0);
    t.precision = read_precision(r);
    t.winograd = read_winograd(r);
    r->l->g->train = t;
    warn_of_keys(r->l, &r->l->ast->train->body);
}

/* ---- results ---- */

bool want_scalar(Elab *l, Val v, Span span, const char *what)
{
    if (!want_tensor(l, v, span, what))
        return false;
    const Type *t = elab_type(l, v.tensor);
    if (t->dtype == DTYPE_F32 && t->rank == 0)
        return true;
    if (elab_error(l, span, "E211", "%s must be one f32 number, got %s", what,
                   type_text(l->pool, t))) {
        diag_note(l->diag, elab_value_span(l, v.tensor), "made here");
        diag_help(l->diag, "|> mean()");
    }
    return false;
}

void add_output(Elab *l, const char *name, ValueId v)
{
    if (graph_output(l->g, name) == VALUE_NONE)
        graph_add_output(l->g, name, v);
}

/* The loss itself when it is a cross entropy, else that of the model's first result (the others are
 * auxiliary), else the only one. */
static const Node *find_cross_entropy(const Elab *l, ValueId loss)
{
    const Node *found = value_node(l->g, loss);
    int n = 0;
    if (found->op == OP_cross_entropy)
        return found;
    for (size_t i = 0; i < l->g->nodes.len; i++) {
        const Node *node = &l->g->nodes.data[i];
        if (node->op != OP_cross_entropy)
            continue;
        if (node->in[0] == l->last_logits)
            return node;
        found = node;
        n++;
    }
    return n == 1 ? found : NULL;
}

/* With the axis and the ignored label of the loss. */
static void add_accuracy(Elab *l, ValueId loss, Span span)
{
    const Node *ce = find_cross_entropy(l, loss);
    if (!ce)
        return;
    const ValueId in[] = {ce->in[0], ce->in[1]};
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_axis, node_int(ce, ATTR_axis, 1));
    attrs_int(&attrs, ATTR_ignore_index, node_int(ce, ATTR_ignore_index, -100));
    ValueId accuracy = elab_node(l, OP_accuracy, in, 2, &attrs, NULL, span);
    if (accuracy != VALUE_NONE)
        add_output(l, "accuracy", accuracy);
}

static void add_word(const Elab *l, Scope *names, const char *word)
{
    if (!scope_find(l->globals, word))
        scope_set(l->pool, names, word, (Val){.kind = VAL_STRING, .s = word}, (Span){0});
}

/* Names of element types, tf32 and foreign names stand bare behind `precision`; step, epoch and
 * progress are variables of learning rates. */
static Scope *section_names(Elab *l)
{
    Scope *names = scope_new(l->pool, l->globals);
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (dtype_is_float((DType)t))
            add_word(l, names, dtype_name((DType)t));
    add_word(l, names, "tf32");
    for (int i = 0; i < FOREIGN_TYPES; i++)
        add_word(l, names, foreign_types[i].word);
    rate_add_names(l, names);
    return names;
}

void elab_train(Elab *l)
{
    const Section *section = l->ast->train;
    Frame f = {.scope = scope_new(l->pool, section_names(l))};
    TrainState state = {.scope = f.scope, .read = map_new(l->pool)};
    Reader r = {l, &f, section->span};
    r.span.end = r.span.begin + 5; /* the word `train` */
    l->train = &state;
    exec_body(l, &f, &section->body);
    if (l->exhausted || f.returned) { /* by an assertion that failed */
        l->train = NULL;
        return;
    }
    read_train(&r);
    if (l->predicted) {
        elab_results(l, l->results, l->predicted->name.span);
        l->train = NULL;
        return;
    }
    const Binding *loss = key(&r, "loss");
    if (state.minimizes) {
        for (size_t i = 0; i < state.goals.len; i++)
            add_output(l, state.goals.data[i].goal.loss, state.goals.data[i].loss);
        add_metrics(l, key(&r, "metrics"), &section->body);
    } else if (!loss)
        missing(&r, "`loss`", "loss = cross_entropy(logits, batch.label)");
    else if (want_scalar(l, loss->value, loss->span, "the loss")) {
        add_output(l, "loss", loss->value.tensor);
        if (l->mode == FRONTEND_EVAL)
            add_accuracy(l, loss->value.tensor, loss->span);
        add_metrics(l, key(&r, "metrics"), &section->body);
    }
    l->train = NULL;
}

/* ---- remat ---- */

static const char *source_text(Elab *l, Span span)
{
    size_t length;
    const char *text = diag_source_text(l->diag, span.file, &length);
    return text && span.end <= length
               ? pool_strndup(l->pool, text + span.begin, span.end - span.begin)
               : "";
}

/* Words stand bare (min, kusumoto_approx); sizes and percentages stay as written. */
static const char *remat_text(Elab *l, Frame *f, const Expr *e)
{
    if (e->kind == EXPR_NAME && !scope_find(f->scope, e->name))
        return e->name;
    if (e->kind == EXPR_SIZE)
        return source_text(l, e->span);
    Val v = eval_expr(l, f, e);
    if (v.kind == VAL_STRING)
        return v.s;
    if (v.kind == VAL_INT || v.kind == VAL_PERCENT)
        return val_text(l->pool, v);
    if (v.kind != VAL_POISON)
        elab_error(l, e->span, "E205", "a name, a number of bytes or a percentage, got %s",
                   val_kind_name(v.kind));
    return NULL;
}

static void read_remat_key(Elab *l, Frame *f, const Stmt *s)
{
    TrainSpec *t = &l->g->train;
    const char **fields[] = {&t->budget_text, &t->solver, &t->objective, &t->cost};
    size_t n = sizeof remat_keys / sizeof remat_keys[0];
    const Name *name =
        s->kind == STMT_ASSIGN && s->assign.targets.len == 1 ? &s->assign.targets.data[0] : NULL;
    for (size_t i = 0; name && i < n; i++) {
        if (strcmp(name->text, remat_keys[i]) != 0)
            continue;
        const char *text = remat_text(l, f, s->assign.value);
        if (text)
            *fields[i] = text;
        return;
    }
    if (!elab_error(l, name ? name->span : s->span, "E203",
                    "the remat section has the keys budget, solver, objective and cost"))
        return;
    const char *near = name ? nearest_word(name->text, remat_keys, n) : NULL;
    if (near)
        diag_help(l->diag, "did you mean `%s`?", near);
}

void elab_remat(Elab *l)
{
    Frame f = {.scope = scope_new(l->pool, l->globals)};
    TrainSpec *t = &l->g->train;
    t->budget_text = t->solver = t->objective = t->cost = "";
    for (int i = 0; l->ast->remat && i < l->ast->remat->body.len; i++)
        read_remat_key(l, &f, l->ast->remat->body.stmts[i]);
}
