/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A simulated libcudnn.so.9: the objects of the backend API that convolutions and attention need,
 * with the attributes that each may and must have.  What its documentation does not allow is an
 * error, with a line on standard error.
 *
 * SCRIMP_SIM_CUDNN: its version (91100: 9.11.0); `none`: it knows no engine; `crash`: it ends the
 * process that asks for one.
 * SCRIMP_SIM_CUDNN_SMS: the number of the device's multiprocessors (132). */
#include "cudnn_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct Handle {
    void *stream;
    int alive;
} Handle;

int cudnn_refuse(int status, const char *why)
{
    fprintf(stderr, "simulator: cuDNN: %s\n", why);
    return status;
}

EXPORT size_t cudnnGetVersion(void)
{
    const char *text = getenv("SCRIMP_SIM_CUDNN");
    return text && *text <= '9' ? (size_t)strtoull(text, NULL, 10) : 99900;
}

EXPORT int cudnnCreate(void **handle)
{
    const char *full = getenv("SCRIMP_SIM_FULL");
    Handle *h = full && strcmp(full, __func__) == 0 ? NULL : calloc(1, sizeof *h);
    if (!h)
        return NOT_INITIALIZED; /* as the real one says of a full device */
    h->alive = 1;
    *handle = h;
    return CUDNN_SUCCESS;
}

EXPORT int cudnnDestroy(void *handle)
{
    free(handle);
    return CUDNN_SUCCESS;
}

EXPORT int cudnnSetStream(void *handle, void *stream)
{
    ((Handle *)handle)->stream = stream;
    return CUDNN_SUCCESS;
}

/* --- attributes --- */

typedef struct Rule {
    int kind, attribute, type;
    int64_t least, most; /* elements */
    int must;
    int of; /* kind of the objects that it names; 0: none, -1: an operation */
} Rule;

#define OBJECTS CUDNN_TYPE_BACKEND_DESCRIPTOR
#define INT64   CUDNN_TYPE_INT64
#define OPERATION_RULES(kind, alpha, conv, first, second, third)                                   \
    {kind, alpha, CUDNN_TYPE_FLOAT, 1, 1, 1, 0},                                                   \
        {kind, (alpha) + 1, CUDNN_TYPE_FLOAT, 1, 1, 1, 0},                                         \
        {kind, conv, OBJECTS, 1, 1, 1, CUDNN_CONVOLUTION},                                         \
        {kind, first, OBJECTS, 1, 1, 1, CUDNN_TENSOR},                                             \
        {kind, second, OBJECTS, 1, 1, 1, CUDNN_TENSOR},                                            \
    {                                                                                              \
        kind, third, OBJECTS, 1, 1, 1, CUDNN_TENSOR                                                \
    }

