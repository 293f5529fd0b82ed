/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The arena of a schedule: one buffer for every value of every run. */
#include "passes/remat/external/external.h"

#include "ir/support/bug.h"

typedef VEC(MemBuffer) BufferVec;

typedef struct Lives {
    const RematProblem *p;
    Pool *pool;
    BufferVec buffer;
    int *current; /* by tensor: its buffer, -1 = none */
} Lives;

static void add_run(Lives *l, int run, const RematNode *node)
{
    for (int k = 0; k < node->n_in; k++)
        if (l->current[node->in[k]] >= 0)
            l->buffer.data[l->current[node->in[k]]].upper = run + 1;
    for (int k = 0; k < node->n_out; k++) {
        l->current[node->out[k]] = (int)l->buffer.len;
        vec_push(l->pool, &l->buffer, (MemBuffer){run, run + 1, l->p->tensor[node->out[k]].bytes});
    }
    if (node->workspace > 0)
        vec_push(l->pool, &l->buffer, (MemBuffer){run, run + 1, node->workspace});
}

MemBuffer *external_buffers(Pool *pool, const RematProblem *p, const RematSchedule *s, int *n)
{
    Lives l = {.p = p, .pool = pool, .current = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, int)};
    for (int t = 0; t < p->n_tensors; t++)
        l.current[t] = -1;
    for (int i = 0; i < s->len; i++)
        add_run(&l, i, &p->node[s->node[i]]);
    for (int t = 0; t < p->n_tensors; t++)
        if (p->tensor[t].keep && l.current[t] >= 0)
            l.buffer.data[l.current[t]].upper = s->len;
    *n = (int)l.buffer.len;
    return l.buffer.data;
}

MemLayout external_layout(Pool *pool, const MemBuffer *buffers, int n, bool hurried)
{
    MemLayout layout =
        memplan_place_within(pool, buffers, n, 1, hurried ? MEMPLAN_SKETCH : MEMPLAN_EXACT_STEPS);
    const char *fault;
    if (!memplan_check(pool, buffers, n, &layout, &fault))
        BUG("the placement of a schedule is wrong: %s", fault);
    return layout;
}

void external_arena(Pool *scratch, const RematProblem *p, const RematSchedule *s, bool hurried,
                    ExternalPlan *out)
{
    Pool *pool = pool_new_child(scratch);
    int n;
    const MemBuffer *buffers = external_buffers(pool, p, s, &n);
    MemLayout layout = external_layout(pool, buffers, n, hurried);
    out->arena_bytes = p->persistent_bytes + layout.arena_bytes;
    out->arena_lower_bound_bytes = p->persistent_bytes + layout.lower_bound_bytes;
    out->hurried = hurried;
    pool_free(pool);
}
