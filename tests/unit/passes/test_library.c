/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pass `library`: what a library computes is marked, has its workspace in the plan, reads
 * operands of its types and is in no group; what is missing is said. */
#include "check.h"

#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <string.h>

static const char text[] = "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
                           "  train {optim=sgd, lr=constant, accumulate=1, precision=\"%s\"}\n"
                           "  %%x = input {role=\"batch.x\"} : f32[64,48]\n"
                           "  %%l = input {role=\"batch.y\"} : i32[64]\n"
                           "  $a.weight = param : f32[32,48]\n"
                           "  $a.bias = param : f32[32]\n"
                           "  $b.weight = param : f32[8,32]\n"
                           "  %%a = linear %%x, $a.weight, $a.bias : f32[64,32] @keep\n"
                           "  %%h = relu %%a : f32[64,32]\n"
                           "  %%b = linear %%h, $b.weight : f32[64,8]\n"
                           "  %%loss = cross_entropy %%b, %%l : f32[]\n"
                           "  output loss = %%loss\n}\n";

enum { WORKSPACE = 1 << 16 };

static bool all(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    (void)ask;
    DType result = value_type(g, n->out[0])->dtype;
    bool half = result == DTYPE_BF16 || value_type(g, n->in[0])->dtype == DTYPE_BF16 ||
                value_type(g, n->in[1])->dtype == DTYPE_BF16;
    *use = (LibraryUse){.library = "some",
                        .workspace = WORKSPACE,
                        .factors = half ? DTYPE_BF16 : DTYPE_F32,
                        .bias = result};
    return true;
}

/* As convolutions are. */
static bool apart(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    all(g, n, ask, use);
    use->as_they_are = use->bias_apart = true;
    return true;
}

static bool missing(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    all(g, n, ask, use);
    use->missing = n->op == OP_linear ? "there is no A" : "there is no B";
    return true;
}

/* Attention alone; a gradient only where it knows the forward result. */
static bool attends(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    (void)g;
    *use = (LibraryUse){.library = "some",
                        .workspace = WORKSPACE,
                        .as_they_are = true,
                        .reads_result = n->op == OP_attention_grad};
    return n->op == OP_attention || (use->reads_result && ask->result != VALUE_NONE);
}

static bool none(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    (void)g, (void)n, (void)ask, (void)use;
    return false;
}

static PassContext planned(Pool *pool, const char *precision, LibraryRule *rule)
{
    const char *ir = pool_printf(pool, text, precision);
    PassContext ctx = {.graph = graph_read(pool, "t.ir", ir, strlen(ir), diag_new(pool)),
                       .pool = pool,
                       .library = rule};
    CHECK_MSG(passes_run(&ctx, pipeline_train, NULL, NULL), "%s", ctx.error.message);
    return ctx;
}

static const char *text_of(Pool *pool, const Graph *g)
{
    StrBuf b = strbuf_new(pool);
    graph_print(g, (PrintOptions){.no_loc = true}, &b);
    return b.text;
}

/* Nodes of the order that are MATRIX operations, alone or in a group; how many are marked. */
static int count_products(const Graph *g, int *marked)
{
    int n = 0;
    *marked = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *node = graph_node(g, g->order.data[i]);
        bool product = op_table[node->op].op_class == OP_CLASS_MATRIX;
        n += product || (node->body && graph_has_matrix(node->body));
        *marked += product && strcmp(node_string(node, ATTR_library, ""), "some") == 0;
    }
    return n;
}

static int casts_of(const Graph *g, const char *name)
{
    int n = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *node = graph_node(g, g->order.data[i]);
        n += node->op == OP_cast && node->in[0] == graph_find(g, name);
    }
    return n;
}

static void test_marked(void)
{
    Pool *pool = pool_new();
    int marked;
    PassContext c = planned(pool, "f32", all);
    CHECK(count_products(c.graph, &marked) == 5 && marked == 5);
    CHECK(!c.library_missing && !strstr(text_of(pool, c.graph), "cast"));
    for (size_t i = 0; i < c.graph->order.len; i++) {
        NodeId id = c.graph->order.data[i];
        if (node_attr(graph_node(c.graph, id), ATTR_library))
            CHECK(node_workspace_bytes(c.graph, graph_node(c.graph, id)) == WORKSPACE &&
                  c.plan->workspace_offset[id] >= 0);
    }
    pool_free(pool);
}

