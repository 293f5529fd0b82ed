/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Taking a training step back: a copy of the persistent tensors, outside the arena, as they were
 * after the last step that was good.  Called by the trainer. */
#ifndef SCRIMP_RUNTIME_UNDO_H
#define SCRIMP_RUNTIME_UNDO_H

#include "runtime/checkpoint.h"
#include "runtime/threads.h"

/* Index of the first of n elements that is NaN or infinite; -1 when all are finite, or no floats.
 */
int64_t rt_first_not_finite(RtDType dtype, const void *data, int64_t n);
int64_t rt_tensor_elements(const CheckpointTensor *t);

typedef struct Undo Undo;

/* Memory for a copy of all tensors, touched; it is the tensors' of now.  Tensors and threads stay
 * the caller's and must outlive it.  NULL with a message when there is no memory. */
Undo *undo_open(const CheckpointTensor *tensor, int64_t n, Threads *threads, RtError *err);
void undo_close(Undo *u);
int64_t undo_bytes(const Undo *u);
/* Every float of every tensor is finite. */
bool undo_all_finite(Undo *u);
/* The copy becomes what the tensors are. */
void undo_keep(Undo *u);
/* The tensors become what the copy is. */
void undo_back(Undo *u);

#endif
