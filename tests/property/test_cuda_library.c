/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products, convolutions and attention by NVIDIA's libraries, on simulated ones, against the
 * evaluator: many in one step, which is compiled, planned, run, captured and replayed as a model's
 * is.  Results are within 1e-4 of a tensor's norm in f32, what runs three times has the same bits
 * each time. SCRIMP_SHAPES: how many of each kind; SCRIMP_CUDA_REAL: on the machine's own device.
 */
#include "check.h"
#include "op_cases.h"
#include "op_library_attention.h"
#include "tests/support/sample.h"

#include "codegen/build/codegen.h"
#include "ir/eval.h"
#include "ir/strided_view.h"
#include "ir/support/strbuf.h"
#include "passes/pass.h"
#include "passes/rewrite.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/step.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* CONV_EVERY: there are many kinds of convolution. */
enum { SHAPES = 4, RUNS = 3, CONV_EVERY = 4 };

/* A graph of many products. */
typedef struct Products {
    Pool *pool;
    Graph *graph, *reference; /* reference: as it was before any pass */
    VEC(OpCase) cases;
    MemPlan *plan;
    int marked;
    int by_rows, read, written; /* tensors of attention: by rows, and inside of others */
} Products;

/* --- cases --- */

/* Larger, and of the sizes that models have. */
static void large_matmul(OpCase *c)
{
    AttrList attrs = {0};
    int64_t m = op_int(c, 1, 150), k = op_int(c, 2, 300), n = op_int(c, 2, 200);
    int64_t heads = op_int(c, 1, 4);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_tb, 1);
    op_normal(c, DIMS(2, heads, m, k));
    op_normal(c, attrs.n ? DIMS(2, heads, n, k) : DIMS(2, heads, k, n));
    op_done(c, OP_matmul, &attrs);
}

/* Weights that all of a batch is multiplied by. */
static void shared_matmul(OpCase *c)
{
    int64_t k = op_int(c, 2, 60), n = op_int(c, 2, 60);
    op_normal(c, DIMS(3, op_int(c, 1, 20), k));
    op_normal(c, DIMS(k, n));
    op_done(c, OP_matmul, NULL);
}

/* Batch dims that have no single stride: not for a library. */
static void crossed_matmul(OpCase *c)
{
    int64_t m = op_int(c, 2, 20), k = op_int(c, 2, 60), n = op_int(c, 2, 60);
    op_normal(c, DIMS(3, 1, m, k));
    op_normal(c, DIMS(1, 2, k, n));
    op_done(c, OP_matmul, NULL);
}

static AttrList one_by_one(void)
{
    static const int64_t one[] = {1, 1}, none[] = {0, 0};
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_stride, one, 2);
    attrs_ints(&attrs, ATTR_padding, none, 2);
    attrs_int(&attrs, ATTR_nhwc, 1);
    return attrs;
}

static void one_by_one_conv(OpCase *c)
{
    AttrList attrs = one_by_one();
    int64_t n = op_int(c, 1, 3), h = op_int(c, 1, 9), in = op_int(c, 2, 40), out = op_int(c, 2, 40);
    op_normal(c, DIMS(n, h, 7, in));
    op_normal(c, DIMS(1, 1, in, out));
    if (op_coin(c))
        op_normal(c, DIMS(out));
    op_done(c, OP_conv2d, &attrs);
}

static void one_by_one_gradient(OpCase *c, OpKind op)
{
    AttrList attrs = one_by_one();
    int64_t n = op_int(c, 1, 3), h = op_int(c, 1, 9), in = op_int(c, 2, 40), out = op_int(c, 2, 40);
    bool weights = op == OP_conv2d_wgrad;
    const int64_t image[] = {h, 7}, kernel[] = {1, 1};
    attrs_ints(&attrs, ATTR_hw, weights ? kernel : image, 2);
    op_normal(c, weights ? DIMS(n, h, 7, in) : DIMS(n, h, 7, out));
    op_normal(c, weights ? DIMS(n, h, 7, out) : DIMS(1, 1, in, out));
    op_done(c, op, &attrs);
}

static void one_by_one_dgrad(OpCase *c)
{
    one_by_one_gradient(c, OP_conv2d_dgrad);
}

static void one_by_one_wgrad(OpCase *c)
{
    one_by_one_gradient(c, OP_conv2d_wgrad);
}

