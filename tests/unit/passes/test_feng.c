/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The division tree of Feng and Huang against an enumeration of every choice of checkpoints under
 * their model, written down again.  SCRIMP_GRAPHS: how many graphs (2500); SCRIMP_SEED. */
#include "check.h"
#include "passes/remat/papers/feng.h"
#include "tests/support/random_step.h"

#include <stdlib.h>

enum { MAX_NODES = 12, MAX_ALL = MAX_NODES + 2, MAX_STEPS = 100000000 };

/* Vertices 0 .. n - 1; with the ends, 1 .. n and the ends 0 and n + 1 or none of these. */
typedef struct Dag {
    int n;
    unsigned pred[MAX_NODES], succ[MAX_NODES];
    double time[MAX_NODES];
    int64_t bytes[MAX_NODES];
    bool has_inputs;
} Dag;

static int random_pred(Random *r, int v, int kind)
{
    int near = kind == 0 ? 1 : kind == 1 ? 2 : 4;
    return v - 1 - random_below(r, v < near ? v : near);
}

static void random_dag(Dag *d, Random *r)
{
    *d = (Dag){.n = 1 + random_below(r, MAX_NODES), .has_inputs = random_below(r, 2)};
    int kind = random_below(r, 4), ends = random_below(r, 3);
    for (int v = 0; v < d->n; v++) {
        d->time[v] = 1;
        d->bytes[v] = random_below(r, 8) ? 1 + random_below(r, 40) : 0;
        for (int k = random_below(r, 4) ? 0 : 1; v > 0 && k >= 0; k--)
            d->pred[v] |= 1u << random_pred(r, v, kind);
        if (ends && random_below(r, 10) == 0)
            d->pred[v] = 0;
    }
    for (int v = 0; v < d->n; v++) /* mostly one target */
        for (int u = 0; u < v; u++)
            d->succ[u] |= (d->pred[v] >> u & 1) << v;
    for (int u = 0; u < d->n - 1 && ends < 2; u++)
        if (!d->succ[u]) {
            d->succ[u] |= 1u << (d->n - 1);
            d->pred[d->n - 1] |= 1u << u;
        }
}

static ForwardGraph dag_graph(Pool *pool, const Dag *d)
{
    ForwardGraph g = {.n = d->n, .time = d->time, .bytes = d->bytes, .has_inputs = d->has_inputs};
    g.pred = csr_new(pool, d->n);
    g.succ = csr_new(pool, d->n);
    int total = 0;
    for (int round = 0; round < 2; round++) {
        for (int u = 0; u < d->n; u++)
            for (int v = 0; v < d->n; v++) {
                if (!(d->succ[u] >> v & 1))
                    continue;
                if (round) {
                    csr_store(&g.succ, u, v);
                    csr_store(&g.pred, v, u);
                } else {
                    csr_count(&g.succ, u);
                    csr_count(&g.pred, v);
                    total++;
                }
            }
        if (round == 0) {
            csr_close(&g.pred, pool, total);
            csr_close(&g.succ, pool, total);
        }
    }
    return g;
}

/* ---- the model, with the ends as vertices 30 and 31 where they are virtual ---- */

typedef struct Model {
    const Dag *d;
    unsigned pred[MAX_NODES], succ[MAX_NODES], ends; /* ends: checkpoints in any case */
} Model;

static const unsigned SOURCE = 1u << 30, TARGET = 1u << 31;

static Model new_model(const Dag *d)
{
    Model m = {.d = d};
    unsigned sources = 0, targets = 0;
    for (int v = 0; v < d->n; v++) {
        m.pred[v] = d->pred[v];
        m.succ[v] = d->succ[v];
        sources |= (unsigned)!d->pred[v] << v;
        targets |= (unsigned)!d->succ[v] << v;
    }
    bool real_source = d->has_inputs && (sources & (sources - 1)) == 0;
    bool real_target = (targets & (targets - 1)) == 0 && d->n > 1;
    m.ends = (real_source ? sources : SOURCE) | (real_target ? targets : TARGET);
    for (int v = 0; v < d->n; v++) {
        m.pred[v] |= sources >> v & 1 && !real_source ? SOURCE : 0;
        m.succ[v] |= targets >> v & 1 && !real_target ? TARGET : 0;
    }
    return m;
}

/* -1: a segment has several entries or exits. */
static int64_t model_cost(const Model *m, unsigned checkpoints)
{
    unsigned kept = checkpoints | m->ends, all = (1u << m->d->n) - 1, seen = 0;
    int64_t sum = 0, largest = 0;
    for (int v = 0; v < m->d->n; v++)
        sum += kept >> v & 1 ? m->d->bytes[v] : 0;
    for (int first = 0; first < m->d->n; first++) {
        unsigned part = 1u << first & ~kept & ~seen, before, entries, exits;
        if (!part)
            continue;
        do {
            before = part;
            entries = exits = 0;
            for (int v = 0; v < m->d->n; v++)
                if (before >> v & 1) {
                    entries |= m->pred[v] & kept;
                    exits |= m->succ[v] & kept;
                    part |= (m->pred[v] | m->succ[v]) & all & ~kept;
                }
        } while (part != before);
        if ((entries & (entries - 1)) || (exits & (exits - 1)))
            return -1;
        seen |= part;
        int64_t cost = 0;
        for (int v = 0; v < m->d->n; v++)
            cost += part >> v & 1 ? m->d->bytes[v] : 0;
        largest = cost > largest ? cost : largest;
    }
    return sum + largest;
}