/* Weights that both directions read are cast once; the gradient of a weight is f32. */
static void test_casts(void)
{
    Pool *pool = pool_new();
    int marked;
    PassContext c = planned(pool, "bf16", all);
    const Graph *g = c.graph;
    CHECK(count_products(g, &marked) == 5 && marked == 5);
    CHECK(casts_of(g, "$a.weight") == 1 && casts_of(g, "$b.weight") == 1);
    CHECK(casts_of(g, "$a.bias") == 1 && casts_of(g, "%x") == 1);
    CHECK(value_type(g, graph_find(g, "$d.a.weight"))->dtype == DTYPE_F32);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (int k = 0; k < 2 && node_attr(n, ATTR_library); k++)
            CHECK(value_type(g, n->in[k])->dtype == DTYPE_BF16);
    }
    pool_free(pool);
}

/* A bias is added by what follows, and is all that @keep is about; operands stay as they are. */
static void test_bias_apart(void)
{
    Pool *pool = pool_new();
    int marked;
    PassContext c = planned(pool, "bf16", apart);
    const Graph *g = c.graph;
    CHECK(count_products(g, &marked) == 5 && marked == 5 && casts_of(g, "$a.weight") == 0);
    const Node *a = value_node(g, graph_find(g, "%a"));
    CHECK(a->op == OP_linear && a->n_in == 2 && a->hint == REMAT_AUTO);
    const Node *sum = value_node(g, graph_find(g, "%a.biased"));
    CHECK(sum->op == OP_add && sum->in[0] == a->out[0] && sum->hint == REMAT_KEEP);
    pool_free(pool);
}

static void test_left_alone(void)
{
    Pool *pool = pool_new();
    PassContext plain = planned(pool, "bf16", NULL), no = planned(pool, "bf16", none);
    PassContext lacks = planned(pool, "bf16", missing);
    CHECK(strcmp(text_of(pool, plain.graph), text_of(pool, no.graph)) == 0);
    CHECK(strcmp(text_of(pool, plain.graph), text_of(pool, lacks.graph)) == 0);
    CHECK(!no.library_missing);
    CHECK(strcmp(lacks.library_missing, "there is no A; there is no B") == 0);
    pool_free(pool);
}

/* A step with the attention of q, k and v, which lines of a graph make, and a loss of it. */
static Graph *attention_step(Pool *pool, const char *made, const char *loss)
{
    const char *ir = pool_printf(
        pool,
        "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
        "  train {optim=sgd, lr=constant, accumulate=1}\n%s"
        "  %%o, %%m, %%s = attention %%q, %%k, %%v : f32[2,3,5,8], f32[2,3,5], f32[2,3,5]\n"
        "%s  %%loss = sum %%t : f32[]\n  output loss = %%loss\n}\n",
        made, loss);
    PassContext c = {.graph = graph_read(pool, "t.ir", ir, strlen(ir), diag_new(pool)),
                     .pool = pool,
                     .library = attends};
    CHECK_MSG(passes_run(&c, pipeline_train, NULL, NULL), "%s", c.error.message);
    return c.graph;
}

static const Node *node_of(const Graph *g, OpKind op)
{
    for (size_t i = 0; i < g->order.len; i++)
        if (graph_node(g, g->order.data[i])->op == op)
            return graph_node(g, g->order.data[i]);
    return NULL;
}

static int count_nodes(const Graph *g, OpKind op)
{
    int n = 0;
    for (size_t i = 0; i < g->order.len; i++)
        n += graph_node(g, g->order.data[i])->op == op;
    return n;
}

static void expect_rows(const Graph *g, const char *forward, const char *gradient)
{
    const Node *o = node_of(g, OP_attention), *grad = node_of(g, OP_attention_grad);
    CHECK(o && node_attr(o, ATTR_library) && grad && grad->n_in == 7);
    CHECK(o && grad && grad->in[6] == o->out[0]);
    const char *a = o ? node_string(o, ATTR_by_rows, "") : "";
    const char *b = grad ? node_string(grad, ATTR_by_rows, "") : "";
    CHECK_MSG(strcmp(a, forward) == 0 && strcmp(b, gradient) == 0, "by rows: %s, %s", a, b);
}

#define TURN(to, from) "  %" to " = transpose %" from " {perm=[0,2,1,3]} : "

