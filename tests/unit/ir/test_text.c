/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text form: print -> read -> print on random graphs, and what the reader refuses. */
#include "check.h"
#include "ir/print.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/support/random_graph.h"

#include <stdlib.h>
#include <string.h>

static const char *printed(Pool *pool, const Graph *g, bool no_loc)
{
    StrBuf b = strbuf_new(pool);
    graph_print(g, (PrintOptions){.no_loc = no_loc}, &b);
    return b.text;
}

static const char *diag_text(const Diag *diag)
{
    static char text[4096];
    FILE *f = fmemopen(text, sizeof text, "w");
    diag_print(diag, f, false);
    fclose(f);
    return text;
}

static void check_same(Pool *pool, const char *text, const char *what, unsigned long long seed)
{
    Diag *diag = diag_new(pool);
    Graph *g = graph_read(pool, "t.ir", text, strlen(text), diag);
    if (!g) {
        CHECK_MSG(false, "%s, seed %llu: %s\n%s", what, seed, diag_text(diag), text);
        return;
    }
    CHECK_MSG(strcmp(printed(pool, g, false), text) == 0, "%s, seed %llu:\n%s\n%s", what, seed,
              text, printed(pool, g, false));
}

static void check_round_trip(unsigned long long seed)
{
    Pool *pool = pool_new();
    Random r = {seed * 0x9e3779b97f4a7c15U + 1};
    Graph *g = random_graph(pool, &r);
    const char *fault, *text = printed(pool, g, false);
    CHECK_MSG(graph_verify(g, &fault), "seed %llu: %s", seed, fault);
    check_same(pool, text, "print", seed);
    check_same(pool, printed(pool, g, true), "print without positions", seed);
    Pool *other = pool_new();
    Graph *copy = graph_copy(other, g);
    const char *again = pool_strdup(other, text);
    pool_free(pool);
    CHECK_MSG(strcmp(printed(other, copy, false), again) == 0, "copy, seed %llu", seed);
    pool_free(other);
}

#define HEAD  "scrimp.ir 1  src=\"m\"  hash=00000000000000ff  opts\nstep @m {\n"
#define BODY1 "  %x = input : f32[4]\n"