/* A small result of sums so long that they are multiplied in parts. */
static void long_matmul(OpCase *c)
{
    AttrList attrs = {0};
    const int64_t m = op_int(c, 2, 20), k = 1024 * op_int(c, 2, 5), n = op_int(c, 2, 20);
    bool ta = op_coin(c), tb = op_coin(c);
    attrs_int(&attrs, ATTR_ta, ta);
    attrs_int(&attrs, ATTR_tb, tb);
    op_normal(c, ta ? DIMS(k, m) : DIMS(m, k));
    op_normal(c, tb ? DIMS(n, k) : DIMS(k, n));
    op_done(c, OP_matmul, &attrs);
}

static OpCaseMake *const attentions[] = {library_attention, library_statistics,
                                         library_attention_grad};

static OpCaseMake *const kinds[] = {op_matmul,        op_linear,        large_matmul,
                                    crossed_matmul,   shared_matmul,    one_by_one_conv,
                                    one_by_one_dgrad, one_by_one_wgrad, long_matmul};

/* bf16: which inputs of a case are, and that its result may be. */
static void add_case(Products *p, OpCaseMake *make, uint64_t seed, unsigned bf16)
{
    OpCase c = {.pool = p->pool, .g = p->graph, .rng = seed, .node = NODE_NONE, .bf16 = bf16};
    make(&c);
    if (c.node == NODE_NONE || type_elements(value_type(p->graph, c.out)) == 0)
        return;
    graph_add_output(p->graph, pool_printf(p->pool, "out%zu", p->cases.len), c.out);
    vec_push(p->pool, &p->cases, c);
}

/* No data are bf16: such an input becomes one of f32 and a cast. */
static void read_f32(Products *p)
{
    Graph *g = p->graph;
    Rewrite r = rewrite_begin(g, p->pool);
    for (size_t i = 0; i < r.n_old; i++) {
        rewrite_keep(&r, r.old_order[i]);
        const Node *n = graph_node(g, r.old_order[i]);
        ValueId v = n->out[0];
        if (n->op != OP_input || value_type(g, v)->dtype != DTYPE_BF16)
            continue;
        AttrList attrs = {0};
        attrs_string(&attrs, ATTR_dtype, "bf16");
        graph_value(g, v)->type.dtype = DTYPE_F32;
        rewrite_replace(&r, v, graph_add(g, OP_cast, &v, 1, &attrs, NULL, (Loc){0}));
    }
    rewrite_end(&r);
}

static Products make_products(Pool *pool, int shapes, bool bf16, const char *precision)
{
    static const unsigned masks[] = {3, 1, 2, 3, 0};
    Products p = {.pool = pool, .graph = graph_new(pool, "products")};
    p.graph->kind = "forward";
    p.graph->train.precision = precision;
    for (int i = 0; i < shapes; i++) {
        unsigned mask = bf16 ? masks[i % 5] | 1u << 31 : 0;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            add_case(&p, kinds[k], (uint64_t)i * 1000 + k, mask);
        for (int k = i % CONV_EVERY; k < op_conv_cases_n; k += CONV_EVERY)
            add_case(&p, op_conv_cases[k].make, (uint64_t)i * 1000 + 500 + (uint64_t)k, mask);
        add_case(&p, op_case_table[OP_deconv2d], (uint64_t)i * 1000 + 900, mask);
        for (size_t k = 0; bf16 && k < sizeof attentions / sizeof *attentions; k++)
            add_case(&p, attentions[k], (uint64_t)i * 1000 + 950 + k, mask);
    }
    if (bf16)
        add_case(&p, library_attention_parts, (uint64_t)shapes, 0);
    read_f32(&p);
    return p;
}

/* --- compiling --- */

static void count_tensors(Products *p, const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        p->read += !value_is_dense(p->graph, n->in[i]);
    for (int i = 0; i < n->n_out; i++)
        p->written += !value_is_dense(p->graph, n->out[i]);
    p->by_rows += (int)strlen(node_string(n, ATTR_by_rows, ""));
}

static bool run_passes(Products *p, const char *arch)
{
    PassContext ctx = {
        .pool = p->pool, .graph = p->graph, .library = cuda_backend.library, .archs = arch};
    p->reference = graph_copy(p->pool, p->graph);
    bool ok = passes_run(&ctx, "dce,library,fuse,order,views,plan", NULL, NULL);
    CHECK_MSG(ok, "%s", ctx.error.message);
    CHECK_MSG(!ctx.library_missing, "%s", ctx.library_missing);
    p->graph = ctx.graph;
    p->plan = ctx.plan;
    for (size_t i = 0; i < p->graph->order.len; i++) {
        const Node *n = graph_node(p->graph, p->graph->order.data[i]);
        bool attention = n->op == OP_attention || n->op == OP_attention_grad,
             marked = node_attr(n, ATTR_library);
        CHECK_MSG(marked || !attention, "%s is not for a library", op_name(n->op));
        p->marked += marked;
        if (attention)
            count_tensors(p, n);
    }
    return ok;
}

