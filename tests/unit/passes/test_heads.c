/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which transpositions pass_heads takes from attention that no library computes, and that the
 * results stay. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "ir/support/strbuf.h"
#include "passes/pass.h"

#include <string.h>

typedef struct Case {
    const char *name;
    int width; /* elements of a row of what queries, keys and values are pieces of */
    const char *letters, *grad_letters;
    int transposes, slices; /* afterwards */
    bool for_device;
} Case;

static const Case cases[] = {
    {"all of it", 72, "qkvo", "qkvgQKV", 0, 0, false},
    {"pieces at odd places", 73, "qkvo", "qkvgQKV", 0, 3, false},
    {"not for a device", 72, NULL, NULL, 8, 3, true},
};

/* Three heads of 8 from a piece of x, by heads. */
static void put_heads(StrBuf *b, char name, const char *x, int from)
{
    strbuf_printf(b,
                  "  %%%c.1 = slice %s {start=[0,0,%d], limit=[2,5,%d]} : f32[2,5,24]\n"
                  "  %%%c.2 = reshape %%%c.1 {shape=[2,5,3,8]} : f32[2,5,3,8]\n"
                  "  %%%c = transpose %%%c.2 {perm=[0,2,1,3]} : f32[2,3,5,8]\n",
                  name, x, from, from + 24, name, name, name, name);
}

/* The other way round. */
static void put_rows(StrBuf *b, const char *name, const char *from)
{
    strbuf_printf(b,
                  "  %%%s.1 = transpose %s {perm=[0,2,1,3]} : f32[2,5,3,8]\n"
                  "  %%%s = reshape %%%s.1 {shape=[2,5,24]} : f32[2,5,24]\n",
                  name, from, name, name);
}

static const char *lines_of(Pool *pool, const Case *c)
{
    StrBuf b = strbuf_new(pool);
    strbuf_printf(&b,
                  "  %%x = input {role=\"batch.x\"} : f32[2,5,%d]\n"
                  "  %%z = input {role=\"batch.z\"} : f32[2,5,3,8]\n"
                  "  %%w = exp %%x : f32[2,5,%d]\n",
                  c->width, c->width);
    put_heads(&b, 'q', "%w", c->width - 24);
    put_heads(&b, 'k', "%w", 0);
    put_heads(&b, 'v', "%w", 24);
    strbuf_put(&b, "  %o, %m, %n = attention %q, %k, %v {scale=0.3, causal=true} : f32[2,3,5,8], "
                   "f32[2,3,5], f32[2,3,5]\n");
    put_rows(&b, "out", "%o");
    strbuf_put(&b, "  output out = %out\n"
                   "  %g = transpose %z {perm=[0,2,1,3]} : f32[2,3,5,8]\n"
                   "  %dq, %dk, %dv = attention_grad %g, %q, %k, %v, %m, %n {scale=0.3, "
                   "causal=true} : f32[2,3,5,8], f32[2,3,5,8], f32[2,3,5,8]\n");
    put_rows(&b, "Q", "%dq");
    put_rows(&b, "K", "%dk");
    put_rows(&b, "V", "%dv");
    strbuf_put(&b, "  %d = concat %Q, %K, %V {axis=2} : f32[2,5,72]\n"
                   "  %t = tanh %d : f32[2,5,72]\n  output grad = %t\n");
    return b.text;
}

static PassContext run(Pool *pool, const Case *c, const char *pipeline)
{
    PassContext ctx = {.pool = pool,
                       .graph = graph_of(pool, "step", lines_of(pool, c)),
                       .for_device = c->for_device};
    if (ctx.graph)
        CHECK_MSG(passes_run(&ctx, pipeline, NULL, NULL), "%s: %s", c->name, ctx.error.message);
    return ctx;
}

static void expect_letters(const Graph *g, OpKind op, const char *letters, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == op)
            found = node_string(n, ATTR_by_rows, "");
    }
    CHECK_MSG(found && strcmp(found, letters ? letters : "") == 0, "%s: by rows %s", name, found);
}

static void expect_same(Pool *pool, const Graph *g, const Graph *other, const char *output)
{
    const ValueId v = graph_output(g, output);
    const size_t n = (size_t)type_elements(value_type(g, v));
    const double *a = graph_evaluate_output(pool, g, output);
    const double *b = graph_evaluate_output(pool, other, output);
    CHECK_MSG(a && b && memcmp(a, b, n * sizeof *a) == 0, "another %s", output);
}

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    PassContext with = run(pool, c, "heads,views,plan"), without = run(pool, c, "views,plan");
    if (with.plan && without.plan) {
        const Graph *g = with.graph;
        expect_letters(g, OP_attention, c->letters, c->name);
        expect_letters(g, OP_attention_grad, c->grad_letters, c->name);
        CHECK_MSG(graph_text_count(g, " = transpose ") == c->transposes, "%s: %d transposes",
                  c->name, graph_text_count(g, " = transpose "));
        CHECK_MSG(graph_text_count(g, " = slice ") == c->slices, "%s: %d slices", c->name,
                  graph_text_count(g, " = slice "));
        CHECK(with.plan->arena_bytes <= without.plan->arena_bytes);
        expect_same(pool, g, without.graph, "out");
        expect_same(pool, g, without.graph, "grad");
    }
    pool_free(pool);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(&cases[k]);
    return test_result();
}
