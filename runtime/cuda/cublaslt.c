/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products by cuBLASLt, found when it is asked for.  Names, types and constants are those of
 * cublasLt.h, which is not needed here.
 *
 * Of the algorithms that the library's heuristic offers, best first, the first is taken; only those
 * are asked for that add parts of a sum in a fixed order, and the same alignments, workspace and
 * address of the bias are given for each product of a kind: equal problems have equal bits,
 * wherever they lie. */
#include "runtime/cuda/find.h"
#include "runtime/cuda/library.h"

#include <stdlib.h>

enum {
    STATUS_SUCCESS = 0,
    STATUS_NOT_INITIALIZED = 1,
    STATUS_ALLOC_FAILED = 3,
    STATUS_NOT_SUPPORTED = 15,
    R_32F = 0, /* cudaDataType */
    R_16BF = 14,
    COMPUTE_32F = 68,
    COMPUTE_32F_FAST_TF32 = 77,
    OP_T = 1,
    DESC_TRANSA = 3, /* CUBLASLT_MATMUL_DESC_... */
    DESC_TRANSB = 4,
    DESC_EPILOGUE = 7,
    DESC_BIAS_POINTER = 8,
    DESC_BIAS_DATA_TYPE = 26,
    EPILOGUE_BIAS = 4,
    LAYOUT_BATCH_COUNT = 5, /* CUBLASLT_MATRIX_LAYOUT_... */
    LAYOUT_STRIDED_BATCH_OFFSET = 6,
    PREF_MAX_WORKSPACE_BYTES = 1, /* CUBLASLT_MATMUL_PREF_... */
    PREF_REDUCTION_SCHEME_MASK = 3,
    PREF_MIN_ALIGNMENT_A_BYTES = 5, /* ..._D_BYTES is the last of four */
    PREF_MIN_ALIGNMENT_D_BYTES = 8,
    REDUCTION_COMPUTE_TYPE = 2, /* parts lie in the workspace and are added by another kernel; to
                                   add them in one sequence is always allowed */
    WORKSPACE_ALIGN = 256
};

typedef struct Algorithm { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
} Algorithm;

typedef struct Heuristic { /* cublasLtMatmulHeuristicResult_t */
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} Heuristic;

/* LT_FUNCTION(name in this table, name in the library, parameters); all return a status. */
#define LT_FUNCTIONS(LT_FUNCTION)                                                                  \
    LT_FUNCTION(create, cublasLtCreate, (void **handle))                                           \
    LT_FUNCTION(destroy, cublasLtDestroy, (void *handle))                                          \
    LT_FUNCTION(product_create, cublasLtMatmulDescCreate,                                          \
                (void **product, int compute_type, int scale_type))                                \
    LT_FUNCTION(product_destroy, cublasLtMatmulDescDestroy, (void *product))                       \
    LT_FUNCTION(product_set, cublasLtMatmulDescSetAttribute,                                       \
                (void *product, int attribute, const void *value, size_t bytes))                   \
    LT_FUNCTION(layout_create, cublasLtMatrixLayoutCreate,                                         \
                (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))            \
    LT_FUNCTION(layout_destroy, cublasLtMatrixLayoutDestroy, (void *layout))                       \
    LT_FUNCTION(layout_set, cublasLtMatrixLayoutSetAttribute,                                      \
                (void *layout, int attribute, const void *value, size_t bytes))                    \
    LT_FUNCTION(preference_create, cublasLtMatmulPreferenceCreate, (void **preference))            \
    LT_FUNCTION(preference_destroy, cublasLtMatmulPreferenceDestroy, (void *preference))           \
    LT_FUNCTION(preference_set, cublasLtMatmulPreferenceSetAttribute,                              \
                (void *preference, int attribute, const void *value, size_t bytes))                \
    LT_FUNCTION(heuristic, cublasLtMatmulAlgoGetHeuristic,                                         \
                (void *handle, void *product, void *a, void *b, void *c, void *d,                  \
                 void *preference, int wanted, Heuristic *found, int *n))                          \
    LT_FUNCTION(run, cublasLtMatmul,                                                               \
                (void *handle, void *product, const void *alpha, const void *a, void *a_layout,    \
                 const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,   \
                 void *d, void *d_layout, const Algorithm *algorithm, void *workspace,             \
                 size_t workspace_bytes, void *stream))

