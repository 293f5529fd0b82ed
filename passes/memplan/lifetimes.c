/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The plan of a step graph: lives of its values in the order given, then placement.
 *
 * Time is counted in nodes that run (views and sources do not; constants do).  What the host writes
 * before the step (batch, rates) is alive from the start. */
#include "passes/memplan/in_place.h"
#include "passes/memplan/memplan.h"
#include "passes/memplan/spread.h"

#include "ir/strided_view.h"
#include "ir/support/bug.h"
#include "ir/support/parallel.h"

#include <stdatomic.h>
#include <string.h>

enum { NO_BUFFER = -1 };

typedef struct Lives {
    const Graph *g;
    Pool *scratch;
    int n_slots;
    int *slot_of;   /* by NodeId; -1 = does not run */
    ValueId *root;  /* by ValueId: the value whose storage it uses, VALUE_NONE = not in the order */
    int *birth;     /* by root */
    int *last;      /* by root: slot of the last read */
    bool *output;   /* by root */
    int *buffer_of; /* by root */
    ValueId *over;  /* by root: the root whose buffer it took, VALUE_NONE = none */
    MemBuffer *buffer;
    NodeId *workspace_node; /* by buffer; NODE_NONE: a value's */
    int n_buffers, n_in_place;
    int64_t *load;   /* by slot: bytes alive with what shares so far */
    int64_t allowed; /* in-place pairs share a buffer where the load would pass this otherwise */
} Lives;

static bool is_persistent(const Lives *l, ValueId root)
{
    return value_storage(l->g, root) != VALUE_NONE;
}

static void find_roots(Lives *l)
{
    for (size_t v = 0; v < l->g->values.len; v++)
        l->root[v] = VALUE_NONE;
    for (size_t k = 0; k < l->g->order.len; k++) {
        const Node *n = graph_node(l->g, l->g->order.data[k]);
        for (int i = 0; i < n->n_out; i++) {
            ValueId root = value_root(l->g, n->out[i]), storage = value_storage(l->g, root);
            l->root[n->out[i]] = storage != VALUE_NONE ? storage : root;
        }
    }
}

static void find_lives(Lives *l)
{
    for (size_t k = 0; k < l->g->order.len; k++) {
        NodeId id = l->g->order.data[k];
        const Node *n = graph_node(l->g, id);
        l->slot_of[id] = node_runs(n) ? l->n_slots++ : -1;
        int slot = l->slot_of[id] < 0 ? 0 : l->slot_of[id];
        for (int i = 0; i < n->n_out && !node_is_view(n); i++) {
            ValueId root = l->root[n->out[i]];
            if (l->birth[root] < 0) /* the first of its parts */
                l->birth[root] = slot;
            l->last[root] = slot;
        }
        for (int i = 0; i < n->n_in && node_runs(n); i++)
            l->last[l->root[n->in[i]]] = slot;
    }
    if (l->n_slots == 0)
        l->n_slots = 1;
    for (size_t i = 0; i < l->g->outputs.len; i++) {
        ValueId root = l->root[l->g->outputs.data[i].value];
        if (root == VALUE_NONE)
            BUG("output %s is not in the order", l->g->outputs.data[i].name);
        l->output[root] = true;
        l->last[root] = l->n_slots - 1;
    }
}

static int add_buffer(Lives *l, int lower, int upper, int64_t size, NodeId workspace_node)
{
    l->buffer[l->n_buffers] = (MemBuffer){lower, upper, size};
    l->workspace_node[l->n_buffers] = workspace_node;
    return l->n_buffers++;
}

/* The input that output `out` of n is written over: the first legal one that no other output took.
 */
static ValueId in_place_input(const Lives *l, const Node *n, int slot, int out,
                              const ValueId *taken)
{
    for (int i = 0; i < n->n_in; i++) {
        ValueId root = l->root[n->in[i]];
        bool free_root = true;
        for (int o = 0; o < out; o++)
            free_root &= taken[o] != root;
        if (free_root && !is_persistent(l, root) && !l->output[root] && l->last[root] == slot &&
            memplan_value_bytes(l->g, root) == memplan_value_bytes(l->g, n->out[out]) &&
            node_may_overwrite(l->g, n, out, i))
            return root;
    }
    return VALUE_NONE;
}

