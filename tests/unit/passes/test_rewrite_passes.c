/* SPDX-License-Identifier: GPL-3.0-or-later */
/* fold, cse, dce, layout and fuse leave the meaning of a graph unchanged: a random convolutional
 * network is evaluated in double before and after each pass. */
#include "check.h"

#include "ir/eval.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <math.h>
#include <string.h>

static const Loc nowhere = {0};
static uint64_t seed = 20261121, draws;

static int64_t pick(int64_t n)
{
    return (int64_t)(rng_bits(seed, 0, 1, draws++) % (uint64_t)n);
}

/* The same number for the same name and index, whatever the layout. */
static double content(const char *name, int64_t index)
{
    uint64_t key = hash_bytes(name, strlen(name), 0);
    return (double)rng_bits(seed, 1, key, (uint64_t)index) / 4294967296.0 - 0.5;
}

static ValueId source(Graph *g, OpKind op, const char *name, int rank, const int64_t *dims)
{
    AttrList none = {0};
    return graph_add_source(g, op, type_make(DTYPE_F32, rank, dims), &none, name, nowhere);
}

static ValueId param(Graph *g, const char *base, int rank, const int64_t *dims)
{
    return source(g, OP_param, graph_unique_name(g, base), rank, dims);
}

static ValueId unary(Graph *g, OpKind op, ValueId x)
{
    AttrList none = {0};
    return graph_add(g, op, &x, 1, &none, NULL, nowhere);
}

static ValueId binary(Graph *g, OpKind op, ValueId a, ValueId b)
{
    AttrList none = {0};
    return graph_add(g, op, (ValueId[]){a, b}, 2, &none, NULL, nowhere);
}

static ValueId conv(Graph *g, ValueId x, int64_t channels, int64_t kernel, int64_t stride)
{
    int64_t in = value_type(g, x)->dim[1];
    int64_t w_dims[4] = {channels, in, kernel, kernel};
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_stride, (int64_t[]){stride, stride}, 2);
    attrs_ints(&attrs, ATTR_padding, (int64_t[]){kernel / 2, kernel / 2}, 2);
    ValueId operands[3] = {x, param(g, "$w", 4, w_dims), VALUE_NONE};
    int n = 2;
    if (pick(2))
        operands[n++] = param(g, "$b", 1, &channels);
    return graph_add(g, OP_conv2d, operands, n, &attrs, NULL, nowhere);
}

static ValueId batch_norm(Graph *g, ValueId x)
{
    int64_t c = value_type(g, x)->dim[1];
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 1);
    ValueId mean = graph_add(g, OP_bn_stats, &x, 1, &attrs, NULL, nowhere);
    attrs_float(&attrs, ATTR_eps, 1e-5);
    ValueId var = value_node(g, mean)->out[1];
    ValueId in[] = {x, mean, var, param(g, "$gamma", 1, &c), param(g, "$beta", 1, &c)};
    return graph_add(g, OP_bn_apply, in, 5, &attrs, NULL, nowhere);
}

/* Twice the height, while that is small. */
static ValueId deconv(Graph *g, ValueId x, int64_t channels)
{
    const Type t = *value_type(g, x);
    int64_t w_dims[4] = {t.dim[1], channels, 3, 2};
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_stride, (int64_t[]){t.dim[2] > 8 ? 1 : 2, 1}, 2);
    attrs_ints(&attrs, ATTR_padding, (int64_t[]){1, 0}, 2);
    ValueId operands[3] = {x, param(g, "$w", 4, w_dims), param(g, "$b", 1, &channels)};
    return graph_add(g, OP_deconv2d, operands, 3, &attrs, NULL, nowhere);
}

static ValueId pool(Graph *g, OpKind op, ValueId x)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_kernel, (int64_t[]){3, 3}, 2);
    attrs_ints(&attrs, ATTR_stride, (int64_t[]){2, 2}, 2);
    attrs_ints(&attrs, ATTR_padding, (int64_t[]){1, 1}, 2);
    return graph_add(g, op, &x, 1, &attrs, NULL, nowhere);
}

