/* SPDX-License-Identifier: GPL-3.0-or-later */
/* No plan beats the bounds, pieces of concatenations and slices lying where pass_views puts them:
 * random networks with concatenations, splits and crops; every schedule that a solver comes across,
 * and random ones.  Each is also replayed on the relaxed problem, whose bounds they are.
 * SCRIMP_MODELS: how many. */
#include "check.h"
#include "tests/support/run/model_run.h"

#include "ir/support/strbuf.h"
#include "passes/remat/bounds/bound.h"
#include "passes/remat/model/relax_pieces.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"
#include "passes/views.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 24, MOST_PLANS = 60, RANDOM_PLANS = 24, MOST_RERUNS = 10 };

/* --- networks --- */

typedef struct Net {
    StrBuf text;
    Random random;
    int channels[MOST_VALUES], size[MOST_VALUES];
    int n, n_labels;
} Net;

static int below(Net *m, int n)
{
    return random_below(&m->random, n);
}

static void made(Net *m, int channels, int size)
{
    m->channels[m->n] = channels;
    m->size[m->n++] = size;
}

/* A value like v, v itself when there is no other. */
static int another_like(Net *m, int v, bool same_channels)
{
    for (int k = 0; k < 8; k++) {
        int w = below(m, m->n);
        if (m->size[w] == m->size[v] && (!same_channels || m->channels[w] == m->channels[v]))
            return w;
    }
    return v;
}

static void put_conv(Net *m, int v)
{
    int out = 2 + below(m, 9), pad = m->size[v] > 4 ? below(m, 2) : 1;
    strbuf_printf(&m->text, "  x%d = x%d |> l%d: conv(%d, 3, pad = %d, bias = false)%s\n", m->n, v,
                  m->n_labels++, out, pad, below(m, 2) ? " |> relu()" : "");
    made(m, out, pad ? m->size[v] : m->size[v] - 2);
}

static void put_concat(Net *m, int v)
{
    int a = another_like(m, v, false), b = another_like(m, v, false);
    bool three = below(m, 2);
    strbuf_printf(&m->text,
                  three ? "  x%d = concat([x%d, x%d, x%d], axis = 1)\n"
                        : "  x%d = concat([x%d, x%d], axis = 1)\n",
                  m->n, v, a, b);
    made(m, m->channels[v] + m->channels[a] + (three ? m->channels[b] : 0), m->size[v]);
}

static void put_split(Net *m, int v)
{
    int first = 1 + below(m, m->channels[v] - 1);
    strbuf_printf(&m->text, "  x%d, x%d = split(x%d, [%d, %d], axis = 1)\n", m->n, m->n + 1, v,
                  first, m->channels[v] - first);
    made(m, first, m->size[v]);
    made(m, m->channels[v] - first, m->size[v]);
}

static void put_crop(Net *m, int v)
{
    int size = m->size[v] - below(m, 3);
    strbuf_printf(&m->text, "  x%d = center_crop(x%d, size = [%d, %d])\n", m->n, v, size, size);
    made(m, m->channels[v], size);
}

static void put_piece(Net *m)
{
    int v = below(m, 3) ? m->n - 1 : below(m, m->n);
    switch (below(m, 8)) {
    case 0:
    case 1:
        put_conv(m, v);
        break;
    case 2:
    case 3:
        put_concat(m, v);
        break;
    case 4:
        if (m->channels[v] > 1)
            put_split(m, v);
        break;
    case 5:
        if (m->size[v] > 5)
            put_crop(m, v);
        break;
    case 6:
        strbuf_printf(&m->text, "  x%d = x%d |> l%d: bn() |> relu()\n", m->n, v, m->n_labels++);
        made(m, m->channels[v], m->size[v]);
        break;
    default:
        strbuf_printf(&m->text, "  x%d = x%d + %s(x%d)\n", m->n, v, below(m, 2) ? "tanh" : "relu",
                      another_like(m, v, true));
        made(m, m->channels[v], m->size[v]);
    }
}

