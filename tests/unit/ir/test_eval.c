/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reference evaluator against values computed by hand, family by family.  What the gradients of
 * operations compute is checked by tests/property/test_gradients.c. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "ir/eval.h"
#include "ir/print.h"
#include "tests/support/fused.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double inf = (double)INFINITY, not_a_number = (double)NAN;

static bool same(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

/* Gives the inputs, in order, their values from one list. */
static EvalState *evaluated(Pool *pool, const Graph *g, const double *inputs)
{
    EvalState *s = eval_new(pool, g);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_const || !node_is_source(n))
            continue;
        eval_set(s, n->out[0], inputs);
        inputs += type_elements(value_type(g, n->out[0]));
    }
    eval_run(s, false);
    return s;
}

static void check_value(const Graph *g, const EvalState *s, const char *name,
                        const double *expected, int64_t n, const char *body)
{
    ValueId v = graph_find(g, name);
    CHECK_MSG(v != VALUE_NONE && type_elements(value_type(g, v)) == n, "%s of %s", name, body);
    for (int64_t i = 0; v != VALUE_NONE && i < n; i++)
        CHECK_MSG(same(eval_get(s, v)[i], expected[i]), "%s[%lld] is %.15g, expected %.15g in %s",
                  name, (long long)i, eval_get(s, v)[i], expected[i], body);
}

static void check_body(const char *body, const double *inputs, const double *expected, int64_t n)
{
    Pool *pool = pool_new();
    Graph *g = graph_of(pool, "step", body);
    if (g)
        check_value(g, evaluated(pool, g, inputs), "%y", expected, n, body);
    pool_free(pool);
}

#define V(...)     ((const double[]){__VA_ARGS__})
#define COUNT(...) ((int64_t)(sizeof V(__VA_ARGS__) / sizeof(double)))
/* body computes %y from inputs; V(..) lists the values of the inputs, the rest is what %y must be.
 */
#define EVAL(body, inputs, ...) check_body(body, inputs, V(__VA_ARGS__), COUNT(__VA_ARGS__))

#define X3   "  %x = input : f32[3]\n"
#define A2B2 "  %a = input : f32[2]\n  %b = input : f32[2]\n"
#define I2   "  %a = input : i32[2]\n  %b = input : i32[2]\n"

static void test_point(void)
{
    const double *x = V(-2, 0, 3);
    EVAL(X3 "  %y = neg %x : f32[3]\n", x, 2, 0, -3);
    EVAL(X3 "  %y = abs %x : f32[3]\n", x, 2, 0, 3);
    EVAL(X3 "  %y = sign %x : f32[3]\n", x, -1, 0, 1);
    EVAL(X3 "  %y = relu %x : f32[3]\n", V(-2, not_a_number, 3), 0, not_a_number, 3);
    EVAL(X3 "  %y = exp %x : f32[3]\n", V(-inf, 0, 1), 0, 1, 2.718281828459045);
    EVAL(X3 "  %y = log %x : f32[3]\n", V(0, 1, 2), -inf, 0, 0.6931471805599453);
    EVAL(X3 "  %y = sqrt %x : f32[3]\n", V(0, 4, 2.25), 0, 2, 1.5);
    EVAL(X3 "  %y = rsqrt %x : f32[3]\n", V(1, 4, 0.25), 1, 0.5, 2);
    EVAL(X3 "  %y = tanh %x : f32[3]\n", V(0, 1, 1000), 0, 0.7615941559557649, 1);
    EVAL(X3 "  %y = sigmoid %x : f32[3]\n", V(-1000, 0, 1), 0, 0.5, 0.7310585786300049);
    EVAL(X3 "  %y = silu %x : f32[3]\n", V(-1000, 0, 1), 0, 0, 0.7310585786300049);
    EVAL(X3 "  %y = erf %x : f32[3]\n", V(-inf, 0, 1), -1, 0, 0.8427007929497149);
    EVAL(X3 "  %y = leaky_relu %x {alpha=0.25} : f32[3]\n", V(-2, not_a_number, 3), -0.5,
         not_a_number, 3);
    EVAL(X3 "  %y = elu %x {alpha=2} : f32[3]\n", V(-inf, -1, 3), -2, -1.2642411176571153, 3);
    EVAL(X3 "  %y = softplus %x {beta=2} : f32[3]\n", V(0, 1, 1000), 0.34657359027997264,
         1.0634640055214861, 1000);
    EVAL(X3 "  %y = mish %x : f32[3]\n", V(0, 1, 1000), 0, 0.8650983882673103, 1000);
    EVAL(X3 "  %y = hardswish %x : f32[3]\n", V(-4, 1.5, 5), 0, 1.125, 5);
    EVAL(X3 "  %y = clamp %x {min=-1, max=2} : f32[3]\n", V(-4, not_a_number, 5), -1, not_a_number,
         2);
    EVAL(X3 "  %y = clamp %x {min=2, max=1} : f32[3]\n", V(0, 1.5, 3), 1, 1, 1);
    EVAL(X3 "  %y = gelu %x : f32[3]\n", V(0, 1, -1), 0, 0.8413447460685429, -0.15865525393145707);
    EVAL(X3 "  %y = gelu %x {approx=true} : f32[3]\n", V(0, 1, -1), 0, 0.8411919906082768,
         -0.15880800939172324);
    EVAL(X3 "  %y = cast %x {dtype=\"i32\"} : i32[3]\n", V(-1.7, 2.9, 3), -1, 2, 3);
    EVAL(X3 "  %y = cast %x {dtype=\"bool\"} : bool[3]\n", V(-0.5, 0, 3), 1, 0, 1);
    EVAL(X3 "  %y = stop_gradient %x : f32[3]\n", x, -2, 0, 3);
}