static Step *compile(const Products *p, const char *arch)
{
    const char *error = NULL;
    const CodegenOptions o = {.backend = &cuda_backend, .arch = arch, .jobs = 2};
    Step *step = codegen_compile(p->pool, p->graph, p->plan, &o, &error);
    CHECK_MSG(step, "%s", error);
    return step;
}

static int64_t bytes_of(const Graph *g, ValueId v)
{
    return type_bytes(value_type(g, v));
}

/* What a call reads and writes.  cuDNN's tensors have one type: weights of another are copied. */
static double expected_bytes(const Graph *g, const Node *n, const Call *c)
{
    DType image = value_type(g, n->in[0])->dtype;
    ValueId weights = n->op == OP_conv2d_wgrad ? n->out[0] : n->in[1];
    int64_t copied = type_elements(value_type(g, weights)) * dtype_bytes(image);
    if (strcmp(c->label, "weights of conv") == 0)
        return (double)(bytes_of(g, weights) + copied);
    int64_t all = bytes_of(g, n->in[0]) + bytes_of(g, n->in[1]) + bytes_of(g, n->out[0]);
    bool by_cudnn = c->library && strcmp(c->library, "cudnn") == 0;
    return (double)(by_cudnn ? all - bytes_of(g, weights) + copied : all);
}

static void check_bytes(const Products *p, const Step *step)
{
    for (int i = 0; i < step->n_calls; i++) {
        const Call *c = &step->calls[i];
        const Node *n = graph_node(p->graph, c->node);
        if (op_table[n->op].op_class != OP_CLASS_MATRIX || (!c->library && c->flops == 0))
            continue;
        double bytes = expected_bytes(p->graph, n, c);
        CHECK_MSG(c->bytes == bytes, "%s: %.0f bytes instead of %.0f", c->label, c->bytes, bytes);
    }
}

/* --- running --- */

static const char *describe(const Products *p, size_t i)
{
    const Graph *g = p->reference;
    const Node *n = value_node(g, p->cases.data[i].out);
    StrBuf b = strbuf_new(p->pool);
    strbuf_put(&b, op_name(n->op));
    for (int k = 0; k < n->n_in; k++)
        strbuf_printf(&b, " %s", type_text(p->pool, value_type(g, n->in[k])));
    strbuf_printf(&b, " -> %s%s%s", type_text(p->pool, value_type(g, n->out[0])),
                  node_flag(n, ATTR_ta) ? " ta" : "", node_flag(n, ATTR_tb) ? " tb" : "");
    return b.text;
}

static double element(const Type *t, const char *data, int64_t i)
{
    float f = 0;
    if (t->dtype == DTYPE_BF16)
        memcpy((char *)&f + 2, data + 2 * i, 2);
    else
        memcpy(&f, data + 4 * i, 4);
    return (double)f;
}

/* The difference's norm over the tensor's. */
static double distance(const Type *t, const char *got, const double *want)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < type_elements(t); i++) {
        double d = element(t, got, i) - want[i];
        difference += d * d;
        norm += want[i] * want[i];
    }
    return sqrt(difference / (norm > 0 ? norm : 1));
}

static void put_inputs(const Products *p, char *image)
{
    for (size_t i = 0; i < p->cases.len; i++) {
        const OpCase *c = &p->cases.data[i];
        for (int k = 0; k < c->n_in; k++)
            if (p->plan->offset[c->in[k]] >= 0)
                op_case_bytes(value_type(p->graph, c->in[k]), c->data[k],
                              image + p->plan->offset[c->in[k]]);
    }
}

static const EvalState *evaluate(const Products *p, const Graph *g)
{
    EvalState *s = eval_new(p->pool, g);
    for (size_t i = 0; i < p->cases.len; i++)
        for (int k = 0; k < p->cases.data[i].n_in; k++)
            eval_set(s, p->cases.data[i].in[k], p->cases.data[i].data[k]);
    eval_run(s, false);
    return s;
}

