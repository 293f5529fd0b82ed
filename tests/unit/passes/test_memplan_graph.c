/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans of random steps: the load is the replay's peak, the checker accepts them and notices broken
 * ones. */
#include "check.h"
#include "passes/memplan/memplan.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/model/step_problem.h"
#include "tests/support/random_step.h"

#include <string.h>

/* The value whose bytes v uses, by following views: the checker's notion is not used here. */
static ValueId storage_of(const Graph *g, ValueId v)
{
    while (op_table[value_node(g, v)->op].op_class == OP_CLASS_VIEW)
        v = value_node(g, v)->in[0];
    return value_storage(g, v) != VALUE_NONE ? value_storage(g, v) : v;
}

static bool rejected(Pool *pool, const Graph *g, const MemPlan *plan)
{
    const char *fault;
    return !memplan_graph_check(pool, g, plan, &fault);
}

/* Puts everything that shares v's storage at `offset`; returns where it was. */
static int64_t move_storage(const Graph *g, MemPlan *plan, ValueId v, int64_t offset)
{
    int64_t was = plan->offset[v];
    ValueId storage = storage_of(g, v);
    for (size_t u = 0; u < g->values.len; u++)
        if (storage_of(g, (ValueId)u) == storage)
            plan->offset[u] = offset;
    return was;
}

/* Two inputs of one operation in one place; an output over an input where that is not allowed; a
 * workspace over an input; a view elsewhere. */
static int break_node(Pool *pool, const Graph *g, MemPlan *plan, const Node *n, NodeId id)
{
    int broken = 0;
    if (n->n_in == 2 && storage_of(g, n->in[0]) != storage_of(g, n->in[1])) {
        int64_t was = move_storage(g, plan, n->in[0], plan->offset[n->in[1]]);
        CHECK_MSG(rejected(pool, g, plan), "inputs of %s together",
                  graph_value(g, n->out[0])->name);
        move_storage(g, plan, n->in[0], was);
        broken++;
    }
    if (n->n_in > 0 && !node_may_overwrite(g, n, 0, 0) &&
        op_table[n->op].op_class != OP_CLASS_VIEW &&
        graph_value(g, n->out[0])->writes == VALUE_NONE) {
        int64_t was = move_storage(g, plan, n->out[0], plan->offset[n->in[0]]);
        CHECK_MSG(rejected(pool, g, plan), "%s over its input", graph_value(g, n->out[0])->name);
        move_storage(g, plan, n->out[0], was);
        broken++;
    }
    if (plan->workspace_offset[id] >= 0) {
        int64_t was = plan->workspace_offset[id];
        plan->workspace_offset[id] = plan->offset[n->in[0]];
        CHECK_MSG(rejected(pool, g, plan), "workspace of %s", graph_value(g, n->out[0])->name);
        plan->workspace_offset[id] = was;
        broken++;
    }
    if (op_table[n->op].op_class == OP_CLASS_VIEW) {
        plan->offset[n->out[0]] += 64;
        CHECK(rejected(pool, g, plan));
        plan->offset[n->out[0]] -= 64;
        broken++;
    }
    return broken;
}

static int break_persistent(Pool *pool, const Graph *g, MemPlan *plan)
{
    ValueId first = VALUE_NONE;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (!node_is_persistent(n))
            continue;
        if (first == VALUE_NONE) {
            first = n->out[0];
            continue;
        }
        int64_t was = move_storage(g, plan, n->out[0], plan->offset[first]);
        CHECK(rejected(pool, g, plan));
        move_storage(g, plan, n->out[0], plan->arena_bytes);
        CHECK(rejected(pool, g, plan));
        move_storage(g, plan, n->out[0], was);
        return 2;
    }
    return 0;
}

