/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions by cuDNN.  A plan of the step says which engine was chosen when the step was
 * compiled; where this device or this version of the library does not take that one, the
 * heuristics are asked again, for no more workspace than the step has.
 *
 * Buffers: x, w, y of the forward convolution that it belongs to, then the workspace. */
#include "runtime/cuda/cudnn_plan.h"
#include "runtime/cuda/library.h"

#include <stdlib.h>

/* One for all convolutions, as long as there are any: it holds memory of the device. */
static void *shared_handle;
static int n_users;

typedef struct Convolution {
    const Cudnn *cudnn;
    CudnnProblem problem;
    CudnnPlan *plan;
} Convolution;

static bool start(Convolution *x, RtError *err)
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

static bool make(Convolution *x, const char *plan, int64_t bytes, RtError *err)
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
    return x->plan ||
           rt_error_prefix(err,
                           "a convolution of %lld x %lld, for which the step would have a "
                           "kernel of scrimp's own with --exact",
                           (long long)x->problem.r, (long long)x->problem.s);
}

static void unload(void *loaded)
{
    Convolution *x = loaded;
    cudnn_plan_free(x->plan);
    if (--n_users == 0 && shared_handle) {
        x->cudnn->destroy(shared_handle);
        shared_handle = NULL;
    }
    free(x);
}

static void *load(const char *plan, int64_t bytes, RtError *err)
{
    Convolution *x = rt_alloc(1, sizeof *x, err);
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
    const Convolution *x = loaded;
    int status = x->cudnn->set_stream(shared_handle, stream);
    if (status != CUDNN_SUCCESS)
        return rt_error(err, "cuDNN: its stream: status %d", status);
    return cudnn_plan_run(x->plan, shared_handle, buf[0], buf[1], buf[2], aligned(buf[3]), err);
}

const CudaLibrary cuda_cudnn = {"cudnn", load, unload, run};
