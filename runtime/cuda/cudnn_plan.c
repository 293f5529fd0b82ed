/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/cudnn_plan.h"

#include "runtime/cuda/cudnn_graph.h"

#include <stdlib.h>

struct CudnnPlan {
    CudnnMaker maker;
    void *plan;
    int64_t part;
    CudnnScalars scalars; /* which it reads when it is run */
};

void *cudnn_device(const Cudnn *cudnn, const char *json, RtError *err)
{
    CudnnMaker m = {.cudnn = cudnn};
    int64_t n = 0;
    while (json[n])
        n++;
    void *device = cudnn_make(&m, CUDNN_DEVICEPROP);
    cudnn_set(&m, device, CUDNN_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n, json);
    cudnn_finalize(&m, device);
    if (cudnn_made(&m, "the properties of a device", err))
        return device;
    cudnn_free(&m);
    return NULL;
}

static void *make_graph(CudnnMaker *m, const CudnnPlanner *by, const CudnnProblem *p)
{
    CudnnOperations ops = {.n = 0};
    if (cudnn_is_attention(p))
        cudnn_attention(m, p, &ops);
    else
        cudnn_convolution(m, p, &ops);
    void *graph = cudnn_make(m, CUDNN_OPERATIONGRAPH);
    cudnn_set(m, graph, CUDNN_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, ops.n,
              ops.operation);
    if (by->handle)
        cudnn_set(m, graph, CUDNN_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &by->handle);
    cudnn_finalize(m, graph);
    return graph;
}

static void set_planner(CudnnMaker *m, const CudnnPlanner *by, void *plan)
{
    if (by->handle)
        cudnn_set(m, plan, CUDNN_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &by->handle);
    else
        cudnn_set_object(m, plan, CUDNN_EXECUTION_PLAN_DEVICEPROP, by->device);
}

static void *make_plan(CudnnMaker *m, const CudnnPlanner *by, void *config, int64_t *workspace)
{
    int64_t n = 0;
    void *plan = cudnn_make(m, CUDNN_EXECUTION_PLAN);
    cudnn_set_object(m, plan, CUDNN_EXECUTION_PLAN_ENGINE_CONFIG, config);
    set_planner(m, by, plan);
    cudnn_finalize(m, plan);
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
    bool compiles = behavior & 1u << CUDNN_BEHAVIOR_RUNTIME_COMPILATION;
    return !(numerical & forbidden(p)) && (!compiles || cudnn_is_attention(p));
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
    CudnnMaker m = {.cudnn = cudnn};
    void *knob[CUDNN_KNOBS_MOST];
    for (int i = 0; i < CUDNN_KNOBS_MOST; i++)
        knob[i] = cudnn_make(&m, CUDNN_KNOB_CHOICE);
    bool ok = m.status == CUDNN_SUCCESS &&
              cudnn->object_get(config, CUDNN_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                CUDNN_KNOBS_MOST, &out->n_knobs, knob) == CUDNN_SUCCESS &&
              out->n_knobs <= CUDNN_KNOBS_MOST;
    for (int i = 0; ok && i < out->n_knobs; i++)
        ok = read_knob(cudnn, knob[i], &out->knob[i]);
    cudnn_free(&m);
    return ok;
}

/* Whether the engine of a configuration is allowed, and which it is. */
static bool read_engine(const Cudnn *cudnn, void *config, const CudnnProblem *p, CudnnChoice *out)
{
    CudnnMaker m = {.cudnn = cudnn};
    int64_t n = 0;
    void *engine = cudnn_make(&m, CUDNN_ENGINE);
    bool ok = m.status == CUDNN_SUCCESS &&
              cudnn->object_get(config, CUDNN_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                &n, &engine) == CUDNN_SUCCESS &&
              allowed(cudnn, engine, p) &&
              cudnn->object_get(engine, CUDNN_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                                &out->engine) == CUDNN_SUCCESS;
    cudnn_free(&m);
    return ok;
}

/* Of a plan of this configuration.  To make the plan of one that is compiled takes seconds, and a
 * driver: such a configuration knows it itself. */
static bool read_workspace(const CudnnPlanner *by, const CudnnProblem *p, void *config,
                           int64_t *out)
{
    CudnnMaker m = {.cudnn = by->cudnn};
    int64_t n = 0;
    if (cudnn_is_attention(p))
        return by->cudnn->object_get(config, CUDNN_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                     &n, out) == CUDNN_SUCCESS;
    make_plan(&m, by, config, out);
    cudnn_free(&m);
    return m.status == CUDNN_SUCCESS;
}

