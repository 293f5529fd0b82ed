/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated driver and compiler themselves: mistakes that a device would punish are caught. */
#include "check.h"
#include "codegen/cuda/nvrtc.h"
#include "runtime/cuda/driver.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 64 };

static const CudaDriver *cu;
static Pool *pool;
static void *stream;

#define HEAD                                                                                       \
    "typedef struct Args { long long word[1]; } Args;\n"                                           \
    "#define X ((float *)a.word[0])\n"

typedef struct Kernel {
    void *module, *function;
} Kernel;

static Kernel compile(const char *body)
{
    Kernel k = {NULL, NULL};
    size_t bytes;
    const char *error = "";
    const char *text = pool_printf(pool, "%sKERNEL(k, 64)\n{\n%s\n}\n", HEAD, body);
    const void *image = nvrtc_compile(pool, text, "sm_90", &bytes, &error);
    CHECK_MSG(image != NULL, "%s", error);
    if (image && cu->module_load(&k.module, image) == CUDA_OK)
        CHECK(cu->module_function(&k.function, k.module, "k") == CUDA_OK);
    return k;
}

static int launch_on(const Kernel *k, unsigned threads, CudaAddress x)
{
    void *parameters[] = {&x};
    return cu->launch(k->function, 1, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}

static CudaAddress allocate(size_t bytes)
{
    CudaAddress x = 0;
    CHECK(cu->allocate(&x, bytes) == CUDA_OK);
    return x;
}

/* N floats after one launch, for an order of threads; the error of the wait. */
static int run_in(const char *order, const Kernel *k, float *out)
{
    setenv("SCRIMP_SIM_ORDER", order, 1);
    CudaAddress x = allocate(N * sizeof(float));
    CHECK(launch_on(k, N, x) == CUDA_OK);
    CHECK(cu->from_device(out, x, N * sizeof(float), stream) == CUDA_OK);
    int error = cu->stream_wait(stream);
    cu->release(x);
    return error;
}

/* Every thread reads what its neighbour has written. */
#define NEIGHBOUR(barrier)                                                                         \
    "    SHARED float s[64];\n"                                                                    \
    "    s[threadIdx.x] = (float)threadIdx.x;\n" barrier                                           \
    "    X[threadIdx.x] = s[(threadIdx.x + 1) % 64];\n"

static int wrong_neighbours(const float *x)
{
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += !(x[i] == (float)((i + 1) % N));
    return wrong;
}

static void test_barriers(void)
{
    static const char *const orders[] = {"forward", "reverse", "5"};
    Kernel with = compile(NEIGHBOUR("    __syncthreads();\n")), without = compile(NEIGHBOUR(""));
    float x[N];
    for (int i = 0; i < 3; i++) {
        CHECK(run_in(orders[i], &with, x) == CUDA_OK);
        CHECK(wrong_neighbours(x) == 0);
        CHECK(run_in(orders[i], &without, x) == CUDA_OK);
        CHECK_MSG(wrong_neighbours(x) > 0, "a missing barrier is not seen in order %s", orders[i]);
    }
    Kernel divergent =
        compile("    if (threadIdx.x < 32)\n        __syncthreads();\n    X[0] = 1;\n");
    CHECK(run_in("forward", &divergent, x) != CUDA_OK);
    /* What was left waiting is not taken up by the next kernel. */
    CHECK(run_in("forward", &with, x) == CUDA_OK);
    CHECK(wrong_neighbours(x) == 0);
}

static void test_uninitialised(void)
{
    Kernel shared = compile("    SHARED float s[64];\n    X[threadIdx.x] = s[threadIdx.x];\n");
    Kernel none = compile("    (void)a;\n");
    float x[N] = {0};
    CHECK(run_in("forward", &shared, x) == CUDA_OK);
    CHECK(isnan(x[0]) && isnan(x[N - 1]));
    CHECK(run_in("forward", &none, x) == CUDA_OK);
    CHECK(isnan(x[0]) && isnan(x[N - 1]));
}

/* Nothing happens before somebody waits. */
static void test_waits(void)
{
    Kernel twice = compile("    X[threadIdx.x] = 2 * X[threadIdx.x];\n");
    CudaAddress x = allocate(N * sizeof(float));
    float in[N], out[N] = {0};
    for (int i = 0; i < N; i++)
        in[i] = 1;
    CHECK(cu->to_device(x, in, sizeof in, stream) == CUDA_OK);
    CHECK(launch_on(&twice, N, x) == CUDA_OK);
    CHECK(cu->from_device(out, x, sizeof out, stream) == CUDA_OK);
    CHECK(out[0] == 0);
    in[0] = 10; /* too early: the copy has not run */
    CHECK(cu->stream_wait(stream) == CUDA_OK);
    CHECK(out[0] == 20 && out[1] == 2);
    cu->release(x);
}

static void test_graphs(void)
{
    Kernel add = compile("    X[threadIdx.x] = X[threadIdx.x] + 1;\n");
    CudaAddress x = allocate(N * sizeof(float));
    float out[N];
    void *graph = NULL, *executable = NULL;
    CHECK(cu->fill_words(x, 0, N, stream) == CUDA_OK);
    CHECK(cu->capture_begin(stream, CUDA_CAPTURE_THREAD_LOCAL) == CUDA_OK);
    CHECK(launch_on(&add, N, x) == CUDA_OK && launch_on(&add, N, x) == CUDA_OK);
    CHECK(cu->capture_end(stream, &graph) == CUDA_OK);
    CHECK(cu->graph_instantiate(&executable, graph, 0) == CUDA_OK);
    cu->graph_destroy(graph);
    for (int i = 0; i < 3; i++)
        CHECK(cu->graph_launch(executable, stream) == CUDA_OK);
    CHECK(cu->from_device(out, x, sizeof out, stream) == CUDA_OK);
    CHECK(cu->stream_wait(stream) == CUDA_OK);
    CHECK_MSG(out[5] == 6, "what is captured runs when it is launched, and only then: %g",
              (double)out[5]);
    cu->graph_executable_destroy(executable);
    cu->release(x);
}

/* Two floats of the host by way of a buffer on the device, which two streams share: one fills it,
 * the other copies it to `x` and back.  What `x` gets, with or without the events between them. */
static void pass_on(bool wait_for_copy, bool wait_for_place, float *out)
{
    static float in[2] = {1, 2};
    CudaAddress buffer = allocate(4), x = allocate(4);
    void *copies, *copied[2], *placed;
    CHECK(cu->stream_create(&copies, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cu->event_create(&copied[0], CUDA_EVENT_DISABLE_TIMING) == CUDA_OK &&
          cu->event_create(&copied[1], CUDA_EVENT_DISABLE_TIMING) == CUDA_OK &&
          cu->event_create(&placed, CUDA_EVENT_DISABLE_TIMING) == CUDA_OK);
    for (int i = 0; i < 2; i++) {
        if (wait_for_place)
            CHECK(cu->stream_wait_event(copies, placed, 0) == CUDA_OK);
        CHECK(cu->to_device(buffer, &in[i], 4, copies) == CUDA_OK);
        CHECK(cu->event_record(copied[i], copies) == CUDA_OK);
        if (wait_for_copy)
            CHECK(cu->stream_wait_event(stream, copied[i], 0) == CUDA_OK);
        CHECK(cu->on_device(x, buffer, 4, stream) == CUDA_OK);
        CHECK(cu->event_record(placed, stream) == CUDA_OK);
        CHECK(cu->from_device(&out[i], x, 4, stream) == CUDA_OK);
    }
    CHECK(cu->stream_wait(stream) == CUDA_OK && cu->stream_wait(copies) == CUDA_OK);
    for (int i = 0; i < 2; i++)
        cu->event_destroy(copied[i]);
    cu->event_destroy(placed);
    cu->stream_destroy(copies);
    cu->release(buffer);
    cu->release(x);
}

static int streams_made = 1; /* main's */

static void pass_on_at_once(bool wait_for_copy, bool wait_for_place, float *out)
{
    streams_made++;
    setenv("SCRIMP_SIM_STREAM", pool_printf(pool, "%d", streams_made), 1);
    pass_on(wait_for_copy, wait_for_place, out);
    unsetenv("SCRIMP_SIM_STREAM");
}

static void test_streams(void)
{
    float x[2];
    pass_on(true, true, x);
    streams_made++;
    CHECK_MSG(x[0] == 1 && x[1] == 2, "%g %g", (double)x[0], (double)x[1]);
    pass_on_at_once(true, true, x);
    CHECK_MSG(x[0] == 1 && x[1] == 2, "%g %g", (double)x[0], (double)x[1]);
    pass_on(false, true, x);
    streams_made++;
    CHECK_MSG(isnan(x[0]), "what is used before its copy is not seen");
    pass_on_at_once(true, false, x);
    CHECK_MSG(x[0] == 2, "a copy over what is still used is not seen");
}

/* A wait for another stream is no wait. */
static void test_wrong_stream(void)
{
    Kernel one = compile("    X[threadIdx.x] = 1;\n");
    CudaAddress x = allocate(N * sizeof(float));
    void *other, *right = stream;
    float out[N] = {0};
    CHECK(cu->stream_create(&other, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    streams_made++;
    stream = other;
    CHECK(launch_on(&one, N, x) == CUDA_OK);
    stream = right;
    CHECK(cu->from_device(out, x, sizeof out, stream) == CUDA_OK);
    CHECK(cu->stream_wait(stream) == CUDA_OK && isnan(out[0]));
    cu->stream_destroy(other);
    cu->release(x);
}

/* What the driver refuses while a stream is captured, which spoils the capture. */
static void test_captures(void)
{
    Kernel none = compile("    (void)a;\n");
    for (int i = 0; i < 4; i++) {
        CudaAddress x = allocate(8), y = 0;
        void *graph = &y, *locked;
        CHECK(cu->capture_begin(stream, CUDA_CAPTURE_THREAD_LOCAL) == CUDA_OK);
        CHECK(launch_on(&none, N, x) == CUDA_OK);
        int error = i == 1   ? cu->stream_wait(stream)
                    : i == 2 ? cu->allocate(&y, 8)
                    : i == 3 ? cu->allocate_host(&locked, 8, 0)
                             : CUDA_OK;
        CHECK((error == CUDA_OK) == (i == 0));
        CHECK((cu->capture_end(stream, &graph) == CUDA_OK) == (i == 0));
        CHECK((graph != NULL) == (i == 0));
        if (graph)
            cu->graph_destroy(graph);
        CHECK(cu->stream_wait(stream) == CUDA_OK && cu->release(x) == CUDA_OK);
    }
}

static void test_limits(void)
{
    Kernel none = compile("    (void)a;\n");
    CudaAddress x = allocate(N), y;
    CHECK(launch_on(&none, 65, x) != CUDA_OK); /* more threads than the kernel is made for */
    CHECK(launch_on(&none, 0, x) != CUDA_OK);
    char byte;
    CHECK(cu->from_device(&byte, x + N, 1, stream) != CUDA_OK);
    CHECK(cu->from_device(&byte, 64, 1, stream) != CUDA_OK);
    setenv("SCRIMP_SIM_BYTES", "1000", 1);
    CHECK(cu->allocate(&y, 1000) == CUDA_OUT_OF_MEMORY); /* N of them are in use */
    unsetenv("SCRIMP_SIM_BYTES");
    cu->release(x);
    CHECK(cu->release(x) != CUDA_OK);
}

/* The last float of an allocation is there, the one behind it is not. */
static void test_ends(void)
{
    Kernel last = compile("    X[63] = 1;\n"), behind = compile("    X[64] = 1;\n");
    float x[N];
    CHECK(run_in("forward", &last, x) == CUDA_OK && x[N - 1] == 1);
    pid_t child = fork();
    if (child == 0) {
        run_in("forward", &behind, x);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static int exit_code(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Behind the driver's start nothing may be forked.  In a child, since it is the end of that. */
static void test_forks(void)
{
    pid_t child = fork();
    if (child == 0) {
        bool before = cu->init(0) == CUDA_OK;
        pid_t second = fork();
        if (second == 0)
            _exit(0);
        _exit(before && exit_code(second) == 99 ? 0 : 1);
    }
    CHECK(exit_code(child) == 0);
}

/* Times are those of records that have been reached, of events that take them. */
static void test_timing(void)
{
    void *begin, *end, *plain;
    float milliseconds = -1;
    CHECK(cu->event_create(&begin, 0) == CUDA_OK && cu->event_create(&end, 0) == CUDA_OK &&
          cu->event_create(&plain, CUDA_EVENT_DISABLE_TIMING) == CUDA_OK);
    CHECK(cu->event_elapsed(&milliseconds, begin, end) != CUDA_OK);
    CHECK(cu->event_record(begin, stream) == CUDA_OK && cu->event_record(end, stream) == CUDA_OK &&
          cu->event_record(plain, stream) == CUDA_OK);
    CHECK(cu->event_elapsed(&milliseconds, begin, end) != CUDA_OK);
    CHECK(cu->stream_wait(stream) == CUDA_OK);
    CHECK(cu->event_elapsed(&milliseconds, begin, plain) != CUDA_OK);
    CHECK(cu->event_elapsed(&milliseconds, begin, end) == CUDA_OK && milliseconds >= 0);
    CHECK(cu->event_destroy(begin) == CUDA_OK && cu->event_destroy(end) == CUDA_OK &&
          cu->event_destroy(plain) == CUDA_OK);
}

/* A thread without a context may do nothing, whatever another one has. */
static void *without_context(void *user)
{
    static int refused;
    CudaAddress x;
    void *other;
    refused = cu->allocate(&x, 64) != CUDA_OK && cu->stream_create(&other, 0) != CUDA_OK &&
              cu->fill_words(*(CudaAddress *)user, 0, N, stream) != CUDA_OK;
    return refused ? &refused : NULL;
}

static void test_contexts(void)
{
    pthread_t thread;
    void *refused = NULL;
    CudaAddress x = allocate(N * sizeof(float));
    CHECK(pthread_create(&thread, NULL, without_context, &x) == 0 &&
          pthread_join(thread, &refused) == 0 && refused);
    CHECK(cu->fill_words(x, 0, N, stream) == CUDA_OK && cu->stream_wait(stream) == CUDA_OK &&
          cu->release(x) == CUDA_OK);
}

static void test_compiler(void)
{
    size_t bytes;
    const char *error = "";
    CHECK(!nvrtc_compile(pool, HEAD "KERNEL(k, 64)\n{\n    wrong(a);;\n}}\n", "sm_90", &bytes,
                         &error));
    CHECK_MSG(strstr(error, "wrong") || strstr(error, "expected"), "%s", error);
    const char *compiler = nvrtc_compiler(pool, "sm_90", &error);
    CHECK_MSG(compiler && strstr(compiler, "NVRTC 0.99 sm_90"), "%s", error);
}

int main(void)
{
    RtError err = {"no message"};
    pool = pool_new();
    setenv("SCRIMP_CUDA_PATH", pool_printf(pool, "%s/cuda-sim", getenv("SCRIMP_BUILD")), 1);
    cu = cuda_driver(&err);
    CHECK_MSG(cu != NULL, "%s", err.message);
    if (cu)
        test_forks();
    setenv("SCRIMP_SIM_FORK", "1", 1); /* for test_ends */
    void *context;
    if (!cu || cu->init(0) != CUDA_OK || cu->context_retain(&context, 0) != CUDA_OK ||
        cu->context_push(context) != CUDA_OK ||
        cu->stream_create(&stream, CUDA_STREAM_NON_BLOCKING) != CUDA_OK)
        return 1;
    test_contexts();
    test_timing();
    test_barriers();
    test_uninitialised();
    test_waits();
    test_graphs();
    test_streams();
    test_wrong_stream();
    test_captures();
    test_limits();
    test_ends();
    test_compiler();
    cu->stream_destroy(stream);
    pool_free(pool);
    return test_result();
}
