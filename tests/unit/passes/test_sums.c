/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What pass_sums makes of small steps, and what it leaves alone. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "passes/pass.h"

typedef struct Case {
    const char *name, *lines;
    int chains, concats; /* products with chains, and concatenations, afterwards */
    bool for_device, no_views;
} Case;

/* A step that needs most of its memory elsewhere. */
#define ELSEWHERE                                                                                  \
    "  %g = input {role=\"batch.g\"} : f32[128,128]\n  %h = matmul %g, %g : f32[128,128]\n"        \
    "  %i = sum %h {axes=[0,1]} : f32[]\n  output i = %i\n"
#define X                                                                                          \
    "  %x = input {role=\"batch.x\"} : f32[6,64]\n  %y = input {role=\"batch.y\"} : f32[6,96]\n"   \
    "  %a = exp %x : f32[6,64]\n  %b = sin %x : f32[6,64]\n  %c = tanh %x : f32[6,64]\n"
#define SUM                                                                                        \
    "  %p = matmul %a, %y {ta=true} : f32[64,96]\n"                                                \
    "  %q = matmul %b, %y {ta=true} : f32[64,96]\n"                                                \
    "  %s = add %p, %q : f32[64,96]\n"                                                             \
    "  %r = matmul %c, %y {ta=true} : f32[64,96]\n"                                                \
    "  %t = add %s, %r : f32[64,96]\n"

static const Case cases[] = {
    {"three products", X SUM "  output out = %t\n" ELSEWHERE, 1, 2, false, false},
    {"not for a device", X SUM "  output out = %t\n" ELSEWHERE, 0, 0, true, false},
    {"not without views", X SUM "  output out = %t\n" ELSEWHERE, 0, 0, false, true},
    {"two sums of the same rows",
     X SUM "  %z = input {role=\"batch.z\"} : f32[6,80]\n"
           "  %u = matmul %a, %z {ta=true} : f32[64,80]\n"
           "  %v = matmul %b, %z {ta=true} : f32[64,80]\n"
           "  %k = add %u, %v : f32[64,80]\n"
           "  %w = matmul %c, %z {ta=true} : f32[64,80]\n"
           "  %l = add %k, %w : f32[64,80]\n"
           "  output out = %t\n  output l = %l\n" ELSEWHERE,
     2, 3, false, false},
    {"a sum on the way is read by others", X SUM "  output out = %t\n  output s = %s\n" ELSEWHERE,
     1, 2, false, false},
    {"a product is added twice",
     X "  %p = matmul %a, %y {ta=true} : f32[64,96]\n  %s = add %p, %p : f32[64,96]\n"
       "  output out = %s\n",
     0, 0, false, false},
    {"rows are overwritten before the sum ends",
     X ELSEWHERE "  $w = param {init=\"zeros\"} : f32[6,96]\n  %lr = input {role=\"lr\"} : f32[]\n"
                 "  %p = matmul %a, $w {ta=true} : f32[64,96]\n"
                 "  $next.w = sgd_step $w, %y, %lr, %i : f32[6,96] -> $w\n"
                 "  %q = matmul %b, %y {ta=true} : f32[64,96]\n  %s = add %p, %q : f32[64,96]\n"
                 "  output out = %s\n",
     0, 0, false, false},
    {"what it is added to is no product",
     X "  %m = input {role=\"batch.m\"} : f32[64,96]\n"
       "  %p = matmul %a, %y {ta=true} : f32[64,96]\n  %q = matmul %b, %y {ta=true} : f32[64,96]\n"
       "  %s = add %m, %p : f32[64,96]\n  %t = add %s, %q : f32[64,96]\n  output out = %t\n",
     0, 0, false, false},
    {"columns instead of rows",
     "  %x = input {role=\"batch.x\"} : f32[64,6]\n  %y = input {role=\"batch.y\"} : f32[6,96]\n"
     "  %a = exp %x : f32[64,6]\n  %b = sin %x : f32[64,6]\n"
     "  %p = matmul %a, %y : f32[64,96]\n  %q = matmul %b, %y : f32[64,96]\n"
     "  %s = add %p, %q : f32[64,96]\n  output out = %s\n",
     0, 0, false, false},
    {"rows that are more than a chain",
     "  %x = input {role=\"batch.x\"} : f32[257,64]\n"
     "  %a = exp %x : f32[257,64]\n  %b = sin %x : f32[257,64]\n"
     "  %p = matmul %a, %a {ta=true} : f32[64,64]\n  %q = matmul %b, %b {ta=true} : f32[64,64]\n"
     "  %s = add %p, %q : f32[64,64]\n  output out = %s\n",
     0, 0, false, false},
    {"rows that are not equally many",
     X "  %w = input {role=\"batch.w\"} : f32[5,64]\n  %z = input {role=\"batch.z\"} : f32[5,96]\n"
       "  %p = matmul %a, %y {ta=true} : f32[64,96]\n  %q = matmul %w, %z {ta=true} : f32[64,96]\n"
       "  %s = add %p, %q : f32[64,96]\n  output out = %s\n",
     0, 0, false, false},
    {"all rows at a time would need more memory",
     "  %x = input {role=\"batch.x\"} : f32[200,32]\n"
     "  %a = exp %x : f32[200,32]\n  %p = matmul %a, %a {ta=true} : f32[32,32]\n"
     "  %b = sin %x : f32[200,32]\n  %q = matmul %b, %b {ta=true} : f32[32,32]\n"
     "  %c = tanh %x : f32[200,32]\n  %r = matmul %c, %c {ta=true} : f32[32,32]\n"
     "  %s = add %p, %q : f32[32,32]\n  %t = add %s, %r : f32[32,32]\n  output out = %t\n",
     0, 0, false, false},
    {"bf16",
     "  %x = input {role=\"batch.x\"} : bf16[6,64]\n  %y = input {role=\"batch.y\"} : bf16[6,96]\n"
     "  %a = relu %x : bf16[6,64]\n  %b = neg %x : bf16[6,64]\n"
     "  %p = matmul %a, %y {ta=true, dtype=\"f32\"} : f32[64,96]\n"
     "  %q = matmul %b, %y {ta=true, dtype=\"f32\"} : f32[64,96]\n"
     "  %s = add %p, %q : f32[64,96]\n  output out = %s\n" ELSEWHERE,
     1, 2, false, false},
};

static PassContext run(Pool *pool, const Case *c, const char *pipeline)
{
    PassContext ctx = {
        .pool = pool, .graph = graph_of(pool, "step", c->lines), .for_device = c->for_device};
    ctx.request = (PlanRequest){.no_views = c->no_views};
    if (ctx.graph)
        CHECK_MSG(passes_run(&ctx, pipeline, NULL, NULL), "%s: %s", c->name, ctx.error.message);
    return ctx;
}

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    PassContext with = run(pool, c, "fuse,sums,views,plan"),
                without = run(pool, c, "fuse,views,plan");
    if (with.plan && without.plan) {
        const Graph *g = with.graph;
        CHECK_MSG(graph_text_count(g, "chain=") == c->chains &&
                      graph_text_count(g, " = concat ") == c->concats,
                  "%s: %d and %d", c->name, graph_text_count(g, "chain="),
                  graph_text_count(g, " = concat "));
        CHECK_MSG(with.plan->arena_bytes <= without.plan->arena_bytes,
                  "%s: %lld instead of %lld bytes", c->name, (long long)with.plan->arena_bytes,
                  (long long)without.plan->arena_bytes);
        CHECK_MSG(graph_same_out(pool, g, without.graph), "%s: another result", c->name);
    }
    pool_free(pool);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(&cases[k]);
    return test_result();
}
