/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Matrix products by cuBLASLt.
 *
 * Its matrices lie column by column, so that the row-major D = A B is its D' = B' A': B comes
 * first, and the bias, one number for every column of D, is one for every row of D', as cuBLASLt
 * wants it.  Addresses are multiples of PRODUCT_ALIGN wherever the plan puts a value, and the
 * workspace always has the same size: what the library chooses depends on the problem alone.
 *
 * The gradient of a 1x1 convolution's weights is a small result of very long sums, which in f32 and
 * TF32 the library computes with few blocks (64 x 256 x 802,816 in TF32 on an H200: 1 TFLOP/s, 100
 * in PyTorch).  Here it multiplies parts of such a sum, as a batch, and a kernel adds their
 * results in order. */
#include "codegen/cuda/library/library.h"

#include "codegen/cuda/join.h"
#include "codegen/forms/convolution.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "passes/memplan/memplan.h"
#include "runtime/cuda/cublaslt_api.h"

#include <string.h>

/* NULL, or what is not here; asked once. */
static const char *missing(void)
{
    static RtError why;
    static bool asked, here;
    if (!asked)
        here = cublaslt_api(&why) != NULL;
    asked = true;
    return here ? NULL : why.message;
}

static const char *version(Pool *pool)
{
    return pool_printf(pool, "cuBLASLt %lld",
                       missing() ? 0 : (long long)cublaslt_api(NULL)->version);
}

/* --- problems --- */

enum {
    PRODUCT_ALIGN = MEMPLAN_ALIGN,
    WORKSPACE_UNIT = CUBLASLT_WORKSPACE_ALIGN,
    WORKSPACE_MOST = 32 << 20,
    READ_PART = 64,
    BATCH_MOST = 65535,  /* a dim of a grid, which some algorithms are limited to */
    BLOCK_SIDE = 128,    /* of the results that a block of the library computes, as it may be */
    BLOCKS_WANTED = 160, /* for the multiprocessors that devices have today */
    PART_LEAST = 1024    /* terms of a part of a sum */
};

/* The product of three sizes, or `most` where that is less. */
static int64_t product_up_to(int64_t most, int64_t a, int64_t b, int64_t c)
{
    int64_t product;
    return size_mul(a, b, &product) && size_mul(product, c, &product) && product < most ? product
                                                                                        : most;
}

/* Four results in f32; for a small result of long sums, which the library computes in many parts,
 * as many as take a small part of what is read.  What is allowed is a part of the problem: with
 * more, another algorithm may be chosen. */
static int64_t workspace_of(const CublasltProblem *p, bool long_sums)
{
    int64_t results = 16 * product_up_to(WORKSPACE_MOST / 16, p->m, p->n, p->batch);
    int64_t most_read = (int64_t)WORKSPACE_MOST * READ_PART / 2;
    int64_t read = 2 * product_up_to(most_read, p->k, p->m + p->n, p->batch) / READ_PART;
    int64_t bytes = read < results || !long_sums ? results
                    : read < WORKSPACE_MOST      ? read
                                                 : WORKSPACE_MOST;
    return (bytes + WORKSPACE_UNIT - 1) / WORKSPACE_UNIT * WORKSPACE_UNIT;
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

static bool sizes_fit(const CublasltProblem *p)
{
    const int64_t all[] = {p->m, p->n, p->k, p->batch, p->lda, p->ldb};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] < 1 || all[i] > INT32_MAX)
            return false;
    return p->batch <= BATCH_MOST && p->m > 1 && p->k > 1; /* else it is no product of matrices */
}

/* The product that a node is, if it is one. */
static bool is_product(const MatrixNode *m, Product *out)
{
    OpKind op = m->node->op;
    if (op_table[op].op_class != OP_CLASS_MATRIX)
        return false;
    if (op == OP_matmul || op == OP_linear) {
        *out = product_of(m);
        return true;
    }
    ConvPart part = conv_part(op);
    ConvGeometry q = conv_geometry(m, part);
    *out = conv_product(&q, part);
    return conv_form(&q, part) == CONV_PRODUCT;
}

static bool is_bf16(const Graph *g, ValueId v)
{
    return value_type(g, v)->dtype == DTYPE_BF16;
}

static bool is_half(const Graph *g, const Node *n)
{
    return is_bf16(g, n->in[0]) || is_bf16(g, n->in[1]) || is_bf16(g, n->out[0]);
}

/* How many parts of equal length fill a device; 1: no such product. */
static int64_t parts_of(const MatrixNode *m, const CublasltProblem *p)
{
    int64_t blocks = divide_up(p->m, BLOCK_SIDE) * divide_up(p->n, BLOCK_SIDE);
    int64_t parts = BLOCKS_WANTED / blocks, most = p->k / PART_LEAST;
    if (p->batch > 1 || m->node->n_in > 2 || is_half(m->graph, m->node))
        return 1;
    parts = parts < most ? parts : most;
    while (parts > 1 && p->k % parts)
        parts--;
    return parts > 1 ? parts : 1;
}

