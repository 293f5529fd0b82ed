/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checksums of gradients stand behind the plan and leave it as it is. */
#include "check.h"

#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <string.h>

static const char text[] = "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\nforward @t {\n"
                           "  train {optim=sgd, lr=constant, momentum=0.9, accumulate=1}\n"
                           "  %x = input {role=\"batch.x\"} : f32[4,3]\n"
                           "  %l = input {role=\"batch.y\"} : i32[4]\n"
                           "  $fc.weight = param : f32[2,3]\n"
                           "  $fc.bias = param : f32[2]\n"
                           "  %fc = linear %x, $fc.weight, $fc.bias : f32[4,2]  loc 7:9\n"
                           "  %loss = cross_entropy %fc, %l : f32[]  loc 9:3\n"
                           "  output loss = %loss\n}\n";

static PassContext planned(Pool *pool, bool checksums)
{
    PassContext ctx = {.graph = graph_read(pool, "t.ir", text, strlen(text), diag_new(pool)),
                       .pool = pool,
                       .checksums = checksums};
    CHECK(passes_run(&ctx, pipeline_train, NULL, NULL));
    return ctx;
}

static int place(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->order.len; i++)
        if (g->order.data[i] == graph_value(g, graph_find(g, name))->def)
            return (int)i;
    return -1;
}

static void test_behind_the_plan(void)
{
    Pool *pool = pool_new();
    const char *message;
    PassContext a = planned(pool, false), b = planned(pool, true);
    const Graph *g = a.graph, *h = b.graph;
    CHECK(graph_verify(h, &message));
    CHECK(a.plan->appended_bytes == 0 && b.plan->appended_bytes > 0);
    CHECK(b.plan->arena_bytes == a.plan->arena_bytes + b.plan->appended_bytes);
    for (size_t v = 0; v < g->values.len; v++)
        CHECK(a.plan->offset[v] == b.plan->offset[graph_find(h, g->values.data[v].name)]);
    static const char *const names[] = {"fc.weight", "fc.bias"};
    for (size_t k = 0; k < 2; k++) {
        ValueId sum = graph_output(h, pool_printf(pool, "checksum:$d.%s", names[k]));
        CHECK(sum != VALUE_NONE && b.plan->offset[sum] >= a.plan->arena_bytes);
        const char *name = graph_value(h, sum)->name;
        CHECK(place(h, name) == place(h, pool_printf(pool, "$d.%s", names[k])) + 1);
    }
    pool_free(pool);
}

int main(void)
{
    test_behind_the_plan();
    return test_result();
}
