/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/runs.h"

#include "ir/support/sort.h"

#include <string.h>

bool *update_nodes(Pool *pool, const RematProblem *p)
{
    bool *late = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, bool);
    for (int n = 0; n < p->n_nodes; n++) {
        const RematNode *node = &p->node[n];
        late[n] = node->n_overwrites > 0;
        for (int k = 0; k < node->n_in; k++) {
            int producer = p->tensor[node->in[k]].producer;
            late[n] |= producer >= 0 && late[producer];
        }
    }
    return late;
}

bool is_repeatable(const RematProblem *p, const bool *late, int node)
{
    return p->node[node].rerun && p->node[node].hint != REMAT_KEEP && !late[node];
}

/* Putting late nodes in */

typedef struct Merge {
    const RematProblem *p;
    const bool *late;
    const int *runs;
    int n_runs;
    int *first_run; /* by node that is not late */
    int *last_read; /* by tensor: the position after which its last reader runs */
    int *after;     /* by late node: the position that it follows, -1 = the beginning */
} Merge;

static void at_least(int *a, int b)
{
    *a = b > *a ? b : *a;
}

static void place_late_node(Merge *m, int n, int floor)
{
    const RematNode *node = &m->p->node[n];
    int after = floor;
    for (int k = 0; k < node->n_in; k++) {
        int producer = m->p->tensor[node->in[k]].producer;
        if (producer >= 0)
            at_least(&after, m->late[producer] ? m->after[producer] : m->first_run[producer]);
    }
    for (int k = 0; k < node->n_overwrites; k++)
        at_least(&after, m->last_read[node->overwrites[k]]);
    m->after[n] = after;
    for (int k = 0; k < node->n_in; k++)
        at_least(&m->last_read[node->in[k]], after);
}

static void place_late(Merge *m, const int *floor)
{
    const RematProblem *p = m->p;
    for (int t = 0; t < p->n_tensors; t++)
        m->last_read[t] = -1;
    for (int i = m->n_runs - 1; i >= 0; i--)
        m->first_run[m->runs[i]] = i;
    for (int i = 0; i < m->n_runs; i++)
        for (int k = 0; k < p->node[m->runs[i]].n_in; k++)
            m->last_read[p->node[m->runs[i]].in[k]] = i;
    for (int n = 0; n < p->n_nodes; n++)
        if (m->late[n])
            place_late_node(m, n, floor ? floor[n] : -1);
}

RematSchedule merge_late(Pool *pool, const RematProblem *p, const bool *late, const int *runs,
                         int n_runs, const int *floor)
{
    Pool *scratch = pool_new_child(pool);
    Merge m = {.p = p, .late = late, .runs = runs, .n_runs = n_runs};
    m.first_run = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int);
    m.after = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int);
    m.last_read = POOL_ARRAY(scratch, (size_t)p->n_tensors + 1, int);
    place_late(&m, floor);
    Csr at = csr_new(scratch, n_runs + 1);
    int total = n_runs;
    for (int n = 0; n < p->n_nodes; n++)
        if (late[n]) {
            csr_count(&at, m.after[n] + 1);
            total++;
        }
    csr_close(&at, scratch, total);
    for (int n = 0; n < p->n_nodes; n++)
        if (late[n])
            csr_store(&at, m.after[n] + 1, n);
    RematSchedule s = {0, POOL_ARRAY(pool, (size_t)total + 1, int)};
    for (int i = 0; i <= n_runs; i++) {
        if (i > 0)
            s.node[s.len++] = runs[i - 1];
        for (int k = at.begin[i]; k < at.begin[i + 1]; k++)
            s.node[s.len++] = at.item[k];
    }
    pool_free(scratch);
    return s;
}

/* Lists of runs */

RunList run_list_new(Pool *pool, const RematProblem *p)
{
    return (RunList){.p = p,
                     .pool = pool,
                     .gone = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, bool),
                     .is_wanted = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, bool)};
}

static void want_inputs(RunList *l, int node)
{
    for (int k = 0; k < l->p->node[node].n_in; k++) {
        int t = l->p->node[node].in[k], producer = l->p->tensor[t].producer;
        if (!l->gone[t] || producer < 0 || l->is_wanted[producer])
            continue;
        l->is_wanted[producer] = true;
        vec_push(l->pool, &l->wanted, producer);
    }
}

static void run_node(RunList *l, int node)
{
    vec_push(l->pool, &l->runs, node);
    for (int k = 0; k < l->p->node[node].n_out; k++)
        l->gone[l->p->node[node].out[k]] = false;
}

void run_list_add(RunList *l, int node)
{
    l->wanted.len = 0;
    want_inputs(l, node);
    for (size_t k = 0; k < l->wanted.len; k++)
        want_inputs(l, l->wanted.data[k]);
    sort_ints(l->wanted.data, l->wanted.len);
    for (size_t k = 0; k < l->wanted.len; k++) {
        run_node(l, l->wanted.data[k]);
        l->is_wanted[l->wanted.data[k]] = false;
    }
    run_node(l, node);
}

/* Every node that is not late, from any list of runs. */
static RunList complete_runs(Pool *pool, const RematProblem *p, const bool *late, const int *runs,
                             int n_runs)
{
    RunList l = run_list_new(pool, p);
    bool *ran = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, bool);
    for (int t = 0; t < p->n_tensors; t++)
        l.gone[t] = true; /* not made yet */
    for (int i = 0; i < n_runs + p->n_nodes; i++) {
        bool given = i < n_runs;
        int n = given ? runs[i] : i - n_runs;
        if (late[n] || (ran[n] && !(given && is_repeatable(p, late, n))))
            continue;
        size_t first = l.runs.len;
        run_list_add(&l, n);
        for (size_t k = first; k < l.runs.len; k++)
            ran[l.runs.data[k]] = true;
    }
    return l;
}

/* From the end: a run stays when it is its node's last chance, or a later run reads what it makes.
 */
static void drop_unread(Pool *scratch, const RematProblem *p, RematSchedule *s)
{
    bool *needed = POOL_ARRAY(scratch, (size_t)p->n_tensors + 1, bool);
    int *runs = POOL_ARRAY(scratch, (size_t)p->n_nodes + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        needed[t] = p->tensor[t].keep;
    for (int i = 0; i < s->len; i++)
        runs[s->node[i]]++;
    int to = s->len;
    for (int i = s->len - 1; i >= 0; i--) {
        const RematNode *node = &p->node[s->node[i]];
        bool stays = runs[s->node[i]] == 1;
        for (int k = 0; k < node->n_out; k++)
            stays |= needed[node->out[k]];
        if (!stays) {
            runs[s->node[i]]--;
            continue;
        }
        for (int k = 0; k < node->n_out; k++)
            needed[node->out[k]] = false;
        for (int k = 0; k < node->n_in; k++)
            needed[node->in[k]] = true;
        s->node[--to] = s->node[i];
    }
    s->len -= to;
    memmove(s->node, s->node + to, (size_t)s->len * sizeof *s->node);
}

RematSchedule schedule_from_runs(Pool *pool, const RematProblem *p, const bool *late,
                                 const int *runs, int n_runs)
{
    Pool *scratch = pool_new_child(pool);
    RunList l = complete_runs(scratch, p, late, runs, n_runs);
    RematSchedule s = merge_late(pool, p, late, l.runs.data, (int)l.runs.len, NULL);
    drop_unread(scratch, p, &s);
    pool_free(scratch);
    return s;
}
