/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The methods of Kusumoto et al. 2019 against an enumeration of every sequence of lower sets, with
 * equations 1 and 2 written down again as the paper defines them.  SCRIMP_GRAPHS: how many graphs
 * (2000); SCRIMP_SEED: another seed. */
#include "check.h"
#include "passes/remat/papers/kusumoto.h"
#include "tests/support/random_step.h"

#include <stdlib.h>

enum { MAX_NODES = 12, MAX_SEQUENCES = 6000, MAX_FAMILY = 4096, MAX_STEPS = 1000000000 };

typedef struct Dag {
    int n;
    unsigned pred[MAX_NODES], succ[MAX_NODES]; /* as sets */
    double time[MAX_NODES];
    int64_t bytes[MAX_NODES];
    unsigned family[MAX_FAMILY];
    int n_family;
} Dag;

/* Of every set of nodes of the graph at hand. */
static unsigned successors_of[1 << MAX_NODES], predecessors_of[1 << MAX_NODES];
static int64_t memory_of[1 << MAX_NODES];
static double time_of[1 << MAX_NODES];

static unsigned whole(const Dag *d)
{
    return (1u << d->n) - 1;
}

static void tabulate_sets(const Dag *d)
{
    for (unsigned set = 1; set <= whole(d); set++) {
        unsigned rest = set & (set - 1);
        int v = 0;
        while (!(set >> v & 1))
            v++;
        successors_of[set] = successors_of[rest] | d->succ[v];
        predecessors_of[set] = predecessors_of[rest] | d->pred[v];
        memory_of[set] = memory_of[rest] + d->bytes[v];
        time_of[set] = time_of[rest] + d->time[v];
    }
}

static unsigned boundary(const Dag *d, unsigned l)
{
    return predecessors_of[whole(d) & ~l] & l;
}

/* Every subset that is closed under predecessors, or only the ancestors of single nodes. */
static void find_family(Dag *d, bool all)
{
    d->n_family = 0;
    for (unsigned l = 0; l <= whole(d); l++) {
        bool ancestors = l == 0 || l == whole(d);
        for (int v = 0; v < d->n && !ancestors; v++) {
            unsigned of_v = 1u << v, more = 0;
            while ((more = of_v | predecessors_of[of_v]) != of_v)
                of_v = more;
            ancestors = of_v == l;
        }
        if ((predecessors_of[l] & ~l) == 0 && (all || ancestors))
            d->family[d->n_family++] = l;
    }
}

static void random_dag(Dag *d, Random *r)
{
    *d = (Dag){.n = 2 + random_below(r, MAX_NODES - 1)};
    int near = 1 + random_below(r, 4), more = random_below(r, 3);
    for (int v = 0; v < d->n; v++) {
        d->time[v] = random_below(r, 2) ? 1 : 10;
        d->bytes[v] = 1 + random_below(r, 999);
        for (int k = random_below(r, 2 + more); v > 0 && k >= 0; k--)
            d->pred[v] |= 1u << (v - 1 - random_below(r, v < near ? v : near));
        if (random_below(r, 12) == 0)
            d->pred[v] = 0;
        for (int u = 0; u < v; u++)
            d->succ[u] |= (d->pred[v] >> u & 1) << v;
    }
    tabulate_sets(d);
    find_family(d, true);
}

/* ---- what is tested is given the same graph ---- */

static ForwardGraph dag_graph(Pool *pool, const Dag *d)
{
    ForwardGraph g = {.n = d->n, .time = d->time, .bytes = d->bytes};
    g.pred = csr_new(pool, d->n);
    g.succ = csr_new(pool, d->n);
    int total = 0;
    for (int u = 0; u < d->n; u++)
        for (int v = 0; v < d->n; v++)
            if (d->succ[u] >> v & 1) {
                csr_count(&g.succ, u);
                csr_count(&g.pred, v);
                total++;
            }
    csr_close(&g.pred, pool, total);
    csr_close(&g.succ, pool, total);
    for (int u = 0; u < d->n; u++)
        for (int v = 0; v < d->n; v++)
            if (d->succ[u] >> v & 1) {
                csr_store(&g.succ, u, v);
                csr_store(&g.pred, v, u);
            }
    return g;
}

/* ---- enumeration ---- */

typedef struct Sequence {
    int64_t peak;
    double overhead;
} Sequence;

/* Equations 1 and 2 of a sequence L_1 < ... < L_k = V. */
static Sequence evaluate(const Dag *d, const unsigned *sequence, int k)
{
    unsigned cached = 0, before = 0;
    Sequence s = {0, 0};
    for (int i = 0; i < k; i++) {
        unsigned l = sequence[i], block = l & ~before, next = successors_of[l];
        int64_t m = memory_of[cached] + 2 * memory_of[block] + memory_of[next & ~l] +
                    memory_of[predecessors_of[next] & ~l];
        s.peak = m > s.peak ? m : s.peak;
        s.overhead += time_of[block & ~boundary(d, l)];
        cached |= boundary(d, l);
        before = l;
    }
    return s;
}

typedef struct Enumeration {
    const Dag *d;
    unsigned sequence[MAX_NODES + 1];
    Sequence found[MAX_SEQUENCES];
    int n;
} Enumeration;

/* False when there are too many. */
static bool enumerate(Enumeration *e, int k)
{
    unsigned last = k ? e->sequence[k - 1] : 0;
    if (last == whole(e->d)) {
        if (e->n < MAX_SEQUENCES)
            e->found[e->n] = evaluate(e->d, e->sequence, k);
        return ++e->n <= MAX_SEQUENCES;
    }
    for (int i = 0; i < e->d->n_family; i++)
        if (e->d->family[i] != last && (last & ~e->d->family[i]) == 0) {
            e->sequence[k] = e->d->family[i];
            if (!enumerate(e, k + 1))
                return false;
        }
    return true;
}

