/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Products with the attribute `pairs` by matrix registers.  Tasks and runs are those of
 * codegen/cpu/gemm/gemm.h; a tile has 32 rows and 32 columns, four registers of sums.  A is read in
 * place where it is bf16 and lies by rows, but for what is less than 32 rows or steps; B is packed,
 * 32 columns at a time. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_H
#define SCRIMP_CODEGEN_CPU_GEMM_GEMM_AMX_H

#include "codegen/cpu/gemm/gemm_desc.h"

/* Whether the target and the strides are such. */
bool gemm_amx_takes(const Gemm *g, const Target *t);
/* Decides blocks and tasks; batch dims are merged. */
void gemm_amx_plan(Gemm *g, const Target *t);
KernelEmit gemm_amx_emit;

#endif
