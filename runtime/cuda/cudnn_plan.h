/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions and attention as cuDNN sees them, and what it is to do for one: an engine with its
 * settings, which its heuristics choose, on a device or for one that is not here.  A choice is
 * plain data and fits any device for which the library can make a plan of it; cuDNN's own text of a
 * plan names the driver's version and all of the device's properties, and is refused by every
 * other.
 *
 * Images lie as [images, rows, columns, channels], weights as [k, r, s, c / groups].  Every engine
 * adds in a fixed order.  Called by cudnn.c, and by codegen/cuda/library/ without a device. */
#ifndef SCRIMP_RUNTIME_CUDA_CUDNN_PLAN_H
#define SCRIMP_RUNTIME_CUDA_CUDNN_PLAN_H

#include "runtime/cuda/cudnn_api.h"
#include "runtime/cuda/plan.h"

/* Who plans: a handle on a device, or the properties of one (cudnn_device). */
typedef struct CudnnPlanner {
    const Cudnn *cudnn;
    void *handle, *device;
} CudnnPlanner;

/* The properties of a device, of a JSON text; NULL with a message. */
void *cudnn_device(const Cudnn *cudnn, const char *json, RtError *err);

/* The first choice of the heuristics, best first, that adds in a fixed order, computes with no less
 * than the problem's arithmetic, compiles nothing and needs no more than the problem's workspace.
 * False with a message when there is none. */
bool cudnn_choose(const CudnnPlanner *by, const CudnnProblem *p, CudnnChoice *out, RtError *err);

/* An execution plan; NULL with a message.  What it needs is in *workspace. */
typedef struct CudnnPlan CudnnPlan;
CudnnPlan *cudnn_plan_make(const CudnnPlanner *by, const CudnnProblem *p, const CudnnChoice *choice,
                           int64_t *workspace, RtError *err);
void cudnn_plan_free(CudnnPlan *plan);
/* The tensors of a part, a letter each, in the order of a call's buffers: x, w, y of the forward
 * convolution; q, k, v, o and the rows' statistics s, or for the gradient q, k, v, o, that of o, s,
 * those of q, k, v, and a number for each row. */
enum { CUDNN_TENSORS_MOST = 10 };
const char *cudnn_tensors(int64_t part);
/* Puts it on the handle's stream, with the tensors' addresses. */
bool cudnn_plan_run(CudnnPlan *plan, void *handle, char *const *tensor, void *workspace,
                    RtError *err);

#endif
