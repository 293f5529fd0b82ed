/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Source: Jain, Jain, Nrusimha, Gholami, Abbeel, Keutzer, Stoica, Gonzalez 2020, Checkmate (MLSys),
 * equations 1 to 8 with the frontier-advancing stages of section 4.6.  R[t, i]: node i runs in
 * stage t; S[t, i]: its outputs are kept from stage t - 1 into stage t; FREE[t, i, k]: they are
 * freed in stage t after node k ran; U[t, k]: bytes alive while k runs there.  Stage t ends with
 * the first run of node t of the base order, and in a stage nodes run in base order.
 *
 * Differs: workspaces are added at their node, results of the step are needed after the last stage,
 * nodes that may not run again, and readers of versions that an update has overwritten, have R = 0
 * elsewhere.  Outputs of one node are one value, batch inputs stay, nothing is in place: U is never
 * below what the replay finds.  The order is the base order, and a node runs at most once a stage:
 * the optimum is one under these rules only. */
#include "passes/remat/papers/checkmate.h"

#include "passes/remat/model/csr.h"
#include "passes/remat/model/runs.h"

#include <string.h>

enum { ZERO = -1, ONE = -2 };

typedef struct Builder {
    Checkmate *c;
    const RematProblem *p;
    int n;
    Csr pred, users; /* by node, distinct */
    double *bytes;   /* by node, in units of the largest tensor */
    bool *keep;
    int *until; /* by node: the last stage in which what it reads has its old version */
    bool integer;
    double unit, budget, always; /* always: batch inputs */
} Builder;

static int at(const Builder *b, int stage, int node)
{
    return stage * b->n + node;
}

/* One more term of a row whose other side is `rest`: constants go there. */
static void term(Builder *b, int row, int column, double value, double *rest)
{
    if (column >= 0)
        milp_term(b->c->milp, row, column, value);
    else if (column == ONE)
        *rest += value;
}

/* A row: the sum of a few terms is at most `high`. */
static void at_most(Builder *b, const int *column, const double *value, int n, double high)
{
    double rest = 0;
    bool any = false;
    for (int k = 0; k < n; k++)
        any |= column[k] >= 0;
    if (!any)
        return;
    int row = milp_row(b->c->milp, -1e30, 0);
    for (int k = 0; k < n; k++)
        term(b, row, column[k], value[k], &rest);
    milp_set_row(b->c->milp, row, -1e30, high - rest);
}

static void find_edges(Builder *b, Pool *pool)
{
    b->pred = csr_new(pool, b->n);
    b->users = csr_new(pool, b->n);
    int *seen = POOL_ARRAY(pool, (size_t)b->n + 1, int), total = 0;
    for (int store = 0; store < 2; store++) {
        memset(seen, -1, ((size_t)b->n + 1) * sizeof *seen);
        for (int n = 0; n < b->n; n++)
            for (int k = 0; k < b->p->node[n].n_in; k++) {
                int u = b->p->tensor[b->p->node[n].in[k]].producer;
                if (u < 0 || seen[u] == n)
                    continue;
                seen[u] = n;
                total++;
                if (store) {
                    csr_store(&b->pred, n, u);
                    csr_store(&b->users, u, n);
                } else {
                    csr_count(&b->pred, n);
                    csr_count(&b->users, u);
                }
            }
        if (!store) {
            csr_close(&b->pred, pool, total);
            csr_close(&b->users, pool, total);
        }
    }
}

static void find_sizes(Builder *b, Pool *pool)
{
    size_t n = (size_t)b->n + 1;
    b->bytes = POOL_ARRAY(pool, n, double);
    b->keep = POOL_ARRAY(pool, n, bool);
    b->until = POOL_ARRAY(pool, n, int);
    int *overwritten = POOL_ARRAY(pool, (size_t)b->p->n_tensors + 1, int);
    for (int t = 0; t < b->p->n_tensors; t++) {
        const RematTensor *x = &b->p->tensor[t];
        overwritten[t] = b->n;
        if (x->producer >= 0) {
            b->bytes[x->producer] += (double)x->bytes / b->unit;
            b->keep[x->producer] |= x->keep;
        } else if (!x->persistent) {
            b->always += (double)x->bytes / b->unit;
        }
    }
    for (int k = 0; k < b->n; k++)
        for (int i = 0; i < b->p->node[k].n_overwrites; i++)
            overwritten[b->p->node[k].overwrites[i]] = k;
    for (int k = 0; k < b->n; k++) {
        b->until[k] = b->n;
        for (int i = 0; i < b->p->node[k].n_in; i++)
            if (overwritten[b->p->node[k].in[i]] < b->until[k])
                b->until[k] = overwritten[b->p->node[k].in[i]];
    }
}

