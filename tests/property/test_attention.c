/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models whose attention is one operation train to the bits of those whose scores are tensors:
 * random sizes, masks, biases, scales and dropout, self and cross attention, heads or none, heads
 * that share keys, on one and on several threads.  Gradients of keys that more than three heads
 * share are sums in another order: there the first loss has the same bits, and the others are near.
 * SCRIMP_MODELS: how many; SCRIMP_FIRST_MODEL: the first one. */
#include "check.h"
#include "tests/support/random.h"
#include "tests/support/run/model_run.h"
#include "tests/support/sample.h"

#include "ir/attention.h"
#include "ir/strided_view.h"
#include "ir/support/strbuf.h"

#include <math.h>
#include <string.h>

enum { MODELS = 6, STEPS = 2 };

static bool coin(Random *r)
{
    return random_below(r, 2);
}

static int any_of(Random *r, const int *from, int n)
{
    return from[random_below(r, n)];
}

/* What becomes of the scores a. */
static void write_scores(StrBuf *t, Random *r, bool padded)
{
    static const char *const scales[] = {"", "a = a * 0.3\n", "a = 0.17 * a\n"};
    strbuf_printf(t, "  %s", scales[random_below(r, 3)]);
    if (padded)
        strbuf_put(t, coin(r) ? "  a = a + pad\n" : "  a = pad + a\n");
    if (coin(r))
        strbuf_put(t, "  a = causal_mask(a)\n");
    strbuf_put(t, "  a = softmax(a)\n");
    if (coin(r))
        strbuf_put(t, "  a = dropout(a, 0.2)\n");
}

/* Each head of keys or values for the heads of queries that read it. */
static void write_copies(StrBuf *t, const char *name, int heads, int group, int keys)
{
    strbuf_printf(t,
                  "  %s = reshape(broadcast(reshape(%s, [2, %d, 1, %d, C // %d]), [2, %d, %d, %d, "
                  "C // %d]), [2, %d, %d, C // %d])\n",
                  name, name, heads, keys, heads * group, heads, group, keys, heads * group,
                  heads * group, keys, heads * group);
}

static void write_block(StrBuf *t, Random *r, bool padded, int heads, int group, int keys)
{
    strbuf_put(t, "block Attend(x, y, pad) {\n");
    static const char *const from[] = {"x", "y", "y"}, *const name[] = {"q", "k", "v"};
    const bool together = coin(r); /* keys and values */
    for (int i = 0; i < 3; i++) {
        if (i == 0 || !together)
            strbuf_printf(t, "  %s = %s |> %s: linear(C // %d)\n", name[i], from[i], name[i],
                          i ? group : 1);
        else if (i == 1)
            strbuf_printf(t, "  k, v = y |> kv: linear(2 * (C // %d)) |> split(2, axis = -1)\n",
                          group);
        if (heads)
            strbuf_printf(t, "  %s = %s |> rearrange(\"b t (h d) -> b h t d\", h = %d)\n", name[i],
                          name[i], i ? heads : heads * group);
        if (i && group > 1)
            write_copies(t, name[i], heads, group, keys);
    }
    strbuf_printf(t, "  a = einsum(\"%s\", q, k)\n",
                  heads ? "b h t d, b h s d -> b h t s" : "b t d, b s d -> b t s");
    write_scores(t, r, padded);
    strbuf_printf(t, "  o = einsum(\"%s\", a, v)\n",
                  heads ? "b h t s, b h s d -> b h t d" : "b t s, b s d -> b t d");
    if (heads)
        strbuf_put(t, "  o = rearrange(o, \"b h t d -> b t (h d)\")\n");
    strbuf_put(t, "  return o |> out: linear(C)\n}\n");
}

/* The lengths of some are more than one chain of products adds; of eight, one has so many keys that
 * the scores of a block do not fit into scratch memory, and two have more heads than tasks may use
 * the workspace. */
static const char *random_text(Pool *pool, int number, int *group)
{
    enum { MANY = 16500, MANY_HEADS = 40 };
    static const int lengths[] = {1, 5, 16, 17, 63, 64, 65, 112, 130, 300, 520},
                     widths[] = {3, 8, 16, 20}, groups[] = {1, 2, 3, 5};
    Random r = {.state = (uint64_t)number};
    StrBuf t = strbuf_new(pool);
    int heads = (int)random_below(&r, 3), rows = any_of(&r, lengths, 11);
    int keys = coin(&r) ? rows : any_of(&r, lengths, 11);
    if (number % 8 == 1)
        rows = any_of(&r, lengths, 4), keys = MANY;
    if (number % 8 == 3 || number % 8 == 5)
        heads = MANY_HEADS, rows = number % 8 == 3 ? 5 : 300, keys = any_of(&r, lengths, 4);
    *group = !heads ? 1 : heads > 2 ? 1 + (int)coin(&r) : any_of(&r, groups, 4);
    int width = (heads > 2 ? 3 : any_of(&r, widths, 4)) * (heads ? heads : 1) * *group;
    bool padded = coin(&r);
    strbuf_printf(&t, "option C = %d\n", width);
    write_block(&t, &r, padded, heads, *group, keys);
    strbuf_printf(&t, "model m(x: f32[2, %d, C], y: f32[2, %d, C]) {\n", rows, keys);
    strbuf_printf(&t, "  pad = reshape(select(mean(y, axis = 2) > 0, 0.0, %s), %s %d])\n",
                  number % 2 ? "-1e30" : "-3.0", heads ? "[2, 1, 1," : "[2, 1,", keys);
    strbuf_put(&t, "  x = x + (x |> first: Attend(y, pad)) * 0.5\n");
    strbuf_put(&t, "  return x |> second: Attend(y, pad)\n}\n");
    strbuf_printf(&t,
                  "train {\n  batch = synthetic(x = f32[2, %d, C], y = f32[2, %d, C], z = f32[2, "
                  "%d, C])\n  loss = mse(m(batch.x, batch.y), batch.z)\n  optim = adam(lr = 1e-2)\n"
                  "  steps = 3\n  accumulate = %d\n}\n",
                  rows, keys, rows, 1 + (int)random_below(&r, 2));
    return t.text;
}