static void test_saved_gradients(void)
{
    EVAL(A2B2 "  %y = relu_grad %a, %b : f32[2]\n", V(5, 7, 0, 2), 0, 7);
    EVAL("  %x = input : f32[5]\n  %y = relu_mask %x : i32[1]\n", V(-1, 2, not_a_number, inf, -0.0),
         0x0a);
    EVAL("  %a = input : f32[3]\n  %m = input : i32[1]\n"
         "  %y = relu_mask_grad %a, %m : f32[3]\n",
         V(not_a_number, 7, 8, 0x7ffffff5), not_a_number, 0, 8);
    EVAL(A2B2 "  %y = relu_grad %a, %b {alpha=0.5} : f32[2]\n", V(5, 7, 0, 2), 2.5, 7);
    EVAL("  %a = input : f32[3]\n  %m = input : i32[1]\n"
         "  %y = relu_mask_grad %a, %m {alpha=0.5} : f32[3]\n",
         V(6, 7, 8, 5), 6, 3.5, 8);
    EVAL(A2B2 "  %y = elu_grad %a, %b {alpha=2} : f32[2]\n", V(5, 7, 0, 2), 10, 7);
    EVAL(A2B2 "  %y = softplus_grad %a, %b {beta=2} : f32[2]\n", V(2, 3, 0.34657359027997264, 1000),
         1, 3);
    EVAL(A2B2 "  %y = mish_grad %a, %b : f32[2]\n", V(2, 1, 0, 1), 1.2, 1.0490362200997922);
    EVAL(A2B2 "  %y = hardswish_grad %a, %b : f32[2]\n", V(2, 2, -3, 1.5), 0, 2);
    EVAL(A2B2 "  %y = hardswish_grad %a, %b : f32[2]\n", V(2, 2, 3, -1.5), 2, 0);
    EVAL(A2B2 "  %y = clamp_grad %a, %b {min=0, max=6} : f32[2]\n", V(2, 3, 0, 6), 2, 3);
    EVAL(A2B2 "  %y = clamp_grad %a, %b {min=0, max=6, open=true} : f32[2]\n", V(2, 3, 0, 6), 0, 0);
    EVAL(A2B2 "  %y = tanh_grad %a, %b : f32[2]\n", V(2, 1, 0.5, 0), 1.5, 1);
    EVAL(A2B2 "  %y = sigmoid_grad %a, %b : f32[2]\n", V(2, 1, 0.25, 1), 0.375, 0);
    EVAL(A2B2 "  %y = gelu_grad %a, %b : f32[2]\n", V(2, 1, 0, 1), 1, 1.0833154705876863);
    EVAL(A2B2 "  %y = silu_grad %a, %b : f32[2]\n", V(1, 3, 0, 0), 0.5, 1.5);
}

static void test_binary(void)
{
    EVAL(A2B2 "  %y = sub %a, %b : f32[2]\n", V(1, 2, 5, -3), -4, 5);
    EVAL(A2B2 "  %y = mul %a, %b : f32[2]\n", V(1, 2, 5, -3), 5, -6);
    EVAL(A2B2 "  %y = div %a, %b : f32[2]\n", V(1, 3, 0, 4), inf, 0.75);
    EVAL(A2B2 "  %y = pow %a, %b : f32[2]\n", V(2, 9, 10, 0.5), 1024, 3);
    EVAL(A2B2 "  %y = maximum %a, %b : f32[2]\n", V(1, not_a_number, 2, 0), 2, not_a_number);
    EVAL(A2B2 "  %y = maximum %a, %b : f32[2]\n", V(1, 0, 2, not_a_number), 2, not_a_number);
    EVAL(A2B2 "  %y = minimum %a, %b : f32[2]\n", V(1, 5, 2, 3), 1, 3);
    EVAL(I2 "  %y = add %a, %b : i32[2]\n", V(1, -7, 2, 3), 3, -4);
    EVAL(I2 "  %y = lt %a, %b : bool[2]\n", V(1, 3, 2, 3), 1, 0);
    EVAL(I2 "  %y = le %a, %b : bool[2]\n", V(1, 3, 2, 3), 1, 1);
    EVAL(I2 "  %y = gt %a, %b : bool[2]\n", V(5, 3, 2, 3), 1, 0);
    EVAL(I2 "  %y = ge %a, %b : bool[2]\n", V(1, 3, 2, 3), 0, 1);
    EVAL(I2 "  %y = eq %a, %b : bool[2]\n", V(1, 3, 2, 3), 0, 1);
    EVAL(I2 "  %y = ne %a, %b : bool[2]\n", V(1, 3, 2, 3), 1, 0);
    EVAL("  %a = input : f32[2,1]\n  %b = input : f32[3]\n  %y = add %a, %b : f32[2,3]\n",
         V(10, 20, 1, 2, 3), 11, 12, 13, 21, 22, 23);
    EVAL("  %c = input : bool[2,1]\n  %a = input : f32[2]\n  %b = input : f32[]\n"
         "  %y = select %c, %a, %b : f32[2,2]\n",
         V(1, 0, 3, 4, 9), 3, 4, 9, 9);
    EVAL("  %a = input : f32[2,3]\n  %y = causal_mask %a : f32[2,3]\n", V(1, 2, 3, 4, 5, 6), 1,
         -inf, -inf, 4, 5, -inf);
}

#define X23 "  %x = input : f32[2,3]\n"

