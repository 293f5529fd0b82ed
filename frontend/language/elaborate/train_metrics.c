/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The key `metrics` of the train section.  A metric that is a formula of totals over the batches of
 * an evaluation is cut in two there: the step computes what is summed, and the formula becomes a
 * graph of its own.  A training step computes it of its own batch. */
#include "frontend/language/elaborate/train_internal.h"

#include "ir/support/bitset.h"

#include <string.h>

/* What a metric is called: its variable, or the function that computes it. */
static const char *metric_name(Elab *l, const Expr *e, int i)
{
    if (e && e->kind == EXPR_PIPE)
        e = e->pipe.stages[e->pipe.len - 1].call;
    if (e && e->kind == EXPR_CALL)
        e = e->call.callee;
    return e && e->kind == EXPR_NAME ? e->name : pool_printf(l->pool, "metric%d", i);
}

static const Expr *metrics_expr(const Body *body)
{
    const Expr *e = NULL;
    for (int i = 0; i < body->len; i++)
        if (body->stmts[i]->kind == STMT_ASSIGN && body->stmts[i]->assign.targets.len == 1 &&
            strcmp(body->stmts[i]->assign.targets.data[0].text, "metrics") == 0)
            e = body->stmts[i]->assign.value;
    return e;
}

/* ---- total(x) and average(x) ---- */

static Val add_total(BuiltinCall *c, bool average)
{
    Elab *l = c->l;
    ValueId x = arg_tensor(c, 0);
    const Type *t = elab_type(l, x);
    if (t->dtype != DTYPE_F32 && t->dtype != DTYPE_I32) {
        if (elab_error(l, c->span, "E104", "%s needs f32 or i32, got %s", c->fn->name,
                       type_text(l->pool, t)))
            diag_help(l->diag, "|> to_f32()");
        return val_poison();
    }
    if (l->loop) {
        elab_error(l, c->span, "E211",
                   "%s is over the batches of an evaluation, and no part of a "
                   "scan",
                   c->fn->name);
        return val_poison();
    }
    Total total = {elab_node1(l, OP_stop_gradient, x, NULL, NULL, c->span), average};
    if (total.value == VALUE_NONE)
        return val_poison();
    vec_push(l->pool, &l->totals, total);
    return val_tensor(total.value);
}

Val builtin_total(BuiltinCall *c)
{
    return add_total(c, false);
}

Val builtin_average(BuiltinCall *c)
{
    return add_total(c, true);
}

static const Total *total_of(const Elab *l, const Node *n)
{
    for (size_t i = 0; i < l->totals.len; i++)
        if (l->totals.data[i].value == n->out[0])
            return &l->totals.data[i];
    return NULL;
}

/* ---- formulas ---- */

/* What a metric is computed of, back to the totals. */
typedef struct Formula {
    Elab *l;
    ValueId metric;
    Bitset nodes; /* the totals too */
    int totals;
    ValueId outside; /* a number of one batch that is in no total, or VALUE_NONE */
} Formula;

static bool of_a_batch(const Node *n)
{
    return node_is_source(n) && n->op != OP_const;
}

static Formula find_formula(Elab *l, ValueId metric)
{
    Formula f = {.l = l, .metric = metric, .outside = VALUE_NONE};
    NodeId last = graph_value(l->g, metric)->def;
    f.nodes = bitset_new(l->pool, (size_t)last + 1);
    bitset_add(&f.nodes, last);
    for (NodeId id = last; id != NODE_NONE; id--) { /* inputs are made before what reads them */
        const Node *n = graph_node(l->g, id);
        if (!bitset_has(&f.nodes, id))
            continue;
        if (total_of(l, n)) {
            f.totals++;
            continue;
        }
        if (of_a_batch(n))
            f.outside = n->out[0];
        for (int i = 0; i < n->n_in; i++)
            bitset_add(&f.nodes, graph_value(l->g, n->in[i])->def);
    }
    return f;
}

