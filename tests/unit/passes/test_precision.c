/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pass `precision`: what becomes bf16, what stays f32, and where casts stand. */
#include "check.h"

#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <string.h>

static const char head[] =
    "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
    "  train {optim=sgd, lr=constant, base=0.1, steps=1, accumulate=1, precision=\"%s\", "
    "data=\"d\", path=\"\", batch=4}\n"
    "  %%x = input {role=\"batch.x\"} : f32[4,8]\n"
    "  %%ids = input {role=\"batch.ids\"} : i32[4]\n"
    "  %%label = input {role=\"batch.label\"} : i32[4]\n"
    "  $w = param : f32[8,8]\n"
    "  $b = param : f32[8]\n"
    "  $table = param : f32[9,8]\n"
    "  $image = param : f32[2,3,5,5]\n"
    "  $kernel = param : f32[4,3,3,3]\n";

#define MADE    "  %a = linear %x, $w : f32[4,8]\n"
#define TANH    "  %t = tanh %x : f32[4,8]\n"
#define END(of) "  output y = " of "\n}\n"

typedef struct Case {
    const char *what, *text;
    const char *want[6]; /* lines that are there */
    const char *none;    /* what is nowhere, or NULL */
    const char *no_code; /* an operation without code for bf16, or NULL */
} Case;

