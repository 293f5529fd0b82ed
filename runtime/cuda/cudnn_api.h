/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cuDNN's backend API, found when it is asked for.  Names, types and constants are those of
 * cudnn_graph.h, which is not needed here.  Called by cudnn_plan.c and cudnn.c, and to plan without
 * a device by codegen/cuda/library/. */
#ifndef SCRIMP_RUNTIME_CUDA_CUDNN_API_H
#define SCRIMP_RUNTIME_CUDA_CUDNN_API_H

#include "runtime/status.h"

enum {
    CUDNN_SUCCESS = 0,
    CUDNN_TOO_MANY = -1,  /* objects or operations: of scrimp's own */
    CUDNN_OLDEST = 91100, /* 9.11: the first that reads a device's properties from a text */
    /* 9.16: the first whose gradient of attention needs no mask where the number of keys is no
     * multiple of 128 (NVIDIA's cudnn-frontend gives older ones such a mask) */
    CUDNN_ATTENTION_OLDEST = 91600,

    CUDNN_DATA_FLOAT = 0,
    CUDNN_DATA_INT32 = 4,
    CUDNN_DATA_BFLOAT16 = 9,
    CUDNN_DATA_BOOLEAN = 11,
    CUDNN_CROSS_CORRELATION = 1,
    CUDNN_REDUCE_ADD = 0, /* CUDNN_REDUCE_TENSOR_... */
    CUDNN_REDUCE_MAX = 3,
    CUDNN_POINTWISE_ADD = 0,
    CUDNN_POINTWISE_MUL = 1,
    CUDNN_POINTWISE_DIV = 6,
    CUDNN_POINTWISE_SUB = 9,
    CUDNN_POINTWISE_EXP = 13,
    CUDNN_POINTWISE_LOG = 15,
    CUDNN_POINTWISE_CMP_GE = 303,
    CUDNN_POINTWISE_GEN_INDEX = 501,
    CUDNN_POINTWISE_BINARY_SELECT = 601,
    CUDNN_HEUR_MODE_FALLBACK = 2,
    CUDNN_HEUR_MODE_A = 3,

    CUDNN_TYPE_HANDLE = 0, /* of attributes */
    CUDNN_TYPE_DATA_TYPE = 1,
    CUDNN_TYPE_BOOLEAN = 2,
    CUDNN_TYPE_INT64 = 3,
    CUDNN_TYPE_FLOAT = 4,
    CUDNN_TYPE_VOID_PTR = 6,
    CUDNN_TYPE_CONVOLUTION_MODE = 7,
    CUDNN_TYPE_HEUR_MODE = 8,
    CUDNN_TYPE_KNOB_TYPE = 9,
    CUDNN_TYPE_NUMERICAL_NOTE = 11,
    CUDNN_TYPE_POINTWISE_MODE = 14,
    CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
    CUDNN_TYPE_REDUCTION_OPERATOR = 18,
    CUDNN_TYPE_BEHAVIOR_NOTE = 19,
    CUDNN_TYPE_CHAR = 24,

    CUDNN_NOTE_TENSOR_CORE = 0, /* CUDNN_NUMERICAL_NOTE_... */
    CUDNN_NOTE_DOWN_CONVERT_INPUTS = 1,
    CUDNN_NOTE_REDUCED_PRECISION_REDUCTION = 2,
    CUDNN_NOTE_NONDETERMINISTIC = 4,
    CUDNN_NOTES_MOST = 32,
    CUDNN_BEHAVIOR_RUNTIME_COMPILATION = 0
};