static const char *network(Pool *pool, uint64_t seed)
{
    Net m = {.text = strbuf_new(pool), .random = {seed}};
    int n = 1 + below(&m, 3), c = 1 + below(&m, 7), size = 5 + below(&m, 4);
    strbuf_printf(&m.text, "model m(x: f32[%d, %d, %d, %d]) {\n  x0 = x\n", n, c, size, size);
    made(&m, c, size);
    put_conv(&m, 0);
    for (int k = 0; k < 12 && m.n < MOST_VALUES - 2; k++)
        put_piece(&m);
    strbuf_printf(&m.text, "  y = x%d |> global_avgpool() |> flatten()\n", m.n - 1);
    for (int v = 1; v < m.n - 1; v += 1 + below(&m, 3))
        strbuf_printf(&m.text,
                      "  y = concat([y, x%d |> global_avgpool() |> flatten()], axis = 1)\n", v);
    strbuf_printf(&m.text,
                  "  return y |> fc: linear(5)\n}\ntrain {\n"
                  "  batch = synthetic(x = f32[%d, %d, %d, %d], label = i32[%d])\n"
                  "  loss = cross_entropy(m(batch.x), batch.label)\n"
                  "  optim = sgd(lr = 0.05)\n  steps = 10\n}\n",
                  n, c, size, size, n);
    return m.text.text;
}

/* --- plans --- */

typedef struct StepCase {
    Pool *pool;
    const char *name;
    Graph *graph;
    RematProblem *p;
    const AliasedProblem *pieces;
    const RematProblem *relaxed; /* that of the pieces */
    RematMapping mapping;
    RematSchedule plan[MOST_PLANS];
    int n_plans, n_seen, beaten; /* beaten: plans below the bounds that count copies */
    int64_t bound_bytes, old_bound_bytes;
} StepCase;

static int64_t arena_of(const StepCase *s, const RematSchedule *schedule)
{
    Pool *pool = pool_new();
    Graph *copy = graph_copy(pool, s->graph);
    remat_apply(copy, s->p, &s->mapping, schedule, "");
    int64_t arena;
    Graph *views = views_of(pool, copy, MEMPLAN_FINAL, NULL, &arena);
    arena = memplan_graph(pool, views ? views : copy, MEMPLAN_TRIAL, NULL)->arena_bytes;
    pool_free(pool);
    return arena;
}

/* By node of p: its node in the relaxed problem, -1 = none. */
static int *relaxed_nodes(Pool *pool, const StepCase *s)
{
    int *of = POOL_ARRAY(pool, (size_t)s->p->n_nodes + 1, int), next = 0;
    for (int n = 0; n < s->p->n_nodes; n++) {
        bool same = next < s->relaxed->n_nodes && s->relaxed->node[next].name == s->p->node[n].name;
        of[n] = same ? next++ : -1;
    }
    CHECK_MSG(next == s->relaxed->n_nodes, "%s: %d of %d nodes", s->name, next,
              s->relaxed->n_nodes);
    return of;
}

static bool joins_twice(const StepCase *s, const RematSchedule *schedule)
{
    int *runs = POOL_ARRAY(s->pool, (size_t)s->p->n_nodes + 1, int);
    for (int i = 0; i < schedule->len; i++)
        if (++runs[schedule->node[i]] > 1 &&
            graph_node(s->graph, s->mapping.node_of[schedule->node[i]])->op == OP_concat)
            return true;
    return false;
}

/* By run: of a slice, and nothing reads what it makes. */
static bool *unread_slices(const StepCase *s, const RematSchedule *schedule)
{
    bool *unread = POOL_ARRAY(s->pool, (size_t)schedule->len + 1, bool);
    bool *read = POOL_ARRAY(s->pool, (size_t)s->p->n_nodes + 1, bool); /* later, what it makes */
    for (int i = schedule->len - 1; i >= 0; i--) {
        int n = schedule->node[i];
        const RematNode *node = &s->p->node[n];
        unread[i] = graph_node(s->graph, s->mapping.node_of[n])->op == OP_slice && !read[n];
        read[n] = false;
        for (int k = 0; k < node->n_in && !unread[i]; k++)
            if (s->p->tensor[node->in[k]].producer >= 0)
                read[s->p->tensor[node->in[k]].producer] = true;
    }
    return unread;
}

/* The schedule itself on the relaxed problem, without what relax_pieces.c leaves out; but not one
 * that runs a concat again, which may leave runs of it out. */
