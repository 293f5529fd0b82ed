/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated cuDNN is as strict as its documentation: what must not be done is refused, and what
 * it is asked to compute is computed when the stream runs, and not before. */
#include "check.h"
#include "ir/support/pool.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/cudnn_plan.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/library.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Cudnn *cudnn;

static const char device_json[] =
    "{\"cudnn_version\":1,\"deviceName\":\"x\",\"maxGridSize\":[1,1,1],\"maxBlockSize\":[1,1,1],"
    "\"regsPerBlock\":1,\"multiProcessorCount\":132,\"warpSize\":32,\"maxCtasPerSM\":1,"
    "\"maxSharedMemoryPerBlock\":1,\"maxRegistersPerSM\":1,\"maxThreadsPerSM\":1,"
    "\"maxSharedMemoryPerBlockOptin\":1,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"reservedSharedMemoryPerBlock\":1,\"supportCoopLaunch\":1,\"totalGlobalMem\":1,"
    "\"smClockRateKHz\":1,\"memClockRateKHz\":1,\"l2CacheSize\":1,\"maxThreadsPerBlock\":1,"
    "\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000}";

/* Two images of 3 x 3, one channel, a kernel of 2 x 2 with two results. */
static const CudnnProblem small = {.part = CUDNN_FORWARD,
                                   .images = 2,
                                   .h = 3,
                                   .w = 3,
                                   .c = 1,
                                   .oh = 2,
                                   .ow = 2,
                                   .k = 2,
                                   .r = 2,
                                   .s = 2,
                                   .groups = 1,
                                   .stride = {1, 1},
                                   .dilation = {1, 1},
                                   .align = 16,
                                   .workspace = 1 << 20};

static void *object(CudnnKind kind)
{
    void *made = NULL;
    CHECK(cudnn->object_create((int)kind, &made) == CUDNN_SUCCESS);
    return made;
}

static bool sets(void *o, int attribute, int type, int64_t n, const void *value)
{
    return cudnn->object_set(o, attribute, type, n, value) == CUDNN_SUCCESS;
}

/* --- objects --- */