static const Rule rules[] = {
    {CUDNN_TENSOR, CUDNN_TENSOR_BYTE_ALIGNMENT, INT64, 1, 1, 1, 0},
    {CUDNN_TENSOR, CUDNN_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, 1, 0},
    {CUDNN_TENSOR, CUDNN_TENSOR_DIMENSIONS, INT64, 4, 4, 1, 0},
    {CUDNN_TENSOR, CUDNN_TENSOR_STRIDES, INT64, 4, 4, 1, 0},
    {CUDNN_TENSOR, CUDNN_TENSOR_UNIQUE_ID, INT64, 1, 1, 1, 0},
    {CUDNN_TENSOR, CUDNN_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, 0, 0},
    {CUDNN_TENSOR, CUDNN_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1, 0, 0},
    {CUDNN_MATMUL, CUDNN_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, 1, 0},
    {CUDNN_OPERATION_MATMUL, CUDNN_MATMUL_A, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_OPERATION_MATMUL, CUDNN_MATMUL_B, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_OPERATION_MATMUL, CUDNN_MATMUL_C, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_OPERATION_MATMUL, CUDNN_MATMUL_DESC, OBJECTS, 1, 1, 1, CUDNN_MATMUL},
    {CUDNN_REDUCTION, CUDNN_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR, 1, 1, 1, 0},
    {CUDNN_REDUCTION, CUDNN_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, 1, 0},
    {CUDNN_OPERATION_REDUCTION, CUDNN_REDUCTION_X, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_OPERATION_REDUCTION, CUDNN_REDUCTION_Y, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_OPERATION_REDUCTION, CUDNN_REDUCTION_DESC, OBJECTS, 1, 1, 1, CUDNN_REDUCTION},
    {CUDNN_POINTWISE, CUDNN_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1, 1, 0},
    {CUDNN_POINTWISE, CUDNN_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1, 1, 0},
    {CUDNN_POINTWISE, CUDNN_POINTWISE_AXIS, INT64, 1, 1, 0, 0},
    {CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE_PW_DESCRIPTOR, OBJECTS, 1, 1, 1, CUDNN_POINTWISE},
    {CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE_X, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE_B, OBJECTS, 1, 1, 0, CUDNN_TENSOR},
    {CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE_T, OBJECTS, 1, 1, 0, CUDNN_TENSOR},
    {CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE_Y, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_OPERATION_RESHAPE, CUDNN_RESHAPE_X, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_OPERATION_RESHAPE, CUDNN_RESHAPE_Y, OBJECTS, 1, 1, 1, CUDNN_TENSOR},
    {CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, 1, 0},
    {CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, 1, 0},
    {CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_SPATIAL_DIMS, INT64, 1, 1, 1, 0},
    {CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_DILATIONS, INT64, 2, 2, 1, 0},
    {CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_FILTER_STRIDES, INT64, 2, 2, 1, 0},
    {CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_PRE_PADDINGS, INT64, 2, 2, 1, 0},
    {CUDNN_CONVOLUTION, CUDNN_CONVOLUTION_POST_PADDINGS, INT64, 2, 2, 1, 0},
    OPERATION_RULES(CUDNN_OPERATION_FORWARD, CUDNN_FORWARD_ALPHA, CUDNN_FORWARD_CONV_DESC,
                    CUDNN_FORWARD_X, CUDNN_FORWARD_W, CUDNN_FORWARD_Y),
    OPERATION_RULES(CUDNN_OPERATION_DATA, CUDNN_DATA_ALPHA, CUDNN_DATA_CONV_DESC, CUDNN_DATA_DX,
                    CUDNN_DATA_W, CUDNN_DATA_DY),
    OPERATION_RULES(CUDNN_OPERATION_FILTER, CUDNN_FILTER_ALPHA, CUDNN_FILTER_CONV_DESC,
                    CUDNN_FILTER_X, CUDNN_FILTER_DW, CUDNN_FILTER_DY),
    {CUDNN_OPERATIONGRAPH, CUDNN_OPERATIONGRAPH_OPS, OBJECTS, 1, 32, 1, -1},
    {CUDNN_OPERATIONGRAPH, CUDNN_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, 0, 0},
    {CUDNN_DEVICEPROP, CUDNN_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 2, 4096, 1, 0},
    {CUDNN_ENGINEHEUR, CUDNN_ENGINEHEUR_OPERATION_GRAPH, OBJECTS, 1, 1, 1, CUDNN_OPERATIONGRAPH},
    {CUDNN_ENGINEHEUR, CUDNN_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1, 1, 0},
    {CUDNN_ENGINEHEUR, CUDNN_ENGINEHEUR_DEVICEPROP, OBJECTS, 1, 1, 0, CUDNN_DEVICEPROP},
    {CUDNN_ENGINE, CUDNN_ENGINE_OPERATION_GRAPH, OBJECTS, 1, 1, 1, CUDNN_OPERATIONGRAPH},
    {CUDNN_ENGINE, CUDNN_ENGINE_GLOBAL_INDEX, INT64, 1, 1, 1, 0},
    {CUDNN_ENGINE, CUDNN_ENGINE_DEVICEPROP, OBJECTS, 1, 1, 0, CUDNN_DEVICEPROP},
    {CUDNN_KNOB_CHOICE, CUDNN_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, 1, 1, 0},
    {CUDNN_KNOB_CHOICE, CUDNN_KNOB_CHOICE_KNOB_VALUE, INT64, 1, 1, 1, 0},
    {CUDNN_ENGINECFG, CUDNN_ENGINECFG_ENGINE, OBJECTS, 1, 1, 1, CUDNN_ENGINE},
    {CUDNN_ENGINECFG, CUDNN_ENGINECFG_KNOB_CHOICES, OBJECTS, 1, 8, 0, CUDNN_KNOB_CHOICE},
    {CUDNN_EXECUTION_PLAN, CUDNN_EXECUTION_PLAN_ENGINE_CONFIG, OBJECTS, 1, 1, 1, CUDNN_ENGINECFG},
    {CUDNN_EXECUTION_PLAN, CUDNN_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, 0, 0},
    {CUDNN_EXECUTION_PLAN, CUDNN_EXECUTION_PLAN_DEVICEPROP, OBJECTS, 1, 1, 0, CUDNN_DEVICEPROP},
    {CUDNN_VARIANT_PACK, CUDNN_VARIANT_PACK_UNIQUE_IDS, INT64, 3, IDS_MOST, 1, 0},
    {CUDNN_VARIANT_PACK, CUDNN_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, IDS_MOST, 1, 0},
    {CUDNN_VARIANT_PACK, CUDNN_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, 0, 0},
};