static ValueId concat(Graph *g, const ValueId *in, int n, int64_t axis)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, axis);
    return graph_add(g, OP_concat, in, n, &attrs, NULL, nowhere);
}

static ValueId concat_channels(Graph *g, ValueId a, ValueId b)
{
    return concat(g, (ValueId[]){a, b}, 2, 1);
}

/* A dense block that joins its list of features again in front of each layer. */
static ValueId feature_list(Graph *g, ValueId x)
{
    ValueId features[4] = {x};
    for (int n = 1; n < 4; n++) {
        ValueId all = n == 1 ? x : concat(g, features, n, 1);
        features[n] = conv(g, unary(g, OP_relu, all), 1 + pick(3), 1, 1);
    }
    return concat(g, features, 4, 1);
}

static ValueId reshape(Graph *g, ValueId x, int rank, const int64_t *dims)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, dims, rank);
    return graph_add(g, OP_reshape, &x, 1, &attrs, NULL, nowhere);
}

static ValueId transpose(Graph *g, ValueId x, const int64_t *perm)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_perm, perm, 4);
    return graph_add(g, OP_transpose, &x, 1, &attrs, NULL, nowhere);
}

/* One random step of the network. */
static ValueId random_layer(Graph *g, ValueId x)
{
    const Type t = *value_type(g, x);
    switch (pick(12)) {
    case 0:
        return conv(g, x, 1 + pick(5), 1 + 2 * pick(2), 1);
    case 1:
        return unary(g, OP_relu, batch_norm(g, x));
    case 2:
        return t.dim[2] > 2 ? pool(g, pick(2) ? OP_maxpool : OP_avgpool, x) : unary(g, OP_tanh, x);
    case 3:
        return binary(g, OP_add, x, conv(g, x, t.dim[1], 3, 1));
    case 4:
        return concat_channels(g, x, unary(g, OP_sigmoid, x));
    case 5: {
        int64_t dims[] = {t.dim[1], 1, 1}; /* per channel, by broadcasting */
        return binary(g, OP_mul, x, param(g, "$scale", 3, dims));
    }
    case 6:
        return binary(g, OP_mul, x, graph_add_const(g, pick(2) ? 1.0 : 0.5, DTYPE_F32));
    case 7: {
        int64_t dims[] = {t.dim[3]}; /* along the width */
        return binary(g, OP_add, x, param(g, "$wide", 1, dims));
    }
    case 8: /* there and back */
        return transpose(g, transpose(g, x, (int64_t[]){0, 2, 3, 1}), (int64_t[]){0, 3, 1, 2});
    case 9:
        return deconv(g, x, 1 + pick(4));
    case 10:
        return feature_list(g, x);
    default: {
        int64_t flat[] = {t.dim[0], t.dim[1] * t.dim[2] * t.dim[3]};
        return reshape(g, unary(g, OP_exp, reshape(g, x, 2, flat)), 4, t.dim);
    }
    }
}

static Graph *random_network(Pool *memory)
{
    Graph *g = graph_new(memory, "random");
    int64_t dims[] = {2, 1 + pick(4), 4 + pick(5), 4 + pick(5)};
    ValueId x = source(g, OP_input, "%x", 4, dims);
    int layers = 3 + (int)pick(8);
    for (int i = 0; i < layers; i++)
        x = random_layer(g, x);
    graph_add_output(g, "features", x);
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_axes, (int64_t[]){2, 3}, 2);
    ValueId pooled = graph_add(g, OP_mean, &x, 1, &attrs, NULL, nowhere);
    /* Something dead and something double. */
    unary(g, OP_neg, pooled);
    ValueId twice = binary(g, OP_add, unary(g, OP_tanh, pooled), unary(g, OP_tanh, pooled));
    graph_add_output(g, "pooled", twice);
    return g;
}

