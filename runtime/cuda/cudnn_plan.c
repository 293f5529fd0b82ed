/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/cudnn_plan.h"

#include <stdlib.h>

/* Objects of the library that are made for one purpose, and go together. */
enum { OBJECTS_MOST = 16 + CUDNN_KNOBS_MOST };

typedef struct Maker {
    const Cudnn *cudnn;
    void *object[OBJECTS_MOST];
    int n;
    int status; /* of the first call that failed */
} Maker;

struct CudnnPlan {
    Maker maker;
    void *plan;
};

/* --- objects --- */

static void *make(Maker *m, CudnnKind kind)
{
    void *object = NULL;
    if (m->status == CUDNN_SUCCESS && m->n < OBJECTS_MOST)
        m->status = m->cudnn->object_create((int)kind, &object);
    if (object)
        m->object[m->n++] = object;
    return object;
}

static void set(Maker *m, void *object, int attribute, int type, int64_t n, const void *elements)
{
    if (m->status == CUDNN_SUCCESS)
        m->status = m->cudnn->object_set(object, attribute, type, n, elements);
}

static void set_integer(Maker *m, void *object, int attribute, int64_t value)
{
    set(m, object, attribute, CUDNN_TYPE_INT64, 1, &value);
}

/* Enumerations of the library are ints. */
static void set_enum(Maker *m, void *object, int attribute, int type, int value)
{
    set(m, object, attribute, type, 1, &value);
}

