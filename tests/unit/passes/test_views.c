/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What pass_views makes of small steps, what it leaves alone, and that its graphs survive their
 * text, the verifier and the checker of plans. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "ir/eval.h"
#include "ir/print.h"
#include "ir/strided_view.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(Pool *pool, const Graph *g)
{
    StrBuf b = strbuf_new(pool);
    graph_print(g, (PrintOptions){0}, &b);
    return b.text;
}

static PassContext run(Pool *pool, const char *lines, const char *pipeline)
{
    PassContext ctx = {.pool = pool, .graph = graph_of(pool, "forward", lines)};
    if (ctx.graph)
        CHECK_MSG(passes_run(&ctx, pipeline, NULL, NULL), "%s", ctx.error.message);
    return ctx;
}

/* The output `out` in double, of made-up inputs. */
static const double *evaluate(Pool *pool, const Graph *g)
{
    EvalState *s = eval_new(pool, g);
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (n->op != OP_input)
            continue;
        int64_t count = type_elements(value_type(g, n->out[0]));
        double *data = POOL_ARRAY(pool, (size_t)count, double);
        for (int64_t i = 0; i < count; i++)
            data[i] = (double)(i % 97) / 7 - 3;
        eval_set(s, n->out[0], data);
    }
    eval_run(s, false);
    return eval_get(s, graph_output(g, "out"));
}

static int count(const Graph *g, const char *what)
{
    Pool *pool = pool_new();
    int n = 0;
    for (const char *at = text_of(pool, g); (at = strstr(at, what)); at++)
        n++;
    pool_free(pool);
    return n;
}

typedef struct Case {
    const char *name, *lines;
    int joined, subviews, slices; /* concats with parts; operations, afterwards */
    bool smaller;                 /* the arena */
} Case;

#define X      "  %x = input {role=\"batch.x\"} : f32[64,16]\n"
#define PIECE0 "{start=[0,0], limit=[64,16], step=[1,1]}"
#define PIECE1 "{start=[0,16], limit=[64,32], step=[1,1]}"

static const Case cases[] = {
    {"both inputs are computed in place, and read there later",
     X "  %a = exp %x : f32[64,16]\n"
       "  %b = sin %x : f32[64,16]\n"
       "  %c = concat %a, %b {axis=1} : f32[64,32]\n"
       "  %d = exp %c : f32[64,32]\n"
       "  %e = relu_grad %d, %c : f32[64,32]\n"
       "  %f = mul %a, %b : f32[64,16]\n"
       "  output out = %f\n  output e = %e\n",
     1, 0, 0, true},
    {"bits are made of parts where they lie",
     X "  %a = relu %x : f32[64,16]\n"
       "  %b = sin %x : f32[64,16]\n"
       "  %m = relu_mask %a : i32[32]\n"
       "  %n = relu_mask %b : i32[32]\n"
       "  %c = concat %a, %b {axis=1} : f32[64,32]\n"
       "  %d = exp %c : f32[64,32]\n"
       "  %e = relu_mask_grad %x, %m : f32[64,16]\n"
       "  %f = relu_mask_grad %e, %n : f32[64,16]\n"
       "  output out = %f\n  output d = %d\n",
     1, 0, 0, true},
    {"rows of 8 have no runs of 16: their bits are of a copy",
     "  %x = input {role=\"batch.x\"} : f32[64,8]\n"
     "  %a = relu %x : f32[64,8]\n"
     "  %m = relu_mask %a : i32[16]\n"
     "  %c = concat %a, %x {axis=1} : f32[64,16]\n"
     "  %d = exp %c : f32[64,16]\n"
     "  %e = relu_mask_grad %x, %m : f32[64,8]\n"
     "  output out = %e\n  output d = %d\n",
     0, 0, 0, false},
    {"a product cannot write in place: its late reader reads the piece",
     X "  %w = input {role=\"batch.w\"} : f32[16,16]\n"
       "  %a = matmul %x, %w : f32[64,16]\n"
       "  %b = matmul %a, %w : f32[64,16]\n"
       "  %c = concat %a, %b {axis=1} : f32[64,32]\n"
       "  %d = exp %c : f32[64,32]\n"
       "  %e = sin %d : f32[64,32]\n"
       "  %f = concat %a, %b {axis=1} : f32[64,32]\n"
       "  %g = mul %f, %c : f32[64,32]\n"
       "  %h = mul %g, %e : f32[64,32]\n"
       "  output out = %h\n",
     0, 2, 0, true},
    {"pieces that element-wise operations read are not copied",
     X "  %a = exp %x : f32[64,16]\n"
       "  %b = concat %a, %x {axis=1} : f32[64,32]\n"
       "  %s = slice %b " PIECE0 " : f32[64,16]\n"
       "  %t = slice %b " PIECE1 " : f32[64,16]\n"
       "  %u = mul %s, %t : f32[64,16]\n"
       "  output out = %u\n",
     1, 2, 0, true},
    {"a product reads no pieces, and results stay whole",
     X "  %w = input {role=\"batch.w\"} : f32[16,16]\n"
       "  %a = concat %x, %x {axis=1} : f32[64,32]\n"
       "  %s = slice %a " PIECE0 " : f32[64,16]\n"
       "  %t = slice %a " PIECE1 " : f32[64,16]\n"
       "  %u = matmul %s, %w : f32[64,16]\n"
       "  output out = %u\n  output piece = %t\n",
     0, 0, 2, false},
    {"a piece that is read late would keep all of it alive",
     X "  %a = concat %x, %x, %x, %x, %x, %x, %x, %x {axis=1} : f32[64,128]\n"
       "  %s = slice %a {start=[0,0], limit=[64,8], step=[1,1]} : f32[64,8]\n"
       "  %m = sum %a {axes=[0,1]} : f32[]\n"
       "  %n = concat %x, %x, %x, %x, %x, %x, %x, %x {axis=0} : f32[512,16]\n"
       "  %o = sum %n {axes=[0,1]} : f32[]\n"
       "  %p = add %m, %o : f32[]\n"
       "  %q = mul %s, %p : f32[64,8]\n"
       "  output out = %q\n",
     0, 0, 1, false},
};

