/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lets pieces of a tensor lie inside the whole, without copies.
 *
 * A concatenation copies its inputs, a slice a piece of its input, and often both copies stay alive
 * for the backward pass.  After every decision that depends on the budget:
 *   join     an input of a concat is computed at its place in the result (ir/strided_view.h);
 *   reread   whoever reads such an input after the concat reads that piece of the result instead,
 *            so that an input whose kernel cannot write at strides dies at the concat;
 *   subview  a slice becomes a name for a piece of its input.
 * Only operations that read at strides take part; the arithmetic does not change.
 *
 * Each is weighed on the lives of the step, in program order, and kept when the largest load falls,
 * or stays and no more bytes are alive elsewhere.  The result is kept when its plan needs no more
 * than the largest load of the old graph: no plan of that one can be smaller. */
#include "passes/views.h"
#include "ir/strided_view.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "passes/view_lives.h"

#include <limits.h>

typedef struct Views {
    Graph *g;
    Pool *scratch;
    ViewLives *lives;
    UseList *uses;     /* by value */
    bool *is_output;   /* by value of the old graph */
    VEC(NodeId) added; /* subviews, each to stand behind the concat that it reads */
    bool changed;
} Views;

static size_t count_concat_inputs(const Graph *g)
{
    size_t sum = 0;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        sum += n->op == OP_concat ? (size_t)n->n_in : 0;
    }
    return sum;
}

static bool readers_fit(const Views *s, ValueId v);

/* What lies in v, when that is a concatenation, can be written and read where it lies. */
static bool parts_fit(const Views *s, ValueId v)
{
    const Node *n = value_node(s->g, v);
    for (int i = 0; n->op == OP_concat && i < n->n_in; i++)
        if (concat_has_joined(n, i) &&
            !(value_is_written_strided(s->g, n->in[i]) && readers_fit(s, n->in[i])))
            return false;
    return true;
}

/* Every reader of v, through subviews of it, can read it where it lies. */
static bool readers_fit(const Views *s, ValueId v)
{
    if (!parts_fit(s, v))
        return false;
    for (size_t k = 0; k < s->uses[v].len; k++) {
        Use use = s->uses[v].data[k];
        const Node *n = graph_node(s->g, use.node);
        if (!node_reads_strided(s->g, n, use.input) ||
            (n->op == OP_subview && !readers_fit(s, n->out[0])))
            return false;
    }
    return true;
}

/* A value of the step's own, with storage of its own. */
static bool owns_storage(const Views *s, ValueId v)
{
    return !node_is_source(value_node(s->g, v)) && value_root(s->g, v) == v &&
           value_storage(s->g, v) == VALUE_NONE && !s->is_output[v];
}

/* Join */

static bool may_join(const Views *s, const Node *concat, int i)
{
    for (int k = 0; k < i; k++)
        if (concat->in[k] == concat->in[i])
            return false;
    return owns_storage(s, concat->in[i]) && value_is_written_strided(s->g, concat->in[i]);
}

/* The whole now lives as long as its part. */
static void take_in(Views *s, ValueId whole, ValueId part)
{
    Life old = s->lives->life[part], life = s->lives->life[whole];
    view_lives_remove(s->lives, part);
    if (old.birth < life.birth) {
        life.birth = old.birth;
        view_lives_set(s->lives, whole, life);
    }
    view_lives_extend(s->lives, whole, old.last);
}

static void separate(Graph *g, Node *concat, Attr *attr, int n_attr)
{
    for (int i = 0; i < concat->n_in; i++)
        if (concat_has_joined(concat, i))
            graph_value(g, concat->in[i])->part_of = VALUE_NONE;
    concat->attr = attr;
    concat->n_attr = n_attr;
    concat_note_parts(g, graph_value(g, concat->out[0])->def);
}