static int check_step(uint64_t seed)
{
    Pool *pool = pool_new();
    Graph *g = random_step(pool, seed, 5 + (int)(seed % 40));
    MemPlan *plan = memplan_graph(pool, g, MEMPLAN_FINAL, NULL);
    const char *fault = "";
    CHECK_MSG(memplan_graph_check(pool, g, plan, &fault), "seed %llu: %s", (unsigned long long)seed,
              fault);
    RematMapping map;
    RematProblem *p = remat_problem_from_graph(pool, g, NULL, &map);
    RematSchedule base = remat_base_schedule(pool, p);
    RematFigures f = remat_check(pool, p, &base);
    CHECK_MSG(f.peak_bytes == plan->lower_bound_bytes && plan->peak_bytes == f.peak_bytes,
              "seed %llu: replay %lld, plan %lld", (unsigned long long)seed,
              (long long)f.peak_bytes, (long long)plan->lower_bound_bytes);
    CHECK(map.node_of[f.peak_at] == plan->peak_node);
    CHECK(plan->arena_bytes >= plan->lower_bound_bytes);
    int broken = break_persistent(pool, g, plan);
    for (size_t k = 0; k < g->order.len; k++) {
        Pool *scratch = pool_new_child(pool);
        NodeId id = g->order.data[k];
        broken += break_node(scratch, g, plan, graph_node(g, id), id);
        pool_free(scratch);
    }
    plan->arena_bytes -= MEMPLAN_ALIGN;
    CHECK(rejected(pool, g, plan));
    pool_free(pool);
    return broken + 1;
}

/* The same plan without a cache, with one, and on any number of threads; and from the cache. */
static int check_threads(uint64_t seed, int nodes, MemEffort effort)
{
    Pool *pool = pool_new();
    Graph *g = random_step(pool, seed, nodes);
    const MemPlan *plan = memplan_graph(pool, g, effort, NULL);
    for (int threads = 1; threads <= 3; threads++) {
        PlacementCache *cache = placement_cache_new(pool, threads);
        for (int time = 0; time < 2; time++) {
            const MemPlan *other = memplan_graph(pool, g, effort, cache);
            CHECK_MSG(
                other->arena_bytes == plan->arena_bytes && other->n_in_place == plan->n_in_place &&
                    memcmp(other->offset, plan->offset, g->values.len * sizeof *plan->offset) == 0,
                "seed %llu, %d threads", (unsigned long long)seed, threads);
        }
    }
    bool missed = plan->arena_bytes > plan->lower_bound_bytes;
    pool_free(pool);
    return missed;
}

/* An output is there when the step has ended: the last operation does not write over it. */
static void test_outputs_stay(void)
{
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "outputs");
    const Loc nowhere = {0};
    const int64_t dims[1] = {64};
    const Type t = type_make(DTYPE_F32, 1, dims);
    ValueId x = graph_add_source(g, OP_input, t, NULL, "%x", nowhere);
    ValueId first = graph_add(g, OP_neg, &x, 1, NULL, "%first", nowhere);
    ValueId second = graph_add(g, OP_neg, &first, 1, NULL, "%second", nowhere);
    graph_add_output(g, "first", first);
    graph_add_output(g, "second", second);
    MemPlan *plan = memplan_graph(pool, g, MEMPLAN_FINAL, NULL);
    CHECK(plan->offset[first] != plan->offset[second]);
    const char *fault = "";
    CHECK_MSG(memplan_graph_check(pool, g, plan, &fault), "%s", fault);
    pool_free(pool);
}

int main(void)
{
    test_outputs_stay();
    int broken = 0, missed = 0;
    for (uint64_t seed = 1; seed <= 12; seed++)
        missed += check_threads(seed, 150, MEMPLAN_TRIAL) + check_threads(seed, 40, MEMPLAN_FINAL);
    printf("%d of 24 plans miss their bound\n", missed);
    CHECK(missed > 0);
    printf("seeds 300 to 340\n");
    for (uint64_t seed = 300; seed <= 340; seed++)
        broken += check_step(seed);
    printf("%d broken plans rejected\n", broken);
    CHECK(broken > 500);
    return test_result();
}
