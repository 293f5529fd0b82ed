/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans of products: what cannot be read is refused; the simulated cuBLASLt refuses what the real
 * one's documentation does not allow, computes when the stream runs and not before, and leaves NaNs
 * in its workspace.  With the argument `real`, the real library, where there is one, takes the
 * descriptions of all kinds of plans; exit status 77 where there is none. */
#include "check.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/find.h"
#include "runtime/cuda/library.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Plan {
    int m, n, k, batch, a_transposed, lda, a_stride, b_transposed, ldb, b_stride;
    int factors_bf16, result_bf16, tf32, bias, align, workspace;
} Plan;

/* 3 x 4 = 3 x 5 * 5 x 4, column by column. */
static const Plan usual = {.m = 3,
                           .n = 4,
                           .k = 5,
                           .batch = 1,
                           .lda = 3,
                           .ldb = 5,
                           .bias = 1,
                           .align = 64,
                           .workspace = 1024};

static const char *plan_text(const Plan *p)
{
    static char text[512];
    snprintf(text, sizeof text,
             "m %d\nn %d\nk %d\nbatch %d\na_transposed %d\nlda %d\na_stride %d\nb_transposed %d\n"
             "ldb %d\nb_stride %d\nfactors_bf16 %d\nresult_bf16 %d\ntf32 %d\nbias %d\nalign %d\n"
             "workspace %d\n",
             p->m, p->n, p->k, p->batch, p->a_transposed, p->lda, p->a_stride, p->b_transposed,
             p->ldb, p->b_stride, p->factors_bf16, p->result_bf16, p->tf32, p->bias, p->align,
             p->workspace);
    return text;
}

static void *load_text(const char *text, RtError *err)
{
    return cuda_cublaslt.load(text, (int64_t)strlen(text), err);
}

/* --- texts --- */

static void test_texts(void)
{
    RtError err;
    char text[512];
    void *loaded = load_text(plan_text(&usual), &err);
    CHECK_MSG(loaded, "%s", err.message);
    cuda_cublaslt.unload(loaded);
    size_t n = strlen(plan_text(&usual));
    for (size_t cut = 0; cut < n; cut++) {
        snprintf(text, sizeof text, "%.*s", (int)cut, plan_text(&usual));
        CHECK_MSG(!load_text(text, &err), "%zu bytes of a plan are taken", cut);
    }
    static const char *const wrong[][2] = {{"m ", "n "},  {"k 5", "k x"},       {"k 5", "k 5x"},
                                           {"k 5", "k "}, {"k 5\n", "k 5\n\n"}, {"batch", "match"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *at = strstr(plan_text(&usual), wrong[i][0]);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - plan_text(&usual)), plan_text(&usual),
                 wrong[i][1], at + strlen(wrong[i][0]));
        CHECK_MSG(!load_text(text, &err) && strstr(err.message, "cannot be read"), "%s", text);
    }
    snprintf(text, sizeof text, "%sm 1\n", plan_text(&usual));
    CHECK(!load_text(text, &err));
    CHECK(!cuda_library_named("cufft", &err) && strstr(err.message, "cufft"));
}

/* --- what is refused --- */

static void test_refused(void)
{
    const Plan plans[] = {
        {.lda = 2},                     /* columns that overlap */
        {.a_transposed = 1},            /* stored as 5 x 3 */
        {.result_bf16 = 1},             /* f32 factors make f32 */
        {.factors_bf16 = 1, .tf32 = 1}, /* TF32 is f32, rounded */
        {.batch = -1},
        {.a_stride = -1, .batch = 2},
        {.m = 0},
        {.a_transposed = 2},
    };
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        RtError err;
        Plan p = usual;
        const int *change = (const int *)&plans[i];
        for (size_t k = 0; k < sizeof p / sizeof(int); k++)
            if (change[k])
                ((int *)&p)[k] = change[k];
        if (i == 6)
            p.m = 0;
        CHECK_MSG(!load_text(plan_text(&p), &err), "plan %zu is taken", i);
    }
}

/* --- running --- */

static const CudaDriver *cu;
static void *stream;

typedef struct Buffers {
    CudaAddress base;
    char *buf[5]; /* the result, the factors, the workspace, the bias */
} Buffers;

