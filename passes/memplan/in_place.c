/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Results that could be written over an input of their operation, but were placed apart from it so
 * that the arena is as small as possible, move there when the layout is known.  A kernel then
 * writes to lines that it has just read, instead of others that come from memory first.
 *
 * What lies in those bytes later, while the result is alive, goes to the lowest gap that is free
 * for all of its life; if there is none, nothing moves.  The largest results come first; all have
 * another turn as long as places become free. */
#include "passes/memplan/in_place.h"

#include "ir/support/sort.h"

#include <string.h>

/* Looks at a buffer, of all results together, and buffers that may have to move for one. */
static const int64_t WORK_LIMIT = 200000000;
enum { MAX_MOVED = 8 };

typedef struct Result {
    const Node *node;
    int out;
} Result;
typedef VEC(Result) Results;

typedef struct Joining {
    const Graph *g;
    MemPlan *plan;
    bool *output; /* by buffer: the host reads it behind the step */
    int *into;    /* by buffer: the one that it has become a part of; itself at first */
    Ranked *met;  /* room for all buffers */
    int64_t work;
} Joining;

static int buffer_now(const Joining *j, ValueId v)
{
    int b = j->plan->buffer_of[v];
    while (b >= 0 && j->into[b] != b)
        b = j->into[b];
    return b;
}