/* In cuBLASLt's order: its A is the second factor of ours.  *parts: that its sums have. */
static bool describe(const MatrixNode *m, Product *wanted, CublasltProblem *out, int64_t *parts)
{
    int64_t a, b;
    if (!is_product(m, wanted) || !one_stride(wanted, wanted->a_batch, &a) ||
        !one_stride(wanted, wanted->b_batch, &b))
        return false;
    int64_t batch = batch_of(wanted);
    const Product p = without_batch(wanted, a, b, batch);
    *out = (CublasltProblem){.m = p.n, .n = p.m, .k = p.k, .batch = 1, .align = PRODUCT_ALIGN};
    if (p.n_batch) {
        out->batch = batch;
        out->a_stride = b;
        out->b_stride = a;
    }
    if (!lay_out(p.n, p.k, p.b_n, p.b_k, &out->a_transposed, &out->lda) ||
        !lay_out(p.k, p.m, p.a_k, p.a_row, &out->b_transposed, &out->ldb) || !sizes_fit(out))
        return false;
    *parts = parts_of(m, out);
    out->workspace = workspace_of(out, *parts == 1);
    return true;
}

/* --- parts of long sums --- */

/* Elements from one part to the next: its terms are columns of A and rows of B. */
static void divide_sum(CublasltProblem *p, int64_t parts)
{
    p->k /= parts;
    p->batch = parts;
    p->a_stride = p->a_transposed ? p->k : p->k * p->lda;
    p->b_stride = p->b_transposed ? p->k * p->ldb : p->k;
}

static int64_t parts_bytes(const CublasltProblem *p, int64_t parts)
{
    return parts == 1 ? 0 : divide_up(4 * parts * p->m * p->n, MEMPLAN_ALIGN) * MEMPLAN_ALIGN;
}

static void add_parts(const MatrixNode *m, const CublasltProblem *p, int64_t parts, CallBuf result)
{
    const int64_t results = p->m * p->n;
    const JoinDesc d = {.results = results, .parts = parts, .pitch = results, .scale = 1};
    cuda_join(m->l, "parts of a product", &d, (CallBuf){VALUE_NONE, 0}, result);
}

/* --- nodes --- */

static bool takes(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    Product p;
    CublasltProblem problem;
    int64_t parts;
    (void)ask;
    if (!describe(&(MatrixNode){.graph = g, .node = n}, &p, &problem, &parts))
        return false;
    *use = (LibraryUse){.library = cublaslt_library.name,
                        /* The plan aligns it less than cuBLASLt wants. */
                        .workspace = parts_bytes(&problem, parts) + problem.workspace +
                                     WORKSPACE_UNIT - MEMPLAN_ALIGN,
                        .factors = is_half(g, n) ? DTYPE_BF16 : DTYPE_F32,
                        .bias = value_type(g, n->out[0])->dtype,
                        .missing = missing()};
    return true;
}

static void write_problem(StrBuf *out, const char *symbol, const void *desc)
{
    (void)symbol;
    library_write(out, &cublaslt_lines, desc);
}

static void set_types(const MatrixNode *m, CublasltProblem *p)
{
    const char *precision = m->l->graph->train.precision;
    p->factors_bf16 = is_bf16(m->graph, m->node->in[0]);
    p->result_bf16 = is_bf16(m->graph, m->node->out[0]);
    p->tf32 = !p->factors_bf16 && precision && strcmp(precision, "tf32") == 0;
}

/* What is told of the call; before its sums are divided. */
static void label(const MatrixNode *m, const CublasltProblem *p, const char *what, CallDraft *call)
{
    call->label = pool_printf(m->l->pool, "%s %lldx%lldx%lld", what, (long long)(p->batch * p->n),
                              (long long)p->m, (long long)p->k);
    call->flops = 2 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
    call->bytes = matrix_bytes(m);
}

/* Buffers: the result, the factors in the node's order, the workspace, the bias. */
static void lower(const MatrixNode *m, const char *what)
{
    Product p;
    CublasltProblem *problem = POOL_NEW(m->l->pool, CublasltProblem);
    StrBuf key = strbuf_new(m->l->pool);
    int64_t parts;
    if (!describe(m, &p, problem, &parts))
        BUG("%s is not for cuBLASLt", op_name(m->node->op));
    CallDraft call = matrix_call(m);
    const CallBuf result = call.buf[0];
    matrix_add_operand(m, &call, 0);
    matrix_add_operand(m, &call, 1);
    call.buf[call.n_bufs++] = (CallBuf){VALUE_NONE, parts_bytes(problem, parts)};
    problem->bias = p.bias >= 0 && p.bias < m->node->n_in;
    if (problem->bias)
        matrix_add_operand(m, &call, p.bias);
    set_types(m, problem);
    label(m, problem, what, &call);
    if (parts > 1) {
        call.buf[0] = (CallBuf){VALUE_NONE, 0};
        divide_sum(problem, parts);
    }
    desc_key(&key, cublaslt_library.name, problem, sizeof *problem);
    call.key = key.text;
    call.desc = problem;
    call.text = write_problem;
    call.library = cublaslt_library.name;
    call.n_tasks = 1;
    lower_call(m->l, call);
    if (parts > 1)
        add_parts(m, problem, parts, result);
}

const LibraryCode cublaslt_library = {
    .name = "cublaslt", .takes = takes, .lower = lower, .version = version};
