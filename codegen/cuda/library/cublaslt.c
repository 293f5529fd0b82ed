/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products by cuBLASLt.
 *
 * Its matrices lie column by column, so that the row-major D = A B is its D' = B' A': B comes
 * first, and the bias, one number for every column of D, is one for every row of D', as cuBLASLt
 * wants it.  Addresses are multiples of PRODUCT_ALIGN wherever the plan puts a value, and the
 * workspace always has the same size: what the library chooses depends on the problem alone. */
#include "codegen/cuda/library/library.h"

#include "passes/memplan/memplan.h"
#include "runtime/cuda/find.h"

#include <string.h>

const char cublaslt_name[] = "cublaslt";

/* --- the library --- */

static const char *const names[] = {"libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12",
                                    NULL};

enum { OLDEST = 120100 }; /* older ones take fewer rows than others have elements */

/* 130100 for 13.1.0; 0 and *missing where it is not there. */
static size_t version(const char **missing)
{
    static bool asked;
    static void *library;
    static size_t here;
    size_t (*ask)(void);
    if (!asked)
        library = cuda_find_library(names);
    if (!asked && library && cuda_find_symbol(library, "cublasLtGetVersion", &ask))
        here = ask();
    asked = true;
    *missing = here >= OLDEST ? NULL
               : library
                   ? "the cuBLASLt library is too old: version 12.1 or newer is needed"
                   : "there is no cuBLASLt library (libcublasLt.so): install the CUDA toolkit, or "
                     "add its folder of libraries to SCRIMP_CUDA_PATH";
    return here >= OLDEST ? here : 0;
}

const char *cublaslt_version(Pool *pool)
{
    const char *missing;
    return pool_printf(pool, "cuBLASLt %zu", version(&missing));
}

/* --- problems --- */

/* In cuBLASLt's order: its A is the second factor of ours.  runtime/cuda/cublaslt.c reads it. */
KERNEL_DESC_BEGIN
typedef struct ProductProblem {
    int64_t m, n, k, batch;
    int64_t a_transposed, lda, a_stride; /* strides: from one of the batch to the next */
    int64_t b_transposed, ldb, b_stride;
    int64_t factors_bf16, result_bf16, tf32, bias;
    int64_t workspace;
} ProductProblem;
KERNEL_DESC(ProductProblem)

enum {
    PRODUCT_ALIGN = MEMPLAN_ALIGN,
    WORKSPACE_UNIT = 256, /* what cuBLASLt wants its workspace to be aligned to */
    WORKSPACE_MOST = 32 << 20,
    BATCH_MOST = 65535 /* a dim of a grid, which some algorithms are limited to */
};

/* What is allowed is a part of the problem: with more, another algorithm may be chosen. */
static int64_t workspace_of(const ProductProblem *p)
{
    int64_t most = WORKSPACE_MOST / 4, elements;
    if (!size_mul(p->m, p->n, &elements) || !size_mul(elements, p->batch, &elements) ||
        elements > most / 4)
        elements = most / 4;
    return (16 * elements + WORKSPACE_UNIT - 1) / WORKSPACE_UNIT * WORKSPACE_UNIT;
}

/* One stride for all batch dims; false where there is none. */
static bool one_stride(const Product *p, const int64_t *strides, int64_t *out)
{
    int64_t size = 1;
    *out = 0;
    for (int d = p->n_batch - 1; d >= 0; d--) {
        if (p->batch[d] == 1)
            continue;
        if (size == 1)
            *out = strides[d];
        else if (strides[d] != *out * size)
            return false;
        size *= p->batch[d];
    }
    return true;
}

static int64_t batch_of(const Product *p)
{
    int64_t size = 1;
    for (int d = 0; d < p->n_batch; d++)
        size *= p->batch[d];
    return size;
}

/* A factor whose element (i, j) of `rows` by `columns` is at i * row + j * column, as cuBLASLt sees
 * it; false where neither dim is contiguous. */
static bool lay_out(int64_t rows, int64_t columns, int64_t row, int64_t column, int64_t *transposed,
                    int64_t *ld)
{
    *transposed = !(row == 1 && column >= rows);
    *ld = *transposed ? row : column;
    return !*transposed || (column == 1 && row >= columns);
}

/* A matrix that all of the batch is multiplied by: the batch is more rows of the other. */
static Product without_batch(const Product *p, int64_t a_stride, int64_t b_stride, int64_t batch)
{
    Product q = *p;
    if (batch > 1 && b_stride == 0 && p->a_k == 1 && a_stride == p->m * p->a_row) {
        q.m *= batch;
        q.n_batch = 0;
    }
    return q;
}

