/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Epilogues on the vectors of a CPU.  Called by the register-tile generator (gemm_tile.c) and by
 * the slow convolution loops. */
#ifndef SCRIMP_CODEGEN_CPU_POINT_EPILOGUE_JIT_H
#define SCRIMP_CODEGEN_CPU_POINT_EPILOGUE_JIT_H

#include "codegen/forms/epilogue.h"
#include "codegen/jit/jit.h"

/* Stores the f32 vector acc of columns col.. of row in buffer out_buf, through bias and body.
 * n_valid: how many lanes exist (1..lanes); NULL = all. */
void epilogue_store(Jit *j, const Epilogue *e, int out_buf, JitValue acc, JitValue row,
                    JitValue col, JitValue n_valid);
/* Asks the cache for what epilogue_store of n elements, columns col.. of row, will write and read
 * of operands of the result's shape. */
void epilogue_ask(Jit *j, const Epilogue *e, int out_buf, JitValue row, JitValue col, int64_t n);

#endif
