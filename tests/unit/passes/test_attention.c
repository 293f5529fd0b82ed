/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pass `attention`: what it takes for attention, and what it leaves alone. */
#include "check.h"

#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <string.h>

/* Queries, keys and values that are learned, a number for each key that is not. */
static const char head[] = "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
                           "  %rng = input {role=\"rng\"} : i32[4]\n"
                           "  %pad = input {role=\"batch.pad\"} : f32[2,1,1,7]\n"
                           "  $q = param : f32[2,3,5,8]\n"
                           "  $k = param : f32[2,3,7,8]\n"
                           "  $v = param : f32[2,3,7,4]\n"
                           "  %half = const {value=0.5} : f32[]\n";

#define PRODUCT    "  %a = matmul $q, $k {tb=true} : f32[2,3,5,7]\n"
#define SCALED     "  %b = mul %a, %half : f32[2,3,5,7]\n"
#define SOFTMAX(x) "  %p = softmax " x " {axis=3} : f32[2,3,5,7]\n"
#define RESULT(x)  "  %o = matmul " x ", $v : f32[2,3,5,4]\n"
#define END        "  output o = %o\n}\n"

/* Six heads of queries for three of keys and values, of which these are copies. */
#define FEWER "  %q6 = concat $q, $q {axis=1} : f32[2,6,5,8]\n"
#define COPIES                                                                                     \
    "  %ones = reshape $k {shape=[2,3,1,7,8]} : f32[2,3,1,7,8]\n"                                  \
    "  %kc = broadcast %ones {shape=[2,3,2,7,8]} : f32[2,3,2,7,8]\n"                               \
    "  %k6 = reshape %kc {shape=[2,6,7,8]} : f32[2,6,7,8]\n"                                       \
    "  %onev = reshape $v {shape=[2,3,1,7,4]} : f32[2,3,1,7,4]\n"                                  \
    "  %vc = broadcast %onev {shape=[2,3,2,7,4]} : f32[2,3,2,7,4]\n"                               \
    "  %v6 = reshape %vc {shape=[2,6,7,4]} : f32[2,6,7,4]\n"
#define SHARED                                                                                     \
    "  %a = matmul %q6, %k6 {tb=true} : f32[2,6,5,7]\n"                                            \
    "  %p = softmax %a {axis=3} : f32[2,6,5,7]\n  %o = matmul %p, %v6 : f32[2,6,5,4]\n"

typedef struct Case {
    const char *what, *text;
    const char *found; /* the operation as it is printed; NULL: left alone */
} Case;

#define CALL "%attention.0, %attention.0#1, %attention.0#2 = attention $q, $k, $v"