/* Separate buffers are both alive at the slot of the operation. */
static bool may_separate(Lives *l, int slot, int64_t size)
{
    if (l->load[slot] + size > l->allowed)
        return false;
    l->load[slot] += size;
    return true;
}

static void make_output_buffers(Lives *l, const Node *n, int slot)
{
    ValueId *taken = POOL_ARRAY(l->scratch, (size_t)n->n_out + 1, ValueId);
    for (int o = 0; o < n->n_out; o++) {
        ValueId v = l->root[n->out[o]];
        taken[o] = VALUE_NONE;
        if (is_persistent(l, v) || l->buffer_of[v] != NO_BUFFER)
            continue; /* it lies where its other parts do */
        if (node_runs(n) && v == n->out[o])
            taken[o] = in_place_input(l, n, slot, o, taken);
        if (taken[o] != VALUE_NONE && may_separate(l, slot, memplan_value_bytes(l->g, v)))
            taken[o] = VALUE_NONE;
        int upper = l->last[v] + 1;
        if (taken[o] == VALUE_NONE) {
            l->buffer_of[v] =
                add_buffer(l, l->birth[v], upper, memplan_value_bytes(l->g, v), NODE_NONE);
            continue;
        }
        l->over[v] = taken[o];
        l->buffer_of[v] = l->buffer_of[taken[o]];
        l->buffer[l->buffer_of[v]].upper = upper;
        l->n_in_place++;
    }
}

static void make_buffers(Lives *l)
{
    l->n_buffers = l->n_in_place = 0;
    for (size_t v = 0; v < l->g->values.len; v++) {
        l->buffer_of[v] = NO_BUFFER;
        l->over[v] = VALUE_NONE;
    }
    for (size_t k = 0; k < l->g->order.len; k++) {
        NodeId id = l->g->order.data[k];
        const Node *n = graph_node(l->g, id);
        if (node_is_view(n))
            continue;
        make_output_buffers(l, n, l->slot_of[id]);
        int64_t workspace = node_runs(n) ? memplan_rounded(node_workspace_bytes(l->g, n)) : 0;
        if (workspace > 0)
            add_buffer(l, l->slot_of[id], l->slot_of[id] + 1, workspace, id);
    }
}

static Lives *lives_new(Pool *scratch, const Graph *g)
{
    Lives *l = POOL_NEW(scratch, Lives);
    size_t n_values = g->values.len + 1, n_nodes = g->nodes.len + 1;
    l->g = g;
    l->scratch = scratch;
    l->slot_of = POOL_ARRAY(scratch, n_nodes, int);
    l->root = POOL_ARRAY(scratch, n_values, ValueId);
    l->birth = POOL_ARRAY(scratch, n_values, int);
    l->last = POOL_ARRAY(scratch, n_values, int);
    l->output = POOL_ARRAY(scratch, n_values, bool);
    l->buffer_of = POOL_ARRAY(scratch, n_values, int);
    l->over = POOL_ARRAY(scratch, n_values, ValueId);
    l->buffer = POOL_ARRAY(scratch, n_values + n_nodes, MemBuffer);
    l->workspace_node = POOL_ARRAY(scratch, n_values + n_nodes, NodeId);
    for (size_t v = 0; v < n_values; v++)
        l->buffer_of[v] = l->birth[v] = NO_BUFFER;
    find_roots(l);
    find_lives(l);
    return l;
}

/* Persistent tensors one after the other from offset 0; returns where they end.  offset: by value;
 * NULL: only that is asked for. */
static int64_t place_persistent(const Graph *g, int64_t *offset)
{
    int64_t end = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (!node_is_persistent(n))
            continue;
        if (offset)
            offset[n->out[0]] = end;
        if (!size_add(end, memplan_value_bytes(g, n->out[0]), &end))
            BUG("the persistent tensors are too large");
    }
    return end;
}

static void set_offsets(MemPlan *plan, const Lives *l, const MemLayout *layout)
{
    for (size_t v = 0; v < l->g->values.len; v++) {
        ValueId root = l->root[v];
        if (root == VALUE_NONE)
            continue;
        if (!is_persistent(l, root))
            plan->offset[v] = plan->persistent_bytes + layout->offset[l->buffer_of[root]];
        else
            plan->offset[v] = plan->offset[root];
    }
    for (int b = 0; b < l->n_buffers; b++)
        if (l->workspace_node[b] != NODE_NONE)
            plan->workspace_offset[l->workspace_node[b]] =
                plan->persistent_bytes + layout->offset[b];
    plan->arena_bytes = plan->persistent_bytes + layout->arena_bytes;
    plan->n_in_place = l->n_in_place;
}

