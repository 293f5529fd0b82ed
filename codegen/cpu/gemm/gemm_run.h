/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which part of a product the tasks of one run compute. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_RUN_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_RUN_H

#include "codegen/cpu/gemm/gemm_desc.h"

typedef struct GemmRun {
    JitValue a, b;  /* of this batch element */
    JitValue ahead; /* where to ask for what will be read of a */
    JitValue batch;
    JitValue tile0, tile1; /* row tiles */
    JitValue panel0, panel1;
    JitValue row0; /* first row */
} GemmRun;

/* The run of tasks that begins with `task`; returns the task behind it. */
JitValue gemm_run(Jit *j, const Gemm *g, JitValue task, GemmRun *out);
double gemm_task_flops(const Gemm *g);
/* Row tiles of a task, and panels of a run, at most. */
int64_t gemm_task_tiles(const Gemm *g);
int64_t gemm_run_panels(const Gemm *g);
JitValue gemm_row_of_tile(Jit *j, const Gemm *g, JitValue tile);

#endif
