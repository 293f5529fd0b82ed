/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions of the language and of its library frontend/std/: a training step that calls them, in
 * ir/eval's doubles, has the loss and the gradients that PyTorch computes (library_cases.txt,
 * written by tests/peers/library.py); and compiled it follows these doubles. */
#include "check.h"
#include "frontend/language/frontend.h"
#include "ir/support/strbuf.h"
#include "tests/support/run/step_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CASES = 256 };

typedef struct Parameter {
    const char *name;
    int64_t count;
    const char *gradient; /* numbers as text */
} Parameter;

typedef struct Case {
    const char *name, *call;
    double loss;
    VEC(Parameter) parameters;
    VEC(const char *) gradients;
    StrBuf declarations;
} Case;

typedef struct Cases {
    Case item[MAX_CASES];
    int n;
} Cases;

static char *read_cases(Pool *pool)
{
    const char *root = getenv("SCRIMP_SOURCE");
    const char *path = pool_printf(pool, "%s/tests/property/library_cases.txt", root ? root : ".");
    FILE *in = fopen(path, "r");
    CHECK_MSG(in, "%s", path);
    StrBuf text = strbuf_new(pool);
    for (int c; in && (c = getc(in)) != EOF;)
        strbuf_printf(&text, "%c", c);
    if (in)
        fclose(in);
    return text.text;
}

/* "NAME 2 3 4"; what belongs to a label (with a point in its name) is declared by the layer. */
static void read_parameter(Pool *pool, Case *c, char *line)
{
    Parameter p = {.name = line, .count = 1};
    char *dims = line + strcspn(line, " ");
    *dims++ = 0;
    StrBuf list = strbuf_new(pool);
    for (char *at = dims; *at;) {
        int64_t d = strtoll(at, &at, 10);
        p.count *= d;
        strbuf_printf(&list, "%s%lld", list.len ? ", " : "", (long long)d);
    }
    if (!strchr(p.name, '.'))
        strbuf_printf(&c->declarations, "  param %s: f32[%s] = normal(0.5)\n", p.name, list.text);
    vec_push(pool, &c->parameters, p);
}

static void read_line(Pool *pool, Cases *all, char *line)
{
    char *rest = line + strcspn(line, " ");
    if (*line == '#' || !*rest)
        return;
    *rest++ = 0;
    Case *c = all->n ? &all->item[all->n - 1] : NULL;
    if (strcmp(line, "case") == 0 && all->n < MAX_CASES)
        all->item[all->n++] = (Case){.name = rest, .declarations = strbuf_new(pool)};
    else if (c && strcmp(line, "param") == 0)
        read_parameter(pool, c, rest);
    else if (c && strcmp(line, "call") == 0)
        c->call = rest;
    else if (c && strcmp(line, "loss") == 0)
        c->loss = strtod(rest, NULL);
    else if (c && strcmp(line, "grad") == 0)
        vec_push(pool, &c->gradients, rest);
}

static Cases *load_cases(Pool *pool)
{
    Cases *all = POOL_NEW(pool, Cases);
    *all = (Cases){0};
    for (char *line = read_cases(pool); *line;) {
        size_t n = strcspn(line, "\n");
        char *next = line + n + (line[n] == '\n');
        line[n] = 0;
        read_line(pool, all, line);
        line = next;
    }
    return all;
}

/* One model that calls them all; the loss of each is a metric. */
static const char *model_of(Pool *pool, const Cases *all)
{
    StrBuf text = strbuf_new(pool), calls = strbuf_new(pool), losses = strbuf_new(pool);
    StrBuf metrics = strbuf_new(pool);
    strbuf_put(&text, "import \"std/all\"\n"
                      "block weighed(y) {\n"
                      "  n = 1\n"
                      "  for d in y.shape { n = n * d }\n"
                      "  return sum(reshape(y, [n]) * cos(to_f32(iota(n)) * 0.9))\n"
                      "}\nmodel cases(none_of_these: f32[1]) {\n");
    for (int i = 0; i < all->n; i++) {
        const Case *c = &all->item[i];
        strbuf_put(&text, c->declarations.text);
        strbuf_printf(&calls, "  loss_%s = weighed(%s)\n", c->name, c->call);
        strbuf_printf(&losses, "%sloss_%s", i ? ", " : "", c->name);
        strbuf_printf(&metrics, "  loss_%s = losses[%d]\n", c->name, i);
    }
    strbuf_printf(&text,
                  "%s  return %s\n}\ntrain {\n  batch = synthetic(x = f32[1])\n"
                  "  losses = cases(batch.x)\n  loss = 0\n  for l in losses { loss = loss + l }\n%s"
                  "  metrics = [%s]\n  optim = sgd(lr = 1)\n  steps = 1\n}\n",
                  calls.text, losses.text, metrics.text, losses.text);
    return text.text;
}

