/* Speed of the generated matrix kernels on one core, as part of the core's measured multiply-add
 * peak. Usage: bench_kernels [PART-OF-A-NAME [MARCH]].  Minimum over repetitions, packing of
 * operands included. */
#include "codegen/peak.h"
#include "unit/codegen/run_kernels.h"

#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static ValueId input(Graph *g, int rank, const int64_t *dim)
{
    AttrList none = {0};
    return graph_add_source(g, OP_input, type_make(DTYPE_F32, rank, dim), &none, NULL, (Loc){0, 0});
}

/* Processor time, so that other processes on the machine disturb little; minimum over 5 runs and
 * 0.3 seconds. */
static double best_seconds(const KernelRun *r)
{
    double best = 1e30, start = seconds();
    for (int i = 0; i < 5 || seconds() - start < 0.3; i++) {
        double from = seconds();
        run_once(r);
        double took = seconds() - from;
        best = took < best ? took : best;
    }
    return best;
}

typedef struct Bench {
    const char *filter;
    const Target *target;
    double peak;
} Bench;

static void report(const Bench *b, Graph *g, const char *name)
{
    KernelRun *r = run_new(g->pool, g, b->target);
    if (r) {
        for (size_t v = 0; v < g->values.len; v++)
            memset(r->data[v], 0, (size_t)type_bytes(&g->values.data[v].type));
        double took = best_seconds(r), gflops = graph_flops(g) / took * 1e-9;
        printf("%-34s %9.3f ms %8.1f GFLOP/s %6.1f%%\n", name, took * 1e3, gflops,
               100 * gflops / b->peak);
        fflush(stdout);
    }
    run_free(r);
}

static bool wanted(const Bench *b, const char *name)
{
    return !b->filter || strstr(name, b->filter);
}

static void bench_matmul(const Bench *b, int64_t batch, int64_t m, int64_t n, int64_t k, bool ta,
                         bool tb)
{
    char name[64];
    snprintf(name, sizeof name, "matmul %s%s %lldx%lldx%lldx%lld", ta ? "T" : "N", tb ? "T" : "N",
             (long long)batch, (long long)m, (long long)n, (long long)k);
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t a[3] = {batch, ta ? k : m, ta ? m : k}, w[3] = {batch, tb ? n : k, tb ? k : n};
    AttrList attrs = {0};
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    int drop = batch == 1;
    ValueId in[2] = {input(g, 3 - drop, a + drop), input(g, 3 - drop, w + drop)};
    graph_add(g, OP_matmul, in, 2, &attrs, NULL, (Loc){0, 0});
    report(b, g, name);
    pool_free(pool);
}

typedef struct ConvCase {
    int64_t n, c, size, k, kernel, stride, pad;
} ConvCase;

static void bench_conv(const Bench *b, OpKind op, const ConvCase *q)
{
    char name[96];
    snprintf(name, sizeof name, "%s %lld %lldc %lld^2 %lldk %lldx%lld/%lld", op_name(op),
             (long long)q->n, (long long)q->c, (long long)q->size, (long long)q->k,
             (long long)q->kernel, (long long)q->kernel, (long long)q->stride);
    if (!wanted(b, name))
        return;
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "bench");
    int64_t small = (q->size + 2 * q->pad - q->kernel) / q->stride + 1;
    int64_t x[4] = {q->n, q->size, q->size, q->c}, y[4] = {q->n, small, small, q->k};
    int64_t w[4] = {q->kernel, q->kernel, q->c, q->k};
    int64_t stride[2] = {q->stride, q->stride}, pad[2] = {q->pad, q->pad};
    int64_t size[2] = {q->size, q->size}, kernel[2] = {q->kernel, q->kernel};
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_nhwc, 1);
    attrs_ints(&attrs, ATTR_stride, stride, 2);
    attrs_ints(&attrs, ATTR_padding, pad, 2);
    if (op == OP_conv2d_dgrad)
        attrs_ints(&attrs, ATTR_hw, size, 2);
    if (op == OP_conv2d_wgrad)
        attrs_ints(&attrs, ATTR_hw, kernel, 2);
    ValueId in[2] = {input(g, 4, op == OP_conv2d_dgrad ? y : x),
                     op == OP_conv2d_wgrad ? input(g, 4, y) : input(g, 4, w)};
    graph_add(g, op, in, 2, &attrs, NULL, (Loc){0, 0});
    report(b, g, name);
    pool_free(pool);
}

static void bench_all(const Bench *b)
{
    bench_matmul(b, 1, 1024, 1024, 1024, false, false);
    bench_matmul(b, 1, 1024, 1024, 1024, false, true);
    bench_matmul(b, 1, 1024, 1024, 1024, true, false);
    bench_matmul(b, 1, 256, 1024, 784, false, true);
    bench_matmul(b, 1, 784, 1024, 256, true, false);
    bench_matmul(b, 1, 25088, 64, 256, false, false);
    bench_matmul(b, 1, 256, 64, 25088, true, false);
    bench_matmul(b, 128, 128, 128, 64, false, true);
    bench_matmul(b, 128, 128, 64, 128, false, false);
    bench_matmul(b, 1, 1024, 256, 256, false, true);
    bench_matmul(b, 1, 16, 1000, 512, false, true);
    static const ConvCase cases[] = {
        {8, 64, 56, 64, 3, 1, 1},  {8, 128, 28, 128, 3, 1, 1}, {8, 256, 14, 256, 3, 1, 1},
        {8, 512, 7, 512, 3, 1, 1}, {8, 64, 56, 128, 3, 2, 1},  {8, 64, 56, 128, 1, 2, 0},
        {8, 3, 224, 64, 7, 2, 3},  {16, 512, 2, 512, 3, 1, 1}, {8, 64, 56, 256, 1, 1, 0},
        {64, 1, 28, 32, 3, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_conv(b, OP_conv2d, &cases[i]);
        bench_conv(b, OP_conv2d_dgrad, &cases[i]);
        bench_conv(b, OP_conv2d_wgrad, &cases[i]);
    }
}

int main(int argc, char **argv)
{
    Pool *pool = pool_new();
    Bench b = {argc > 1 && *argv[1] ? argv[1] : NULL, target_find(argc > 2 ? argv[2] : NULL), 0};
    if (!b.target || !target_runs_here(b.target)) {
        fprintf(stderr, "no such target, or this machine cannot run it\n");
        return 1;
    }
    const char *error = "";
    b.peak = codegen_measure_peak_gflops(pool, b.target, &error);
    if (b.peak <= 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    printf("%s: multiply-add peak of one core %.1f GFLOP/s\n", b.target->name, b.peak);
    bench_all(&b);
    pool_free(pool);
    return test_result();
}