static void compare(const Products *p, const char *image, double tolerance)
{
    const EvalState *want = evaluate(p, p->reference), *planned = evaluate(p, p->graph);
    double worst = 0;
    for (size_t i = 0; i < p->cases.len; i++) {
        ValueId old = p->cases.data[i].out;
        ValueId v = graph_output(p->graph, pool_printf(p->pool, "out%zu", i));
        const Type *t = value_type(p->graph, v);
        double d = distance(t, image + p->plan->offset[v], eval_get(want, old));
        double e = distance(t, image + p->plan->offset[v], eval_get(planned, v));
        CHECK_MSG(e <= tolerance, "%s, as it is planned: %g of its norm away", describe(p, i), e);
        CHECK_MSG(d <= tolerance, "%s: %g of its norm away", describe(p, i), d);
        worst = d > worst ? d : worst;
    }
    CHECK_MSG(worst > 0, "a library has the bits of the evaluator");
    printf("%zu products, %d by libraries, at most %.2g of a norm away\n", p->cases.len, p->marked,
           worst);
}

/* As bytes of the arena after each run. */
static bool run_steps(const Products *p, const Step *step, char *const *image, RtError *err)
{
    int64_t left, bytes = p->plan->arena_bytes;
    CudaDevice *d = cuda_device_open(err);
    CudaStep *cuda = NULL;
    bool ok = d && cuda_arena_map(d, bytes, &left, err);
    if (ok)
        cuda = cuda_step_load(d, step->run, step->kernel, step->n_kernels, err);
    ok = ok && cuda;
    for (int i = 0; i < RUNS && ok; i++)
        ok = cuda_arena_poison(d, err) && cuda_write(d, 0, image[RUNS], bytes, err) &&
             cuda_step_run(cuda, err) && cuda_read(d, 0, image[i], bytes, err) && cuda_wait(d, err);
    cuda_step_unload(cuda);
    cuda_device_close(d);
    return ok;
}

static void check_runs(const Products *p, const Step *step, double tolerance)
{
    RtError err = {"no message"};
    char *image[RUNS + 1];
    size_t bytes = (size_t)p->plan->arena_bytes;
    for (int i = 0; i <= RUNS; i++)
        image[i] = pool_alloc(p->pool, bytes);
    memset(image[RUNS], 0x7f, bytes);
    put_inputs(p, image[RUNS]);
    bool ok = run_steps(p, step, image, &err);
    CHECK_MSG(ok, "%s", err.message);
    if (!ok)
        return;
    CHECK_MSG(memcmp(image[0], image[1], bytes) == 0, "captured, a step has other bits");
    CHECK_MSG(memcmp(image[0], image[2], bytes) == 0, "replayed, a step has other bits");
    compare(p, image[0], tolerance);
}

/* --- all of it --- */

/* What is to run, as compilers cannot be forked when the driver has started. */
typedef struct Suite {
    Products products;
    Step *step;
    double tolerance;
} Suite;

static Suite make_suite(Pool *pool, const char *arch, bool bf16, const char *precision,
                        double tolerance)
{
    int shapes = sample_number("SCRIMP_SHAPES", SHAPES);
    Suite s = {.products = make_products(pool, shapes, bf16, precision), .tolerance = tolerance};
    if (run_passes(&s.products, arch))
        s.step = compile(&s.products, arch);
    if (s.step)
        check_bytes(&s.products, s.step);
    CHECK_MSG(s.products.marked > (int)s.products.cases.len / 2, "libraries compute %d of %zu",
              s.products.marked, s.products.cases.len);
    if (bf16)
        CHECK_MSG(s.products.by_rows > 0 && s.products.read > 0 && s.products.written > 0,
                  "of attention's tensors %d are by rows, %d and %d inside of others",
                  s.products.by_rows, s.products.read, s.products.written);
    return s;
}

static const char *device_arch(Pool *pool)
{
    RtError err;
    CudaIdentity here;
    if (cuda_device_here(&here, &err))
        return pool_strdup(pool, here.arch);
    printf("%s\n", err.message);
    return NULL;
}

int main(void)
{
    Pool *pool = pool_new();
    if (!getenv("SCRIMP_CUDA_REAL"))
        setenv("SCRIMP_CUDA_PATH", pool_printf(pool, "%s/cuda-sim", getenv("SCRIMP_BUILD")), 1);
    const char *arch = device_arch(pool);
    if (!arch)
        return 77;
    const Suite suites[] = {make_suite(pool, arch, false, NULL, 1e-4),
                            make_suite(pool, arch, false, "tf32", 2e-3),
                            make_suite(pool, arch, true, NULL, 1e-2)};
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        if (suites[i].step)
            check_runs(&suites[i].products, suites[i].step, suites[i].tolerance);
        codegen_unload(suites[i].step);
    }
    pool_free(pool);
    return test_result();
}
