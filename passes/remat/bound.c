/* A lower bound on the peak of every schedule. */
#include "passes/remat/remat.h"

#include "ir/support/bitset.h"

/* No run can be the last reader of every version of it. */
static bool outlives_readers(const RematProblem *p, const RematTensor *t)
{
    return t->persistent || (t->keep && (t->producer < 0 || !p->node[t->producer].rerun));
}

/* An output that may be written over some input needs no room of its own. */
static bool may_merge(const RematProblem *p, const RematNode *node, int out)
{
    for (int k = 0; k < node->n_in_place; k++)
        if (node->in_place[k].out == out &&
            !outlives_readers(p, &p->tensor[node->in[node->in_place[k].in]]))
            return true;
    return false;
}

static int64_t operand_bytes(const RematProblem *p, const RematNode *node)
{
    int64_t bytes = node->workspace;
    for (int k = 0; k < node->n_in; k++)
        bytes += p->tensor[node->in[k]].persistent ? 0 : p->tensor[node->in[k]].bytes;
    for (int k = 0; k < node->n_out; k++)
        bytes += may_merge(p, node, k) ? 0 : p->tensor[node->out[k]].bytes;
    return bytes;
}

/* Tensors that cannot be made again: what the host writes, and outputs of nodes that run once. */
static bool irreplaceable(const RematProblem *p, int t)
{
    const RematTensor *x = &p->tensor[t];
    return x->bytes > 0 && !x->persistent && (x->producer < 0 || !p->node[x->producer].rerun);
}

static void mark_reachable(const RematProblem *p, int from, Bitset *after)
{
    for (int n = from; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in && !bitset_has(after, (size_t)n); k++) {
            int producer = p->tensor[p->node[n].in[k]].producer;
            if (producer >= 0 && bitset_has(after, (size_t)producer))
                bitset_add(after, (size_t)n);
        }
}

static void mark_leading(const RematProblem *p, Bitset *before)
{
    for (int n = p->n_nodes - 1; n >= 0; n--)
        for (int k = 0; bitset_has(before, (size_t)n) && k < p->node[n].n_in; k++) {
            int producer = p->tensor[p->node[n].in[k]].producer;
            if (producer >= 0)
                bitset_add(before, (size_t)producer);
        }
}

static bool reads(const RematNode *node, int tensor)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] == tensor)
            return true;
    return false;
}

/* Adds t's bytes at every node that must run after t exists and before it is last needed. */
static void add_spanning(const RematProblem *p, int t, int64_t *bytes, Pool *scratch)
{
    Pool *pool = pool_new_child(scratch);
    const RematTensor *x = &p->tensor[t];
    Bitset after = bitset_new(pool, (size_t)p->n_nodes),
           before = bitset_new(pool, (size_t)p->n_nodes);
    if (x->producer >= 0) {
        bitset_add(&after, (size_t)x->producer);
        mark_reachable(p, x->producer, &after);
    }
    for (int n = 0; n < p->n_nodes; n++)
        if (reads(&p->node[n], t))
            bitset_add(&before, (size_t)n);
    mark_leading(p, &before);
    for (int n = 0; n < p->n_nodes; n++) {
        bool made = x->producer < 0 || (bitset_has(&after, (size_t)n) && n != x->producer);
        bool needed = bitset_has(&before, (size_t)n) || x->keep;
        if (made && needed && !reads(&p->node[n], t))
            bytes[n] += x->bytes;
    }
    pool_free(pool);
}

/* O(nodes + edges) for each irreplaceable tensor, of which a step has few. */
int64_t remat_peak_lower_bound(const RematProblem *p, Pool *scratch, int *node_at)
{
    Pool *pool = pool_new_child(scratch);
    int64_t *bytes = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, int64_t), worst = 0;
    for (int n = 0; n < p->n_nodes; n++)
        bytes[n] = operand_bytes(p, &p->node[n]);
    for (int t = 0; t < p->n_tensors; t++)
        if (irreplaceable(p, t))
            add_spanning(p, t, bytes, pool);
    *node_at = -1;
    for (int n = 0; n < p->n_nodes; n++)
        if (*node_at < 0 || bytes[n] > worst) {
            worst = bytes[n];
            *node_at = n;
        }
    pool_free(pool);
    return p->persistent_bytes + worst;
}