/* CUDNN_BACKEND_..._DESCRIPTOR */
typedef enum CudnnKind {
    CUDNN_POINTWISE = 0,
    CUDNN_CONVOLUTION = 1,
    CUDNN_ENGINE = 2,
    CUDNN_ENGINECFG = 3,
    CUDNN_ENGINEHEUR = 4,
    CUDNN_EXECUTION_PLAN = 5,
    CUDNN_KNOB_CHOICE = 7,
    CUDNN_OPERATION_FORWARD = 10, /* OPERATION_CONVOLUTION_FORWARD, ..._BACKWARD_FILTER, ..._DATA */
    CUDNN_OPERATION_FILTER = 11,
    CUDNN_OPERATION_DATA = 12,
    CUDNN_OPERATION_POINTWISE = 13,
    CUDNN_OPERATIONGRAPH = 15,
    CUDNN_VARIANT_PACK = 16,
    CUDNN_TENSOR = 17,
    CUDNN_MATMUL = 18,
    CUDNN_OPERATION_MATMUL = 19,
    CUDNN_REDUCTION = 21,
    CUDNN_OPERATION_REDUCTION = 22,
    CUDNN_OPERATION_RESHAPE = 31,
    CUDNN_DEVICEPROP = 38
} CudnnKind;

enum { /* CUDNN_ATTR_... */
       CUDNN_POINTWISE_MODE = 0,
       CUDNN_POINTWISE_MATH_PREC = 1,
       CUDNN_POINTWISE_AXIS = 9,
       CUDNN_CONVOLUTION_COMP_TYPE = 100,
       CUDNN_CONVOLUTION_CONV_MODE = 101,
       CUDNN_CONVOLUTION_DILATIONS = 102,
       CUDNN_CONVOLUTION_FILTER_STRIDES = 103,
       CUDNN_CONVOLUTION_POST_PADDINGS = 104,
       CUDNN_CONVOLUTION_PRE_PADDINGS = 105,
       CUDNN_CONVOLUTION_SPATIAL_DIMS = 106,
       CUDNN_ENGINEHEUR_MODE = 200,
       CUDNN_ENGINEHEUR_OPERATION_GRAPH = 201,
       CUDNN_ENGINEHEUR_RESULTS = 202,
       CUDNN_ENGINEHEUR_DEVICEPROP = 204,
       CUDNN_ENGINECFG_ENGINE = 300,
       CUDNN_ENGINECFG_KNOB_CHOICES = 302,
       CUDNN_ENGINECFG_WORKSPACE_SIZE = 303,
       CUDNN_EXECUTION_PLAN_HANDLE = 400,
       CUDNN_EXECUTION_PLAN_ENGINE_CONFIG = 401,
       CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
       CUDNN_EXECUTION_PLAN_DEVICEPROP = 407,
       CUDNN_KNOB_CHOICE_KNOB_TYPE = 600,
       CUDNN_KNOB_CHOICE_KNOB_VALUE = 601,
       CUDNN_FORWARD_ALPHA = 700, /* OPERATION_CONVOLUTION_FORWARD_... */
       CUDNN_FORWARD_BETA = 701,
       CUDNN_FORWARD_CONV_DESC = 702,
       CUDNN_FORWARD_W = 703,
       CUDNN_FORWARD_X = 704,
       CUDNN_FORWARD_Y = 705,
       CUDNN_DATA_ALPHA = 706, /* OPERATION_CONVOLUTION_BWD_DATA_... */
       CUDNN_DATA_BETA = 707,
       CUDNN_DATA_CONV_DESC = 708,
       CUDNN_DATA_W = 709,
       CUDNN_DATA_DX = 710,
       CUDNN_DATA_DY = 711,
       CUDNN_FILTER_ALPHA = 712, /* OPERATION_CONVOLUTION_BWD_FILTER_... */
       CUDNN_FILTER_BETA = 713,
       CUDNN_FILTER_CONV_DESC = 714,
       CUDNN_FILTER_DW = 715,
       CUDNN_FILTER_X = 716,
       CUDNN_FILTER_DY = 717,
       CUDNN_POINTWISE_PW_DESCRIPTOR = 750, /* OPERATION_POINTWISE_... */
       CUDNN_POINTWISE_X = 751,
       CUDNN_POINTWISE_B = 752,
       CUDNN_POINTWISE_Y = 753,
       CUDNN_POINTWISE_T = 758,
       CUDNN_OPERATIONGRAPH_HANDLE = 800,
       CUDNN_OPERATIONGRAPH_OPS = 801,
       CUDNN_TENSOR_BYTE_ALIGNMENT = 900,
       CUDNN_TENSOR_DATA_TYPE = 901,
       CUDNN_TENSOR_DIMENSIONS = 902,
       CUDNN_TENSOR_STRIDES = 903,
       CUDNN_TENSOR_UNIQUE_ID = 906,
       CUDNN_TENSOR_IS_VIRTUAL = 907,
       CUDNN_TENSOR_IS_BY_VALUE = 908,
       CUDNN_VARIANT_PACK_UNIQUE_IDS = 1000,
       CUDNN_VARIANT_PACK_DATA_POINTERS = 1001,
       CUDNN_VARIANT_PACK_WORKSPACE = 1003,
       CUDNN_ENGINE_OPERATION_GRAPH = 1300,
       CUDNN_ENGINE_GLOBAL_INDEX = 1301,
       CUDNN_ENGINE_NUMERICAL_NOTE = 1303,
       CUDNN_ENGINE_BEHAVIOR_NOTE = 1305,
       CUDNN_ENGINE_DEVICEPROP = 1307,
       CUDNN_MATMUL_COMP_TYPE = 1500,
       CUDNN_MATMUL_A = 1520, /* OPERATION_MATMUL_... */
       CUDNN_MATMUL_B = 1521,
       CUDNN_MATMUL_C = 1522,
       CUDNN_MATMUL_DESC = 1523,
       CUDNN_REDUCTION_OPERATOR = 1600,
       CUDNN_REDUCTION_COMP_TYPE = 1601,
       CUDNN_REDUCTION_X = 1610, /* OPERATION_REDUCTION_... */
       CUDNN_REDUCTION_Y = 1611,
       CUDNN_REDUCTION_DESC = 1612,
       CUDNN_RESHAPE_X = 2200, /* OPERATION_RESHAPE_... */
       CUDNN_RESHAPE_Y = 2201,
       CUDNN_DEVICEPROP_JSON_REPRESENTATION = 2702
};