static void test_reductions(void)
{
    const double *x = V(1, 5, 3, 4, 2, 6);
    EVAL(X23 "  %y = sum %x : f32[]\n", x, 21);
    EVAL(X23 "  %y = sum %x {axes=[0]} : f32[3]\n", x, 5, 7, 9);
    EVAL(X23 "  %y = mean %x {axes=[1], keepdims=true} : f32[2,1]\n", x, 3, 4);
    EVAL(X23 "  %y = reduce_max %x {axes=[1]} : f32[2]\n", x, 5, 6);
    EVAL(X23 "  %y = cumsum %x {axis=0} : f32[2,3]\n", x, 1, 5, 3, 5, 7, 9);
    EVAL(X23 "  %y = cumsum %x {axis=1, reverse=true} : f32[2,3]\n", x, 9, 8, 3, 12, 8, 6);
    EVAL(X23 "  %y = cumsum %x {axis=1, exclusive=true} : f32[2,3]\n", x, 0, 1, 6, 0, 4, 6);
    EVAL(X23 "  %y = cumprod %x {axis=1} : f32[2,3]\n", x, 1, 5, 15, 4, 8, 48);
    EVAL("  %x = input : f32[3]\n  %d = input : f32[3]\n  %z = input : f32[3]\n"
         "  %y = cumprod_grad %d, %x, %z {axis=0} : f32[3]\n",
         V(2, 0, 5, 1, 10, 100, 2, 0, 0), 1, 1020, 0);
    EVAL(X23 "  %i = input : i32[2,2]\n  %y = gather %x, %i {axis=1} : f32[2,2]\n",
         V(1, 5, 3, 4, 2, 6, 2, 0, 9, -1), 3, 1, 6, 4);
    EVAL("  %i = input : i32[2,3]\n  %x = input : f32[2,3]\n"
         "  %y = scatter_add %i, %x {axis=0, shape=[2,3]} : f32[2,3]\n",
         V(1, 0, 2, 1, 1, -1, 1, 5, 3, 4, 2, 6), 0, 5, 0, 5, 2, 0);
    EVAL("  %x = input : f32[5]\n  %y = argsort %x : i32[5]\n", V(2, not_a_number, -0.0, 0, inf), 2,
         3, 0, 4, 1);
    EVAL("  %x = input : f32[5]\n  %y = argsort %x {count=3, descending=true} : i32[3]\n",
         V(2, not_a_number, 1, 2, 0), 1, 0, 3);
    EVAL(X23 "  %y = prod %x {axis=1} : f32[2]\n", x, 15, 48);
    EVAL("  %x = input : f32[2,2]\n  %d = input : f32[2,1]\n"
         "  %y = prod_grad %d, %x {axis=1} : f32[2,2]\n",
         V(0, 5, 3, 4, 10, 1), 50, 0, 4, 3);
    EVAL(X23 "  %y = reduce_max %x : f32[]\n", V(1, 5, not_a_number, 4, 2, 6), not_a_number);
    EVAL(X23 "  %y = sumsq %x : f32[]\n", x, 91);
    EVAL(X23 "  %y = argmax %x : i32[2]\n", V(1, 5, 5, 6, 2, 6), 1, 0);
    EVAL(X23 "  %y = argmax %x {axis=0} : i32[3]\n", x, 1, 0, 1);
    EVAL("  %x = input : f32[2,1,2]\n  %y = sum %x {axes=[0,2]} : f32[1]\n", V(1, 2, 3, 4), 10);
}

static void test_matrix(void)
{
    EVAL("  %a = input : f32[2,2]\n  %b = input : f32[2,2]\n  %y = matmul %a, %b : f32[2,2]\n",
         V(1, 2, 3, 4, 5, 6, 7, 8), 19, 22, 43, 50);
    EVAL("  %a = input : f32[1,2]\n  %b = input : f32[3,2]\n"
         "  %y = matmul %a, %b {tb=true} : f32[1,3]\n",
         V(1, 2, 1, 0, 0, 1, 3, 4), 1, 2, 11);
    EVAL("  %a = input : f32[2,1]\n  %b = input : f32[2,3]\n"
         "  %y = matmul %a, %b {ta=true} : f32[1,3]\n",
         V(1, 2, 1, 0, 0, 1, 3, 4), 3, 6, 8);
    EVAL("  %a = input : f32[2,1,2]\n  %b = input : f32[2,1]\n  %y = matmul %a, %b : f32[2,1,1]\n",
         V(1, 2, 3, 4, 10, 100), 210, 430);
    EVAL("  %x = input : f32[1,2]\n  %w = input : f32[3,2]\n  %b = input : f32[3]\n"
         "  %y = linear %x, %w, %b : f32[1,3]\n",
         V(1, 2, 1, 0, 0, 1, 3, 4, 100, 200, 300), 101, 202, 311);
    EVAL("  %x = input : f32[1,2]\n  %w = input : f32[2,3]\n"
         "  %y = linear %x, %w {in_out=true} : f32[1,3]\n",
         V(1, 2, 1, 0, 3, 0, 1, 4), 1, 2, 11);
}

#define NINE 1, 2, 3, 4, 5, 6, 7, 8, 9
#define IMG3 "  %x = input : f32[1,1,3,3]\n"

