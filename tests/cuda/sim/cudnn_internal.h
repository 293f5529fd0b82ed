/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of the simulated cuDNN share. */
#ifndef SCRIMP_TESTS_CUDA_SIM_CUDNN_INTERNAL_H
#define SCRIMP_TESTS_CUDA_SIM_CUDNN_INTERNAL_H

#include "runtime/cuda/cudnn_plan.h"

#include <stddef.h>

enum {
    BAD_PARAM = 2000,
    BAD_PARAM_NULL_POINTER = 2002,
    BAD_PARAM_NOT_FINALIZED = 2004,
    BAD_PARAM_SHAPE_MISMATCH = 2008,
    BAD_PARAM_ATTRIBUTE_TYPE = 2010,
    NOT_SUPPORTED = 3000,
    NOT_INITIALIZED = 1001,
    ALLOCATION_FAILED = 4003,
    EXECUTION_FAILED = 5000
};

/* An attribute that was set, in the library's own types. */
typedef struct Value {
    int attribute, type;
    int64_t n;
    void *elements;
} Value;

enum { VALUES_MOST = 10, IDS_MOST = 16 };

/* Attention as a graph of operations has it: q [batch, heads, rows, width]; from one of the batch,
 * a head, a row to the next, and the names of the tensors, by the letters of cudnn_attention.c. */
typedef struct Attention {
    int64_t batch, heads, rows, keys, width, value_width;
    int causal;
    int64_t at[128][3];
    int64_t id[128];
} Attention;

/* A convolution as the operation has it. */
typedef struct Operation {
    int64_t part, bf16;
    int64_t images, c, h, w, k, group_c, r, s, oh, ow;
    int64_t stride[2], pad[2], dilation[2];
    int64_t align, id[3]; /* of x, w and y */
    Attention attention;  /* where the part is of that */
} Operation;

typedef struct Job Job;

typedef struct Object {
    int kind, final;
    Value value[VALUES_MOST];
    int n_values;
    Operation operation; /* of what has one: from operations up to plans */
    int64_t multiprocessors;
    int64_t engine, knob, workspace; /* of configurations and plans */
    int on_device;                   /* a plan of a handle */
    Job *jobs;                       /* of a plan: what it was asked to run */
} Object;

/* A line on standard error; returns the status. */
int cudnn_refuse(int status, const char *why);
/* The value of an attribute, or NULL. */
const Value *cudnn_value(const Object *o, int attribute);
/* Its elements; only for what is set. */
const void *cudnn_elements(const Object *o, int attribute);

/* --- cudnn_engines.c --- */

/* Fills the object in when all that it needs is set: CUDNN_SUCCESS, or why not. */
int cudnn_complete(Object *o);
int cudnn_results(const Object *heuristic, int64_t wanted, int64_t *n, void *const *configs);
/* Numerical and behavior notes. */
int cudnn_notes(const Object *engine, int attribute, int64_t wanted, int64_t *n, int *notes);
int64_t cudnn_multiprocessors(void); /* of the device */

/* --- cudnn_attention.c --- */

/* Recognises the operations of a finished graph. */
int cudnn_match_attention(const Object *const *operation, int64_t n, Operation *out);
/* Bytes of the scores, as the gradient's kernels keep them. */
int64_t cudnn_scores_bytes(const Attention *a);
/* Computes it; address: by letter, of the host's memory for what is given by value. */
void cudnn_run_attention(const Operation *q, char *const *address, const float *scalar);
/* The letters of what must have an address, in the device's memory or in the host's. */
const char *cudnn_attention_tensors(const Operation *q);
const char *cudnn_attention_scalars_of(const Operation *q);

/* --- cudnn_run.c --- */

float cudnn_from_bf16(const char *at);
void cudnn_to_bf16(char *at, double value);
double cudnn_round_bf16(double value);

/* What a plan is run with. */
typedef struct Pack {
    int64_t n;
    const int64_t *id;
    char *const *address;
    char *workspace;
} Pack;
int cudnn_run(Object *plan, const Pack *pack, void *stream);
void cudnn_forget(Object *plan);

#endif
