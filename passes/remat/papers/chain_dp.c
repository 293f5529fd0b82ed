/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Dynamic programming on a chain of unequal stages: for each, keep all that its backward part
 * needs, only its output, or nothing.
 *
 * Source: Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019, Optimal checkpointing for
 * heterogeneous chains (rotor; arXiv:1911.13214), theorem 1.  C(s, t, m), the least time to reverse
 * stages s..t in m slots with the input of s given, is the lesser of F_s and C(s + 1, t, m -
 * tape_s)                            if s records and goes back within m F_s + .. + F_(s'-1) +
 * C(s', t, m - output_(s'-1)) + C(s, s' - 1, m)      over s < s' <= t (backward times are the same
 * everywhere).  It is optimal among schedules that never throw away a snapshot before its last use.
 *
 * Model: stages are those of chain.h (48 at most); a stage's tape is what the backward part of the
 * step reads of it; sweep, record and back are peaks of the stage in the base order with
 * liveness, without in-place pairs; gradients that cross a cut belong to `back`.  Bytes are rounded
 * up to 256 slots of what keeping everything takes.  Answers for 20 amounts of memory are scored,
 * and what pruning makes of them. */
#include "passes/remat/papers/chain_dp.h"

#include "passes/remat/model/runs.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/chain.h"
#include "passes/remat/papers/prune.h"
#include "passes/remat/solvers.h"

#include <math.h>

enum { MAX_STAGES = 48, SLOTS = 256, AMOUNTS = 20, PRUNE_STEPS = 3 };

static double last_stage_cost(const ChainStage *s, int m)
{
    return s->record <= m && s->tape + s->back <= m ? s->forward : (double)INFINITY;
}

static double taped_cost(const ChainPlan *c, const ChainStage *s, int first, int last, int m)
{
    if (s->record > m || s->tape + s->back > m)
        return INFINITY;
    return s->forward + c->cost[chain_plan_at(c, first + 1, last, m - s->tape)];
}

static void choose(ChainPlan *c, const ChainStage *stage, int first, int last, int m)
{
    size_t at = chain_plan_at(c, first, last, m);
    c->choice[at] = 0;
    if (first == last) {
        c->cost[at] = last_stage_cost(&stage[first], m);
        return;
    }
    c->cost[at] = taped_cost(c, &stage[first], first, last, m);
    double forward = 0;
    for (int k = 1; first + k <= last; k++) {
        const ChainStage *s = &stage[first + k - 1];
        int input = k > 1 ? stage[first + k - 2].output : 0;
        if (input + s->sweep > m)
            break;
        forward += s->forward;
        if (s->output > m)
            continue;
        double cost = forward + c->cost[chain_plan_at(c, first + k, last, m - s->output)] +
                      c->cost[chain_plan_at(c, first, first + k - 1, m)];
        if (cost < c->cost[at]) {
            c->cost[at] = cost;
            c->choice[at] = k;
        }
    }
}

ChainPlan chain_plan(Pool *pool, const ChainStage *stage, int n, int slots)
{
    ChainPlan c = {.n = n, .slots = slots};
    size_t size = (size_t)n * (size_t)n * ((size_t)slots + 1) + 1;
    c.cost = POOL_ARRAY(pool, size, double);
    c.choice = POOL_ARRAY(pool, size, int);
    for (int len = 1; len <= n; len++)
        for (int first = 0; first + len <= n; first++)
            for (int m = 0; m <= slots; m++)
                choose(&c, stage, first, first + len - 1, m);
    return c;
}

/* Measuring stages */

typedef struct Measure {
    const Chain *chain;
    const RematProblem *p;
    int *left;      /* by tensor: reads to come in the part that is measured */
    int64_t *bytes; /* by stage: of each kind in turn */
    int64_t live, most;
} Measure;

static void run_measured(Measure *m, int n)
{
    const RematNode *node = &m->p->node[n];
    for (int k = 0; k < node->n_out; k++)
        m->live += m->p->tensor[node->out[k]].bytes;
    if (m->live + node->workspace > m->most)
        m->most = m->live + node->workspace;
    for (int k = 0; k < node->n_in; k++)
        if (--m->left[node->in[k]] == 0)
            m->live -= m->p->tensor[node->in[k]].bytes;
    for (int k = 0; k < node->n_out; k++)
        if (m->left[node->out[k]] == 0)
            m->live -= m->p->tensor[node->out[k]].bytes;
}

/* Reads by the nodes of these stages of what nodes of the same kind (forward or not) make. */
static void count_reads(Measure *m, const Csr *nodes, int first, int end, bool forward)
{
    for (int t = 0; t < m->p->n_tensors; t++)
        m->left[t] = 0;
    for (int k = nodes->begin[first]; k < nodes->begin[end]; k++)
        for (int i = 0; i < m->p->node[nodes->item[k]].n_in; i++) {
            int t = m->p->node[nodes->item[k]].in[i], producer = m->p->tensor[t].producer;
            if (producer < 0 || (m->chain->v->index[producer] >= 0) != forward)
                continue;
            int stage = m->chain->stage_of[producer];
            m->left[t] += !forward || (stage >= first && stage < end);
        }
}

/* live counts what left[] counts; a tensor that is not counted has left < 0 after a read. */
static int64_t measure_forward(Measure *m, int stage)
{
    const Csr *nodes = &m->chain->forward;
    count_reads(m, nodes, stage, stage + 1, true);
    for (int k = nodes->begin[stage]; k < nodes->begin[stage + 1]; k++) /* outputs stay */
        for (int i = 0; i < m->p->node[nodes->item[k]].n_out; i++)
            m->left[m->p->node[nodes->item[k]].out[i]] += m->chain->crosses[nodes->item[k]];
    m->live = m->most = 0;
    for (int k = nodes->begin[stage]; k < nodes->begin[stage + 1]; k++)
        run_measured(m, nodes->item[k]);
    return m->most;
}

static void measure_backward(Measure *m, int64_t *most)
{
    const Csr *nodes = &m->chain->backward;
    count_reads(m, nodes, 0, m->chain->n, false);
    m->live = 0;
    for (int s = m->chain->n - 1; s >= 0; s--) {
        m->most = m->live;
        for (int k = nodes->begin[s]; k < nodes->begin[s + 1]; k++)
            run_measured(m, nodes->item[k]);
        most[s] = m->most;
    }
}

/* Bytes of a stage's tensors that backward nodes read, and of its outputs. */
static void measure_tapes(Pool *scratch, const Chain *c, int64_t *tape, int64_t *output)
{
    const RematProblem *p = c->v->p;
    bool *taped = POOL_ARRAY(scratch, (size_t)p->n_tensors + 1, bool);
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in && c->v->index[n] < 0 && !c->v->late[n]; k++)
            taped[p->node[n].in[k]] = true;
    for (int t = 0; t < p->n_tensors; t++) {
        int producer = p->tensor[t].producer;
        if (producer < 0 || c->v->index[producer] < 0 || c->stage_of[producer] < 0)
            continue;
        int s = c->stage_of[producer];
        output[s] += c->crosses[producer] ? p->tensor[t].bytes : 0;
        tape[s] += taped[t] || c->crosses[producer] ? p->tensor[t].bytes : 0;
    }
}

