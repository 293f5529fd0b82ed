/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans of products: what cannot be read is refused; the simulated cuBLASLt refuses what the real
 * one's documentation does not allow, computes when the stream runs and not before, and leaves NaNs
 * in its workspace.  With the argument `real`, the real library, where there is one, knows the
 * attributes by their numbers; exit status 77 where there is none. */
#include "check.h"
#include "runtime/cuda/cublaslt_api.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 3 x 4 = 3 x 5 * 5 x 4, column by column. */
static const CublasltProblem usual = {.m = 3,
                                      .n = 4,
                                      .k = 5,
                                      .batch = 1,
                                      .lda = 3,
                                      .ldb = 5,
                                      .bias = 1,
                                      .align = 64,
                                      .workspace = 1024};

static const char *plan_text(const CublasltProblem *p)
{
    static char text[512];
    size_t n = 0;
    for (int i = 0; i < cublaslt_lines.n; i++) {
        const PlanField *f = &cublaslt_lines.field[i];
        int64_t value;
        memcpy(&value, (const char *)p + f->at, sizeof value);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %lld\n", f->key, (long long)value);
    }
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
    const CublasltProblem plans[] = {
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
        CublasltProblem p = usual;
        const int64_t *change = (const int64_t *)&plans[i];
        for (size_t k = 0; k < sizeof p / sizeof *change; k++)
            if (change[k])
                ((int64_t *)&p)[k] = change[k];
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

/* --- attributes --- */

typedef int SetAttribute(void *, int, const void *, size_t);

/* A library knows its attributes by numbers, and how many bytes each has. */
static void expect_attribute(SetAttribute *set, void *object, int attribute, size_t bytes)
{
    const char zero[16] = {0};
    CHECK_MSG(set(object, attribute, zero, bytes) == LT_SUCCESS, "attribute %d", attribute);
    CHECK_MSG(set(object, attribute, zero, bytes / 2) != LT_SUCCESS &&
                  set(object, attribute, zero, 2 * bytes) != LT_SUCCESS,
              "attribute %d has any size", attribute);
}

static void test_attributes(void)
{
    static const int types[] = {LT_R_32F, LT_R_16BF};
    static const int computes[] = {LT_COMPUTE_32F, LT_COMPUTE_32F_FAST_TF32};
    RtError err = {"no message"};
    void *product = NULL, *layout = NULL, *preference = NULL;
    const CublasLt *lt = cublaslt_api(&err);
    CHECK_MSG(lt && lt->preference_create(&preference) == LT_SUCCESS, "%s", err.message);
    for (int i = 0; i < 2; i++) {
        CHECK(lt->product_create(&product, computes[i], LT_R_32F) == LT_SUCCESS);
        CHECK(lt->layout_create(&layout, types[i], 3, 5, 4) == LT_SUCCESS);
        expect_attribute(lt->product_set, product, LT_DESC_TRANSA, 4);
        expect_attribute(lt->product_set, product, LT_DESC_TRANSB, 4);
        expect_attribute(lt->product_set, product, LT_DESC_EPILOGUE, 4);
        expect_attribute(lt->product_set, product, LT_DESC_BIAS_POINTER, 8);
        expect_attribute(lt->product_set, product, LT_DESC_BIAS_DATA_TYPE, 4);
        expect_attribute(lt->layout_set, layout, LT_LAYOUT_BATCH_COUNT, 4);
        expect_attribute(lt->layout_set, layout, LT_LAYOUT_STRIDED_BATCH_OFFSET, 8);
        CHECK(lt->product_destroy(product) == LT_SUCCESS);
        CHECK(lt->layout_destroy(layout) == LT_SUCCESS);
    }
    expect_attribute(lt->preference_set, preference, LT_PREF_MAX_WORKSPACE_BYTES, 8);
    expect_attribute(lt->preference_set, preference, LT_PREF_REDUCTION_SCHEME_MASK, 4);
    for (int k = LT_PREF_MIN_ALIGNMENT_A_BYTES; k <= LT_PREF_MIN_ALIGNMENT_D_BYTES; k++)
        expect_attribute(lt->preference_set, preference, k, 4);
    CHECK(lt->preference_destroy(preference) == LT_SUCCESS);
}

static void test_versions(void)
{
    RtError err = {""};
    setenv("SCRIMP_SIM_CUBLASLT", "120000", 1);
    CHECK(!cublaslt_api(&err) && strstr(err.message, "too old: version 12.1"));
    unsetenv("SCRIMP_SIM_CUBLASLT");
}

static int test_simulated(void)
{
    RtError err;
    void *context = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/cuda-sim", getenv("SCRIMP_BUILD"));
    setenv("SCRIMP_CUDA_PATH", path, 1);
    test_versions();
    cu = cuda_driver(&err);
    CHECK(cu && cu->init(0) == CUDA_OK && cu->context_retain(&context, 0) == CUDA_OK &&
          cu->context_push(context) == CUDA_OK && cu->stream_create(&stream, 1) == CUDA_OK);
    test_texts();
    test_refused();
    test_run();
    test_attributes();
    cu->stream_destroy(stream);
    return test_result();
}

static int test_real(void)
{
    RtError err;
    unsetenv("SCRIMP_CUDA_PATH");
    if (!cublaslt_api(&err)) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    test_attributes();
    return test_result();
}

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "real") == 0 ? test_real() : test_simulated();
}
