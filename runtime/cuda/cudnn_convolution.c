/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A convolution is one operation. */
#include "runtime/cuda/cudnn_graph.h"

static int data_type(const CudnnProblem *p)
{
    return p->arithmetic == CUDNN_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/* Dims in cuDNN's order, with the second one contiguous. */
static void *make_tensor(CudnnMaker *m, const CudnnProblem *p, char id, int64_t n, int64_t c,
                         int64_t h, int64_t w)
{
    const int64_t dims[] = {n, c, h, w}, strides[] = {h * w * c, 1, w * c, c};
    void *tensor = cudnn_make(m, CUDNN_TENSOR);
    cudnn_set_integer(m, tensor, CUDNN_TENSOR_UNIQUE_ID, id);
    cudnn_set_integer(m, tensor, CUDNN_TENSOR_BYTE_ALIGNMENT, p->align);
    cudnn_set_enum(m, tensor, CUDNN_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(p));
    cudnn_set(m, tensor, CUDNN_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    cudnn_set(m, tensor, CUDNN_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    cudnn_finalize(m, tensor);
    return tensor;
}

static void *make_convolution(CudnnMaker *m, const CudnnProblem *p)
{
    void *conv = cudnn_make(m, CUDNN_CONVOLUTION);
    cudnn_set_enum(m, conv, CUDNN_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    cudnn_set_enum(m, conv, CUDNN_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
                   CUDNN_CROSS_CORRELATION);
    cudnn_set_integer(m, conv, CUDNN_CONVOLUTION_SPATIAL_DIMS, 2);
    cudnn_set(m, conv, CUDNN_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, p->dilation);
    cudnn_set(m, conv, CUDNN_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, p->stride);
    cudnn_set(m, conv, CUDNN_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, p->pad);
    cudnn_set(m, conv, CUDNN_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, p->pad);
    cudnn_finalize(m, conv);
    return conv;
}

/* By part: the operation, and its attributes. */
static const struct {
    CudnnKind kind;
    int alpha, beta, conv, x, w, y;
} operations[] = {
    [CUDNN_FORWARD] = {CUDNN_OPERATION_FORWARD, CUDNN_FORWARD_ALPHA, CUDNN_FORWARD_BETA,
                       CUDNN_FORWARD_CONV_DESC, CUDNN_FORWARD_X, CUDNN_FORWARD_W, CUDNN_FORWARD_Y},
    [CUDNN_DGRAD] = {CUDNN_OPERATION_DATA, CUDNN_DATA_ALPHA, CUDNN_DATA_BETA, CUDNN_DATA_CONV_DESC,
                     CUDNN_DATA_DX, CUDNN_DATA_W, CUDNN_DATA_DY},
    [CUDNN_WGRAD] = {CUDNN_OPERATION_FILTER, CUDNN_FILTER_ALPHA, CUDNN_FILTER_BETA,
                     CUDNN_FILTER_CONV_DESC, CUDNN_FILTER_X, CUDNN_FILTER_DW, CUDNN_FILTER_DY}};

void cudnn_convolution(CudnnMaker *m, const CudnnProblem *p, CudnnOperations *out)
{
    const float one = 1, zero = 0;
    void *x = make_tensor(m, p, 'x', p->images, p->c, p->h, p->w);
    void *w = make_tensor(m, p, 'w', p->k, p->c / p->groups, p->r, p->s);
    void *y = make_tensor(m, p, 'y', p->images, p->k, p->oh, p->ow);
    void *operation = cudnn_make(m, operations[p->part].kind);
    cudnn_set(m, operation, operations[p->part].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    cudnn_set(m, operation, operations[p->part].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    cudnn_set_object(m, operation, operations[p->part].conv, make_convolution(m, p));
    cudnn_set_object(m, operation, operations[p->part].x, x);
    cudnn_set_object(m, operation, operations[p->part].w, w);
    cudnn_set_object(m, operation, operations[p->part].y, y);
    cudnn_finalize(m, operation);
    out->operation[out->n++] = operation;
}
