/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/report/step_facts.h"

#include "ir/strided_view.h"
#include "passes/rerun.h"

#include <string.h>

const char *const phase_name[N_PHASES] = {"forward", "backward", "update"};
const char *const tensor_kind_name[N_TENSOR_KINDS] = {"weights",    "statistics", "optimizer",
                                                      "input",      "activation", "gradient",
                                                      "recomputed", "workspace"};

typedef struct Maker {
    Pool *pool;
    const Graph *g;
    const bool *forward; /* by node: the loss depends on it */
    int *buffer_of;      /* by value: of the facts */
    StepFacts *out;
} Maker;

/* Operations stand behind what they read. */
static const bool *forward_nodes(Pool *pool, const Graph *g)
{
    bool *forward = POOL_ARRAY(pool, g->nodes.len + 1, bool);
    const TrainSpec *t = &g->train;
    for (int i = 0; i == 0 || i < t->n_goals; i++) {
        ValueId loss = graph_output(g, i ? t->goal[i].loss : train_loss(t));
        if (loss != VALUE_NONE)
            forward[graph_value(g, loss)->def] = true;
    }
    for (size_t k = g->order.len; k-- > 0;) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (node_writes(g, n))
            forward[g->order.data[k]] = false; /* the weights of a later loss */
        for (int i = 0; forward[g->order.data[k]] && i < n->n_in; i++)
            forward[graph_value(g, n->in[i])->def] = true;
    }
    return forward;
}

/* --- buffers --- */

static TensorKind persistent_kind(const Node *n)
{
    return n->op == OP_param    ? TENSOR_WEIGHTS
           : n->op == OP_buffer ? TENSOR_STATISTICS
                                : TENSOR_OPTIMIZER;
}

static TensorKind value_kind(const Maker *m, ValueId v)
{
    NodeId def = graph_value(m->g, v)->def;
    const Node *n = graph_node(m->g, def);
    if (n->op == OP_input)
        return TENSOR_INPUT;
    if (n->remat_of != NODE_NONE)
        return TENSOR_RECOMPUTED;
    return m->forward[def] ? TENSOR_ACTIVATION : TENSOR_GRADIENT;
}

static void add_persistent(Maker *m, const MemPlan *plan)
{
    StepFacts *f = m->out;
    for (size_t k = 0; k < m->g->order.len; k++) {
        const Node *n = graph_node(m->g, m->g->order.data[k]);
        if (!node_is_persistent(n))
            continue;
        ValueId v = n->out[0];
        m->buffer_of[v] = f->n_buffers;
        f->buffer[f->n_buffers++] = (BufferFact){.kind = persistent_kind(n),
                                                 .value = v,
                                                 .over = -1,
                                                 .bytes = memplan_value_bytes(m->g, v),
                                                 .end = f->n_operations,
                                                 .offset = plan ? plan->offset[v] : -1};
    }
}

static void add_workspace(StepFacts *f, const PlannedBuffer *b)
{
    f->buffer[f->n_buffers++] = (BufferFact){.kind = TENSOR_WORKSPACE,
                                             .value = graph_node(f->graph, b->node)->out[0],
                                             .over = -1,
                                             .bytes = b->life.size,
                                             .first = (int)b->life.lower,
                                             .end = (int)b->life.upper,
                                             .offset = b->offset};
}

/* What lies in planned buffers, in the order of the step: one tensor after the other in the same
 * bytes, each until the next is written over it.  last: by planned buffer, the latest one. */
static void add_tensors(Maker *m, const PlannedBuffer *list, const int *planned, const int *birth,
                        int *last)
{
    StepFacts *f = m->out;
    for (size_t k = 0; k < m->g->order.len; k++) {
        const Node *n = graph_node(m->g, m->g->order.data[k]);
        for (int i = 0; i < n->n_out; i++) {
            ValueId v = value_root(m->g, n->out[i]);
            if (planned[v] < 0 || m->buffer_of[v] >= 0 || value_storage(m->g, v) != VALUE_NONE)
                continue;
            const PlannedBuffer *b = &list[planned[v]];
            const int before = last[planned[v]];
            if (before >= 0)
                f->buffer[before].end = birth[v];
            last[planned[v]] = m->buffer_of[v] = f->n_buffers;
            f->buffer[f->n_buffers++] =
                (BufferFact){.kind = value_kind(m, v),
                             .value = v,
                             .over = before,
                             .bytes = b->life.size,
                             .first = before < 0 ? (int)b->life.lower : birth[v],
                             .end = (int)b->life.upper,
                             .offset = b->offset};
        }
    }
}

static void add_buffers(Maker *m, const PlannedBuffer *list, int n, const int *planned,
                        const int *birth)
{
    int *last = POOL_ARRAY(m->pool, (size_t)n + 1, int);
    for (int i = 0; i < n; i++)
        last[i] = -1;
    add_tensors(m, list, planned, birth, last);
    for (int i = 0; i < n; i++)
        if (list[i].node != NODE_NONE)
            add_workspace(m->out, &list[i]);
}

/* Views and pieces lie where the whole does, new versions of persistent tensors where the old do.
 */
