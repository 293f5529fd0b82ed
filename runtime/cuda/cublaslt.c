/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products by cuBLASLt.
 *
 * Of the algorithms that the library's heuristic offers, best first, the first is taken; only those
 * are asked for that add parts of a sum in a fixed order, and the same alignments, workspace and
 * address of the bias are given for each product of a kind: equal problems have equal bits,
 * wherever they lie. */
#include "runtime/cuda/cublaslt_api.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/plan.h"

#include <stdlib.h>

/* One for all products, as long as there are any: it holds memory of the device. */
static void *shared_handle;
static int n_users;

static bool check(int status, const char *what, RtError *err)
{
    if (status == LT_SUCCESS)
        return true;
    const char *text = status == LT_NOT_INITIALIZED ? "the driver may be too old for it"
                       : status == LT_ALLOC_FAILED  ? "out of memory"
                       : status == LT_NOT_SUPPORTED ? "it is not supported here"
                                                    : "it failed";
    return rt_error(err, "cuBLASLt: %s: %s (status %d)", what, text, status);
}

/* --- plans --- */

typedef struct Product {
    const CublasLt *lt;
    CublasltProblem p;
    void *product, *a, *b, *d, *preference;
    CublasltAlgorithm algorithm;
} Product;

static int type_of(int64_t bf16)
{
    return bf16 ? LT_R_16BF : LT_R_32F;
}

static bool make_layout(const Product *x, int64_t bf16, int64_t rows, int64_t columns, int64_t ld,
                        int64_t stride, void **out, RtError *err)
{
    const CublasLt *lt = x->lt;
    int32_t batch = (int32_t)x->p.batch;
    if (!check(lt->layout_create(out, type_of(bf16), (uint64_t)rows, (uint64_t)columns, ld),
               "a matrix", err))
        return false;
    return batch == 1 ||
           (check(lt->layout_set(*out, LT_LAYOUT_BATCH_COUNT, &batch, sizeof batch), "a batch",
                  err) &&
            check(lt->layout_set(*out, LT_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
                  "a batch", err));
}

/* rows and columns: of op(A), which is stored the other way round where it is transposed. */
static bool make_factor(const Product *x, int64_t transposed, int64_t rows, int64_t columns,
                        int64_t ld, int64_t stride, void **out, RtError *err)
{
    return make_layout(x, x->p.factors_bf16, transposed ? columns : rows,
                       transposed ? rows : columns, ld, stride, out, err);
}

static bool set(const Product *x, int attribute, const void *value, size_t bytes, RtError *err)
{
    return check(x->lt->product_set(x->product, attribute, value, bytes), "a product", err);
}

static bool set_bias(const Product *x, const void *bias, RtError *err)
{
    return set(x, LT_DESC_BIAS_POINTER, &bias, sizeof bias, err);
}

static bool make_product(Product *x, RtError *err)
{
    const CublasltProblem *p = &x->p;
    const int32_t transposed = LT_OP_T, type = type_of(p->result_bf16);
    const uint32_t epilogue = LT_EPILOGUE_BIAS;
    int compute = p->tf32 ? LT_COMPUTE_32F_FAST_TF32 : LT_COMPUTE_32F;
    if (!check(x->lt->product_create(&x->product, compute, LT_R_32F), "a product", err))
        return false;
    bool ok = true;
    if (p->a_transposed)
        ok = set(x, LT_DESC_TRANSA, &transposed, sizeof transposed, err);
    if (p->b_transposed)
        ok = ok && set(x, LT_DESC_TRANSB, &transposed, sizeof transposed, err);
    /* An address of the alignment that all have, of which the choice of an algorithm may depend. */
    if (p->bias)
        ok = ok && set(x, LT_DESC_EPILOGUE, &epilogue, sizeof epilogue, err) &&
             set(x, LT_DESC_BIAS_DATA_TYPE, &type, sizeof type, err) &&
             set_bias(x, (const void *)(uintptr_t)p->align, err);
    return ok;
}

static bool prefer(const Product *x, RtError *err)
{
    const uint64_t workspace = (uint64_t)x->p.workspace;
    const uint32_t align = (uint32_t)x->p.align, scheme = LT_REDUCTION_COMPUTE_TYPE;
    const CublasLt *lt = x->lt;
    bool ok = check(lt->preference_set(x->preference, LT_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                       sizeof workspace),
                    "the size of a workspace", err) &&
              check(lt->preference_set(x->preference, LT_PREF_REDUCTION_SCHEME_MASK, &scheme,
                                       sizeof scheme),
                    "orders of sums", err);
    for (int k = LT_PREF_MIN_ALIGNMENT_A_BYTES; k <= LT_PREF_MIN_ALIGNMENT_D_BYTES && ok; k++)
        ok = check(lt->preference_set(x->preference, k, &align, sizeof align), "alignments", err);
    return ok;
}

/* What needs no device. */
static bool describe(Product *x, const char *plan, int64_t bytes, RtError *err)
{
    const CublasltProblem *p = &x->p;
    return cuda_plan_read_cublaslt(plan, bytes, &x->p, err) && make_product(x, err) &&
           make_factor(x, p->a_transposed, p->m, p->k, p->lda, p->a_stride, &x->a, err) &&
           make_factor(x, p->b_transposed, p->k, p->n, p->ldb, p->b_stride, &x->b, err) &&
           make_layout(x, p->result_bf16, p->m, p->n, p->m, p->m * p->n, &x->d, err) &&
           check(x->lt->preference_create(&x->preference), "its preferences", err) &&
           prefer(x, err);
}

static bool choose(Product *x, RtError *err)
{
    CublasltHeuristic found = {.state = LT_NOT_SUPPORTED};
    int n = 0;
    int status = x->lt->heuristic(shared_handle, x->product, x->a, x->b, x->d, x->d, x->preference,
                                  1, &found, &n);
    if (status == LT_SUCCESS && (n < 1 || found.state != LT_SUCCESS))
        status = LT_NOT_SUPPORTED;
    x->algorithm = found.algorithm;
    return check(status, "looking for an algorithm", err) ||
           rt_error_prefix(
               err,
               "a product of %lld x %lld x %lld, for which the step would have a kernel "
               "of scrimp's own with --exact",
               (long long)x->p.n, (long long)x->p.m, (long long)x->p.k);
}

static void unload(void *loaded)
{
    Product *x = loaded;
    void *const layouts[] = {x->a, x->b, x->d};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i])
            x->lt->layout_destroy(layouts[i]);
    if (x->preference)
        x->lt->preference_destroy(x->preference);
    if (x->product)
        x->lt->product_destroy(x->product);
    if (--n_users == 0 && shared_handle) {
        x->lt->destroy(shared_handle);
        shared_handle = NULL;
    }
    free(x);
}