/* CUDNN_FUNCTION(name in this table, name in the library, parameters); all return a status. */
#define CUDNN_FUNCTIONS(CUDNN_FUNCTION)                                                            \
    CUDNN_FUNCTION(create, cudnnCreate, (void **handle))                                           \
    CUDNN_FUNCTION(destroy, cudnnDestroy, (void *handle))                                          \
    CUDNN_FUNCTION(set_stream, cudnnSetStream, (void *handle, void *stream))                       \
    CUDNN_FUNCTION(object_create, cudnnBackendCreateDescriptor, (int kind, void **object))         \
    CUDNN_FUNCTION(object_destroy, cudnnBackendDestroyDescriptor, (void *object))                  \
    CUDNN_FUNCTION(object_finalize, cudnnBackendFinalize, (void *object))                          \
    CUDNN_FUNCTION(object_set, cudnnBackendSetAttribute,                                           \
                   (void *object, int attribute, int type, int64_t n, const void *elements))       \
    CUDNN_FUNCTION(                                                                                \
        object_get, cudnnBackendGetAttribute,                                                      \
        (void *object, int attribute, int type, int64_t wanted, int64_t *n, void *elements))       \
    CUDNN_FUNCTION(execute, cudnnBackendExecute, (void *handle, void *plan, void *pack))

typedef struct Cudnn {
#define CUDNN_FUNCTION(name, symbol, parameters) int(*name) parameters;
    CUDNN_FUNCTIONS(CUDNN_FUNCTION)
#undef CUDNN_FUNCTION
    int64_t version; /* 91900 for 9.19.0 */
} Cudnn;

/* NULL, with a way out in err, where the library is not there, or too old. */
const Cudnn *cudnn_api(RtError *err);

#endif
