/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which weights pass_transposes transposes, alone and in groups, and that nothing else changes. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "ir/support/strbuf.h"
#include "passes/pass.h"

#include <string.h>

/* A recurrence h = tanh(h W^T + h), written out. */
typedef struct Case {
    const char *name;
    int rows, steps;
    const char *attrs; /* of the products */
    int in_out;        /* products that read the weight as it lies, afterwards */
    bool for_device, no_views;
} Case;

static const Case cases[] = {
    {"a recurrence", 4, 8, "", 8, false, false},
    {"too few steps", 4, 7, "", 0, false, false},
    {"rows enough", 33, 8, "", 0, false, false},
    {"it is read as it lies already", 4, 8, " {in_out=true}", 8, false, false},
    {"not for a device", 4, 8, "", 0, true, false},
    {"not without views", 4, 8, "", 0, false, true},
};

static const char *lines_of(Pool *pool, const Case *c)
{
    StrBuf b = strbuf_new(pool);
    strbuf_printf(&b, "  %%h0 = input {role=\"batch.x\"} : f32[%d,24]\n", c->rows);
    strbuf_put(&b, "  %w = input {role=\"batch.w\"} : f32[24,24]\n"
                   "  %g = input {role=\"batch.g\"} : f32[128,128]\n");
    for (int i = 0; i < c->steps; i++)
        strbuf_printf(&b,
                      "  %%p%d = linear %%h%d, %%w%s : f32[%d,24]\n"
                      "  %%s%d = add %%p%d, %%h%d : f32[%d,24]\n"
                      "  %%h%d = tanh %%s%d : f32[%d,24]\n",
                      i, i, c->attrs, c->rows, i, i, i, c->rows, i + 1, i, c->rows);
    strbuf_printf(&b, "  output out = %%h%d\n", c->steps);
    strbuf_put(&b, "  %m = matmul %g, %g : f32[128,128]\n  output m = %m\n");
    return b.text;
}

static PassContext run(Pool *pool, const Case *c, const char *pipeline)
{
    PassContext ctx = {.pool = pool,
                       .graph = graph_of(pool, "step", lines_of(pool, c)),
                       .for_device = c->for_device};
    ctx.request = (PlanRequest){.no_views = c->no_views};
    if (ctx.graph)
        CHECK_MSG(passes_run(&ctx, pipeline, NULL, NULL), "%s: %s", c->name, ctx.error.message);
    return ctx;
}

/* fuse: the products are in groups. */
static void check_case(const Case *c, const char *before)
{
    Pool *pool = pool_new();
    PassContext with = run(pool, c, pool_printf(pool, "%stransposes,views,plan", before));
    PassContext without = run(pool, c, pool_printf(pool, "%sviews,plan", before));
    if (with.plan && without.plan) {
        const Graph *g = with.graph;
        int transposed = c->in_out && !*c->attrs;
        CHECK_MSG(graph_text_count(g, "in_out=true") == c->in_out &&
                      graph_text_count(g, " = transpose ") == transposed,
                  "%s%s: %d and %d", before, c->name, graph_text_count(g, "in_out=true"),
                  graph_text_count(g, " = transpose "));
        CHECK(with.plan->arena_bytes <= without.plan->arena_bytes);
        const double *a = graph_evaluate_out(pool, g), *b = graph_evaluate_out(pool, without.graph);
        size_t n = (size_t)type_elements(value_type(g, graph_output(g, "out")));
        CHECK_MSG(memcmp(a, b, n * sizeof *a) == 0, "%s: another result", c->name);
    }
    pool_free(pool);
}

/* A weight as large as the rest of the step is not there twice. */
static void check_memory(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {.pool = pool};
    StrBuf b = strbuf_new(pool);
    strbuf_put(&b, "  %h0 = input {role=\"batch.x\"} : f32[4,96]\n"
                   "  %w = input {role=\"batch.w\"} : f32[96,96]\n");
    for (int i = 0; i < 9; i++)
        strbuf_printf(&b, "  %%h%d = linear %%h%d, %%w : f32[4,96]\n", i + 1, i);
    strbuf_put(&b, "  output out = %h9\n");
    ctx.graph = graph_of(pool, "step", b.text);
    CHECK(ctx.graph && passes_run(&ctx, "transposes", NULL, NULL));
    CHECK(ctx.graph && graph_text_count(ctx.graph, " = transpose ") == 0);
    pool_free(pool);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        check_case(&cases[k], "");
        check_case(&cases[k], "fuse,");
    }
    check_memory();
    return test_result();
}
