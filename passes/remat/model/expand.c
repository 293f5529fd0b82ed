/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A schedule as a problem of its own. */
#include "passes/remat/model/schedule.h"

typedef struct Expand {
    const RematProblem *p;
    RematProblem *out;
    int *current; /* by tensor of p: the tensor of out that stands for it */
    int *before;  /* by tensor of out: the one that stood for the same before it, -1 = none */
} Expand;

static int add_tensor(Expand *e, int tensor, int producer)
{
    int t = e->out->n_tensors++;
    e->out->tensor[t] = e->p->tensor[tensor];
    e->out->tensor[t].producer = producer;
    e->out->tensor[t].keep = false;
    e->before[t] = e->current[tensor];
    e->current[tensor] = t;
    return t;
}

static int *current_of(const Expand *e, const int *tensors, int n)
{
    int *current = POOL_ARRAY(e->out->pool, (size_t)n + 1, int);
    for (int k = 0; k < n; k++)
        current[k] = e->current[tensors[k]];
    return current;
}

/* All versions of what it overwrites: in another order of the runs a reader of an earlier version
 * must not come behind it either. */
static void add_overwrites(Expand *e, const RematNode *from, RematNode *to)
{
    int n = 0;
    for (int k = 0; k < from->n_overwrites; k++)
        for (int t = e->current[from->overwrites[k]]; t >= 0; t = e->before[t])
            n++;
    to->overwrites = POOL_ARRAY(e->out->pool, (size_t)n + 1, int);
    to->n_overwrites = 0;
    for (int k = 0; k < from->n_overwrites; k++)
        for (int t = e->current[from->overwrites[k]]; t >= 0; t = e->before[t])
            to->overwrites[to->n_overwrites++] = t;
}

static void add_run(Expand *e, int run, int node)
{
    const RematNode *from = &e->p->node[node];
    RematNode *to = &e->out->node[run];
    *to = *from;
    to->in = current_of(e, from->in, from->n_in);
    add_overwrites(e, from, to);
    to->out = POOL_ARRAY(e->out->pool, (size_t)from->n_out + 1, int);
    for (int k = 0; k < from->n_out; k++)
        to->out[k] = add_tensor(e, from->out[k], run);
}

RematProblem *remat_expand(Pool *pool, const RematProblem *p, const RematSchedule *s)
{
    Expand e = {.p = p, .out = POOL_NEW(pool, RematProblem)};
    size_t n_tensors = (size_t)p->n_tensors + 1;
    for (int i = 0; i < s->len; i++)
        n_tensors += (size_t)p->node[s->node[i]].n_out;
    *e.out = (RematProblem){.pool = pool, .n_nodes = s->len, .loss_node = -1};
    e.out->persistent_bytes = p->persistent_bytes;
    e.out->node = POOL_ARRAY(pool, (size_t)s->len + 1, RematNode);
    e.out->tensor = POOL_ARRAY(pool, n_tensors, RematTensor);
    e.current = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int);
    e.before = POOL_ARRAY(pool, n_tensors, int);
    for (int t = 0; t < p->n_tensors; t++)
        e.current[t] = -1;
    for (int t = 0; t < p->n_tensors; t++)
        if (p->tensor[t].producer < 0)
            add_tensor(&e, t, -1);
    for (int i = 0; i < s->len; i++)
        add_run(&e, i, s->node[i]);
    for (int t = 0; t < p->n_tensors; t++)
        e.out->tensor[e.current[t]].keep |= p->tensor[t].keep;
    return e.out;
}