static void test_convolution(void)
{
    EVAL(IMG3 "  %w = input : f32[1,1,2,2]\n  %y = conv2d %x, %w : f32[1,1,2,2]\n",
         V(NINE, 1, 1, 1, 1), 12, 16, 24, 28);
    EVAL(IMG3 "  %w = input : f32[1,1,2,2]\n  %y = conv2d %x, %w {dilation=[2,2]} : f32[1,1,1,1]\n",
         V(NINE, 1, 2, 3, 4), 64);
    EVAL("  %x = input : f32[1,1,1,1]\n  %w = input : f32[1,1,3,3]\n  %b = input : f32[1]\n"
         "  %y = conv2d %x, %w, %b {padding=[1,1]} : f32[1,1,1,1]\n",
         V(5, NINE, 0.5), 25.5);
    EVAL("  %x = input : f32[1,2,1,2]\n  %w = input : f32[2,1,1,1]\n"
         "  %y = conv2d %x, %w {groups=2} : f32[1,2,1,2]\n",
         V(1, 2, 3, 4, 10, 100), 10, 20, 300, 400);
    EVAL("  %x = input : f32[1,1,2,2]\n  %w = input : f32[1,1,2,1]\n"
         "  %y = conv2d %x, %w {nhwc=true} : f32[1,1,2,1]\n",
         V(1, 2, 3, 4, 10, 100), 210, 430);
    EVAL("  %dy = input : f32[1,1,1,1]\n  %w = input : f32[1,1,2,2]\n"
         "  %y = conv2d_dgrad %dy, %w {stride=[2,2], hw=[3,3]} : f32[1,1,3,3]\n",
         V(2, 1, 2, 3, 4), 2, 4, 0, 6, 8, 0, 0, 0, 0);
    EVAL(IMG3 "  %dy = input : f32[1,1,1,1]\n"
              "  %y = conv2d_wgrad %x, %dy {stride=[2,2], hw=[2,2]} : f32[1,1,2,2]\n",
         V(NINE, 2), 2, 4, 8, 10);
}

/* Expected values: torch.nn.functional.conv_transpose2d. */
static void test_transposed_convolution(void)
{
    EVAL("  %x = input : f32[1,1,2,2]\n  %w = input : f32[1,1,2,2]\n  %b = input : f32[1]\n"
         "  %y = deconv2d %x, %w, %b {stride=[2,2], padding=[1,1], output_padding=[1,1]} : "
         "f32[1,1,3,3]\n",
         V(1, 2, 4, 5, 1, 10, 100, 1000, 0.5), 1000.5, 200.5, 2000.5, 40.5, 5.5, 50.5, 4000.5,
         500.5, 5000.5);
    EVAL("  %x = input : f32[1,2,1,2]\n  %w = input : f32[2,2,1,2]\n"
         "  %y = deconv2d %x, %w {dilation=[1,2], output_padding=[0,1]} : f32[1,2,1,5]\n",
         V(1, 2, 3, 4, 1, 10, 100, 1000, 2, 3, 4, 5), 7, 10, 19, 32, 0, 112, 216, 1015, 2020, 0);
    EVAL("  %x = input : f32[1,1,2,2]\n  %w = input : f32[1,2,2,2]\n"
         "  %y = deconv2d %x, %w {dilation=[1,2], output_padding=[0,1], nhwc=true} : "
         "f32[1,1,5,2]\n",
         V(1, 3, 2, 4, 1, 2, 100, 4, 10, 3, 1000, 5), 7, 112, 10, 216, 19, 1015, 32, 2020, 0, 0);
    EVAL("  %x = input : f32[1,2,1,2]\n  %w = input : f32[2,1,1,2]\n"
         "  %y = deconv2d %x, %w {dilation=[1,2], output_padding=[0,1], groups=2} : f32[1,2,1,5]\n",
         V(1, 2, 3, 4, 1, 10, 100, 1000), 1, 2, 10, 20, 0, 300, 400, 3000, 4000, 0);
}

#define COLUMN4 "  %x = input : f32[1,1,4,1]\n"
#define CEIL3   "{kernel=[3,1], stride=[2,1], padding=[1,0], ceil=true"

static void test_pooling(void)
{
    EVAL(IMG3 "  %y = maxpool %x {kernel=[2,2]} : f32[1,1,1,1]\n", V(NINE), 5);
    EVAL(IMG3 "  %y = maxpool %x {kernel=[2,2], ceil=true} : f32[1,1,2,2]\n", V(NINE), 5, 6, 8, 9);
    EVAL(IMG3 "  %y = maxpool %x {kernel=[2,2], padding=[1,1]} : f32[1,1,2,2]\n",
         V(-1, -2, -3, -4, -5, -6, -7, -8, -9), -1, -2, -4, -5);
    EVAL("  %dy = input : f32[1,1,1,1]\n  %x = input : f32[1,1,2,2]\n"
         "  %y = maxpool_grad %dy, %x {kernel=[2,2]} : f32[1,1,2,2]\n",
         V(5, 1, 1, 1, 1), 5, 0, 0, 0);
    EVAL("  %dy = input : f32[1,1,1,1]\n  %x = input : f32[1,1,2,2]\n"
         "  %y = maxpool_grad %dy, %x {kernel=[2,2]} : f32[1,1,2,2]\n",
         V(5, not_a_number, inf, not_a_number, 1), 0, 0, 5, 0);
    EVAL(IMG3 "  %y = maxpool_index %x {kernel=[2,3], stride=[1,2], padding=[1,1]} : "
              "u8[1,1,4,2]\n",
         V(4, 4, 3, 1, not_a_number, 2, -inf, -inf, -inf), 0, 0, 4, 3, 1, 0, 0, 0);
    EVAL("  %dy = input : f32[1,1,2,1]\n  %i = input : u8[1,1,2,1]\n"
         "  %y = maxpool_index_grad %dy, %i {kernel=[2,3], stride=[1,1], padding=[0,1], "
         "hw=[3,1]} : f32[1,1,3,1]\n",
         V(5, 7, 3, 0), 0, 12, 0);
    EVAL(IMG3 "  %y = avgpool %x {kernel=[2,2], ceil=true} : f32[1,1,2,2]\n", V(NINE), 3, 4.5, 7.5,
         9);
    EVAL(IMG3 "  %y = avgpool %x {kernel=[2,2], padding=[1,1]} : f32[1,1,2,2]\n", V(NINE), 1, 2.5,
         5.5, 7);
    EVAL(IMG3 "  %y = avgpool %x {kernel=[2,2], padding=[1,1], count_pad=true} : f32[1,1,2,2]\n",
         V(NINE), 0.25, 1.25, 2.75, 7);
    EVAL(COLUMN4 "  %y = avgpool %x " CEIL3 "} : f32[1,1,3,1]\n", V(1, 2, 3, 4), 1.5, 3, 4);
    EVAL(COLUMN4 "  %y = avgpool %x " CEIL3 ", count_pad=true} : f32[1,1,3,1]\n", V(1, 2, 3, 4), 1,
         3, 2);
    EVAL(COLUMN4 "  %y = avgpool %x {kernel=[5,1], stride=[2,1], ceil=true, count_pad=true} :"
                 " f32[1,1,1,1]\n",
         V(1, 2, 3, 6), 3);
    EVAL("  %x = input : f32[1,1,1,4]\n  %y = avgpool %x {kernel=[1,4], stride=[1,3],"
         " padding=[0,1], ceil=true, count_pad=true} : f32[1,1,1,2]\n",
         V(1, 2, 3, 6), 1.5, 3);
    EVAL("  %dy = input : f32[1,1,3,1]\n"
         "  %y = avgpool_grad %dy " CEIL3 ", count_pad=true, hw=[4,1]} : f32[1,1,4,1]\n",
         V(3, 6, 2), 1, 3, 2, 3);
    EVAL(
        "  %x = input : f32[1,2,1,2]\n  %y = avgpool %x {kernel=[2,1], nhwc=true} : f32[1,1,1,2]\n",
        V(1, 2, 3, 4), 2, 3);
}

