/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A loop of T steps becomes a loop of T/k steps around one of k steps, and so does its gradient,
 * whose body first runs the inner loop again from what the outer one kept (Griewank and Walther
 * 2000, "Algorithm 799: Revolve": with one level, k near the root of T; with two, near its third
 * roots).
 *
 * Works behind `fuse`, on the pair of a loop and its gradient that autodiff has made: results of
 * the loop that are its carries, element by element, are what the gradient begins its steps with.
 */
#include "passes/loop_checkpoints.h"

#include "ir/loop.h"
#include "passes/loops.h"
#include "passes/rewrite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pair {
    NodeId forward, backward;
    int64_t bytes; /* of the states */
} Pair;

typedef VEC(Pair) Pairs;

/* The carry that result r of a loop has, step by step; -1: it is something else. */
static int carry_of_result(const Node *loop, int r)
{
    LoopShape s = loop_shape(loop);
    for (int i = 0; r >= s.carries && i < s.carries; i++)
        if (loop->body->outputs.data[r].value == loop_body_input(loop->body, i))
            return i;
    return -1;
}

/* The carry of `forward` that input j of `backward` is, or -1. */
static int state_of_input(const Graph *g, NodeId forward, const Node *backward, int j)
{
    LoopShape s = loop_shape(backward);
    const Value *v = graph_value(g, backward->in[j]);
    if (v->def != forward || j < s.carries || j >= s.carries + s.slices)
        return -1;
    return carry_of_result(graph_node(g, forward), v->out_index);
}

/* Divisors only: every step is in a full run. */
static int64_t steps_to_run_again(int64_t steps, int levels)
{
    int64_t best = 0;
    double wanted = pow((double)steps, levels / (levels + 1.0)), nearest = INFINITY;
    for (int64_t k = 2; k <= steps / 2; k++) {
        double off = fabs(log((double)k / wanted));
        if (steps % k != 0 || off >= nearest || (levels > 1 && !steps_to_run_again(k, levels - 1)))
            continue;
        nearest = off;
        best = k;
    }
    return best;
}

/* For a dim more of all it reads and makes. */
static bool has_room(const Graph *g, const Node *loop)
{
    for (int i = 0; i < loop->n_in + loop->n_out; i++) {
        ValueId v = i < loop->n_in ? loop->in[i] : loop->out[i - loop->n_in];
        if (value_type(g, v)->rank == TYPE_MAX_RANK)
            return false;
    }
    return true;
}

/* The backward loop reads the states and nothing else does, and there is room for another dim. */
static bool is_pair(const Graph *g, const int *uses, NodeId forward, NodeId backward)
{
    const Node *f = graph_node(g, forward), *b = graph_node(g, backward);
    LoopShape s = loop_shape(f), t = loop_shape(b);
    if (s.steps != t.steps || s.reverse == t.reverse || !steps_to_run_again(s.steps, 1) ||
        f->hint != REMAT_AUTO || b->hint != REMAT_AUTO)
        return false;
    int states = 0;
    for (int j = 0; j < b->n_in; j++)
        if (state_of_input(g, forward, b, j) >= 0) {
            if (uses[b->in[j]] != 1)
                return false;
            states++;
        }
    return states > 0 && has_room(g, f) && has_room(g, b);
}

static int by_bytes(const void *a, const void *b)
{
    const Pair *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->forward < y->forward ? -1 : x->forward > y->forward;
}

static Pairs find_pairs(const Graph *g, Pool *scratch)
{
    Pairs pairs = {0};
    const int *uses = count_uses(g, scratch);
    for (size_t k = 0; k < g->order.len; k++) {
        NodeId backward = g->order.data[k];
        const Node *b = graph_node(g, backward);
        Pair p = {NODE_NONE, backward, 0};
        for (int j = 0; node_is_loop(b) && j < b->n_in; j++) {
            NodeId forward = graph_value(g, b->in[j])->def;
            if (!node_is_loop(graph_node(g, forward)) || state_of_input(g, forward, b, j) < 0)
                continue;
            if (p.forward == NODE_NONE && is_pair(g, uses, forward, backward))
                p.forward = forward;
            if (p.forward == forward)
                p.bytes += type_bytes(value_type(g, b->in[j]));
        }
        if (p.forward != NODE_NONE)
            vec_push(scratch, &pairs, p);
    }
    if (pairs.len)
        qsort(pairs.data, pairs.len, sizeof *pairs.data, by_bytes);
    return pairs;
}