/* Tensors that models have by rows are read and written by rows, each on its own. */
static void test_attention(void)
{
    Pool *pool = pool_new();
    static const char params[] =
        "  $a = param : f32[2,3,5,8]\n  $b = param : f32[2,7,3,8]\n  $c = param : f32[2,3,7,8]\n"
        "  %q = neg $a : f32[2,3,5,8]\n  %k.rows = neg $b : f32[2,7,3,8]\n" TURN(
            "k", "k.rows") "f32[2,3,7,8]\n  %v = neg $c : f32[2,3,7,8]\n";
    static const char rows[] = TURN("r", "o") "f32[2,5,3,8]\n  %t = exp %r : f32[2,5,3,8]\n";
    static const char heads[] = "  %t = exp %o : f32[2,3,5,8]\n";
    static const char both[] = TURN("r", "o") "f32[2,5,3,8]\n  %y = exp %r : f32[2,5,3,8]\n" TURN(
        "z", "y") "f32[2,3,5,8]\n  %t = mul %z, %o : f32[2,3,5,8]\n";
    const Graph *g = attention_step(pool, params, rows);
    expect_rows(g, "ko", "kogK");
    CHECK(count_nodes(g, OP_transpose) == 0);
    g = attention_step(pool, params, heads);
    expect_rows(g, "k", "kK");
    CHECK(count_nodes(g, OP_transpose) == 0);
    g = attention_step(pool, params, both);
    expect_rows(g, "ko", "koK");
    CHECK(node_of(g, OP_transpose) != NULL);
    pool_free(pool);
}

/* Heads that are pieces of one tensor lie in it, and so do their gradients in that of the tensor.
 */
static void test_pieces(const char *width, int copies)
{
    Pool *pool = pool_new();
    StrBuf made = strbuf_new(pool);
    strbuf_printf(&made, "  $w = param : f32[2,5,%s]\n  %%w = exp $w : f32[2,5,%s]\n", width,
                  width);
    for (int i = 0; i < 3; i++) {
        const int from = 24 * i + (strcmp(width, "72") ? 1 : 0);
        strbuf_printf(&made,
                      "  %%s%d = slice %%w {start=[0,0,%d], limit=[2,5,%d]} : f32[2,5,24]\n"
                      "  %%h%d = reshape %%s%d {shape=[2,5,3,8]} : f32[2,5,3,8]\n"
                      "  %%%c = transpose %%h%d {perm=[0,2,1,3]} : f32[2,3,5,8]\n",
                      i, from, from + 24, i, i, "qkv"[i], i);
    }
    const Graph *g = attention_step(pool, made.text,
                                    TURN("r", "o") "f32[2,5,3,8]\n  %t = exp %r : f32[2,5,3,8]\n");
    expect_rows(g, "qkvo", "qkvogQKV");
    CHECK(count_nodes(g, OP_transpose) == 0);
    CHECK_MSG(count_nodes(g, OP_slice) == copies, "%d slices", count_nodes(g, OP_slice));
    const Node *grad = node_of(g, OP_attention_grad);
    for (int i = 0; i < 3 && grad; i++)
        CHECK(graph_value(g, grad->out[i])->part_of != VALUE_NONE);
    pool_free(pool);
}

/* Attention of pieces of tensors whose rows have so many elements, from this one on, that writes
 * its result into another. */
static bool allows_pieces(int elements, int from, const char *by_rows, const char *result)
{
    Pool *pool = pool_new();
    const char *fault = NULL, *t = "f32[2,5,3,8]";
    StrBuf ir = strbuf_new(pool);
    strbuf_put(&ir, "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n");
    for (const char *x = "qkv"; *x; x++)
        strbuf_printf(&ir,
                      "  %%w%c = input : f32[2,5,3,%d]\n"
                      "  %%%c = subview %%w%c {start=[0,0,0,%d], limit=[2,5,3,%d]} : %s\n",
                      *x, elements, *x, *x, from, from + 8, t);
    strbuf_printf(&ir,
                  "  %%more = input : %s\n  %%one = input : f32[2,5,3,1]\n"
                  "  %%o, %%m, %%s = attention %%q, %%k, %%v {%s} : %s, f32[2,3,5], f32[2,3,5]\n"
                  "  %%y = concat %s\n  output y = %%y\n}\n",
                  t, by_rows, t, result);
    const Graph *g = graph_read(pool, "t.ir", ir.text, strlen(ir.text), diag_new(pool));
    bool allowed = g && graph_verify(g, &fault);
    pool_free(pool);
    return allowed;
}

