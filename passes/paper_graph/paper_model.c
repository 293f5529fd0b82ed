/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/paper_graph/paper_model.h"
#include "ir/support/clock.h"

#include "passes/paper_graph/forward_count.h"
#include "passes/remat/external/external.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/papers/chen.h"
#include "passes/remat/papers/feng.h"
#include "passes/remat/papers/forward_view.h"
#include "passes/remat/papers/kusumoto.h"

#include <string.h>

typedef struct Paper {
    Pool *pool;
    ForwardGraph g;
    ForwardView *view; /* of the step made of the graph; its vertices are those of g */
    int64_t max_steps;
    PaperTable *table;
} Paper;

static PaperFigures *new_row(Paper *s, const char *solver, const char *strategy)
{
    PaperFigures *row = &s->table->row[s->table->n++];
    *row = (PaperFigures){.solver = solver, .strategy = strategy};
    return row;
}

/* The peak of what the paper's strategy does, when every value dies after its last use. */
static void replay(Paper *s, PaperFigures *row, const bool *keep)
{
    RematSchedule schedule = forward_view_schedule(s->pool, s->view, keep);
    RematFigures f = remat_check(s->pool, s->view->p, &schedule);
    row->live_bytes = f.peak_bytes;
    row->live_overhead = f.time - f.time_once;
}

/* Boundaries of the sets, and the last block, which is not recomputed. */
static void replay_sets(Paper *s, PaperFigures *row, const int *set_of, int n_sets)
{
    bool *keep = POOL_ARRAY(s->pool, (size_t)s->g.n + 1, bool);
    for (int u = 0; u < s->g.n; u++) {
        for (int k = s->g.succ.begin[u]; k < s->g.succ.begin[u + 1]; k++)
            keep[u] |= set_of[s->g.succ.item[k]] > set_of[u];
        row->n_kept += keep[u];
        keep[u] |= set_of[u] == n_sets - 1;
    }
    replay(s, row, keep);
}

static void add_kusumoto(Paper *s, const char *solver, const KusumotoMethod *method,
                         bool memory_centric)
{
    double begin = clock_seconds();
    PaperFigures *row = new_row(s, solver, memory_centric ? "memory-centric" : "time-centric");
    KusumotoAnswer a = kusumoto_plan(s->pool, &s->g, method, 0, memory_centric, s->max_steps);
    row->seconds = clock_seconds() - begin;
    row->limited = a.limited;
    row->model_bytes = a.peak;
    row->overhead = a.overhead;
    if (a.n_sets)
        replay_sets(s, row, a.set_of, a.n_sets);
}

typedef struct ChenBest {
    Paper *s;
    PaperFigures *row;
    int *set_of, n_sets;
} ChenBest;

static void see_segments(void *user, bool at_articulation, const int *set_of, int n_sets)
{
    ChenBest *b = user;
    Paper *s = b->s;
    if (!at_articulation)
        return;
    int64_t peak = kusumoto_eq2(s->pool, &s->g, set_of, n_sets);
    if (b->n_sets && peak >= b->row->model_bytes)
        return;
    b->row->model_bytes = peak;
    b->n_sets = n_sets;
    memcpy(b->set_of, set_of, (size_t)s->g.n * sizeof *set_of);
}

/* At articulation points, as Kusumoto et al. read it (appendix B). */
static void add_chen(Paper *s)
{
    double begin = clock_seconds();
    ChenBest b = {s, new_row(s, "chen", "articulation points"),
                  POOL_ARRAY(s->pool, (size_t)s->g.n + 1, int), 0};
    chen_plan(s->pool, &s->g, see_segments, &b);
    b.row->seconds = clock_seconds() - begin;
    b.row->overhead = kusumoto_eq1(&s->g, b.set_of);
    replay_sets(s, b.row, b.set_of, b.n_sets);
}

static void add_feng(Paper *s, const char *solver, FengDivision division)
{
    double begin = clock_seconds();
    PaperFigures *row = new_row(s, solver, "checkpoints");
    FengAnswer a = feng_plan(s->pool, &s->g, division, s->max_steps, NULL, NULL);
    row->seconds = clock_seconds() - begin;
    row->limited = a.limited;
    row->model_bytes = a.cost;
    FengGraph f = feng_graph(s->pool, &s->g);
    bool *checkpoint = POOL_ARRAY(s->pool, (size_t)f.g.n + 1, bool);
    bool *keep = POOL_ARRAY(s->pool, (size_t)f.g.n + 1, bool);
    checkpoint[0] = checkpoint[f.g.n - 1] = true;
    for (int v = 0; v < s->g.n; v++) {
        checkpoint[v + f.shift] = a.checkpoint[v];
        row->n_kept += a.checkpoint[v];
        row->overhead += a.checkpoint[v] ? 0 : s->g.time[v];
    }
    feng_kept(&f, checkpoint, keep);
    replay(s, row, keep);
}

static void add_totals(Paper *s)
{
    for (int v = 0; v < s->g.n; v++) {
        s->table->graph_bytes += s->g.bytes[v];
        s->table->graph_time += s->g.time[v];
    }
    RematSchedule base = remat_base_schedule(s->pool, s->view->p);
    s->table->all_kept_bytes = remat_check(s->pool, s->view->p, &base).peak_bytes;
}

bool paper_model(Pool *pool, const PaperGraph *c, int64_t max_steps, PaperTable *out,
                 const char **error)
{
    RematError e;
    Paper s = {.pool = pool, .max_steps = max_steps, .table = out};
    *out = (PaperTable){0};
    const RematProblem *p = external_problem(pool, external_from_count(pool, c), &e);
    if (!p) {
        *error = e.message;
        return false;
    }
    s.g = forward_graph_of_count(pool, c);
    s.view = forward_view_new(pool, p);
    add_totals(&s);
    for (int memory = 0; memory < 2; memory++) {
        add_kusumoto(&s, "kusumoto_approx", &kusumoto_approx, memory);
        add_kusumoto(&s, "kusumoto_exact", &kusumoto_exact, memory);
    }
    add_chen(&s);
    add_feng(&s, "feng_linear", FENG_SPLIT);
    add_feng(&s, "feng_closeset", FENG_CLOSED);
    add_feng(&s, "feng_acg", FENG_STRIPPED);
    return true;
}