static void add_columns(Builder *b, const bool *late)
{
    Checkmate *c = b->c;
    for (int t = 0; t < b->n; t++)
        for (int i = 0; i < b->n; i++) {
            const RematNode *node = &b->p->node[i];
            bool again = is_repeatable(b->p, late, i) && t <= b->until[i];
            c->run[at(b, t, i)] = i == t ? ONE
                                  : i > t || !again
                                      ? ZERO
                                      : milp_column(c->milp, 0, 1, node->cost, b->integer);
            c->save[at(b, t, i)] = i < t ? milp_column(c->milp, 0, 1, 0, b->integer) : ZERO;
        }
}

/* Inputs are there, and what is kept was there. */
static void add_dependences(Builder *b)
{
    const Checkmate *c = b->c;
    for (int t = 0; t < b->n; t++)
        for (int j = 0; j <= t; j++) {
            for (int k = b->pred.begin[j]; k < b->pred.begin[j + 1]; k++) {
                int i = b->pred.item[k];
                at_most(b, (int[]){c->run[at(b, t, j)], c->run[at(b, t, i)], c->save[at(b, t, i)]},
                        (double[]){1, -1, -1}, 3, 0);
            }
            if (j < t)
                at_most(b,
                        (int[]){c->save[at(b, t, j)], c->run[at(b, t - 1, j)],
                                c->save[at(b, t - 1, j)]},
                        (double[]){1, -1, -1}, 3, 0);
        }
}

/* FREE[t, i, k] as a column.  Hazards: k does not run here, i is kept for the next stage, a later
 * node of the stage reads it.  FREE = 1 needs none, FREE = 0 needs one. */
static int add_free(Builder *b, int t, int i, int k)
{
    const Checkmate *c = b->c;
    Milp *m = c->milp;
    int free = milp_column(m, 0, 1, 0, b->integer), n = 2;
    for (int x = b->users.begin[i]; x < b->users.begin[i + 1]; x++)
        n += b->users.item[x] > k && b->users.item[x] <= t;
    /* hazards = 1 - R[t, k] + S[t + 1, i] + later users;  n FREE + hazards <= n;  hazards + FREE >=
     * 1 */
    int high = milp_row(m, -1e30, 0), low = milp_row(m, 0, 1e30);
    milp_term(m, high, free, n);
    milp_term(m, low, free, 1);
    int column[2] = {c->run[at(b, t, k)], t + 1 < b->n ? c->save[at(b, t + 1, i)]
                                          : b->keep[i] ? ONE
                                                       : ZERO};
    double rest = 1, same = 1;
    for (int x = 0; x < 2; x++) {
        term(b, high, column[x], x ? 1 : -1, &rest);
        term(b, low, column[x], x ? 1 : -1, &same);
    }
    for (int x = b->users.begin[i]; x < b->users.begin[i + 1]; x++) {
        int j = b->users.item[x];
        if (j <= k || j > t)
            continue;
        term(b, high, c->run[at(b, t, j)], 1, &rest);
        term(b, low, c->run[at(b, t, j)], 1, &same);
    }
    milp_set_row(m, high, -1e30, n - rest);
    milp_set_row(m, low, 1 - rest, 1e30);
    return free;
}

/* U[t, k] <= budget, with U[t, k] = U[t, k - 1] - what k - 1 frees + what k makes. */
static void add_memory_of(Builder *b, int t)
{
    const Checkmate *c = b->c;
    Milp *m = c->milp;
    int before = -1;
    for (int k = 0; k <= t; k++) {
        double rest = k == 0 ? b->always : 0;
        int now = milp_column(m, 0, b->budget, 0, false), row = milp_row(m, 0, 0);
        milp_term(m, row, now, -1);
        if (before >= 0)
            milp_term(m, row, before, 1);
        for (int i = 0; k == 0 && i < t; i++)
            term(b, row, c->save[at(b, t, i)], b->bytes[i], &rest);
        if (k > 0 && c->run[at(b, t, k - 1)] != ZERO) {
            if (b->bytes[k - 1] > 0)
                milp_term(m, row, add_free(b, t, k - 1, k - 1), -b->bytes[k - 1]);
            for (int x = b->pred.begin[k - 1]; x < b->pred.begin[k]; x++)
                if (b->bytes[b->pred.item[x]] > 0)
                    milp_term(m, row, add_free(b, t, b->pred.item[x], k - 1),
                              -b->bytes[b->pred.item[x]]);
        }
        term(b, row, c->run[at(b, t, k)], b->bytes[k], &rest);
        milp_set_row(m, row, -rest, -rest);
        double work = (double)b->p->node[k].workspace / b->unit;
        if (work > 0)
            at_most(b, (int[]){now, c->run[at(b, t, k)]}, (double[]){1, work}, 2, b->budget);
        before = now;
    }
}