#define ROW(n) "  %x = input : f32[1,1,1," #n "]\n"

/* Expected values: by hand from PyTorch's definitions. */
static void test_resampling(void)
{
    EVAL(ROW(5) "  %y = adaptive_avgpool %x {hw=[1,3]} : f32[1,1,1,3]\n", V(1, 2, 3, 4, 8), 1.5, 3,
         6);
    EVAL(ROW(2) "  %y = adaptive_avgpool %x {hw=[2,3]} : f32[1,1,2,3]\n", V(1, 2), 1, 1.5, 2, 1,
         1.5, 2);
    EVAL("  %dy = input : f32[1,1,1,3]\n"
         "  %y = adaptive_avgpool_grad %dy {hw=[1,5]} : f32[1,1,1,5]\n",
         V(2, 3, 4), 1, 2, 1, 3, 2);
    EVAL(ROW(2) "  %y = resize %x {hw=[1,4]} : f32[1,1,1,4]\n", V(0, 4), 0, 1, 3, 4);
    EVAL(ROW(4) "  %y = resize %x {hw=[2,2]} : f32[1,1,2,2]\n", V(0, 4, 10, 20), 2, 15, 2, 15);
    EVAL(ROW(3) "  %y = resize %x {hw=[1,5], align_corners=true} : f32[1,1,1,5]\n", V(0, 4, 10), 0,
         2, 4, 7, 10);
    EVAL(ROW(3) "  %y = resize %x {hw=[1,1], align_corners=true} : f32[1,1,1,1]\n", V(5, 4, 10), 5);
    EVAL(ROW(3) "  %y = resize %x {hw=[1,5], nearest=true} : f32[1,1,1,5]\n", V(0, 4, 10), 0, 0, 4,
         4, 10);
    EVAL(ROW(5) "  %y = resize %x {hw=[1,2], nearest=true} : f32[1,1,1,2]\n", V(0, 1, 2, 3, 4), 0,
         2);
    EVAL("  %dy = input : f32[1,1,1,4]\n  %y = resize_grad %dy {hw=[1,2]} : f32[1,1,1,2]\n",
         V(4, 8, 16, 32), 14, 46);
}

#define X22 "  %x = input : f32[2,2]\n"

static void test_norms(void)
{
    EVAL(X22 "  %y, %v = bn_stats %x : f32[2], f32[2]\n", V(1, 2, 3, 6), 2, 4);
    EVAL(X22 "  %m, %y = bn_stats %x : f32[2], f32[2]\n", V(1, 2, 3, 6), 1, 4);
    EVAL("  %x = input : f32[6,1]\n  %m, %y = bn_stats %x : f32[1], f32[1]\n",
         V(1e12 + 1, 1e12 + 1, 1e12 + 1, 1e12 + 1, 1e12 + 1, 1e12 + 1), 0);
    EVAL(X22 "  %m = input : f32[2]\n  %v = input : f32[2]\n  %g = input : f32[2]\n"
             "  %b = input : f32[2]\n  %y = bn_apply %x, %m, %v, %g, %b {eps=0} : f32[2,2]\n",
         V(1, 2, 3, 6, 2, 4, 1, 4, 10, 20, 5, 7), -5, -13, 15, 27);
    EVAL("  $r = buffer : f32[1]\n  %s = input : f32[1]\n"
         "  %y = bn_running $r, %s {momentum=0.1, scale=2} : f32[1] -> $r\n",
         V(1, 3), 1.5);
    EVAL("  %x = input : f32[1,2]\n  %g = input : f32[2]\n  %b = input : f32[2]\n"
         "  %y, %m, %r = layernorm %x, %g, %b {eps=0} : f32[1,2], f32[1], f32[1]\n",
         V(1, 3, 2, 3, 1, 1), -1, 4);
    EVAL("  %x = input : f32[1,2]\n"
         "  %n, %m, %y = layernorm %x {eps=3} : f32[1,2], f32[1], f32[1]\n",
         V(1, 3), 0.5);
    EVAL("  %x = input : f32[1,2]\n  %g = input : f32[2]\n"
         "  %y, %m, %r = layernorm %x, %g {eps=0, rms=true} : f32[1,2], f32[1], f32[1]\n",
         V(2, 2, 2, 3), 2, 3);
    EVAL("  %x = input : f32[1,2]\n"
         "  %n, %y, %r = layernorm %x {rms=true} : f32[1,2], f32[1], f32[1]\n",
         V(1, 3), 0);
}