/* Inputs [from, to) at once, those that may. */
static bool try_join(Views *s, NodeId id, int from, int to)
{
    Node *n = graph_node(s->g, id);
    Attr *attr = n->attr;
    int n_attr = n->n_attr;
    bool fits = true, any = false;
    for (int i = from; i < to; i++) {
        if (!may_join(s, n, i))
            continue;
        concat_join(s->g, id, i);
        fits = fits && value_is_written_strided(s->g, n->in[i]) && readers_fit(s, n->in[i]);
        take_in(s, value_root(s->g, n->out[0]), n->in[i]);
        any = true;
    }
    if (!fits)
        view_lives_undo(s->lives);
    if (any && fits && view_lives_keep(s->lives, true))
        return s->changed = true;
    separate(s->g, n, attr, n_attr);
    return false;
}

static void join_inputs(Views *s, NodeId id)
{
    int n_in = graph_node(s->g, id)->n_in;
    if (s->is_output[graph_node(s->g, id)->out[0]] || try_join(s, id, 0, n_in))
        return;
    for (int i = n_in; i-- > 0;)
        try_join(s, id, i, i + 1);
}

/* Reread */

/* Readers of an input that could read its piece of the concat instead, later than it. */
static void find_late_readers(const Views *s, NodeId concat, int i, UseList *late, int *stays)
{
    Node *n = graph_node(s->g, concat);
    Attr *attr = n->attr;
    int n_attr = n->n_attr;
    UseList *uses = &s->uses[n->in[i]];
    *stays = s->lives->m.slot_of[concat];
    concat_join(s->g, concat, i); /* as if, for the question below */
    for (size_t k = 0; k < uses->len; k++) {
        const Node *reader = graph_node(s->g, uses->data[k].node);
        if (node_is_view(reader)) { /* one that was added has no slot */
            *stays = INT_MAX;
            continue;
        }
        int slot = s->lives->m.slot_of[uses->data[k].node];
        bool fits = node_reads_strided(s->g, reader, uses->data[k].input);
        if (slot > s->lives->m.slot_of[concat] && fits)
            vec_push(s->scratch, late, uses->data[k]);
        else if (slot > *stays)
            *stays = slot;
    }
    separate(s->g, n, attr, n_attr);
}

static ValueId add_subview(Views *s, NodeId concat, int input)
{
    const Node *n = graph_node(s->g, concat);
    const Type *out = value_type(s->g, n->out[0]);
    int64_t start[TYPE_MAX_RANK] = {0}, limit[TYPE_MAX_RANK], step[TYPE_MAX_RANK];
    int axis = concat_axis(s->g, n);
    for (int d = 0; d < out->rank; d++) {
        limit[d] = out->dim[d];
        step[d] = 1;
    }
    for (int i = 0; i < input; i++)
        start[axis] += value_type(s->g, n->in[i])->dim[axis];
    limit[axis] = start[axis] + value_type(s->g, n->in[input])->dim[axis];
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_start, start, out->rank);
    attrs_ints(&attrs, ATTR_limit, limit, out->rank);
    attrs_ints(&attrs, ATTR_step, step, out->rank);
    const char *name =
        pool_printf(s->scratch, "%s.part%d", graph_value(s->g, n->out[0])->name, input);
    ValueId whole = n->out[0], v = graph_add(s->g, OP_subview, &whole, 1, &attrs, name, n->loc);
    vec_push(s->scratch, &s->added, graph_value(s->g, v)->def);
    s->g->order.len--;
    return v;
}

static void read_piece(Views *s, NodeId concat, int input, const UseList *late)
{
    ValueId x = graph_node(s->g, concat)->in[input], piece = add_subview(s, concat, input);
    UseList *uses = &s->uses[x];
    size_t kept = 0;
    for (size_t k = 0; k < late->len; k++)
        graph_node(s->g, late->data[k].node)->in[late->data[k].input] = piece;
    for (size_t k = 0; k < uses->len; k++)
        if (graph_node(s->g, uses->data[k].node)->in[uses->data[k].input] == x)
            uses->data[kept++] = uses->data[k];
    uses->len = kept;
    s->uses[piece] = *late;
    Use use = {graph_value(s->g, piece)->def, 0};
    vec_push(s->scratch, &s->uses[graph_node(s->g, concat)->out[0]], use);
}

