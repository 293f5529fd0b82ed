/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as IR text: what the reader accepts goes through every pass, in the orders that train
 * and infer use and in one that the text chooses.  passes_run verifies after each pass and ends the
 * program on a fault; a pass may refuse a graph with a message, and what it leaves has to print to
 * a text that reads back. */
#include "fuzz_target.h"

#include "ir/print.h"
#include "ir/support/bug.h"
#include "passes/pass.h"

#include <string.h>

enum { MOST_NODES = 160, MOST_SEARCHED = 16, MOST_DRAWN = 6 };

static Graph *read_text(Pool *pool, const char *name, const uint8_t *data, size_t size)
{
    return graph_read(pool, name, (const char *)data, size, diag_new(pool));
}

static void check_reads_back(Pool *pool, const Graph *g)
{
    StrBuf text = strbuf_new(pool);
    graph_print(g, (PrintOptions){0}, &text);
    if (!read_text(pool, "again", (const uint8_t *)text.text, text.len))
        BUG("does not read back:\n%s", text.text);
}

static void run_pipeline(const uint8_t *data, size_t size, const char *pipeline, const char *budget)
{
    Pool *pool = pool_new();
    PassContext ctx = {.pool = pool, .graph = read_text(pool, "fuzz", data, size)};
    PlanSettings section = remat_section(&ctx.graph->train),
                 own = {.budget = budget, .n_threads = 1},
                 settings = plan_settings_merge(&own, &section);
    bool ok = plan_request_read(pool, &settings, &ctx.request, &ctx.error);
    if (!(ok && passes_run(&ctx, pipeline, NULL, NULL)) && (!ctx.error.code || !ctx.error.message))
        BUG("refused without a message");
    check_reads_back(pool, ctx.graph);
    pool_free(pool);
}

/* Passes of the table in any order, each as often as it is drawn. */
static const char *drawn_pipeline(Pool *pool, const uint8_t *data, size_t size)
{
    uint64_t hash = 1;
    const char *pipeline = "";
    int n_passes = 0;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 0x100000001b3u;
    while (pass_table[n_passes].name)
        n_passes++;
    for (int k = 0; k < MOST_DRAWN; k++, hash = hash / (uint64_t)n_passes)
        pipeline = pool_printf(pool, "%s%s%s", pipeline, k ? "," : "",
                               pass_table[hash % (uint64_t)n_passes].name);
    return pipeline;
}

static void run_all(Pool *pool, const Graph *g, const uint8_t *data, size_t size)
{
    bool forward = strcmp(g->kind, "forward") == 0;
    const char *step =
        "fold,cse,dce,heads,fuse,order,masks,remat,transposes,sums,slopes,views,plan";
    const char *train = forward ? pipeline_train : step;
    run_pipeline(data, size, pipeline_infer, NULL);
    run_pipeline(data, size, train, "");
    run_pipeline(data, size, drawn_pipeline(pool, data, size), "");
    if (g->order.len <= MOST_SEARCHED)
        run_pipeline(data, size, train, "min");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Pool *pool = pool_new();
    const Graph *g = read_text(pool, "fuzz", data, size);
    if (g && g->order.len <= MOST_NODES)
        run_all(pool, g, data, size);
    pool_free(pool);
    return 0;
}
