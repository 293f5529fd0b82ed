/* Masks are kept only where the planned arena falls, and the figures of such a plan are the
 * replay's.
 */
#include "check.h"
#include "ir/eval.h"
#include "ir/support/strbuf.h"
#include "passes/pass.h"
#include "unit/frontend/lower_text.h"

static const char BEFORE[] = "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,fuse,order";

static int count_masks(const Graph *g)
{
    int n = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        OpKind op = graph_node(g, g->order.data[k])->op;
        n += op == OP_relu_mask || op == OP_maxpool_index;
    }
    return n;
}

/* Plans a model with and without; returns how many tensors have masks. */
static int check_plan(const char *text, const char *budget)
{
    Lowered r = lower_text(text, FRONTEND_TRAIN);
    PassContext whole = {.graph = r.graph, .pool = r.pool, .budget = budget, .no_masks = true};
    if (!r.graph || !passes_run(&whole, BEFORE, NULL, NULL)) {
        CHECK_MSG(false, "%s", text);
        return 0;
    }
    PassContext masked = whole;
    masked.graph = graph_copy(r.pool, whole.graph);
    masked.no_masks = false;
    bool fits = passes_run(&whole, "masks,remat,plan", NULL, NULL);
    bool masked_fits = passes_run(&masked, "masks,remat,plan", NULL, NULL);
    const RematReport *report = &masked.report;
    int tensors = masked.masks.tensors;
    CHECK_MSG(masked_fits || !fits, "%s does not fit with masks: %s\n%s", budget, masked.error,
              text);
    CHECK(count_masks(whole.graph) == 0 && (tensors > 0) == (count_masks(masked.graph) > 0));
    CHECK(report->budget_bytes == whole.report.budget_bytes || strcmp(budget, "min") == 0);
    if (masked_fits) {
        CHECK(report->peak_bytes == masked.plan->peak_bytes &&
              report->lower_bound_bytes <= report->peak_bytes &&
              report->overhead_lower_bound_percent <= report->overhead_percent + 1e-9 &&
              masked.plan->arena_bytes <= report->budget_bytes);
        CHECK(!tensors || masked.masks.keep_all_bytes == whole.report.keep_all_peak_bytes);
    }
    /* Everything kept: lower or the same.  The least a search finds has no such promise. */
    int64_t arena = masked_fits ? masked.plan->arena_bytes : 0;
    if (!*budget)
        CHECK_MSG(tensors ? arena < whole.plan->arena_bytes : arena == whole.plan->arena_bytes,
                  "%lld, without %lld\n%s", (long long)arena, (long long)whole.plan->arena_bytes,
                  text);
    if (strcmp(budget, "min") == 0)
        CHECK_MSG((double)arena <= 1.02 * (double)whole.plan->arena_bytes, "%lld, without %lld\n%s",
                  (long long)arena, (long long)whole.plan->arena_bytes, text);
    lowered_free(&r);
    return tensors;
}

#define MODEL(layers)                                                                              \
    "model m(x: f32[4, 3, 32, 32]) {\n" layers                                                     \
    "  return x |> global_avgpool() |> flatten() |> fc: linear(10)\n}\n"                           \
    "train {\n  batch = synthetic(x = f32[4, 3, 32, 32], label = i32[4])\n"                        \
    "  loss = cross_entropy(m(batch.x), batch.label)\n  optim = sgd(lr = 0.1)\n  steps = 1\n}\n"

static void test_kept(void)
{
    /* The largest tensor is read by max pooling and the two gradients. */
    CHECK(check_plan(MODEL("  x = x |> c1: conv(16, 3, pad = 1) |> relu() |> maxpool(2)\n"
                           "  x = x |> c2: conv(16, 3, pad = 1) |> relu() |> maxpool(2)\n"),
                     "") >= 1);
    /* What a convolution reads is saved for its weight gradient anyway. */
    CHECK(check_plan(MODEL("  x = x |> c1: conv(16, 3, pad = 1) |> relu()\n"
                           "  x = x |> c2: conv(16, 3, pad = 1) |> tanh()\n"),
                     "") == 0);
    /* Branches of a concatenation, which is what the next convolution reads. */
    CHECK(check_plan(MODEL("  a = x |> c1: conv(16, 3, pad = 1) |> relu()\n"
                           "  b = x |> c2: conv(16, 3, pad = 1) |> relu()\n"
                           "  x = concat([a, b], axis = 1) |> c3: conv(4, 3, pad = 1)\n"),
                     "") >= 1);
}

static uint32_t draws;

static bool coin(uint64_t seed)
{
    return rng_bits(seed, 0, 2, draws++) & 1;
}

/* Layers with and without what reads their results late. */
static const char *random_layers(Pool *pool, uint64_t seed)
{
    StrBuf b = strbuf_new(pool);
    for (int i = 0; i < 4; i++) {
        int c = 4 + (int)(rng_bits(seed, 0, 2, draws++) % 12);
        if (coin(seed))
            strbuf_printf(&b, "  x = x |> c[%d]: conv(%d, 3, pad = 1) |> relu()%s\n", i, c,
                          coin(seed) ? " |> maxpool(2)" : "");
        else
            strbuf_printf(&b,
                          "  a = x |> a[%d]: conv(%d, 1) |> relu()\n"
                          "  b = x |> b[%d]: conv(%d, 3, pad = 1)%s |> relu()\n"
                          "  x = concat([a, b], axis = 1)%s\n",
                          i, c, i, c, coin(seed) ? " |> tanh()" : "",
                          coin(seed) ? " |> maxpool(3, stride = 2, pad = 1)" : "");
    }
    return b.text;
}

static void test_random_models(void)
{
    static const char *const budgets[] = {"", "min", "75%"};
    int tensors = 0, kept = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        Pool *pool = pool_new();
        const char *text = pool_printf(pool, MODEL("%s"), random_layers(pool, seed));
        for (int b = 0; b < 3; b++) {
            int n = check_plan(text, budgets[b]);
            tensors += n;
            kept += n > 0;
        }
        pool_free(pool);
    }
    printf("seeds 1 to 12: masks in %d of 36 plans, %d tensors\n", kept, tensors);
    CHECK(kept > 12);
}

int main(void)
{
    test_kept();
    test_random_models();
    return test_result();
}
