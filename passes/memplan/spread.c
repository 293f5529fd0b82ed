/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A workspace that lies where a tensor has just ended its life keeps operations apart that could
 * run in turns (codegen/build/strips.h): the second would write what the first still reads.  It
 * moves to where nothing lies some operations before, if there is such a place in the arena.  Large
 * ones stay, and so do tensors, which are best where a cache has the bytes already. */
#include "passes/memplan/spread.h"

#include "ir/support/sort.h"

enum { OPERATIONS_BEFORE = 3 };
static const int64_t SMALL_BYTES = 512 * 1024;
/* Looks at a buffer, of all workspaces together. */
static const int64_t WORK_LIMIT = 200000000;

typedef struct Spreading {
    MemPlan *plan;
    Ranked *met; /* room for all buffers */
    bool *moved; /* by buffer: nothing lies there some operations before */
} Spreading;

static MemBuffer wanted_life(const MemBuffer *life)
{
    MemBuffer w = *life;
    w.lower = w.lower > OPERATIONS_BEFORE ? w.lower - OPERATIONS_BEFORE : 0;
    return w;
}

static bool alive_together(const MemBuffer *a, const MemBuffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

/* What may lie beside a buffer in the life that is wanted for it, by place. */
static size_t find_neighbours(const Spreading *s, int b, const MemBuffer *wanted)
{
    const PlannedBuffer *list = s->plan->buffer;
    size_t n = 0;
    for (int c = 0; c < s->plan->n_buffers; c++) {
        MemBuffer life = s->moved[c] ? wanted_life(&list[c].life) : list[c].life;
        if (c != b && life.size && alive_together(&life, wanted))
            s->met[n++] = (Ranked){list[c].offset, c};
    }
    sort_ranked(s->met, n);
    return n;
}

/* The lowest place of `size` bytes between n neighbours; -1: none in the arena. */
static int64_t lowest_gap(const Spreading *s, size_t n, int64_t size)
{
    const MemPlan *plan = s->plan;
    int64_t at = plan->persistent_bytes;
    for (size_t i = 0; i < n && s->met[i].key < at + size; i++) {
        int64_t top = s->met[i].key + plan->buffer[s->met[i].item].life.size;
        at = top > at ? top : at;
    }
    return at + size <= plan->arena_bytes - plan->appended_bytes ? at : -1;
}

static bool is_free(const Spreading *s, size_t n, int64_t at, int64_t size)
{
    bool free = true;
    for (size_t i = 0; i < n; i++)
        free = free && (s->met[i].key >= at + size ||
                        s->met[i].key + s->plan->buffer[s->met[i].item].life.size <= at);
    return free;
}

static void spread(Spreading *s, int b)
{
    PlannedBuffer *buffer = &s->plan->buffer[b];
    MemBuffer wanted = wanted_life(&buffer->life);
    size_t n = find_neighbours(s, b, &wanted);
    if (!is_free(s, n, buffer->offset, wanted.size)) {
        int64_t at = lowest_gap(s, n, wanted.size);
        if (at < 0)
            return;
        buffer->offset = at;
    }
    s->moved[b] = true;
}

void memplan_spread(Pool *scratch, MemPlan *plan)
{
    size_t n = (size_t)plan->n_buffers + 1;
    Spreading s = {plan, POOL_ARRAY(scratch, n, Ranked), POOL_ARRAY(scratch, n, bool)};
    int64_t work = 0;
    for (int b = 0; b < plan->n_buffers && work < WORK_LIMIT; b++) {
        const PlannedBuffer *buffer = &plan->buffer[b];
        if (buffer->node == NODE_NONE || buffer->life.size == 0 || buffer->life.size > SMALL_BYTES)
            continue;
        spread(&s, b);
        work += plan->n_buffers;
    }
    for (int b = 0; b < plan->n_buffers; b++)
        if (plan->buffer[b].node != NODE_NONE)
            plan->workspace_offset[plan->buffer[b].node] = plan->buffer[b].offset;
}
