/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A loop of T steps becomes a loop of T/k steps around one of k steps, and so does its gradient,
 * whose body first runs the inner loop again from what the outer one kept (Griewank and Walther
 * 2000, "Algorithm 799: Revolve": with one level, k near the root of T where a step keeps no more
 * than it begins with; with two, near its third roots).  Where k does not divide T, the last steps
 * are a loop of their own, whose gradient runs nothing again.
 *
 * Works behind `fuse`, on the pair of a loop and its gradient that autodiff has made: what the loop
 * keeps of its steps for this gradient alone, a run of k steps keeps when it runs again. */
#include "passes/loop_checkpoints.h"

#include "passes/loop_pairs.h"
#include "passes/loops.h"
#include "passes/rewrite.h"

#include <string.h>

int loops_with_states(const Graph *g)
{
    Pool *scratch = pool_new_child(g->pool);
    int n = (int)loop_pairs(g, scratch).len;
    pool_free(scratch);
    return n;
}

double loops_bytes_of_states(const Graph *g)
{
    Pool *scratch = pool_new_child(g->pool);
    LoopPairs pairs = loop_pairs(g, scratch);
    double bytes = 0;
    for (size_t i = 0; i < pairs.len; i++)
        bytes += pairs.data[i].kept_bytes * (double)pairs.data[i].steps;
    pool_free(scratch);
    return bytes;
}

/* ---- the rewrite ---- */

typedef VEC(ValueId) Values;

/* Elements of the slices and results of a loop. */
typedef struct Part {
    int64_t first, n;
} Part;

typedef struct Split {
    Graph *g;
    Pool *scratch;
    Node forward, backward; /* copies: adding nodes moves the graph's */
    LoopShape f, b;
    LoopPair pair;
    int64_t runs, steps; /* runs of so many steps */
    Part main, rest;     /* all of these, and the last steps of the forward loop */
    const bool *is_kept; /* by result of the forward loop: for its gradient alone */
    ValueId *start;      /* by carry of the forward loop: [runs, ..] what each run began with */
    ValueId *rest_kept;  /* by result of the forward loop that is kept: of the last steps */
} Split;

static ValueId reshaped(Graph *g, ValueId v, const Type *to, Loc loc)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, to->dim, to->rank);
    return graph_add(g, OP_reshape, &v, 1, &attrs, NULL, loc);
}

/* Of the elements of v. */
static ValueId part_of(Split *s, ValueId v, Part part)
{
    const Type t = *value_type(s->g, v);
    int64_t start[TYPE_MAX_RANK] = {part.first}, limit[TYPE_MAX_RANK];
    if (t.dim[0] == part.n)
        return v;
    memcpy(limit, t.dim, sizeof limit);
    limit[0] = part.first + part.n;
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_start, start, t.rank);
    attrs_ints(&attrs, ATTR_limit, limit, t.rank);
    return graph_add(s->g, OP_slice, &v, 1, &attrs, NULL, s->forward.loc);
}

/* [T, ..] as [runs, steps, ..], without the last steps */
static ValueId in_runs(Split *s, ValueId v)
{
    v = part_of(s, v, s->main);
    Type t = *value_type(s->g, v), to = {.dtype = t.dtype, .rank = t.rank + 1};
    to.dim[0] = s->runs;
    to.dim[1] = s->steps;
    memcpy(to.dim + 2, t.dim + 1, (size_t)(t.rank - 1) * sizeof *t.dim);
    return reshaped(s->g, v, &to, s->forward.loc);
}

/* [runs, steps, ..] and what the last steps made as [T, ..] */
static ValueId in_steps(Split *s, ValueId v, ValueId rest)
{
    Type t = *value_type(s->g, v), to = {.dtype = t.dtype, .rank = t.rank - 1};
    to.dim[0] = s->runs * s->steps;
    memcpy(to.dim + 1, t.dim + 2, (size_t)(t.rank - 2) * sizeof *t.dim);
    v = reshaped(s->g, v, &to, s->forward.loc);
    if (rest == VALUE_NONE)
        return v;
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 0);
    bool before = s->rest.first == 0;
    return graph_add(s->g, OP_concat, (const ValueId[]){before ? rest : v, before ? v : rest}, 2,
                     &attrs, NULL, s->forward.loc);
}

/* The last steps of the forward loop, or, first of all, their gradient: carries as they are here.
 * NODE_NONE where there are none. */