static bool fits(const CudnnPlanner *by, const CudnnProblem *p, void *config, CudnnChoice *out)
{
    *out = (CudnnChoice){.version = by->cudnn->version};
    return read_engine(by->cudnn, config, p, out) && read_knobs(by->cudnn, config, out) &&
           read_workspace(by, p, config, &out->workspace) && out->workspace >= 0 &&
           out->workspace <= p->workspace;
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
    CudnnMaker m = {.cudnn = by->cudnn};
    int64_t n = 0;
    void *heuristic = cudnn_make(&m, CUDNN_ENGINEHEUR);
    cudnn_set_object(&m, heuristic, CUDNN_ENGINEHEUR_OPERATION_GRAPH, graph);
    cudnn_set_enum(&m, heuristic, CUDNN_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (by->device)
        cudnn_set_object(&m, heuristic, CUDNN_ENGINEHEUR_DEVICEPROP, by->device);
    cudnn_finalize(&m, heuristic);
    bool ok = m.status == CUDNN_SUCCESS &&
              by->cudnn->object_get(heuristic, CUDNN_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL) == CUDNN_SUCCESS &&
              first_of(by, p, heuristic, n, out);
    cudnn_free(&m);
    return ok;
}

bool cudnn_choose(const CudnnPlanner *by, const CudnnProblem *p, CudnnChoice *out, RtError *err)
{
    CudnnMaker m = {.cudnn = by->cudnn};
    void *graph = make_graph(&m, by, p);
    bool ok = cudnn_made(&m, "the operations", err);
    if (ok && !choose_by(by, p, graph, CUDNN_HEUR_MODE_A, out) &&
        !choose_by(by, p, graph, CUDNN_HEUR_MODE_FALLBACK, out))
        ok = rt_error(err, "cuDNN has no engine for it");
    cudnn_free(&m);
    return ok;
}

/* --- plans --- */

static void *make_config(CudnnMaker *m, const CudnnPlanner *by, void *graph,
                         const CudnnChoice *choice)
{
    void *knob[CUDNN_KNOBS_MOST];
    void *engine = cudnn_make(m, CUDNN_ENGINE), *config = cudnn_make(m, CUDNN_ENGINECFG);
    cudnn_set_object(m, engine, CUDNN_ENGINE_OPERATION_GRAPH, graph);
    cudnn_set_integer(m, engine, CUDNN_ENGINE_GLOBAL_INDEX, choice->engine);
    if (by->device)
        cudnn_set_object(m, engine, CUDNN_ENGINE_DEVICEPROP, by->device);
    cudnn_finalize(m, engine);
    for (int i = 0; i < choice->n_knobs; i++) {
        knob[i] = cudnn_make(m, CUDNN_KNOB_CHOICE);
        cudnn_set_enum(m, knob[i], CUDNN_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
                       (int)choice->knob[i].type);
        cudnn_set_integer(m, knob[i], CUDNN_KNOB_CHOICE_KNOB_VALUE, choice->knob[i].value);
        cudnn_finalize(m, knob[i]);
    }
    cudnn_set_object(m, config, CUDNN_ENGINECFG_ENGINE, engine);
    if (choice->n_knobs)
        cudnn_set(m, config, CUDNN_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  choice->n_knobs, knob);
    cudnn_finalize(m, config);
    return config;
}

CudnnPlan *cudnn_plan_make(const CudnnPlanner *by, const CudnnProblem *p, const CudnnChoice *choice,
                           int64_t *workspace, RtError *err)
{
    CudnnPlan *plan = rt_alloc(1, sizeof *plan, err);
    if (!plan)
        return NULL;
    plan->maker.cudnn = by->cudnn;
    plan->part = p->part;
    if (cudnn_is_attention(p))
        plan->scalars = cudnn_attention_scalars(p);
    void *graph = make_graph(&plan->maker, by, p);
    void *config = make_config(&plan->maker, by, graph, choice);
    plan->plan = make_plan(&plan->maker, by, config, workspace);
    if (cudnn_made(&plan->maker, "a plan", err))
        return plan;
    cudnn_plan_free(plan);
    return NULL;
}

void cudnn_plan_free(CudnnPlan *plan)
{
    if (plan)
        cudnn_free(&plan->maker);
    free(plan);
}

const char *cudnn_tensors(int64_t part)
{
    return part == CUDNN_ATTENTION ? "qkvos" : part == CUDNN_ATTENTION_GRAD ? "qkvogsQKVd" : "xwy";
}

bool cudnn_plan_run(CudnnPlan *plan, void *handle, char *const *tensor, void *workspace,
                    RtError *err)
{
    const char *names = cudnn_tensors(plan->part);
    int64_t ids[CUDNN_TENSORS_MOST + CUDNN_SCALARS_MOST], n = 0;
    void *addresses[CUDNN_TENSORS_MOST + CUDNN_SCALARS_MOST];
    CudnnMaker m = {.cudnn = plan->maker.cudnn};
    for (; names[n]; n++) {
        ids[n] = names[n];
        addresses[n] = tensor[n];
    }
    for (int i = 0; i < plan->scalars.n; i++, n++) {
        ids[n] = plan->scalars.id[i];
        addresses[n] = &plan->scalars.value[i];
    }
    void *pack = cudnn_make(&m, CUDNN_VARIANT_PACK);
    cudnn_set(&m, pack, CUDNN_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    cudnn_set(&m, pack, CUDNN_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, addresses);
    cudnn_set(&m, pack, CUDNN_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    cudnn_finalize(&m, pack);
    if (m.status == CUDNN_SUCCESS)
        m.status = m.cudnn->execute(handle, plan->plan, pack);
    cudnn_free(&m);
    return cudnn_made(&m, "running a plan", err);
}
