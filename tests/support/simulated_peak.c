/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/simulated_peak.h"

typedef struct Play {
    const Graph *g;
    int *events;   /* by storage: reads and writes that are to come; a result of the step has one
                      that never comes */
    bool *present; /* by storage */
    bool *handed;  /* by storage: its bytes are now another's */
    int64_t bytes;
    Simulated out;
} Play;

static int64_t rounded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static ValueId storage_of(const Graph *g, ValueId v)
{
    const Value *value = graph_value(g, v);
    if (value->writes != VALUE_NONE)
        return value->writes;
    if (value->part_of != VALUE_NONE)
        return storage_of(g, value->part_of);
    if (op_table[value_node(g, v)->op].op_class == OP_CLASS_VIEW)
        return storage_of(g, value_node(g, v)->in[0]);
    return v;
}

static int64_t bytes_of(const Graph *g, ValueId storage)
{
    return rounded(type_bytes(value_type(g, storage)));
}

static bool is_kept(const Graph *g, ValueId storage)
{
    OpKind op = value_node(g, storage)->op;
    return op == OP_param || op == OP_buffer || op == OP_state;
}

static void appear(Play *p, ValueId storage)
{
    if (p->present[storage])
        return;
    p->present[storage] = true;
    p->bytes += bytes_of(p->g, storage);
}

static void leave_if_done(Play *p, ValueId storage, int slot)
{
    if (!p->present[storage] || p->events[storage] > 0 || is_kept(p->g, storage) ||
        p->out.freed[storage] >= 0)
        return;
    p->out.freed[storage] = slot + 1;
    if (!p->handed[storage])
        p->bytes -= bytes_of(p->g, storage);
}

/* Events of this operation on one storage. */
static int events_here(const Graph *g, const Node *n, ValueId storage)
{
    int events = 0;
    for (int i = 0; i < n->n_in; i++)
        events += storage_of(g, n->in[i]) == storage;
    for (int o = 0; o < n->n_out; o++)
        events += storage_of(g, n->out[o]) == storage;
    return events;
}

/* Output o is written over an input that nobody needs afterwards. */
static bool take_over(Play *p, const Node *n, int o)
{
    for (int i = 0; i < n->n_in; i++) {
        ValueId s = storage_of(p->g, n->in[i]);
        if (is_kept(p->g, s) || p->handed[s] || p->events[s] != events_here(p->g, n, s) ||
            bytes_of(p->g, s) != bytes_of(p->g, n->out[o]) || !node_may_overwrite(p->g, n, o, i))
            continue;
        p->handed[s] = true;
        p->present[n->out[o]] = true;
        return true;
    }
    return false;
}

static void run(Play *p, const Node *n, int slot)
{
    for (int o = 0; o < n->n_out; o++) {
        ValueId s = storage_of(p->g, n->out[o]);
        if (s != n->out[o] || p->present[s] || !take_over(p, n, o))
            appear(p, s);
    }
    int64_t now = p->bytes + rounded(node_workspace_bytes(p->g, n));
    if (now > p->out.peak_bytes) {
        p->out.peak_bytes = now;
        p->out.peak_slot = slot;
    }
    for (int i = 0; i < n->n_in; i++)
        p->events[storage_of(p->g, n->in[i])]--;
    for (int o = 0; o < n->n_out; o++)
        p->events[storage_of(p->g, n->out[o])]--;
}

/* What is there before the step, and how often everything is touched. */
static void begin(Play *p)
{
    const Graph *g = p->g;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        for (int i = 0; i < n->n_in && node_runs(n); i++)
            p->events[storage_of(g, n->in[i])]++;
        for (int o = 0; o < n->n_out && node_runs(n); o++)
            p->events[storage_of(g, n->out[o])]++;
        if (n->op == OP_input || is_kept(g, n->n_out ? n->out[0] : 0))
            appear(p, n->out[0]);
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        p->events[storage_of(g, g->outputs.data[i].value)]++;
}

Simulated simulate_step(Pool *pool, const Graph *g)
{
    size_t n_values = g->values.len + 1;
    Play p = {.g = g,
              .events = POOL_ARRAY(pool, n_values, int),
              .present = POOL_ARRAY(pool, n_values, bool),
              .handed = POOL_ARRAY(pool, n_values, bool)};
    p.out.freed = POOL_ARRAY(pool, n_values, int);
    for (size_t v = 0; v < n_values; v++)
        p.out.freed[v] = -1;
    begin(&p);
    int slot = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (!node_runs(n))
            continue;
        run(&p, n, slot);
        for (ValueId v = 0; v < g->values.len; v++)
            leave_if_done(&p, v, slot);
        slot++;
    }
    return p.out;
}