int loops_with_states(const Graph *g)
{
    Pool *scratch = pool_new_child(g->pool);
    int n = (int)find_pairs(g, scratch).len;
    pool_free(scratch);
    return n;
}

/* ---- the rewrite ---- */

typedef VEC(ValueId) Values;

typedef struct Split {
    Graph *g;
    Pool *scratch;
    Node forward, backward; /* copies: adding nodes moves the graph's */
    LoopShape f, b;
    int64_t runs, steps; /* runs of so many steps */
    ValueId *kept;       /* by carry of the forward loop: [runs, ..] what each run began with */
} Split;

static ValueId reshaped(Graph *g, ValueId v, const Type *to, Loc loc)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, to->dim, to->rank);
    return graph_add(g, OP_reshape, &v, 1, &attrs, NULL, loc);
}

/* [T, ..] as [runs, steps, ..] */
static ValueId in_runs(Split *s, ValueId v)
{
    Type t = *value_type(s->g, v), to = {.dtype = t.dtype, .rank = t.rank + 1};
    to.dim[0] = s->runs;
    to.dim[1] = s->steps;
    memcpy(to.dim + 2, t.dim + 1, (size_t)(t.rank - 1) * sizeof *t.dim);
    return reshaped(s->g, v, &to, s->forward.loc);
}

/* [runs, steps, ..] as [T, ..] */
static ValueId in_steps(Split *s, ValueId v)
{
    Type t = *value_type(s->g, v), to = {.dtype = t.dtype, .rank = t.rank - 1};
    to.dim[0] = s->runs * s->steps;
    memcpy(to.dim + 1, t.dim + 2, (size_t)(t.rank - 2) * sizeof *t.dim);
    return reshaped(s->g, v, &to, s->forward.loc);
}

static Type without_first(const Type *t)
{
    Type to = {.dtype = t->dtype, .rank = t->rank - 1};
    memcpy(to.dim, t->dim + 1, (size_t)to.rank * sizeof *t->dim);
    return to;
}

static ValueId body_input(Graph *body, const Graph *g, ValueId like, const Type *type, Loc loc)
{
    AttrList none = {0};
    return graph_add_source(body, OP_input, *type, &none,
                            pool_printf(body->pool, "%%%s", graph_value(g, like)->name + 1), loc);
}

static Graph *new_body(Pool *pool)
{
    Graph *body = graph_new(pool, "body");
    body->kind = "body";
    return body;
}

static void add_result(Graph *body, ValueId v)
{
    graph_add_output(body, pool_printf(body->pool, "out%zu", body->outputs.len), v);
}

/* A copy of a loop's body with some of its results only. */
static Graph *body_with(Pool *pool, const Node *loop, const bool *wanted)
{
    Graph *body = graph_copy(pool, loop->body);
    size_t n = body->outputs.len;
    body->outputs.len = 0;
    for (size_t r = 0; r < n; r++)
        if (wanted[r])
            add_result(body, body->outputs.data[r].value);
    return body;
}

static bool is_state(const Split *s, int r)
{
    for (int j = 0; j < s->backward.n_in; j++)
        if (s->backward.in[j] == s->forward.out[r])
            return carry_of_result(&s->forward, r) >= 0;
    return false;
}

static const char *runs_name(const Split *s, const Node *loop)
{
    return pool_printf(s->g->pool, "%s.runs", graph_value(s->g, loop->out[0])->name);
}

/* The loop itself: runs of steps, each of which keeps what it begins with. */
static void split_forward(Split *s, Rewrite *r)
{
    const Node *f = &s->forward;
    Pool *pool = s->g->pool;
    Graph *run = new_body(pool);
    Values outer = {0}, inner = {0};
    bool *wanted = POOL_ARRAY(s->scratch, (size_t)f->n_out + 1, bool);
    for (int i = 0; i < f->n_in; i++) {
        bool slice = i >= s->f.carries && i < s->f.carries + s->f.slices;
        ValueId v = slice ? in_runs(s, f->in[i]) : f->in[i];
        Type t = slice ? without_first(value_type(s->g, v)) : *value_type(s->g, v);
        vec_push(s->scratch, &outer, v);
        vec_push(s->scratch, &inner, body_input(run, s->g, v, &t, f->loc));
    }
    for (int i = 0; i < f->n_out; i++)
        wanted[i] = !is_state(s, i);
    LoopShape shape = s->f;
    shape.steps = s->steps;
    NodeId steps = graph_add_loop(run, inner.data, (int)inner.len, &shape,
                                  body_with(pool, f, wanted), NULL, f->loc);
    for (int i = 0; i < graph_node(run, steps)->n_out; i++)
        add_result(run, graph_node(run, steps)->out[i]);
    for (int i = 0; i < s->f.carries; i++)
        add_result(run, inner.data[i]);
    shape.steps = s->runs;
    NodeId whole =
        graph_add_loop(s->g, outer.data, (int)outer.len, &shape, run, runs_name(s, f), f->loc);
    int next = 0;
    for (int i = 0; i < f->n_out; i++) {
        if (!wanted[i])
            continue;
        ValueId v = graph_node(s->g, whole)->out[next++];
        rewrite_replace(r, f->out[i], i < s->f.carries ? v : in_steps(s, v));
    }
    s->kept = POOL_ARRAY(s->scratch, (size_t)s->f.carries + 1, ValueId);
    for (int i = 0; i < s->f.carries; i++)
        s->kept[i] = graph_node(s->g, whole)->out[next++];
}