#define LOSS2 "  %x = input : f32[1,2]\n  %l = input : i32[1]\n"

/* Numbers of torch.nn.functional.cross_entropy (2.15, float64). */
#define WEIGHTED                                                                                   \
    "  %x = input : f32[2,3]\n  %l = input : i32[2]\n  %w = input : f32[3]\n  %y = cross_entropy " \
    "%x, %l, %w "
#define WEIGHTED_INPUTS V(1, 2, 3, 0.5, -1, 0, 2, 0, 0.5, 2, 3)

static void test_weighted_loss(void)
{
    EVAL(WEIGHTED ": f32[]\n", WEIGHTED_INPUTS, 0.4356809131432873);
    EVAL(WEIGHTED "{ignore_index=0} : f32[]\n", WEIGHTED_INPUTS, 0.4076059644443804);
    EVAL(WEIGHTED "{smoothing=0.1} : f32[]\n", WEIGHTED_INPUTS, 0.5165371183413023);
    EVAL(WEIGHTED "{ignore_index=0, smoothing=0.1} : f32[]\n", WEIGHTED_INPUTS,
         0.42508795471598787);
    EVAL(WEIGHTED "{smoothing=0.1, reduction=\"sum\"} : f32[]\n", WEIGHTED_INPUTS,
         1.807879914194558);
    EVAL(WEIGHTED "{smoothing=0.1, reduction=\"none\"} : f32[2]\n", WEIGHTED_INPUTS,
         1.2752638641479637, 0.5326160500465946);
    EVAL(WEIGHTED "{ignore_index=0, reduction=\"none\"} : f32[2]\n", WEIGHTED_INPUTS,
         1.2228178933331413, 0);
    EVAL("  %x = input : f32[2,3]\n  %l = input : i32[2]\n  %w = input : f32[3]\n"
         "  %d = input : f32[]\n  %y = cross_entropy_grad %x, %l, %d, %w {smoothing=0.1} : "
         "f32[2,3]\n",
         V(1, 2, 3, 0.5, -1, 0, 2, 0, 0.5, 2, 3, 1), 0.06940613884988485, 0.18256202615466668,
         -0.2519681650045516, -0.03443392039945322, 0.00301982279890332, 0.0314140976005499);
    /* No label weighs anything: the loss is 0, and so is its gradient (NaN in PyTorch). */
    EVAL(WEIGHTED "{smoothing=0.1} : f32[]\n", V(1, 2, 3, 0.5, -1, 0, 2, 0, 0, 2, 0), 0);
    EVAL("  %x = input : f32[1,2]\n  %l = input : i32[1]\n  %w = input : f32[2]\n"
         "  %d = input : f32[]\n  %y = cross_entropy_grad %x, %l, %d, %w : f32[1,2]\n",
         V(1, 2, 0, 0, 1, 1), 0, 0);
}

#define ANSWERS "  %x = input : f32[3,2]\n  %l = input : i32[3]\n  %y = accuracy %x, %l "

static void test_softmax(void)
{
    EVAL(X22 "  %y = softmax %x : f32[2,2]\n", V(1000, 1000, -inf, 0), 0.5, 0.5, 0, 1);
    EVAL(X22 "  %y = softmax %x {axis=0} : f32[2,2]\n", V(0, 0, 0, 1.0986122886681098), 0.5, 0.25,
         0.5, 0.75);
    EVAL(X22 "  %y = softmax %x : f32[2,2]\n", V(not_a_number, 1, 0, 0), not_a_number, not_a_number,
         0.5, 0.5);
    EVAL(X22 "  %y = log_softmax %x : f32[2,2]\n", V(0, 0, 1000, -1000), -0.6931471805599453,
         -0.6931471805599453, 0, -2000);
    EVAL(LOSS2 "  %y = cross_entropy %x, %l : f32[]\n", V(1000, 0, 1), 1000);
    EVAL(LOSS2 "  %y = cross_entropy %x, %l {smoothing=0.1} : f32[]\n", V(0, 1.0986122886681098, 1),
         0.3426126868851864);
    EVAL(LOSS2 "  %y = cross_entropy %x, %l {ignore_index=1} : f32[]\n", V(0, 0, 1), 0);
    EVAL(LOSS2 "  %d = input : f32[]\n  %y = cross_entropy_grad %x, %l, %d {ignore_index=1} : "
               "f32[1,2]\n",
         V(0, 0, 1, 1), 0, 0);
    EVAL(X22 "  %l = input : i32[2]\n  %y = cross_entropy %x, %l : f32[]\n", V(0, 0, 5, 5, 0, -100),
         0.6931471805599453);
    EVAL(ANSWERS "{ignore_index=9} : f32[]\n", V(1, 1, 1, 1, 0, 1, 0, 1, 9), 0.5);
    EVAL(ANSWERS "{reduction=\"sum\"} : f32[]\n", V(0, 1, 1, 0, 1, 1, 1, 0, -100), 2);
}