Checkmate *checkmate_new(Pool *pool, const RematProblem *p, int64_t budget_bytes, bool integer)
{
    Checkmate *c = POOL_NEW(pool, Checkmate);
    size_t n = (size_t)p->n_nodes;
    *c = (Checkmate){.p = p, .milp = milp_new(pool)};
    c->run = POOL_ARRAY(pool, n * n + 1, int);
    c->save = POOL_ARRAY(pool, n * n + 1, int);
    double unit = 1;
    for (int t = 0; t < p->n_tensors; t++) /* numbers near 1 */
        if (!p->tensor[t].persistent && (double)p->tensor[t].bytes > unit)
            unit = (double)p->tensor[t].bytes;
    Builder b = {.c = c, .p = p, .n = p->n_nodes, .integer = integer, .unit = unit};
    b.budget = (double)(budget_bytes - p->persistent_bytes) / unit;
    find_edges(&b, pool);
    find_sizes(&b, pool);
    if (b.budget < 0)
        b.budget = 0;
    add_columns(&b, update_nodes(pool, p));
    add_dependences(&b);
    for (int t = 0; t < b.n; t++)
        add_memory_of(&b, t);
    return c;
}

/* Two-phase rounding (section 5): S by the threshold, then R as small as S allows. */
typedef struct Rounding {
    const Checkmate *c;
    int n;
    bool *run, *save;
} Rounding;

static void need_run(Rounding *r, int stage, int node);

/* The outputs of node have to be there at the start of the stage. */
static void need_saved(Rounding *r, int stage, int node)
{
    r->save[stage * r->n + node] = true;
    for (int t = stage - 1; !r->run[t * r->n + node]; t--) {
        if (r->save[t * r->n + node])
            return;
        if (r->c->run[t * r->n + node] != ZERO) {
            need_run(r, t, node);
            return;
        }
        r->save[t * r->n + node] = true;
    }
}

/* Recursion: as deep as nodes depend on each other. */
static void need_run(Rounding *r, int stage, int node)
{
    const RematProblem *p = r->c->p;
    if (r->run[stage * r->n + node])
        return;
    r->run[stage * r->n + node] = true;
    for (int k = 0; k < p->node[node].n_in; k++) {
        int u = p->tensor[p->node[node].in[k]].producer;
        if (u < 0 || r->save[stage * r->n + u] || r->run[stage * r->n + u])
            continue;
        if (r->c->run[stage * r->n + u] == ZERO)
            need_saved(r, stage, u);
        else
            need_run(r, stage, u);
    }
}

RematSchedule checkmate_round(Pool *pool, const Checkmate *c, const double *x, double threshold)
{
    size_t n = (size_t)c->p->n_nodes;
    Rounding r = {c, c->p->n_nodes, POOL_ARRAY(pool, n * n + 1, bool),
                  POOL_ARRAY(pool, n * n + 1, bool)};
    for (size_t k = 0; k < n * n; k++)
        r.save[k] = c->save[k] >= 0 && x[c->save[k]] >= threshold;
    for (int t = 0; t < r.n; t++) {
        for (int i = 0; i < t; i++)
            if (r.save[t * r.n + i])
                need_saved(&r, t, i);
        need_run(&r, t, t);
    }
    int len = 0;
    for (size_t k = 0; k < n * n; k++)
        len += r.run[k];
    RematSchedule s = {0, POOL_ARRAY(pool, (size_t)len + 1, int)};
    for (int t = 0; t < r.n; t++)
        for (int i = 0; i <= t; i++)
            if (r.run[t * r.n + i])
                s.node[s.len++] = i;
    return s;
}
