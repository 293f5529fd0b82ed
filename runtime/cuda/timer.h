/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each call of a step takes on a device: an event of the driver in front of it and one behind
 * it, so that neither its launch nor the wait for it is counted.  Called by step.c. */
#ifndef SCRIMP_RUNTIME_CUDA_TIMER_H
#define SCRIMP_RUNTIME_CUDA_TIMER_H

#include "runtime/cuda/device.h"
#include "runtime/threads.h"

#include <stdint.h>

typedef struct CudaTimer CudaTimer;

/* For calls 0 to n_calls - 1; NULL with a message. */
CudaTimer *cuda_timer_open(const CudaDevice *d, int n_calls, RtError *err);
void cuda_timer_close(CudaTimer *t); /* NULL is allowed */
/* In front of a call and behind it: CUDA_OK, or an error of the driver. */
int cuda_timer_begin(CudaTimer *t, int call);
int cuda_timer_end(CudaTimer *t, int call);
/* Waits for the stream, and adds the seconds of what was begun and ended since; profile->span, if
 * any, is one row, counted from when call 0 begins. */
bool cuda_timer_add(CudaTimer *t, RtProfile *profile, RtError *err);

#endif