static void place_values(Maker *m)
{
    for (size_t k = 0; k < m->g->order.len; k++) {
        const Node *n = graph_node(m->g, m->g->order.data[k]);
        for (int i = 0; i < n->n_out; i++) {
            ValueId root = value_root(m->g, n->out[i]), storage = value_storage(m->g, root);
            m->buffer_of[n->out[i]] = m->buffer_of[storage != VALUE_NONE ? storage : root];
        }
    }
}

static void list_held(Maker *m)
{
    StepFacts *f = m->out;
    int *room = POOL_ARRAY(m->pool, (size_t)f->n_buffers + 1, int);
    for (size_t v = 0; v < m->g->values.len; v++)
        room[m->buffer_of[v] < 0 ? f->n_buffers : m->buffer_of[v]]++;
    for (int b = 0; b < f->n_buffers; b++)
        f->buffer[b].held = POOL_ARRAY(m->pool, (size_t)room[b] + 1, ValueId);
    for (size_t k = 0; k < m->g->order.len; k++) {
        const Node *n = graph_node(m->g, m->g->order.data[k]);
        for (int i = 0; i < n->n_out; i++) {
            BufferFact *b =
                m->buffer_of[n->out[i]] < 0 ? NULL : &f->buffer[m->buffer_of[n->out[i]]];
            if (b)
                b->held[b->n_held++] = n->out[i];
        }
    }
}

/* --- operations --- */

static StepPhase phase_of(const Maker *m, NodeId id)
{
    const Node *n = graph_node(m->g, id);
    if (n->remat_of != NODE_NONE)
        return PHASE_BACKWARD;
    if (m->forward[id] || n->op == OP_bn_running)
        return PHASE_FORWARD;
    return op_table[n->op].op_class == OP_CLASS_UPDATE ? PHASE_UPDATE : PHASE_BACKWARD;
}

static int *buffers_of(const Maker *m, const ValueId *values, int n, int *n_out)
{
    int *list = POOL_ARRAY(m->pool, (size_t)n + 1, int), found = 0;
    for (int i = 0; i < n; i++) {
        int b = m->buffer_of[values[i]], j = 0;
        while (j < found && list[j] != b)
            j++;
        if (b >= 0 && j == found)
            list[found++] = b;
    }
    *n_out = found;
    return list;
}

static void add_operation(Maker *m, NodeId id, const NodeCosts *costs)
{
    const Node *n = graph_node(m->g, id);
    NodeId before = n->remat_of == NODE_NONE ? NODE_NONE : rerun_before(m->g, id);
    OperationFact *o = &m->out->operation[m->out->slot_of[id]];
    *o = (OperationFact){.node = id,
                         .phase = phase_of(m, id),
                         .cost = node_cost(costs, m->g, id),
                         .before = before == NODE_NONE ? -1 : m->out->slot_of[before]};
    o->in = buffers_of(m, n->in, n->n_in, &o->n_in);
    o->out = buffers_of(m, n->out, n->n_out, &o->n_out);
    if (m->forward[id] && n->remat_of == NODE_NONE)
        m->out->forward_end = m->out->slot_of[id] + 1;
}

static void find_loads(Pool *pool, StepFacts *f)
{
    f->load = POOL_ARRAY(pool, (size_t)f->n_operations + 1, int64_t);
    for (int b = 0; b < f->n_buffers; b++) {
        f->load[f->buffer[b].first] += f->buffer[b].bytes;
        f->load[f->buffer[b].end] -= f->buffer[b].bytes;
    }
    for (int t = 0; t < f->n_operations; t++) {
        f->load[t] += t ? f->load[t - 1] : 0;
        if (f->load[t] > f->peak_bytes) {
            f->peak_bytes = f->load[t];
            f->peak_slot = t;
        }
    }
}

StepFacts step_facts(Pool *pool, const Graph *g, const MemPlan *plan, const NodeCosts *costs)
{
    const MemLives lives = memplan_lives(pool, g);
    StepFacts f = {.graph = g,
                   .n_operations = lives.n_slots,
                   .slot_of = lives.slot_of,
                   .persistent_bytes = lives.persistent_bytes};
    const int n = plan ? plan->n_buffers : lives.n_buffers;
    Maker m = {.pool = pool,
               .g = g,
               .forward = forward_nodes(pool, g),
               .buffer_of = POOL_ARRAY(pool, g->values.len + 1, int),
               .out = &f};
    f.operation = POOL_ARRAY(pool, (size_t)lives.n_slots + 1, OperationFact);
    f.buffer = POOL_ARRAY(pool, (size_t)n + g->values.len + 1, BufferFact);
    memset(m.buffer_of, 0xff, (g->values.len + 1) * sizeof *m.buffer_of);
    add_persistent(&m, plan);
    f.n_persistent = f.n_buffers;
    add_buffers(&m, plan ? plan->buffer : lives.buffer, n, plan ? plan->buffer_of : lives.buffer_of,
                lives.birth);
    place_values(&m);
    list_held(&m);
    for (size_t k = 0; k < g->order.len; k++)
        if (lives.slot_of[g->order.data[k]] >= 0)
            add_operation(&m, g->order.data[k], costs);
    find_loads(pool, &f);
    return f;
}

const char *buffer_fact_name(Pool *pool, const StepFacts *f, const BufferFact *b)
{
    const char *name = graph_value(f->graph, b->value)->name;
    return b->kind == TENSOR_WORKSPACE ? pool_printf(pool, "workspace of %s", name) : name;
}
