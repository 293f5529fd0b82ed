/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which workspaces memplan_spread moves to where nothing has just been: in layouts made by hand,
 * and in those of random buffers, whose arenas have little room. */
#include "check.h"
#include "passes/memplan/spread.h"
#include "tests/support/random.h"

#include <stdio.h>

enum {
    OPERATIONS_BEFORE = 3,
    CELL = 64,
    MAX_BUFFERS = 6,
    RANDOM_BUFFERS = 120,
    SEEDS = 200,
    TIME = 70
};
static const int64_t small_bytes = 512 * 1024;

static bool alive_together(const MemBuffer *a, const MemBuffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

static bool overlap(const PlannedBuffer *a, const PlannedBuffer *b)
{
    return a->offset < b->offset + b->life.size && b->offset < a->offset + a->life.size;
}

/* Something has been there within some operations before it, or is. */
static bool is_close(const MemPlan *plan, int b)
{
    MemBuffer life = plan->buffer[b].life;
    life.lower -= OPERATIONS_BEFORE;
    for (int c = 0; c < plan->n_buffers; c++)
        if (c != b && overlap(&plan->buffer[b], &plan->buffer[c]) &&
            alive_together(&life, &plan->buffer[c].life))
            return true;
    return false;
}

/* The most bytes alive at once. */
static int64_t largest_load(const MemPlan *plan)
{
    int64_t most = 0;
    for (int64_t t = 0; t < TIME; t++) {
        int64_t load = 0;
        for (int b = 0; b < plan->n_buffers; b++)
            if (plan->buffer[b].life.lower <= t && t < plan->buffer[b].life.upper)
                load += plan->buffer[b].life.size;
        most = load > most ? load : most;
    }
    return most;
}

static void check_plan(Pool *pool, const MemPlan *plan, const char *name, int number)
{
    MemBuffer *life = POOL_ARRAY(pool, (size_t)plan->n_buffers, MemBuffer);
    int64_t *offset = POOL_ARRAY(pool, (size_t)plan->n_buffers, int64_t), end = 0;
    const char *fault = "";
    for (int b = 0; b < plan->n_buffers; b++) {
        const PlannedBuffer *p = &plan->buffer[b];
        life[b] = p->life;
        offset[b] = p->offset;
        end = p->offset + p->life.size > end ? p->offset + p->life.size : end;
        CHECK_MSG(p->offset >= plan->persistent_bytes, "%s %d: over a weight", name, number);
        CHECK_MSG(p->node == NODE_NONE || plan->workspace_offset[p->node] == p->offset,
                  "%s %d: a workspace stays behind", name, number);
    }
    MemLayout layout = {
        .offset = offset, .arena_bytes = end, .lower_bound_bytes = largest_load(plan)};
    CHECK_MSG(memplan_check(pool, life, plan->n_buffers, &layout, &fault), "%s %d: %s", name,
              number, fault);
    CHECK_MSG(end <= plan->arena_bytes - plan->appended_bytes, "%s %d: past the end", name, number);
}

/* Every second buffer is the workspace of a node of that number, or all are values'. */
static MemPlan *plan_new(Pool *pool, int n, bool workspaces)
{
    MemPlan *plan = POOL_NEW(pool, MemPlan);
    plan->n_buffers = n;
    plan->buffer = POOL_ARRAY(pool, (size_t)n, PlannedBuffer);
    plan->workspace_offset = POOL_ARRAY(pool, (size_t)n, int64_t);
    for (int b = 0; b < n; b++) {
        bool is_workspace = workspaces && b % 2 == 1;
        plan->buffer[b].node = is_workspace ? (NodeId)b : NODE_NONE;
        plan->buffer[b].value = is_workspace ? VALUE_NONE : (ValueId)b;
    }
    return plan;
}

static void note_workspaces(MemPlan *plan)
{
    for (int b = 0; b < plan->n_buffers; b++)
        plan->workspace_offset[b] = plan->buffer[b].offset;
}

/* Buffers 1, 3 and 5 are workspaces; places and sizes in cells. */
static const struct {
    const char *name;
    int64_t cell, persistent, arena, appended;
    int n;
    struct {
        int64_t lower, upper, size, before, after;
    } buffer[MAX_BUFFERS];
} cases[] = {
    {"there is room", CELL, 0, 3, 0, 3, {{0, 2, 1, 0, 0}, {2, 3, 1, 0, 1}, {2, 4, 1, 2, 2}}},
    {"there is none", CELL, 0, 2, 0, 3, {{0, 2, 1, 0, 0}, {2, 3, 1, 0, 0}, {0, 4, 1, 1, 1}}},
    {"it is long ago", CELL, 0, 3, 0, 3, {{0, 2, 1, 0, 0}, {5, 6, 1, 0, 0}, {5, 6, 1, 2, 2}}},
    {"what is behind the plan is no room",
     CELL,
     0,
     3,
     1,
     3,
     {{0, 2, 1, 0, 0}, {2, 3, 1, 0, 0}, {0, 4, 1, 1, 1}}},
    {"a weight is no room", CELL, 2, 4, 0, 3, {{0, 2, 1, 2, 2}, {2, 3, 1, 2, 2}, {0, 4, 1, 3, 3}}},
    {"large ones stay", 1 << 20, 0, 3, 0, 3, {{0, 2, 1, 0, 0}, {2, 3, 1, 0, 0}, {2, 4, 1, 2, 2}}},
    {"tensors stay", CELL, 0, 4, 0, 3, {{0, 2, 1, 0, 0}, {8, 9, 1, 0, 0}, {2, 4, 1, 0, 0}}},
    {"apart from one that has moved",
     CELL,
     0,
     4,
     0,
     4,
     {{0, 2, 1, 0, 0}, {2, 3, 1, 0, 1}, {1, 3, 1, 2, 2}, {3, 4, 1, 0, 3}}},
};

static void check_case(size_t c)
{
    Pool *pool = pool_new();
    MemPlan *plan = plan_new(pool, cases[c].n, true);
    int64_t cell = cases[c].cell;
    for (int b = 0; b < plan->n_buffers; b++) {
        plan->buffer[b].life = (MemBuffer){cases[c].buffer[b].lower, cases[c].buffer[b].upper,
                                           cases[c].buffer[b].size * cell};
        plan->buffer[b].offset = cases[c].buffer[b].before * cell;
    }
    plan->persistent_bytes = cases[c].persistent * cell;
    plan->arena_bytes = cases[c].arena * cell;
    plan->appended_bytes = cases[c].appended * cell;
    note_workspaces(plan);
    check_plan(pool, plan, cases[c].name, 0);
    memplan_spread(pool, plan);
    check_plan(pool, plan, cases[c].name, 1);
    for (int b = 0; b < plan->n_buffers; b++)
        CHECK_MSG(plan->buffer[b].offset == cases[c].buffer[b].after * cell,
                  "%s: buffer %d lies at %lld", cases[c].name, b,
                  (long long)(plan->buffer[b].offset / cell));
    pool_free(pool);
}

typedef struct Counts {
    int moved, close_before, close_after;
} Counts;

static void check_random(int seed, Counts *counts)
{
    Pool *pool = pool_new();
    Random rng = {(uint64_t)seed + 1};
    MemPlan *plan = plan_new(pool, RANDOM_BUFFERS, true);
    MemBuffer *life = POOL_ARRAY(pool, RANDOM_BUFFERS, MemBuffer);
    int64_t *before = POOL_ARRAY(pool, RANDOM_BUFFERS, int64_t);
    for (int b = 0; b < RANDOM_BUFFERS; b++) {
        int64_t at = random_below(&rng, 60), length = b % 2 ? 1 : 1 + random_below(&rng, 8);
        life[b] = (MemBuffer){at, at + length, CELL * (1 + random_below(&rng, b % 2 ? 4 : 40))};
        plan->buffer[b].life = life[b];
    }
    MemLayout layout = memplan_place_within(pool, life, RANDOM_BUFFERS, CELL, MEMPLAN_SKETCH);
    for (int b = 0; b < RANDOM_BUFFERS; b++)
        before[b] = plan->buffer[b].offset = layout.offset[b];
    int64_t arena = plan->arena_bytes = layout.arena_bytes;
    note_workspaces(plan);
    for (int b = 1; b < RANDOM_BUFFERS; b += 2)
        counts->close_before += is_close(plan, b);
    memplan_spread(pool, plan);
    check_plan(pool, plan, "seed", seed);
    CHECK_MSG(plan->arena_bytes == arena, "seed %d: another arena", seed);
    for (int b = 0; b < RANDOM_BUFFERS; b++) {
        bool moved = plan->buffer[b].offset != before[b];
        counts->moved += moved;
        counts->close_after += b % 2 && is_close(plan, b);
        CHECK_MSG(!moved || (plan->buffer[b].node != NODE_NONE && life[b].size <= small_bytes &&
                             !is_close(plan, b)),
                  "seed %d: buffer %d moved for nothing", seed, b);
    }
    pool_free(pool);
}

int main(void)
{
    Counts counts = {0};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        check_case(c);
    for (int seed = 0; seed < SEEDS; seed++)
        check_random(seed, &counts);
    printf("%d moved; %d close to others, %d before\n", counts.moved, counts.close_after,
           counts.close_before);
    CHECK(counts.moved > 0 && counts.close_after < counts.close_before);
    return test_result();
}
