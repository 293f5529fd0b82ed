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

/* --- convolutions by cuDNN --- */

enum { CUDNN_FORWARD, CUDNN_DGRAD, CUDNN_WGRAD }; /* a part */
/* Types of all three tensors, and what products are computed in: sums are f32. */
enum { CUDNN_F32, CUDNN_TF32, CUDNN_BF16 };

/* The forward convolution that a part belongs to. */
typedef struct CudnnProblem {
    int64_t part, arithmetic;
    int64_t images, h, w, c, oh, ow, k, r, s, groups;
    int64_t stride[2], pad[2], dilation[2];
    int64_t align;     /* of all addresses but the workspace's */
    int64_t workspace; /* bytes that it may use */
} CudnnProblem;

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
extern const PlanLines cudnn_lines, cudnn_choice_lines, cudnn_knob_lines;

/* A plan is a problem, a choice, which has no workspace, and its knobs. */
bool cuda_plan_read_cudnn(const char *plan, int64_t bytes, CudnnProblem *p, CudnnChoice *choice,
                          RtError *err);

#endif