static int count(const Graph *g, OpKind op)
{
    int n = 0;
    for (size_t i = 0; i < g->order.len; i++)
        n += graph_node(g, g->order.data[i])->op == op;
    return n;
}

static const char *without_attention(Pool *pool)
{
    static const char pass[] = "attention,";
    const char *at = strstr(pipeline_train, pass);
    CHECK(at != NULL);
    return pool_printf(pool, "%.*s%s", (int)(at - pipeline_train), pipeline_train,
                       at + strlen(pass));
}

/* Losses alone, of another step than the first nearly. */
static const char *far(const Running *a, const Running *b, int64_t step)
{
    double x = run_output(a, "loss"), y = run_output(b, "loss");
    return x == y || (step && fabs(x - y) < 1e-4 * fabs(x)) ? NULL : "loss";
}

static const char *train_both(const Built *whole, const Built *parts, int threads, bool same)
{
    Running a, b;
    CHECK(run_open(&a, whole, threads) && run_open(&b, parts, 1));
    run_initialize(&a, 3);
    run_initialize(&b, 3);
    const char *different = NULL;
    for (int64_t step = 0; step < STEPS && !different; step++) {
        run_step(&a, 5, step);
        run_step(&b, 5, step);
        different = same ? run_difference(&b, &a) : far(&b, &a, step);
    }
    run_close(&a);
    run_close(&b);
    return different;
}

/* All of them attention, in every micro-batch. */
static void check_counts(const Built *whole, const Built *parts, const char *text)
{
    int n = 2 * (int)train_micro_batches(&whole->graph->train);
    CHECK_MSG(count(whole->graph, OP_attention) == n &&
                  count(whole->graph, OP_attention_grad) == n &&
                  count(whole->graph, OP_softmax) == 0,
              "attention was not found\n%s", text);
    CHECK(count(parts->graph, OP_attention) == 0 && count(parts->graph, OP_softmax) == n);
}

/* No copies of keys and values are left. */
static void check_groups(const Graph *g, int group, const char *text)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op != OP_attention)
            continue;
        CHECK_MSG(attention_shape(g, n).group == group, "keys were copied\n%s", text);
    }
}

/* Tensors by rows, and those that lie inside of others. */
typedef struct Lying {
    int by_rows, inside;
} Lying;

static void count_lying(const Graph *g, Lying *sum)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (const char *x = node_string(n, ATTR_by_rows, ""); *x; x++) {
            sum->by_rows++;
            sum->inside += !value_is_dense(g, attention_tensor(n, *x));
        }
    }
}

static void check_model(int number, Lying *lying)
{
    Pool *pool = pool_new();
    int group;
    const char *text = random_text(pool, number, &group);
    Built whole = {0}, parts = {0};
    BuildOptions plain = {0}, other = {.pipeline = without_attention(pool)};
    bool built = model_build(pool, text, &plain, &whole) && model_build(pool, text, &other, &parts);
    CHECK_MSG(built, "model %d\n%s", number, text);
    if (built) {
        check_counts(&whole, &parts, text);
        check_groups(whole.graph, group, text);
        count_lying(whole.graph, lying);
        for (int threads = 1; threads <= 3; threads += 2) {
            const char *different = train_both(&whole, &parts, threads, group <= 3);
            CHECK_MSG(!different, "model %d: %s differs on %d threads\n%s", number, different,
                      threads, text);
        }
        codegen_unload(whole.step);
        codegen_unload(parts.step);
    }
    pool_free(pool);
}

int main(void)
{
    int first = sample_number("SCRIMP_FIRST_MODEL", 0), n = sample_number("SCRIMP_MODELS", MODELS);
    Lying lying = {0};
    for (int k = first; k < first + n; k++)
        check_model(k, &lying);
    CHECK_MSG(n < MODELS || (lying.by_rows && lying.inside), "%d tensors by rows, %d inside others",
              lying.by_rows, lying.inside);
    return test_result();
}
