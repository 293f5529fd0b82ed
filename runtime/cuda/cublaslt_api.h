/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cuBLASLt, found when it is asked for.  Names, types and constants are those of cublasLt.h, which
 * is not needed here.  Called by cublaslt.c, and for its version by codegen/cuda/library/. */
#ifndef SCRIMP_RUNTIME_CUDA_CUBLASLT_API_H
#define SCRIMP_RUNTIME_CUDA_CUBLASLT_API_H

#include "runtime/status.h"

enum {
    LT_OLDEST = 120100, /* 12.1: older ones take fewer rows than others have elements */

    LT_SUCCESS = 0,
    LT_NOT_INITIALIZED = 1,
    LT_ALLOC_FAILED = 3,
    LT_NOT_SUPPORTED = 15,
    LT_R_32F = 0, /* cudaDataType */
    LT_R_16BF = 14,
    LT_COMPUTE_32F = 68,
    LT_COMPUTE_32F_FAST_TF32 = 77,
    LT_OP_T = 1,
    LT_DESC_TRANSA = 3, /* LT_MATMUL_DESC_... */
    LT_DESC_TRANSB = 4,
    LT_DESC_EPILOGUE = 7,
    LT_DESC_BIAS_POINTER = 8,
    LT_DESC_BIAS_DATA_TYPE = 26,
    LT_EPILOGUE_BIAS = 4,
    LT_LAYOUT_BATCH_COUNT = 5, /* LT_MATRIX_LAYOUT_... */
    LT_LAYOUT_STRIDED_BATCH_OFFSET = 6,
    LT_PREF_MAX_WORKSPACE_BYTES = 1, /* LT_MATMUL_PREF_... */
    LT_PREF_REDUCTION_SCHEME_MASK = 3,
    LT_PREF_MIN_ALIGNMENT_A_BYTES = 5, /* ..._D_BYTES is the last of four */
    LT_PREF_MIN_ALIGNMENT_D_BYTES = 8,
    /* Parts lie in the workspace and are added by another kernel; to add them in one sequence is
     * always allowed. */
    LT_REDUCTION_COMPUTE_TYPE = 2
};

typedef struct CublasltAlgorithm { /* cublasLtMatmulAlgo_t */
    uint64_t data[8];
} CublasltAlgorithm;

typedef struct CublasltHeuristic { /* cublasLtMatmulHeuristicResult_t */
    CublasltAlgorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} CublasltHeuristic;

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
                 void *preference, int wanted, CublasltHeuristic *found, int *n))                  \
    LT_FUNCTION(run, cublasLtMatmul,                                                               \
                (void *handle, void *product, const void *alpha, const void *a, void *a_layout,    \
                 const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,   \
                 void *d, void *d_layout, const CublasltAlgorithm *algorithm, void *workspace,     \
                 size_t workspace_bytes, void *stream))

typedef struct CublasLt {
#define LT_FUNCTION(name, symbol, parameters) int(*name) parameters;
    LT_FUNCTIONS(LT_FUNCTION)
#undef LT_FUNCTION
    int64_t version; /* 130100 for 13.1.0 */
} CublasLt;

/* NULL, with a way out in err, where the library is not there, or too old. */
const CublasLt *cublaslt_api(RtError *err);

#endif
