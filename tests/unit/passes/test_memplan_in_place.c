/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which results memplan_write_in_place moves over an input when everything has a buffer of its own:
 * in layouts made by hand, and in those of random steps. */
#include "check.h"
#include "ir/strided_view.h"
#include "passes/memplan/in_place.h"
#include "tests/support/graph_text.h"
#include "tests/support/random_step.h"

#include <string.h>

enum { CELL = 64, MAX_VALUES = 6 };

typedef struct Case {
    const char *name, *lines;
    struct {
        const char *value;
        int before, after; /* in cells */
    } at[MAX_VALUES];
    int cells, joined;
} Case;

#define X "  %x = input {role=\"batch.x\"} : f32[4,4]\n"
/* %b could be written over %a, where %c comes to lie. */
#define CHAIN                                                                                      \
    X "  %a = neg %x : f32[4,4]\n  %b = neg %a : f32[4,4]\n  %c = neg %x : f32[4,4]\n"             \
      "  %d = mul %b, %c : f32[4,4]\n  output out = %d\n"

static const Case cases[] = {
    {"a free place",
     CHAIN,
     {{"%x", 0, 0}, {"%a", 1, 1}, {"%b", 2, 1}, {"%c", 3, 0}, {"%d", 4, 1}},
     5,
     3},
    {"what is in the way moves",
     X "  %a = neg %x : f32[4,4]\n  %b = neg %a : f32[4,4]\n  %c = matmul %x, %x : f32[4,4]\n"
       "  %d = mul %b, %x : f32[4,4]\n  %e = mul %d, %c : f32[4,4]\n  output out = %e\n",
     {{"%x", 0, 0}, {"%a", 1, 1}, {"%b", 2, 1}, {"%c", 1, 2}, {"%d", 3, 1}, {"%e", 4, 1}},
     5,
     3},
    {"it has nowhere to go",
     X "  %a = neg %x : f32[4,4]\n  %b = neg %a : f32[4,4]\n  %c = matmul %x, %x : f32[4,4]\n"
       "  %d = matmul %b, %x : f32[4,4]\n  %e = mul %c, %d : f32[4,4]\n  output out = %e\n",
     {{"%x", 0, 0}, {"%a", 1, 1}, {"%b", 2, 1}, {"%c", 1, 2}, {"%d", 3, 3}, {"%e", 1, 2}},
     4,
     2},
    {"an output of the step stays",
     X "  %a = neg %x : f32[4,4]\n  %b = neg %a : f32[4,4]\n  output a = %a\n  output out = %b\n",
     {{"%x", 0, 0}, {"%a", 1, 0}, {"%b", 2, 2}},
     3,
     1},
    {"two outputs, of which one is not read",
     X "  %a = neg %x : f32[4,4]\n  %p, %q = fused %a {\n    %a = input : f32[4,4]\n"
       "    %s = neg %a : f32[4,4]\n    %t = abs %a : f32[4,4]\n    output out = %s\n"
       "    output other = %t\n  } : f32[4,4], f32[4,4]\n  %b = neg %q : f32[4,4]\n"
       "  output out = %b\n",
     {{"%x", 0, 0}, {"%a", 1, 0}, {"%p", 2, 0}, {"%q", 3, 3}, {"%b", 4, 3}},
     5,
     3},
    {"an input that is read elsewhere",
     X "  %a = matmul %x, %x : f32[4,4]\n  %b = neg %a : f32[4,4]\n  %c = mul %a, %b : f32[4,4]\n"
       "  output out = %c\n",
     {{"%x", 0, 0}, {"%a", 1, 1}, {"%b", 2, 2}, {"%c", 3, 1}},
     4,
     1},
};

/* A plan in which every value and workspace has a buffer of its own, without places. */
static MemPlan *plan_apart(Pool *pool, const Graph *g)
{
    MemLives l = memplan_lives(pool, g);
    MemPlan *plan = POOL_NEW(pool, MemPlan);
    size_t values = g->values.len + 1, nodes = g->nodes.len + 1;
    plan->offset = POOL_ARRAY(pool, values, int64_t);
    plan->workspace_offset = POOL_ARRAY(pool, nodes, int64_t);
    plan->buffer = POOL_ARRAY(pool, values + nodes, PlannedBuffer);
    plan->buffer_of = POOL_ARRAY(pool, values, int);
    plan->persistent_bytes = l.persistent_bytes;
    for (size_t v = 0; v < values; v++)
        plan->offset[v] = plan->buffer_of[v] = -1;
    for (size_t n = 0; n < nodes; n++)
        plan->workspace_offset[n] = -1;
    int64_t persistent = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        NodeId id = g->order.data[k];
        const Node *n = graph_node(g, id);
        for (int o = 0; o < n->n_out; o++) {
            ValueId v = n->out[o], root = value_root(g, v), storage = value_storage(g, root);
            if (node_is_persistent(n)) {
                plan->offset[v] = persistent;
                persistent += memplan_value_bytes(g, v);
            } else if (storage != VALUE_NONE) {
                plan->offset[v] = plan->offset[storage];
            } else if (plan->buffer_of[root] < 0) {
                MemBuffer life = {l.birth[root], l.last[root] + 1, memplan_value_bytes(g, root)};
                plan->buffer_of[root] = plan->n_buffers;
                plan->buffer[plan->n_buffers++] = (PlannedBuffer){life, -1, root, NODE_NONE};
            }
            if (storage == VALUE_NONE && !node_is_persistent(n))
                plan->buffer_of[v] = plan->buffer_of[root];
        }
        int64_t workspace = node_runs(n) ? memplan_rounded(node_workspace_bytes(g, n)) : 0;
        if (workspace > 0)
            plan->buffer[plan->n_buffers++] =
                (PlannedBuffer){{l.slot_of[id], l.slot_of[id] + 1, workspace}, -1, VALUE_NONE, id};
    }
    return plan;
}