static const Case cases[] = {
    {"two products and a softmax", PRODUCT SOFTMAX("%a") RESULT("%p") END, CALL " :"},
    {"the last axis counted from the end",
     PRODUCT "  %p = softmax %a : f32[2,3,5,7]\n" RESULT("%p") END, CALL " :"},
    {"a factor", PRODUCT SCALED SOFTMAX("%b") RESULT("%p") END, CALL " {scale=0.5} :"},
    {"the factor first",
     PRODUCT "  %b = mul %half, %a : f32[2,3,5,7]\n" SOFTMAX("%b") RESULT("%p") END,
     CALL " {scale=0.5} :"},
    {"everything",
     PRODUCT SCALED
     "  %c = add %pad, %b : f32[2,3,5,7]\n  %d = causal_mask %c : f32[2,3,5,7]\n" SOFTMAX(
         "%d") "  %e = dropout %p, %rng {p=0.1, key=7} : f32[2,3,5,7]\n" RESULT("%e") END,
     CALL ", %pad, %rng {scale=0.5, causal=true, p=0.1, key=7} :"},
    {"a bias that is multiplied, and scores that would do for a bias",
     "  %x = input {role=\"batch.x\"} : f32[2,3,1,8]\n"
     "  %y = input {role=\"batch.y\"} : f32[2,3,7,8]\n"
     "  %c = mul %pad, %half : f32[2,1,1,7]\n"
     "  %a = matmul %x, %y {tb=true} : f32[2,3,1,7]\n"
     "  %b = add %c, %a : f32[2,3,1,7]\n  %p = softmax %b {axis=3} : f32[2,3,1,7]\n"
     "  %o = matmul %p, $v : f32[2,3,1,4]\n" END,
     "attention %x, %y, $v, %c :"},
    {"queries that were scaled",
     "  %s = mul $q, %half : f32[2,3,5,8]\n"
     "  %a = matmul %s, $k {tb=true} : f32[2,3,5,7]\n" SOFTMAX("%a") RESULT("%p") END,
     "attention %s, $k, $v :"},
    {"one after the other, the first one's results as queries and keys",
     "  %x = matmul $q, $q {tb=true} : f32[2,3,5,5]\n"
     "  %y = softmax %x {axis=3} : f32[2,3,5,5]\n"
     "  $w = param : f32[2,3,5,8]\n  %z = matmul %y, $w : f32[2,3,5,8]\n"
     "  %a = matmul %z, $k {tb=true} : f32[2,3,5,7]\n" SOFTMAX("%a") RESULT("%p") END,
     "attention %attention.0, $k, $v :"},
    {"keys and values that are copies of fewer heads", FEWER COPIES SHARED END,
     "attention %q6, $k, $v :"},
    {"the same, whose dim of 1 something else reads",
     FEWER COPIES SHARED "  %n = mean %ones : f32[]\n  output n = %n\n" END,
     "attention %q6, %reshape.0, $v :"},
    {"heads of which only the keys are copies",
     FEWER COPIES
     "  $w = param : f32[2,6,7,4]\n"
     "  %a = matmul %q6, %k6 {tb=true} : f32[2,6,5,7]\n"
     "  %p = softmax %a {axis=3} : f32[2,6,5,7]\n  %o = matmul %p, $w : f32[2,6,5,4]\n" END,
     "attention %q6, %k6, $w :"},
    {"copies that something else reads",
     FEWER COPIES SHARED "  %n = mean %v6 : f32[]\n  output n = %n\n" END,
     "attention %q6, %k6, %v6 :"},
    {"the heads one behind the other, again and again",
     FEWER "  %ks = reshape $k {shape=[2,1,3,7,8]} : f32[2,1,3,7,8]\n"
           "  %kc = broadcast %ks {shape=[2,2,3,7,8]} : f32[2,2,3,7,8]\n"
           "  %k6 = reshape %kc {shape=[2,6,7,8]} : f32[2,6,7,8]\n"
           "  %vs = reshape $v {shape=[2,1,3,7,4]} : f32[2,1,3,7,4]\n"
           "  %vc = broadcast %vs {shape=[2,2,3,7,4]} : f32[2,2,3,7,4]\n"
           "  %v6 = reshape %vc {shape=[2,6,7,4]} : f32[2,6,7,4]\n" SHARED END,
     "attention %q6, %k6, %v6 :"},
    {"another reader of the values behind their copies",
     FEWER COPIES "  %n = mean $v : f32[]\n  output n = %n\n" SHARED END,
     "attention %q6, %k6, %v6 :"},

    {"the probabilities are a result", PRODUCT SOFTMAX("%a") RESULT("%p") "  output p = %p\n" END,
     NULL},
    {"the scores are read again",
     PRODUCT SOFTMAX("%a") RESULT("%p") "  %n = mean %a : f32[]\n  output n = %n\n" END, NULL},
    {"the user keeps the probabilities",
     PRODUCT "  %p = softmax %a {axis=3} : f32[2,3,5,7]  @keep\n" RESULT("%p") END, NULL},
    {"another axis", PRODUCT "  %p = softmax %a {axis=2} : f32[2,3,5,7]\n" RESULT("%p") END, NULL},
    {"a mask of another value",
     PRODUCT "  %d = causal_mask %a {value=-100} : f32[2,3,5,7]\n" SOFTMAX("%d") RESULT("%p") END,
     NULL},
    {"a bias that is learned",
     "  $bias = param : f32[1,7]\n" PRODUCT "  %c = add %a, $bias : f32[2,3,5,7]\n" SOFTMAX("%c")
         RESULT("%p") END,
     NULL},
    {"a bias by rows",
     "  %bias = input {role=\"batch.bias\"} : f32[5,7]\n" PRODUCT
     "  %c = add %a, %bias : f32[2,3,5,7]\n" SOFTMAX("%c") RESULT("%p") END,
     NULL},
    {"a bias that has more heads than the scores",
     "  $one = param : f32[1,3,5,8]\n  $other = param : f32[1,3,7,8]\n"
     "  $values = param : f32[1,3,7,4]\n"
     "  %a = matmul $one, $other {tb=true} : f32[1,3,5,7]\n"
     "  %c = add %a, %pad : f32[2,3,5,7]\n" SOFTMAX(
         "%c") "  %o = matmul %p, $values : f32[2,3,5,4]\n" END,
     NULL},
    {"keys that are broadcast",
     "  $one = param : f32[3,7,8]\n"
     "  %a = matmul $q, $one {tb=true} : f32[2,3,5,7]\n" SOFTMAX("%a") RESULT("%p") END,
     NULL},
    {"keys that are no rows",
     "  $t = param : f32[2,3,8,7]\n"
     "  %a = matmul $q, $t : f32[2,3,5,7]\n" SOFTMAX("%a") RESULT("%p") END,
     NULL},
    {"heads too wide",
     "  $long = param : f32[5,257]\n  $keys = param : f32[7,257]\n  $values = param : f32[7,4]\n"
     "  %a = matmul $long, $keys {tb=true} : f32[5,7]\n  %p = softmax %a : f32[5,7]\n"
     "  %o = matmul %p, $values : f32[5,4]\n" END,
     NULL},
    {"values that are the keys, whose gradient has two parts",
     PRODUCT SOFTMAX("%a") "  %o = matmul %p, $k : f32[2,3,5,8]\n" END, NULL},
    {"another reader of the queries in between",
     PRODUCT SOFTMAX("%a") "  %n = mean $q : f32[]\n  output n = %n\n" RESULT("%p") END, NULL},
};

