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

/* A gradient reads what the forward operation gave, or the transpose of it that models go on with.
 */
static void test_attention(const char *transposed, bool by_rows)
{
    Pool *pool = pool_new();
    const char *ir = pool_printf(
        pool,
        "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
        "  train {optim=sgd, lr=constant, accumulate=1}\n"
        "  $q = param : f32[2,3,5,8]\n  $k = param : f32[2,3,7,8]\n  $v = param : f32[2,3,7,8]\n"
        "  %%o, %%m, %%s = attention $q, $k, $v : f32[2,3,5,8], f32[2,3,5], f32[2,3,5]\n"
        "  %%t = transpose %%o {perm=[%s} : f32[2,%s,8]\n"
        "  %%loss = sum %%t : f32[]\n  output loss = %%loss\n}\n",
        transposed, by_rows ? "5,3" : "3,5");
    PassContext c = {.graph = graph_read(pool, "t.ir", ir, strlen(ir), diag_new(pool)),
                     .pool = pool,
                     .library = attends};
    CHECK_MSG(passes_run(&c, pipeline_train, NULL, NULL), "%s", c.error.message);
    const Node *o = value_node(c.graph, graph_find(c.graph, "%o")), *grad = NULL;
    for (size_t i = 0; i < c.graph->order.len; i++)
        if (graph_node(c.graph, c.graph->order.data[i])->op == OP_attention_grad)
            grad = graph_node(c.graph, c.graph->order.data[i]);
    CHECK(node_attr(o, ATTR_library) && grad && grad->n_in == 7);
    const Node *from = grad ? value_node(c.graph, grad->in[6]) : o;
    CHECK(from->op == (by_rows ? OP_transpose : OP_attention));
    CHECK(grad && (node_attr(grad, ATTR_perm) != NULL) == by_rows);
    pool_free(pool);
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

int main(void)
{
    test_marked();
    test_casts();
    test_bias_apart();
    test_left_alone();
    test_attention("0,2,1,3]", true);
    test_attention("0,1,2,3]", false);
    refuse("library=\"some\"");
    refuse("workspace=64");
    refuse("library=\"some\", workspace=-64");
    return test_result();
}