/* The least and the most overhead within the budget; -1 = none. */
static void find_best(const Enumeration *e, int64_t budget, double *least, double *most)
{
    *least = *most = -1;
    for (int i = 0; i < e->n; i++) {
        const Sequence *s = &e->found[i];
        if (s->peak > budget)
            continue;
        *least = *least < 0 || s->overhead < *least ? s->overhead : *least;
        *most = s->overhead > *most ? s->overhead : *most;
    }
}

static int64_t smallest_peak(const Enumeration *e)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < e->n; i++)
        least = e->found[i].peak < least ? e->found[i].peak : least;
    return least;
}

/* ---- checks ---- */

static void check_answer(const Enumeration *e, const KusumotoAnswer *a, int64_t budget,
                         double wanted)
{
    const Dag *d = e->d;
    CHECK((a->n_sets > 0) == (wanted >= 0) && !a->limited);
    if (a->n_sets == 0)
        return;
    unsigned sequence[MAX_NODES + 1] = {0};
    for (int i = 0; i < a->n_sets; i++)
        for (int v = 0; v < d->n; v++)
            sequence[i] |= (unsigned)(a->set_of[v] <= i) << v;
    for (int i = 0; i < a->n_sets; i++)
        CHECK((predecessors_of[sequence[i]] & ~sequence[i]) == 0);
    Sequence s = evaluate(d, sequence, a->n_sets);
    CHECK_MSG(s.peak == a->peak && s.overhead == a->overhead, "equations: %lld %g, told %lld %g",
              (long long)s.peak, s.overhead, (long long)a->peak, a->overhead);
    CHECK_MSG(s.peak <= budget, "peak %lld over %lld", (long long)s.peak, (long long)budget);
    CHECK_MSG(s.overhead == wanted, "overhead %g, wanted %g", s.overhead, wanted);
}

static void check_method(Pool *parent, const Enumeration *e, const KusumotoMethod *method)
{
    Pool *pool = pool_new_child(parent);
    ForwardGraph g = dag_graph(pool, e->d);
    int64_t low = smallest_peak(e), high = 2 * memory_of[whole(e->d)];
    for (int k = -1; k < 4; k++) {
        int64_t budget = k < 0 ? low - 1 : low + (high - low) * k * k / 9;
        double wanted[2];
        find_best(e, budget, &wanted[0], &wanted[1]);
        for (int centric = 0; centric < 2; centric++) {
            KusumotoAnswer a = kusumoto_plan(pool, &g, method, k ? budget : 0, centric, MAX_STEPS);
            CHECK_MSG(a.budget == budget, "smallest budget %lld, wanted %lld", (long long)a.budget,
                      (long long)budget);
            check_answer(e, &a, budget, wanted[centric]);
        }
    }
    pool_free(pool);
}

/* False when the graph has too many sequences to be tested. */
static bool check_dag(Random *r)
{
    static Enumeration e;
    Dag d;
    random_dag(&d, r);
    e.d = &d;
    e.n = 0;
    if (!enumerate(&e, 0))
        return false;
    Pool *pool = pool_new();
    check_method(pool, &e, &kusumoto_exact);
    if (e.n <= MAX_SEQUENCES / 3)
        check_method(pool, &e, &kusumoto_exhaustive);
    find_family(&d, false);
    e.n = 0;
    CHECK(enumerate(&e, 0));
    check_method(pool, &e, &kusumoto_approx);
    pool_free(pool);
    return true;
}

/* A graph with more lower sets than a method takes: the answer is that of the approximation. */
static void check_limit(void)
{
    enum { WIDE = 20 };
    Pool *pool = pool_new();
    double time[WIDE];
    int64_t bytes[WIDE];
    for (int v = 0; v < WIDE; v++) {
        time[v] = 1;
        bytes[v] = 64;
    }
    ForwardGraph g = {.n = WIDE, .time = time, .bytes = bytes};
    g.pred = csr_new(pool, WIDE);
    g.succ = csr_new(pool, WIDE);
    csr_close(&g.pred, pool, 0);
    csr_close(&g.succ, pool, 0);
    KusumotoAnswer exact = kusumoto_plan(pool, &g, &kusumoto_exact, 0, false, MAX_STEPS);
    KusumotoAnswer approx = kusumoto_plan(pool, &g, &kusumoto_approx, 0, false, MAX_STEPS);
    CHECK(exact.limited && !approx.limited && exact.n_sets == approx.n_sets);
    CHECK(exact.peak == approx.peak && exact.overhead == approx.overhead);
    g.until = 1e-9; /* long ago: no sets but the empty one and the whole */
    KusumotoAnswer late = kusumoto_plan(pool, &g, &kusumoto_approx, 0, false, MAX_STEPS);
    CHECK(late.limited && late.n_lower_sets == 2);
    pool_free(pool);
}

int main(void)
{
    const char *graphs = getenv("SCRIMP_GRAPHS"), *from = getenv("SCRIMP_SEED");
    int wanted = graphs ? atoi(graphs) : 2000, done = 0, drawn = 0;
    uint64_t seed = from ? strtoull(from, NULL, 10) : 2019;
    Random r = {seed};
    for (; done < wanted; drawn++)
        done += check_dag(&r);
    printf("seed %llu: %d graphs, %d more had too many sequences\n", (unsigned long long)seed, done,
           drawn - done);
    check_limit();
    return test_result();
}
