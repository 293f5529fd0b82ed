/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Divide and conquer over a tree decomposition of the step.
 *
 * Source: Kumar, Purohit, Svitkina, Vee, Wang 2019, algorithm 1 (TWRemat) with the minimum fill-in
 * heuristic, and TWRemat(k) of section 4.3, which schedules parts of fewer than k bags in
 * topological order.  Neighbouring bags that are subsets are merged (lemma 1, once, at the top), a
 * part is split at the bag that leaves no more than half of its bags on any side (lemma 3).
 *
 * Differs: S holds all required outputs instead of a fake sink that reads them (the sink would be a
 * vertex of huge degree); those that only updates read or that end the step need to be made only
 * once.  Vertices of a separator that S does not depend on are not computed.  Calls with an empty
 * S' are skipped.  What a caller keeps in memory is not computed again, nor are nodes that may run
 * only once: their values stay.  Updates and what reads them are no part of the graph: each runs as
 * soon as its inputs exist and nothing reads the old version any more.  Afterwards recomputations
 * of values that may stay alive are deleted (prune.c), at several limits.  Without a k all powers
 * of two are tried.  A schedule of more than 64 runs a node is given up. */
#include "ir/support/sort.h"
#include "passes/remat/model/runs.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/tree_decomposition.h"
#include "passes/remat/solvers.h"

#include <limits.h>

typedef VEC(int) IntVec;

enum { MAX_RUNS_PER_NODE = 64, MAX_STEPS_PER_NODE = 4096 };

/* A subtree of bags, split at a balanced separator. */
typedef struct Part {
    int parent, n_bags;
    int child, sibling; /* first child and next sibling, -1 = none */
} Part;

typedef struct TwRemat {
    const RematProblem *p;
    Pool *pool;
    bool *late, *repeatable;
    int *vertex, *node, n_vertices; /* node -> vertex, -1 = late; vertex -> node, ascending */
    Csr pred;                       /* by vertex */
    TreeDecomposition tree;
    VEC(Part) part;
    int *owner; /* by vertex: the part whose separator has it */
    int twremat_leaf_bags;
    /* of one schedule: */
    IntVec runs; /* nodes */
    IntVec stack;
    int *held; /* by vertex: how many callers keep it in memory */
    bool *ran;
    int *mark, stamp;
    int *group, n_groups; /* by part: the last round of calls that it was part of */
    int64_t steps;
    bool too_long;
} TwRemat;

/* The graph of all nodes that are not late */

static void find_vertices(TwRemat *w)
{
    size_t n = (size_t)w->p->n_nodes + 1;
    w->vertex = POOL_ARRAY(w->pool, n, int);
    w->node = POOL_ARRAY(w->pool, n, int);
    w->repeatable = POOL_ARRAY(w->pool, n, bool);
    for (int k = 0; k < w->p->n_nodes; k++) {
        w->vertex[k] = w->late[k] ? -1 : w->n_vertices;
        if (w->late[k])
            continue;
        w->repeatable[w->n_vertices] = is_repeatable(w->p, w->late, k);
        w->node[w->n_vertices++] = k;
    }
}

static int *find_edges(TwRemat *w, int *n_edges)
{
    int most = 0, n = 0;
    for (int v = 0; v < w->n_vertices; v++)
        most += w->p->node[w->node[v]].n_in;
    int *edges = POOL_ARRAY(w->pool, 2 * (size_t)most + 1, int);
    w->pred = csr_new(w->pool, w->n_vertices);
    for (int v = 0; v < w->n_vertices; v++) {
        const RematNode *node = &w->p->node[w->node[v]];
        for (int k = 0; k < node->n_in; k++) {
            int producer = w->p->tensor[node->in[k]].producer;
            if (producer < 0)
                continue;
            edges[2 * n] = w->vertex[producer];
            edges[2 * n++ + 1] = v;
            csr_count(&w->pred, v);
        }
    }
    csr_close(&w->pred, w->pool, n);
    for (int k = 0; k < n; k++)
        csr_store(&w->pred, edges[2 * k + 1], edges[2 * k]);
    *n_edges = n;
    return edges;
}

/* Parts */

