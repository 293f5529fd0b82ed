/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/graph_text.h"

#include "check.h"
#include "ir/eval.h"
#include "ir/print.h"
#include "ir/support/strbuf.h"

#include <math.h>
#include <string.h>

Graph *graph_of(Pool *pool, const char *kind, const char *body)
{
    const char *text = pool_printf(
        pool, "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\n%s @t {\n%s}\n", kind, body);
    Diag *diag = diag_new(pool);
    Graph *g = graph_read(pool, "t.ir", text, strlen(text), diag);
    if (!g)
        diag_print(diag, stderr, false);
    CHECK_MSG(g, "%s", text);
    return g;
}

int graph_text_count(const Graph *g, const char *what)
{
    Pool *pool = pool_new();
    StrBuf b = strbuf_new(pool);
    graph_print(g, (PrintOptions){0}, &b);
    int n = 0;
    for (const char *at = b.text; (at = strstr(at, what)); at++)
        n++;
    pool_free(pool);
    return n;
}

const double *graph_evaluate_output(Pool *pool, const Graph *g, const char *name)
{
    EvalState *s = eval_new(pool, g);
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (n->op != OP_input && !node_is_persistent(n))
            continue;
        int64_t size = type_elements(value_type(g, n->out[0]));
        double *data = POOL_ARRAY(pool, (size_t)size, double);
        for (int64_t i = 0; i < size; i++)
            data[i] = (double)((i + (int64_t)k) % 97) / 8 - 3;
        eval_set(s, n->out[0], data);
    }
    eval_run(s, false);
    return eval_get(s, graph_output(g, name));
}

const double *graph_evaluate_out(Pool *pool, const Graph *g)
{
    return graph_evaluate_output(pool, g, "out");
}

bool graph_same_out(Pool *pool, const Graph *g, const Graph *other)
{
    const double *a = graph_evaluate_out(pool, g), *b = graph_evaluate_out(pool, other);
    double apart = 0, size = 0;
    for (int64_t i = 0; i < type_elements(value_type(g, graph_output(g, "out"))); i++) {
        apart = fmax(apart, fabs(a[i] - b[i]));
        size = fmax(size, fabs(b[i]));
    }
    return size > 0 && apart <= 1e-14 * size;
}
