/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ExternalGraph -> RematProblem. */
#include "passes/remat/external/external.h"

#include <math.h>
#include <string.h>

static const int64_t MAX_BYTES = (int64_t)1 << 60; /* as of our own graphs */
static const double MAX_TIME = 1e300;
enum { MAX_NODES = 1 << 20, MAX_ITEMS = 1 << 24 };

static bool fail(Pool *pool, RematError *error, const char *help, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool fail(Pool *pool, RematError *error, const char *help, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *error = (RematError){"E409", pool_vprintf(pool, format, args), help};
    va_end(args);
    return false;
}

/* "nodes[3] 'conv1'" */
static const char *node_label(Pool *pool, const ExternalGraph *g, int64_t n)
{
    const char *name = g->node[n].name;
    return name ? pool_printf(pool, "nodes[%lld] '%s'", (long long)n, name)
                : pool_printf(pool, "nodes[%lld]", (long long)n);
}

/* Checks */

static bool check_counts(Pool *pool, const ExternalGraph *g, RematError *error)
{
    int64_t items = 0;
    if (g->n_nodes == 0)
        return fail(pool, error, NULL, "the graph has no nodes");
    if (g->n_nodes > MAX_NODES)
        return fail(pool, error, NULL, "the graph has %d nodes; %d are the most", g->n_nodes,
                    MAX_NODES);
    for (int n = 0; n < g->n_nodes; n++)
        items += (int64_t)g->node[n].n_in + g->node[n].n_out + g->node[n].n_overwrites;
    return items <= MAX_ITEMS ||
           fail(pool, error, NULL, "the graph has %lld inputs and outputs; %d are the most",
                (long long)items, MAX_ITEMS);
}

static bool add_bytes(int64_t *sum, int64_t bytes)
{
    return size_add(*sum, bytes, sum) && *sum <= MAX_BYTES;
}

static bool check_sums(Pool *pool, const ExternalGraph *g, RematError *error)
{
    int64_t bytes = 0;
    double time = 0;
    for (int n = 0; n < g->n_nodes; n++) {
        const ExternalNode *node = &g->node[n];
        bool ok = node->workspace >= 0 && add_bytes(&bytes, node->workspace);
        for (int k = 0; k < node->n_out && ok; k++)
            ok = node->out[k].bytes >= 0 && add_bytes(&bytes, node->out[k].bytes);
        if (!ok)
            return fail(pool, error, NULL,
                        "%s: a negative size, or all sizes up to here pass 2^60 bytes",
                        node_label(pool, g, n));
        time += node->time;
        if (!(node->time >= 0) || !(time <= MAX_TIME))
            return fail(pool, error, NULL,
                        "%s: a negative time, or all times up to here pass 1e300",
                        node_label(pool, g, n));
    }
    return true;
}

static bool check_ref(Pool *pool, const ExternalGraph *g, int n, const char *what, int k,
                      ExternalRef ref, RematError *error)
{
    if (ref.node < 0 || ref.node >= g->n_nodes)
        return fail(pool, error, NULL, "%s: %s[%d] names node %lld; the last is %d",
                    node_label(pool, g, n), what, k, (long long)ref.node, g->n_nodes - 1);
    if (ref.output < 0 || ref.output >= g->node[ref.node].n_out)
        return fail(pool, error, NULL, "%s: %s[%d] names output %lld of %s, which has %d",
                    node_label(pool, g, n), what, k, (long long)ref.output,
                    node_label(pool, g, ref.node), g->node[ref.node].n_out);
    return true;
}

static bool check_refs(Pool *pool, const ExternalGraph *g, RematError *error)
{
    for (int n = 0; n < g->n_nodes; n++) {
        const ExternalNode *node = &g->node[n];
        for (int k = 0; k < node->n_in; k++)
            if (!check_ref(pool, g, n, "inputs", k, node->in[k], error))
                return false;
        for (int k = 0; k < node->n_overwrites; k++)
            if (!check_ref(pool, g, n, "overwrites", k, node->overwrites[k], error))
                return false;
    }
    return true;
}

/* Whether `node` needs `target`, directly or not. */
static bool depends_on(Pool *pool, const ExternalGraph *g, int64_t node, int64_t target)
{
    Pool *scratch = pool_new_child(pool);
    bool *seen = POOL_ARRAY(scratch, (size_t)g->n_nodes, bool);
    int64_t *stack = POOL_ARRAY(scratch, (size_t)g->n_nodes + 1, int64_t), top = 0;
    seen[node] = true;
    for (stack[top++] = node; top > 0;) {
        const ExternalNode *x = &g->node[stack[--top]];
        for (int k = 0; k < x->n_in; k++)
            if (!seen[x->in[k].node]) {
                seen[x->in[k].node] = true;
                stack[top++] = x->in[k].node;
            }
    }
    bool found = seen[target];
    pool_free(scratch);
    return found;
}

static bool order_error(Pool *pool, const ExternalGraph *g, int n, int64_t later, RematError *error)
{
    const char *reader = node_label(pool, g, n), *made = node_label(pool, g, later);
    if (later == n)
        return fail(pool, error, NULL, "%s reads what it makes itself: a cycle", reader);
    if (depends_on(pool, g, later, n))
        return fail(pool, error, NULL, "%s and %s need each other: a cycle", reader, made);
    return fail(pool, error, "nodes have to stand in an order in which they can run",
                "%s reads %s, which comes later", reader, made);
}

/* By output: index of the first output of every node. */
static int *first_outputs(Pool *pool, const ExternalGraph *g)
{
    int *first = POOL_ARRAY(pool, (size_t)g->n_nodes + 1, int);
    for (int n = 0; n < g->n_nodes; n++)
        first[n + 1] = first[n] + g->node[n].n_out;
    return first;
}

static int tensor_of(const int *first, ExternalRef ref)
{
    return first[ref.node] + (int)ref.output;
}

static bool check_overwrites(Pool *pool, const ExternalGraph *g, const int *first, int n, int *gone,
                             RematError *error)
{
    const ExternalNode *node = &g->node[n];
    for (int k = 0; k < node->n_overwrites; k++) {
        ExternalRef ref = node->overwrites[k];
        if (ref.node >= n)
            return fail(pool, error, NULL, "%s overwrites %s, which does not exist yet",
                        node_label(pool, g, n), node_label(pool, g, ref.node));
        int by = gone[tensor_of(first, ref)];
        if (by >= 0 && by != n)
            return fail(pool, error, NULL, "%s overwrites output %lld of %s, as %s did before it",
                        node_label(pool, g, n), (long long)ref.output,
                        node_label(pool, g, ref.node), node_label(pool, g, by));
        gone[tensor_of(first, ref)] = n;
    }
    return true;
}

/* The order that the nodes stand in works. */
static bool check_order(Pool *pool, const ExternalGraph *g, RematError *error)
{
    const int *first = first_outputs(pool, g);
    int *gone = POOL_ARRAY(pool, (size_t)first[g->n_nodes] + 1, int); /* by tensor: overwriter */
    for (int t = 0; t < first[g->n_nodes]; t++)
        gone[t] = -1;
    for (int n = 0; n < g->n_nodes; n++) {
        const ExternalNode *node = &g->node[n];
        for (int k = 0; k < node->n_in; k++) {
            if (node->in[k].node >= n)
                return order_error(pool, g, n, node->in[k].node, error);
            int by = gone[tensor_of(first, node->in[k])];
            if (by >= 0)
                return fail(pool, error, "whoever reads a value stands before who overwrites it",
                            "%s reads output %lld of %s, which %s has overwritten",
                            node_label(pool, g, n), (long long)node->in[k].output,
                            node_label(pool, g, node->in[k].node), node_label(pool, g, by));
        }
        if (!check_overwrites(pool, g, first, n, gone, error))
            return false;
    }
    return true;
}

static bool check_graph(Pool *pool, const ExternalGraph *g, RematError *error)
{
    return check_counts(pool, g, error) && check_refs(pool, g, error) &&
           check_order(pool, g, error) && check_sums(pool, g, error);
}

/* The backward part of a forward graph */

/* By node: how many inputs of others it feeds. */
static int *count_readers(Pool *pool, const ExternalGraph *g)
{
    int *readers = POOL_ARRAY(pool, (size_t)g->n_nodes + 1, int);
    for (int n = 0; n < g->n_nodes; n++)
        for (int k = 0; k < g->node[n].n_in; k++)
            readers[g->node[n].in[k].node]++;
    return readers;
}

/* Gradients of v's inputs together; false on overflow. */
static bool gradient_bytes(const ExternalGraph *g, const int *first, int v, int *seen,
                           int64_t *bytes)
{
    *bytes = 0;
    for (int k = 0; k < g->node[v].n_in; k++) {
        ExternalRef ref = g->node[v].in[k];
        int t = tensor_of(first, ref);
        if (seen[t] != v && !add_bytes(bytes, g->node[ref.node].out[ref.output].bytes))
            return false;
        seen[t] = v;
    }
    return true;
}

/* Node b_v: reads what v reads, what v made, and the gradients that v's readers made. */
static ExternalNode backward_node(Pool *pool, const ExternalGraph *g, int v, int n_readers)
{
    const ExternalNode *from = &g->node[v];
    ExternalNode b = {.time = 2 * from->time, .rerun = true, .n_out = 1};
    size_t most = (size_t)from->n_in + (size_t)from->n_out + (size_t)n_readers;
    b.name = from->name ? pool_printf(pool, "b_%s", from->name) : pool_printf(pool, "b_%d", v);
    b.out = POOL_ARRAY(pool, 1, ExternalOutput);
    b.in = POOL_ARRAY(pool, most + 1, ExternalRef);
    for (int k = 0; k < from->n_in; k++)
        b.in[b.n_in++] = from->in[k];
    for (int k = 0; k < from->n_out; k++)
        b.in[b.n_in++] = (ExternalRef){v, k};
    return b;
}

static ExternalGraph *add_backward(Pool *pool, const ExternalGraph *g, RematError *error)
{
    int n = g->n_nodes, *readers = count_readers(pool, g);
    const int *first = first_outputs(pool, g);
    int *seen = POOL_ARRAY(pool, (size_t)first[n] + 1, int);
    memset(seen, -1, ((size_t)first[n] + 1) * sizeof *seen);
    ExternalGraph *step = POOL_NEW(pool, ExternalGraph);
    *step = (ExternalGraph){true, 2 * n, POOL_ARRAY(pool, 2 * (size_t)n, ExternalNode)};
    memcpy(step->node, g->node, (size_t)n * sizeof *g->node);
    for (int v = n - 1; v >= 0; v--)
        step->node[2 * n - 1 - v] = backward_node(pool, g, v, readers[v]);
    for (int w = n - 1; w >= 0; w--) { /* b_w is made before the b_v that read it */
        ExternalNode *b = &step->node[2 * n - 1 - w];
        if (!gradient_bytes(g, first, w, seen, &b->out[0].bytes)) {
            fail(pool, error, NULL, "%s: its inputs pass 2^60 bytes", node_label(pool, g, w));
            return NULL;
        }
        for (int k = 0; k < g->node[w].n_in; k++) {
            ExternalNode *of = &step->node[2 * n - 1 - g->node[w].in[k].node];
            of->in[of->n_in++] = (ExternalRef){2 * n - 1 - w, 0};
        }
    }
    return step;
}

/* The problem.  A persistent output is two tensors: its storage, which exists from the beginning,
 * and a mark of no bytes that says that the node has run. */

typedef struct Builder {
    const ExternalGraph *g;
    RematProblem *p;
    const int *first;
    int *seen; /* by tensor: the node that named it last */
} Builder;

static int *distinct(Builder *b, int n, const ExternalRef *refs, int count, int *n_out)
{
    int *tensors = POOL_ARRAY(b->p->pool, (size_t)count + 1, int);
    for (int k = 0; k < count; k++) {
        int t = tensor_of(b->first, refs[k]);
        if (b->seen[t] != n)
            tensors[(*n_out)++] = t;
        b->seen[t] = n;
    }
    return tensors;
}

static void forget(Builder *b)
{
    memset(b->seen, -1, ((size_t)b->first[b->g->n_nodes] + 1) * sizeof *b->seen);
}

static void add_storage(RematProblem *p, int64_t bytes, const char *name)
{
    p->tensor[p->n_tensors++] = (RematTensor){bytes, -1, true, false, name};
    p->persistent_bytes += bytes;
}

/* The file allows it, and it can save memory: one of its outputs need not be kept. */
static bool may_rerun(const ExternalNode *node)
{
    bool any = false;
    for (int k = 0; k < node->n_out; k++)
        any |= !node->out[k].persistent;
    return any && node->rerun;
}

static void add_node(Builder *b, int n)
{
    const ExternalNode *from = &b->g->node[n];
    RematNode *to = &b->p->node[n];
    const char *name = from->name ? from->name : pool_printf(b->p->pool, "nodes[%d]", n);
    *to = (RematNode){.name = name, .cost = from->time, .workspace = from->workspace};
    to->rerun = may_rerun(from) && from->n_overwrites == 0;
    to->in = distinct(b, n, from->in, from->n_in, &to->n_in);
    to->out = POOL_ARRAY(b->p->pool, (size_t)from->n_out + 1, int);
    for (int k = 0; k < from->n_out; k++) {
        const ExternalOutput *o = &from->out[k];
        int t = b->first[n] + k;
        to->out[to->n_out++] = t;
        b->p->tensor[t] =
            (RematTensor){o->persistent ? 0 : o->bytes, n, false, o->keep && !o->persistent, name};
        if (o->persistent)
            add_storage(b->p, o->bytes, name);
    }
}

/* Whoever runs our schedules may keep a weight and its update in one place: initializing the weight
 * again would undo the update.  docs/graphs.md allows such runs, so that a proof has to count with
 * them (external_every_rerun). */
static void add_overwrites(Builder *b, int n)
{
    const ExternalNode *from = &b->g->node[n];
    RematNode *to = &b->p->node[n];
    to->overwrites = distinct(b, n, from->overwrites, from->n_overwrites, &to->n_overwrites);
    for (int k = 0; k < from->n_overwrites; k++) {
        ExternalRef ref = from->overwrites[k];
        if (b->g->node[ref.node].out[ref.output].persistent)
            b->p->node[ref.node].rerun = false;
    }
}

/* A step does not say where its forward part ends: after the node over which most bytes reach that
 * were read before it and are read again after it.  Only solvers that papers define on a forward
 * graph look at this. */
static int turning_point(Pool *scratch, const RematProblem *p)
{
    int *begin = POOL_ARRAY(scratch, (size_t)p->n_tensors + 1, int);
    int64_t *change = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int64_t), sum = 0, most = 0;
    int at = p->n_nodes - 1;
    memset(begin, -1, ((size_t)p->n_tensors + 1) * sizeof *begin);
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++) {
            int t = p->node[n].in[k];
            if (begin[t] >= 0) {
                change[begin[t]] += p->tensor[t].bytes;
                change[n] -= p->tensor[t].bytes;
            }
            begin[t] = n;
        }
    for (int n = 0; n < p->n_nodes; n++) {
        sum += change[n];
        if (sum > most) {
            most = sum;
            at = n;
        }
    }
    return at;
}