typedef struct Splitter {
    TwRemat *w;
    Csr near;   /* of bags */
    bool *gone; /* bag: was a separator */
    int *size, *from;
    IntVec list; /* of the component that is looked at, from its first bag outwards */
} Splitter;

static void list_component(Splitter *s, int bag)
{
    s->list.len = 0;
    s->from[bag] = -1;
    vec_push(s->w->pool, &s->list, bag);
    for (size_t k = 0; k < s->list.len; k++) {
        int b = s->list.data[k];
        s->size[b] = 1;
        for (int i = s->near.begin[b]; i < s->near.begin[b + 1]; i++) {
            int c = s->near.item[i];
            if (c == s->from[b] || s->gone[c])
                continue;
            s->from[c] = b;
            vec_push(s->w->pool, &s->list, c);
        }
    }
}

/* Lemma 3: the bag farthest out that has at least half of the component behind it. */
static int find_separator(Splitter *s)
{
    int total = (int)s->list.len, best = s->list.data[0];
    for (size_t k = s->list.len; k-- > 0;) {
        int b = s->list.data[k];
        if (s->from[b] >= 0)
            s->size[s->from[b]] += s->size[b];
        if (2 * s->size[b] >= total)
            return b;
    }
    return best;
}

static bool has_free_vertices(const Splitter *s)
{
    const Csr *bag = &s->w->tree.bag;
    for (size_t k = 0; k < s->list.len; k++)
        for (int i = bag->begin[s->list.data[k]]; i < bag->begin[s->list.data[k] + 1]; i++)
            if (s->w->owner[bag->item[i]] < 0)
                return true;
    return false;
}

/* The part of the component of this bag, and those below it; -1 when all its vertices are gone.
 * Recursion: at most log2(bags) deep. */
static int split(Splitter *s, int bag, int parent)
{
    TwRemat *w = s->w;
    list_component(s, bag);
    if (!has_free_vertices(s))
        return -1;
    int id = (int)w->part.len, cut = find_separator(s);
    vec_push(w->pool, &w->part, (Part){parent, (int)s->list.len, -1, -1});
    s->gone[cut] = true;
    for (int i = w->tree.bag.begin[cut]; i < w->tree.bag.begin[cut + 1]; i++)
        if (w->owner[w->tree.bag.item[i]] < 0)
            w->owner[w->tree.bag.item[i]] = id;
    for (int i = s->near.begin[cut]; i < s->near.begin[cut + 1]; i++) {
        if (s->gone[s->near.item[i]])
            continue;
        int child = split(s, s->near.item[i], id);
        if (child < 0)
            continue;
        w->part.data[child].sibling = w->part.data[id].child;
        w->part.data[id].child = child;
    }
    return id;
}

static void split_all(TwRemat *w)
{
    Splitter s = {.w = w};
    const TreeDecomposition *t = &w->tree;
    size_t n = (size_t)t->n_bags + 1;
    s.gone = POOL_ARRAY(w->pool, n, bool);
    s.size = POOL_ARRAY(w->pool, n, int);
    s.from = POOL_ARRAY(w->pool, n, int);
    s.near = csr_new(w->pool, t->n_bags);
    for (int b = 0; b < t->n_bags; b++)
        if (t->parent[b] >= 0) {
            csr_count(&s.near, b);
            csr_count(&s.near, t->parent[b]);
        }
    csr_close(&s.near, w->pool, 2 * t->n_bags);
    for (int b = 0; b < t->n_bags; b++)
        if (t->parent[b] >= 0) {
            csr_store(&s.near, b, t->parent[b]);
            csr_store(&s.near, t->parent[b], b);
        }
    w->owner = POOL_ARRAY(w->pool, (size_t)w->n_vertices + 1, int);
    for (int v = 0; v < w->n_vertices; v++)
        w->owner[v] = -1;
    if (t->n_bags > 0)
        split(&s, 0, -1);
}

/* Scheduling */

/* The child of part that vertex v belongs to; part itself when v is in its separator; -1 when v is
 * not in the part at all. */
static int child_with(const TwRemat *w, int part, int v)
{
    int below = w->owner[v];
    if (below == part)
        return part;
    while (below >= 0 && w->part.data[below].parent != part)
        below = w->part.data[below].parent;
    return below;
}