static int to_slots(int64_t bytes, int64_t unit)
{
    int64_t slots = (bytes + unit - 1) / unit;
    return slots > INT32_MAX / 4 ? INT32_MAX / 4 : (int)slots;
}

static ChainStage *measure_chain(Pool *pool, const Chain *c, int64_t unit)
{
    size_t n = (size_t)c->n + 1;
    ChainStage *stage = POOL_ARRAY(pool, n, ChainStage);
    int64_t *tape = POOL_ARRAY(pool, n, int64_t), *output = POOL_ARRAY(pool, n, int64_t);
    int64_t *back = POOL_ARRAY(pool, n, int64_t);
    Measure m = {.chain = c, .p = c->v->p};
    m.left = POOL_ARRAY(pool, (size_t)c->v->p->n_tensors + 1, int);
    measure_tapes(pool, c, tape, output);
    measure_backward(&m, back);
    for (int s = 0; s < c->n; s++) {
        int64_t sweep = measure_forward(&m, s), record = sweep + tape[s] - output[s];
        stage[s] = (ChainStage){0,
                                to_slots(output[s], unit),
                                to_slots(tape[s], unit),
                                to_slots(sweep, unit),
                                to_slots(record, unit),
                                to_slots(back[s], unit)};
        for (int k = c->forward.begin[s]; k < c->forward.begin[s + 1]; k++)
            stage[s].forward += c->v->p->node[c->forward.item[k]].cost;
    }
    return stage;
}

/* Recursion: as deep as there are stages. */
static void follow(StageRuns *r, const ChainPlan *c, const ChainStage *stage, int first, int last,
                   int m)
{
    int k = c->choice[chain_plan_at(c, first, last, m)];
    if (first == last || k == 0) {
        run_forward(r, first, first + 1);
        if (first < last)
            follow(r, c, stage, first + 1, last, m - stage[first].tape);
        run_backward(r, first);
        return;
    }
    run_forward(r, first, first + k);
    follow(r, c, stage, first + k, last, m - stage[first + k - 1].output);
    follow(r, c, stage, first, first + k - 1, m);
}

static void try_amounts(Candidates *c, const Chain *chain, const ChainStage *stage,
                        const RematOptions *o)
{
    Pool *pool = c->pool;
    ChainPlan plan = chain_plan(pool, stage, chain->n, SLOTS);
    int least = 0;
    while (least <= SLOTS && isinf(plan.cost[chain_plan_at(&plan, 0, chain->n - 1, least)]))
        least++;
    double last = INFINITY;
    for (int k = 0; k <= AMOUNTS && least <= SLOTS; k++) {
        int m = least + (SLOTS - least) * k / AMOUNTS;
        double cost = plan.cost[chain_plan_at(&plan, 0, chain->n - 1, m)];
        if (cost >= last || remat_out_of_time(o))
            continue;
        last = cost;
        StageRuns r = {.chain = chain, .pool = pool};
        follow(&r, &plan, stage, 0, chain->n - 1, m);
        candidates_try_runs(c, chain->v->late, r.node, r.len, PRUNE_STEPS);
    }
}

RematStatus remat_chain_dp(const RematProblem *p, const RematOptions *o, Pool *pool,
                           RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    ForwardView *v = forward_view_new(scratch, p);
    Candidates *c = candidates_new(scratch, v, o);
    Chain *chain = chain_new(scratch, v, MAX_STAGES);
    RematSchedule base = remat_base_schedule(scratch, p);
    int64_t all = peak_without_in_place(scratch, p, &base) - p->persistent_bytes;
    if (chain->n > 1)
        try_amounts(c, chain, measure_chain(scratch, chain, all / SLOTS + 1), o);
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status == REMAT_INFEASIBLE && remat_out_of_time(o) ? REMAT_LIMIT : status;
}