static const Case cases[] = {
    /* what makes bf16 */
    {"a product of what is given reads it as it is",
     MADE END("%a"),
     {"%a = linear %x, $w {dtype=\"bf16\"} : bf16[4,8]\n", "output y = %a.f32\n"},
     "cast %x",
     NULL},
    {"a product of bf16 need not say what it makes",
     MADE "  %c = linear %a, $w, $b : f32[4,8]\n" END("%c"),
     {"%c = linear %a, $w, $b : bf16[4,8]\n"},
     "cast $",
     NULL},
    {"a product of matrices that are given",
     "  %m = matmul %x, $w : f32[4,8]\n" END("%m"),
     {"%m = matmul %x, $w {dtype=\"bf16\"} : bf16[4,8]\n"},
     "cast %x",
     NULL},
    {"a convolution",
     "  %i = conv2d $image, $kernel : f32[2,4,3,3]\n" END("%i"),
     {"%i = conv2d $image, $kernel {dtype=\"bf16\"} : bf16[2,4,3,3]\n"},
     "cast $",
     NULL},
    {"a lookup",
     "  %e = embedding %ids, $table : f32[4,8]\n" END("%e"),
     {"%e = embedding %ids, $table {dtype=\"bf16\"} : bf16[4,8]\n"},
     "cast $",
     NULL},
    {"a product whose type the model says",
     "  %c = linear %x, $w {dtype=\"f32\"} : f32[4,8]\n  %s = neg %c : f32[4,8]\n" END("%s"),
     {"%c = linear %x, $w {dtype=\"f32\"} : f32[4,8]\n", "%s = neg %c : f32[4,8]\n",
      "output y = %s\n"},
     "bf16[",
     NULL},

    /* what follows from it */
    {"whatever is computed of bf16, also beside f32",
     MADE "  %s = add %a, %x : f32[4,8]\n  %r = relu %s : f32[4,8]\n"
          "  %v = mul %r, $b : f32[4,8]\n" END("%v"),
     {"%s = add %a, %x : bf16[4,8]\n", "%r = relu %s : bf16[4,8]\n",
      "%v = mul %r, $b : bf16[4,8]\n"},
     "cast %x",
     NULL},
    {"sums and losses are f32",
     MADE "  %s = sum %a {axes=[1]} : f32[4]\n  %l = cross_entropy %a, %label : f32[]\n" END("%l"),
     {"%s = sum %a {axes=[1]} : f32[4]\n", "%l = cross_entropy %a, %label : f32[]\n",
      "output y = %l\n"},
     "dtype=\"f32\"",
     NULL},
    {"statistics of a norm are f32",
     MADE "  %n, %n#1, %n#2 = layernorm %a, $b : f32[4,8], f32[4], f32[4]\n" END("%n"),
     {"= layernorm %a, $b : bf16[4,8], f32[4], f32[4]\n"},
     "cast $",
     NULL},
    {"attention reads and writes it without casts",
     "  %q = linear %x, $w : f32[4,8]\n  %k = linear %x, $w : f32[4,8]\n"
     "  %o, %o#1, %o#2 = attention %q, %k, %x : f32[4,8], f32[4], f32[4]\n" END("%o"),
     {"attention %q, %k, %x : bf16[4,8], f32[4], f32[4]\n"},
     "cast %q",
     NULL},

    /* what is computed of data and parameters alone */
    {"nothing of data and parameters",
     TANH "  %s = mul %t, $b : f32[4,8]\n  %z = sum %s : f32[]\n" MADE END("%z"),
     {"%t = tanh %x : f32[4,8]\n", "%s = mul %t, $b : f32[4,8]\n"},
     "cast",
     NULL},
    {"but a product's factor, which is kept for the gradient",
     TANH "  %c = linear %t, $w : f32[4,8]\n" END("%c"),
     {"%t = tanh %x : f32[4,8]\n", "%t.bf16 = cast %t {dtype=\"bf16\"} : bf16[4,8]\n",
      "%c = linear %t.bf16, $w : bf16[4,8]\n"},
     "cast %x",
     NULL},
    {"cast where it is made, not where it is viewed",
     TANH "  %r = reshape %t {shape=[2,2,8]} : f32[2,2,8]\n"
          "  %c = linear %r, $w : f32[2,2,8]\n" END("%c"),
     {"%t.bf16 = cast %t {dtype=\"bf16\"} : bf16[4,8]\n",
      "= reshape %t.bf16 {shape=[2,2,8]} : bf16", ", $w : bf16[2,2,8]\n"},
     "cast %r",
     NULL},
    {"a view of what is given",
     "  %r = reshape %x {shape=[2,2,8]} : f32[2,2,8]\n  %c = linear %r, $w : f32[2,2,8]\n" END(
         "%c"),
     {"%c = linear %r, $w {dtype=\"bf16\"} : bf16[2,2,8]\n"},
     "cast %x",
     NULL},
    {"a bias is f32",
     "  %s = tanh $b : f32[8]\n  %c = linear %x, $w, %s : f32[4,8]\n" END("%c"),
     {"%c = linear %x, $w, %s {dtype=\"bf16\"} : bf16[4,8]\n"},
     "cast %s",
     NULL},
    {"parts of one type",
     MADE TANH "  %c = concat %a, %t {axis=1} : f32[4,16]\n" END("%c"),
     {"%t.bf16 = cast %t {dtype=\"bf16\"} : bf16[4,8]\n",
      "%c = concat %a, %t.bf16 {axis=1} : bf16[4,16]\n"},
     "cast %a",
     NULL},

    /* without code */
    {"operands are cast up, what is as large is cast down",
     MADE "  %e = exp %a : f32[4,8]\n  %r = relu %e : f32[4,8]\n" END("%r"),
     {"%a.f32 = cast %a {dtype=\"f32\"} : f32[4,8]\n", "%e = exp %a.f32 : f32[4,8]\n",
      "%e.bf16 = cast %e {dtype=\"bf16\"} : bf16[4,8]\n", "%r = relu %e.bf16 : bf16[4,8]\n"},
     NULL,
     "exp"},
    {"what is smaller stays f32",
     MADE "  %e = reduce_max %a {axes=[1]} : f32[4]\n  %r = relu %e : f32[4]\n" END("%r"),
     {"%e = reduce_max %a.f32 {axes=[1]} : f32[4]\n", "%r = relu %e : f32[4]\n", "output y = %r\n"},
     "cast %e",
     "reduce_max"},
    {"a product",
     TANH "  %c = matmul %t, %t {ta=true} : f32[8,8]\n  %r = relu %c : f32[8,8]\n" END("%r"),
     {"%c = matmul %t, %t {ta=true} : f32[8,8]\n",
      "%c.bf16 = cast %c {dtype=\"bf16\"} : bf16[8,8]\n", "%r = relu %c.bf16 : bf16[8,8]\n"},
     "cast %t",
     "matmul"},
    {"parts of one type, all cast up",
     MADE TANH "  %c = concat %a, %t {axis=1} : f32[4,16]\n" END("%c"),
     {"%c = concat %a.f32, %t {axis=1} : f32[4,16]\n",
      "%c.bf16 = cast %c {dtype=\"bf16\"} : bf16[4,16]\n"},
     "cast %t",
     "concat"},
};

