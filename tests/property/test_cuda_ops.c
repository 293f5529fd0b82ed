/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CUDA kernels, on the simulated device, against the CPU's: every operation that has a CUDA rule,
 * on the random shapes of test_compiled_ops.c, bit for bit, for threads in three orders, and
 * written over inputs where the graph allows it.  SCRIMP_SHAPES: how many shapes; SCRIMP_TEST_OP:
 * of one operation. */
#include "check.h"
#include "codegen/cuda/nvrtc.h"
#include "op_run.h"
#include "runtime/cuda/device.h"
#include "tests/support/sample.h"

#include "ir/strided_view.h"
#include "ir/support/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHAPES = 3, COMPILERS = 2, ALIGN = 64 };

/* A kernel of the device. */
typedef struct DeviceKernel {
    const Call *call;
    const void *image;
} DeviceKernel;

/* One case: as it runs on the CPU, and its calls and where its values lie on the device. */
typedef struct Run {
    OpRun cpu;
    const char *name;
    Lowering device;
    int64_t *offset, *work_offset, bytes;
    int *kernel; /* of the device, by call */
} Run;

typedef struct Device {
    Pool *pool;
    Map index;
    VEC(DeviceKernel) kernels;
    char folder[64];
} Device;

/* --- cases --- */

static bool wanted(OpKind op)
{
    const char *only = getenv("SCRIMP_TEST_OP");
    return op_case_table[op] && cuda_backend.rules[op] != lower_none &&
           (!only || strcmp(only, op_name(op)) == 0);
}

static bool all_have_code(const Graph *g)
{
    for (size_t i = 0; i < g->order.len; i++)
        if (!cuda_backend.has_code(graph_node(g, g->order.data[i])))
            return false;
    return true;
}

/* --- lowering --- */

static void place_values(Run *r)
{
    const Graph *g = r->cpu.c.g;
    r->offset = POOL_ARRAY(r->cpu.c.pool, g->values.len, int64_t);
    r->work_offset = POOL_ARRAY(r->cpu.c.pool, g->nodes.len, int64_t);
    for (size_t v = 0; v < g->values.len; v++) {
        r->offset[v] = r->bytes;
        r->bytes += (type_bytes(&g->values.data[v].type) + ALIGN - 1) / ALIGN * ALIGN;
    }
    for (size_t n = 0; n < g->nodes.len; n++) {
        r->work_offset[n] = r->bytes;
        r->bytes += (node_workspace_bytes(g, &g->nodes.data[n]) + ALIGN - 1) / ALIGN * ALIGN;
    }
}

static void lower_for_device(Device *d, Run *r, const Target *target)
{
    r->device = (Lowering){
        .pool = d->pool, .graph = r->cpu.c.g, .target = target, .backend = &cuda_backend};
    lower_graph(&r->device);
    r->kernel = POOL_ARRAY(d->pool, r->device.calls.len + 1, int);
    for (size_t i = 0; i < r->device.calls.len; i++) {
        const Call *call = &r->device.calls.data[i];
        const uint64_t *found = map_find(&d->index, call->key);
        if (!found) {
            map_set(&d->index, call->key, d->kernels.len);
            vec_push(d->pool, &d->kernels, ((DeviceKernel){call, NULL}));
        }
        r->kernel[i] = (int)*map_find(&d->index, call->key);
    }
}

/* --- compiling --- */

static const char *image_path(const Device *d, size_t k)
{
    return pool_printf(d->pool, "%s/%zu.so", d->folder, k);
}

static const char *symbol_of(Pool *pool, size_t k)
{
    return pool_printf(pool, "k%zu", k);
}

static int compile_some(const Device *d, size_t first)
{
    for (size_t k = first; k < d->kernels.len; k += COMPILERS) {
        const Call *call = d->kernels.data[k].call;
        StrBuf text = strbuf_new(d->pool);
        size_t bytes = 0;
        const char *error = "";
        call->text(&text, symbol_of(d->pool, k), call->desc);
        const void *image = nvrtc_compile(d->pool, text.text, "sm_90", &bytes, &error);
        FILE *f = image ? fopen(image_path(d, k), "wb") : NULL;
        if (!f || fwrite(image, 1, bytes, f) != bytes || fclose(f) != 0) {
            fprintf(stderr, "%s: %s\n%s\n", call->label, error, text.text);
            return 1;
        }
    }
    return 0;
}

static bool compile_all(Device *d)
{
    pid_t child[COMPILERS];
    bool ok = true;
    for (size_t i = 0; i < COMPILERS; i++)
        if ((child[i] = fork()) == 0)
            _exit(compile_some(d, i));
    for (int i = 0, status; i < COMPILERS; i++)
        ok &= waitpid(child[i], &status, 0) == child[i] && status == 0;
    return ok;
}