typedef struct CublasLt {
#define LT_FUNCTION(name, symbol, parameters) int(*name) parameters;
    LT_FUNCTIONS(LT_FUNCTION)
#undef LT_FUNCTION
} CublasLt;

static const CublasLt *cublaslt(RtError *err)
{
    static const char *const names[] = {"libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12",
                                        NULL};
    static CublasLt table;
    static bool found;
    if (found)
        return &table;
    void *library = cuda_find_library(names);
    if (!library) {
        rt_error(err, "there is no cuBLASLt library (libcublasLt.so), which the step was compiled "
                      "for: install the CUDA toolkit, or add its folder of libraries to "
                      "SCRIMP_CUDA_PATH");
        return NULL;
    }
#define LT_FUNCTION(name, symbol, parameters)                                                      \
    if (!cuda_find_symbol(library, #symbol, &table.name)) {                                        \
        rt_error(err, "the cuBLASLt library is too old: it has no %s", #symbol);                   \
        return NULL;                                                                               \
    }
    LT_FUNCTIONS(LT_FUNCTION)
#undef LT_FUNCTION
    found = true;
    return &table;
}

/* One for all products, as long as there are any: it holds memory of the device. */
static void *shared_handle;
static int n_users;

static bool check(int status, const char *what, RtError *err)
{
    if (status == STATUS_SUCCESS)
        return true;
    const char *text = status == STATUS_NOT_INITIALIZED ? "the driver may be too old for it"
                       : status == STATUS_ALLOC_FAILED  ? "out of memory"
                       : status == STATUS_NOT_SUPPORTED ? "it is not supported here"
                                                        : "it failed";
    return rt_error(err, "cuBLASLt: %s: %s (status %d)", what, text, status);
}

/* --- plans --- */

/* What codegen/cuda/library/cublaslt.c describes. */
typedef struct Problem {
    int64_t m, n, k, batch, a_transposed, lda, a_stride, b_transposed, ldb, b_stride;
    int64_t factors_bf16, result_bf16, tf32, bias, align, workspace;
} Problem;

typedef struct Product {
    const CublasLt *lt;
    Problem p;
    void *product, *a, *b, *d, *preference;
    Algorithm algorithm;
} Product;

static bool read_problem(const char *plan, int64_t bytes, Problem *p, RtError *err)
{
    const PlanField fields[] = {{"m", &p->m},
                                {"n", &p->n},
                                {"k", &p->k},
                                {"batch", &p->batch},
                                {"a_transposed", &p->a_transposed},
                                {"lda", &p->lda},
                                {"a_stride", &p->a_stride},
                                {"b_transposed", &p->b_transposed},
                                {"ldb", &p->ldb},
                                {"b_stride", &p->b_stride},
                                {"factors_bf16", &p->factors_bf16},
                                {"result_bf16", &p->result_bf16},
                                {"tf32", &p->tf32},
                                {"bias", &p->bias},
                                {"align", &p->align},
                                {"workspace", &p->workspace}};
    return cuda_plan_read(plan, bytes, fields, sizeof fields / sizeof *fields, err);
}

static int type_of(int64_t bf16)
{
    return bf16 ? R_16BF : R_32F;
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
           (check(lt->layout_set(*out, LAYOUT_BATCH_COUNT, &batch, sizeof batch), "a batch", err) &&
            check(lt->layout_set(*out, LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
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
    return set(x, DESC_BIAS_POINTER, &bias, sizeof bias, err);
}

static bool make_product(Product *x, RtError *err)
{
    const Problem *p = &x->p;
    const int32_t transposed = OP_T, type = type_of(p->result_bf16);
    const uint32_t epilogue = EPILOGUE_BIAS;
    int compute = p->tf32 ? COMPUTE_32F_FAST_TF32 : COMPUTE_32F;
    if (!check(x->lt->product_create(&x->product, compute, R_32F), "a product", err))
        return false;
    bool ok = true;
    if (p->a_transposed)
        ok = set(x, DESC_TRANSA, &transposed, sizeof transposed, err);
    if (p->b_transposed)
        ok = ok && set(x, DESC_TRANSB, &transposed, sizeof transposed, err);
    /* An address of the alignment that all have, of which the choice of an algorithm may depend. */
    if (p->bias)
        ok = ok && set(x, DESC_EPILOGUE, &epilogue, sizeof epilogue, err) &&
             set(x, DESC_BIAS_DATA_TYPE, &type, sizeof type, err) &&
             set_bias(x, (const void *)(uintptr_t)p->align, err);
    return ok;
}

static bool prefer(const Product *x, RtError *err)
{
    const uint64_t workspace = (uint64_t)x->p.workspace;
    const uint32_t align = (uint32_t)x->p.align, scheme = REDUCTION_COMPUTE_TYPE;
    const CublasLt *lt = x->lt;
    bool ok =
        check(lt->preference_set(x->preference, PREF_MAX_WORKSPACE_BYTES, &workspace,
                                 sizeof workspace),
              "the size of a workspace", err) &&
        check(lt->preference_set(x->preference, PREF_REDUCTION_SCHEME_MASK, &scheme, sizeof scheme),
              "orders of sums", err);
    for (int k = PREF_MIN_ALIGNMENT_A_BYTES; k <= PREF_MIN_ALIGNMENT_D_BYTES && ok; k++)
        ok = check(lt->preference_set(x->preference, k, &align, sizeof align), "alignments", err);
    return ok;
}

/* What needs no device. */
static bool describe(Product *x, const char *plan, int64_t bytes, RtError *err)
{
    const Problem *p = &x->p;
    return read_problem(plan, bytes, &x->p, err) && make_product(x, err) &&
           make_factor(x, p->a_transposed, p->m, p->k, p->lda, p->a_stride, &x->a, err) &&
           make_factor(x, p->b_transposed, p->k, p->n, p->ldb, p->b_stride, &x->b, err) &&
           make_layout(x, p->result_bf16, p->m, p->n, p->m, p->m * p->n, &x->d, err) &&
           check(x->lt->preference_create(&x->preference), "its preferences", err) &&
           prefer(x, err);
}

static bool choose(Product *x, RtError *err)
{
    Heuristic found = {.state = STATUS_NOT_SUPPORTED};
    int n = 0;
    int status = x->lt->heuristic(shared_handle, x->product, x->a, x->b, x->d, x->d, x->preference,
                                  1, &found, &n);
    if (status == STATUS_SUCCESS && (n < 1 || found.state != STATUS_SUCCESS))
        status = STATUS_NOT_SUPPORTED;
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
    const CublasLt *lt = cublaslt(err);
    Product *x = lt ? rt_alloc(1, sizeof *x, err) : NULL;
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

bool cuda_cublaslt_describes(const char *plan, int64_t bytes, RtError *err)
{
    Product *x = new_product(err);
    bool ok = x && describe(x, plan, bytes, err);
    if (x)
        unload(x);
    return ok;
}

/* The result, the factors, the workspace, the bias. */
static bool run(void *loaded, char *const *buf, void *stream, RtError *err)
{
    const Product *x = loaded;
    const float one = 1, zero = 0;
    uintptr_t work = ((uintptr_t)buf[3] + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
    if (x->p.bias && !set_bias(x, buf[4], err))
        return false;
    return check(x->lt->run(shared_handle, x->product, &one, buf[2], x->a, buf[1], x->b, &zero,
                            buf[0], x->d, buf[0], x->d, &x->algorithm, (void *)work,
                            (size_t)x->p.workspace, stream),
                 "a product", err);
}

const CudaLibrary cuda_cublaslt = {"cublaslt", load, unload, run};
