/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which normalizations pass_norms leaves to what reads them, and that the results are the same. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "passes/pass.h"

#include <string.h>

typedef struct Case {
    const char *name, *lines;
    int whole, groups; /* afterwards: normalizations that are one operation, and fused groups */
    bool for_device, no_norms;
} Case;

#define IMAGE  " : f32[2,5,6,16]\n"
#define PIXELS " : f32[2,5,6,9]\n"
/* All sources come first: the evaluator's inputs go by their places. */
#define X                                                                                          \
    "  %i = input {role=\"batch.x\"}" IMAGE "  %j = input {role=\"batch.y\"}" IMAGE                \
    "  %d = input {role=\"batch.d\"}" PIXELS "  %w = input {role=\"batch.w\"} : f32[1,1,16,9]\n"   \
    "  %k = input {role=\"batch.k\"} : f32[3,3,16,9]\n"                                            \
    "  %h = input {role=\"batch.h\"} : f32[3,3,1,16]\n"                                            \
    "  %b = input {role=\"batch.b\"} : f32[9]\n"                                                   \
    "  %n = input {role=\"batch.n\"} : f32[1,3,8,6]\n"                                             \
    "  $g = param {init=\"ones\"} : f32[16]\n  $b = param {init=\"zeros\"} : f32[16]\n"            \
    "  %x = sin %i" IMAGE
#define STATS     "  %m, %v = bn_stats %x {axis=3} : f32[16], f32[16]\n"
#define NORM      STATS "  %y = bn_apply %x, %m, %v, $g, $b {axis=3, eps=1e-05}" IMAGE
#define RELU      "  %z = relu %y" IMAGE
#define POINTWISE "{stride=[1,1], padding=[0,0], dilation=[1,1], groups=1, nhwc=true}"
#define PADDED    "{stride=[1,1], padding=[1,1], dilation=[1,1], groups=1, nhwc=true}"
#define WEIGHTS   "{stride=[1,1], padding=[0,0], dilation=[1,1], groups=1, nhwc=true, hw=[1,1]}"
#define CONV(v)   "  %c = conv2d " v ", %w " POINTWISE PIXELS
#define END       "  output out = %c\n"
/* The bias is written over. */
#define UPDATE "  %next = bn_running $b, %m {momentum=0.1, scale=1} : f32[16] -> $b\n"