/* Values and workspaces lie where their buffers do. */
static void set_places(const Graph *g, MemPlan *plan)
{
    for (size_t v = 0; v < g->values.len; v++)
        if (plan->buffer_of[v] >= 0)
            plan->offset[v] = plan->buffer[plan->buffer_of[v]].offset;
    for (int b = 0; b < plan->n_buffers; b++)
        if (plan->buffer[b].node != NODE_NONE)
            plan->workspace_offset[plan->buffer[b].node] = plan->buffer[b].offset;
}

static void check_plan(Pool *pool, const Graph *g, const MemPlan *plan, const char *name)
{
    const char *fault = "";
    CHECK_MSG(memplan_graph_check(pool, g, plan, &fault), "%s: %s", name, fault);
    for (size_t v = 0; v < g->values.len; v++)
        if (plan->buffer_of[v] >= 0)
            CHECK_MSG(plan->buffer_of[v] < plan->n_buffers &&
                          plan->buffer[plan->buffer_of[v]].offset == plan->offset[v],
                      "%s: the list of buffers says otherwise", name);
}

static void check_case(const Case *c)
{
    Pool *pool = pool_new();
    Graph *g = graph_of(pool, "forward", c->lines);
    if (!g)
        return;
    MemPlan *plan = plan_apart(pool, g);
    int n_buffers = plan->n_buffers;
    for (int i = 0; i < MAX_VALUES && c->at[i].value; i++)
        plan->buffer[plan->buffer_of[graph_find(g, c->at[i].value)]].offset =
            c->at[i].before * CELL;
    plan->arena_bytes = c->cells * CELL;
    set_places(g, plan);
    check_plan(pool, g, plan, c->name);
    memplan_write_in_place(pool, g, plan);
    check_plan(pool, g, plan, c->name);
    CHECK_MSG(plan->n_in_place == c->joined && plan->n_buffers == n_buffers - c->joined,
              "%s: %d joined, %d buffers", c->name, plan->n_in_place, plan->n_buffers);
    for (int i = 0; i < MAX_VALUES && c->at[i].value; i++) {
        int64_t at = plan->offset[graph_find(g, c->at[i].value)];
        CHECK_MSG(at == c->at[i].after * CELL, "%s: %s lies at %lld", c->name, c->at[i].value,
                  (long long)at);
    }
    pool_free(pool);
}

static bool is_output(const Graph *g, const MemPlan *plan, int buffer)
{
    for (size_t i = 0; i < g->outputs.len; i++)
        if (plan->buffer_of[g->outputs.data[i].value] == buffer)
            return true;
    return false;
}

/* Something lies where a does behind a's end, before that of b. */
static bool is_taken(const MemPlan *plan, const PlannedBuffer *a, const PlannedBuffer *b)
{
    for (const PlannedBuffer *c = plan->buffer; c < plan->buffer + plan->n_buffers; c++)
        if (c != a && c != b && c->offset < a->offset + a->life.size &&
            a->offset < c->offset + c->life.size && c->life.lower < b->life.upper &&
            c->life.upper > a->life.upper)
            return true;
    return false;
}

/* No result that lies apart from an input could simply be moved over it. */
static void check_nothing_left(const Graph *g, const MemPlan *plan, const Node *n, uint64_t seed)
{
    int b = plan->buffer_of[n->out[0]];
    for (int i = 0; i < n->n_in && b >= 0 && plan->buffer[b].value == n->out[0]; i++) {
        int a = plan->buffer_of[n->in[i]];
        if (a < 0 || a == b || is_output(g, plan, a) ||
            plan->buffer[a].life.size != plan->buffer[b].life.size ||
            plan->buffer[a].life.upper != plan->buffer[b].life.lower + 1 ||
            !node_may_overwrite(g, n, 0, i))
            continue;
        CHECK_MSG(is_taken(plan, &plan->buffer[a], &plan->buffer[b]), "seed %llu: %s could move",
                  (unsigned long long)seed, graph_value(g, n->out[0])->name);
    }
}

static int check_random(uint64_t seed)
{
    Pool *pool = pool_new();
    Graph *g = random_step(pool, seed, 5 + (int)(seed % 60));
    MemPlan *plan = plan_apart(pool, g);
    MemBuffer *life = POOL_ARRAY(pool, (size_t)plan->n_buffers + 1, MemBuffer);
    for (int b = 0; b < plan->n_buffers; b++)
        life[b] = plan->buffer[b].life;
    MemLayout layout = memplan_place(pool, life, plan->n_buffers, MEMPLAN_ALIGN);
    for (int b = 0; b < plan->n_buffers; b++)
        plan->buffer[b].offset = plan->persistent_bytes + layout.offset[b];
    plan->arena_bytes = plan->persistent_bytes + layout.arena_bytes;
    set_places(g, plan);
    check_plan(pool, g, plan, "apart");
    memplan_write_in_place(pool, g, plan);
    check_plan(pool, g, plan, "in place");
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (node_runs(n) && !node_is_view(n))
            check_nothing_left(g, plan, n, seed);
    }
    int joined = plan->n_in_place;
    pool_free(pool);
    return joined;
}

int main(void)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_case(&cases[k]);
    int joined = 0;
    printf("seeds 1 to 60\n");
    for (uint64_t seed = 1; seed <= 60; seed++)
        joined += check_random(seed);
    printf("%d results written in place\n", joined);
    CHECK(joined > 300);
    return test_result();
}