static bool has_text(const Graph *g, const char *text)
{
    return count(g, text) > 0;
}

static void check_round_trip(Pool *pool, const char *name, const Graph *g)
{
    Diag *diag = diag_new(pool);
    const char *text = text_of(pool, g);
    const Graph *again = graph_read(pool, "a", text, strlen(text), diag);
    CHECK_MSG(again && strcmp(text_of(pool, again), text) == 0, "%s: is read otherwise\n%s", name,
              text);
    for (size_t k = 0; again && k < g->values.len; k++) {
        ValueId v = graph_find(again, graph_value(g, (ValueId)k)->name);
        CHECK(v == VALUE_NONE || value_is_dense(again, v) == value_is_dense(g, (ValueId)k));
    }
}

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    PassContext with = run(pool, c->lines, "views,plan"), without = run(pool, c->lines, "plan");
    if (with.plan && without.plan) {
        const Graph *g = with.graph;
        bool pieces = c->joined || c->subviews;
        CHECK_MSG(count(g, "joined=") == c->joined && count(g, " = subview ") == c->subviews &&
                      count(g, " = slice ") == c->slices,
                  "%s:\n%s", c->name, text_of(pool, g));
        CHECK_MSG(c->smaller ? with.plan->arena_bytes < without.plan->arena_bytes
                             : with.plan->arena_bytes == without.plan->arena_bytes,
                  "%s: %lld instead of %lld bytes", c->name, (long long)with.plan->arena_bytes,
                  (long long)without.plan->arena_bytes);
        CHECK(has_text(g, "joined=") == (c->joined > 0) && pieces == c->smaller);
        const double *a = evaluate(pool, g), *b = evaluate(pool, without.graph);
        int64_t n = type_elements(value_type(g, graph_output(g, "out")));
        CHECK_MSG(memcmp(a, b, (size_t)n * sizeof *a) == 0, "%s: another result", c->name);
        check_round_trip(pool, c->name, g);
    }
    pool_free(pool);
}

/* Plans that break a rule of pieces are noticed. */
static void check_broken_plans(void)
{
    Pool *pool = pool_new();
    PassContext ctx = run(pool, cases[0].lines, "views,plan");
    const char *fault = "";
    ValueId a = graph_find(ctx.graph, "%a"), b = graph_find(ctx.graph, "%b");
    ValueId x = graph_find(ctx.graph, "%x");
    CHECK(ctx.plan->offset[a] == ctx.plan->offset[b]);
    CHECK(memplan_graph_check(pool, ctx.graph, ctx.plan, &fault));
    ctx.plan->offset[a] += MEMPLAN_ALIGN;
    CHECK(!memplan_graph_check(pool, ctx.graph, ctx.plan, &fault));
    CHECK_MSG(strstr(fault, "is a part and lies elsewhere"), "%s", fault);
    ctx.plan->offset[a] -= MEMPLAN_ALIGN;
    ctx.plan->offset[x] = ctx.plan->offset[a];
    CHECK(!memplan_graph_check(pool, ctx.graph, ctx.plan, &fault));
    CHECK_MSG(strstr(fault, "lies over an input"), "%s", fault);
    pool_free(pool);
}