static NodeId add_rest(Split *s, const Node *loop, const ValueId *carries)
{
    LoopShape shape = loop_shape(loop);
    Values in = {0};
    if (s->rest.n == 0)
        return NODE_NONE;
    for (int i = 0; i < loop->n_in; i++) {
        const Value *v = graph_value(s->g, loop->in[i]);
        bool slice = i >= shape.carries && i < shape.carries + shape.slices;
        bool kept = slice && v->def == s->pair.forward && s->is_kept[v->out_index];
        vec_push(s->scratch, &in,
                 i < shape.carries ? carries[i]
                 : kept            ? s->rest_kept[v->out_index]
                 : slice           ? part_of(s, loop->in[i], s->rest)
                                   : loop->in[i]);
    }
    shape.steps = s->rest.n;
    const char *name = pool_printf(s->g->pool, "%s.rest", graph_value(s->g, loop->out[0])->name);
    return graph_add_loop(s->g, in.data, (int)in.len, &shape, graph_copy(s->g->pool, loop->body),
                          name, loop->loc);
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
        wanted[i] = !s->is_kept[i];
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
    const ValueId *made = graph_node(s->g, whole)->out;
    NodeId rest = add_rest(s, f, made);
    int next = 0;
    s->start = POOL_ARRAY(s->scratch, (size_t)s->f.carries + 1, ValueId);
    s->rest_kept = POOL_ARRAY(s->scratch, (size_t)f->n_out + 1, ValueId);
    for (int i = 0; i < f->n_out; i++) {
        ValueId last = rest == NODE_NONE ? VALUE_NONE : graph_node(s->g, rest)->out[i];
        s->rest_kept[i] = last;
        if (!wanted[i])
            continue;
        ValueId v = made[next++];
        rewrite_replace(r, f->out[i],
                        i >= s->f.carries    ? in_steps(s, v, last)
                        : last != VALUE_NONE ? last
                                             : v);
    }
    for (int i = 0; i < s->f.carries; i++)
        s->start[i] = made[next++];
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
static void add_inputs(Split *s, Inputs *in, Graph *run, const ValueId *carries, ValueId *run_of)
{
    const Node *loops[2] = {&s->forward, &s->backward};
    const LoopShape *shape[2] = {&s->f, &s->b};
    for (int i = 0; i < s->b.carries; i++)
        add_input(s, in, run, carries[i], false);
    in->carries = s->b.carries;
    for (int i = 0; i < s->f.carries; i++)
        add_input(s, in, run, s->start[i], true);
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

/* The steps of a run once more, with what is kept of them as results: kept, by result of the loop.
 */
static NodeId run_again(Split *s, const Inputs *in, Graph *run, const ValueId *run_of,
                        ValueId *kept)
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
        wanted[i] = i < s->f.carries || s->is_kept[i];
    LoopShape shape = s->f;
    shape.steps = s->steps;
    NodeId again = graph_add_loop(run, args.data, (int)args.len, &shape,
                                  body_with(s->g->pool, f, wanted), NULL, f->loc);
    int next = s->f.carries;
    for (int i = s->f.carries; i < f->n_out; i++)
        if (wanted[i])
            kept[i] = graph_node(run, again)->out[next++];
    return again;
}

static NodeId gradient_of_run(Split *s, const Inputs *in, Graph *run, const ValueId *run_of,
                              const ValueId *kept)
{
    const Node *b = &s->backward;
    Values args = {0};
    for (int i = 0; i < b->n_in; i++) {
        const Value *v = graph_value(s->g, b->in[i]);
        bool slice = i >= s->b.carries && i < s->b.carries + s->b.slices;
        bool here = slice && v->def == s->pair.forward && s->is_kept[v->out_index];
        vec_push(s->scratch, &args,
                 i < s->b.carries ? in->inner.data[i]
                 : here           ? kept[v->out_index]
                 : slice          ? inner_of(in, in->carries, run_of[b->in[i]])
                                  : inner_of(in, in->carries + in->slices, b->in[i]));
    }
    LoopShape shape = s->b;
    shape.steps = s->steps;
    return graph_add_loop(run, args.data, (int)args.len, &shape, graph_copy(s->g->pool, b->body),
                          NULL, b->loc);
}

/* Of at most so many levels; which it is. */
static int checkpoint_pair(Graph *g, const LoopPair *pair, int levels);

/* The pair of a loop that runs again and its gradient. */
static void checkpoint_run(Split *s, Graph *run, int levels)
{
    LoopPairs pairs = loop_pairs(run, s->scratch);
    if (levels > 0 && pairs.len > 0)
        checkpoint_pair(run, &pairs.data[0], levels);
}

static void split_backward(Split *s, Rewrite *r, int levels)
{
    const Node *b = &s->backward;
    Graph *run = new_body(s->g->pool);
    Inputs in = {0};
    NodeId rest = add_rest(s, b, b->in);
    ValueId *kept = POOL_ARRAY(s->scratch, (size_t)s->forward.n_out + 1, ValueId);
    size_t n_values = s->g->values.len;
    ValueId *run_of = POOL_ARRAY(s->scratch, n_values + 1, ValueId);
    for (size_t v = 0; v < n_values; v++)
        run_of[v] = VALUE_NONE;
    for (int i = 0; i < s->forward.n_out; i++)
        if (s->is_kept[i])
            run_of[s->forward.out[i]] = s->forward.out[i]; /* made in the run */
    add_inputs(s, &in, run, rest == NODE_NONE ? b->in : graph_node(s->g, rest)->out, run_of);
    run_again(s, &in, run, run_of, kept);
    NodeId steps = gradient_of_run(s, &in, run, run_of, kept);
    for (int i = 0; i < graph_node(run, steps)->n_out; i++)
        add_result(run, graph_node(run, steps)->out[i]);
    checkpoint_run(s, run, levels - 1);
    LoopShape shape = s->b;
    shape.steps = s->runs;
    shape.slices = in.slices;
    NodeId whole = graph_add_loop(s->g, in.outer.data, (int)in.outer.len, &shape, run,
                                  runs_name(s, b), b->loc);
    for (int i = 0; i < b->n_out; i++) {
        ValueId v = graph_node(s->g, whole)->out[i];
        ValueId last = rest == NODE_NONE ? VALUE_NONE : graph_node(s->g, rest)->out[i];
        rewrite_replace(r, b->out[i], i < s->b.carries ? v : in_steps(s, v, last));
    }
}

static void begin_split(Split *s, const LoopPair *pair, int levels)
{
    s->pair = *pair;
    s->forward = *graph_node(s->g, pair->forward);
    s->backward = *graph_node(s->g, pair->backward);
    s->f = loop_shape(&s->forward);
    s->b = loop_shape(&s->backward);
    s->steps = loop_run_length(pair, levels);
    s->runs = s->f.steps / s->steps;
    s->main.n = s->runs * s->steps;
    s->rest.n = s->f.steps - s->main.n;
    *(s->f.reverse ? &s->main.first : &s->rest.first) = s->f.reverse ? s->rest.n : s->main.n;
}

static int checkpoint_pair(Graph *g, const LoopPair *pair, int levels)
{
    Pool *scratch = pool_new_child(g->pool);
    Split s = {.g = g, .scratch = scratch};
    while (levels > 1 && loop_run_length(pair, levels) == 0)
        levels--;
    s.is_kept = loop_kept_results(g, scratch, pair->forward, pair->backward);
    Rewrite r = rewrite_begin(g, scratch);
    for (size_t i = 0; i < r.n_old; i++) {
        NodeId id = r.old_order[i];
        rewrite_inputs(&r, id);
        if (id == pair->forward) {
            begin_split(&s, pair, levels);
            split_forward(&s, &r);
        } else if (id == pair->backward) {
            s.backward = *graph_node(g, pair->backward);
            split_backward(&s, &r, levels);
        } else {
            rewrite_keep(&r, id);
        }
    }
    rewrite_end(&r);
    pool_free(scratch);
    return levels;
}

const char *loops_checkpoint(Graph *g, int n, int levels)
{
    Pool *scratch = pool_new_child(g->pool);
    LoopPairs pairs = loop_pairs(g, scratch);
    const char *text = "";
    for (int i = 0; i < n && i < (int)pairs.len; i++) {
        const LoopPair *p = &pairs.data[i];
        const char *name = graph_value(g, graph_node(g, p->forward)->out[0])->name;
        int done = checkpoint_pair(g, p, levels);
        text =
            pool_printf(g->pool, "%s%s%s keeps every %lldth of its %lld states%s", text,
                        *text ? ", " : "", name, (long long)loop_run_length(p, done),
                        (long long)p->steps, done > 1 ? " and fewer while it runs them again" : "");
    }
    plan_loops(scratch, g);
    pool_free(scratch);
    return text;
}