static bool is_available(const TwRemat *w, int v)
{
    return w->held[v] > 0 || (w->ran[v] && !w->repeatable[v]);
}

static void push(TwRemat *w, int v)
{
    vec_push(w->pool, &w->stack, v);
}

static void emit(TwRemat *w, int v)
{
    if (is_available(w, v))
        return;
    vec_push(w->pool, &w->runs, w->node[v]);
    w->ran[v] = true;
    w->too_long |= (int64_t)w->runs.len > (int64_t)MAX_RUNS_PER_NODE * w->n_vertices + 1024;
}

/* Pushes what has to run inside the part for the vertices of stack[from, to), ascending: themselves
 * and their ancestors in the part, as far as they are not in memory. */
static void push_needed(TwRemat *w, int part, size_t from, size_t to)
{
    size_t begin = w->stack.len;
    w->stamp++;
    for (size_t k = from; k < to; k++) {
        int v = w->stack.data[k];
        if (w->mark[v] == w->stamp || is_available(w, v))
            continue;
        w->mark[v] = w->stamp;
        push(w, v);
    }
    for (size_t k = begin; k < w->stack.len; k++) {
        int v = w->stack.data[k];
        for (int i = w->pred.begin[v]; i < w->pred.begin[v + 1]; i++) {
            int u = w->pred.item[i];
            w->steps++;
            if (w->mark[u] == w->stamp || is_available(w, u) || child_with(w, part, u) < 0)
                continue;
            w->mark[u] = w->stamp;
            push(w, u);
        }
    }
    w->too_long |= w->steps > (int64_t)MAX_STEPS_PER_NODE * w->n_vertices + 1024;
    if (w->stack.len - begin > 1)
        sort_ints(w->stack.data + begin, w->stack.len - begin);
}

static void schedule_part(TwRemat *w, int part, size_t from, size_t to, bool once);

static bool is_in_child(const TwRemat *w, int part, int v)
{
    int child = child_with(w, part, v);
    return child >= 0 && child != part;
}

/* Computes those of stack[from, to) that lie in one child, and holds them.  once: what has run
 * before needs no second run, and nothing is held. */
static void schedule_child(TwRemat *w, int part, int child, size_t from, size_t to, bool once)
{
    size_t begin = w->stack.len;
    for (size_t i = from; i < to; i++) {
        int v = w->stack.data[i];
        if (child_with(w, part, v) == child && !is_available(w, v) && !(once && w->ran[v]))
            push(w, v);
    }
    if (begin < w->stack.len)
        schedule_part(w, child, begin, w->stack.len, once);
    w->stack.len = begin;
    for (size_t i = from; i < to && !once; i++)
        w->held[w->stack.data[i]] += child_with(w, part, w->stack.data[i]) == child;
}

/* All of stack[from, to) that lie in children of the part, child by child. */
static void schedule_children(TwRemat *w, int part, size_t from, size_t to, bool once)
{
    int id = ++w->n_groups; /* deeper calls look at other parts */
    for (size_t k = from; k < to && !w->too_long; k++) {
        int v = w->stack.data[k], child = child_with(w, part, v);
        if (!is_in_child(w, part, v) || w->group[child] == id)
            continue;
        w->group[child] = id;
        schedule_child(w, part, child, k, to, once);
    }
}

static void release_children(TwRemat *w, int part, size_t from, size_t to)
{
    for (size_t k = from; k < to; k++)
        w->held[w->stack.data[k]] -= is_in_child(w, part, w->stack.data[k]);
}

/* A vertex of the separator: its inputs from every child, then itself; it stays. */
static void schedule_vertex(TwRemat *w, int part, int v)
{
    size_t begin = w->stack.len;
    for (int i = w->pred.begin[v]; i < w->pred.begin[v + 1]; i++)
        push(w, w->pred.item[i]);
    size_t end = w->stack.len;
    schedule_children(w, part, begin, end, false);
    if (w->too_long)
        return;
    emit(w, v);
    release_children(w, part, begin, end);
    w->held[v]++;
    w->stack.len = begin;
}