/* Bytes alive by slot. */
static int64_t *slot_loads(const Lives *l)
{
    int64_t *load = POOL_ARRAY(l->scratch, (size_t)l->n_slots + 1, int64_t);
    for (int b = 0; b < l->n_buffers; b++) {
        load[l->buffer[b].lower] += l->buffer[b].size;
        load[l->buffer[b].upper] -= l->buffer[b].size;
    }
    for (int t = 1; t <= l->n_slots; t++)
        load[t] += load[t - 1];
    return load;
}

/* The first node at which the load is largest. */
static NodeId busiest_node(const Lives *l, const int64_t *load, int64_t bound)
{
    for (size_t k = 0; k < l->g->order.len; k++) {
        int slot = l->slot_of[l->g->order.data[k]];
        if (slot >= 0 && load[slot] == bound)
            return l->g->order.data[k];
    }
    return NODE_NONE;
}

static PlannedBuffer *buffers_of(Pool *pool, const Lives *l)
{
    PlannedBuffer *list = POOL_ARRAY(pool, (size_t)l->n_buffers + 1, PlannedBuffer);
    for (int b = 0; b < l->n_buffers; b++)
        list[b] = (PlannedBuffer){l->buffer[b], -1, VALUE_NONE, l->workspace_node[b]};
    for (size_t k = 0; k < l->g->order.len; k++) {
        const Node *n = graph_node(l->g, l->g->order.data[k]);
        for (int i = 0; i < n->n_out; i++) {
            ValueId root = l->root[n->out[i]];
            if (!is_persistent(l, root) && list[l->buffer_of[root]].value == VALUE_NONE)
                list[l->buffer_of[root]].value = root;
        }
    }
    return list;
}

static int *buffer_by_value(Pool *pool, const Lives *l)
{
    int *buffer_of = POOL_ARRAY(pool, l->g->values.len + 1, int);
    for (size_t v = 0; v < l->g->values.len; v++)
        buffer_of[v] = l->root[v] == VALUE_NONE ? NO_BUFFER : l->buffer_of[l->root[v]];
    return buffer_of;
}

static int busiest_slot(const int64_t *load, int n_slots)
{
    int most = 0;
    for (int t = 1; t < n_slots; t++)
        most = load[t] > load[most] ? t : most;
    return most;
}

MemLives memplan_lives(Pool *pool, const Graph *g)
{
    Lives *l = lives_new(pool, g);
    l->load = POOL_ARRAY(pool, (size_t)l->n_slots, int64_t);
    l->allowed = -1; /* whatever may share does */
    make_buffers(l);
    int64_t *load = slot_loads(l);
    return (MemLives){.n_slots = l->n_slots,
                      .slot_of = l->slot_of,
                      .birth = l->birth,
                      .last = l->last,
                      .over = l->over,
                      .persistent_bytes = place_persistent(g, NULL),
                      .load = load,
                      .peak_slot = busiest_slot(load, l->n_slots),
                      .n_buffers = l->n_buffers,
                      .buffer = buffers_of(pool, l),
                      .buffer_of = buffer_by_value(pool, l)};
}

static MemPlan *plan_new(Pool *pool, const Graph *g)
{
    MemPlan *plan = POOL_NEW(pool, MemPlan);
    plan->offset = POOL_ARRAY(pool, g->values.len + 1, int64_t);
    plan->workspace_offset = POOL_ARRAY(pool, g->nodes.len + 1, int64_t);
    for (size_t v = 0; v <= g->values.len; v++)
        plan->offset[v] = -1;
    for (size_t n = 0; n <= g->nodes.len; n++)
        plan->workspace_offset[n] = -1;
    plan->persistent_bytes = place_persistent(g, plan->offset);
    return plan;
}

/* How far the load may rise so that in-place pairs get buffers of their own, in sixteenths of the
 * bound: not at all; ...; as far as it likes. */
