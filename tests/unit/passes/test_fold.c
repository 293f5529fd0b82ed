/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pass `fold`: how products read matrices that are transposed. */
#include "check.h"

#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <string.h>

static const char head[] = "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
                           "  $x = param : f32[2,6,5,8]\n"
                           "  $rows = param : f32[2,5,6,8]\n"
                           "  $flat = param : f32[2,1,7,8]\n"
                           "  $w = param : f32[7,8]\n";

typedef struct Case {
    const char *what, *text;
    const char *product; /* as it is printed */
    const char *other;   /* what else is printed; NULL: nothing is transposed or reshaped */
} Case;

static const Case cases[] = {
    {"a matrix that is transposed is read as it lies",
     "  %t = transpose $w {perm=[1,0]} : f32[8,7]\n  %o = matmul $x, %t : f32[2,6,5,7]\n",
     "matmul $x, $w {tb=true} :", NULL},
    {"twice is not at all",
     "  %t = transpose $x {perm=[0,1,3,2]} : f32[2,6,8,5]\n"
     "  %o = matmul %t, $w {ta=true, tb=true} : f32[2,6,5,7]\n",
     "matmul $x, $w {tb=true} :", NULL},
    {"keys by heads, then by columns: whole rows move",
     "  %h = transpose $rows {perm=[0,2,1,3]} : f32[2,6,5,8]\n"
     "  %t = transpose %h {perm=[0,1,3,2]} : f32[2,6,8,5]\n"
     "  %o = matmul $x, %t : f32[2,6,5,5]\n",
     "matmul $x, %transpose.1 {tb=true} :", "%transpose.1 = transpose $rows {perm=[0,2,1,3]} :"},
    {"the same of the left operand",
     "  %t = transpose $rows {perm=[0,2,3,1]} : f32[2,6,8,5]\n"
     "  %o = matmul %t, $x {ta=true, tb=true} : f32[2,6,5,5]\n",
     "matmul %transpose.0, $x {tb=true} :", "%transpose.0 = transpose $rows {perm=[0,2,1,3]} :"},
    {"what is left moves an axis of size 1",
     "  %t = transpose $flat {perm=[1,0,3,2]} : f32[1,2,8,7]\n"
     "  %o = matmul %t, $w {ta=true, tb=true} : f32[1,2,7,7]\n",
     "matmul %reshape.0, $w {tb=true} :", "%reshape.0 = reshape $flat {shape=[1,2,7,8]} :"},
    {"rows that move already",
     "  %t = transpose $rows {perm=[0,2,1,3]} : f32[2,6,5,8]\n"
     "  %o = matmul %t, $w {tb=true} : f32[2,6,5,7]\n",
     "matmul %t, $w {tb=true} :", "%t = transpose $rows {perm=[0,2,1,3]} :"},
    {"the last axis in front of both",
     "  %t = transpose $x {perm=[0,3,1,2]} : f32[2,8,6,5]\n"
     "  %o = matmul %t, %t {tb=true} : f32[2,8,6,6]\n",
     "matmul %t, %t {tb=true} :", "%t = transpose $x {perm=[0,3,1,2]} :"},
    {"the user keeps what is transposed",
     "  %t = transpose $w {perm=[1,0]} : f32[8,7]  @keep\n  %o = matmul $x, %t : f32[2,6,5,7]\n",
     "matmul $x, %t :", "%t = transpose $w {perm=[1,0]} :"},
};

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    const char *text = pool_printf(pool, "%s%s  output o = %%o\n}\n", head, c->text), *message;
    Graph *g = graph_read(pool, "t.ir", text, strlen(text), diag_new(pool));
    CHECK_MSG(g != NULL, "%s: the case cannot be read", c->what);
    if (g) {
        PassContext ctx = {.graph = g, .pool = pool};
        CHECK(pass_fold(&ctx) && pass_dce(&ctx));
        CHECK_MSG(graph_verify(ctx.graph, &message), "%s: %s", c->what, message);
        StrBuf out = strbuf_new(pool);
        graph_print(ctx.graph, (PrintOptions){0}, &out);
        CHECK_MSG(strstr(out.text, c->product), "%s: no %s\n%s", c->what, c->product, out.text);
        CHECK_MSG(c->other ? strstr(out.text, c->other) != NULL
                           : !strstr(out.text, "= transpose") && !strstr(out.text, "= reshape"),
                  "%s: %s\n%s", c->what, c->other ? c->other : "moves something", out.text);
    }
    pool_free(pool);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    return test_result();
}