/* Text and the code of the error it must give; NULL: reads. */
static const struct {
    const char *text, *code;
} texts[] = {
    {HEAD BODY1 "}\n", NULL},
    {"# RUN: opt\n" HEAD BODY1 "  %y = relu %x : f32[4] # comment\n}\nplan persistent=0 {\n  %x : "
     "off=0\n}\n",
     NULL},
    {"scrimp.ir 1\nstep @m {}", NULL},
    {"", "E701"},
    {"hello", "E701"},
    {"scrimp.ir 2\nstep @m {}", "E701"},
    {"scrimp.ir 99999999999999999999\nstep @m {}", "E707"},
    {"scrimp.ir 1\nstep m {}", "E701"},
    {"scrimp.ir 1  src=\"a\nstep @m {}", "E701"},
    {"scrimp.ir 1  src=\"\\q\"\nstep @m {}", "E701"},
    {"scrimp.ir 1  src=\"\\x00\"\nstep @m {}", "E701"},
    {"scrimp.ir 1  opts a\\", "E701"},
    {HEAD BODY1, "E701"},
    {HEAD BODY1 "}\nmore", "E701"},
    {HEAD BODY1 "}\nplan {", "E701"},
    {HEAD "  %y = relu %x : f32[4]\n}", "E704"},
    {HEAD "  %x = relu %x : f32[4]\n}", "E704"},
    {HEAD BODY1 BODY1 "}", "E705"},
    {HEAD BODY1 "  %a, %a = bn_stats %x : f32[4], f32[4]\n}", "E705"},
    {HEAD BODY1 "  %y = rellu %x : f32[4]\n}", "E702"},
    {HEAD BODY1 "  %y = softmax %x {axi=0} : f32[4]\n}", "E703"},
    {HEAD BODY1 "  %y = softmax %x {axis=0, axis=0} : f32[4]\n}", "E705"},
    {HEAD BODY1 "  %y = softmax %x {axis=99999999999999999999} : f32[4]\n}", "E707"},
    {HEAD BODY1 "  %y = softmax %x {axis=x} : f32[4]\n}", "E701"},
    {HEAD BODY1 "  %y = softmax %x {axis=1} : f32[4]\n}", "E105"},
    {HEAD BODY1 "  %y = softmax %x {keepdims=maybe} : f32[4]\n}", "E701"},
    {HEAD BODY1 "  %y = pad %x {value=1.5x} : f32[4]\n}", "E701"},
    {HEAD BODY1 "  %y = relu %x : f32[5]\n}", "E706"},
    {HEAD BODY1 "  %y = relu %x : f32[4], f32[4]\n}", "E706"},
    {HEAD BODY1 "  %y = bn_stats %x : f32[4]\n}", "E103"},
    {HEAD BODY1 "  %y = input %x : f32[4]\n}", "E706"},
    {HEAD "  %x = input : f33[4]\n}", "E701"},
    {HEAD "  %x = input : f32[0]\n}", "E707"},
    {HEAD "  %x = input : f32[-4]\n}", "E707"},
    {HEAD "  %x = input : f32[1,1,1,1,1,1,1,1,1]\n}", "E707"},
    {HEAD "  %x = input : f32[4611686018427387904,4]\n}", "E707"},
    {HEAD BODY1 "  %y = relu %x : f32[4] loc 4294967296:1\n}", "E707"},
    {HEAD BODY1 "  %y = relu %x : f32[4] @remat(of=%z)\n}", "E704"},
    {HEAD BODY1 "  %y = relu %x : f32[4] @remat(of=%x)\n}", "E708"},
    {HEAD BODY1 "  %y = relu %x : f32[4] @remat(flops=3)\n}", "E701"},
    {HEAD BODY1 "  %y = relu %x : f32[4] -> %x\n}", "E708"},
    {HEAD BODY1 "  output y = %z\n}", "E704"},
    {HEAD BODY1 "  output y = %x\n  output y = %x\n}", "E705"},
    {HEAD BODY1 "  %f = fused %x : f32[4]\n}", "E110"},
    {HEAD BODY1 "  %f = fused %x { output y = %x } : f32[4]\n}", "E704"},
    {HEAD BODY1 "  %f = fused %x { %b = input : f32[5] output y = %b } : f32[5]\n}", "E101"},
    {HEAD BODY1 "  %f = fused %x { %b = input : f32[4] train {} } : f32[4]\n}", "E705"},
    {HEAD "  train {optim=sdg}\n}", "E701"},
    {HEAD "  train {steps=-1}\n}", "E707"},
    {HEAD "  train {step=1}\n}", "E703"},
    {HEAD "  train {seed=1, seed=1}\n}", "E705"},
    {HEAD "  train {}\n  train {}\n}", "E705"},
};

static void check_text(const char *text, size_t length, const char *code)
{
    Pool *pool = pool_new();
    Diag *diag = diag_new(pool);
    Graph *g = graph_read(pool, "t.ir", text, length, diag);
    if (!code)
        CHECK_MSG(g && !diag_error_count(diag), "%s\n%s", text, diag_text(diag));
    else
        CHECK_MSG(!g && diag_error_count(diag) == 1 && strstr(diag_text(diag), code),
                  "expected %s of:\n%s\n%s", code, text, diag_text(diag));
    pool_free(pool);
}

/* Every prefix, and every text with one byte replaced, is read or refused: nothing else. */
static void check_damaged(void)
{
    Random r = {7};
    Pool *pool = pool_new();
    const char *text = printed(pool, random_graph(pool, &r), false);
    size_t length = strlen(text);
    for (size_t n = 0; n < length; n += 7) {
        Pool *p = pool_new();
        Diag *diag = diag_new(p);
        Graph *g = graph_read(p, "t.ir", text, n, diag);
        CHECK_MSG((g == NULL) == (diag_error_count(diag) > 0), "prefix %zu", n);
        pool_free(p);
    }
    for (int i = 0; i < 2000; i++) {
        Pool *p = pool_new();
        Diag *diag = diag_new(p);
        char *damaged = pool_strdup(p, text);
        damaged[random_below(&r, (int)length)] = "\0{}[]\"\\%$,=-9az\xff"[random_below(&r, 17)];
        Graph *g = graph_read(p, "t.ir", damaged, length, diag);
        CHECK_MSG((g == NULL) == (diag_error_count(diag) > 0), "damage %d", i);
        pool_free(p);
    }
    pool_free(pool);
}

