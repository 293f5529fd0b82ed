/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions and attention by cuDNN.  A plan of the step says which engine was chosen when the
 * step was compiled; where this device or this version of the library does not take that one, the
 * heuristics are asked again, for no more workspace than the step has.
 *
 * Buffers: those of cudnn_tensors, then the workspace. */
#include "runtime/cuda/cudnn_plan.h"
#include "runtime/cuda/library.h"

#include <stdlib.h>
#include <string.h>

/* One for all problems, as long as there are any: it holds memory of the device. */
static void *shared_handle;
static int n_users;

typedef struct Loaded {
    const Cudnn *cudnn;
    CudnnProblem problem;
    CudnnPlan *plan;
} Loaded;

static bool start(Loaded *x, RtError *err)
{
    x->cudnn = cudnn_api(err);
    if (!x->cudnn)
        return rt_error_prefix(err, "the step was compiled for cuDNN");
    int status = shared_handle ? CUDNN_SUCCESS : x->cudnn->create(&shared_handle);
    if (status != CUDNN_SUCCESS)
        shared_handle = NULL;
    return shared_handle ||
           rt_error(err, "cuDNN does not start (the driver may be too old for it): status %d",
                    status);
}

static bool explain(const CudnnProblem *p, RtError *err)
{
    static const char exact[] =
        "for which the step would have a kernel of scrimp's own with --exact";
    if (cudnn_is_attention(p))
        return rt_error_prefix(err, "attention of %lld rows to %lld keys, %s", (long long)p->rows,
                               (long long)p->keys, exact);
    return rt_error_prefix(err, "a convolution of %lld x %lld, %s", (long long)p->r,
                           (long long)p->s, exact);
}

static bool make(Loaded *x, const char *plan, int64_t bytes, RtError *err)
{
    CudnnChoice choice = {0};
    int64_t workspace = 0;
    if (!start(x, err) || !cuda_plan_read_cudnn(plan, bytes, &x->problem, &choice, err))
        return false;
    const CudnnPlanner by = {.cudnn = x->cudnn, .handle = shared_handle};
    if (choice.version == x->cudnn->version)
        x->plan = cudnn_plan_make(&by, &x->problem, &choice, &workspace, NULL);
    if (x->plan && workspace <= x->problem.workspace)
        return true;
    cudnn_plan_free(x->plan);
    x->plan = NULL;
    if (cudnn_choose(&by, &x->problem, &choice, err))
        x->plan = cudnn_plan_make(&by, &x->problem, &choice, &workspace, err);
    return x->plan || explain(&x->problem, err);
}

static void unload(void *loaded)
{
    Loaded *x = loaded;
    cudnn_plan_free(x->plan);
    if (--n_users == 0 && shared_handle) {
        x->cudnn->destroy(shared_handle);
        shared_handle = NULL;
    }
    free(x);
}

static void *load(const char *plan, int64_t bytes, RtError *err)
{
    Loaded *x = rt_alloc(1, sizeof *x, err);
    if (!x)
        return NULL;
    n_users++;
    if (make(x, plan, bytes, err))
        return x;
    unload(x);
    return NULL;
}

/* The plan reserves for it that it may begin behind the next multiple. */
static void *aligned(char *workspace)
{
    uintptr_t unit = CUDNN_WORKSPACE_ALIGN;
    return workspace + (unit - (uintptr_t)workspace % unit) % unit;
}

static bool run(void *loaded, char *const *buf, void *stream, RtError *err)
{
    const Loaded *x = loaded;
    int status = x->cudnn->set_stream(shared_handle, stream);
    if (status != CUDNN_SUCCESS)
        return rt_error(err, "cuDNN: its stream: status %d", status);
    const size_t tensors = strlen(cudnn_tensors(x->problem.part));
    return cudnn_plan_run(x->plan, shared_handle, buf, aligned(buf[tensors]), err);
}

const CudaLibrary cuda_cudnn = {"cudnn", load, unload, run};
