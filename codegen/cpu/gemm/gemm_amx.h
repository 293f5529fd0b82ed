/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products with the attribute `pairs` by matrix registers.  Tasks and runs are those of
 * codegen/cpu/gemm/gemm.h; a tile has 32 rows and 32 columns.  For every block of K a run packs the
 * rows of A, and B panel by panel; a panel is swept part by part. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_H

#include "codegen/cpu/gemm/gemm_desc.h"

/* Whether the target and the strides are such. */
bool gemm_amx_takes(const Gemm *g, const Target *t);
/* Decides blocks and tasks; batch dims are merged. */
void gemm_amx_plan(Gemm *g, const Target *t);
KernelEmit gemm_amx_emit;

#endif