enum { SHARINGS = 5, WITHIN_BOUND = 1, MOST_TO_TRY_ALL = 1000 };
static const int sharing_load[SHARINGS] = {0, 16, 14, 12, 64};

static void set_bound(MemPlan *plan, const Lives *l, int64_t *load, int64_t bound)
{
    memcpy(load, slot_loads(l), (size_t)l->n_slots * sizeof *load);
    plan->lower_bound_bytes = plan->peak_bytes = plan->persistent_bytes + bound;
    plan->peak_node = busiest_node(l, load, bound);
}

typedef struct Sharings {
    Lives *l;
    MemPlan *plan;
    PlacementCache *cache;
    int64_t bound, *shared;
    int best; /* what the plan shares */
} Sharings;

static void make_sharing(const Sharings *s, Lives *l, int sharing)
{
    memcpy(l->load, s->shared, (size_t)l->n_slots * sizeof *s->shared);
    l->allowed = sharing == 0 ? -1 : s->bound / 16 * sharing_load[sharing];
    make_buffers(l);
}

/* Whether the cache knew the layout. */
static bool place_buffers(const Sharings *s, const Lives *l, int64_t exact_steps, MemLayout *layout)
{
    if (s->cache &&
        placement_cache_find(s->cache, l->scratch, l->buffer, l->n_buffers, exact_steps, layout))
        return true;
    *layout = memplan_place_within(l->scratch, l->buffer, l->n_buffers, MEMPLAN_ALIGN, exact_steps);
    return false;
}

static void remember(const Sharings *s, const Lives *l, int64_t exact_steps,
                     const MemLayout *layout)
{
    if (s->cache)
        placement_cache_add(s->cache, l->buffer, l->n_buffers, exact_steps, layout);
}

static int64_t largest_load(const Lives *l)
{
    const int64_t *load = slot_loads(l);
    int64_t largest = 0;
    for (int t = 0; t < l->n_slots; t++)
        largest = load[t] > largest ? load[t] : largest;
    return largest;
}

/* Several sharings, each placed on its own. */
typedef struct Batch {
    const Sharings *s;
    int n, sharing[SHARINGS];
    int64_t exact_steps, room; /* layouts that take less are wanted */
    Lives *l[SHARINGS];        /* NULL: not placed */
    MemLayout layout[SHARINGS];
    bool known[SHARINGS];
    _Atomic int64_t arena_bytes[SHARINGS]; /* INT64_MAX: not placed, or not yet */
} Batch;

/* The same lives; what make_buffers writes is its own. */
static Lives *lives_copy(Pool *pool, const Lives *l)
{
    Lives *c = POOL_NEW(pool, Lives);
    size_t n_values = l->g->values.len + 1, n_nodes = l->g->nodes.len + 1;
    *c = *l;
    c->scratch = pool;
    c->buffer_of = POOL_ARRAY(pool, n_values, int);
    c->over = POOL_ARRAY(pool, n_values, ValueId);
    c->buffer = POOL_ARRAY(pool, n_values + n_nodes, MemBuffer);
    c->workspace_node = POOL_ARRAY(pool, n_values + n_nodes, NodeId);
    c->load = POOL_ARRAY(pool, (size_t)l->n_slots, int64_t);
    return c;
}

/* One whose load alone is no lower than the arena of those before it is not placed; they may not be
 * ready, which costs time and changes nothing. */
static void place_sharing(void *user, int k, Pool *pool)
{
    Batch *b = user;
    int64_t room = b->room;
    for (int j = 0; j < k; j++) {
        int64_t before = atomic_load(&b->arena_bytes[j]);
        room = before < room ? before : room;
    }
    if (room <= b->s->bound)
        return;
    Lives *l = lives_copy(pool, b->s->l);
    make_sharing(b->s, l, b->sharing[k]);
    if (largest_load(l) >= room)
        return;
    b->known[k] = place_buffers(b->s, l, b->exact_steps, &b->layout[k]);
    b->l[k] = l;
    atomic_store(&b->arena_bytes[k], b->layout[k].arena_bytes);
}

