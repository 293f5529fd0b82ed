/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Partial results become results: device/join.cuh, a thread a result. */
#ifndef SCRIMP_CODEGEN_CUDA_JOIN_H
#define SCRIMP_CODEGEN_CUDA_JOIN_H

#include "codegen/forms/pod.h"

/* Results in f32 or bf16, of so many parts in f32, which lie `pitch` floats apart. */
KERNEL_DESC_BEGIN
typedef struct JoinDesc {
    int64_t results, parts, pitch;
    int64_t is_max; /* flag: the largest part; else their sum in order, times scale */
    double scale;
} JoinDesc;
KERNEL_DESC(JoinDesc)

/* Adds the call, behind those that make the parts. */
void cuda_join(Lowering *l, const char *name, const JoinDesc *d, CallBuf parts, CallBuf results);

#endif