static void set_object(Maker *m, void *object, int attribute, void *value)
{
    set(m, object, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finalize(Maker *m, void *object)
{
    if (m->status == CUDNN_SUCCESS)
        m->status = m->cudnn->object_finalize(object);
}

static void free_objects(Maker *m)
{
    while (m->n > 0)
        m->cudnn->object_destroy(m->object[--m->n]);
}

static bool failed(const Maker *m, const char *what, RtError *err)
{
    return m->status == CUDNN_SUCCESS || rt_error(err, "cuDNN: %s: status %d", what, m->status);
}

void *cudnn_device(const Cudnn *cudnn, const char *json, RtError *err)
{
    Maker m = {.cudnn = cudnn};
    int64_t n = 0;
    while (json[n])
        n++;
    void *device = make(&m, CUDNN_DEVICEPROP);
    set(&m, device, CUDNN_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n, json);
    finalize(&m, device);
    if (failed(&m, "the properties of a device", err))
        return device;
    free_objects(&m);
    return NULL;
}

/* --- the operation --- */

static int data_type(const CudnnProblem *p)
{
    return p->arithmetic == CUDNN_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/* Dims in cuDNN's order, with the second one contiguous. */
static void *make_tensor(Maker *m, const CudnnProblem *p, char id, int64_t n, int64_t c, int64_t h,
                         int64_t w)
{
    const int64_t dims[] = {n, c, h, w}, strides[] = {h * w * c, 1, w * c, c};
    void *tensor = make(m, CUDNN_TENSOR);
    set_integer(m, tensor, CUDNN_TENSOR_UNIQUE_ID, id);
    set_integer(m, tensor, CUDNN_TENSOR_BYTE_ALIGNMENT, p->align);
    set_enum(m, tensor, CUDNN_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(p));
    set(m, tensor, CUDNN_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(m, tensor, CUDNN_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    finalize(m, tensor);
    return tensor;
}

static void *make_convolution(Maker *m, const CudnnProblem *p)
{
    void *conv = make(m, CUDNN_CONVOLUTION);
    set_enum(m, conv, CUDNN_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    set_enum(m, conv, CUDNN_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
             CUDNN_CROSS_CORRELATION);
    set_integer(m, conv, CUDNN_CONVOLUTION_SPATIAL_DIMS, 2);
    set(m, conv, CUDNN_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, p->dilation);
    set(m, conv, CUDNN_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, p->stride);
    set(m, conv, CUDNN_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, p->pad);
    set(m, conv, CUDNN_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, p->pad);
    finalize(m, conv);
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

static void *make_operation(Maker *m, const CudnnProblem *p)
{
    const float one = 1, zero = 0;
    void *x = make_tensor(m, p, 'x', p->images, p->c, p->h, p->w);
    void *w = make_tensor(m, p, 'w', p->k, p->c / p->groups, p->r, p->s);
    void *y = make_tensor(m, p, 'y', p->images, p->k, p->oh, p->ow);
    void *operation = make(m, operations[p->part].kind);
    set(m, operation, operations[p->part].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(m, operation, operations[p->part].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    set_object(m, operation, operations[p->part].conv, make_convolution(m, p));
    set_object(m, operation, operations[p->part].x, x);
    set_object(m, operation, operations[p->part].w, w);
    set_object(m, operation, operations[p->part].y, y);
    finalize(m, operation);
    return operation;
}

static void *make_graph(Maker *m, const CudnnPlanner *by, const CudnnProblem *p)
{
    void *operation = make_operation(m, p), *graph = make(m, CUDNN_OPERATIONGRAPH);
    set_object(m, graph, CUDNN_OPERATIONGRAPH_OPS, operation);
    if (by->handle)
        set(m, graph, CUDNN_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &by->handle);
    finalize(m, graph);
    return graph;
}

static void set_planner(Maker *m, const CudnnPlanner *by, void *plan)
{
    if (by->handle)
        set(m, plan, CUDNN_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &by->handle);
    else
        set_object(m, plan, CUDNN_EXECUTION_PLAN_DEVICEPROP, by->device);
}

static void *make_plan(Maker *m, const CudnnPlanner *by, void *config, int64_t *workspace)
{
    int64_t n = 0;
    void *plan = make(m, CUDNN_EXECUTION_PLAN);
    set_object(m, plan, CUDNN_EXECUTION_PLAN_ENGINE_CONFIG, config);
    set_planner(m, by, plan);
    finalize(m, plan);
    if (m->status == CUDNN_SUCCESS)
        m->status = m->cudnn->object_get(plan, CUDNN_EXECUTION_PLAN_WORKSPACE_SIZE,
                                         CUDNN_TYPE_INT64, 1, &n, workspace);
    return plan;
}

/* --- choosing --- */

/* Which notes an engine must not have. */
static uint32_t forbidden(const CudnnProblem *p)
{
    uint32_t notes = 1u << CUDNN_NOTE_NONDETERMINISTIC;
    notes |= 1u << CUDNN_NOTE_REDUCED_PRECISION_REDUCTION;
    if (p->arithmetic != CUDNN_BF16)
        notes |= 1u << CUDNN_NOTE_DOWN_CONVERT_INPUTS;
    if (p->arithmetic == CUDNN_F32)
        notes |= 1u << CUDNN_NOTE_TENSOR_CORE;
    return notes;
}

/* Bit i: note i; all bits where they cannot be had. */
static uint32_t notes_of(const Cudnn *cudnn, void *engine, int attribute, int type)
{
    int note[CUDNN_NOTES_MOST];
    int64_t n = 0;
    uint32_t bits = 0;
    if (cudnn->object_get(engine, attribute, type, CUDNN_NOTES_MOST, &n, note) != CUDNN_SUCCESS)
        return UINT32_MAX;
    for (int64_t i = 0; i < n && i < CUDNN_NOTES_MOST; i++)
        bits |= note[i] >= 0 && note[i] < 32 ? 1u << note[i] : 0;
    return bits;
}

static bool allowed(const Cudnn *cudnn, void *engine, const CudnnProblem *p)
{
    uint32_t numerical =
        notes_of(cudnn, engine, CUDNN_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
    uint32_t behavior =
        notes_of(cudnn, engine, CUDNN_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
    return !(numerical & forbidden(p)) && !(behavior & 1u << CUDNN_BEHAVIOR_RUNTIME_COMPILATION);
}

static bool read_knob(const Cudnn *cudnn, void *object, CudnnKnob *out)
{
    int type = -1;
    int64_t n = 0;
    bool ok = cudnn->object_get(object, CUDNN_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &n,
                                &type) == CUDNN_SUCCESS &&
              cudnn->object_get(object, CUDNN_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &n,
                                &out->value) == CUDNN_SUCCESS;
    out->type = type;
    return ok;
}

static bool read_knobs(const Cudnn *cudnn, void *config, CudnnChoice *out)
{
    Maker m = {.cudnn = cudnn};
    void *knob[CUDNN_KNOBS_MOST];
    for (int i = 0; i < CUDNN_KNOBS_MOST; i++)
        knob[i] = make(&m, CUDNN_KNOB_CHOICE);
    bool ok = m.status == CUDNN_SUCCESS &&
              cudnn->object_get(config, CUDNN_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                CUDNN_KNOBS_MOST, &out->n_knobs, knob) == CUDNN_SUCCESS &&
              out->n_knobs <= CUDNN_KNOBS_MOST;
    for (int i = 0; ok && i < out->n_knobs; i++)
        ok = read_knob(cudnn, knob[i], &out->knob[i]);
    free_objects(&m);
    return ok;
}

/* Whether the engine of a configuration is allowed, and which it is. */
static bool read_engine(const Cudnn *cudnn, void *config, const CudnnProblem *p, CudnnChoice *out)
{
    Maker m = {.cudnn = cudnn};
    int64_t n = 0;
    void *engine = make(&m, CUDNN_ENGINE);
    bool ok = m.status == CUDNN_SUCCESS &&
              cudnn->object_get(config, CUDNN_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                &n, &engine) == CUDNN_SUCCESS &&
              allowed(cudnn, engine, p) &&
              cudnn->object_get(engine, CUDNN_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                                &out->engine) == CUDNN_SUCCESS;
    free_objects(&m);
    return ok;
}

static bool fits(const CudnnPlanner *by, const CudnnProblem *p, void *config, CudnnChoice *out)
{
    Maker m = {.cudnn = by->cudnn};
    *out = (CudnnChoice){.version = by->cudnn->version};
    bool ok = read_engine(by->cudnn, config, p, out) && read_knobs(by->cudnn, config, out);
    if (ok)
        make_plan(&m, by, config, &out->workspace);
    ok = ok && m.status == CUDNN_SUCCESS && out->workspace >= 0 && out->workspace <= p->workspace;
    free_objects(&m);
    return ok;
}

/* The results of a heuristic, n of them. */
static bool first_of(const CudnnPlanner *by, const CudnnProblem *p, void *heuristic, int64_t n,
                     CudnnChoice *out)
{
    const Cudnn *cudnn = by->cudnn;
    void **config = rt_alloc(n + 1, sizeof *config, NULL);
    int64_t made = 0, got = 0;
    bool ok = false;
    while (config && made < n &&
           cudnn->object_create(CUDNN_ENGINECFG, &config[made]) == CUDNN_SUCCESS)
        made++;
    if (config && made == n &&
        cudnn->object_get(heuristic, CUDNN_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n,
                          &got, config) != CUDNN_SUCCESS)
        got = 0;
    for (int64_t i = 0; i < got && i < n && !ok; i++)
        ok = fits(by, p, config[i], out);
    while (made > 0)
        cudnn->object_destroy(config[--made]);
    free(config);
    return ok;
}

static bool choose_by(const CudnnPlanner *by, const CudnnProblem *p, void *graph, int mode,
                      CudnnChoice *out)
{
    Maker m = {.cudnn = by->cudnn};
    int64_t n = 0;
    void *heuristic = make(&m, CUDNN_ENGINEHEUR);
    set_object(&m, heuristic, CUDNN_ENGINEHEUR_OPERATION_GRAPH, graph);
    set_enum(&m, heuristic, CUDNN_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (by->device)
        set_object(&m, heuristic, CUDNN_ENGINEHEUR_DEVICEPROP, by->device);
    finalize(&m, heuristic);
    bool ok = m.status == CUDNN_SUCCESS &&
              by->cudnn->object_get(heuristic, CUDNN_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL) == CUDNN_SUCCESS &&
              first_of(by, p, heuristic, n, out);
    free_objects(&m);
    return ok;
}

bool cudnn_choose(const CudnnPlanner *by, const CudnnProblem *p, CudnnChoice *out, RtError *err)
{
    Maker m = {.cudnn = by->cudnn};
    void *graph = make_graph(&m, by, p);
    bool ok = failed(&m, "a convolution", err);
    if (ok && !choose_by(by, p, graph, CUDNN_HEUR_MODE_A, out) &&
        !choose_by(by, p, graph, CUDNN_HEUR_MODE_FALLBACK, out))
        ok = rt_error(err, "cuDNN has no engine for the convolution");
    free_objects(&m);
    return ok;
}

/* --- plans --- */

static void *make_config(Maker *m, const CudnnPlanner *by, void *graph, const CudnnChoice *choice)
{
    void *knob[CUDNN_KNOBS_MOST];
    void *engine = make(m, CUDNN_ENGINE), *config = make(m, CUDNN_ENGINECFG);
    set_object(m, engine, CUDNN_ENGINE_OPERATION_GRAPH, graph);
    set_integer(m, engine, CUDNN_ENGINE_GLOBAL_INDEX, choice->engine);
    if (by->device)
        set_object(m, engine, CUDNN_ENGINE_DEVICEPROP, by->device);
    finalize(m, engine);
    for (int i = 0; i < choice->n_knobs; i++) {
        knob[i] = make(m, CUDNN_KNOB_CHOICE);
        set_enum(m, knob[i], CUDNN_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
                 (int)choice->knob[i].type);
        set_integer(m, knob[i], CUDNN_KNOB_CHOICE_KNOB_VALUE, choice->knob[i].value);
        finalize(m, knob[i]);
    }
    set_object(m, config, CUDNN_ENGINECFG_ENGINE, engine);
    if (choice->n_knobs)
        set(m, config, CUDNN_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, choice->n_knobs,
            knob);
    finalize(m, config);
    return config;
}

CudnnPlan *cudnn_plan_make(const CudnnPlanner *by, const CudnnProblem *p, const CudnnChoice *choice,
                           int64_t *workspace, RtError *err)
{
    CudnnPlan *plan = rt_alloc(1, sizeof *plan, err);
    if (!plan)
        return NULL;
    plan->maker.cudnn = by->cudnn;
    void *graph = make_graph(&plan->maker, by, p);
    void *config = make_config(&plan->maker, by, graph, choice);
    plan->plan = make_plan(&plan->maker, by, config, workspace);
    if (failed(&plan->maker, "a plan", err))
        return plan;
    cudnn_plan_free(plan);
    return NULL;
}

void cudnn_plan_free(CudnnPlan *plan)
{
    if (plan)
        free_objects(&plan->maker);
    free(plan);
}

bool cudnn_plan_run(const CudnnPlan *plan, void *handle, void *x, void *w, void *y, void *workspace,
                    RtError *err)
{
    static const int64_t ids[] = {'x', 'w', 'y'};
    void *const addresses[] = {x, w, y};
    Maker m = {.cudnn = plan->maker.cudnn};
    void *pack = make(&m, CUDNN_VARIANT_PACK);
    set(&m, pack, CUDNN_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
    set(&m, pack, CUDNN_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, addresses);
    set(&m, pack, CUDNN_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finalize(&m, pack);
    if (m.status == CUDNN_SUCCESS)
        m.status = m.cudnn->execute(handle, plan->plan, pack);
    free_objects(&m);
    return failed(&m, "running a plan", err);
}