static const void *read_image(Pool *pool, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    size_t n = (size_t)ftell(f);
    rewind(f);
    char *image = pool_alloc(pool, n);
    bool ok = fread(image, 1, n, f) == n;
    fclose(f);
    unlink(path);
    return ok ? image : NULL;
}

static bool load_images(Device *d)
{
    bool ok = true;
    for (size_t k = 0; k < d->kernels.len; k++) {
        d->kernels.data[k].image = read_image(d->pool, image_path(d, k));
        ok &= d->kernels.data[k].image != NULL;
    }
    rmdir(d->folder);
    return ok;
}

/* --- running --- */

/* What the generated step would do. */
static const Run *running;

static void run_step(ScrimpContext *ctx)
{
    const Run *r = running;
    for (size_t i = 0; i < r->device.calls.len; i++) {
        const Call *c = &r->device.calls.data[i];
        char *buf[CALL_MAX_BUFS];
        for (int k = 0; k < c->n_bufs; k++) {
            ValueId v = c->buf[k].value;
            int64_t at = v == VALUE_NONE    ? r->work_offset[c->node]
                         : v == CALL_NUMBER ? 0
                                            : r->offset[v];
            buf[k] = call_argument(&c->buf[k], v == CALL_NUMBER ? NULL : ctx->arena + at);
        }
        union {
            uintptr_t number;
            ScrimpKernel *kernel;
        } u = {.number = (uintptr_t)i};
        ctx->run(ctx, (int32_t)i, u.kernel, buf, c->n_tasks);
    }
}

static bool copy_inputs(const Run *r, CudaDevice *device, RtError *err)
{
    bool ok = true;
    for (int i = 0; i < r->cpu.c.n_in && ok; i++) {
        ValueId v = r->cpu.c.in[i];
        ok = cuda_write(device, r->offset[v], r->cpu.value[v].data,
                        type_bytes(value_type(r->cpu.c.g, v)), err);
    }
    return ok;
}

static bool compare_outputs(const Run *r, CudaDevice *device, const char *how, RtError *err)
{
    const Node *n = graph_node(r->cpu.c.g, r->cpu.c.node);
    for (int i = 0; i < n->n_out; i++) {
        ValueId v = n->out[i];
        int64_t bytes = type_bytes(value_type(r->cpu.c.g, v));
        char *got = pool_alloc(r->cpu.c.pool, (size_t)bytes + 1);
        if (!cuda_read(device, r->offset[v], got, bytes, err) || !cuda_wait(device, err))
            return false;
        const Type *t = value_type(r->cpu.c.g, v);
        int64_t at = op_first_difference(t, got, r->cpu.value[v].data);
        CHECK_MSG(at == type_elements(t), "%s, %s: element %lld of result %d is not the CPU's",
                  r->name, how, (long long)at, i);
    }
    return true;
}

static bool run_with(const Device *d, const Run *r, CudaDevice *device, const char *how,
                     RtError *err)
{
    size_t n = r->device.calls.len;
    ScrimpDeviceKernel *kernel = POOL_ARRAY(d->pool, n + 1, ScrimpDeviceKernel);
    for (size_t i = 0; i < n; i++)
        kernel[i] = (ScrimpDeviceKernel){symbol_of(d->pool, (size_t)r->kernel[i]),
                                         d->kernels.data[r->kernel[i]].image,
                                         r->device.calls.data[i].threads};
    CudaStep *step = cuda_step_load(device, run_step, kernel, (int)n, err);
    running = r;
    bool ok = step && copy_inputs(r, device, err) && cuda_step_run(step, err) &&
              compare_outputs(r, device, how, err);
    cuda_step_unload(step);
    return ok;
}

/* how: the order of threads, and what lies where. */
static void run_on_device(const Device *d, const Run *r, const char *order, const char *how)
{
    RtError err = {"no message"};
    int64_t left;
    setenv("SCRIMP_SIM_ORDER", order, 1);
    CudaDevice *device = cuda_device_open(&err);
    bool ok = device && cuda_arena_map(device, r->bytes + ALIGN, &left, &err) &&
              run_with(d, r, device, pool_printf(d->pool, "%s%s", order, how), &err);
    CHECK_MSG(ok, "%s: %s", r->name, err.message);
    cuda_device_close(device);
}

