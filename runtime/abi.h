/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The whole contract between generated code and the runtime. */
#ifndef SCRIMP_RUNTIME_ABI_H
#define SCRIMP_RUNTIME_ABI_H

#include <stdint.h>

/* Every thread owns this much scratch memory, 64-byte aligned, outside the arena, fixed, and
 * independent of the model: to work in (packed panels, padded rows), and for strips of an image
 * that a kernel makes for itself (codegen/cpu/point/prologue.h). */
#define SCRIMP_WORK_BYTES    (1024 * 1024)
#define SCRIMP_STRIP_BYTES   (1024 * 1024)
#define SCRIMP_SCRATCH_BYTES (SCRIMP_WORK_BYTES + SCRIMP_STRIP_BYTES)

/* One generated kernel: does tasks [begin, end) of its n_tasks.  buf: addresses in the arena; some
 * kernels take a 64-bit number in the place of one.  Kernels in turns (codegen/build/strips.h) find
 * more behind them, so that the table is handed on as it is, not copied.  Tasks are independent,
 * and what a task computes does not depend on how tasks are grouped: the same bits for any number
 * of threads.
 */
typedef void ScrimpKernel(char *const *buf, int64_t begin, int64_t end, char *scratch);

typedef struct ScrimpContext ScrimpContext;
struct ScrimpContext {
    char *arena;
    /* Runs all tasks of one kernel and returns when they are done, or, on a device, when they are
     * in line behind what runs before them.  call: index of the call in the step.  On a device,
     * kernel is the kernel's number, and a task is a block of threads, which gets buf as a struct.
     */
    void (*run)(ScrimpContext *ctx, int32_t call, ScrimpKernel *kernel, char *const *buf,
                int64_t n_tasks);
    void *threads; /* of the runtime, with what else it needs to run kernels */
    void *profile; /* of the runtime; NULL when not measuring */
};

/* The generated step: calls ctx->run for every kernel of the plan, in order, or for what runs some
 * of them in turns. */
typedef void ScrimpStep(ScrimpContext *ctx);

/* A kernel that a step names by number: what a device loads, an image with one function of this
 * name, whose one parameter is the table that ScrimpContext.run gets.  Or what a library is asked
 * to do with the buffers of that table. */
typedef struct ScrimpDeviceKernel {
    const char *symbol;
    const void *image; /* of a library: a plan, a text (runtime/cuda/library.h) */
    int64_t bytes;
    const char *library; /* its name; NULL: a kernel */
    int threads;         /* of a block; a task is a block */
} ScrimpDeviceKernel;

#define SCRIMP_STEP_SYMBOL "scrimp_step"

/* Of a kernel's file that a compiled step brings along (FNV-1a): it tells a damaged file from the
 * one that was written. */
static inline uint64_t scrimp_checksum(const void *bytes, int64_t n)
{
    const unsigned char *p = (const unsigned char *)bytes;
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

#endif