/* Text in which something reads or writes a piece that cannot. */
static void check_refused(void)
{
    static const struct {
        const char *lines, *words;
    } bad[] = {
        {X "  %s = subview %x {start=[0,0], limit=[64,8], step=[1,1]} : f32[64,8]\n"
           "  %m = sum %s {axes=[0]} : f32[8]\n  output out = %m\n",
         "cannot read %s where it lies"},
        {X "  %s = subview %x {start=[0,0], limit=[64,8], step=[1,1]} : f32[64,8]\n"
           "  %r = reshape %s {shape=[512]} : f32[512]\n  output out = %r\n",
         "cannot read %s where it lies"},
        {X "  %s = subview %x {start=[0,0], limit=[64,8], step=[1,1]} : f32[64,8]\n"
           "  %m = relu_mask %s : i32[16]\n  output out = %m\n",
         "cannot read %s where it lies"},
        {"  %x = input : f32[4,8,32]\n"
         "  %s = subview %x {start=[0,0,0], limit=[4,6,32], step=[1,1,1]} : f32[4,6,32]\n"
         "  %m = relu_mask %s : i32[24]\n  output out = %m\n",
         "cannot read %s where it lies"},
        {"  %x = input : f32[64,64]\n"
         "  %s = subview %x {start=[0,0], limit=[64,64], step=[1,2]} : f32[64,32]\n"
         "  %m = relu_mask %s : i32[64]\n  output out = %m\n",
         "cannot read %s where it lies"},
        {X "  %s = subview %x {start=[0,0], limit=[64,8], step=[1,1]} : f32[64,8]\n"
           "  output out = %s\n",
         "lies inside another value"},
        {X "  %r = input {role=\"rng\"} : i32[8]\n"
           "  %s = subview %r {start=[0], limit=[8], step=[2]} : i32[4]\n"
           "  %d = dropout %x, %s {p=0.5, key=1} : f32[64,16]\n  output out = %d\n",
         "cannot read %s where it lies"},
        {X "  %c = concat %x, %x {axis=1, joined=[0]} : f32[64,32]\n  output out = %c\n",
         "cannot be computed in its place"},
        {X "  %a = exp %x : f32[64,16]\n"
           "  %c = concat %a, %a {axis=1, joined=[0,1]} : f32[64,32]\n  output out = %c\n",
         "is joined twice"},
        {X "  %a = exp %x : f32[64,16]\n"
           "  %c = concat %a, %x {axis=1, joined=[2]} : f32[64,32]\n  output out = %c\n",
         "names no inputs"},
        {X "  %a = exp %x : f32[64,16]\n"
           "  %c = concat %a, %x {axis=1, joined=[0]} : f32[64,32]\n"
           "  %d = concat %a, %x {axis=1, joined=[0]} : f32[64,32]\n"
           "  %e = add %c, %d : f32[64,32]\n  output out = %e\n",
         "is a part of something else"},
        {X "  %a = exp %x : f32[64,16]\n  %m = sum %a {axes=[0]} : f32[16]\n"
           "  %c = concat %a, %x {axis=1, joined=[0]} : f32[64,32]\n"
           "  output out = %c\n  output sum = %m\n",
         "cannot read %a where it lies"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        Pool *pool = pool_new();
        const char *text = pool_printf(
            pool, "scrimp.ir 1  src=\"a\"  hash=0000000000000000  opts\nforward @m {\n%s}\n",
            bad[k].lines);
        Diag *diag = diag_new(pool);
        const Graph *g = graph_read(pool, "a", text, strlen(text), diag);
        char *said = NULL;
        size_t size;
        FILE *f = open_memstream(&said, &size);
        diag_print(diag, f, false);
        fclose(f);
        CHECK_MSG(!g && strstr(said, bad[k].words), "case %zu: %s", k, said);
        free(said);
        pool_free(pool);
    }
}

static void check_last(void)
{
    Pool *pool = pool_new();
    PassContext ctx = run(pool, cases[0].lines, "views");
    CHECK(!passes_run(&ctx, "fuse", NULL, NULL));
    CHECK(ctx.error.message && strstr(ctx.error.message, "cannot follow pass views"));
    pool_free(pool);
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(&cases[k]);
    check_broken_plans();
    check_refused();
    check_last();
    return test_result();
}
