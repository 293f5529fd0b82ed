/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Offsets past 2^31 elements.  Tensors are address space only: all zero but for the end, and of
 * each kernel only the last task runs, so that little memory is ever touched. */
#include "check.h"
#include "tests/support/run/run_kernels.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIDE = 6000, CHANNELS = 64 };

static char *sparse(int64_t bytes)
{
    char *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static ValueId input(Graph *g, int rank, const int64_t *dim)
{
    AttrList none = {0};
    return graph_add_source(g, OP_input, type_make(DTYPE_F32, rank, dim), &none, NULL, (Loc){0});
}
#define INPUT(g, ...)                                                                              \
    input(g, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* Ones: the whole of small tensors, the last line of large ones. */
static void fill(const Type *t, char *data)
{
    int64_t n = type_elements(t), line = t->dim[t->rank - 1];
    float *to = (float *)(void *)data;
    for (int64_t i = n > 1 << 20 ? n - line : 0; i < n; i++)
        to[i] = 1;
}

static bool allocate(KernelRun *r)
{
    const Graph *g = r->graph;
    r->data = POOL_ARRAY(r->pool, g->values.len, char *);
    r->workspace = POOL_ARRAY(r->pool, g->nodes.len, char *);
    bool ok = true;
    for (size_t v = 0; v < g->values.len; v++)
        ok &= (r->data[v] = sparse(type_bytes(&g->values.data[v].type))) != NULL;
    for (size_t n = 0; n < g->nodes.len; n++)
        ok &= (r->workspace[n] = sparse(node_workspace_bytes(g, &g->nodes.data[n]) + 1)) != NULL;
    r->scratch = sparse(SCRIMP_SCRATCH_BYTES);
    return ok && r->scratch;
}

static void release(const KernelRun *r)
{
    for (size_t v = 0; v < r->graph->values.len; v++)
        munmap(r->data[v], (size_t)type_bytes(&r->graph->values.data[v].type));
    for (size_t n = 0; n < r->graph->nodes.len; n++)
        munmap(r->workspace[n],
               (size_t)node_workspace_bytes(r->graph, &r->graph->nodes.data[n]) + 1);
    munmap(r->scratch, SCRIMP_SCRATCH_BYTES);
    dlclose(r->handle);
}

static void run_ends(const KernelRun *r)
{
    for (size_t i = 0; i < r->lowering.calls.len; i++) {
        const Call *c = &r->lowering.calls.data[i];
        char *buf[CALL_MAX_BUFS];
        run_buffers(r, c, buf);
        bool whole = strncmp(c->label, "conv weights", 12) == 0;
        int64_t first = whole ? 0 : c->n_tasks - 1;
        r->kernel[i](buf, first, c->n_tasks, r->scratch);
    }
}

/* The last element of what the graph's last node makes. */
static void check_last(const char *name, Graph *g, NodeId node, double want)
{
    KernelRun *r = POOL_NEW(g->pool, KernelRun);
    r->pool = g->pool;
    r->graph = g;
    r->lowering = (Lowering){
        .pool = g->pool, .graph = g, .target = target_find(NULL), .backend = &cpu_backend};
    lower_graph(&r->lowering);
    bool compiled = run_compile(r);
    CHECK(compiled);
    if (!compiled)
        return;
    run_link(r);
    if (!allocate(r)) {
        fprintf(stderr, "no address space for this test\n");
        exit(77);
    }
    const Node *n = graph_node(g, node);
    for (int i = 0; i < n->n_in; i++)
        fill(value_type(g, n->in[i]), r->data[n->in[i]]);
    run_ends(r);
    const Type *t = value_type(g, n->out[0]);
    CHECK_MSG(type_elements(t) > INT32_MAX, "%s: the result is not large", name);
    const float *out = (const float *)(const void *)r->data[n->out[0]];
    double got = (double)out[type_elements(t) - 1];
    CHECK_MSG(got == want, "%s: the last element is %g, expected %g", name, got, want);
    release(r);
}

static AttrList image_attrs(int64_t groups)
{
    AttrList a = {0};
    attrs_int(&a, ATTR_nhwc, 1);
    if (groups)
        attrs_int(&a, ATTR_groups, groups);
    return a;
}

static void check_op(const char *name, Graph *g, OpKind op, const ValueId *in, int n_in,
                     const AttrList *attrs, double want)
{
    check_last(name, g, graph_add(g, op, in, n_in, attrs, NULL, (Loc){0}), want);
}

static void test_convolutions(void)
{
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "conv");
    AttrList dense = image_attrs(1), depthwise = image_attrs(CHANNELS), gradient = image_attrs(1);
    ValueId in[2] = {INPUT(g, 1, SIDE, SIDE, CHANNELS), INPUT(g, 3, 3, CHANNELS, CHANNELS)};
    check_op("conv2d", g, OP_conv2d, in, 2, &dense, CHANNELS);
    g = graph_new(pool, "depthwise");
    in[0] = INPUT(g, 1, SIDE, SIDE, CHANNELS);
    in[1] = INPUT(g, 3, 3, 1, CHANNELS);
    check_op("depthwise conv2d", g, OP_conv2d, in, 2, &depthwise, 1);
    g = graph_new(pool, "gradient");
    in[0] = INPUT(g, 1, SIDE, SIDE, CHANNELS);
    in[1] = INPUT(g, 3, 3, CHANNELS, CHANNELS);
    attrs_ints(&gradient, ATTR_hw, (const int64_t[]){SIDE + 2, SIDE + 2}, 2);
    check_op("conv2d_dgrad", g, OP_conv2d_dgrad, in, 2, &gradient, CHANNELS);
    pool_free(pool);
}

static void test_others(void)
{
    Pool *pool = pool_new();
    Graph *g = graph_new(pool, "pool");
    AttrList pooling = image_attrs(0), none = {0}, axis = {0}, perm = {0};
    ValueId in[2] = {INPUT(g, 1, 2 * SIDE, 2 * SIDE, CHANNELS)};
    attrs_ints(&pooling, ATTR_kernel, (const int64_t[]){2, 2}, 2);
    check_op("maxpool", g, OP_maxpool, in, 1, &pooling, 1);
    g = graph_new(pool, "add");
    in[0] = INPUT(g, SIDE, SIDE, CHANNELS);
    in[1] = INPUT(g, SIDE, SIDE, CHANNELS);
    check_op("add", g, OP_add, in, 2, &none, 2);
    g = graph_new(pool, "concat");
    in[0] = INPUT(g, SIDE, SIDE, CHANNELS);
    in[1] = INPUT(g, SIDE, SIDE, CHANNELS);
    attrs_int(&axis, ATTR_axis, 2);
    check_op("concat", g, OP_concat, in, 2, &axis, 1);
    g = graph_new(pool, "transpose");
    in[0] = INPUT(g, SIDE * 8, SIDE * 8);
    attrs_ints(&perm, ATTR_perm, (const int64_t[]){1, 0}, 2);
    check_op("transpose", g, OP_transpose, in, 1, &perm, 1);
    g = graph_new(pool, "linear");
    in[0] = INPUT(g, SIDE * SIDE, CHANNELS);
    in[1] = INPUT(g, CHANNELS, CHANNELS);
    check_op("linear", g, OP_linear, in, 2, &none, CHANNELS);
    pool_free(pool);
}

int main(void)
{
    test_convolutions();
    test_others();
    return test_result();
}
