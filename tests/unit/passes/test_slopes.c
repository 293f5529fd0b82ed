/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which slopes pass_slopes makes with their activations, and that the results are the same. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "passes/pass.h"

typedef struct Case {
    const char *name, *lines;
    int slopes; /* afterwards */
    bool for_device, no_views;
} Case;

#define X                                                                                          \
    "  %i = input {role=\"batch.x\"} : f32[6,64]\n  %j = input {role=\"batch.y\"} : f32[6,64]\n"   \
    "  %x = sin %i : f32[6,64]\n"
/* What comes between an activation and its gradient, and the rest. */
#define BETWEEN                                                                                    \
    "  %g = matmul %y, %j {ta=true} : f32[64,64]\n  %d = matmul %j, %g : f32[6,64]\n"              \
    "  %u = tanh %d : f32[6,64]\n"
#define GELU "  %y = gelu %x : f32[6,64]\n"
#define END                                                                                        \
    "  %e = matmul %dx, %i {ta=true} : f32[64,64]\n"                                               \
    "  output out = %e\n"

static const Case cases[] = {
    {"gelu alone", X GELU BETWEEN "  %dx = gelu_grad %u, %x : f32[6,64]\n" END, 1, false, false},
    {"its tanh form",
     X "  %y = gelu %x {approx=true} : f32[6,64]\n" BETWEEN
       "  %dx = gelu_grad %u, %x {approx=true} : f32[6,64]\n" END,
     1, false, false},
    {"silu", X "  %y = silu %x : f32[6,64]\n" BETWEEN "  %dx = silu_grad %u, %x : f32[6,64]\n" END,
     1, false, false},
    {"mish", X "  %y = mish %x : f32[6,64]\n" BETWEEN "  %dx = mish_grad %u, %x : f32[6,64]\n" END,
     1, false, false},
    {"not for a device", X GELU BETWEEN "  %dx = gelu_grad %u, %x : f32[6,64]\n" END, 0, true,
     false},
    {"not without views", X GELU BETWEEN "  %dx = gelu_grad %u, %x : f32[6,64]\n" END, 0, false,
     true},
    {"in groups",
     X "  %w = gelu %x : f32[6,64]\n  %y = mul %w, %j : f32[6,64]\n"
       "  %g = matmul %y, %j {ta=true} : f32[64,64]\n  %d = matmul %j, %g : f32[6,64]\n"
       "  %dx = gelu_grad %d, %x : f32[6,64]\n" END,
     1, false, false},
    {"two gradients",
     X GELU BETWEEN "  %s = gelu_grad %u, %x : f32[6,64]\n"
                    "  %v = matmul %s, %g : f32[6,64]\n  %w = abs %v : f32[6,64]\n"
                    "  %dx = gelu_grad %w, %x : f32[6,64]\n" END,
     1, false, false},
    {"of another form", X GELU BETWEEN "  %dx = gelu_grad %u, %x {approx=true} : f32[6,64]\n" END,
     0, false, false},
    {"of another activation", X GELU BETWEEN "  %dx = silu_grad %u, %x : f32[6,64]\n" END, 0, false,
     false},
    {"somebody else reads x",
     X GELU BETWEEN "  %s = gelu_grad %u, %x : f32[6,64]\n"
                    "  %dx = matmul %x, %g : f32[6,64]\n  output s = %s\n" END,
     0, false, false},
    {"the gradient comes first",
     X "  %s = gelu_grad %j, %x : f32[6,64]\n  %g = matmul %s, %j {ta=true} : f32[64,64]\n" GELU
       "  %dx = matmul %y, %g : f32[6,64]\n" END,
     0, false, false},
    {"the gradient of x for itself", X GELU BETWEEN "  %dx = gelu_grad %x, %x : f32[6,64]\n" END, 0,
     false, false},
    {"bf16",
     "  %i = input {role=\"batch.x\"} : bf16[6,64]\n  %j = input {role=\"batch.y\"} : bf16[6,64]\n"
     "  %x = sin %i : bf16[6,64]\n  %y = gelu %x : bf16[6,64]\n"
     "  %g = matmul %y, %j {ta=true} : bf16[64,64]\n  %d = matmul %j, %g : bf16[6,64]\n"
     "  %dx = gelu_grad %d, %x : bf16[6,64]\n  output out = %dx\n",
     0, false, false},
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
    PassContext with = run(pool, c, "fuse,slopes,views,plan"),
                without = run(pool, c, "fuse,views,plan");
    if (with.plan && without.plan) {
        const Graph *g = with.graph;
        int slopes = graph_text_count(g, "output slope =");
        CHECK_MSG(slopes == c->slopes, "%s: %d slopes", c->name, slopes);
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