static void check_nesting(void)
{
    Pool *pool = pool_new();
    StrBuf b = strbuf_new(pool);
    strbuf_put(&b, HEAD BODY1);
    for (int i = 0; i < 100000; i++)
        strbuf_put(&b, "%f = fused {");
    check_text(b.text, b.len, "E707");
    pool_free(pool);
}

/* The digits printed are enough: an equal text would not show it. */
static void check_numbers(void)
{
    Pool *pool = pool_new();
    Random r = {11};
    for (int i = 0; i < 2000; i++) {
        double x = i % 2 ? random_double(&r) : 1.0 / (1 + random_below(&r, 1000000));
        StrBuf b = strbuf_new(pool);
        text_put_double(&b, x);
        double back = strtod(b.text, NULL);
        CHECK_MSG(memcmp(&back, &x, sizeof x) == 0, "%.17g became %s", x, b.text);
    }
    const struct {
        double x;
        const char *text;
    } forms[] = {{0.1, "0.1"},    {100, "100"},   {-1500, "-1500"}, {1e14, "100000000000000"},
                 {1e20, "1e+20"}, {1e-7, "1e-07"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        StrBuf b = strbuf_new(pool);
        text_put_double(&b, forms[i].x);
        CHECK_MSG(strcmp(b.text, forms[i].text) == 0, "%s", b.text);
    }
    pool_free(pool);
}

/* The original of a recomputation may be gone; the text must still read. */
static void check_lost_original(void)
{
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "m");
    const int64_t dims = 4;
    ValueId x = graph_add_source(g, OP_input, type_make(DTYPE_F32, 1, &dims), NULL, "%x", (Loc){0});
    graph_add(g, OP_relu, &x, 1, NULL, "%y", (Loc){0});
    ValueId again = graph_add(g, OP_relu, &x, 1, NULL, "%y~1", (Loc){0});
    value_node(g, again)->remat_of = g->order.data[1];
    CHECK(strstr(printed(pool, g, true), "@remat(of=%y)"));
    g->order.data[1] = g->order.data[2];
    g->order.len--;
    CHECK(!strstr(printed(pool, g, true), "remat"));
    check_same(pool, printed(pool, g, true), "lost original", 0);
    pool_free(pool);
}

static void check_plan(void)
{
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "m");
    const int64_t dims = 1025;
    ValueId w = graph_add_source(g, OP_param, type_make(DTYPE_F32, 1, &dims), NULL, "$w", (Loc){0});
    ValueId y = graph_add(g, OP_relu, &w, 1, NULL, "%y", (Loc){0});
    ValueId z = graph_add(g, OP_relu, &w, 1, NULL, "%z", (Loc){0});
    NodeId of = graph_value(g, y)->def;
    value_node(g, z)->remat_of = of;
    const int64_t offset[3] = {0, 4096, -1};
    const PlanText plan = {offset, 4096, 8192, 3 << 20, of};
    StrBuf b = strbuf_new(pool);
    graph_print_plan(g, &plan, &b);
    CHECK_MSG(strcmp(b.text, "plan persistent=4.0KiB arena=8.0KiB peak=3.0MiB@%y "
                             "extra_flops=1.0K(+100.0%) {\n"
                             "  $w : off=0 size=4100 live=0..2\n"
                             "  %y : off=4K size=4100 live=1..1\n}\n") == 0,
              "%s", b.text);
    StrBuf dot = strbuf_new(pool);
    graph_print_dot(g, &dot);
    CHECK(strstr(dot.text, "n0 -> n1") && strstr(dot.text, "relu\\n%y"));
    pool_free(pool);
}

int main(int argc, char **argv)
{
    unsigned long long first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    printf("seeds %llu..%llu\n", first, first + 199);
    for (unsigned long long seed = first; seed < first + 200; seed++)
        check_round_trip(seed);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_text(texts[i].text, strlen(texts[i].text), texts[i].code);
    check_text("scrimp.ir 1\nstep @m {\0}", 23, "E701");
    check_damaged();
    check_nesting();
    check_numbers();
    check_lost_original();
    check_plan();
    return test_result();
}