static const char *no_code;

static bool supports(const Graph *g, const Node *n, ShapeError *err)
{
    (void)err;
    if (!no_code || strcmp(op_name(n->op), no_code) != 0)
        return true;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        ValueId v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (value_type(g, v)->dtype == DTYPE_BF16)
            return false;
    }
    return true;
}

static Graph *graph_of(Pool *pool, const char *what, const char *body, const char *precision)
{
    const char *begin = pool_printf(pool, head, precision);
    const char *text = pool_printf(pool, "%s%s", begin, body);
    Diag *diag = diag_new(pool);
    Graph *g = graph_read(pool, "t.ir", text, strlen(text), diag);
    if (!g)
        diag_print(diag, stderr, false);
    CHECK_MSG(g != NULL, "%s: the case cannot be read", what);
    return g;
}

static const char *printed(Pool *pool, const Graph *g)
{
    StrBuf out = strbuf_new(pool);
    graph_print(g, (PrintOptions){.no_loc = true}, &out);
    return out.text;
}

static const char *printed_after(Pool *pool, const Case *c, const char *precision)
{
    const char *message = "";
    Graph *g = graph_of(pool, c->what, c->text, precision);
    if (!g)
        return "";
    PassContext ctx = {.graph = g, .pool = pool, .supports = supports};
    no_code = c->no_code;
    CHECK_MSG(pass_precision(&ctx), "%s: %s", c->what, ctx.error.message);
    CHECK_MSG(graph_verify(ctx.graph, &message), "%s: %s", c->what, message);
    return printed(pool, ctx.graph);
}

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    const char *after = printed_after(pool, c, "bf16");
    for (int i = 0; c->want[i]; i++)
        CHECK_MSG(strstr(after, c->want[i]), "%s: no %s\n%s", c->what, c->want[i], after);
    CHECK_MSG(!c->none || !strstr(after, c->none), "%s: %s\n%s", c->what, c->none, after);
    CHECK(strcmp(printed_after(pool, c, "f32"),
                 printed(pool, graph_of(pool, c->what, c->text, "f32"))) == 0);
    pool_free(pool);
}

static void check_refused(void)
{
    Pool *pool = pool_new();
    PassContext ctx = {.graph = graph_of(pool, "f64", MADE END("%a"), "f64"), .pool = pool};
    CHECK(!pass_precision(&ctx));
    CHECK_MSG(strcmp(ctx.error.code, "E616") == 0, "%s", ctx.error.code);
    CHECK_MSG(strstr(ctx.error.message, "there is no precision 'f64'"), "%s", ctx.error.message);
    CHECK_MSG(strstr(ctx.error.help, "bf16"), "%s", ctx.error.help);
    pool_free(pool);
}

/* What casts stand for is as dear as what reads them: the user's word is for both. */
static void check_hints(void)
{
    static const Case hinted = {
        .what = "a hint", .text = TANH "  %c = linear %t, $w : f32[4,8]  @recompute\n" END("%c")};
    Pool *pool = pool_new();
    const char *after = printed_after(pool, &hinted, "bf16");
    CHECK_MSG(strstr(after, "%t.bf16 = cast %t {dtype=\"bf16\"} : bf16[4,8] @recompute\n"), "%s",
              after);
    pool_free(pool);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    check_hints();
    check_refused();
    return test_result();
}