/* Element i of parameter j of a case. */
static void put_formula(EvalState *s, ValueId v, int64_t count, int j)
{
    double *data = pool_alloc(s->pool, (size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++)
        data[i] = sin(1 + 1.3 * (double)i + 2.1 * j);
    eval_set(s, v, data);
}

static void put_inputs(EvalState *s, const Cases *all)
{
    static const double numbers[4] = {1, 0, 0, 0};
    const Graph *g = s->graph;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_input)
            eval_set(s, n->out[0], numbers);
    }
    for (int i = 0; i < all->n; i++)
        for (size_t j = 0; j < all->item[i].parameters.len; j++) {
            const Parameter *p = &all->item[i].parameters.data[j];
            ValueId v = graph_find(g, pool_printf(s->pool, "$%s", p->name));
            CHECK_MSG(v != VALUE_NONE, "no parameter %s", p->name);
            if (v != VALUE_NONE)
                put_formula(s, v, p->count, (int)j);
        }
}

static ValueId written_over(const Graph *g, ValueId storage)
{
    for (size_t i = 0; i < g->values.len; i++)
        if (g->values.data[i].writes == storage)
            return (ValueId)i;
    return VALUE_NONE;
}

/* Frequencies of `rope` are f32 in the program and double in PyTorch. */
static bool near(double got, double wanted)
{
    return fabs(got - wanted) <= 1e-7 * fmax(1, fabs(wanted));
}

/* The step is w - gradient: sgd with a rate of 1. */
static void check_gradient(const EvalState *s, const Parameter *p, const char *expected)
{
    ValueId w = graph_find(s->graph, pool_printf(s->pool, "$%s", p->name));
    ValueId next = w == VALUE_NONE ? w : written_over(s->graph, w);
    CHECK_MSG(next != VALUE_NONE, "%s is not trained", p->name);
    if (next == VALUE_NONE)
        return;
    const double *before = eval_get(s, w), *after = eval_get(s, next);
    char *at = NULL;
    for (int64_t i = 0; i < p->count; i++, expected = at) {
        double wanted = strtod(expected, &at), got = before[i] - after[i];
        bool equal = at != expected && near(got, wanted);
        CHECK_MSG(equal, "gradient of %s, element %lld: %.17g, PyTorch %.17g", p->name,
                  (long long)i, got, wanted);
        if (!equal)
            return;
    }
}

static void check_cases(EvalState *s, const Cases *all)
{
    for (int i = 0; i < all->n; i++) {
        const Case *c = &all->item[i];
        ValueId v = graph_output(s->graph, pool_printf(s->pool, "loss_%s", c->name));
        bool whole = v != VALUE_NONE && c->parameters.len == c->gradients.len;
        CHECK_MSG(whole, "%s", c->name);
        if (!whole)
            continue;
        double got = eval_get(s, v)[0];
        CHECK_MSG(near(got, c->loss), "%s: %.17g, PyTorch %.17g", c->name, got, c->loss);
        for (size_t j = 0; j < c->parameters.len; j++)
            check_gradient(s, &c->parameters.data[j], c->gradients.data[j]);
    }
}

static void test_pytorch(void)
{
    Pool *pool = pool_new();
    const Cases *all = load_cases(pool);
    Built built;
    CHECK(all->n > 20);
    if (model_plan(pool, model_of(pool, all), &(BuildOptions){.pipeline = "autodiff"}, &built)) {
        EvalState *s = eval_new(pool, built.graph);
        put_inputs(s, all);
        eval_run(s, false);
        check_cases(s, all);
    }
    pool_free(pool);
}

static void test_compiled(void)
{
    const double tolerance = 5e-5;
    Pool *pool = pool_new();
    const char *text = model_of(pool, load_cases(pool));
    Built plain, built;
    Running r;
    if (model_plan(pool, text, &(BuildOptions){.pipeline = "autodiff"}, &plain) &&
        model_build(pool, text, &(BuildOptions){.pipeline = NULL}, &built) &&
        run_open(&r, &built, 2)) {
        run_initialize(&r, 5);
        EvalState *s = eval_new(pool, plain.graph);
        eval_from_run(s, &r, 5, 0);
        run_step(&r, 5, 0);
        eval_run(s, false);
        const char *fault = compare_numbers(&r, s, tolerance);
        CHECK_MSG(!fault, "%s", fault);
        eval_commit(s);
        fault = compare_state(&r, s, 1, tolerance);
        CHECK_MSG(!fault, "%s", fault);
        run_close(&r);
        codegen_unload(built.step);
    }
    pool_free(pool);
}

int main(void)
{
    test_pytorch();
    test_compiled();
    return test_result();
}
