/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated cuDNN: what is finished, and the engines that its heuristics know. */
#include "cudnn_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- engines --- */

/* An engine's notes, a bit each; which types it is for; what it wants as workspace. */
typedef struct Engine {
    int64_t number;
    int f32, bf16, fallback;
    uint32_t numerical, behavior;
    enum { NOTHING, SOME, BOTH_IMAGES, TOO_MUCH, ALL_SCORES } workspace;
    int part; /* of attention, or CUDNN_FORWARD for every part of a convolution */
} Engine;

#define NOTE(name) (1u << CUDNN_NOTE_##name)
#define COMPILED   (1u << CUDNN_BEHAVIOR_RUNTIME_COMPILATION)

/* Best first, with every reason not to take one. */
static const Engine engines[] = {
    {41, 1, 1, 0, NOTE(NONDETERMINISTIC), 0, SOME},
    {42, 1, 1, 0, NOTE(TENSOR_CORE) | NOTE(REDUCED_PRECISION_REDUCTION), 0, NOTHING},
    {43, 1, 1, 0, NOTE(TENSOR_CORE), 1u << CUDNN_BEHAVIOR_RUNTIME_COMPILATION, NOTHING},
    {44, 1, 0, 0, NOTE(TENSOR_CORE) | NOTE(DOWN_CONVERT_INPUTS), 0, NOTHING},
    {45, 1, 1, 0, NOTE(TENSOR_CORE), 0, TOO_MUCH},
    {46, 1, 1, 0, NOTE(TENSOR_CORE), 0, SOME},
    {47, 1, 0, 0, 0, 0, BOTH_IMAGES},
    {2, 1, 1, 1, 0, 0, NOTHING},
    {71, 0, 1, 0, NOTE(NONDETERMINISTIC), COMPILED, NOTHING, CUDNN_ATTENTION},
    {72, 0, 1, 0, NOTE(TENSOR_CORE), COMPILED, SOME, CUDNN_ATTENTION},
    {73, 0, 1, 0, NOTE(NONDETERMINISTIC), COMPILED, NOTHING, CUDNN_ATTENTION_GRAD},
    {74, 0, 1, 0, NOTE(TENSOR_CORE), COMPILED, ALL_SCORES, CUDNN_ATTENTION_GRAD},
};

enum { N_ENGINES = sizeof engines / sizeof *engines, KNOB = 2, KNOB_VALUES = 4 };

static const Engine *engine_of(int64_t number)
{
    for (int i = 0; i < N_ENGINES; i++)
        if (engines[i].number == number)
            return &engines[i];
    return NULL;
}

static int suits(const Engine *e, const Operation *o)
{
    int part = o->part == CUDNN_ATTENTION || o->part == CUDNN_ATTENTION_GRAD ? (int)o->part
                                                                             : CUDNN_FORWARD;
    return e->part == part && (o->bf16 ? e->bf16 : e->f32);
}

int64_t cudnn_multiprocessors(void)
{
    const char *text = getenv("SCRIMP_SIM_CUDNN_SMS");
    return text ? strtoll(text, NULL, 10) : 132;
}

/* Fewer multiprocessors want more. */
static int64_t workspace_of(const Engine *e, const Operation *o, int64_t multiprocessors)
{
    int64_t element = o->bf16 ? 2 : 4;
    int64_t images = o->images * (o->h * o->w * o->c + o->oh * o->ow * o->k) * element;
    switch (e->workspace) {
    case NOTHING:
        return 0;
    case SOME:
        return 131 + (1 << 16) / multiprocessors;
    case BOTH_IMAGES:
        return images + 16;
    case TOO_MUCH:
        return 8 * images + (64 << 20);
    case ALL_SCORES:
        return cudnn_scores_bytes(&o->attention) + 131;
    }
    return 0;
}

int cudnn_notes(const Object *engine, int attribute, int64_t wanted, int64_t *n, int *notes)
{
    const Engine *e = engine_of(engine->engine);
    uint32_t bits = attribute == CUDNN_ENGINE_NUMERICAL_NOTE ? e->numerical : e->behavior;
    *n = 0;
    for (int i = 0; i < 32; i++)
        if (bits >> i & 1 && *n < wanted)
            notes[(*n)++] = i;
    return CUDNN_SUCCESS;
}

/* --- heuristics --- */

