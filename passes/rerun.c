/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/rerun.h"

#include "ir/strided_view.h"
#include "ir/support/bug.h"

NodeId rerun_first(const Graph *g, NodeId id)
{
    while (graph_node(g, id)->remat_of != NODE_NONE)
        id = graph_node(g, id)->remat_of;
    return id;
}

/* A slice that has become a name for a piece does not run. */
static bool same_operation(const Graph *g, NodeId a, NodeId run)
{
    return node_runs(graph_node(g, a)) && rerun_first(g, a) == rerun_first(g, run);
}

static bool is_rerun(const Node *n)
{
    return node_runs(n) && n->remat_of != NODE_NONE;
}

NodeId rerun_before(const Graph *g, NodeId run)
{
    NodeId before = NODE_NONE;
    if (!is_rerun(graph_node(g, run)))
        return NODE_NONE;
    for (size_t k = 0; k < g->order.len; k++) {
        if (g->order.data[k] == run)
            return before;
        if (same_operation(g, g->order.data[k], run))
            before = g->order.data[k];
    }
    return NODE_NONE;
}

/* The step without a run */

#define COPY(pool, v)                                                                              \
    pool_grow(pool, (v).data, (v).len * sizeof *(v).data, (v).len * sizeof *(v).data)

/* Nodes and values may be changed one by one, what they point to may not. */
static Graph *shallow_copy(Pool *pool, const Graph *g)
{
    Graph *c = POOL_NEW(pool, Graph);
    *c = *g;
    c->pool = pool;
    c->nodes.data = COPY(pool, g->nodes);
    c->values.data = COPY(pool, g->values);
    c->order.data = COPY(pool, g->order);
    c->outputs.data = COPY(pool, g->outputs);
    c->nodes.cap = c->nodes.len;
    c->values.cap = c->values.len;
    c->order.cap = c->order.len;
    c->outputs.cap = c->outputs.len;
    return c;
}

typedef struct Without {
    Graph *g; /* the copy */
    Pool *pool;
    const Node *run, *before;
    int *uses;  /* by value: readers that are left, and outputs of the graph */
    bool *gone; /* by node */
} Without;

/* What stands for v when the run is gone. */
static ValueId stand_in(const Without *w, ValueId v)
{
    const Value *value = graph_value(w->g, v);
    return graph_node(w->g, value->def) == w->run ? w->before->out[value->out_index] : v;
}

static void redirect_node(Without *w, NodeId id)
{
    Node *n = graph_node(w->g, id);
    const ValueId *old = n->in;
    ValueId *in = POOL_ARRAY(w->pool, (size_t)n->n_in + 1, ValueId);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = stand_in(w, old[i]);
        if (in[i] != old[i] && concat_has_joined(n, i))
            concat_separate(w->g, id, i);
    }
    n->in = in;
}

static bool reads_run(const Without *w, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (stand_in(w, n->in[i]) != n->in[i])
            return true;
    return false;
}

static void redirect_readers(Without *w)
{
    Graph *g = w->g;
    for (size_t k = 0; k < g->order.len; k++)
        if (reads_run(w, graph_node(g, g->order.data[k])))
            redirect_node(w, g->order.data[k]);
    for (size_t i = 0; i < g->outputs.len; i++)
        g->outputs.data[i].value = stand_in(w, g->outputs.data[i].value);
}

/* A question about n, which reads a value as its input i. */
typedef bool Reads(const Graph *g, const Node *n, int i);

/* Whether v is a result of the step, or has a reader of which `is` is true. */
static bool has_reader(const Graph *g, ValueId v, Reads *is)
{
    for (size_t i = 0; i < g->outputs.len; i++)
        if (g->outputs.data[i].value == v)
            return true;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == v && is(g, n, i))
                return true;
    }
    return false;
}

static bool reads_at_all(const Graph *g, const Node *n, int i)
{
    (void)g, (void)n, (void)i;
    return true;
}

/* Cannot read, itself or through a subview, what lies inside of another value. */
static bool reads_dense_only(const Graph *g, const Node *n, int i)
{
    return !node_reads_strided(g, n, i) ||
           (n->op == OP_subview && has_reader(g, n->out[0], reads_dense_only));
}

static void separate_part(Graph *g, ValueId v)
{
    NodeId concat = graph_value(g, graph_value(g, v)->part_of)->def;
    const Node *n = graph_node(g, concat);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] == v && concat_has_joined(n, i)) {
            concat_separate(g, concat, i);
            return;
        }
    BUG("%s is a part of nothing that reads it", graph_value(g, v)->name);
}

/* What the readers of the run cannot read inside of another value gets storage of its own. */
static void separate_results(Without *w)
{
    for (int o = 0; o < w->before->n_out; o++) {
        ValueId v = w->before->out[o];
        if (!value_is_dense(w->g, v) && has_reader(w->g, v, reads_dense_only))
            separate_part(w->g, v);
    }
}

static void count_uses(Without *w)
{
    Graph *g = w->g;
    w->uses = POOL_ARRAY(w->pool, g->values.len + 1, int);
    w->gone = POOL_ARRAY(w->pool, g->nodes.len + 1, bool);
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        for (int i = 0; i < n->n_in; i++)
            w->uses[n->in[i]]++;
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        w->uses[g->outputs.data[i].value]++;
}

/* A recomputation, or a view of one, that nobody reads any more. */
static bool is_idle(const Without *w, NodeId id)
{
    const Node *n = graph_node(w->g, id);
    bool idle = !w->gone[id] && (n->remat_of != NODE_NONE || node_is_view(n));
    for (int o = 0; o < n->n_out; o++)
        idle = idle && w->uses[n->out[o]] == 0;
    return idle;
}