static void reread_input(Views *s, NodeId concat, int input)
{
    const Node *n = graph_node(s->g, concat);
    ValueId x = n->in[input], whole = value_root(s->g, n->out[0]);
    if (!owns_storage(s, x))
        return;
    UseList late = {0};
    int stays;
    find_late_readers(s, concat, input, &late, &stays);
    Life life = s->lives->life[x];
    if (late.len == 0 || stays >= life.last)
        return;
    view_lives_set(s->lives, x, (Life){.birth = life.birth, .last = stays});
    view_lives_extend(s->lives, whole, life.last);
    if (view_lives_keep(s->lives, false)) {
        read_piece(s, concat, input, &late);
        s->changed = true;
    }
}

/* Subviews */

static bool may_name(const Views *s, const Node *n)
{
    ValueId out = n->out[0];
    return n->op == OP_slice && !s->is_output[out] && value_is_dense(s->g, out) &&
           value_storage(s->g, value_root(s->g, n->in[0])) == VALUE_NONE;
}

/* Slices [from, to) of the readers of v at once, those that may. */
static void try_name(Views *s, ValueId v, size_t from, size_t to)
{
    VEC(NodeId) named = {0};
    for (size_t k = from; k < to; k++) {
        Node *n = graph_node(s->g, s->uses[v].data[k].node);
        if (!may_name(s, n))
            continue;
        n->op = OP_subview;
        if (!readers_fit(s, n->out[0])) {
            n->op = OP_slice;
            continue;
        }
        int last = s->lives->life[n->out[0]].last;
        view_lives_remove(s->lives, n->out[0]);
        view_lives_extend(s->lives, value_root(s->g, v), last);
        vec_push(s->scratch, &named, s->uses[v].data[k].node);
    }
    bool kept = named.len > 0 && view_lives_keep(s->lives, true);
    for (size_t k = 0; k < named.len && !kept; k++)
        graph_node(s->g, named.data[k])->op = OP_slice;
    s->changed = s->changed || kept;
}

/* All slices of v, and those that are left one by one. */
static void name_slices(Views *s, ValueId v)
{
    size_t n = s->uses[v].len;
    try_name(s, v, 0, n);
    for (size_t k = 0; k < n; k++)
        try_name(s, v, k, k + 1);
}

/* Each subview behind the concat that it reads. */
static void place_added(Views *s)
{
    Graph *g = s->g;
    VEC(NodeId) order = {0};
    size_t next = 0; /* they were added in the order of their concats */
    for (size_t k = 0; k < g->order.len; k++) {
        NodeId id = g->order.data[k];
        vec_push(s->scratch, &order, id);
        for (; next < s->added.len; next++) {
            const Node *sub = graph_node(g, s->added.data[next]);
            if (graph_value(g, sub->in[0])->def != id)
                break;
            vec_push(s->scratch, &order, s->added.data[next]);
        }
    }
    g->order.len = 0;
    for (size_t k = 0; k < order.len; k++)
        vec_push(g->pool, &g->order, order.data[k]);
}

/* What is tried: a plan may not reach the load that the lives promise. */
typedef enum Attempt { CONCATS_AND_SLICES, CONCATS, SLICES, ATTEMPTS } Attempt;

static void change(Views *s, Attempt attempt)
{
    Graph *g = s->g;
    size_t n = g->order.len;
    for (size_t k = 0; k < n && attempt != SLICES; k++) {
        NodeId id = g->order.data[k];
        if (graph_node(g, id)->op != OP_concat)
            continue;
        join_inputs(s, id);
        for (int i = 0; i < graph_node(g, id)->n_in; i++)
            reread_input(s, id, i);
    }
    for (size_t k = 0; k < n && attempt != CONCATS; k++)
        if (graph_node(g, g->order.data[k])->op == OP_slice)
            name_slices(s, graph_node(g, g->order.data[k])->in[0]);
    place_added(s);
}