static void test_where_pieces_lie(void)
{
    static const char library[] = "library=\"cudnn\", workspace=64, by_rows=\"qkvo\"";
    static const char copied[] = "%o, %more {axis=3} : f32[2,5,3,16]";
    static const char joined[] = "%o, %more {axis=3, joined=[0]} : f32[2,5,3,16]";
    static const char crooked[] = "%one, %o, %more {axis=3, joined=[1]} : f32[2,5,3,17]";
    CHECK(allows_pieces(16, 0, library, copied) && allows_pieces(16, 8, library, copied));
    CHECK(!allows_pieces(16, 4, library, copied) && !allows_pieces(20, 8, library, copied));
    CHECK(!allows_pieces(16, 8, "", copied));
    CHECK(!allows_pieces(16, 8, "library=\"cudnn\", workspace=64, by_rows=\"qkvQ\"", copied));
    CHECK(!allows_pieces(16, 8, "library=\"cudnn\", workspace=64, by_rows=\"\"", copied));
    static const char host[] = "by_rows=\"qkvo\"", host_heads[] = "by_rows=\"qko\"";
    CHECK(allows_pieces(16, 0, host, copied) && allows_pieces(16, 8, host, joined));
    CHECK(!allows_pieces(16, 4, host, copied) && !allows_pieces(20, 8, host, copied));
    CHECK(!allows_pieces(16, 8, host_heads, copied) && !allows_pieces(16, 8, host, crooked));
    CHECK(allows_pieces(16, 8, library, joined) && !allows_pieces(16, 8, library, crooked));
}

/* What the verifier says of text like this. */
static void refuse(const char *attributes)
{
    Pool *pool = pool_new();
    const char *fault = NULL;
    const char *ir =
        pool_printf(pool,
                    "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
                    "  %%x = input : f32[6,4]\n  %%w = input : f32[5,4]\n"
                    "  %%y = linear %%x, %%w {%s} : f32[6,5]\n  output y = %%y\n}\n",
                    attributes);
    const Graph *g = graph_read(pool, "t.ir", ir, strlen(ir), diag_new(pool));
    CHECK_MSG(!g || !graph_verify(g, &fault), "{%s} is allowed", attributes);
    pool_free(pool);
}

/* A result that lies in a concatenation keeps that from lying in another at an odd place. */
static void test_nested(const char *before, bool fits)
{
    Pool *pool = pool_new();
    const char *t = "f32[2,5,3,8]";
    const char *ir = pool_printf(
        pool,
        "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
        "  %%q = input : %s\n  %%k = input : %s\n  %%v = input : %s\n  %%one = input : %s\n"
        "  %%o, %%m, %%s = attention %%q, %%k, %%v {library=\"cudnn\", workspace=64, "
        "by_rows=\"qkvo\"} : %s, f32[2,3,5], f32[2,3,5]\n"
        "  %%more = input : %s\n  %%in = concat %%o, %%more {axis=3} : f32[2,5,3,16]\n"
        "  %%out = concat %%one, %%in {axis=3} : f32[2,5,3,%d]\n"
        "  %%y = exp %%out : f32[2,5,3,%d]\n  output y = %%y\n"
        "  %%x = input : f32[1]\n  %%most = broadcast %%x {shape=[9999]} : f32[9999]\n"
        "  output most = %%most\n}\n",
        t, t, t, before, t, t, fits ? 24 : 17, fits ? 24 : 17);
    PassContext c = {.graph = graph_read(pool, "t.ir", ir, strlen(ir), diag_new(pool)),
                     .pool = pool};
    CHECK_MSG(passes_run(&c, "views,plan", NULL, NULL), "%s", c.error.message);
    const Graph *g = c.graph;
    bool inside = graph_value(g, graph_find(g, "%o"))->part_of != VALUE_NONE &&
                  graph_value(g, graph_find(g, "%in"))->part_of != VALUE_NONE;
    CHECK_MSG(inside == fits, "%s", text_of(pool, g));
    pool_free(pool);
}

int main(void)
{
    test_marked();
    test_casts();
    test_bias_apart();
    test_left_alone();
    test_attention();
    test_pieces("72", 0);
    test_pieces("73", 3);
    test_where_pieces_lie();
    test_nested("f32[2,5,3,8]", true);
    test_nested("f32[2,5,3,1]", false);
    refuse("library=\"some\"");
    refuse("workspace=64");
    refuse("library=\"some\", workspace=-64");
    return test_result();
}
