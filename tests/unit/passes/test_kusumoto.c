/* The dynamic program against enumeration of every sequence of the family, with equations 1 and 2
 * written down again as the paper defines them. */
#include "check.h"
#include "passes/remat/kusumoto_dp.h"
#include "random_step.h"

enum { MAX_NODES = 8 };

typedef struct Dag {
    int n;
    unsigned pred[MAX_NODES], succ[MAX_NODES]; /* as sets */
    double time[MAX_NODES];
    int64_t bytes[MAX_NODES];
    unsigned family[MAX_NODES + 2];
    int n_family;
} Dag;

static void random_dag(Dag *d, Random *r)
{
    *d = (Dag){.n = 2 + random_below(r, MAX_NODES - 1)};
    for (int v = 0; v < d->n; v++) {
        d->time[v] = 1 + random_below(r, 9);
        d->bytes[v] = 64 * (1 + random_below(r, 9));
        for (int k = random_below(r, 3); v > 0 && k >= 0; k--)
            d->pred[v] |= 1u << (v - 1 - random_below(r, v < 3 ? v : 3));
        for (int u = 0; u < v; u++)
            d->succ[u] |= (d->pred[v] >> u & 1) << v;
    }
    unsigned ancestors[MAX_NODES];
    d->family[d->n_family++] = 0;
    for (int v = 0; v < d->n; v++) {
        ancestors[v] = 1u << v;
        for (int u = 0; u < v; u++)
            ancestors[v] |= d->pred[v] >> u & 1 ? ancestors[u] : 0;
        d->family[d->n_family++] = ancestors[v];
    }
    d->family[d->n_family++] = (1u << d->n) - 1;
}

static RematProblem *dag_problem(Pool *pool, const Dag *d)
{
    RematProblem *p = POOL_NEW(pool, RematProblem);
    *p = (RematProblem){.pool = pool, .n_nodes = d->n, .n_tensors = d->n, .loss_node = d->n - 1};
    p->node = POOL_ARRAY(pool, (size_t)d->n, RematNode);
    p->tensor = POOL_ARRAY(pool, (size_t)d->n, RematTensor);
    for (int v = 0; v < d->n; v++) {
        RematNode *node = &p->node[v];
        *node = (RematNode){.name = "v", .cost = d->time[v], .rerun = true, .forward = true};
        node->in = POOL_ARRAY(pool, MAX_NODES, int);
        node->out = POOL_ARRAY(pool, 1, int);
        node->out[node->n_out++] = v;
        for (int u = 0; u < v; u++)
            if (d->pred[v] >> u & 1)
                node->in[node->n_in++] = u;
        p->tensor[v] = (RematTensor){d->bytes[v], v, false, false, "t"};
    }
    return p;
}

static unsigned successors(const Dag *d, unsigned set)
{
    unsigned out = 0;
    for (int v = 0; v < d->n; v++)
        out |= set >> v & 1 ? d->succ[v] : 0;
    return out;
}

static unsigned predecessors(const Dag *d, unsigned set)
{
    unsigned out = 0;
    for (int v = 0; v < d->n; v++)
        out |= set >> v & 1 ? d->pred[v] : 0;
    return out;
}

static int64_t memory(const Dag *d, unsigned set)
{
    int64_t sum = 0;
    for (int v = 0; v < d->n; v++)
        sum += set >> v & 1 ? d->bytes[v] : 0;
    return sum;
}

static double time_of(const Dag *d, unsigned set)
{
    double sum = 0;
    for (int v = 0; v < d->n; v++)
        sum += set >> v & 1 ? d->time[v] : 0;
    return sum;
}

static unsigned boundary(const Dag *d, unsigned l)
{
    return predecessors(d, ((1u << d->n) - 1) & ~l) & l;
}

/* Equations 1 and 2 of a sequence L_1 < ... < L_k = V. */
static void evaluate(const Dag *d, const unsigned *sequence, int k, double *overhead, int64_t *peak)
{
    unsigned cached = 0, before = 0;
    *overhead = 0;
    *peak = 0;
    for (int i = 0; i < k; i++) {
        unsigned l = sequence[i], block = l & ~before, next = successors(d, l);
        int64_t m = memory(d, cached) + 2 * memory(d, block) + memory(d, next & ~l) +
                    memory(d, predecessors(d, next) & ~l);
        *peak = m > *peak ? m : *peak;
        *overhead += time_of(d, block & ~boundary(d, l));
        cached |= boundary(d, l);
        before = l;
    }
}

typedef struct Best {
    int64_t smallest_peak, budget;
    double least, most; /* overhead within the budget; -1 = none */
} Best;

static void enumerate(const Dag *d, unsigned *sequence, int k, Best *best)
{
    unsigned last = k ? sequence[k - 1] : 0;
    if (last == (1u << d->n) - 1) {
        double overhead;
        int64_t peak;
        evaluate(d, sequence, k, &overhead, &peak);
        best->smallest_peak = peak < best->smallest_peak ? peak : best->smallest_peak;
        if (peak > best->budget)
            return;
        best->least = best->least < 0 || overhead < best->least ? overhead : best->least;
        best->most = overhead > best->most ? overhead : best->most;
        return;
    }
    for (int i = 0; i < d->n_family; i++)
        if (d->family[i] != last && (last & ~d->family[i]) == 0) {
            sequence[k] = d->family[i];
            enumerate(d, sequence, k + 1, best);
        }
}

static Best enumerate_all(const Dag *d, int64_t budget)
{
    unsigned sequence[MAX_NODES + 2];
    Best best = {INT64_MAX, budget, -1, -1};
    enumerate(d, sequence, 0, &best);
    return best;
}

static void check_answer(const Dag *d, const Family *f, int64_t budget, bool memory_centric)
{
    Best best = enumerate_all(d, budget);
    int set_of[MAX_NODES], n_sets = kusumoto_solve(f, budget, memory_centric, set_of);
    CHECK((n_sets > 0) == (best.least >= 0));
    if (n_sets == 0)
        return;
    unsigned sequence[MAX_NODES + 2] = {0};
    for (int i = 0; i < n_sets; i++)
        for (int v = 0; v < d->n; v++)
            sequence[i] |= (unsigned)(set_of[v] <= i) << v;
    double overhead, wanted = memory_centric ? best.most : best.least;
    int64_t peak;
    evaluate(d, sequence, n_sets, &overhead, &peak);
    CHECK_MSG(peak <= budget, "peak %lld over %lld", (long long)peak, (long long)budget);
    CHECK_MSG(overhead > wanted - 0.5 && overhead < wanted + 0.5, "overhead %g, wanted %g",
              overhead, wanted);
}

static void check_dag(Random *r)
{
    Pool *pool = pool_new();
    Dag d;
    random_dag(&d, r);
    ForwardView *v = forward_view_new(pool, dag_problem(pool, &d));
    Family *f = kusumoto_family(pool, v);
    int64_t smallest = kusumoto_smallest_budget(f), exact = enumerate_all(&d, 0).smallest_peak;
    CHECK_MSG(smallest >= exact && smallest <= exact + exact / 500 + 2, "%lld, exact %lld",
              (long long)smallest, (long long)exact);
    int64_t highest = 2 * memory(&d, (1u << d.n) - 1);
    for (int k = -1; k < 8; k++) {
        int64_t budget = exact + (highest - exact) * k / 7;
        check_answer(&d, f, budget, false);
        check_answer(&d, f, budget, true);
    }
    pool_free(pool);
}

int main(void)
{
    Random r = {2019};
    printf("seed 2019\n");
    for (int k = 0; k < 300; k++)
        check_dag(&r);
    return test_result();
}