/* A copy of the graph with what is worth it, NULL when nothing is; *load_bytes: its largest load
 * before. */
static Graph *with_views(Pool *pool, Pool *scratch, const Graph *g, Attempt attempt,
                         int64_t *load_bytes)
{
    Views s = {.g = graph_copy(pool, g), .scratch = scratch};
    s.lives = view_lives_new(scratch, s.g);
    *load_bytes = s.lives->peak_bytes;
    s.uses = list_uses(s.g, scratch, count_concat_inputs(s.g)); /* and of subviews of them */
    s.is_output = mark_outputs(s.g, scratch);
    change(&s, attempt);
    return s.changed ? s.g : NULL;
}

int64_t views_load(Pool *pool, const Graph *g)
{
    Pool *scratch = pool_new_child(pool);
    int64_t whole, pieces;
    Graph *tried = with_views(scratch, scratch, g, CONCATS_AND_SLICES, &whole);
    pieces = tried ? view_lives_new(scratch, tried)->peak_bytes : whole;
    pool_free(scratch);
    return pieces < whole ? pieces : whole;
}

static bool has_pieces(const Graph *g)
{
    for (size_t k = 0; k < g->order.len; k++) {
        OpKind op = graph_node(g, g->order.data[k])->op;
        if (op == OP_concat || op == OP_slice)
            return true;
    }
    return false;
}

Graph *views_of(Pool *pool, const Graph *g, MemEffort effort, PlacementCache *cache,
                int64_t *arena_bytes)
{
    Graph *found = NULL;
    int attempts = has_pieces(g) ? (effort == MEMPLAN_FINAL ? ATTEMPTS : 1) : 0;
    for (Attempt a = 0; (int)a < attempts && !found; a++) {
        Pool *scratch = pool_new_child(pool);
        int64_t load;
        Graph *tried = with_views(pool, scratch, g, a, &load);
        const MemPlan *plan = tried ? memplan_graph(scratch, tried, MEMPLAN_TRIAL, cache) : NULL;
        if (plan && plan->arena_bytes - plan->persistent_bytes <= load) {
            found = tried;
            *arena_bytes = plan->arena_bytes;
        }
        pool_free(scratch);
    }
    return found;
}

static bool is_no_larger(Pool *pool, const Graph *g, const Graph *changed, MemEffort effort,
                         PlacementCache *cache)
{
    int64_t most = views_load(pool, g), bytes;
    if (views_load(pool, changed) > most)
        return false;
    Pool *scratch = pool_new_child(pool);
    const Graph *tried = views_of(scratch, changed, effort, cache, &bytes);
    const MemPlan *plan = memplan_graph(scratch, tried ? tried : changed, effort, cache);
    bool fits = plan->arena_bytes - plan->persistent_bytes <= most;
    pool_free(scratch);
    return fits;
}

void change_no_larger(PassContext *ctx, GraphChange *make, MemEffort effort)
{
    if (ctx->request.no_views || ctx->for_device || !memplan_is_countable(ctx->graph))
        return;
    Pool *scratch = pool_new_child(ctx->pool);
    Graph *g = make(ctx->graph->pool, scratch, ctx->graph);
    if (g && is_no_larger(scratch, ctx->graph, g, effort, ctx->placement_cache))
        ctx->graph = g;
    pool_free(scratch);
}

bool pass_views(PassContext *ctx)
{
    int64_t arena_bytes;
    if (ctx->request.no_views || !memplan_is_countable(ctx->graph))
        return true;
    Graph *g =
        views_of(ctx->graph->pool, ctx->graph, MEMPLAN_FINAL, ctx->placement_cache, &arena_bytes);
    ctx->graph = g ? g : ctx->graph;
    return true;
}