int cudnn_results(const Object *heuristic, int64_t wanted, int64_t *n, void *const *configs)
{
    const char *none = getenv("SCRIMP_SIM_CUDNN");
    if (none && strcmp(none, "crash") == 0)
        abort();
    int mode = *(const int *)cudnn_elements(heuristic, CUDNN_ENGINEHEUR_MODE);
    *n = 0;
    for (int i = 0; i < N_ENGINES && !(none && strcmp(none, "none") == 0); i++) {
        if (!suits(&engines[i], &heuristic->operation) ||
            engines[i].fallback != (mode == CUDNN_HEUR_MODE_FALLBACK))
            continue;
        if (*n < wanted) {
            Object *config = configs[*n];
            if (config->kind != CUDNN_ENGINECFG || config->final)
                return cudnn_refuse(BAD_PARAM, "results go into objects of another kind");
            config->final = 1;
            config->operation = heuristic->operation;
            config->multiprocessors = heuristic->multiprocessors;
            config->engine = engines[i].number;
            config->knob = engines[i].number % KNOB_VALUES;
            config->workspace =
                workspace_of(&engines[i], &config->operation, config->multiprocessors);
        }
        ++*n;
    }
    return CUDNN_SUCCESS;
}

/* --- what is finished --- */

static int64_t integer(const Object *o, int attribute)
{
    return *(const int64_t *)cudnn_elements(o, attribute);
}

static int enumerated(const Object *o, int attribute)
{
    return *(const int *)cudnn_elements(o, attribute);
}

static const Object *named(const Object *o, int attribute)
{
    return cudnn_value(o, attribute) ? *(Object *const *)cudnn_elements(o, attribute) : NULL;
}

static int complete_tensor(const Object *o)
{
    const int64_t *d = cudnn_elements(o, CUDNN_TENSOR_DIMENSIONS);
    const int64_t *s = cudnn_elements(o, CUDNN_TENSOR_STRIDES);
    int type = enumerated(o, CUDNN_TENSOR_DATA_TYPE);
    int64_t align = integer(o, CUDNN_TENSOR_BYTE_ALIGNMENT);
    if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_BFLOAT16 && type != CUDNN_DATA_INT32 &&
        type != CUDNN_DATA_BOOLEAN)
        return cudnn_refuse(NOT_SUPPORTED, "tensors of another type");
    for (int i = 0; i < 4; i++)
        if (d[i] < 1 || s[i] < 1)
            return cudnn_refuse(BAD_PARAM, "a tensor without elements, or without strides");
    if (align < 4 || (align & (align - 1)))
        return cudnn_refuse(BAD_PARAM, "a tensor of no alignment");
    if (cudnn_value(o, CUDNN_TENSOR_IS_VIRTUAL) && cudnn_value(o, CUDNN_TENSOR_IS_BY_VALUE))
        return cudnn_refuse(BAD_PARAM, "a virtual tensor that is given by value");
    return CUDNN_SUCCESS;
}

/* Images and weights whose channels are the last dim. */
static int has_channels_last(const Object *o)
{
    const int64_t *d = cudnn_elements(o, CUDNN_TENSOR_DIMENSIONS);
    const int64_t *s = cudnn_elements(o, CUDNN_TENSOR_STRIDES);
    return s[1] == 1 && s[3] == d[1] && s[2] == d[3] * d[1] && s[0] == d[2] * d[3] * d[1] &&
           !cudnn_value(o, CUDNN_TENSOR_IS_VIRTUAL) && !cudnn_value(o, CUDNN_TENSOR_IS_BY_VALUE);
}