/* Outputs written over inputs where the graph says that they may. */
static void check_in_place(const Device *d, Run *r)
{
    const Graph *g = r->cpu.c.g;
    const Node *n = graph_node(g, r->cpu.c.node);
    for (int i = 0; i < n->n_in; i++) {
        if (!node_may_overwrite(g, n, 0, i) || value_node(g, n->in[i])->op == OP_const)
            continue;
        int64_t apart = r->offset[n->out[0]];
        r->offset[n->out[0]] = r->offset[n->in[i]];
        run_on_device(d, r, "reverse", pool_printf(d->pool, ", over input %d", i));
        r->offset[n->out[0]] = apart;
    }
}

static void check_run(const Device *d, const Farm *f, Run *r, char *scratch)
{
    r->name = op_run_text(&r->cpu);
    op_run_buffers(&r->cpu);
    op_run_calls(f, &r->cpu, INT64_MAX, false, scratch);
    run_on_device(d, r, "forward", "");
    run_on_device(d, r, "reverse", "");
    run_on_device(d, r, "7", "");
    check_in_place(d, r);
    op_run_free_buffers(&r->cpu);
}

/* --- all of them --- */

typedef struct Runs {
    VEC(Run) list;
    int without_code[OP_COUNT];
} Runs;

static void add_case(Device *d, Farm *f, Runs *runs, OpKind op, OpCaseMake *make, int seed)
{
    Run r = {.cpu = {.op = op}};
    bool made = op_run_draw(d->pool, op, make, (uint64_t)seed, &r.cpu.c);
    CHECK_MSG(made, "no shapes fit %s", op_name(op));
    if (!made)
        return;
    if (!all_have_code(r.cpu.c.g)) {
        runs->without_code[op]++;
        return;
    }
    r.cpu.calls = farm_lower(f, r.cpu.c.g);
    place_values(&r);
    lower_for_device(d, &r, f->target);
    vec_push(d->pool, &runs->list, r);
}

static void add_cases(Device *d, Farm *f, Runs *runs, int shapes)
{
    for (int op = 0; op < OP_COUNT; op++)
        for (int i = 0; i < shapes && wanted((OpKind)op); i++)
            add_case(d, f, runs, (OpKind)op, op_case_table[op], i + 1);
    for (int k = 0; k < op_extremes_n; k++)
        for (int i = 0; i < shapes / 3 && wanted(op_extremes[k].op); i++)
            add_case(d, f, runs, op_extremes[k].op, op_extremes[k].make, i + 1);
    for (int k = 0; k < op_conv_cases_n; k++)
        for (int i = 0; i < shapes / 3 && wanted(op_conv_cases[k].op); i++)
            add_case(d, f, runs, op_conv_cases[k].op, op_conv_cases[k].make, i + 1);
    for (int k = 0; k < op_conv_groups_n; k++)
        for (int i = 0; i < shapes / 3 && wanted(op_conv_groups[k].op); i++)
            add_case(d, f, runs, op_conv_groups[k].op, op_conv_groups[k].make, i + 1);
}

int main(void)
{
    const Target *target = target_find(NULL);
    if (!target->fma) {
        printf("this processor has no fused multiply-add: its sums are rounded otherwise\n");
        return 77;
    }
    Pool *pool = pool_new();
    setenv("SCRIMP_CUDA_PATH", pool_printf(pool, "%s/cuda-sim", getenv("SCRIMP_BUILD")), 1);
    Device d = {.pool = pool, .index = map_new(pool), .folder = "/tmp/scrimp_test_cuda_XXXXXX"};
    Farm f = farm_new(pool, target);
    f.optimization = 2; /* below, GCC makes no fused multiply-adds */
    Runs runs = {.without_code = {0}};
    void *scratch = NULL;
    if (!mkdtemp(d.folder) || posix_memalign(&scratch, 64, SCRIMP_SCRATCH_BYTES))
        abort();
    add_cases(&d, &f, &runs, sample_number("SCRIMP_SHAPES", SHAPES));
    bool ready = compile_all(&d) && load_images(&d) && farm_compile(&f) && farm_load(&f);
    CHECK_MSG(ready, "kernels do not compile");
    for (size_t i = 0; ready && check_failures < 20 && i < runs.list.len; i++)
        check_run(&d, &f, &runs.list.data[i], scratch);
    printf("%zu cases, %zu kernels; without CUDA code:", runs.list.len, d.kernels.len);
    for (int op = 0; op < OP_COUNT; op++)
        if (runs.without_code[op])
            printf(" %s(%d)", op_name((OpKind)op), runs.without_code[op]);
    printf("\n");
    free(scratch);
    farm_free(&f);
    pool_free(pool);
    return test_result();
}