static Buffers make_buffers(void)
{
    Buffers b;
    CHECK(cu->allocate(&b.base, 8192) == CUDA_OK);
    char *at = (char *)(uintptr_t)((b.base + 255) / 256 * 256);
    for (int i = 0; i < 5; i++)
        b.buf[i] = i == 3 ? at + 2048 : at + 256 * i + 64; /* no more aligned than a plan says */
    for (int i = 0; i < 15; i++)
        ((float *)(void *)b.buf[2])[i] = (float)(i % 4 - 1);
    for (int i = 0; i < 20; i++)
        ((float *)(void *)b.buf[1])[i] = (float)(i % 7 - 3);
    for (int i = 0; i < 3; i++)
        ((float *)(void *)b.buf[4])[i] = (float)(10 * i);
    return b;
}

static float expected(const Buffers *b, int row, int column)
{
    float total = ((const float *)(void *)b->buf[4])[row];
    for (int k = 0; k < 5; k++)
        total += ((const float *)(void *)b->buf[2])[3 * k + row] *
                 ((const float *)(void *)b->buf[1])[5 * column + k];
    return total;
}

static void test_run(void)
{
    RtError err = {""};
    Buffers b = make_buffers();
    const float *result = (const float *)(void *)b.buf[0], *work = (const float *)(void *)b.buf[3];
    memset(b.buf[3], 0, 1024);
    void *loaded = load_text(plan_text(&usual), &err);
    CHECK_MSG(loaded && cuda_cublaslt.run(loaded, b.buf, stream, &err), "%s", err.message);
    CHECK(isnan(result[0]));
    CHECK(cu->stream_wait(stream) == CUDA_OK);
    for (int i = 0; i < 12; i++)
        CHECK(result[i] == expected(&b, i % 3, i / 3));
    CHECK(isnan(work[0]) && isnan(work[255]));
    for (int i = 0; i < 5; i++) {
        if (i == 3)
            continue; /* it is moved to where it may be */
        char *kept = b.buf[i];
        b.buf[i] += 4;
        CHECK_MSG(!cuda_cublaslt.run(loaded, b.buf, stream, &err), "buffer %d may lie anywhere", i);
        b.buf[i] = kept;
    }
    b.buf[3] += 64;
    CHECK(cuda_cublaslt.run(loaded, b.buf, stream, &err) && cu->stream_wait(stream) == CUDA_OK);
    cuda_cublaslt.unload(loaded);
    cu->release(b.base);
}

static int test_simulated(void)
{
    RtError err;
    void *context = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/cuda-sim", getenv("SCRIMP_BUILD"));
    setenv("SCRIMP_CUDA_PATH", path, 1);
    cu = cuda_driver(&err);
    CHECK(cu && cu->init(0) == CUDA_OK && cu->context_retain(&context, 0) == CUDA_OK &&
          cu->context_push(context) == CUDA_OK && cu->stream_create(&stream, 1) == CUDA_OK);
    test_texts();
    test_refused();
    test_run();
    cu->stream_destroy(stream);
    return test_result();
}

/* --- the real one --- */

static int test_real(void)
{
    static const char *const names[] = {"libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12",
                                        NULL};
    unsetenv("SCRIMP_CUDA_PATH");
    if (!cuda_find_library(names)) {
        printf("skipped: there is no cuBLASLt library\n");
        return 77;
    }
    for (int i = 0; i < 64; i++) {
        RtError err;
        Plan p = usual;
        p.a_transposed = i & 1;
        p.b_transposed = i >> 1 & 1;
        p.lda = p.a_transposed ? 5 : 3;
        p.ldb = p.b_transposed ? 4 : 5;
        p.bias = i >> 2 & 1;
        p.batch = i >> 3 & 1 ? 6 : 1;
        p.a_stride = p.batch > 1 ? 15 : 0;
        p.tf32 = i / 16 == 1;
        p.factors_bf16 = i / 16 >= 2;
        p.result_bf16 = i / 16 == 3;
        const char *text = plan_text(&p);
        CHECK_MSG(cuda_cublaslt_describes(text, (int64_t)strlen(text), &err), "%s\n%s", err.message,
                  text);
    }
    return test_result();
}

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "real") == 0 ? test_real() : test_simulated();
}