/* The first of those with the lowest arena, when it is lower than the plan's. */
static void keep_lowest(Sharings *s, Batch *b)
{
    for (int k = 0; k < b->n; k++) {
        if (!b->l[k])
            continue;
        if (!b->known[k])
            remember(s, b->l[k], b->exact_steps, &b->layout[k]);
        if (b->layout[k].arena_bytes >= b->room)
            continue;
        b->room = b->layout[k].arena_bytes;
        set_offsets(s->plan, b->l[k], &b->layout[k]);
        s->best = b->sharing[k];
    }
}

/* n sharings from `first` on. */
static void try_sharings(Sharings *s, int first, int n, int64_t exact_steps)
{
    if (s->plan->arena_bytes <= s->plan->lower_bound_bytes)
        return;
    Batch b = {.s = s,
               .n = n,
               .exact_steps = exact_steps,
               .room = s->plan->arena_bytes - s->plan->persistent_bytes};
    for (int k = 0; k < n; k++) {
        b.sharing[k] = (first + k) % SHARINGS;
        atomic_init(&b.arena_bytes[k], INT64_MAX);
    }
    Pool *scratch = pool_new_child(s->l->scratch);
    parallel_run(scratch, s->cache ? placement_cache_threads(s->cache) : 1, n, place_sharing, &b);
    keep_lowest(s, &b);
    pool_free(scratch);
}

static void sketch_all(Sharings *s)
{
    MemLayout first;
    make_sharing(s, s->l, 0);
    if (!place_buffers(s, s->l, MEMPLAN_SKETCH, &first))
        remember(s, s->l, MEMPLAN_SKETCH, &first);
    s->bound = first.lower_bound_bytes;
    set_bound(s->plan, s->l, s->shared, s->bound);
    set_offsets(s->plan, s->l, &first);
    try_sharings(s, 1, SHARINGS - 1, MEMPLAN_SKETCH);
}

/* The buffers of the sharing that was best, with the plan's offsets. */
static void list_buffers(Sharings *s, Pool *pool)
{
    MemPlan *plan = s->plan;
    make_sharing(s, s->l, s->best);
    plan->n_buffers = s->l->n_buffers;
    plan->buffer = buffers_of(pool, s->l);
    plan->buffer_of = buffer_by_value(pool, s->l);
    for (int b = 0; b < plan->n_buffers; b++) {
        PlannedBuffer *p = &plan->buffer[b];
        p->offset = p->node == NODE_NONE ? plan->offset[p->value] : plan->workspace_offset[p->node];
    }
}

/* Sharing a buffer in place never raises the load, but a longer buffer can be harder to place: when
 * the arena misses the bound, fewer pairs share.  The lowest arena wins; its sharing is the first
 * that is searched further; after it, where there are few buffers, the others, the lowest of which
 * is searched as far, and where there are many only that whose load may rise up to the bound.
 * MEMPLAN_FINAL does all that MEMPLAN_TRIAL does before anything else, so that a plan that fitted
 * on trial fits. */
MemPlan *memplan_graph(Pool *pool, const Graph *g, MemEffort effort, PlacementCache *cache)
{
    Pool *scratch = pool_new_child(pool);
    Sharings s = {.l = lives_new(scratch, g), .plan = plan_new(pool, g), .cache = cache};
    s.shared = POOL_ARRAY(scratch, (size_t)s.l->n_slots, int64_t);
    s.l->load = POOL_ARRAY(scratch, (size_t)s.l->n_slots, int64_t);
    sketch_all(&s);
    int first = s.best;
    if (effort == MEMPLAN_FINAL)
        try_sharings(&s, first, 1, MEMPLAN_EXACT_STEPS);
    if (effort == MEMPLAN_FINAL && s.l->n_buffers <= MOST_TO_TRY_ALL)
        try_sharings(&s, first + 1, SHARINGS - 1, MEMPLAN_TRIAL_STEPS);
    if (effort == MEMPLAN_FINAL && s.best != first)
        try_sharings(&s, s.best, 1, MEMPLAN_EXACT_STEPS);
    if (effort == MEMPLAN_FINAL && s.l->n_buffers > MOST_TO_TRY_ALL && first != WITHIN_BOUND)
        try_sharings(&s, WITHIN_BOUND, 1, MEMPLAN_EXACT_STEPS);
    if (effort == MEMPLAN_FINAL) {
        list_buffers(&s, pool);
        memplan_write_in_place(scratch, g, s.plan);
        memplan_spread(scratch, s.plan);
    }
    pool_free(scratch);
    return s.plan;
}
