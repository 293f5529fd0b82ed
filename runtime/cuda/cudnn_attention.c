/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention in the operations that cuDNN's fused engines recognise, in the order and with the types
 * and strides that NVIDIA's cudnn-frontend gives them: the graph is a pattern, not a program.
 *
 * The gradient takes the form in which the scores' gradients are a tensor of the library's
 * workspace.  In the other form, dq is summed by atomic additions in any order. */
#include "runtime/cuda/cudnn_graph.h"

#include <math.h>
#include <string.h>

typedef struct Builder {
    CudnnMaker *m;
    const CudnnProblem *p;
    CudnnOperations *out;
    int64_t next_virtual; /* name of the next tensor without an address */
} Builder;

enum { FIRST_VIRTUAL = 1000 }; /* behind all letters */

/* --- tensors --- */

typedef enum Where { REAL, VIRTUAL, BY_VALUE } Where;

static void *tensor(Builder *b, int64_t id, int type, Where where, const int64_t *dims,
                    const int64_t *strides)
{
    void *t = cudnn_make(b->m, CUDNN_TENSOR);
    cudnn_set_integer(b->m, t, CUDNN_TENSOR_UNIQUE_ID, id);
    cudnn_set_integer(b->m, t, CUDNN_TENSOR_BYTE_ALIGNMENT, b->p->align);
    cudnn_set_enum(b->m, t, CUDNN_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    cudnn_set(b->m, t, CUDNN_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    cudnn_set(b->m, t, CUDNN_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    if (where == VIRTUAL)
        cudnn_set_true(b->m, t, CUDNN_TENSOR_IS_VIRTUAL);
    if (where == BY_VALUE)
        cudnn_set_true(b->m, t, CUDNN_TENSOR_IS_BY_VALUE);
    cudnn_finalize(b->m, t);
    return t;
}

static void *scalar(Builder *b, char id)
{
    const int64_t ones[] = {1, 1, 1, 1};
    return tensor(b, id, CUDNN_DATA_FLOAT, BY_VALUE, ones, ones);
}

/* [batch, heads, rows, columns], dense. */
static void *dense(Builder *b, int64_t id, int type, Where where, int64_t rows, int64_t columns)
{
    const int64_t heads = b->p->heads;
    const int64_t dims[] = {b->p->batch, heads, rows, columns};
    const int64_t strides[] = {heads * rows * columns, rows * columns, columns, 1};
    return tensor(b, id, type, where, dims, strides);
}

/* q, k, v and what has their shapes: rows of a head, as they lie in the tensor `at`. */
static void *rows_of(Builder *b, int64_t id, Where where, int at, int64_t rows, int64_t width)
{
    const CudnnStrides *s = &b->p->at[at];
    const int64_t dims[] = {b->p->batch, b->p->heads, rows, width};
    const int64_t strides[] = {s->batch, s->head, s->row, 1};
    return tensor(b, id, CUDNN_DATA_BFLOAT16, where, dims, strides);
}

/* The same as columns. */
static void *columns_of(Builder *b, char id, int at, int64_t rows, int64_t width)
{
    const CudnnStrides *s = &b->p->at[at];
    const int64_t dims[] = {b->p->batch, b->p->heads, width, rows};
    const int64_t strides[] = {s->batch, s->head, 1, s->row};
    return tensor(b, id, CUDNN_DATA_BFLOAT16, REAL, dims, strides);
}

static void *scores(Builder *b, int type)
{
    return dense(b, b->next_virtual++, type, VIRTUAL, b->p->rows, b->p->keys);
}

static void *row_numbers(Builder *b, int64_t id, Where where)
{
    return dense(b, id, CUDNN_DATA_FLOAT, where, b->p->rows, 1);
}

static void *virtual_rows(Builder *b)
{
    return row_numbers(b, b->next_virtual++, VIRTUAL);
}

/* --- operations --- */

static void add(Builder *b, void *operation)
{
    cudnn_finalize(b->m, operation);
    if (b->out->n < CUDNN_OPERATIONS_MOST)
        b->out->operation[b->out->n++] = operation;
    else
        b->m->status = CUDNN_TOO_MANY;
}

static void matmul(Builder *b, void *left, void *right, void *result)
{
    void *how = cudnn_make(b->m, CUDNN_MATMUL);
    cudnn_set_enum(b->m, how, CUDNN_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    cudnn_finalize(b->m, how);
    void *operation = cudnn_make(b->m, CUDNN_OPERATION_MATMUL);
    cudnn_set_object(b->m, operation, CUDNN_MATMUL_A, left);
    cudnn_set_object(b->m, operation, CUDNN_MATMUL_B, right);
    cudnn_set_object(b->m, operation, CUDNN_MATMUL_C, result);
    cudnn_set_object(b->m, operation, CUDNN_MATMUL_DESC, how);
    add(b, operation);
}

/* Along the last dim. */
static void reduce(Builder *b, int operator_, void *from, void *to)
{
    void *how = cudnn_make(b->m, CUDNN_REDUCTION);
    cudnn_set_enum(b->m, how, CUDNN_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR, operator_);
    cudnn_set_enum(b->m, how, CUDNN_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    cudnn_finalize(b->m, how);
    void *operation = cudnn_make(b->m, CUDNN_OPERATION_REDUCTION);
    cudnn_set_object(b->m, operation, CUDNN_REDUCTION_X, from);
    cudnn_set_object(b->m, operation, CUDNN_REDUCTION_Y, to);
    cudnn_set_object(b->m, operation, CUDNN_REDUCTION_DESC, how);
    add(b, operation);
}

static void reshape(Builder *b, void *from, void *to)
{
    void *operation = cudnn_make(b->m, CUDNN_OPERATION_RESHAPE);
    cudnn_set_object(b->m, operation, CUDNN_RESHAPE_X, from);
    cudnn_set_object(b->m, operation, CUDNN_RESHAPE_Y, to);
    add(b, operation);
}

typedef struct Pointwise {
    int mode, type; /* of the arithmetic */
    int axis;       /* of GEN_INDEX */
} Pointwise;

/* y = mode(x, other), other where `which` says so; NULL: there is none. */
static void *pointwise(Builder *b, Pointwise w, void *x, void *other, void *which, void *y)
{
    void *how = cudnn_make(b->m, CUDNN_POINTWISE);
    cudnn_set_enum(b->m, how, CUDNN_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, w.mode);
    cudnn_set_enum(b->m, how, CUDNN_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, w.type);
    if (w.mode == CUDNN_POINTWISE_GEN_INDEX)
        cudnn_set_integer(b->m, how, CUDNN_POINTWISE_AXIS, w.axis);
    cudnn_finalize(b->m, how);
    void *operation = cudnn_make(b->m, CUDNN_OPERATION_POINTWISE);
    cudnn_set_object(b->m, operation, CUDNN_POINTWISE_PW_DESCRIPTOR, how);
    cudnn_set_object(b->m, operation, CUDNN_POINTWISE_X, x);
    if (other)
        cudnn_set_object(b->m, operation, CUDNN_POINTWISE_B, other);
    if (which)
        cudnn_set_object(b->m, operation, CUDNN_POINTWISE_T, which);
    cudnn_set_object(b->m, operation, CUDNN_POINTWISE_Y, y);
    add(b, operation);
    return y;
}

/* In f32; y: the result. */
static void *apply(Builder *b, int mode, void *x, void *other, void *y)
{
    return pointwise(b, (Pointwise){mode, CUDNN_DATA_FLOAT, 0}, x, other, NULL, y);
}

static void *indices(Builder *b, void *of, int axis)
{
    return pointwise(b, (Pointwise){CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis}, of, NULL,
                     NULL, scores(b, CUDNN_DATA_INT32));
}

/* Row t has the keys 0..t; 'm', minus infinity, stands for the others. */
static void *masked(Builder *b, void *x)
{
    if (!b->p->causal)
        return x;
    void *row = indices(b, x, 2), *column = indices(b, x, 3);
    void *seen = pointwise(b, (Pointwise){CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, 0}, row,
                           column, NULL, scores(b, CUDNN_DATA_BOOLEAN));
    return pointwise(b, (Pointwise){CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, 0}, x,
                     scalar(b, 'm'), seen, scores(b, CUDNN_DATA_FLOAT));
}

/* q k^T * scale */
static void *scaled_scores(Builder *b, void *q, void *k, void *scale)
{
    void *product = scores(b, CUDNN_DATA_FLOAT);
    matmul(b, q, k, product);
    return apply(b, CUDNN_POINTWISE_MUL, product, scale, scores(b, CUDNN_DATA_FLOAT));
}

/* --- forward --- */

/* 's': the largest score of a row and the logarithm of the sum of its exponentials. */
static void *softmax(Builder *b, void *x)
{
    void *most = virtual_rows(b), *sum = virtual_rows(b);
    reduce(b, CUDNN_REDUCE_MAX, x, most);
    void *less = apply(b, CUDNN_POINTWISE_SUB, x, most, scores(b, CUDNN_DATA_FLOAT));
    void *power = apply(b, CUDNN_POINTWISE_EXP, less, NULL, scores(b, CUDNN_DATA_FLOAT));
    reduce(b, CUDNN_REDUCE_ADD, power, sum);
    void *log = apply(b, CUDNN_POINTWISE_LOG, sum, NULL, virtual_rows(b));
    apply(b, CUDNN_POINTWISE_ADD, most, log, row_numbers(b, 's', REAL));
    return apply(b, CUDNN_POINTWISE_DIV, power, sum, scores(b, CUDNN_DATA_BFLOAT16));
}

static void add_forward(Builder *b)
{
    const CudnnProblem *p = b->p;
    void *q = rows_of(b, 'q', REAL, CUDNN_Q, p->rows, p->width);
    void *k = columns_of(b, 'k', CUDNN_K, p->keys, p->width);
    void *x = masked(b, scaled_scores(b, q, k, scalar(b, 'c')));
    void *probabilities = softmax(b, x);
    matmul(b, probabilities, rows_of(b, 'v', REAL, CUDNN_V, p->keys, p->value_width),
           rows_of(b, 'o', REAL, CUDNN_O, p->rows, p->value_width));
}

/* --- gradient --- */

/* 'd': the sum of a row's gradients times its results. */
static void *row_sums(Builder *b, void *dout)
{
    const CudnnProblem *p = b->p;
    void *products =
        dense(b, b->next_virtual++, CUDNN_DATA_FLOAT, VIRTUAL, p->rows, p->value_width);
    void *sum = virtual_rows(b);
    apply(b, CUDNN_POINTWISE_MUL, dout, rows_of(b, 'o', REAL, CUDNN_O, p->rows, p->value_width),
          products);
    reduce(b, CUDNN_REDUCE_ADD, products, sum);
    return apply(b, CUDNN_POINTWISE_MUL, sum, scalar(b, '1'), row_numbers(b, 'd', REAL));
}

/* Scores as [keys, rows], in bf16. */
static void *turned_scores(Builder *b, void *from)
{
    const CudnnProblem *p = b->p;
    const int64_t dims[] = {p->batch, p->heads, p->keys, p->rows}, head = p->rows * p->keys;
    const int64_t strides[] = {p->heads * head, head, 1, p->keys};
    void *to = tensor(b, b->next_virtual++, CUDNN_DATA_BFLOAT16, VIRTUAL, dims, strides);
    reshape(b, from, to);
    return to;
}

/* The gradient of the scores before they were scaled. */
static void *score_gradients(Builder *b, void *dout, void *probabilities, void *sums, void *scale)
{
    const CudnnProblem *p = b->p;
    void *dp = scores(b, CUDNN_DATA_FLOAT);
    matmul(b, dout, columns_of(b, 'v', CUDNN_V, p->keys, p->value_width), dp);
    void *less = apply(b, CUDNN_POINTWISE_SUB, dp, sums, scores(b, CUDNN_DATA_FLOAT));
    void *ds = apply(b, CUDNN_POINTWISE_MUL, less, probabilities, scores(b, CUDNN_DATA_FLOAT));
    return apply(b, CUDNN_POINTWISE_MUL, ds, scale, scores(b, CUDNN_DATA_FLOAT));
}

static void add_gradient(Builder *b)
{
    const CudnnProblem *p = b->p;
    void *dout = rows_of(b, 'g', REAL, CUDNN_DO, p->rows, p->value_width), *scale = scalar(b, 'c');
    void *q = rows_of(b, 'q', REAL, CUDNN_Q, p->rows, p->width);
    void *k = columns_of(b, 'k', CUDNN_K, p->keys, p->width);
    void *sums = row_sums(b, dout);
    void *x = apply(b, CUDNN_POINTWISE_SUB, scaled_scores(b, q, k, scale),
                    row_numbers(b, 's', REAL), scores(b, CUDNN_DATA_FLOAT));
    void *probabilities =
        apply(b, CUDNN_POINTWISE_EXP, masked(b, x), NULL, scores(b, CUDNN_DATA_FLOAT));
    matmul(b, turned_scores(b, probabilities), dout,
           rows_of(b, 'V', REAL, CUDNN_DV, p->keys, p->value_width));
    void *ds = score_gradients(b, dout, probabilities, sums, scale);
    matmul(b, turned_scores(b, ds), q, rows_of(b, 'K', REAL, CUDNN_DK, p->keys, p->width));
    void *rows_of_k = rows_of(b, b->next_virtual++, VIRTUAL, CUDNN_K, p->keys, p->width);
    reshape(b, k, rows_of_k);
    matmul(b, ds, rows_of_k, rows_of(b, 'Q', REAL, CUDNN_DQ, p->rows, p->width));
}

void cudnn_attention(CudnnMaker *m, const CudnnProblem *p, CudnnOperations *out)
{
    Builder b = {.m = m, .p = p, .out = out, .next_virtual = FIRST_VIRTUAL};
    if (p->part == CUDNN_ATTENTION)
        add_forward(&b);
    else
        add_gradient(&b);
}

static void add_scalar(CudnnScalars *s, char id, float value)
{
    s->id[s->n] = id;
    s->value[s->n++] = value;
}

CudnnScalars cudnn_attention_scalars(const CudnnProblem *p)
{
    CudnnScalars s = {.n = 0};
    uint32_t bits = (uint32_t)p->scale;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    add_scalar(&s, 'c', scale);
    if (p->causal)
        add_scalar(&s, 'm', -INFINITY);
    if (p->part == CUDNN_ATTENTION_GRAD)
        add_scalar(&s, '1', 1);
    return s;
}