static void test_data(void)
{
    const double *x = V(1, 2, 3, 4, 5, 6);
    EVAL(X23 "  %y = transpose %x {perm=[1,0]} : f32[3,2]\n", x, 1, 4, 2, 5, 3, 6);
    EVAL(X23 "  %y = reshape %x {shape=[6]} : f32[6]\n", x, 1, 2, 3, 4, 5, 6);
    EVAL(X23 "  %y = slice %x {start=[1,0], limit=[2,3], step=[1,2]} : f32[1,2]\n", x, 4, 6);
    EVAL(X23 "  %y = pad %x {lo=[0,1], hi=[1,0], value=9} : f32[3,4]\n", x, 9, 1, 2, 3, 9, 4, 5, 6,
         9, 9, 9, 9);
    EVAL("  %a = input : f32[2,1]\n  %b = input : f32[2,2]\n"
         "  %y = concat %a, %b {axis=1} : f32[2,3]\n",
         V(1, 2, 3, 4, 5, 6), 1, 3, 4, 2, 5, 6);
    EVAL("  %a = input : f32[2,1]\n  %y = broadcast %a {shape=[2,2]} : f32[2,2]\n", V(1, 2), 1, 1,
         2, 2);
    EVAL("  %y = iota {axis=0, shape=[2,2]} : i32[2,2]\n", NULL, 0, 0, 1, 1);
    EVAL("  %y = full {shape=[2], value=0.5} : f32[2]\n", NULL, 0.5, 0.5);
    EVAL("  %y = const {value=3} : f32[2]\n", NULL, 3, 3);
    EVAL("  %i = input : i32[2]\n  %w = input : f32[2,2]\n  %y = embedding %i, %w : f32[2,2]\n",
         V(1, 0, 1, 2, 3, 4), 3, 4, 1, 2);
    EVAL("  %i = input : i32[3]\n  %d = input : f32[3,1]\n"
         "  %y = embedding_grad %i, %d {shape=[3,1]} : f32[3,1]\n",
         V(2, 0, 2, 1, 10, 100), 10, 0, 101);
    EVAL("  %i = input : i32[2]\n  %d = input : f32[2,1]\n  %s = input : f32[2,1]\n"
         "  %y = embedding_grad %i, %d, %s {shape=[2,1]} : f32[2,1]\n",
         V(1, 1, 10, 100, 3, 4), 3, 114);
}

#define W1G1 "  $w = param : f32[1]\n  %g = input : f32[1]\n"
#define MOM  W1G1 "  $m = state : f32[1]\n  %lr = input : f32[]\n  %c = input : f32[]\n"
#define ADAM                                                                                       \
    W1G1 "  $m = state : f32[1]\n  $v = state : f32[1]\n  %lr = input : f32[]\n"                   \
         "  %c = input : f32[]\n  %t = input : i32[]\n"                                            \
         "  %y, %m1, %v1 = adam_step $w, %g, $m, $v, %lr, %c, %t "
#define ADAM_OUT " : f32[1] -> $w, f32[1] -> $m, f32[1] -> $v\n"

static void test_updates(void)
{
    EVAL("  $w = param : f32[2]\n  %l = input : f32[]\n  %y = minimize %l, $w : f32[2] -> $w\n",
         V(3, 4, 1), 3, 4);
    EVAL(W1G1 "  %lr = input : f32[]\n  %c = input : f32[]\n"
              "  %y = sgd_step $w, %g, %lr, %c : f32[1] -> $w\n",
         V(1, 2, 0.1, 0.5), 0.9);
    EVAL(MOM "  %y, %n = sgd_step $w, %g, $m, %lr, %c {momentum=0.9, weight_decay=0.1} : f32[1] -> "
             "$w, f32[1] -> $m\n",
         V(1, 2, 1, 0.1, 0.5), 0.8);
    EVAL(MOM "  %y, %n = sgd_step $w, %g, $m, %lr, %c {momentum=0.9, nesterov=true, "
             "weight_decay=0.1} : f32[1] -> $w, f32[1] -> $m\n",
         V(1, 2, 1, 0.1, 0.5), 0.71);
    EVAL(MOM "  %w1, %y = sgd_step $w, %g, $m, %lr, %c {momentum=0.5, dampening=0.25} : f32[1] -> "
             "$w, f32[1] -> $m\n",
         V(1, 2, 1, 0.1, 1), 2);
    EVAL(ADAM "{eps=0}" ADAM_OUT, V(1, 2, 0, 0, 0.1, 1, 1), 0.9);
    EVAL(ADAM "{eps=2}" ADAM_OUT, V(1, 2, 0, 0, 0.1, 1, 1), 0.95);
    EVAL(ADAM "{eps=0, weight_decay=0.5, decoupled=true}" ADAM_OUT, V(1, 2, 0, 0, 0.1, 1, 1), 0.85);
    EVAL(ADAM "{eps=1, weight_decay=0.5}" ADAM_OUT, V(2, 2, 0, 0, 0.1, 1, 1), 1.925);
    EVAL("  %n = input : f32[]\n  %y = clip_scale %n {max_norm=2} : f32[]\n", V(1), 1);
    EVAL("  %n = input : f32[]\n  %y = clip_scale %n {max_norm=2} : f32[]\n", V(4), 2 / 4.000001);
    EVAL("  %x = input : f32[1]\n  %y = checksum %x : i32[2]\n", V(0), 2135587861, -1640531527);
    EVAL("  %x = input : f32[2]\n  %y = checksum %x : i32[2]\n", V(1, 0), 849997908, -68099923);
}