static void mark_forward(Pool *scratch, const ExternalGraph *g, RematProblem *p)
{
    int last = g->forward ? g->n_nodes / 2 - 1 : turning_point(scratch, p);
    for (int n = 0; n <= last; n++)
        p->node[n].forward = true;
}

static RematProblem *build(Pool *pool, Pool *scratch, const ExternalGraph *g)
{
    Builder b = {.g = g, .p = POOL_NEW(pool, RematProblem), .first = first_outputs(scratch, g)};
    size_t n_out = (size_t)b.first[g->n_nodes];
    *b.p = (RematProblem){.pool = pool, .n_nodes = g->n_nodes, .n_tensors = (int)n_out};
    b.p->node = POOL_ARRAY(pool, (size_t)g->n_nodes + 1, RematNode);
    b.p->tensor = POOL_ARRAY(pool, 2 * n_out + 1, RematTensor);
    b.p->loss_node = -1;
    b.seen = POOL_ARRAY(scratch, n_out + 1, int);
    forget(&b);
    for (int n = 0; n < g->n_nodes; n++)
        add_node(&b, n);
    forget(&b);
    for (int n = 0; n < g->n_nodes; n++)
        add_overwrites(&b, n);
    mark_forward(scratch, g, b.p);
    return b.p;
}

RematProblem *external_problem(Pool *pool, const ExternalGraph *g, RematError *error)
{
    if (!check_graph(pool, g, error))
        return NULL;
    Pool *scratch = pool_new_child(pool);
    const ExternalGraph *step = g;
    if (g->forward)
        step = add_backward(pool, g, error);
    bool ok = step && (!g->forward || check_graph(pool, step, error));
    RematProblem *p = ok ? build(pool, scratch, step) : NULL;
    pool_free(scratch);
    return p;
}

RematProblem *external_every_rerun(Pool *pool, const ExternalGraph *g, const RematProblem *p)
{
    bool differs = false;
    RematProblem *every = POOL_NEW(pool, RematProblem);
    *every = *p;
    every->node = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, RematNode);
    memcpy(every->node, p->node, (size_t)p->n_nodes * sizeof *p->node);
    for (int n = 0; n < g->n_nodes; n++) { /* all of a backward part may run again as it is */
        every->node[n].rerun = may_rerun(&g->node[n]);
        differs |= every->node[n].rerun != p->node[n].rerun;
    }
    return differs ? every : NULL;
}