/* Contents depend on the place in the user's order. */
static void fill(EvalState *s, const Graph *g, ValueId v, Pool *scratch)
{
    const Node *n = value_node(g, v);
    const Type *t = value_type(g, v);
    int rank;
    const int64_t *perm = node_ints(n, ATTR_perm, &rank);
    double *data = POOL_ARRAY(scratch, (size_t)type_elements(t), double);
    for (int64_t i = 0; i < type_elements(t); i++) {
        int64_t index[TYPE_MAX_RANK], user_dim[TYPE_MAX_RANK], user[TYPE_MAX_RANK], rest = i,
                                                                                    at = 0;
        for (int k = t->rank - 1; k >= 0; k--) {
            index[k] = rest % t->dim[k];
            rest /= t->dim[k];
        }
        for (int k = 0; k < t->rank; k++) {
            user[perm ? perm[k] : k] = index[k];
            user_dim[perm ? perm[k] : k] = t->dim[k];
        }
        for (int k = 0; k < t->rank; k++)
            at = at * user_dim[k] + user[k];
        data[i] = content(graph_value(g, v)->name, at);
    }
    eval_set(s, v, data);
}

static EvalState *evaluate(Pool *memory, const Graph *g)
{
    EvalState *s = eval_new(memory, g);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_input || n->op == OP_param)
            fill(s, g, n->out[0], memory);
    }
    eval_run(s, false);
    return s;
}

static void compare(const Graph *g, const EvalState *a, const EvalState *b, const Graph *h,
                    const char *pass, int trial)
{
    for (size_t i = 0; i < g->outputs.len; i++) {
        ValueId v = g->outputs.data[i].value, w = graph_output(h, g->outputs.data[i].name);
        CHECK(type_equal(value_type(g, v), value_type(h, w)));
        const double *x = eval_get(a, v), *y = eval_get(b, w);
        double worst = 0;
        for (int64_t k = 0; k < type_elements(value_type(g, v)); k++)
            worst = fmax(worst, fabs(x[k] - y[k]) / (1 + fabs(x[k])));
        CHECK_MSG(worst < 1e-9, "%s changed %s by %g in trial %d", pass, g->outputs.data[i].name,
                  worst, trial);
    }
}

static size_t count_op(const Graph *g, OpKind op)
{
    size_t n = 0;
    for (size_t i = 0; i < g->order.len; i++)
        n += graph_node(g, g->order.data[i])->op == op;
    return n;
}

static void test_meaning(int trial)
{
    Pool *memory = pool_new();
    Graph *g = random_network(memory);
    const EvalState *before = evaluate(memory, g);
    static const char *const passes[] = {"fold", "cse", "dce", "layout",
                                         "fold", "cse", "dce", "fuse"};
    PassContext ctx = {.graph = graph_copy(memory, g), .pool = memory};
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        CHECK(passes_run(&ctx, passes[i], NULL, NULL));
        compare(g, before, evaluate(memory, ctx.graph), ctx.graph, passes[i], trial);
    }
    CHECK(count_op(ctx.graph, OP_neg) == 0);
    CHECK(count_op(ctx.graph, OP_tanh) <= count_op(g, OP_tanh));
    for (size_t i = 0; i < ctx.graph->order.len; i++) {
        const Node *n = graph_node(ctx.graph, ctx.graph->order.data[i]);
        CHECK((n->op != OP_conv2d && n->op != OP_deconv2d) || node_flag(n, ATTR_nhwc));
    }
    pool_free(memory);
}

/* The inputs of a random earlier concatenation or the first of them, then others. */
static int random_list(const Graph *g, const ValueId *values, int n_values, ValueId in[8])
{
    const Node *earlier = value_node(g, values[pick(n_values)]);
    int n = 0, wanted = 2 + (int)pick(5), shared = (int)pick(6);
    while (earlier->op == OP_concat && n < earlier->n_in && n < shared && n < 8)
        n++;
    for (int i = 0; i < n; i++)
        in[i] = earlier->in[i];
    while (n < wanted)
        in[n++] = values[pick(n_values)];
    return n;
}

enum { LIST_SOURCES = 3, LIST_CONCATS = 14 };