static bool alive_together(const MemBuffer *a, const MemBuffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

/* Whatever lies in [offset, offset + size) at some time of a life goes to moved[]; -1: too many. */
static int find_overlaps(Joining *j, const MemBuffer *life, int64_t offset, int except, int *moved)
{
    const PlannedBuffer *list = j->plan->buffer;
    int n = 0;
    j->work += j->plan->n_buffers;
    for (int c = 0; c < j->plan->n_buffers; c++) {
        if (c == except || j->into[c] != c || list[c].life.size == 0 ||
            !alive_together(&list[c].life, life) || list[c].offset >= offset + life->size ||
            offset >= list[c].offset + list[c].life.size)
            continue;
        if (n == MAX_MOVED)
            return -1;
        moved[n++] = c;
    }
    return n;
}

/* The lowest offset at which b meets nothing; -1: none below the end of the arena. */
static int64_t lowest_gap(Joining *j, int b)
{
    const MemPlan *plan = j->plan;
    const PlannedBuffer *list = plan->buffer;
    int64_t at = plan->persistent_bytes, size = list[b].life.size;
    size_t n = 0;
    for (int c = 0; c < plan->n_buffers; c++)
        if (c != b && j->into[c] == c && list[c].offset >= 0 &&
            alive_together(&list[c].life, &list[b].life))
            j->met[n++] = (Ranked){list[c].offset, c};
    j->work += plan->n_buffers;
    sort_ranked(j->met, n);
    for (size_t i = 0; i < n && j->met[i].key < at + size; i++) {
        int64_t top = j->met[i].key + list[j->met[i].item].life.size;
        at = top > at ? top : at;
    }
    return at + size <= plan->arena_bytes ? at : -1;
}

/* b becomes the end of a, and what is in its way goes elsewhere; false: it cannot. */
static bool join(Joining *j, int a, int b)
{
    PlannedBuffer *list = j->plan->buffer;
    int moved[MAX_MOVED], n;
    int64_t before[MAX_MOVED];
    const MemBuffer added = {list[a].life.upper, list[b].life.upper, list[a].life.size};
    const int64_t upper = list[a].life.upper;
    j->into[b] = a;
    n = find_overlaps(j, &added, list[a].offset, a, moved);
    list[a].life.upper = added.upper;
    bool fits = n >= 0;
    for (int i = 0; i < n; i++) {
        before[i] = list[moved[i]].offset;
        list[moved[i]].offset = -1; /* nowhere */
    }
    for (int i = 0; i < n && fits; i++) {
        list[moved[i]].offset = lowest_gap(j, moved[i]);
        fits = list[moved[i]].offset >= 0;
    }
    if (fits) {
        j->output[a] |= j->output[b];
        j->plan->n_in_place++;
        return true;
    }
    for (int i = 0; i < n; i++)
        list[moved[i]].offset = before[i];
    list[a].life.upper = upper;
    j->into[b] = b;
    return false;
}

static bool holds_output(const Joining *j, const Node *n, int buffer)
{
    for (int o = 0; o < n->n_out; o++)
        if (buffer_now(j, n->out[o]) == buffer)
            return true;
    return false;
}

/* An output that lies in a buffer of its own is written over an input that dies at its operation.
 */
static bool write_over_input(Joining *j, const Result *o)
{
    const PlannedBuffer *list = j->plan->buffer;
    int b = buffer_now(j, o->node->out[o->out]);
    for (int i = 0; i < o->node->n_in; i++) {
        int a = buffer_now(j, o->node->in[i]);
        if (a >= 0 && !holds_output(j, o->node, a) && !j->output[a] &&
            list[a].life.upper == list[b].life.lower + 1 &&
            list[a].life.size == list[b].life.size &&
            node_may_overwrite(j->g, o->node, o->out, i) && join(j, a, b))
            return true;
    }
    return false;
}

/* Leaves out what has become a part of others. */
static void close_gaps(Joining *j, Pool *scratch)
{
    MemPlan *plan = j->plan;
    int *index = POOL_ARRAY(scratch, (size_t)plan->n_buffers + 1, int), n = 0;
    for (int b = 0; b < plan->n_buffers; b++) {
        index[b] = n;
        n += j->into[b] == b;
    }
    for (size_t v = 0; v < j->g->values.len; v++) {
        int b = buffer_now(j, (ValueId)v);
        if (b < 0)
            continue;
        plan->offset[v] = plan->buffer[b].offset;
        plan->buffer_of[v] = index[b];
    }
    for (int b = 0; b < plan->n_buffers; b++) {
        PlannedBuffer *p = &plan->buffer[b];
        if (p->node != NODE_NONE)
            plan->workspace_offset[p->node] = p->offset;
        if (j->into[b] == b)
            plan->buffer[index[b]] = *p;
    }
    plan->n_buffers = n;
}

static Joining joining_new(Pool *scratch, const Graph *g, MemPlan *plan)
{
    size_t n = (size_t)plan->n_buffers + 1;
    Joining j = {.g = g,
                 .plan = plan,
                 .output = POOL_ARRAY(scratch, n, bool),
                 .into = POOL_ARRAY(scratch, n, int),
                 .met = POOL_ARRAY(scratch, n, Ranked)};
    for (int b = 0; b < plan->n_buffers; b++)
        j.into[b] = b;
    for (size_t i = 0; i < g->outputs.len; i++) {
        int b = plan->buffer_of[g->outputs.data[i].value];
        if (b >= 0)
            j.output[b] = true;
    }
    return j;
}

/* Outputs that are the first in their buffer, and no pieces of a larger one: the largest first. */
static Results results_apart(Pool *scratch, const Graph *g, const MemPlan *plan)
{
    Results found = {0}, sorted = {0};
    VEC(Ranked) order = {0};
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        for (int o = 0; o < n->n_out && node_runs(n) && !node_is_view(n); o++) {
            int b = plan->buffer_of[n->out[o]];
            if (b < 0 || plan->buffer[b].value != n->out[o])
                continue;
            vec_push(scratch, &order, ((Ranked){-plan->buffer[b].life.size, (int)found.len}));
            vec_push(scratch, &found, ((Result){n, o}));
        }
    }
    sort_ranked(order.data, order.len);
    for (size_t i = 0; i < order.len; i++)
        vec_push(scratch, &sorted, found.data[order.data[i].item]);
    return sorted;
}

void memplan_write_in_place(Pool *scratch, const Graph *g, MemPlan *plan)
{
    Joining j = joining_new(scratch, g, plan);
    Results apart = results_apart(scratch, g, plan);
    size_t before;
    do {
        Results left = {0};
        before = apart.len;
        for (size_t i = 0; i < apart.len; i++)
            if (j.work >= WORK_LIMIT || !write_over_input(&j, &apart.data[i]))
                vec_push(scratch, &left, apart.data[i]);
        apart = left;
    } while (apart.len < before);
    close_gaps(&j, scratch);
}