static const Case cases[] = {
    {"alone", X NORM CONV("%y") END, 0, 1, false, false},
    {"with an activation", X NORM RELU CONV("%z") END, 0, 1, false, false},
    {"with a clamp", X NORM "  %z = clamp %y {min=0, max=6}" IMAGE CONV("%z") END, 0, 1, false,
     false},
    {"with four activations",
     X NORM "  %p = relu %y" IMAGE "  %q = clamp %p {min=0.5}" IMAGE "  %r = relu %q" IMAGE
            "  %s = clamp %r {max=1.5}" IMAGE CONV("%s") END,
     0, 1, false, false},
    {"with more activations than it follows",
     X NORM "  %p = relu %y" IMAGE "  %q = clamp %p {min=0.5}" IMAGE "  %r = relu %q" IMAGE
            "  %s = clamp %r {max=1.5}" IMAGE "  %t = relu %s" IMAGE CONV("%t") END,
     1, 0, false, false},
    {"with another activation", X NORM "  %z = tanh %y" IMAGE CONV("%z") END, 1, 0, false, false},
    {"a convolution with a bias", X NORM RELU "  %c = conv2d %z, %w, %b " POINTWISE PIXELS END, 0,
     1, false, false},
    {"a padded window", X NORM RELU "  %c = conv2d %z, %k " PADDED PIXELS END, 0, 1, false, false},
    {"channels apart",
     X NORM RELU "  %c = conv2d %z, %h {stride=[2,1], padding=[1,1], dilation=[1,1], groups=16, "
                 "nhwc=true} : f32[2,3,6,16]\n" END,
     0, 1, false, false},
    {"a weight gradient",
     X NORM RELU "  %c = conv2d_wgrad %z, %d " WEIGHTS " : f32[1,1,16,9]\n" END, 0, 1, false,
     false},
    {"both, and element-wise operations",
     X NORM RELU CONV("%z") "  %p = conv2d_wgrad %z, %d " WEIGHTS " : f32[1,1,16,9]\n"
                            "  %q = mul %z, %z" IMAGE "  %r = relu_grad %j, %z" IMAGE
                            "  output p = %p\n  output q = %q\n  output r = %r\n" END,
     0, 2, false, false},
    {"two of them, one behind the other",
     X NORM RELU "  %c1 = conv2d %z, %h {stride=[1,1], padding=[1,1], dilation=[1,1], groups=16, "
                 "nhwc=true}" IMAGE "  %m1, %v1 = bn_stats %c1 {axis=3} : f32[16], f32[16]\n"
                 "  %y1 = bn_apply %c1, %m1, %v1, $g, $b {axis=3, eps=0.5}" IMAGE CONV("%y1") END,
     0, 2, false, false},
    {"of one image, with an activation and without",
     X NORM "  %y1 = bn_apply %x, %m, %v, $g, $b {axis=3, eps=0.5}" IMAGE RELU CONV(
         "%z") "  %p = conv2d %y1, %w " POINTWISE PIXELS "  output p = %p\n" END,
     0, 2, false, false},
    {"the bias changes behind its readers", X NORM RELU CONV("%z") UPDATE END, 0, 1, false, false},

    {"the bias changes before a reader", X NORM RELU UPDATE CONV("%z") END, 1, 0, false, false},
    {"the bias changes between two readers",
     X NORM RELU CONV("%z") UPDATE "  %q = mul %z, %j" IMAGE "  output q = %q\n" END, 1, 0, false,
     false},
    {"nothing but element-wise operations", X NORM RELU "  %c = mul %z, %j" IMAGE END, 1, 0, false,
     false},
    {"kept",
     X STATS
     "  %y = bn_apply %x, %m, %v, $g, $b {axis=3, eps=1e-05} : f32[2,5,6,16] @keep\n" RELU CONV(
         "%z") END,
     1, 0, false, false},
    {"recomputed",
     X STATS
     "  %y = bn_apply %x, %m, %v, $g, $b {axis=3, eps=1e-05} : f32[2,5,6,16] @recompute\n" RELU
         CONV("%z") END,
     1, 0, false, false},
    {"its activation is kept", X NORM "  %z = relu %y : f32[2,5,6,16] @keep\n" CONV("%z") END, 1, 0,
     false, false},
    {"the convolution is kept",
     X NORM RELU "  %c = conv2d %z, %w " POINTWISE " : f32[2,5,6,9] @keep\n" END, 1, 0, false,
     false},
    {"the result is an output", X NORM RELU CONV("%z") "  output z = %z\n" END, 1, 0, false, false},
    {"what its activation reads is an output", X NORM RELU CONV("%z") "  output y = %y\n" END, 1, 0,
     false, false},
    {"something else reads what its activation does",
     X NORM RELU CONV("%z") "  %p = tanh %y" IMAGE "  output p = %p\n" END, 1, 0, false, false},
    {"a sum over the image reads it",
     X NORM RELU CONV("%z") "  %p = sum %z {axes=[1,2]} : f32[2,16]\n  output p = %p\n" END, 1, 0,
     false, false},
    {"an operation with a larger result reads it",
     "  %i = input {role=\"batch.x\"} : f32[1,5,6,16]\n  %j = input {role=\"batch.y\"}" IMAGE
     "  %w = input {role=\"batch.w\"} : f32[1,1,16,9]\n"
     "  $g = param {init=\"ones\"} : f32[16]\n  $b = param {init=\"zeros\"} : f32[16]\n"
     "  %x = sin %i : f32[1,5,6,16]\n" STATS
     "  %y = bn_apply %x, %m, %v, $g, $b {axis=3, eps=1e-05} : f32[1,5,6,16]\n"
     "  %c = conv2d %y, %w " POINTWISE " : f32[1,5,6,9]\n  %p = add %y, %j" IMAGE
     "  output p = %p\n" END,
     1, 0, false, false},
    {"another normalization reads it",
     X NORM "  %y1 = bn_apply %y, %m, %v, $g, $b {axis=3, eps=1e-05}" IMAGE CONV(
         "%y1") "  %p = conv2d %y, %w " POINTWISE PIXELS "  output p = %p\n" END,
     1, 1, false, false},
    {"the gradient of one reads it",
     X NORM "  %y1 = bn_grad_x %y, %x, %m, %v, $g, $g, $b {axis=3, eps=1e-05}" IMAGE CONV(
         "%y") "  output p = %y1\n" END,
     1, 0, false, false},
    {"a weight gradient reads it in the place of dy",
     X NORM RELU CONV("%z") "  %p = conv2d_wgrad %j, %z " WEIGHTS
                            " : f32[1,1,16,16]\n  output p = %p\n" END,
     1, 0, false, false},
    {"a data gradient reads it",
     X NORM RELU CONV("%z") "  %u = conv2d_dgrad %z, %h {stride=[1,1], padding=[1,1], "
                            "dilation=[1,1], groups=16, "
                            "nhwc=true, hw=[5,6]}" IMAGE "  output p = %u\n" END,
     1, 0, false, false},
    {"it is weights",
     X NORM CONV("%y") "  %p = conv2d %n, %y {stride=[1,1], padding=[0,0], dilation=[1,1], "
                       "groups=1, nhwc=true} : f32[1,2,4,16]\n  output p = %p\n" END,
     1, 0, false, false},
    {"a window without padding",
     X NORM RELU "  %c = conv2d %z, %k " POINTWISE " : f32[2,3,4,9]\n" END, 1, 0, false, false},
    {"a stride of 3",
     X NORM RELU "  %c = conv2d %z, %k {stride=[3,1], padding=[1,1], dilation=[1,1], groups=1, "
                 "nhwc=true} : f32[2,2,6,9]\n" END,
     1, 0, false, false},
    {"two groups",
     "  %i = input {role=\"batch.x\"}" IMAGE "  %w = input {role=\"batch.w\"} : f32[3,3,8,4]\n"
     "  $g = param {init=\"ones\"} : f32[16]\n  $b = param {init=\"zeros\"} : f32[16]\n"
     "  %x = sin %i" IMAGE NORM "  %c = conv2d %y, %w {stride=[1,1], padding=[1,1], "
     "dilation=[1,1], groups=2, nhwc=true} : f32[2,5,6,4]\n" END,
     1, 0, false, false},
    {"fusion takes what reads the convolution into it",
     X NORM RELU CONV("%z") "  %p = mul %c, %d" PIXELS "  output p = %p\n  output q = %p\n", 1, 0,
     false, false},
    {"by pairs",
     X NORM RELU "  %c = conv2d %z, %w {stride=[1,1], padding=[0,0], dilation=[1,1], "
                 "groups=1, nhwc=true, pairs=true}" PIXELS END,
     1, 0, false, false},
    {"Winograd's form",
     "  %i = input {role=\"batch.x\"}" IMAGE "  %w = input {role=\"batch.w\"} : f32[3,3,16,16]\n"
     "  $g = param {init=\"ones\"} : f32[16]\n  $b = param {init=\"zeros\"} : f32[16]\n"
     "  %x = sin %i" IMAGE NORM "  %c = conv2d %y, %w {stride=[1,1], padding=[1,1], "
     "dilation=[1,1], groups=1, nhwc=true, winograd=2}" IMAGE END,
     1, 0, false, false},
    {"channels first",
     "  %i = input {role=\"batch.x\"} : f32[2,16,5,6]\n"
     "  %w = input {role=\"batch.w\"} : f32[9,16,1,1]\n"
     "  $g = param {init=\"ones\"} : f32[16]\n  $b = param {init=\"zeros\"} : f32[16]\n"
     "  %x = sin %i : f32[2,16,5,6]\n  %m, %v = bn_stats %x {axis=1} : f32[16], f32[16]\n"
     "  %y = bn_apply %x, %m, %v, $g, $b {axis=1, eps=1e-05} : f32[2,16,5,6]\n"
     "  %c = conv2d %y, %w {stride=[1,1], padding=[0,0], dilation=[1,1], groups=1} : "
     "f32[2,9,5,6]\n" END,
     1, 0, false, false},
    {"7 channels",
     "  %i = input {role=\"batch.x\"} : f32[2,5,6,7]\n"
     "  %w = input {role=\"batch.w\"} : f32[1,1,7,9]\n"
     "  $g = param {init=\"ones\"} : f32[7]\n  $b = param {init=\"zeros\"} : f32[7]\n"
     "  %x = sin %i : f32[2,5,6,7]\n  %m, %v = bn_stats %x {axis=3} : f32[7], f32[7]\n"
     "  %y = bn_apply %x, %m, %v, $g, $b {axis=3, eps=1e-05} : f32[2,5,6,7]\n"
     "  %c = conv2d %y, %w " POINTWISE PIXELS END,
     1, 0, false, false},
    {"bf16",
     "  %i = input {role=\"batch.x\"} : bf16[2,5,6,16]\n"
     "  %w = input {role=\"batch.w\"} : bf16[1,1,16,9]\n"
     "  $g = param {init=\"ones\"} : f32[16]\n  $b = param {init=\"zeros\"} : f32[16]\n"
     "  %x = sin %i : bf16[2,5,6,16]\n" STATS
     "  %y = bn_apply %x, %m, %v, $g, $b {axis=3, eps=1e-05} : bf16[2,5,6,16]\n"
     "  %c = conv2d %y, %w " POINTWISE " : bf16[2,5,6,9]\n" END,
     1, 0, false, false},
    {"weights of bf16",
     "  %i = input {role=\"batch.x\"}" IMAGE "  %w = input {role=\"batch.w\"} : bf16[1,1,16,9]\n"
     "  $g = param {init=\"ones\"} : f32[16]\n  $b = param {init=\"zeros\"} : f32[16]\n"
     "  %x = sin %i" IMAGE NORM "  %c = conv2d %y, %w " POINTWISE " : bf16[2,5,6,9]\n" END,
     1, 0, false, false},
    {"for a device", X NORM RELU CONV("%z") END, 1, 0, true, false},
    {"where it is not wanted", X NORM RELU CONV("%z") END, 1, 0, false, true},
};