/* A tensor with these strides is finished. */
static bool takes_tensor(const int64_t *strides, int64_t align, bool all)
{
    const int64_t id = 'x', dims[] = {4, 3, 5, 7};
    const int type = CUDNN_DATA_FLOAT;
    void *t = object(CUDNN_TENSOR);
    CHECK(sets(t, CUDNN_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id));
    CHECK(sets(t, CUDNN_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
    CHECK(sets(t, CUDNN_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims));
    CHECK(sets(t, CUDNN_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides));
    if (all)
        CHECK(sets(t, CUDNN_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align));
    bool ok = cudnn->object_finalize(t) == CUDNN_SUCCESS;
    if (ok) {
        CHECK(!sets(t, CUDNN_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id));
        CHECK(cudnn->object_finalize(t) != CUDNN_SUCCESS);
    }
    cudnn->object_destroy(t);
    return ok;
}

static void test_tensors(void)
{
    const int64_t channels_last[] = {105, 1, 21, 3}, channels_first[] = {105, 35, 7, 1};
    const int64_t nowhere[] = {105, 0, 21, 3};
    const int number = 1;
    CHECK(takes_tensor(channels_last, 16, true));
    CHECK(takes_tensor(channels_first, 16, true)); /* though no convolution does */
    CHECK(!takes_tensor(nowhere, 16, true));
    CHECK(!takes_tensor(channels_last, 12, true));
    CHECK(!takes_tensor(channels_last, 16, false));
    void *t = object(CUDNN_TENSOR);
    CHECK(!sets(t, CUDNN_TENSOR_UNIQUE_ID, CUDNN_TYPE_DATA_TYPE, 1, &number));
    CHECK(!sets(t, CUDNN_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, &(int64_t[]){1, 1, 1}));
    CHECK(!sets(t, CUDNN_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &(int64_t){2}));
    cudnn->object_destroy(t);
}

/* --- choices and plans --- */

static bool chooses(const CudnnPlanner *by, const CudnnProblem *p, int64_t *engine)
{
    CudnnChoice choice = {0};
    bool ok = cudnn_choose(by, p, &choice, NULL);
    *engine = choice.engine;
    return ok;
}

static void test_choices(const CudnnPlanner *by)
{
    CudnnProblem p = small;
    int64_t f32, tf32, bf16, none;
    CHECK(chooses(by, &p, &f32));
    p.arithmetic = CUDNN_TF32;
    CHECK(chooses(by, &p, &tf32));
    p.arithmetic = CUDNN_BF16;
    CHECK(chooses(by, &p, &bf16));
    CHECK(f32 == 47 && tf32 == 46 && bf16 == 46);
    p = small;
    p.workspace = 0;
    CHECK(chooses(by, &p, &f32) && f32 == 2);
    p.oh = 3;
    CHECK(!chooses(by, &p, &none));
    p = small;
    p.k = 3;
    p.groups = 1;
    p.dilation[0] = 2;
    CHECK(!chooses(by, &p, &none));
    setenv("SCRIMP_SIM_CUDNN", "none", 1);
    CHECK(!chooses(by, &small, &none));
    unsetenv("SCRIMP_SIM_CUDNN");
    CHECK(!cudnn_device(cudnn, "{\"deviceVer\":900}", NULL));
}

/* A plan takes the settings of its engine alone. */
static void test_settings(const CudnnPlanner *by)
{
    int64_t workspace;
    CudnnChoice choice;
    CHECK(cudnn_choose(by, &small, &choice, NULL) && choice.n_knobs == 1);
    CudnnPlan *plan = cudnn_plan_make(by, &small, &choice, &workspace, NULL);
    CHECK(plan && workspace == choice.workspace);
    cudnn_plan_free(plan);
    choice.knob[0].value ^= 1;
    CHECK(!cudnn_plan_make(by, &small, &choice, &workspace, NULL));
    choice.engine = 99;
    CHECK(!cudnn_plan_make(by, &small, &choice, &workspace, NULL));
}

/* --- running --- */

typedef struct Device {
    const CudaDriver *cu;
    void *context, *stream, *handle;
    CudaAddress memory;
} Device;

enum { X = 0, W = 256, Y = 512, WORKSPACE = 1024, BYTES = 4096 };

static void *at(const Device *d, int64_t offset)
{
    return (void *)(uintptr_t)(d->memory + (CudaAddress)offset);
}

static void open_device(Device *d)
{
    d->cu = cuda_driver(NULL);
    CHECK(d->cu->init(0) == CUDA_OK && d->cu->context_retain(&d->context, 0) == CUDA_OK &&
          d->cu->context_push(d->context) == CUDA_OK &&
          d->cu->stream_create(&d->stream, CUDA_STREAM_NON_BLOCKING) == CUDA_OK &&
          d->cu->allocate(&d->memory, BYTES) == CUDA_OK);
    CHECK(cudnn->create(&d->handle) == CUDNN_SUCCESS &&
          cudnn->set_stream(d->handle, d->stream) == CUDNN_SUCCESS);
}

/* Places of x are 1, 2, ...; weights of the first result are ones, of the second twos. */
static void put_operands(const Device *d)
{
    float *x = at(d, X), *w = at(d, W);
    for (int i = 0; i < 18; i++)
        x[i] = (float)(i + 1);
    for (int i = 0; i < 8; i++)
        w[i] = i < 4 ? 1 : 2;
}

static void test_running(const CudnnPlanner *elsewhere)
{
    Device d;
    int64_t workspace;
    CudnnChoice choice;
    open_device(&d);
    put_operands(&d);
    const CudnnPlanner by = {.cudnn = cudnn, .handle = d.handle};
    CHECK(cudnn_choose(elsewhere, &small, &choice, NULL));
    CudnnPlan *plan = cudnn_plan_make(&by, &small, &choice, &workspace, NULL);
    CudnnPlan *far = cudnn_plan_make(elsewhere, &small, &choice, &workspace, NULL);
    const float *y = at(&d, Y), *scratch = at(&d, WORKSPACE);
    CHECK(plan && far && workspace > 0 && workspace <= BYTES - WORKSPACE);
    char *x = at(&d, X), *tensors[] = {x, at(&d, W), at(&d, Y)};
    char *crooked[] = {x + 4, at(&d, W), at(&d, Y)}, *free_bytes = at(&d, WORKSPACE);
    CHECK(!cudnn_plan_run(far, d.handle, tensors, free_bytes, NULL));
    CHECK(!cudnn_plan_run(plan, d.handle, tensors, NULL, NULL));
    CHECK(!cudnn_plan_run(plan, d.handle, crooked, free_bytes, NULL));
    CHECK(!cudnn_plan_run(plan, d.handle, tensors, free_bytes + 64, NULL));
    memset(free_bytes, 0, BYTES - WORKSPACE);
    CHECK(cudnn_plan_run(plan, d.handle, tensors, free_bytes, NULL));
    CHECK(isnan(y[0]));
    CHECK(d.cu->stream_wait(d.stream) == CUDA_OK);
    CHECK(y[0] == 1 + 2 + 4 + 5 && y[1] == 2 * y[0] && y[15] == 2 * (14 + 15 + 17 + 18));
    CHECK(isnan(scratch[0]) && isnan(scratch[workspace / 4 - 1]) && scratch[workspace / 4] == 0);
    cudnn_plan_free(plan);
    cudnn_plan_free(far);
    cudnn->destroy(d.handle);
}

/* --- attention --- */

/* One head of two rows and two keys: the second key is masked for the first row. */
static const CudnnProblem attention = {.part = CUDNN_ATTENTION,
                                       .arithmetic = CUDNN_BF16,
                                       .batch = 1,
                                       .heads = 1,
                                       .rows = 2,
                                       .keys = 2,
                                       .width = 8,
                                       .value_width = 8,
                                       .at = {{16, 16, 8},
                                              {16, 16, 8},
                                              {16, 16, 8},
                                              {16, 16, 8},
                                              {16, 16, 8},
                                              {16, 16, 8},
                                              {16, 16, 8},
                                              {16, 16, 8}},
                                       .causal = 1,
                                       .scale = 0x3f800000, /* 1 */
                                       .align = 16,
                                       .workspace = 1 << 20};

static void test_attention_choices(const CudnnPlanner *by)
{
    int64_t engine, workspace;
    CudnnChoice choice;
    CudnnProblem p = attention;
    CHECK(chooses(by, &p, &engine) && engine == 72);
    CHECK(cudnn_choose(by, &p, &choice, NULL) && choice.workspace > 0);
    CHECK(!cudnn_plan_make(by, &p, &choice, &workspace, NULL)); /* which is compiled */
    p.width = 12;
    CHECK(!chooses(by, &p, &engine));
    p.width = 136;
    CHECK(!chooses(by, &p, &engine));
    p = attention;
    p.align = 8;
    CHECK(!chooses(by, &p, &engine));
    p = attention;
    p.workspace = 100;
    CHECK(!chooses(by, &p, &engine));
    p = attention;
    p.part = CUDNN_ATTENTION_GRAD;
    CHECK(chooses(by, &p, &engine) && engine == 74);
    p.rows = p.keys = 1;
    CHECK(!chooses(by, &p, &engine));
}

/* Three heads, of two of a batch: each tensor on its own may lie anyhow, in steps of 16 bytes, but
 * not over itself. */
static void test_attention_strides(const CudnnPlanner *by, int part)
{
    const CudnnStrides by_heads = {48, 16, 8}, by_rows = {48, 8, 24}, piece = {144, 8, 72};
    const CudnnStrides wrong[] = {{48, 16, 12}, {48, 12, 24}, {52, 16, 8}, {48, 8, 16},
                                  {40, 8, 24},  {16, 16, 8},  {48, 8, 8}};
    int64_t engine;
    CudnnProblem p = attention;
    p.part = part;
    p.batch = 2;
    p.heads = 3;
    const int tensors = part == CUDNN_ATTENTION ? CUDNN_FORWARD_TENSORS : CUDNN_TENSORS;
    for (int t = 0; t < CUDNN_TENSORS; t++)
        p.at[t] = t % 3 == 0 ? by_heads : t % 3 == 1 ? by_rows : piece;
    CHECK(chooses(by, &p, &engine));
    for (int t = 0; t < tensors; t++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            CudnnProblem q = p;
            q.at[t] = wrong[i];
            CHECK_MSG(!chooses(by, &q, &engine), "tensor %d may have strides %d", t, (int)i);
        }
}

/* A graph of these operations but one, or with two of them exchanged. */
static bool finishes(const CudnnProblem *p, int without, int exchanged)
{
    CudnnMaker m = {.cudnn = cudnn};
    CudnnOperations ops = {.n = 0};
    cudnn_attention(&m, p, &ops);
    CHECK(m.status == CUDNN_SUCCESS && ops.n > 10);
    if (exchanged >= 0) {
        void *first = ops.operation[exchanged];
        ops.operation[exchanged] = ops.operation[exchanged + 1];
        ops.operation[exchanged + 1] = first;
    }
    for (int i = without; without >= 0 && i + 1 < ops.n; i++)
        ops.operation[i] = ops.operation[i + 1];
    void *graph = cudnn_make(&m, CUDNN_OPERATIONGRAPH);
    cudnn_set(&m, graph, CUDNN_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              ops.n - (without >= 0), ops.operation);
    cudnn_finalize(&m, graph);
    cudnn_free(&m);
    return m.status == CUDNN_SUCCESS;
}

static void test_patterns(void)
{
    for (int grad = 0; grad < 2; grad++) {
        CudnnProblem p = attention;
        p.part = grad ? CUDNN_ATTENTION_GRAD : CUDNN_ATTENTION;
        CHECK(finishes(&p, -1, -1));
        for (int i = 0; i < 15; i++)
            CHECK_MSG(!finishes(&p, i, -1), "operation %d may be left out", i);
        CHECK(!finishes(&p, -1, 0) && !finishes(&p, -1, 8));
    }
}

enum { QUERIES = 0, KEYS = 64, VALUES = 128, RESULT = 192, STATISTICS = 256, SCRATCH = 1024 };

static void put_bf16(void *at, const float *x, int n)
{
    for (int i = 0; i < n; i++)
        memcpy((char *)at + 2 * i, (const char *)&x[i] + 2, 2);
}

static float get_bf16(const void *at, int i)
{
    float x = 0;
    memcpy((char *)&x + 2, (const char *)at + 2 * i, 2);
    return x;
}

/* Rows are 1 and 2 in their first element, and keys 1 and 1: the second row's scores are equal. */
static void test_attention_running(const CudnnPlanner *elsewhere)
{
    Device d;
    int64_t workspace;
    CudnnChoice choice;
    const float rows[16] = {[0] = 1, [8] = 2}, keys[16] = {[0] = 1, [8] = 1};
    const float values[16] = {[0] = 4, [8] = 8};
    open_device(&d);
    put_bf16(at(&d, QUERIES), rows, 16);
    put_bf16(at(&d, KEYS), keys, 16);
    put_bf16(at(&d, VALUES), values, 16);
    const CudnnPlanner by = {.cudnn = cudnn, .handle = d.handle};
    CHECK(cudnn_choose(elsewhere, &attention, &choice, NULL));
    CudnnPlan *plan = cudnn_plan_make(&by, &attention, &choice, &workspace, NULL);
    CHECK(plan && workspace == choice.workspace);
    char *tensors[] = {at(&d, QUERIES), at(&d, KEYS), at(&d, VALUES), at(&d, RESULT),
                       at(&d, STATISTICS)};
    char *crooked[] = {tensors[0], tensors[1], tensors[2], tensors[3], tensors[4] + 8};
    char *none[] = {tensors[0], tensors[1], tensors[2], tensors[3], NULL};
    const float *s = at(&d, STATISTICS);
    CHECK(!cudnn_plan_run(plan, d.handle, crooked, at(&d, SCRATCH), NULL));
    CHECK(!cudnn_plan_run(plan, d.handle, none, at(&d, SCRATCH), NULL));
    CHECK(!cudnn_plan_run(plan, d.handle, tensors, NULL, NULL));
    CHECK(cudnn_plan_run(plan, d.handle, tensors, at(&d, SCRATCH), NULL));
    CHECK(isnan(s[0]));
    CHECK(d.cu->stream_wait(d.stream) == CUDA_OK);
    CHECK(get_bf16(tensors[3], 0) == 4 && get_bf16(tensors[3], 8) == 6);
    CHECK(s[0] == 1 && fabsf(s[1] - 2.6931472f) < 1e-5f);
    cudnn_plan_free(plan);
    cudnn->destroy(d.handle);
}

/* --- plans of steps --- */

/* A plan as a step has it: for another version, or of an engine that is not there, the choice is
 * made again, within the step's workspace. */
static bool loads(Pool *pool, const char *form, int64_t workspace, int64_t version, int knobs,
                  RtError *err)
{
    const char *text = pool_printf(
        pool,
        "part 0\narithmetic 0\nimages 2\nh 3\nw 3\nc 1\noh %s\now 2\nk 2\nr 2\ns 2\ngroups 1\n"
        "stride_y 1\nstride_x 1\npad_y 0\npad_x 0\ndilation_y 1\ndilation_x 1\nalign 16\n"
        "workspace %lld\nversion %lld\nengine 99\nknobs %d\n",
        form, (long long)workspace, (long long)version, knobs);
    for (int i = 0; i < knobs; i++)
        text = pool_printf(pool, "%sknob %d\nvalue 0\n", text, i);
    void *plan = cuda_cudnn.load(text, (int64_t)strlen(text), err);
    if (plan)
        cuda_cudnn.unload(plan);
    return plan;
}

static void test_loading(Pool *pool)
{
    RtError err = {""};
    int64_t version = cudnn->version;
    CHECK(loads(pool, "2", 1 << 20, version, 0, &err));
    CHECK(loads(pool, "2", 0, 90000, CUDNN_KNOBS_MOST, &err));
    CHECK(!loads(pool, "3", 1 << 20, version, 0, &err) && strstr(err.message, "--exact"));
    CHECK(!loads(pool, "two", 1 << 20, version, 0, &err) && strstr(err.message, "cannot be read"));
    CHECK(!loads(pool, "2", 0, 90000, CUDNN_KNOBS_MOST + 1, &err) &&
          strstr(err.message, "cannot be read"));
    setenv("SCRIMP_SIM_CUDNN", "none", 1);
    CHECK(!loads(pool, "2", 1 << 20, version, 0, &err) && strstr(err.message, "no engine"));
    unsetenv("SCRIMP_SIM_CUDNN");
}

int main(void)
{
    Pool *pool = pool_new();
    RtError err = {"no message"};
    setenv("SCRIMP_CUDA_PATH", pool_printf(pool, "%s/cuda-sim", getenv("SCRIMP_BUILD")), 1);
    cudnn = cudnn_api(&err);
    CHECK_MSG(cudnn, "%s", err.message);
    if (cudnn) {
        const CudnnPlanner by = {.cudnn = cudnn, .device = cudnn_device(cudnn, device_json, NULL)};
        CHECK(by.device);
        test_tensors();
        test_choices(&by);
        test_settings(&by);
        test_running(&by);
        test_attention_choices(&by);
        test_attention_strides(&by, CUDNN_ATTENTION);
        test_attention_strides(&by, CUDNN_ATTENTION_GRAD);
        test_patterns();
        test_attention_running(&by);
        test_loading(pool);
    }
    pool_free(pool);
    return test_result();
}
