/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which products pass_pairs marks. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "passes/pass.h"

typedef struct Case {
    const char *name, *lines;
    int marked;
    bool exact, for_device;
} Case;

#define TWO(a, b)                                                                                  \
    "  %a = input {role=\"batch.x\"} : " a "\n  %b = input {role=\"batch.y\"} : " b "\n"
#define OUT "  output out = %y\n"

static const Case cases[] = {
    {"f32", TWO("f32[32,64]", "f32[64,32]") "  %y = matmul %a, %b : f32[32,32]\n" OUT, 0, 0, 0},
    {"bf16",
     TWO("bf16[32,64]", "bf16[64,32]") "  %y = matmul %a, %b {dtype=\"bf16\"} : bf16[32,32]\n" OUT,
     1, 0, 0},
    {"a weight in f32",
     TWO("bf16[2,8,64]", "f32[16,64]") "  %y = linear %a, %b {dtype=\"bf16\"} : bf16[2,8,16]\n" OUT,
     1, 0, 0},
    {"exact",
     TWO("bf16[32,64]", "bf16[64,32]") "  %y = matmul %a, %b {dtype=\"bf16\"} : bf16[32,32]\n" OUT,
     0, true, 0},
    {"for a device",
     TWO("bf16[32,64]", "bf16[64,32]") "  %y = matmul %a, %b {dtype=\"bf16\"} : bf16[32,32]\n" OUT,
     0, 0, true},
    {"15 rows",
     TWO("bf16[15,64]", "f32[16,64]") "  %y = linear %a, %b {dtype=\"bf16\"} : bf16[15,16]\n" OUT,
     0, 0, 0},
    {"15 columns",
     TWO("bf16[16,64]", "f32[15,64]") "  %y = linear %a, %b {dtype=\"bf16\"} : bf16[16,15]\n" OUT,
     0, 0, 0},
    {"31 terms, which lie by columns",
     TWO("bf16[31,16]",
         "bf16[31,16]") "  %y = matmul %a, %b {ta=true,dtype=\"f32\"} : f32[16,16]\n" OUT,
     0, 0, 0},
    {"32 terms, which lie by columns",
     TWO("bf16[32,16]",
         "bf16[32,16]") "  %y = matmul %a, %b {ta=true,dtype=\"f32\"} : f32[16,16]\n" OUT,
     1, 0, 0},
    {"terms of a sum",
     TWO("bf16[32,16]", "bf16[32,16]") "  %p = matmul %a, %b {ta=true,dtype=\"f32\"} : f32[16,16]\n"
                                       "  %q = matmul %b, %a {ta=true,dtype=\"f32\"} : f32[16,16]\n"
                                       "  %y = add %p, %q : f32[16,16]\n" OUT,
     0, 0, 0},
    {"a convolution by 1x1",
     TWO("bf16[1,4,4,32]", "f32[1,1,32,16]") "  %y = conv2d %a, %b {nhwc=true,dtype=\"bf16\"} : "
                                             "bf16[1,4,4,16]\n" OUT,
     1, 0, 0},
    {"its gradients",
     TWO("bf16[2,4,4,32]", "bf16[2,4,4,32]") "  %w = conv2d_wgrad %a, %b {nhwc=true,hw=[1,1]} : "
                                             "f32[1,1,32,32]\n"
                                             "  %y = conv2d_dgrad %b, %w "
                                             "{nhwc=true,hw=[4,4],dtype=\"bf16\"} : "
                                             "bf16[2,4,4,32]\n" OUT,
     2, 0, 0},
    {"by 3x3",
     TWO("bf16[1,6,6,32]", "f32[3,3,32,16]") "  %y = conv2d %a, %b {nhwc=true,dtype=\"bf16\"} : "
                                             "bf16[1,4,4,16]\n" OUT,
     1, 0, 0},
    {"with a stride, and a gradient that has none",
     TWO("bf16[1,8,8,32]", "f32[1,1,32,32]") "  %h = conv2d %a, %b "
                                             "{stride=[2,2],nhwc=true,dtype=\"bf16\"} : "
                                             "bf16[1,4,4,32]\n"
                                             "  %y = conv2d_dgrad %h, %b {stride=[2,2],nhwc=true,"
                                             "hw=[8,8],dtype=\"bf16\"} : bf16[1,8,8,32]\n" OUT,
     1, 0, 0},
    {"channels that do not fill registers",
     TWO("bf16[1,6,6,48]", "f32[3,3,48,16]") "  %y = conv2d %a, %b {nhwc=true,dtype=\"bf16\"} : "
                                             "bf16[1,4,4,16]\n" OUT,
     0, 0, 0},
    {"the longest terms of a sum",
     TWO("bf16[256,16]",
         "bf16[256,16]") "  %p = matmul %a, %b {ta=true,dtype=\"f32\"} : f32[16,16]\n"
                         "  %q = matmul %b, %a {ta=true,dtype=\"f32\"} : f32[16,16]\n"
                         "  %y = add %p, %q : f32[16,16]\n" OUT,
     0, 0, 0},
    {"longer ones",
     TWO("bf16[257,16]",
         "bf16[257,16]") "  %p = matmul %a, %b {ta=true,dtype=\"f32\"} : f32[16,16]\n"
                         "  %q = matmul %b, %a {ta=true,dtype=\"f32\"} : f32[16,16]\n"
                         "  %y = add %p, %q : f32[16,16]\n" OUT,
     2, 0, 0},
    {"chains of its own",
     TWO("bf16[64,16]",
         "bf16[64,16]") "  %y = matmul %a, %b {ta=true,chain=32,dtype=\"f32\"} : f32[16,16]\n" OUT,
     0, 0, 0},
};

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    PassContext ctx = {.pool = pool,
                       .graph = graph_of(pool, "forward", c->lines),
                       .exact = c->exact,
                       .for_device = c->for_device};
    if (ctx.graph) {
        CHECK_MSG(passes_run(&ctx, "pairs", NULL, NULL), "%s: %s", c->name, ctx.error.message);
        int marked = graph_text_count(ctx.graph, "pairs=true");
        CHECK_MSG(marked == c->marked, "%s: %d products are marked", c->name, marked);
    }
    pool_free(pool);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(&cases[k]);
    return test_result();
}
