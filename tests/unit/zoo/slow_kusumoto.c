/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The networks of Kusumoto et al. 2019 at their batch sizes, under the paper's own model: the lower
 * sets, the peak of equation 2 and the overhead of equation 1 that the approximate and the exact
 * method find with the smallest budget.  The peaks plus 8 bytes a parameter are "ours" of table 2
 * in docs/results/kusumoto.csv.  GoogLeNet has too many lower sets for the exact method: what it
 * finds within its steps is only compared with the approximate one's. */
#include "check.h"
#include "passes/paper_graph/forward_count.h"
#include "passes/remat/papers/kusumoto.h"
#include "tests/support/elaborate_text.h"
#include "tests/support/zoo_files.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static Pool *pool;

/* overhead: time-centric, memory-centric; lower_sets 0: not known, the search is too long */
typedef struct Figures {
    int lower_sets;
    double peak_megabytes, overhead[2];
} Figures;

static const struct Network {
    const char *name, *file, *batch, *options;
    int vertices;
    Figures approx, exact;
} networks[] = {{"PSPNet",
                 "pspnet",
                 "N=2",
                 "aux=true",
                 385,
                 {386, 2454, {1344, 1388}},
                 {12533, 2388, {1328, 1380}}},
                {"U-Net", "unet", "N=8", "", 60, {61, 4798, {188, 247}}, {331, 4798, {177, 247}}},
                {"ResNet50",
                 "resnet",
                 "N=96",
                 "depth=50 variant=chainer",
                 176,
                 {177, 3931, {288, 637}},
                 {241, 3776, {385, 620}}},
                {"ResNet152",
                 "resnet",
                 "N=48",
                 "depth=152 variant=chainer",
                 516,
                 {517, 2197, {1673, 1867}},
                 {581, 2197, {1620, 1871}}},
                {"VGG19",
                 "vgg",
                 "N=64",
                 "variant=chainer depth=19",
                 46,
                 {47, 4213, {41, 157}},
                 {47, 4213, {41, 157}}},
                {"DenseNet161",
                 "densenet",
                 "N=32",
                 "depth=161",
                 568,
                 {569, 1676, {1143, 1919}},
                 {569, 1676, {1143, 1919}}},
                {"GoogLeNet",
                 "googlenet",
                 "N=256",
                 "variant=chainer aux=true",
                 135,
                 {136, 3905, {444, 647}},
                 {0, 0, {0, 0}}}};

static const int64_t MAX_STEPS = 100000000000;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static KusumotoAnswer run(Pool *on, const ForwardGraph *g, const KusumotoMethod *method,
                          const char *name, bool memory_centric, double *took)
{
    double begin = seconds();
    KusumotoAnswer a = kusumoto_plan(on, g, method, 0, memory_centric, MAX_STEPS);
    *took = seconds() - begin;
    printf("  %s %s: %d lower sets, peak %.3f GB, overhead %g, %d blocks, %.2f s%s\n", name,
           memory_centric ? "MC" : "TC", a.n_lower_sets, 1e-9 * (double)a.peak, a.overhead,
           a.n_sets, *took, a.limited ? ", limit" : "");
    fflush(stdout);
    return a;
}

static void check_figures(const struct Network *n, const KusumotoAnswer *a, const Figures *want,
                          int centric)
{
    CHECK_MSG(a->n_sets > 0 && !a->limited, "%s: no answer", n->name);
    CHECK_MSG(a->n_lower_sets == want->lower_sets, "%s: %d lower sets, not %d", n->name,
              a->n_lower_sets, want->lower_sets);
    CHECK_MSG(round(1e-6 * (double)a->peak) == want->peak_megabytes, "%s: %g MB, not %g", n->name,
              1e-6 * (double)a->peak, want->peak_megabytes);
    CHECK_MSG(a->overhead == want->overhead[centric], "%s: overhead %g, not %g", n->name,
              a->overhead, want->overhead[centric]);
    CHECK_MSG(a->budget == a->peak, "%s: the smallest budget is not reached", n->name);
}

static void check_network(const struct Network *n)
{
    const char *defs[MAX_DEFS + 1];
    read_defs(pool, n->options, defs);
    defs[0] = n->batch;
    Elaborated r = elaborate_example_for(n->file, FRONTEND_TRAIN, true, defs);
    CHECK_MSG(r.graph, "%s: cannot be read", n->name);
    if (r.graph) {
        PaperGraph c = paper_graph(r.pool, r.graph, counting_rule_find("kusumoto"));
        ForwardGraph g = forward_graph_of_count(r.pool, &c);
        printf("%s: %d vertices\n", n->name, g.n);
        CHECK_MSG(g.n == n->vertices, "%s: %d vertices, not %d", n->name, g.n, n->vertices);
        for (int centric = 0; centric < 2; centric++) {
            double took;
            KusumotoAnswer approx = run(r.pool, &g, &kusumoto_approx, "approx", centric, &took);
            CHECK_MSG(took < 60, "%s: %.2f s", n->name, took);
            KusumotoAnswer exact = run(r.pool, &g, &kusumoto_exact, "exact", centric, &took);
            check_figures(n, &approx, &n->approx, centric);
            if (n->exact.lower_sets)
                check_figures(n, &exact, &n->exact, centric);
            CHECK(exact.limited || exact.budget <= approx.budget);
            CHECK(exact.limited || exact.budget < approx.budget || centric ||
                  exact.overhead <= approx.overhead);
        }
    }
    elaborated_free(&r);
}

int main(void)
{
    pool = pool_new();
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        check_network(&networks[i]);
    pool_free(pool);
    return test_result();
}