static bool sizes_fit(const ProductProblem *p)
{
    const int64_t all[] = {p->m, p->n, p->k, p->batch, p->lda, p->ldb};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] < 1 || all[i] > INT32_MAX)
            return false;
    return p->batch <= BATCH_MOST && p->m > 1 && p->k > 1; /* else it is no product of matrices */
}

static bool describe(const Product *wanted, ProductProblem *out)
{
    int64_t a, b, batch = batch_of(wanted);
    if (!one_stride(wanted, wanted->a_batch, &a) || !one_stride(wanted, wanted->b_batch, &b))
        return false;
    const Product p = without_batch(wanted, a, b, batch);
    *out = (ProductProblem){.m = p.n, .n = p.m, .k = p.k, .batch = 1};
    if (p.n_batch) {
        out->batch = batch;
        out->a_stride = b;
        out->b_stride = a;
    }
    return lay_out(p.n, p.k, p.b_n, p.b_k, &out->a_transposed, &out->lda) &&
           lay_out(p.k, p.m, p.a_k, p.a_row, &out->b_transposed, &out->ldb) && sizes_fit(out);
}

static bool is_bf16(const Graph *g, ValueId v)
{
    return value_type(g, v)->dtype == DTYPE_BF16;
}

bool cublaslt_takes(const Graph *g, const Node *n, const Product *p, LibraryUse *out)
{
    ProductProblem problem;
    if (!describe(p, &problem))
        return false;
    bool half = is_bf16(g, n->in[0]) || is_bf16(g, n->in[1]) || is_bf16(g, n->out[0]);
    *out = (LibraryUse){.library = cublaslt_name,
                        .factors = half ? DTYPE_BF16 : DTYPE_F32,
                        .bias = value_type(g, n->out[0])->dtype};
    version(&out->missing);
    /* The plan aligns it less than cuBLASLt wants. */
    out->workspace = workspace_of(&problem) + WORKSPACE_UNIT - MEMPLAN_ALIGN;
    return true;
}

static void write_problem(StrBuf *out, const char *symbol, const void *desc)
{
    const ProductProblem *p = desc;
    (void)symbol;
    const struct {
        const char *key;
        int64_t value;
    } lines[] = {{"m", p->m},
                 {"n", p->n},
                 {"k", p->k},
                 {"batch", p->batch},
                 {"a_transposed", p->a_transposed},
                 {"lda", p->lda},
                 {"a_stride", p->a_stride},
                 {"b_transposed", p->b_transposed},
                 {"ldb", p->ldb},
                 {"b_stride", p->b_stride},
                 {"factors_bf16", p->factors_bf16},
                 {"result_bf16", p->result_bf16},
                 {"tf32", p->tf32},
                 {"bias", p->bias},
                 {"align", PRODUCT_ALIGN},
                 {"workspace", p->workspace}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        strbuf_printf(out, "%s %lld\n", lines[i].key, (long long)lines[i].value);
}

static void set_types(const MatrixNode *m, ProductProblem *p)
{
    const char *precision = m->l->graph->train.precision;
    p->factors_bf16 = is_bf16(m->graph, m->node->in[0]);
    p->result_bf16 = is_bf16(m->graph, m->node->out[0]);
    p->tf32 = !p->factors_bf16 && precision && strcmp(precision, "tf32") == 0;
}

/* Buffers: the result, the factors in the node's order, the workspace, the bias. */
void cublaslt_product(const MatrixNode *m, const Product *p, const char *what)
{
    ProductProblem *problem = POOL_NEW(m->l->pool, ProductProblem);
    StrBuf key = strbuf_new(m->l->pool);
    describe(p, problem);
    CallDraft call = matrix_call(m);
    matrix_add_operand(m, &call, 0);
    matrix_add_operand(m, &call, 1);
    call.buf[call.n_bufs++] = (CallBuf){VALUE_NONE, 0};
    problem->bias = p->bias >= 0 && p->bias < m->node->n_in;
    if (problem->bias)
        matrix_add_operand(m, &call, p->bias);
    problem->workspace = workspace_of(problem);
    set_types(m, problem);
    desc_key(&key, cublaslt_name, problem, DESC_BYTES(ProductProblem));
    double rows = (double)problem->n, columns = (double)problem->m, k = (double)problem->k;
    call.key = key.text;
    call.label =
        pool_printf(m->l->pool, "%s %lldx%lldx%lld", what, (long long)(problem->batch * problem->n),
                    (long long)problem->m, (long long)problem->k);
    call.flops = 2 * (double)problem->batch * rows * columns * k;
    call.bytes = 4 * (double)problem->batch * (rows * k + k * columns + rows * columns);
    call.desc = problem;
    call.text = write_problem;
    call.library = cublaslt_name;
    call.n_tasks = 1;
    lower_call(m->l, call);
}
