/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CUDA kernels, on the simulated device, against the CPU's: every operation that has a CUDA rule,
 * on the random shapes of test_compiled_ops.c, bit for bit, for threads in three orders, and
 * written over inputs where the graph allows it.  In one order a step is run call by call,
 * captured, and replayed as a graph; inputs, and what lies between buffers, stay as they are.
 * SCRIMP_SHAPES: how many shapes; SCRIMP_TEST_OP: of one operation; SCRIMP_CUDA_REAL: on the
 * machine's own device. */
#include "check.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/text.h"
#include "op_run.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/step.h"
#include "tests/support/sample.h"

#include "ir/strided_view.h"
#include "ir/support/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHAPES = 2, MOST_COMPILERS = 64, ALIGN = 64, RUNS = 3 };
static const uint32_t NOT_WRITTEN = 0x7fc5ca1a; /* runtime/cuda/device.h */

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
    const char *arch;
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

/* Behind every buffer is a fence of at least ALIGN bytes. */
static int64_t place(Run *r, int64_t bytes)
{
    int64_t at = r->bytes;
    r->bytes += (bytes + 2 * ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static void place_values(Run *r)
{
    const Graph *g = r->cpu.c.g;
    r->offset = POOL_ARRAY(r->cpu.c.pool, g->values.len, int64_t);
    r->work_offset = POOL_ARRAY(r->cpu.c.pool, g->nodes.len, int64_t);
    for (size_t v = 0; v < g->values.len; v++)
        r->offset[v] = place(r, type_bytes(&g->values.data[v].type));
    for (size_t n = 0; n < g->nodes.len; n++)
        r->work_offset[n] = place(r, node_workspace_bytes(g, &g->nodes.data[n]));
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

static int compile_some(const Device *d, size_t first, size_t step)
{
    for (size_t k = first; k < d->kernels.len; k += step) {
        const Call *call = d->kernels.data[k].call;
        StrBuf text = strbuf_new(d->pool);
        size_t bytes = 0;
        const char *error = "";
        call_text(call, &text, symbol_of(d->pool, k));
        const void *image = nvrtc_compile(d->pool, text.text, d->arch, &bytes, &error);
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
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = processors < 1                ? 1
               : processors > MOST_COMPILERS ? MOST_COMPILERS
                                             : (size_t)processors;
    pid_t child[MOST_COMPILERS];
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        if ((child[i] = fork()) == 0)
            _exit(compile_some(d, i, n));
    int status;
    for (size_t i = 0; i < n; i++)
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

static char not_written(int64_t at)
{
    return (char)(NOT_WRITTEN >> at % 4 * 8);
}

static void unwrite(char *arena, int64_t at, int64_t bytes)
{
    for (int64_t i = at; i < at + bytes; i++)
        arena[i] = not_written(i);
}

/* Of every value, of which all but the one that was written over have a place of their own. */
static void compare_values(const Run *r, char *arena, ValueId over, const char *how)
{
    const Graph *g = r->cpu.c.g;
    for (size_t v = 0; v < g->values.len; v++) {
        const Type *t = &g->values.data[v].type;
        int64_t at = over == (ValueId)v
                         ? type_elements(t)
                         : op_first_difference(t, arena + r->offset[v], r->cpu.value[v].data);
        CHECK_MSG(at == type_elements(t), "%s, %s: element %lld of value %zu is not the CPU's",
                  r->name, how, (long long)at, v);
    }
    for (size_t v = 0; v < g->values.len; v++)
        unwrite(arena, r->offset[v], type_bytes(&g->values.data[v].type));
}

/* Of an arena whose values and workspaces are unwritten again. */
static void check_fences(const Run *r, const char *arena, const char *how)
{
    for (int64_t i = 0; i < r->bytes; i++)
        if (arena[i] != not_written(i)) {
            CHECK_MSG(false, "%s, %s: byte %lld of the arena is no buffer's and was written",
                      r->name, how, (long long)i);
            return;
        }
}

static bool compare(const Run *r, CudaDevice *device, ValueId over, const char *how, RtError *err)
{
    const Graph *g = r->cpu.c.g;
    char *arena = malloc((size_t)r->bytes);
    bool ok = cuda_read(device, 0, arena, r->bytes, err) && cuda_wait(device, err);
    if (ok)
        compare_values(r, arena, over, how);
    for (size_t n = 0; ok && n < g->nodes.len; n++)
        unwrite(arena, r->work_offset[n], node_workspace_bytes(g, &g->nodes.data[n]));
    if (ok)
        check_fences(r, arena, how);
    free(arena);
    return ok;
}

/* Whether blocks of the kernel go on to other lines when there are fewer of them than lines. */
static bool goes_on(const Device *d, const Call *call)
{
    DeviceTexts fixed = device_texts_all();
    StrBuf text = strbuf_new(d->pool);
    call_text(call, &text, "k");
    for (int i = 0; i < fixed.n; i++)
        if (strcmp(fixed.name[i], "lines.cuh") != 0 && strstr(fixed.text[i], "LINE_STEP") &&
            strstr(text.text, pool_printf(d->pool, "\"%s\"", fixed.name[i])))
            return true;
    return false;
}

static CudaStep *load(const Device *d, const Run *r, CudaDevice *device, RtError *err)
{
    size_t n = r->device.calls.len;
    ScrimpDeviceKernel *kernel = POOL_ARRAY(d->pool, n + 1, ScrimpDeviceKernel);
    for (size_t i = 0; i < n; i++)
        kernel[i] = (ScrimpDeviceKernel){.symbol = symbol_of(d->pool, (size_t)r->kernel[i]),
                                         .image = d->kernels.data[r->kernel[i]].image,
                                         .threads = r->device.calls.data[i].threads};
    return cuda_step_load(device, run_step, kernel, (int)n, err);
}

/* over: the value that the result is written over, or VALUE_NONE.  n_runs: 1, or RUNS. */
static bool run_with(const Device *d, const Run *r, CudaDevice *device, ValueId over, int n_runs,
                     const char *how, RtError *err)
{
    static const char *const runs[RUNS] = {"", ", captured", ", replayed"};
    CudaStep *step = load(d, r, device, err);
    running = r;
    bool ok = step != NULL;
    for (int i = 0; i < n_runs && ok; i++)
        ok = copy_inputs(r, device, err) && cuda_step_run(step, err) &&
             compare(r, device, over, pool_printf(d->pool, "%s%s", how, runs[i]), err);
    cuda_step_unload(step);
    return ok;
}

/* how: the order of threads, and what lies where. */
static void run_on_device(const Device *d, const Run *r, const char *order, ValueId over,
                          const char *how)
{
    RtError err = {"no message"};
    int64_t left;
    setenv("SCRIMP_SIM_ORDER", order, 1);
    CudaDevice *device = cuda_device_open(&err);
    bool ok = device && cuda_arena_map(device, r->bytes + ALIGN, &left, &err) &&
              run_with(d, r, device, over, strcmp(order, "forward") ? 1 : RUNS,
                       pool_printf(d->pool, "%s%s", order, how), &err);
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
        run_on_device(d, r, "reverse", n->in[i], pool_printf(d->pool, ", over input %d", i));
        r->offset[n->out[0]] = apart;
    }
}

static void check_few_blocks(const Device *d, Run *r)
{
    bool fewer = false;
    for (size_t i = 0; i < r->device.calls.len; i++) {
        Call *call = &r->device.calls.data[i];
        if (call->n_tasks > 1 && goes_on(d, call)) {
            call->n_tasks = (call->n_tasks + 2) / 3;
            fewer = true;
        }
    }
    if (fewer)
        run_on_device(d, r, "reverse", VALUE_NONE, ", few blocks");
}

/* Values where no more than an element is aligned, as those inside of others may be. */
static void check_odd_places(const Device *d, Run *r)
{
    const Graph *g = r->cpu.c.g;
    OpClass of = op_table[r->cpu.op].op_class;
    if (of != OP_CLASS_POINT && of != OP_CLASS_DATA && of != OP_CLASS_REGION)
        return;
    for (size_t v = 0; v < g->values.len; v++)
        r->offset[v] += 4;
    run_on_device(d, r, "reverse", VALUE_NONE, ", odd places");
    for (size_t v = 0; v < g->values.len; v++)
        r->offset[v] -= 4;
}

static void check_run(const Device *d, const Farm *f, Run *r, char *scratch)
{
    r->name = op_run_text(&r->cpu);
    op_run_buffers(&r->cpu);
    op_run_calls(f, &r->cpu, INT64_MAX, false, scratch);
    run_on_device(d, r, "forward", VALUE_NONE, "");
    run_on_device(d, r, "reverse", VALUE_NONE, "");
    run_on_device(d, r, "7", VALUE_NONE, "");
    check_few_blocks(d, r);
    check_odd_places(d, r);
    check_in_place(d, r);
    op_run_free_buffers(&r->cpu);
}

/* --- all of them --- */

typedef struct Runs {
    VEC(Run) list;
    int without_code[OP_COUNT];
} Runs;

static void add_run(Device *d, Farm *f, Runs *runs, Run r)
{
    if (!all_have_code(r.cpu.c.g)) {
        runs->without_code[r.cpu.op]++;
        return;
    }
    r.cpu.calls = farm_lower(f, r.cpu.c.g);
    place_values(&r);
    lower_for_device(d, &r, f->target);
    vec_push(d->pool, &runs->list, r);
}

static void add_case(Device *d, Farm *f, Runs *runs, OpKind op, OpCaseMake *make, int seed)
{
    Run r = {.cpu = {.op = op}};
    bool made = op_run_draw(d->pool, op, make, (uint64_t)seed, &r.cpu.c);
    CHECK_MSG(made, "no shapes fit %s", op_name(op));
    if (made)
        add_run(d, f, runs, r);
    r = (Run){.cpu = {.op = op}};
    if (op_run_draw_bf16(d->pool, op, make, (uint64_t)seed, &r.cpu.c))
        add_run(d, f, runs, r);
}

static void add_rows(Device *d, Farm *f, Runs *runs, const OpRow *row, int n, int shapes)
{
    for (int k = 0; k < n; k++)
        for (int i = 0; i < shapes && wanted(row[k].op); i++)
            add_case(d, f, runs, row[k].op, row[k].make, i + 1);
}

static void add_cases(Device *d, Farm *f, Runs *runs, int shapes)
{
    for (int op = 0; op < OP_COUNT; op++)
        for (int i = 0; i < shapes && wanted((OpKind)op); i++)
            add_case(d, f, runs, (OpKind)op, op_case_table[op], i + 1);
    add_rows(d, f, runs, op_edges, op_edges_n, 2);
    add_rows(d, f, runs, op_extremes, op_extremes_n, 1 + shapes / 3);
    add_rows(d, f, runs, op_conv_cases, op_conv_cases_n, 1 + shapes / 3);
    add_rows(d, f, runs, op_conv_groups, op_conv_groups_n, shapes / 3);
    add_rows(d, f, runs, op_tile_cases, op_tile_cases_n, shapes / 3);
}

static const char *device_arch(Pool *pool)
{
    CudaIdentity here;
    RtError err;
    if (cuda_device_here(&here, &err))
        return pool_strdup(pool, here.arch);
    printf("%s\n", err.message);
    return NULL;
}

static bool find_device(Device *d)
{
    if (!getenv("SCRIMP_CUDA_REAL"))
        setenv("SCRIMP_CUDA_PATH", pool_printf(d->pool, "%s/cuda-sim", getenv("SCRIMP_BUILD")), 1);
    d->arch = device_arch(d->pool);
    return d->arch != NULL;
}

static void check_all(const Device *d, const Farm *f, Runs *runs, char *scratch)
{
    RtError err = {"no message"};
    CudaDevice *held = cuda_device_open(&err); /* making a context anew takes a real device long */
    CHECK_MSG(held, "%s", err.message);
    for (size_t i = 0; held && check_failures < 20 && i < runs->list.len; i++)
        check_run(d, f, &runs->list.data[i], scratch);
    cuda_device_close(held);
}

static void print_counts(const Device *d, const Runs *runs)
{
    printf("%zu cases, %zu kernels for %s; without CUDA code:", runs->list.len, d->kernels.len,
           d->arch);
    for (int op = 0; op < OP_COUNT; op++)
        if (runs->without_code[op])
            printf(" %s(%d)", op_name((OpKind)op), runs->without_code[op]);
    printf("\n");
}

int main(void)
{
    const Target *target = target_find(NULL);
    Pool *pool = pool_new();
    Device d = {.pool = pool, .index = map_new(pool), .folder = "/tmp/scrimp_test_cuda_XXXXXX"};
    if (!target->fma)
        printf("this processor has no fused multiply-add: its sums are rounded otherwise\n");
    if (!target->fma || !find_device(&d))
        return 77;
    Farm f = farm_new(pool, target);
    f.optimization = 2;
    Runs runs = {.without_code = {0}};
    void *scratch = NULL;
    if (!mkdtemp(d.folder) || posix_memalign(&scratch, 64, SCRIMP_SCRATCH_BYTES))
        abort();
    add_cases(&d, &f, &runs, sample_number("SCRIMP_SHAPES", SHAPES));
    bool ready = compile_all(&d) && load_images(&d) && farm_compile(&f) && farm_load(&f);
    CHECK_MSG(ready, "kernels do not compile");
    if (ready)
        check_all(&d, &f, &runs, scratch);
    print_counts(&d, &runs);
    free(scratch);
    farm_free(&f);
    pool_free(pool);
    return test_result();
}
