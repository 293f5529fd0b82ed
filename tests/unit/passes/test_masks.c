/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which tensors can have masks, and how they are rewritten.  Which are kept, and that no bit
 * changes: tests/property/test_masks_kept.c, test_masks.c. */
#include "check.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/mask_rewrite.h"
#include "tests/support/graph_text.h"

#include <string.h>

/* --- what can have a mask --- */

/* The names of the tensors found, each with its place and its readers: "%y@2:1 ". */
static const char *found_in(Pool *pool, const char *body)
{
    StrBuf text = strbuf_new(pool);
    const Graph *g = graph_of(pool, "step", body);
    MaskTensors found = mask_find(pool, g);
    strbuf_put(&text, "");
    for (size_t i = 0; i < found.len; i++)
        strbuf_printf(&text, "%s@%zu:%zu ", graph_value(g, found.data[i].value)->name,
                      found.data[i].made, found.data[i].readers.len);
    return text.text ? text.text : "";
}

static void expect_found(const char *body, const char *expected)
{
    Pool *pool = pool_new();
    const char *found = found_in(pool, body);
    CHECK_MSG(strcmp(found, expected) == 0, "found '%s', not '%s' in\n%s", found, expected, body);
    pool_free(pool);
}

#define X  "  %x = input : f32[64]\n  %dy = input : f32[64]\n" /* places 0 and 1 */
#define Y  X "  %y = relu %x : f32[64]\n  %z = exp %y : f32[64]\n"
#define I4 "  %x = input : f32[1,1,40,40]\n  %y = relu %x : f32[1,1,40,40]\n"

static void test_readers(void)
{
    /* Before the last node that needs the elements; after the tensor when none does. */
    expect_found(Y "  %d = relu_grad %dy, %y : f32[64]\n", "%y@3:1 ");
    expect_found(X "  %y = relu %x : f32[64]\n  %d = relu_grad %dy, %y : f32[64]\n", "%y@3:1 ");
    /* A gradient that comes before a node that needs the elements reads them, too. */
    expect_found(Y "  %d = relu_grad %dy, %y : f32[64]\n  %e = exp %y : f32[64]\n", "");
    expect_found(Y "  %d = relu_grad %dy, %y : f32[64]\n  %e = exp %y : f32[64]\n"
                   "  %f = relu_grad %dy, %y : f32[64]\n",
                 "%y@5:1 ");
    /* The gradient itself, a tensor that is not made here, one that is broadcast. */
    expect_found(X "  %y = relu %x : f32[64]\n  %d = relu_grad %y, %y : f32[64]\n", "");
    expect_found(X "  %d = relu_grad %dy, %x : f32[64]\n", "");
    expect_found("  %x = input : f32[64]\n  %dy = input : f32[2,64]\n  %y = relu %x : f32[64]\n"
                 "  %d = relu_grad %dy, %y : f32[2,64]\n",
                 "");
    /* A view's reader reads all. */
    expect_found(Y "  %v = reshape %y {shape=[8,8]} : f32[8,8]\n"
                   "  %d = relu_grad %dy, %y : f32[64]\n  %e = exp %v : f32[8,8]\n",
                 "");
    /* Masks that are no smaller. */
    expect_found("  %x = input : f32[1]\n  %dy = input : f32[1]\n  %y = relu %x : f32[1]\n"
                 "  %d = relu_grad %dy, %y : f32[1]\n",
                 "");
}

static void test_results(void)
{
    Pool *pool = pool_new();
    Graph *g = graph_of(pool, "step", Y "  %d = relu_grad %dy, %y : f32[64]\n");
    graph_add_output(g, "y", graph_find(g, "%y"));
    CHECK(mask_find(pool, g).len == 0);
    pool_free(pool);
}

static void test_pooling(void)
{
    expect_found(I4 "  %p = maxpool %y {kernel=[2,2]} : f32[1,1,20,20]\n"
                    "  %d = maxpool_grad %p, %y {kernel=[2,2]} : f32[1,1,40,40]\n"
                    "  %e = relu_grad %d, %y : f32[1,1,40,40]\n",
                 "%y@2:2 ");
    /* 256 elements have numbers that fit a byte, 289 do not. */
    expect_found(I4 "  %p = maxpool %y {kernel=[16,16]} : f32[1,1,2,2]\n"
                    "  %d = maxpool_grad %p, %y {kernel=[16,16]} : f32[1,1,40,40]\n",
                 "%y@2:1 ");
    expect_found(I4 "  %p = maxpool %y {kernel=[17,17]} : f32[1,1,2,2]\n"
                    "  %d = maxpool_grad %p, %y {kernel=[17,17]} : f32[1,1,40,40]\n",
                 "");
}

#define BODY(text)                                                                                 \
    "  %r = fused %dy, %y {\n    %a = input : f32[64]\n    %b = input : f32[64]\n" text            \
    "    output out = %o\n  } : f32[64]\n"

static void test_fused(void)
{
    expect_found(Y BODY("    %g = relu_grad %a, %b : f32[64]\n    %o = exp %g : f32[64]\n"),
                 "%y@3:1 ");
    expect_found(Y BODY("    %g = relu_grad %a, %b : f32[64]\n    %o = mul %g, %b : f32[64]\n"),
                 "");
    expect_found(Y BODY("    %g = relu_grad %a, %b {alpha=0.1} : f32[64]\n"
                        "    %o = exp %g : f32[64]\n"),
                 "%y@3:1 ");
    expect_found(Y BODY("    %g = relu_grad %b, %a : f32[64]\n    %o = exp %g : f32[64]\n"), "");
}

static void test_rewriting(void)
{
    Pool *pool = pool_new();
    const char *fault;
    Graph *g = graph_of(pool, "step",
                        Y BODY("    %g = relu_grad %a, %b {alpha=0.1} : f32[64]\n"
                               "    %o = exp %g : f32[64]\n"));
    MaskTensors found = mask_find(pool, g);
    mask_apply(g, &found);
    CHECK_MSG(graph_verify(g, &fault), "%s", fault);
    StrBuf text = strbuf_new(pool);
    graph_print(g, (PrintOptions){.no_loc = true}, &text);
    CHECK_MSG(strstr(text.text, "%y.mask = relu_mask %y : i32[2]"), "%s", text.text);
    CHECK_MSG(strstr(text.text, "relu_mask_grad %a, %b {alpha=0.1} : f32[64]"), "%s", text.text);
    CHECK(mask_find(pool, g).len == 0);
    pool_free(pool);
}

int main(void)
{
    test_readers();
    test_results();
    test_pooling();
    test_fused();
    test_rewriting();
    return test_result();
}