/* Concatenations along both axes of squares, many of which begin alike; some are annotated. */
static Graph *random_lists(Pool *memory)
{
    Graph *g = graph_new(memory, "lists");
    ValueId values[2][LIST_SOURCES + LIST_CONCATS];
    int n_values[2] = {LIST_SOURCES, LIST_SOURCES};
    for (int i = 0; i < LIST_SOURCES; i++)
        values[0][i] = values[1][i] =
            source(g, OP_input, graph_unique_name(g, "%x"), 2, (int64_t[]){2, 2});
    for (int i = 0; i < LIST_CONCATS; i++) {
        ValueId in[8];
        int axis = pick(4) == 0;
        int n = random_list(g, values[axis], n_values[axis], in);
        ValueId all = concat(g, in, n, axis);
        values[axis][n_values[axis]++] = all;
        if (pick(8) == 0)
            value_node(g, all)->hint = pick(2) ? REMAT_KEEP : REMAT_RECOMPUTE;
        graph_add_output(g, pool_printf(memory, "all%d", i), all);
    }
    return g;
}

static bool begins_with(const Node *n, const Node *prefix)
{
    for (int i = 0; i < prefix->n_in; i++)
        if (i >= n->n_in || n->in[i] != prefix->in[i])
            return false;
    return node_int(n, ATTR_axis, 0) == node_int(prefix, ATTR_axis, 0);
}

/* No concatenation behind cse begins with the inputs of an earlier one. */
static void check_nested(const Graph *g, int trial)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        for (size_t k = 0; k < i && n->op == OP_concat && n->hint == REMAT_AUTO; k++) {
            const Node *earlier = graph_node(g, g->order.data[k]);
            bool shared =
                earlier->op == OP_concat && earlier->hint == REMAT_AUTO && begins_with(n, earlier);
            CHECK_MSG(!shared, "trial %d: %s is not read", trial,
                      graph_value(g, earlier->out[0])->name);
        }
    }
}

/* How many concatenations are annotated, and their inputs. */
static int annotated(const Graph *g)
{
    int sum = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        sum += n->hint == REMAT_AUTO ? 0 : 1000 + n->n_in;
    }
    return sum;
}

static void test_lists(int trial)
{
    Pool *memory = pool_new();
    Graph *g = random_lists(memory);
    const EvalState *before = evaluate(memory, g);
    PassContext ctx = {.graph = graph_copy(memory, g), .pool = memory};
    CHECK(passes_run(&ctx, "cse", NULL, NULL));
    compare(g, before, evaluate(memory, ctx.graph), ctx.graph, "cse", trial);
    check_nested(ctx.graph, trial);
    CHECK(annotated(ctx.graph) == annotated(g));
    pool_free(memory);
}

static void test_pipeline_errors(void)
{
    Pool *memory = pool_new();
    PassContext ctx = {.graph = random_network(memory), .pool = memory};
    CHECK(!passes_run(&ctx, "fold,fuze", NULL, NULL));
    CHECK(ctx.error.message && strstr(ctx.error.message, "fuze") && strstr(ctx.error.help, "fuse"));
    CHECK(!passes_run(&ctx, "remat(budget=40%)", NULL, NULL));
    CHECK(ctx.error.help && strstr(ctx.error.help, "autodiff"));
    CHECK(!passes_run(&ctx, "fold(budget", NULL, NULL));
    CHECK(!passes_run(&ctx, "fold(budget=40%),dce", NULL, NULL));
    CHECK(strcmp(ctx.error.code, "E601") == 0 && strstr(ctx.error.message, "fold takes no") &&
          strstr(ctx.error.help, "remat takes budget"));
    CHECK(!passes_run(&ctx, "remat(size=3)", NULL, NULL));
    CHECK(strstr(ctx.error.message, "'size'"));
    pool_free(memory);
}

int main(void)
{
    printf("seed %llu\n", (unsigned long long)seed);
    for (int trial = 0; trial < 60; trial++)
        test_meaning(trial);
    for (int trial = 0; trial < 200; trial++)
        test_lists(trial);
    test_pipeline_errors();
    return test_result();
}