static void remove_node(Without *w, NodeId id)
{
    const Node *n = graph_node(w->g, id);
    w->gone[id] = true;
    for (int i = 0; i < n->n_in; i++) {
        if (concat_has_joined(n, i))
            graph_value(w->g, n->in[i])->part_of = VALUE_NONE;
        w->uses[n->in[i]]--;
        if (is_idle(w, graph_value(w->g, n->in[i])->def))
            remove_node(w, graph_value(w->g, n->in[i])->def);
    }
}

static void drop_gone(Without *w)
{
    Graph *g = w->g;
    size_t kept = 0;
    for (size_t k = 0; k < g->order.len; k++)
        if (!w->gone[g->order.data[k]])
            g->order.data[kept++] = g->order.data[k];
    g->order.len = kept;
}

static Graph *without(Pool *pool, const Graph *g, NodeId run, NodeId before)
{
    Without w = {.g = shallow_copy(pool, g), .pool = pool};
    w.run = graph_node(w.g, run);
    w.before = graph_node(w.g, before);
    redirect_readers(&w);
    separate_results(&w);
    count_uses(&w);
    remove_node(&w, run);
    drop_gone(&w);
    return w.g;
}

Graph *rerun_without(Pool *pool, const Graph *g, NodeId run)
{
    NodeId before = rerun_before(g, run);
    if (before == NODE_NONE)
        BUG("node %u is no recomputation", run);
    return without(pool, g, run, before);
}

/* Effects */

typedef struct Step {
    const Graph *g;
    MemLives lives;
} Step;

static Step step_of(Pool *pool, const Graph *g)
{
    return (Step){g, memplan_lives(pool, g)};
}

/* The slot in the step behind the last one, of the step without the run, in which root lives. */
static int end_in_step(const Step *step, const Step *c, ValueId root)
{
    for (size_t k = 0; k < c->g->order.len; k++) {
        NodeId id = c->g->order.data[k];
        if (c->lives.slot_of[id] == c->lives.last[root])
            return step->lives.slot_of[id] + 1;
    }
    BUG("a life ends in no operation");
}

static void add_instead(RerunEffect *e, ValueId v)
{
    for (int k = 0; k < e->n_instead; k++)
        if (e->instead[k] == v)
            return;
    e->instead[e->n_instead++] = v;
}

/* Output o of the run before: until when it is in memory, with the run and without it. */
static void compare_lives(const Step *step, const Step *c, int o, RerunEffect *e)
{
    ValueId v = graph_node(step->g, e->before)->out[o];
    ValueId with = value_root(step->g, v), root = value_root(c->g, v);
    int end = step->lives.last[with] + 1, later = end_in_step(step, c, root), n = e->n_instead;
    if (!has_reader(step->g, graph_node(step->g, e->node)->out[o], reads_at_all) ||
        (root == with && later <= end))
        return;
    add_instead(e, root);
    if (end > e->slot || e->n_instead == n)
        return;
    e->bytes += memplan_value_bytes(c->g, root);
    e->from = end > e->from ? end : e->from;
}

static void sort_by_bytes(const Graph *g, ValueId *v, int n)
{
    for (int i = 1; i < n; i++) {
        ValueId moved = v[i];
        int at = i;
        for (; at > 0 && memplan_value_bytes(g, v[at - 1]) < memplan_value_bytes(g, moved); at--)
            v[at] = v[at - 1];
        v[at] = moved;
    }
}

static RerunEffect effect_of(Pool *pool, const Step *step, NodeId run, NodeId before)
{
    Pool *scratch = pool_new_child(pool);
    Step c = step_of(scratch, without(scratch, step->g, run, before));
    int slot = step->lives.slot_of[run], n_out = graph_node(step->g, run)->n_out;
    RerunEffect e = {.node = run,
                     .before = before,
                     .slot = slot,
                     .before_slot = step->lives.slot_of[before],
                     .to = slot,
                     .without_peak_bytes =
                         c.lives.persistent_bytes + c.lives.load[c.lives.peak_slot],
                     .instead = POOL_ARRAY(pool, (size_t)n_out + 1, ValueId)};
    for (int o = 0; o < n_out; o++)
        compare_lives(step, &c, o, &e);
    e.from = e.bytes > 0 ? e.from : slot;
    e.spans_peak = e.from <= step->lives.peak_slot && step->lives.peak_slot < e.to;
    sort_by_bytes(step->g, e.instead, e.n_instead);
    pool_free(scratch);
    return e;
}

RerunEffect rerun_effect(Pool *pool, const Graph *g, NodeId run)
{
    NodeId before = rerun_before(g, run);
    if (before == NODE_NONE)
        BUG("node %u is no recomputation", run);
    Pool *scratch = pool_new_child(pool);
    Step step = step_of(scratch, g);
    RerunEffect e = effect_of(pool, &step, run, before);
    pool_free(scratch);
    return e;
}

RerunEffects rerun_effects(Pool *pool, const Graph *g)
{
    Pool *scratch = pool_new_child(pool);
    Step step = step_of(scratch, g);
    NodeId *latest = POOL_ARRAY(scratch, g->nodes.len + 1, NodeId); /* by first run; + 1 */
    RerunEffects all = {POOL_ARRAY(pool, g->order.len + 1, RerunEffect), 0};
    for (size_t k = 0; k < g->order.len; k++) {
        NodeId id = g->order.data[k], *before = &latest[rerun_first(g, id)];
        if (is_rerun(graph_node(g, id)) && *before)
            all.effect[all.n++] = effect_of(pool, &step, id, *before - 1);
        *before = node_runs(graph_node(g, id)) ? id + 1 : *before;
    }
    pool_free(scratch);
    return all;
}