/* Inputs of the body of the backward loop's runs. */
typedef struct Inputs {
    Values outer, inner;
    int carries, slices;
} Inputs;

static ValueId inner_of(const Inputs *in, int from, ValueId outer)
{
    for (size_t k = (size_t)from; k < in->outer.len; k++)
        if (in->outer.data[k] == outer)
            return in->inner.data[k];
    return VALUE_NONE;
}

static void add_input(Split *s, Inputs *in, Graph *run, ValueId outer, bool slice)
{
    Type t = *value_type(s->g, outer);
    if (slice)
        t = without_first(&t);
    vec_push(s->scratch, &in->outer, outer);
    vec_push(s->scratch, &in->inner, body_input(run, s->g, outer, &t, s->backward.loc));
}

/* Slices and constants of both loops, each once.  run_of: by value, its form in runs. */
static void add_inputs(Split *s, Inputs *in, Graph *run, ValueId *run_of)
{
    const Node *loops[2] = {&s->forward, &s->backward};
    const LoopShape *shape[2] = {&s->f, &s->b};
    for (int i = 0; i < s->b.carries; i++)
        add_input(s, in, run, s->backward.in[i], false);
    in->carries = s->b.carries;
    for (int i = 0; i < s->f.carries; i++)
        add_input(s, in, run, s->kept[i], true);
    for (int l = 0; l < 2; l++)
        for (int i = shape[l]->carries; i < shape[l]->carries + shape[l]->slices; i++) {
            ValueId v = loops[l]->in[i];
            if (run_of[v] != VALUE_NONE)
                continue;
            run_of[v] = in_runs(s, v);
            add_input(s, in, run, run_of[v], true);
        }
    in->slices = (int)in->outer.len - in->carries;
    int first = in->carries + in->slices;
    for (int l = 0; l < 2; l++)
        for (int i = shape[l]->carries + shape[l]->slices; i < loops[l]->n_in; i++)
            if (inner_of(in, first, loops[l]->in[i]) == VALUE_NONE)
                add_input(s, in, run, loops[l]->in[i], false);
}

/* The steps of a run once more, with their carries as results.  state[i]: of carry i. */
static NodeId run_again(Split *s, const Inputs *in, Graph *run, const ValueId *run_of,
                        ValueId *state)
{
    const Node *f = &s->forward;
    Values args = {0};
    bool *wanted = POOL_ARRAY(s->scratch, (size_t)f->n_out + 1, bool);
    for (int i = 0; i < s->f.carries; i++)
        vec_push(s->scratch, &args, in->inner.data[in->carries + i]);
    for (int i = s->f.carries; i < f->n_in; i++) {
        bool slice = i < s->f.carries + s->f.slices;
        vec_push(s->scratch, &args,
                 slice ? inner_of(in, in->carries, run_of[f->in[i]])
                       : inner_of(in, in->carries + in->slices, f->in[i]));
    }
    for (int i = 0; i < f->n_out; i++)
        wanted[i] = i < s->f.carries || is_state(s, i);
    LoopShape shape = s->f;
    shape.steps = s->steps;
    NodeId again = graph_add_loop(run, args.data, (int)args.len, &shape,
                                  body_with(s->g->pool, f, wanted), NULL, f->loc);
    int next = s->f.carries;
    for (int i = s->f.carries; i < f->n_out; i++)
        if (wanted[i])
            state[carry_of_result(f, i)] = graph_node(run, again)->out[next++];
    return again;
}