static Product *new_product(RtError *err)
{
    const CublasLt *lt = cublaslt_api(err);
    Product *x = lt ? rt_alloc(1, sizeof *x, err) : NULL;
    if (!lt)
        rt_error_prefix(err, "the step was compiled for cuBLASLt");
    if (x) {
        x->lt = lt;
        n_users++;
    }
    return x;
}

static void *load(const char *plan, int64_t bytes, RtError *err)
{
    Product *x = new_product(err);
    if (!x)
        return NULL;
    if (describe(x, plan, bytes, err) &&
        (shared_handle || check(x->lt->create(&shared_handle), "starting it", err)) &&
        choose(x, err))
        return x;
    unload(x);
    return NULL;
}

/* The result, the factors, the workspace, the bias. */
static bool run(void *loaded, char *const *buf, void *stream, RtError *err)
{
    const Product *x = loaded;
    const float one = 1, zero = 0;
    uintptr_t work = ((uintptr_t)buf[3] + CUBLASLT_WORKSPACE_ALIGN - 1) / CUBLASLT_WORKSPACE_ALIGN *
                     CUBLASLT_WORKSPACE_ALIGN;
    if (x->p.bias && !set_bias(x, buf[4], err))
        return false;
    return check(x->lt->run(shared_handle, x->product, &one, buf[2], x->a, buf[1], x->b, &zero,
                            buf[0], x->d, buf[0], x->d, &x->algorithm, (void *)work,
                            (size_t)x->p.workspace, stream),
                 "a product", err);
}

const CudaLibrary cuda_cublaslt = {"cublaslt", load, unload, run};
