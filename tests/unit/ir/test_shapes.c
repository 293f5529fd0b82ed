/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Golden shapes: what every operation makes of its inputs, and the error code for inputs that do
 * not fit. */
#include "check.h"
#include "ir/support/strbuf.h"
#include "tests/support/shape_cases.h"

#include <string.h>

static const char *run_case(Pool *pool, const OpCase *c)
{
    Graph *g = graph_new(pool, "t");
    ValueId in[8];
    int n_in = 0;
    AttrList attrs = {.n = 0};
    const char *word, *rest = c->inputs;
    while ((word = next_word(pool, &rest)))
        in[n_in++] = graph_add_source(g, OP_input, parse_type(pool, word), NULL, NULL, (Loc){0});
    rest = c->attrs;
    while ((word = next_word(pool, &rest)))
        parse_attr(pool, word, &attrs);
    ShapeError err;
    NodeId id = graph_try_add(g, c->op, in, n_in, &attrs, NULL, (Loc){0}, &err);
    if (id == NODE_NONE) {
        CHECK_MSG(err.message[0] && err.operand >= -1 && err.operand < n_in, "%s", op_name(c->op));
        return err.code;
    }
    StrBuf b = strbuf_new(pool);
    for (int i = 0; i < graph_node(g, id)->n_out; i++)
        strbuf_printf(&b, "%s%s", i ? " " : "",
                      type_text(pool, value_type(g, graph_node(g, id)->out[i])));
    return b.text;
}

/* Every row of the op table but the sources and what has a body has a case that fits and one that
 * does not. */
static void check_coverage(void)
{
    bool good[OP_COUNT] = {0}, bad[OP_COUNT] = {0};
    for (int i = 0; i < n_op_cases; i++)
        (op_cases[i].expect[0] == 'E' ? bad : good)[op_cases[i].op] = true;
    for (int op = 0; op < OP_COUNT; op++)
        if (op_table[op].op_class != OP_CLASS_SOURCE && op_table[op].op_class != OP_CLASS_REGION)
            CHECK_MSG(good[op] && bad[op], "%s has no case", op_name((OpKind)op));
}

/* Messages that docs promise word for word, with their way out. */
static void check_texts(Pool *pool)
{
    const struct {
        OpKind op;
        const char *a, *b, *message, *help;
    } texts[] = {
        {OP_concat, "f32[32,64,28,28]", "f32[32,128,27,27]",
         "concat axis 1: operand 2 is [32,128,27,27], the first is [32,64,28,28]", "ceil = true"},
        {OP_add, "f32[32,256,56,56]", "f32[32,64,56,56]", "dim 1 is 64 here but 256", "downsample"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        Graph *g = graph_new(pool, "t");
        ValueId in[2];
        in[0] = graph_add_source(g, OP_input, parse_type(pool, texts[i].a), NULL, NULL, (Loc){0});
        in[1] = graph_add_source(g, OP_input, parse_type(pool, texts[i].b), NULL, NULL, (Loc){0});
        AttrList attrs = {.n = 0};
        attrs_int(&attrs, ATTR_axis, 1);
        ShapeError err;
        CHECK(graph_try_add(g, texts[i].op, in, 2, &attrs, NULL, (Loc){0}, &err) == NODE_NONE);
        CHECK_MSG(strstr(err.message, texts[i].message), "%s", err.message);
        CHECK_MSG(strstr(err.help, texts[i].help), "%s", err.help);
    }
}

int main(void)
{
    Pool *pool = pool_new();
    for (int i = 0; i < n_op_cases; i++) {
        const char *got = run_case(pool, &op_cases[i]);
        CHECK_MSG(strcmp(got, op_cases[i].expect) == 0, "%s of %s {%s}: %s, expected %s",
                  op_name(op_cases[i].op), op_cases[i].inputs, op_cases[i].attrs, got,
                  op_cases[i].expect);
    }
    check_coverage();
    check_texts(pool);
    pool_free(pool);
    return test_result();
}
