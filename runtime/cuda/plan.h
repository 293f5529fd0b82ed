/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step asks of NVIDIA's libraries: problems, and a plan's lines "key value" for them, which
 * codegen/cuda/library/ writes and cublaslt.c and cudnn.c read. */
#ifndef SCRIMP_RUNTIME_CUDA_PLAN_H
#define SCRIMP_RUNTIME_CUDA_PLAN_H

#include "runtime/status.h"

/* The lines of a record, which is a struct of int64_t, in their order. */
typedef struct PlanField {
    const char *key;
    size_t at; /* of its number in the record */
} PlanField;
typedef struct PlanLines {
    const PlanField *field;
    int n;
} PlanLines;

/* Reads a record; where the next line begins.  NULL: at is NULL, or there are other lines. */
const char *cuda_plan_part(const char *at, const char *end, const PlanLines *lines, void *record);

/* --- products by cuBLASLt --- */

/* Column by column, as it sees them: [m, k] times [k, n]. */
typedef struct CublasltProblem {
    int64_t m, n, k, batch;
    int64_t a_transposed, lda, a_stride; /* strides: from one of the batch to the next */
    int64_t b_transposed, ldb, b_stride;
    int64_t factors_bf16, result_bf16, tf32, bias;
    int64_t align;     /* of all addresses but the workspace's */
    int64_t workspace; /* bytes that it may use */
} CublasltProblem;
enum { CUBLASLT_WORKSPACE_ALIGN = 256 };
extern const PlanLines cublaslt_lines;

/* A plan is a problem. */
bool cuda_plan_read_cublaslt(const char *plan, int64_t bytes, CublasltProblem *p, RtError *err);

/* --- convolutions and attention by cuDNN --- */

/* A part of a convolution, or of attention. */
enum {
    CUDNN_FORWARD,
    CUDNN_DGRAD,
    CUDNN_WGRAD,
    CUDNN_ATTENTION,
    CUDNN_ATTENTION_GRAD,
    CUDNN_PARTS
};
/* Types of the tensors, and what products are computed in: sums are f32.  Attention is bf16. */
enum { CUDNN_F32, CUDNN_TF32, CUDNN_BF16 };

/* Tensors of attention and its gradient: q, k, v and the result, and the gradients of the result,
 * q, k, v. */
enum {
    CUDNN_Q,
    CUDNN_K,
    CUDNN_V,
    CUDNN_O,
    CUDNN_FORWARD_TENSORS,
    CUDNN_DO = CUDNN_FORWARD_TENSORS,
    CUDNN_DQ,
    CUDNN_DK,
    CUDNN_DV,
    CUDNN_TENSORS
};
/* From one of the batch, a head, a row to the next, in elements; those of a row are dense. */
typedef struct CudnnStrides {
    int64_t batch, head, row;
} CudnnStrides;

typedef struct CudnnProblem {
    int64_t part, arithmetic;
    /* the forward convolution that a part belongs to */
    int64_t images, h, w, c, oh, ow, k, r, s, groups;
    int64_t stride[2], pad[2], dilation[2];
    /* attention: q [batch, heads, rows, width], k and v for so many keys, which may lie anyhow */
    int64_t batch, heads, rows, keys, width, value_width;
    CudnnStrides at[CUDNN_TENSORS];
    int64_t causal, scale; /* a flag, the bits of a float */
    int64_t align;         /* of all addresses but the workspace's */
    int64_t workspace;     /* bytes that it may use */
} CudnnProblem;

static inline bool cudnn_is_attention(const CudnnProblem *p)
{
    return p->part == CUDNN_ATTENTION || p->part == CUDNN_ATTENTION_GRAD;
}

enum { CUDNN_KNOBS_MOST = 48 };
typedef struct CudnnKnob {
    int64_t type, value;
} CudnnKnob;

typedef struct CudnnChoice {
    int64_t version;           /* of the library that chose */
    int64_t engine, workspace; /* bytes that it uses, of CUDNN_WORKSPACE_ALIGN */
    int64_t n_knobs;
    CudnnKnob knob[CUDNN_KNOBS_MOST];
} CudnnChoice;

enum { CUDNN_WORKSPACE_ALIGN = 256 };
extern const PlanLines cudnn_choice_lines, cudnn_knob_lines;
/* Of a problem of this part. */
const PlanLines *cudnn_lines(int64_t part);
/* Reads a problem; where the next line begins, or NULL. */
const char *cudnn_read_problem(const char *at, const char *end, CudnnProblem *out);

/* A plan is a problem, a choice, which has no workspace, and its knobs. */
bool cuda_plan_read_cudnn(const char *plan, int64_t bytes, CudnnProblem *p, CudnnChoice *choice,
                          RtError *err);

#endif