static int complete_convolution(const Object *o)
{
    const int64_t *dilation = cudnn_elements(o, CUDNN_CONVOLUTION_DILATIONS);
    const int64_t *stride = cudnn_elements(o, CUDNN_CONVOLUTION_FILTER_STRIDES);
    const int64_t *before = cudnn_elements(o, CUDNN_CONVOLUTION_PRE_PADDINGS);
    const int64_t *behind = cudnn_elements(o, CUDNN_CONVOLUTION_POST_PADDINGS);
    if (integer(o, CUDNN_CONVOLUTION_SPATIAL_DIMS) != 2 ||
        enumerated(o, CUDNN_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
        enumerated(o, CUDNN_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
        return cudnn_refuse(NOT_SUPPORTED, "another kind of convolution");
    for (int i = 0; i < 2; i++)
        if (dilation[i] < 1 || stride[i] < 1 || before[i] < 0 || behind[i] != before[i])
            return cudnn_refuse(BAD_PARAM, "strides, dilations or paddings of a convolution");
    return CUDNN_SUCCESS;
}

static int result_size(const Operation *q, int axis, int64_t source, int64_t taps, int64_t result)
{
    int64_t room = source + 2 * q->pad[axis] - q->dilation[axis] * (taps - 1) - 1;
    return room >= 0 && room / q->stride[axis] + 1 == result;
}

static int complete_operation(Object *o)
{
    static const int first[] = {CUDNN_FORWARD_X, CUDNN_FILTER_X, CUDNN_DATA_DX};
    static const int weights[] = {CUDNN_FORWARD_W, CUDNN_FILTER_DW, CUDNN_DATA_W};
    static const int last[] = {CUDNN_FORWARD_Y, CUDNN_FILTER_DY, CUDNN_DATA_DY};
    static const int conv[] = {CUDNN_FORWARD_CONV_DESC, CUDNN_FILTER_CONV_DESC,
                               CUDNN_DATA_CONV_DESC};
    static const int alpha[] = {CUDNN_FORWARD_ALPHA, CUDNN_FILTER_ALPHA, CUDNN_DATA_ALPHA};
    static const int part[] = {CUDNN_FORWARD, CUDNN_WGRAD, CUDNN_DGRAD};
    int i = o->kind - CUDNN_OPERATION_FORWARD;
    const Object *tensor[] = {named(o, first[i]), named(o, weights[i]), named(o, last[i])};
    const Object *c = named(o, conv[i]);
    Operation *q = &o->operation;
    const int64_t *d[3];
    for (int t = 0; t < 3; t++) {
        d[t] = cudnn_elements(tensor[t], CUDNN_TENSOR_DIMENSIONS);
        q->id[t] = integer(tensor[t], CUDNN_TENSOR_UNIQUE_ID);
    }
    q->part = part[i];
    q->images = d[0][0];
    q->c = d[0][1];
    q->h = d[0][2];
    q->w = d[0][3];
    q->k = d[1][0];
    q->group_c = d[1][1];
    q->r = d[1][2];
    q->s = d[1][3];
    q->oh = d[2][2];
    q->ow = d[2][3];
    q->align = integer(tensor[0], CUDNN_TENSOR_BYTE_ALIGNMENT);
    q->bf16 = enumerated(tensor[0], CUDNN_TENSOR_DATA_TYPE) == CUDNN_DATA_BFLOAT16;
    memcpy(q->stride, cudnn_elements(c, CUDNN_CONVOLUTION_FILTER_STRIDES), sizeof q->stride);
    memcpy(q->pad, cudnn_elements(c, CUDNN_CONVOLUTION_PRE_PADDINGS), sizeof q->pad);
    memcpy(q->dilation, cudnn_elements(c, CUDNN_CONVOLUTION_DILATIONS), sizeof q->dilation);
    for (int t = 0; t < 3; t++)
        if (!has_channels_last(tensor[t]))
            return cudnn_refuse(NOT_SUPPORTED, "a tensor whose channels are not the last dim");
    for (int t = 1; t < 3; t++)
        if (enumerated(tensor[t], CUDNN_TENSOR_DATA_TYPE) !=
                enumerated(tensor[0], CUDNN_TENSOR_DATA_TYPE) ||
            q->id[t] == q->id[0] || q->id[1] == q->id[2] ||
            integer(tensor[t], CUDNN_TENSOR_BYTE_ALIGNMENT) != q->align)
            return cudnn_refuse(NOT_SUPPORTED, "tensors of several types, or of one name");
    if (*(const float *)cudnn_elements(o, alpha[i]) != 1 ||
        *(const float *)cudnn_elements(o, alpha[i] + 1) != 0)
        return cudnn_refuse(NOT_SUPPORTED, "a sum with what was there");
    if (d[2][0] != q->images || d[2][1] != q->k || q->c % q->group_c ||
        q->k % (q->c / q->group_c) || !result_size(q, 0, q->h, q->r, q->oh) ||
        !result_size(q, 1, q->w, q->s, q->ow))
        return cudnn_refuse(BAD_PARAM_SHAPE_MISMATCH, "shapes that do not fit");
    return CUDNN_SUCCESS;
}

/* Every property that the real one reads. */
static int complete_device(Object *o)
{
    static const char *const keys[] = {
        "cudnn_version",     "deviceName",      "maxGridSize",
        "maxBlockSize",      "regsPerBlock",    "multiProcessorCount",
        "warpSize",          "maxCtasPerSM",    "maxSharedMemoryPerBlock",
        "maxRegistersPerSM", "maxThreadsPerSM", "maxSharedMemoryPerBlockOptin",
        "pciDeviceId",       "isTccDriver",     "reservedSharedMemoryPerBlock",
        "supportCoopLaunch", "totalGlobalMem",  "smClockRateKHz",
        "memClockRateKHz",   "l2CacheSize",     "maxThreadsPerBlock",
        "cudaDeviceId",      "deviceVer",       "driverVer"};
    const char *text = cudnn_elements(o, CUDNN_DEVICEPROP_JSON_REPRESENTATION);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted, "\"%s\":", keys[i]);
        if (!strstr(text, quoted))
            return cudnn_refuse(BAD_PARAM, "a device without one of its properties");
    }
    o->multiprocessors = strtoll(strstr(text, "\"multiProcessorCount\":") + 22, NULL, 10);
    return o->multiprocessors > 0 ? CUDNN_SUCCESS : BAD_PARAM;
}

/* What plans on behalf of a device: the device's properties, or a handle on it. */
static int complete_of_graph(Object *o, int graph, int device)
{
    const Object *properties = named(o, device);
    const Object *g = named(o, graph);
    if (!properties && !cudnn_value(g, CUDNN_OPERATIONGRAPH_HANDLE))
        return cudnn_refuse(BAD_PARAM, "a question about no device");
    o->operation = g->operation;
    o->multiprocessors = properties ? properties->multiprocessors : cudnn_multiprocessors();
    return CUDNN_SUCCESS;
}

static int complete_engine(Object *o)
{
    int status = complete_of_graph(o, CUDNN_ENGINE_OPERATION_GRAPH, CUDNN_ENGINE_DEVICEPROP);
    o->engine = integer(o, CUDNN_ENGINE_GLOBAL_INDEX);
    const Engine *e = engine_of(o->engine);
    if (status == CUDNN_SUCCESS && (!e || !suits(e, &o->operation)))
        return cudnn_refuse(NOT_SUPPORTED, "there is no such engine");
    return status;
}

static int complete_config(Object *o)
{
    const Object *engine = named(o, CUDNN_ENGINECFG_ENGINE);
    const Object *knob = named(o, CUDNN_ENGINECFG_KNOB_CHOICES);
    o->operation = engine->operation;
    o->multiprocessors = engine->multiprocessors;
    o->engine = engine->engine;
    o->knob = knob ? knob->knob : 0;
    return CUDNN_SUCCESS;
}

static int complete_knob(Object *o)
{
    o->knob = integer(o, CUDNN_KNOB_CHOICE_KNOB_VALUE);
    if (enumerated(o, CUDNN_KNOB_CHOICE_KNOB_TYPE) != KNOB || o->knob < 0 || o->knob >= KNOB_VALUES)
        return cudnn_refuse(BAD_PARAM, "a setting that no engine has");
    return CUDNN_SUCCESS;
}

static int complete_plan(Object *o)
{
    const Object *config = named(o, CUDNN_EXECUTION_PLAN_ENGINE_CONFIG);
    const Object *device = named(o, CUDNN_EXECUTION_PLAN_DEVICEPROP);
    o->on_device = cudnn_value(o, CUDNN_EXECUTION_PLAN_HANDLE) != NULL;
    if (o->on_device == (device != NULL))
        return cudnn_refuse(BAD_PARAM, "a plan is of a handle, or of a device's properties");
    o->operation = config->operation;
    o->multiprocessors = device ? device->multiprocessors : cudnn_multiprocessors();
    o->engine = config->engine;
    if (config->knob != o->engine % KNOB_VALUES)
        return cudnn_refuse(NOT_SUPPORTED, "an engine without its setting");
    if (engine_of(o->engine)->behavior & COMPILED && !o->on_device)
        return cudnn_refuse(EXECUTION_FAILED, "a kernel that was compiled cannot be loaded");
    o->workspace = workspace_of(engine_of(o->engine), &o->operation, o->multiprocessors);
    return CUDNN_SUCCESS;
}

/* One convolution, or the operations of attention. */
static int complete_graph(Object *o)
{
    const Value *ops = cudnn_value(o, CUDNN_OPERATIONGRAPH_OPS);
    const Object *const *operation = ops->elements;
    if (operation[0]->kind >= CUDNN_OPERATION_FORWARD &&
        operation[0]->kind <= CUDNN_OPERATION_DATA && ops->n == 1) {
        o->operation = operation[0]->operation;
        return CUDNN_SUCCESS;
    }
    return cudnn_match_attention(operation, ops->n, &o->operation);
}

int cudnn_complete(Object *o)
{
    switch (o->kind) {
    case CUDNN_TENSOR:
        return complete_tensor(o);
    case CUDNN_CONVOLUTION:
        return complete_convolution(o);
    case CUDNN_OPERATION_FORWARD:
    case CUDNN_OPERATION_FILTER:
    case CUDNN_OPERATION_DATA:
        return complete_operation(o);
    case CUDNN_OPERATIONGRAPH:
        return complete_graph(o);
    case CUDNN_DEVICEPROP:
        return complete_device(o);
    case CUDNN_ENGINEHEUR:
        return complete_of_graph(o, CUDNN_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ENGINEHEUR_DEVICEPROP);
    case CUDNN_ENGINE:
        return complete_engine(o);
    case CUDNN_ENGINECFG:
        return complete_config(o);
    case CUDNN_KNOB_CHOICE:
        return complete_knob(o);
    case CUDNN_EXECUTION_PLAN:
        return complete_plan(o);
    default:
        return CUDNN_SUCCESS;
    }
}