static void check_replay(const StepCase *s, const RematSchedule *schedule, int64_t arena,
                         const RematFigures *f)
{
    if (joins_twice(s, schedule))
        return;
    RematSchedule relaxed = {0, POOL_ARRAY(s->pool, (size_t)schedule->len + 1, int)};
    const int *of = relaxed_nodes(s->pool, s);
    const bool *unread = unread_slices(s, schedule);
    for (int i = 0; i < schedule->len; i++)
        if (of[schedule->node[i]] >= 0 && !unread[i])
            relaxed.node[relaxed.len++] = of[schedule->node[i]];
    RematFigures r = remat_check(s->pool, s->relaxed, &relaxed);
    CHECK_MSG(r.ok, "%s: %s", s->name, r.fault);
    CHECK_MSG(r.peak_bytes <= arena, "%s: replay of %lld bytes at %s, arena %lld", s->name,
              (long long)r.peak_bytes, s->relaxed->node[relaxed.node[r.peak_at]].name,
              (long long)arena);
    CHECK_MSG(r.time - r.time_once <= f->time - f->time_once + 1e-9 * f->time, "%s: time", s->name);
}

/* --- back to a schedule of the step --- */

/* What a tensor holds now: who made it, and of a concat or slice that follows, from what. */
static uint64_t content_now(const StepCase *s, const uint64_t *content, int tensor)
{
    int q = s->p->tensor[tensor].producer;
    if (q < 0 || !s->pieces->follows[q])
        return content[tensor];
    uint64_t hash = (uint64_t)q + 1;
    for (int i = 0; i < s->p->node[q].n_in; i++)
        hash = 31 * hash + content_now(s, content, s->p->node[q].in[i]);
    return hash;
}

/* Whoever reads a result that follows finds in it what its inputs hold now. */
static void check_contents(const StepCase *s, const RematSchedule *schedule)
{
    uint64_t *content = POOL_ARRAY(s->pool, (size_t)s->p->n_tensors + 1, uint64_t);
    for (int i = 0; i < schedule->len; i++) {
        const RematNode *node = &s->p->node[schedule->node[i]];
        bool follows = s->pieces->follows[schedule->node[i]];
        for (int k = 0; k < node->n_in && !follows; k++)
            CHECK_MSG(content[node->in[k]] == content_now(s, content, node->in[k]),
                      "%s: %s reads an old %s", s->name, node->name,
                      s->p->tensor[node->in[k]].name);
        for (int k = 0; k < node->n_out; k++)
            content[node->out[k]] =
                follows ? content_now(s, content, node->out[k]) : (uint64_t)i * 7919 + (uint64_t)k;
    }
}

static void check_completed(const StepCase *s, const RematSchedule *schedule)
{
    RematSchedule runs = pieces_runs(s->pool, s->pieces, schedule);
    RematSchedule back = pieces_complete(s->pool, s->p, s->pieces, &runs);
    RematFigures on_relaxed = remat_check(s->pool, s->relaxed, &runs),
                 f = remat_check(s->pool, s->p, &back);
    CHECK_MSG(on_relaxed.ok, "%s: runs: %s", s->name, on_relaxed.fault);
    CHECK_MSG(f.ok, "%s: completed: %s", s->name, f.fault);
    if (f.ok)
        check_contents(s, &back);
    int64_t peak = remat_check(s->pool, s->p, schedule).peak_bytes;
    CHECK_MSG(pieces_peak(s->pool, s->pieces, schedule, peak) ==
                  (on_relaxed.peak_bytes < peak ? on_relaxed.peak_bytes : peak),
              "%s", s->name);
}

/* --- one plan --- */

static void check_plan(StepCase *s, const RematSchedule *schedule)
{
    int64_t arena = arena_of(s, schedule);
    RematFigures f = remat_check(s->pool, s->p, schedule);
    double extra = f.time - f.time_once, slack = 1e-9 * f.time;
    double bound = remat_overhead_lower_bound(s->relaxed, arena, s->pool, 0, NULL);
    CHECK_MSG(f.ok, "%s: %s", s->name, f.fault);
    CHECK_MSG(s->bound_bytes <= arena, "%s: arena %lld, bound %lld", s->name, (long long)arena,
              (long long)s->bound_bytes);
    CHECK_MSG(bound <= extra + slack, "%s: arena %lld with %g, bound %g", s->name, (long long)arena,
              extra, bound);
    check_replay(s, schedule, arena, &f);
    check_completed(s, schedule);
    s->beaten += s->old_bound_bytes > arena ||
                 remat_overhead_lower_bound(s->p, arena, s->pool, 0, NULL) > extra + slack;
}

