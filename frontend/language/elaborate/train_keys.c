/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keys of the train section: which names are none, are said twice or are read too early. */
#include "frontend/language/elaborate/train_internal.h"

#include <string.h>

static const char *const train_keys[] = {"batch",      "loss",          "metrics",  "optim",
                                         "epochs",     "steps",         "held_out", "eval_every",
                                         "accumulate", "accumulate_by", "seed",     "precision",
                                         "groups",     "ema",           "patience", "winograd"};
enum { N_KEYS = sizeof train_keys / sizeof train_keys[0] };

static bool is_key(const char *name)
{
    for (int i = 0; i < N_KEYS; i++)
        if (strcmp(name, train_keys[i]) == 0)
            return true;
    return false;
}

void train_reads(Elab *l, const Binding *name)
{
    if (l->train && scope_own(l->train->scope, name->name) == name)
        map_set(&l->train->read, name->name, 1);
}

/* ---- misspelt keys ---- */

/* `optimizer` and `batch_size` begin as keys do.  Names of tensors may: they are results. */
static const char *key_it_begins_with(const Binding *b)
{
    for (int i = 0; i < N_KEYS && b->value.kind != VAL_TENSOR; i++)
        if (strncmp(b->name, train_keys[i], strlen(train_keys[i])) == 0)
            return train_keys[i];
    return NULL;
}

/* A key that is misspelt would be taken for an intermediate value; but those are read. */
static void warn_misspelt(Elab *l, const Scope *section)
{
    for (size_t i = 0; i < section->items.len; i++) {
        const Binding *b = &section->items.data[i];
        if (b->value.kind == VAL_POISON || is_key(b->name) || map_find(&l->train->read, b->name))
            continue;
        const char *near = nearest_word(b->name, train_keys, N_KEYS);
        near = near ? near : key_it_begins_with(b);
        if (!near)
            continue;
        diag_warning(l->diag, b->span, "W201", "`%s` is no key of the train section", b->name);
        diag_help(l->diag, "did you mean `%s`?", near);
    }
}

/* ---- keys that are said twice ---- */

/* Of two lines of the section itself, where neither is under a condition. */
static void warn_doubled(Elab *l, const Body *section)
{
    Map first = map_new(l->pool);
    for (int i = 0; i < section->len; i++) {
        const Stmt *s = section->stmts[i];
        if (s->kind != STMT_ASSIGN || s->assign.targets.len != 1)
            continue;
        const Name name = s->assign.targets.data[0];
        const uint64_t *before = map_find(&first, name.text);
        if (before && !map_find(&l->train->read, name.text)) {
            diag_warning(l->diag, name.span, "W201", "`%s` is given twice; only this one counts",
                         name.text);
            diag_note(l->diag, section->stmts[*before]->assign.targets.data[0].span,
                      "given here first");
            diag_help(l->diag, "take one of the two away");
        }
        if (is_key(name.text))
            map_set(&first, name.text, (uint64_t)i);
    }
}

void warn_of_keys(Elab *l, const Body *section)
{
    warn_misspelt(l, l->train->scope);
    warn_doubled(l, section);
}

/* ---- names that are read before their line ---- */

static const Name *find_assigned(const Body *body, const char *name);

static const Name *find_in_list(const NameList *names, const char *name)
{
    for (int i = 0; i < names->len; i++)
        if (strcmp(names->data[i].text, name) == 0)
            return &names->data[i];
    return NULL;
}

static const Name *find_in_stmt(const Stmt *s, const char *name)
{
    const Name *found = NULL;
    if (s->kind == STMT_ASSIGN)
        return find_in_list(&s->assign.targets, name);
    if (s->kind == STMT_FOR)
        return find_assigned(&s->loop.body, name);
    if (s->kind == STMT_WITH)
        return find_assigned(&s->with.body, name);
    for (int i = 0; s->kind == STMT_IF && !found && i < s->branch.len; i++)
        found = find_assigned(&s->branch.arms[i].body, name);
    return !found && s->kind == STMT_IF && s->branch.has_else
               ? find_assigned(&s->branch.else_body, name)
               : found;
}

/* Where a body gives the name a value; NULL: nowhere. */
static const Name *find_assigned(const Body *body, const char *name)
{
    const Name *found = NULL;
    for (int i = 0; !found && i < body->len; i++)
        found = find_in_stmt(body->stmts[i], name);
    return found;
}

void report_no_batch(Elab *l)
{
    Span word = l->ast->train->span;
    word.end = word.begin + 5; /* `train` */
    if (elab_error(l, word, "E211", "the train section has no `batch`"))
        diag_help(l->diag, "batch = mnist(\"data/mnist\", batch = N)");
}

bool report_unset(Elab *l, const Expr *e)
{
    if (!l->train || l->block_depth)
        return false;
    const Name *later = find_assigned(&l->ast->train->body, e->name);
    if (later && later->span.begin > e->span.begin) {
        if (elab_error(l, e->span, "E203", "`%.60s` is read before the line that gives it a value",
                       e->name)) {
            diag_note(l->diag, later->span, "given its value here");
            diag_help(l->diag, "lines run from the first to the last: move that one up");
        }
        scope_set(l->pool, l->train->scope, e->name, val_poison(), later->span);
        return true; /* once: further lines may read it too */
    }
    if (strcmp(e->name, "batch") != 0 || l->train->sources.len)
        return false;
    report_no_batch(l);
    return true;
}