static int64_t enumerate(const Model *m)
{
    int64_t best = INT64_MAX;
    for (unsigned set = 0; set < 1u << m->d->n; set++) {
        int64_t cost = set & m->ends ? -1 : model_cost(m, set);
        best = cost >= 0 && cost < best ? cost : best;
    }
    return best;
}

static FengAnswer check_division(Pool *pool, const Dag *d, const Model *m, FengDivision division)
{
    ForwardGraph g = dag_graph(pool, d);
    FengAnswer a = feng_plan(pool, &g, division, MAX_STEPS, NULL, NULL);
    unsigned set = 0;
    for (int v = 0; v < d->n; v++)
        set |= (unsigned)a.checkpoint[v] << v;
    int64_t cost = model_cost(m, set);
    CHECK(!a.limited && a.cost == a.kept + a.largest);
    CHECK_MSG(cost >= 0 && cost <= a.cost, "division %d: %lld, told %lld", (int)division,
              (long long)cost, (long long)a.cost);
    return a;
}

static void check_cost(Pool *pool, const Dag *d, const Model *m, Random *r)
{
    ForwardGraph g = dag_graph(pool, d);
    FengGraph f = feng_graph(pool, &g);
    bool *checkpoint = POOL_ARRAY(pool, (size_t)f.g.n, bool);
    unsigned set = 0;
    for (int v = 0; v < d->n; v++) {
        checkpoint[v + f.shift] = random_below(r, 2);
        set |= (unsigned)checkpoint[v + f.shift] << v;
    }
    CHECK(feng_cost(pool, &f, checkpoint) == model_cost(m, set));
}

typedef struct Counts {
    int optimal_acg, optimal_closeset, optimal_linear, chains;
} Counts;

static void check_dag(Random *r, Counts *counts)
{
    Pool *pool = pool_new();
    Dag d;
    random_dag(&d, r);
    Model m = new_model(&d);
    int64_t best = enumerate(&m);
    FengAnswer acg = check_division(pool, &d, &m, FENG_STRIPPED);
    FengAnswer closeset = check_division(pool, &d, &m, FENG_CLOSED);
    FengAnswer linear = check_division(pool, &d, &m, FENG_SPLIT);
    CHECK_MSG(acg.cost == best, "acg %lld, enumeration %lld", (long long)acg.cost, (long long)best);
    CHECK(closeset.cost >= best && linear.cost >= best);
    bool chain = true;
    for (int v = 1; v < d.n; v++)
        chain &= d.pred[v] == 1u << (v - 1);
    CHECK(!chain || (linear.cost == best && closeset.cost == best));
    check_cost(pool, &d, &m, r);
    counts->optimal_acg += acg.cost == best;
    counts->optimal_closeset += closeset.cost == best;
    counts->optimal_linear += linear.cost == best;
    counts->chains += chain;
    pool_free(pool);
}

/* The chain of docs/remat.md, between ends of no size. */
static void check_example(void)
{
    static const int64_t bytes[] = {0, 13, 13, 1, 8, 13, 13, 0};
    Pool *pool = pool_new();
    Dag d = {.n = 8, .has_inputs = true};
    for (int v = 0; v < d.n; v++) {
        d.bytes[v] = bytes[v];
        d.pred[v] = v ? 1u << (v - 1) : 0;
        d.succ[v] = v < d.n - 1 ? 1u << (v + 1) : 0;
    }
    Model m = new_model(&d);
    CHECK(check_division(pool, &d, &m, FENG_SPLIT).cost == 35);
    CHECK(check_division(pool, &d, &m, FENG_STRIPPED).cost == 35);
    pool_free(pool);
}

/* Between 1 and 5 stand 2 and 3, and 4, which leaks to 6; no vertex splits the rest.  Stripped, {2,
 * 3} need not become checkpoints; as algorithm 4 is printed they must. */
static void check_leak(void)
{
    static const unsigned pred[] = {0,      1 << 0,          1 << 1,         1 << 1,
                                    1 << 1, 1 << 0 | 7 << 2, 1 << 1 | 3 << 4};
    Pool *pool = pool_new();
    Dag d = {.n = 7, .has_inputs = true};
    for (int v = 0; v < d.n; v++) {
        d.bytes[v] = v == 2 || v == 3 ? 10 : 1;
        d.pred[v] = pred[v];
        for (int u = 0; u < v; u++)
            d.succ[u] |= (pred[v] >> u & 1) << v;
    }
    Model m = new_model(&d);
    CHECK(check_division(pool, &d, &m, FENG_STRIPPED).cost == 15);
    CHECK(check_division(pool, &d, &m, FENG_CLOSED).cost == 25);
    pool_free(pool);
}

int main(void)
{
    const char *graphs = getenv("SCRIMP_GRAPHS"), *from = getenv("SCRIMP_SEED");
    int n = graphs ? atoi(graphs) : 2500;
    uint64_t seed = from ? strtoull(from, NULL, 10) : 2021;
    Random r = {seed};
    Counts counts = {0};
    for (int k = 0; k < n && check_failures < 20; k++)
        check_dag(&r, &counts);
    printf("seed %llu: %d graphs; optimal: acg %d, closeset %d, linear %d; %d chains\n",
           (unsigned long long)seed, n, counts.optimal_acg, counts.optimal_closeset,
           counts.optimal_linear, counts.chains);
    check_example();
    check_leak();
    return test_result();
}
