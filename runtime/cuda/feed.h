/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step reads on its way to a device, and what it returns on its way back.  Inputs go through
 * a ring of two page-locked buffers and a stream of their own into a buffer beside the arena, from
 * which the step's stream copies them to where the plan has them: so the next step's inputs travel
 * while a step runs, and the arena stays the plan's.  Outputs come back into a page-locked buffer;
 * who wants them waits for them, and for nothing that is in line behind them. */
#ifndef SCRIMP_RUNTIME_CUDA_FEED_H
#define SCRIMP_RUNTIME_CUDA_FEED_H

#include "runtime/cuda/device.h"

typedef struct CudaFeed CudaFeed;

/* The pieces are copied; what they point at must stay.  NULL with a message. */
CudaFeed *cuda_feed_open(CudaDevice *d, const CudaPiece *in, int n_in, const CudaPiece *out,
                         int n_out, RtError *err);
void cuda_feed_close(CudaFeed *f); /* NULL is allowed */
/* Page-locked bytes of this program's memory. */
int64_t cuda_feed_locked_bytes(const CudaFeed *f);

/* Starts to copy the inputs as they are; they may change as soon as it returns.  A step that is in
 * line already reads those that were sent before it. */
bool cuda_feed_send(CudaFeed *f, RtError *err);
/* Puts in line: the inputs that were sent last go to their places in the arena. */
bool cuda_feed_place(CudaFeed *f, RtError *err);
/* Puts in line: the outputs, as they are behind what is in line before, come back. */
bool cuda_feed_return(CudaFeed *f, RtError *err);
/* Waits for the outputs that were put in line last, and copies them to where they belong here. */
bool cuda_feed_wait(CudaFeed *f, RtError *err);

#endif