/* Algorithm 1 for S = stack[from, to).  Recursion: at most log2(bags) deep. */
static void schedule_part(TwRemat *w, int part, size_t from, size_t to, bool once)
{
    size_t begin = w->stack.len;
    push_needed(w, part, from, to);
    size_t end = w->stack.len, n = begin;
    bool is_base = w->part.data[part].n_bags < w->twremat_leaf_bags;
    for (size_t k = begin; k < end; k++) {
        int v = w->stack.data[k];
        if (is_base)
            emit(w, v);
        else if (w->owner[v] == part)
            w->stack.data[n++] = v;
    }
    w->stack.len = n;
    for (size_t k = begin; k < n && !w->too_long; k++)
        schedule_vertex(w, part, w->stack.data[k]);
    if (!is_base)
        schedule_children(w, part, from, to, once);
    if (w->too_long)
        return;
    if (!is_base && !once)
        release_children(w, part, from, to);
    for (size_t k = begin; k < n; k++)
        w->held[w->stack.data[k]]--;
    w->stack.len = begin;
}

/* Required: what nothing in the graph reads, results of the step, and what updates read. */
static void push_required(TwRemat *w, Pool *scratch)
{
    const RematProblem *p = w->p;
    bool *read = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, bool);
    bool *required = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, bool);
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++) {
            int producer = p->tensor[p->node[n].in[k]].producer;
            if (producer >= 0)
                (w->late[n] ? required : read)[producer] = true;
        }
    for (int v = 0; v < w->n_vertices; v++) {
        const RematNode *node = &p->node[w->node[v]];
        bool wanted = required[w->node[v]] || !read[w->node[v]];
        for (int k = 0; k < node->n_out; k++)
            wanted |= p->tensor[node->out[k]].keep;
        if (wanted)
            push(w, v);
    }
}

/* False when the schedule becomes too long. */
static bool schedule_all(TwRemat *w, Pool *scratch, int twremat_leaf_bags)
{
    size_t n = (size_t)w->n_vertices + 1;
    w->twremat_leaf_bags = twremat_leaf_bags;
    w->held = POOL_ARRAY(scratch, n, int);
    w->ran = POOL_ARRAY(scratch, n, bool);
    w->mark = POOL_ARRAY(scratch, n, int);
    w->group = POOL_ARRAY(scratch, w->part.len + 1, int);
    w->runs.len = w->stack.len = 0;
    w->stamp = w->n_groups = 0;
    w->steps = 0;
    w->too_long = false;
    push_required(w, scratch);
    if (w->part.len > 0)
        schedule_part(w, 0, 0, w->stack.len, true);
    return !w->too_long;
}

/* How many limits to prune at. */
static int prune_steps(int n_runs)
{
    return n_runs < 10000 ? 8 : n_runs < 100000 ? 3 : 1;
}

RematStatus remat_twremat(const RematProblem *p, const RematOptions *o, Pool *pool,
                          RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    TwRemat w = {.p = p, .pool = scratch, .late = update_nodes(scratch, p)};
    int n_edges;
    find_vertices(&w);
    int *edges = find_edges(&w, &n_edges);
    w.tree = tree_decomposition(scratch, w.n_vertices, edges, n_edges);
    split_all(&w);
    Candidates *c = candidates_new(scratch, forward_view_new(scratch, p), o);
    bool all = true;
    int first = o->twremat_leaf_bags > 0 ? o->twremat_leaf_bags : 1,
        last = o->twremat_leaf_bags > 0 ? first : w.tree.n_bags;
    for (int k = first; k <= last; k = k > INT_MAX / 2 ? INT_MAX : 2 * k) {
        Pool *once = pool_new_child(scratch);
        bool whole = !remat_out_of_time(o) && schedule_all(&w, once, k);
        if (whole)
            candidates_try_runs(c, w.late, w.runs.data, (int)w.runs.len,
                                prune_steps((int)w.runs.len));
        pool_free(once);
        all &= whole;
    }
    if (o->notes)
        o->notes->treewidth = w.tree.width;
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status == REMAT_INFEASIBLE && !all ? REMAT_LIMIT : status;
}