/* --- schedules --- */

static void see(void *user, const RematSchedule *schedule, const RematFigures *f)
{
    StepCase *s = user;
    (void)f;
    if (s->n_seen++ % 7 || s->n_plans == MOST_PLANS)
        return;
    RematSchedule copy = {schedule->len, POOL_ARRAY(s->pool, (size_t)schedule->len + 1, int)};
    memcpy(copy.node, schedule->node, (size_t)schedule->len * sizeof *copy.node);
    s->plan[s->n_plans++] = copy;
}

static void check_solvers(StepCase *s)
{
    for (const RematSolver *solver = remat_solvers; solver->name; solver++) {
        if (solver->needs_milp)
            continue;
        RematOptions o = {.seen = see, .user = s, .max_steps = 100000};
        s->n_plans = s->n_seen = 0;
        RematAnswer a = remat_solve(s->p, solver, &o, s->pool);
        check_plan(s, &a.schedule);
        for (int k = 0; k < s->n_plans; k++)
            check_plan(s, &s->plan[k]);
    }
}

/* The base order with a few nodes run again somewhere. */
static void check_random(StepCase *s, Random *r)
{
    RematSchedule t = remat_base_schedule(s->pool, s->p);
    int *node = POOL_ARRAY(s->pool, (size_t)t.len + MOST_RERUNS + 1, int);
    memcpy(node, t.node, (size_t)t.len * sizeof *node);
    t.node = node;
    for (int k = random_below(r, MOST_RERUNS); k >= 0; k--) {
        int at = random_below(r, t.len), from = random_below(r, at + 1);
        memmove(node + at + 1, node + at, (size_t)(t.len - at) * sizeof *node);
        node[at] = node[from];
        t.len++;
        if (!remat_check(s->pool, s->p, &t).ok) {
            memmove(node + at, node + at + 1, (size_t)(t.len - at - 1) * sizeof *node);
            t.len--;
        }
    }
    check_plan(s, &t);
}

static int check_model(Pool *pool, int seed)
{
    const char *text = network(pool, (uint64_t)seed);
    BuildOptions o = {0};
    PassContext ctx = {.pool = pool,
                       .graph = model_lower(pool, text, &o),
                       .request.masks = seed % 2 ? MASKS_NEVER : MASKS_ALWAYS};
    if (!ctx.graph || !passes_run(&ctx, pipeline_before(pool, "remat"), NULL, NULL)) {
        CHECK_MSG(false, "seed %d: %s", seed, ctx.error.message ? ctx.error.message : text);
        return 0;
    }
    StepCase s = {.pool = pool, .graph = ctx.graph, .name = pool_printf(pool, "seed %d", seed)};
    s.p = remat_problem_from_graph(pool, s.graph, NULL, &s.mapping);
    s.pieces = relax_pieces(pool, s.graph, s.p, &s.mapping, RELAX_PROVEN);
    CHECK_MSG(s.pieces, "seed %d: has pieces", seed);
    if (!s.pieces)
        return 0;
    s.relaxed = &s.pieces->problem;
    int node;
    s.bound_bytes = remat_peak_lower_bound(s.relaxed, pool, 0, &node);
    s.old_bound_bytes = remat_peak_lower_bound(s.p, pool, 0, &node);
    check_solvers(&s);
    Random r = {(uint64_t)seed};
    for (int k = 0; k < RANDOM_PLANS; k++)
        check_random(&s, &r);
    return s.beaten;
}

int main(void)
{
    const char *models = getenv("SCRIMP_MODELS"), *first = getenv("SCRIMP_FIRST_MODEL");
    int n = models ? atoi(models) : 6, from = first ? atoi(first) : 8, beaten = 0;
    printf("seeds %d to %d\n", from, from + n - 1);
    for (int seed = from; seed < from + n && !check_failures; seed++) {
        Pool *pool = pool_new();
        beaten += check_model(pool, seed);
        pool_free(pool);
    }
    printf("%d plans are below the bounds that count copies\n", beaten);
    CHECK(beaten > 0); /* else there was nothing to test */
    return test_result();
}
