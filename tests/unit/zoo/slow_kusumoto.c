/* The networks of Kusumoto et al. 2019 at their batch sizes, under the paper's own model: prints
 * what the approximate and the exact method find and how long they take.  The exact one is never
 * worse where it comes to its end. */
#include "passes/remat/kusumoto.h"
#include "zoo_files.h"

#include <time.h>

static const struct Network {
    const char *name, *file, *batch, *options;
} networks[] = {{"PSPNet", "pspnet", "N=2", "aux=true"},
                {"U-Net", "unet", "N=8", ""},
                {"ResNet50", "resnet", "N=96", "depth=50 variant=chainer"},
                {"ResNet152", "resnet", "N=48", "depth=152 variant=chainer"},
                {"VGG19", "vgg", "N=64", "variant=chainer depth=19"},
                {"DenseNet161", "densenet", "N=32", "depth=161"},
                {"GoogLeNet", "googlenet", "N=256", "variant=chainer aux=true"}};

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

static void check_network(const struct Network *n)
{
    const char *defs[MAX_DEFS + 1];
    read_defs(n->options, defs);
    defs[0] = n->batch;
    Lowered r = lower_example_for(n->file, FRONTEND_TRAIN, true, defs);
    CHECK_MSG(r.graph, "%s: cannot be read", n->name);
    if (r.graph) {
        CountGraph c = count_graph(r.pool, r.graph, count_rule_find("kusumoto"));
        ForwardGraph g = forward_graph_of_count(r.pool, &c);
        printf("%s: %d vertices\n", n->name, g.n);
        for (int centric = 0; centric < 2; centric++) {
            double took;
            KusumotoAnswer approx = run(r.pool, &g, &kusumoto_approx, "approx", centric, &took);
            CHECK_MSG(took < 1, "%s: %.2f s", n->name, took);
            KusumotoAnswer exact = run(r.pool, &g, &kusumoto_exact, "exact", centric, &took);
            CHECK(approx.n_sets && !approx.limited);
            CHECK(exact.limited || exact.budget <= approx.budget);
        }
    }
    lowered_free(&r);
}

int main(void)
{
    pool = pool_new();
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        check_network(&networks[i]);
    pool_free(pool);
    return test_result();
}