enum { N_RULES = sizeof rules / sizeof *rules };

static size_t element_bytes(int type)
{
    switch (type) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
        return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

static const Rule *rule_of(int kind, int attribute)
{
    for (int i = 0; i < N_RULES; i++)
        if (rules[i].kind == kind && rules[i].attribute == attribute)
            return &rules[i];
    return NULL;
}

const Value *cudnn_value(const Object *o, int attribute)
{
    for (int i = 0; i < o->n_values; i++)
        if (o->value[i].attribute == attribute)
            return &o->value[i];
    return NULL;
}

const void *cudnn_elements(const Object *o, int attribute)
{
    return cudnn_value(o, attribute)->elements;
}

static int is_operation(int kind)
{
    return (kind >= CUDNN_OPERATION_FORWARD && kind <= CUDNN_OPERATION_DATA) ||
           kind == CUDNN_OPERATION_MATMUL || kind == CUDNN_OPERATION_POINTWISE ||
           kind == CUDNN_OPERATION_REDUCTION || kind == CUDNN_OPERATION_RESHAPE;
}

static int check_objects(const Rule *r, int64_t n, const void *elements)
{
    for (int64_t i = 0; i < n; i++) {
        const Object *o = ((Object *const *)elements)[i];
        if (!o || (r->of < 0 ? !is_operation(o->kind) : o->kind != r->of))
            return cudnn_refuse(BAD_PARAM, "an attribute names an object of another kind");
        if (!o->final)
            return cudnn_refuse(BAD_PARAM_NOT_FINALIZED, "an attribute names an unfinished object");
    }
    return CUDNN_SUCCESS;
}

EXPORT int cudnnBackendSetAttribute(void *object, int attribute, int type, int64_t n,
                                    const void *elements)
{
    Object *o = object;
    const Rule *r = o ? rule_of(o->kind, attribute) : NULL;
    if (!r || !elements)
        return cudnn_refuse(BAD_PARAM, "an attribute that the object does not have");
    if (o->final || cudnn_value(o, attribute))
        return cudnn_refuse(BAD_PARAM, "an attribute is set again");
    if (r->type != type || n < r->least || n > r->most)
        return cudnn_refuse(BAD_PARAM_ATTRIBUTE_TYPE, "an attribute of another type or number");
    int status = type == OBJECTS ? check_objects(r, n, elements) : CUDNN_SUCCESS;
    if (status != CUDNN_SUCCESS)
        return status;
    size_t bytes = (size_t)n * element_bytes(type);
    char *copy = malloc(bytes + 1);
    if (!copy || o->n_values == VALUES_MOST)
        return ALLOCATION_FAILED;
    memcpy(copy, elements, bytes);
    copy[bytes] = '\0';
    o->value[o->n_values++] = (Value){attribute, type, n, copy};
    return CUDNN_SUCCESS;
}

EXPORT int cudnnBackendCreateDescriptor(int kind, void **object)
{
    int known = 0;
    for (int i = 0; i < N_RULES; i++)
        known |= rules[i].kind == kind;
    Object *o = known ? calloc(1, sizeof *o) : NULL;
    *object = o;
    if (!o)
        return cudnn_refuse(BAD_PARAM, "an object of another kind");
    o->kind = kind;
    return CUDNN_SUCCESS;
}

EXPORT int cudnnBackendDestroyDescriptor(void *object)
{
    Object *o = object;
    if (!o)
        return BAD_PARAM_NULL_POINTER;
    cudnn_forget(o);
    for (int i = 0; i < o->n_values; i++)
        free(o->value[i].elements);
    free(o);
    return CUDNN_SUCCESS;
}

EXPORT int cudnnBackendFinalize(void *object)
{
    Object *o = object;
    if (!o || o->final)
        return cudnn_refuse(BAD_PARAM, "an object is finished again");
    for (int i = 0; i < N_RULES; i++)
        if (rules[i].kind == o->kind && rules[i].must && !cudnn_value(o, rules[i].attribute))
            return cudnn_refuse(BAD_PARAM, "an object without what it must have");
    int status = cudnn_complete(o);
    o->final = status == CUDNN_SUCCESS;
    return status;
}

/* --- questions --- */

static int one_integer(int64_t value, int type, int64_t wanted, int64_t *n, void *out)
{
    if (type != INT64 || wanted != 1 || !out)
        return cudnn_refuse(BAD_PARAM_ATTRIBUTE_TYPE, "a question for another type");
    *n = 1;
    memcpy(out, &value, sizeof value);
    return CUDNN_SUCCESS;
}

/* Objects that the caller made take what they are asked for. */
static int give(const Object *from, int kind, Object *to)
{
    if (!to || to->kind != kind || to->final)
        return cudnn_refuse(BAD_PARAM, "an answer goes into an object of another kind");
    to->final = 1;
    to->operation = from->operation;
    to->multiprocessors = from->multiprocessors;
    to->engine = from->engine;
    to->knob = from->knob;
    return CUDNN_SUCCESS;
}

static int ask_config(const Object *o, int attribute, int type, int64_t wanted, int64_t *n,
                      void *out)
{
    void *const *to = out;
    if (attribute == CUDNN_ENGINECFG_WORKSPACE_SIZE)
        return one_integer(o->workspace, type, wanted, n, out);
    *n = 1;
    if (wanted < 1)
        return CUDNN_SUCCESS;
    return give(o, attribute == CUDNN_ENGINECFG_ENGINE ? CUDNN_ENGINE : CUDNN_KNOB_CHOICE, to[0]);
}

static int ask_knob(const Object *o, int attribute, int type, int64_t wanted, int64_t *n, void *out)
{
    if (attribute == CUDNN_KNOB_CHOICE_KNOB_VALUE)
        return one_integer(o->knob, type, wanted, n, out);
    if (type != CUDNN_TYPE_KNOB_TYPE || wanted != 1)
        return cudnn_refuse(BAD_PARAM_ATTRIBUTE_TYPE, "a question for another type");
    *n = 1;
    *(int *)out = 2; /* CUDNN_KNOB_TYPE_TILE_SIZE */
    return CUDNN_SUCCESS;
}

static int ask_engine(const Object *o, int attribute, int type, int64_t wanted, int64_t *n,
                      void *out)
{
    if (attribute == CUDNN_ENGINE_GLOBAL_INDEX)
        return one_integer(o->engine, type, wanted, n, out);
    if (type != CUDNN_TYPE_NUMERICAL_NOTE && type != CUDNN_TYPE_BEHAVIOR_NOTE)
        return cudnn_refuse(BAD_PARAM_ATTRIBUTE_TYPE, "a question for another type");
    return cudnn_notes(o, attribute, wanted, n, out);
}

EXPORT int cudnnBackendGetAttribute(void *object, int attribute, int type, int64_t wanted,
                                    int64_t *n, void *out)
{
    const Object *o = object;
    if (!o || !o->final)
        return cudnn_refuse(BAD_PARAM_NOT_FINALIZED, "a question to an unfinished object");
    switch (o->kind) {
    case CUDNN_ENGINEHEUR:
        return cudnn_results(o, wanted, n, out);
    case CUDNN_ENGINECFG:
        return ask_config(o, attribute, type, wanted, n, out);
    case CUDNN_ENGINE:
        return ask_engine(o, attribute, type, wanted, n, out);
    case CUDNN_KNOB_CHOICE:
        return ask_knob(o, attribute, type, wanted, n, out);
    case CUDNN_EXECUTION_PLAN:
        if (attribute == CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE)
            return one_integer(o->workspace, type, wanted, n, out);
        break;
    default:
        break;
    }
    return cudnn_refuse(BAD_PARAM, "a question that is not simulated");
}

EXPORT int cudnnBackendExecute(void *handle, void *plan, void *pack)
{
    const Handle *h = handle;
    Object *p = plan;
    const Object *v = pack;
    if (!h || !h->alive || !p || p->kind != CUDNN_EXECUTION_PLAN || !p->final || !v ||
        v->kind != CUDNN_VARIANT_PACK || !v->final)
        return cudnn_refuse(BAD_PARAM, "something else than a plan and its addresses is run");
    const Value *workspace = cudnn_value(v, CUDNN_VARIANT_PACK_WORKSPACE);
    const Value *ids = cudnn_value(v, CUDNN_VARIANT_PACK_UNIQUE_IDS);
    const Value *addresses = cudnn_value(v, CUDNN_VARIANT_PACK_DATA_POINTERS);
    if (ids->n != addresses->n)
        return cudnn_refuse(BAD_PARAM, "names without addresses, or addresses without names");
    const Pack given = {.n = ids->n,
                        .id = ids->elements,
                        .address = addresses->elements,
                        .workspace = workspace ? *(char *const *)workspace->elements : NULL};
    return cudnn_run(p, &given, h->stream);
}