static NodeId gradient_of_run(Split *s, const Inputs *in, Graph *run, const ValueId *run_of,
                              const ValueId *state)
{
    const Node *b = &s->backward;
    Values args = {0};
    for (int i = 0; i < b->n_in; i++) {
        bool slice = i >= s->b.carries && i < s->b.carries + s->b.slices;
        int carry = -1;
        for (int r = 0; slice && r < s->forward.n_out; r++)
            if (b->in[i] == s->forward.out[r])
                carry = carry_of_result(&s->forward, r);
        vec_push(s->scratch, &args,
                 i < s->b.carries ? in->inner.data[i]
                 : carry >= 0     ? state[carry]
                 : slice          ? inner_of(in, in->carries, run_of[b->in[i]])
                                  : inner_of(in, in->carries + in->slices, b->in[i]));
    }
    LoopShape shape = s->b;
    shape.steps = s->steps;
    return graph_add_loop(run, args.data, (int)args.len, &shape, graph_copy(s->g->pool, b->body),
                          NULL, b->loc);
}

static void checkpoint_pair(Graph *g, NodeId forward, NodeId backward, int levels);

static void split_backward(Split *s, Rewrite *r, int levels)
{
    const Node *b = &s->backward;
    Graph *run = new_body(s->g->pool);
    Inputs in = {0};
    ValueId *run_of = POOL_ARRAY(s->scratch, s->g->values.len + 1, ValueId);
    ValueId *state = POOL_ARRAY(s->scratch, (size_t)s->f.carries + 1, ValueId);
    for (size_t v = 0; v < s->g->values.len; v++)
        run_of[v] = VALUE_NONE;
    for (int i = 0; i < s->forward.n_out; i++)
        if (is_state(s, i))
            run_of[s->forward.out[i]] = s->forward.out[i]; /* made in the run */
    add_inputs(s, &in, run, run_of);
    NodeId again = run_again(s, &in, run, run_of, state);
    NodeId steps = gradient_of_run(s, &in, run, run_of, state);
    for (int i = 0; i < graph_node(run, steps)->n_out; i++)
        add_result(run, graph_node(run, steps)->out[i]);
    if (levels > 1)
        checkpoint_pair(run, again, steps, levels - 1);
    LoopShape shape = s->b;
    shape.steps = s->runs;
    shape.slices = in.slices;
    NodeId whole = graph_add_loop(s->g, in.outer.data, (int)in.outer.len, &shape, run,
                                  runs_name(s, b), b->loc);
    for (int i = 0; i < b->n_out; i++) {
        ValueId v = graph_node(s->g, whole)->out[i];
        rewrite_replace(r, b->out[i], i < s->b.carries ? v : in_steps(s, v));
    }
}

static void checkpoint_pair(Graph *g, NodeId forward, NodeId backward, int levels)
{
    Pool *scratch = pool_new_child(g->pool);
    Split s = {.g = g, .scratch = scratch};
    Rewrite r = rewrite_begin(g, scratch);
    for (size_t i = 0; i < r.n_old; i++) {
        NodeId id = r.old_order[i];
        rewrite_inputs(&r, id);
        if (id == forward) {
            s.forward = *graph_node(g, forward);
            s.backward = *graph_node(g, backward);
            s.f = loop_shape(&s.forward);
            s.b = loop_shape(&s.backward);
            s.steps = steps_to_run_again(s.f.steps, levels);
            s.runs = s.f.steps / s.steps;
            split_forward(&s, &r);
        } else if (id == backward) {
            s.backward = *graph_node(g, backward);
            split_backward(&s, &r, levels);
        } else {
            rewrite_keep(&r, id);
        }
    }
    rewrite_end(&r);
    pool_free(scratch);
}

const char *loops_checkpoint(Graph *g, int n, int levels)
{
    Pool *scratch = pool_new_child(g->pool);
    Pairs pairs = find_pairs(g, scratch);
    const char *text = "";
    for (int i = 0; i < n && i < (int)pairs.len; i++) {
        const Pair *p = &pairs.data[i];
        const Node *f = graph_node(g, p->forward);
        int64_t steps = node_int(f, ATTR_steps, 0);
        int deep = steps_to_run_again(steps, levels) ? levels : 1;
        text = pool_printf(g->pool, "%s%s%s keeps every %lldth of its %lld states%s", text,
                           *text ? ", " : "", graph_value(g, f->out[0])->name,
                           (long long)steps_to_run_again(steps, deep), (long long)steps,
                           deep > 1 ? " and fewer while it runs them again" : "");
        checkpoint_pair(g, p->forward, p->backward, deep);
    }
    plan_loops(scratch, g);
    pool_free(scratch);
    return text;
}