/* The output whose total the formula reads. */
static ValueId add_summed(Elab *l, const Total *total, Graph *formula)
{
    const char *name = pool_printf(l->pool, "total#%zu", (size_t)(total - l->totals.data));
    add_output(l, name, total->value);
    AttrList attrs = {.n = 0};
    attrs_string(&attrs, ATTR_role, total->average ? "average" : "total");
    return graph_add_source(formula, OP_input, *elab_type(l, total->value), &attrs,
                            pool_printf(l->pool, "%%%s", name), (Loc){0});
}

static void copy_node(Graph *to, const Node *n, const Type *type, ValueId *map)
{
    if (n->op == OP_const) {
        AttrList attrs = {.n = n->n_attr};
        memcpy(attrs.items, n->attr, (size_t)n->n_attr * sizeof *n->attr);
        map[n->out[0]] = graph_add_source(to, OP_const, *type, &attrs, NULL, n->loc);
        return;
    }
    ValueId *in = POOL_ARRAY(to->pool, (size_t)n->n_in + 1, ValueId);
    for (int i = 0; i < n->n_in; i++)
        in[i] = map[n->in[i]];
    const Node *copy = value_node(to, graph_add_like(to, n, in, NULL, NULL));
    for (int i = 0; i < n->n_out; i++)
        map[n->out[i]] = copy->out[i];
}

static Graph *cut_formula(const Formula *f, const char *name)
{
    Elab *l = f->l;
    Graph *formula = graph_new(l->pool, name);
    ValueId *map = POOL_ARRAY(l->pool, l->g->values.len, ValueId);
    NodeId last = graph_value(l->g, f->metric)->def;
    for (NodeId id = 0; id <= last; id++) {
        const Node *n = graph_node(l->g, id);
        const Total *total = bitset_has(&f->nodes, id) ? total_of(l, n) : NULL;
        if (total)
            map[n->out[0]] = add_summed(l, total, formula);
        else if (bitset_has(&f->nodes, id))
            copy_node(formula, n, elab_type(l, n->out[0]), map);
    }
    graph_add_output(formula, name, map[f->metric]);
    return formula;
}

/* ---- outputs ---- */

static bool fits_formula(const Formula *f, Span span)
{
    Elab *l = f->l;
    const Type *t = elab_type(l, f->metric);
    if (f->outside != VALUE_NONE) {
        if (elab_error(l, span, "E211", "a metric of totals reads what only one batch has"))
            diag_help(l->diag,
                      "what a formula of totals reads beside constants is in total(...) or "
                      "average(...)");
        return false;
    }
    if (t->dtype == DTYPE_F32 && t->rank <= 2)
        return true;
    elab_error(l, span, "E211", "a metric of totals is an f32 number, a list or a table, got %s",
               type_text(l->pool, t));
    return false;
}

static void add_formula(const Formula *f, const char *name, Span span)
{
    Elab *l = f->l;
    if (!fits_formula(f, span))
        return;
    if (l->mode == FRONTEND_EVAL) {
        TotalMetric m = {pool_strdup(l->pool, name), cut_formula(f, name)};
        vec_push(l->pool, &l->g->total_metrics, m);
    } else if (elab_type(l, f->metric)->rank == 0)
        add_output(l, name, f->metric); /* a training step tells no tables */
}

static void add_metric(Elab *l, Val v, const char *name, Span span)
{
    if (!want_tensor(l, v, span, "a metric"))
        return;
    const Formula f = find_formula(l, v.tensor);
    if (f.totals)
        add_formula(&f, name, span);
    else if (want_scalar(l, v, span, "a metric"))
        add_output(l, name, v.tensor);
}

void add_metrics(Elab *l, const Binding *metrics, const Body *body)
{
    if (!metrics || metrics->value.kind == VAL_POISON)
        return;
    const Expr *e = metrics_expr(body);
    const Val single = metrics->value;
    ValList list = single.kind == VAL_LIST ? single.list : (ValList){&single, 1};
    bool listed = e && e->kind == EXPR_LIST && e->list.len == list.len;
    for (int i = 0; i < list.len; i++)
        add_metric(l, list.data[i], metric_name(l, listed ? e->list.data[i] : e, i), metrics->span);
}
