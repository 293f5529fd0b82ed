/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replaces tensors that are read late in the step only by gradients of ReLU (by one bit an element)
 * or of max pooling (by one byte a window), where that lowers the planned peak
 * (docs/memory-plan.md).
 *
 * Works on the step in which everything is kept.  Later passes see masks as ordinary operations: a
 * solver has less to recompute, or recomputes a tensor to make its mask.  Replays, which cost a
 * thousandth of a plan, find which masks lower the load; these are kept when the arena of a trial
 * plan is below the load without masks, for then no plan without them is smaller.  The choice does
 * not see the budget. */
#include "passes/mask_rewrite.h"
#include "passes/pass.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/model/step_problem.h"
#include "passes/too_large.h"

#include <stdlib.h>

enum { MAX_ROUNDS = 32 };

typedef struct Load {
    int64_t peak_bytes;
    size_t at; /* place in the order */
} Load;

typedef struct Choice {
    Pool *scratch;
    const Graph *g;
    MaskTensors all;
    MaskTensors picked; /* some of all */
    bool *is_picked;    /* by value */
    Load whole;         /* without masks */
} Choice;

static Load load_of(Pool *pool, const Graph *g)
{
    Pool *scratch = pool_new_child(pool);
    RematMapping map;
    RematProblem *p = remat_problem_from_graph(scratch, g, NULL, &map);
    RematSchedule base = remat_base_schedule(scratch, p);
    RematFigures f = remat_check(scratch, p, &base);
    Load load = {.peak_bytes = f.peak_bytes};
    while (p->n_nodes > 0 && g->order.data[load.at] != map.node_of[f.peak_at])
        load.at++;
    pool_free(scratch);
    return load;
}

static Graph *with_masks(Pool *pool, const Graph *g, const MaskTensors *tensors, size_t n)
{
    Graph *copy = graph_copy(pool, g);
    MaskTensors some = *tensors;
    some.len = n;
    mask_apply(copy, &some);
    return copy;
}

static int64_t peak_with(const Choice *c, size_t n)
{
    Pool *scratch = pool_new_child(c->scratch);
    int64_t peak = load_of(scratch, with_masks(scratch, c->g, &c->picked, n)).peak_bytes;
    pool_free(scratch);
    return peak;
}

static const MaskTensor *tensor_of(const MaskTensors *all, ValueId v)
{
    for (size_t i = 0; i < all->len; i++)
        if (all->data[i].value == v)
            return &all->data[i];
    return NULL;
}

/* Picks what is alive at the peak of the graph with the masks so far and need not be; whether there
 * was anything. */
static bool pick_at_peak(Choice *c, const Graph *masked, size_t at)
{
    Pool *scratch = pool_new_child(c->scratch);
    MaskTensors found = mask_find(scratch, masked);
    size_t before = c->picked.len;
    for (size_t i = 0; i < found.len; i++) {
        const MaskTensor *t = &found.data[i];
        const MaskTensor *own = tensor_of(&c->all, t->value);
        if (!own || c->is_picked[t->value] || at < t->from || at > t->last)
            continue;
        c->is_picked[t->value] = true;
        vec_push(c->scratch, &c->picked, *own);
    }
    pool_free(scratch);
    return c->picked.len > before;
}

/* Until the peak lies where no mask helps; leaves the picks of the smallest peak, and returns it.
 */
static int64_t pick(Choice *c)
{
    Load best = c->whole;
    size_t n_best = 0;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        Pool *scratch = pool_new_child(c->scratch);
        Graph *masked = with_masks(scratch, c->g, &c->picked, c->picked.len);
        Load load = load_of(scratch, masked);
        if (load.peak_bytes < best.peak_bytes) {
            best = load;
            n_best = c->picked.len;
        }
        bool more = pick_at_peak(c, masked, load.at);
        pool_free(scratch);
        if (!more)
            break;
    }
    c->picked.len = n_best;
    return best.peak_bytes;
}

static int larger_first(const void *a, const void *b)
{
    const MaskTensor *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : (x->value > y->value) - (x->value < y->value);
}

/* Every mask takes time: the fewest of the largest with which the peak is the same. */
static size_t fewest(Choice *c, int64_t peak)
{
    size_t low = 0, high = c->picked.len;
    qsort(c->picked.data, c->picked.len, sizeof *c->picked.data, larger_first);
    while (high - low > 1) {
        size_t n = low + (high - low) / 2;
        if (peak_with(c, n) <= peak)
            high = n;
        else
            low = n;
    }
    return high;
}

static bool is_lower(const Choice *c, size_t n)
{
    Pool *scratch = pool_new_child(c->scratch);
    const Graph *masked = with_masks(scratch, c->g, &c->picked, n);
    bool lower =
        memplan_graph(scratch, masked, MEMPLAN_TRIAL, NULL)->arena_bytes < c->whole.peak_bytes;
    pool_free(scratch);
    return lower;
}

/* How many of the picks are kept. */
static size_t choose(Choice *c)
{
    int64_t peak = pick(c);
    if (c->picked.len == 0)
        return 0;
    size_t n = fewest(c, peak);
    if (is_lower(c, n))
        return n;
    return n < c->picked.len && is_lower(c, c->picked.len) ? c->picked.len : 0;
}

bool pass_masks(PassContext *ctx)
{
    if (ctx->request.masks == MASKS_NEVER)
        return true;
    if (!memplan_is_countable(ctx->graph))
        return memplan_too_large(ctx);
    Choice c = {.scratch = pool_new_child(ctx->pool), .g = ctx->graph};
    c.all = mask_find(c.scratch, ctx->graph);
    if (c.all.len > 0) {
        c.is_picked = POOL_ARRAY(c.scratch, ctx->graph->values.len + 1, bool);
        c.whole = load_of(c.scratch, ctx->graph);
        c.picked.len = choose(&c);
    }
    if (c.picked.len > 0) {
        if (ctx->request.masks == MASKS_BY_BUDGET)
            ctx->without_masks = graph_copy(ctx->graph->pool, ctx->graph);
        mask_apply(ctx->graph, &c.picked);
        ctx->masks.tensors = (int)c.picked.len;
        ctx->masks.whole_peak_bytes = c.whole.peak_bytes;
    }
    pool_free(c.scratch);
    return true;
}