static bool takes_nothing(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    (void)g, (void)n, (void)ask, (void)use;
    return false;
}

typedef enum How { AS_USUAL, NO_ATTENTION, FOR_A_LIBRARY } How;

static const char *printed_after(Pool *pool, const Case *c, How how)
{
    const char *text = pool_printf(pool, "%s%s", head, c->text), *message;
    Graph *g = graph_read(pool, "t.ir", text, strlen(text), diag_new(pool));
    CHECK_MSG(g != NULL, "%s: the case cannot be read", c->what);
    if (!g)
        return "";
    PassContext ctx = {.graph = g, .pool = pool, .request.no_attention = how == NO_ATTENTION};
    if (how == FOR_A_LIBRARY) {
        ctx.library = takes_nothing;
        g->train.precision = "bf16";
    }
    CHECK(pass_attention(&ctx));
    CHECK_MSG(graph_verify(ctx.graph, &message), "%s: %s", c->what, message);
    StrBuf out = strbuf_new(pool);
    graph_print(ctx.graph, (PrintOptions){0}, &out);
    return out.text;
}

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    const char *after = printed_after(pool, c, AS_USUAL);
    bool found = strstr(after, "= attention") != NULL;
    CHECK_MSG(found == (c->found != NULL), "%s: %s\n%s", c->what, found ? "found" : "not found",
              after);
    CHECK_MSG(!c->found || strstr(after, c->found), "%s: not %s\n%s", c->what, c->found, after);
    CHECK_MSG(!c->found || (!strstr(after, "= softmax") && !strstr(after, "= matmul")),
              "%s: something is left\n%s", c->what, after);
    CHECK(!strstr(printed_after(pool, c, NO_ATTENTION), "= attention"));
    pool_free(pool);
}

/* A library of bf16 reads keys and values of as many heads as queries. */
static void test_library_copies(void)
{
    const Case c = {.what = "copies for a library", .text = FEWER COPIES SHARED END};
    Pool *pool = pool_new();
    CHECK(strstr(printed_after(pool, &c, AS_USUAL), "attention %q6, $k, $v"));
    CHECK(strstr(printed_after(pool, &c, FOR_A_LIBRARY), "attention %q6, %k6, %v6"));
    pool_free(pool);
}

int main(void)
{
    test_library_copies();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    return test_result();
}