static PassContext run(Pool *pool, const Case *c, const char *pipeline)
{
    PassContext ctx = {
        .pool = pool, .graph = graph_of(pool, "step", c->lines), .for_device = c->for_device};
    ctx.request = (PlanRequest){.no_norms = c->no_norms};
    if (ctx.graph)
        CHECK_MSG(passes_run(&ctx, pipeline, NULL, NULL), "%s: %s", c->name, ctx.error.message);
    return ctx;
}

/* By the evaluator in double. */
static void check_same(Pool *pool, const Case *c, const Graph *before, const Graph *after)
{
    for (size_t i = 0; i < before->outputs.len; i++) {
        const Output *o = &before->outputs.data[i];
        const double *a = graph_evaluate_output(pool, before, o->name);
        const double *b = graph_evaluate_output(pool, after, o->name);
        int64_t n = type_elements(value_type(before, o->value)), apart = 0, zeros = 0;
        for (int64_t k = 0; k < n; k++) {
            double off = a[k] > b[k] ? a[k] - b[k] : b[k] - a[k];
            double size = a[k] > 0 ? a[k] : -a[k];
            apart += !(off <= 1e-12 * (size + 1));
            zeros += size == 0;
        }
        CHECK_MSG(apart == 0 && zeros < n, "%s: %lld elements of %s differ, %lld of %lld are 0",
                  c->name, (long long)apart, o->name, (long long)zeros, (long long)n);
    }
}

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    const Graph *before = graph_of(pool, "step", c->lines);
    PassContext with = run(pool, c, "norms");
    if (!before || !with.graph)
        return;
    int whole = graph_text_count(with.graph, "= bn_apply");
    int groups = graph_text_count(with.graph, "= fused");
    CHECK_MSG(whole == c->whole && groups == c->groups,
              "%s: %d normalizations are one operation, %d groups", c->name, whole, groups);
    check_same(pool, c, before, with.graph);
    /* The passes behind it, too, and there is a plan. */
    PassContext all = run(pool, c, "norms,fuse,order,slopes,views,plan");
    CHECK(all.plan);
    check_same(pool, c, before, all.graph);
    pool_free(pool);
}

/* The same case again changes nothing. */
static void check_twice(const Case *c)
{
    Pool *pool = pool_new();
    PassContext once = run(pool, c, "norms"), twice = run(pool, c, "norms,norms");
    if (once.graph && twice.graph)
        CHECK_MSG(graph_text_count(once.graph, "\n") == graph_text_count(twice.graph, "\n"),
                  "%s: twice is not once", c->name);
    pool_free(pool);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        check_case(&cases[k]);
        check_twice(&cases[k]);
    }
    return test_result();
}