/* dropout keeps 1 - p of the elements, scaled; the mask follows seed, step and key. */
static void test_dropout(void)
{
    enum { N = 20000 };
    static double x[N + 4], first[N];
    Pool *pool = pool_new();
    Graph *g = graph_of(pool, "step",
                        "  %x = input : f32[20000]\n  %r = input : i32[4]\n"
                        "  %y = dropout %x, %r {p=0.25, key=5} : f32[20000]\n"
                        "  %z = dropout %x, %r {p=0.25, key=6} : f32[20000]\n");
    for (int i = 0; i < N; i++)
        x[i] = 3;
    x[N] = 7, x[N + 1] = -1, x[N + 2] = 4;
    EvalState *s = evaluated(pool, g, x);
    const double *y = eval_get(s, graph_find(g, "%y")), *z = eval_get(s, graph_find(g, "%z"));
    int kept = 0, same_key = 0, same_step = 0;
    uint32_t word[4];
    for (int i = 0; i < N; i++) {
        rng_words(0xffffffff00000007, 4, 5, (uint64_t)i / 4, word);
        CHECK(y[i] == (word[i % 4] >= 0x40000000 ? 4 : 0));
        kept += (first[i] = y[i]) != 0;
        same_key += y[i] == z[i];
    }
    x[N + 2] = 5;
    eval_set(s, graph_find(g, "%r"), x + N);
    eval_run(s, false);
    for (int i = 0; i < N; i++)
        same_step += first[i] == y[i];
    CHECK_MSG(abs(kept - N * 3 / 4) < 250, "%d", kept); /* 4 standard deviations */
    CHECK_MSG(abs(same_key - N * 5 / 8) < 280, "%d", same_key);
    CHECK_MSG(abs(same_step - N * 5 / 8) < 280, "%d", same_step);
    pool_free(pool);
}

/* A fused group is its body; with round_f32 every step of it is rounded. */
static void test_fused(void)
{
    Pool *pool = pool_new();
    const Loc loc = {0};
    Graph *body = graph_new(pool, "body"), *g = graph_new(pool, "g");
    const int64_t two = 2;
    Type t = type_make(DTYPE_F32, 1, &two);
    ValueId in[2], a = graph_add_source(body, OP_input, t, NULL, "%a", loc);
    ValueId b = graph_add_source(body, OP_input, t, NULL, "%b", loc);
    ValueId sum = graph_add(body, OP_add, (const ValueId[]){a, b}, 2, NULL, "%s", loc);
    graph_add_output(body, "0",
                     graph_add(body, OP_sub, (const ValueId[]){sum, a}, 2, NULL, "%d", loc));
    graph_add_output(body, "1", graph_add(body, OP_neg, &sum, 1, NULL, "%n", loc));
    in[0] = graph_add_source(g, OP_input, t, NULL, "%x", loc);
    in[1] = graph_add_source(g, OP_input, t, NULL, "%y", loc);
    const Node *fused = graph_node(g, graph_add_fused(g, body, in, 2, "%f", loc));
    EvalState *s = evaluated(pool, g, V(1, 2, 1e-9, 5));
    check_value(g, s, "%f", V(1 + 1e-9 - 1, 5), 2, "fused");
    CHECK(same(eval_get(s, fused->out[1])[1], -7));
    eval_run(s, true);
    check_value(g, s, "%f", V(0, 5), 2, "fused, rounded");
    pool_free(pool);
}

static void test_commit(void)
{
    Pool *pool = pool_new();
    Graph *g = graph_of(pool, "step",
                        "  $r = buffer : f32[1]\n  %s = input : f32[1]\n"
                        "  %y = bn_running $r, %s {momentum=0.5} : f32[1] -> $r\n");
    EvalState *s = evaluated(pool, g, V(8, 0));
    check_value(g, s, "$r", V(8), 1, "before commit");
    eval_commit(s);
    check_value(g, s, "$r", V(4), 1, "after commit");
    eval_run(s, false);
    check_value(g, s, "%y", V(2), 1, "second step");
    pool_free(pool);
}

/* Expected values: torch.nn.functional.local_response_norm and its gradient. */
static void test_lrn(void)
{
#define LRN_X "  %x = input : f32[1,3,2]\n"
    EVAL(LRN_X "  %y = lrn %x {window=3, alpha=0.5, beta=0.75, k=2} : f32[1,3,2]\n",
         V(1, 2, 3, 4, 5, 6), 0.2323680802425408, 0.3102016197006999, 0.323292251801502,
         0.3120463092427622, 0.5494204289289063, 0.4929271358124013);
    EVAL(LRN_X "  %y = lrn %x {window=2, alpha=0.5, beta=0.75, k=2} : f32[1,3,2]\n",
         V(1, 2, 3, 4, 5, 6), 0.5029733718731741, 0.7071067811865475, 0.6971042407276224,
         0.6204032394013997, 0.5494204289289063, 0.4929271358124013);
    EVAL("  %dy = input : f32[1,3,2]\n" LRN_X
         "  %y = lrn_grad %dy, %x {window=3, alpha=0.5, beta=0.75, k=2} : f32[1,3,2]\n",
         V(1, -1, 2, 0, 3, 1, 1, 2, 3, 4, 5, 6), 0.1826028654625926, -0.1163256073877625,
         -0.1289563130653407, 0.02473678323098909, -0.1200056440677381, 0.002934090094121405);
    EVAL("  %dy = input : f32[1,3,2]\n" LRN_X
         "  %y = lrn_grad %dy, %x {window=2, alpha=0.5, beta=0.75, k=2} : f32[1,3,2]\n",
         V(1, -1, 2, 0, 3, 1, 1, 2, 3, 4, 5, 6), 0.2027018801553029, -0.08838834764831843,
         -0.1785911165758396, -0.05281362169418587, 0.004337529702070353, 0.002934090094121405);
}

int main(void)
{
    test_point();
    test_saved_gradients();
    test_binary();
    test_reductions();
    test_matrix();
    test_convolution();
    test_transposed_convolution();
    test_lrn();
    test_pooling();
    test_resampling();
    test_norms();
    test_softmax();
    test_weighted_loss();
    test_data();
    test_updates();
    test_dropout();
    test_fused();
    test_commit();
    return test_result();
}
